"""A model in words."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from raters.errors.validation import checked
from raters.fitting.result import check_data
from raters.inference.polya_gamma import detection
from raters.model import Model, read_by
from raters.program import Program, within


@checked
def describe(model: Model[Any], data: Any) -> str:
    """Describe a model on its data: sites with prior, axes and shape, blocks and symmetries.

    Parameters
    ----------
    model : Model
    data : Judgements
        With outcomes or without.

    Returns
    -------
    str
        One line for each site, the observed one last, and one each for blocks and symmetries.

    Examples
    --------
    >>> import raters as rt
    >>> print(rt.fitting.describe(rt.BTL(), rt.datasets.anesthesia("votes")))  # doctest: +ELLIPSIS
    BTL(reward_scale=None, position_bias=False, ...)
      reward_scale    LogNormal      ()
      reward          Normal         (item: 45)
      outcome         Votes          (comparison: 6930)  observed
      blocks: reward
      symmetries: Shift(site='reward', axis=None)
    """
    data = read_by(model, data)
    check_data(data, "data", model)
    lines = [repr(model)]
    program = Program(model, data)
    observed = {}
    for name, part in program.parts.items():
        dims = (program.axis_name(name, part.unit),)
        observed[within(name, part.model.observed)] = part.observed._replace(dims=dims)
    for name, site in (program.sites | observed).items():
        axes = ", ".join(f"{dim}: {size}" for dim, size in zip(site.dims, site.shape, strict=True))
        lines.append(
            f"  {name:<15} {site.distribution:<14} ({axes})"
            + ("  observed" if name in observed else "")
        )
    blocks: Any = ()
    with suppress(NotImplementedError):  # of an observed distribution that is not augmented
        blocks = detection.names_of(program)
    lines.append("  blocks: " + ("; ".join(map(" + ".join, blocks)) or "none"))
    lines.append("  symmetries: " + ("; ".join(map(repr, model.symmetries)) or "none"))
    return "\n".join(lines)
