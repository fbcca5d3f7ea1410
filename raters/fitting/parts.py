"""Parts of a result of several kinds of judgement: each as a result of its own model."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from raters.errors import refuse
from raters.errors.validation import checked, one_of
from raters.fitting import result as results
from raters.fitting.storage import to_json
from raters.inference.base import Draws
from raters.judgements.names import names_array
from raters.model import Fit, Model, Values
from raters.models.joint import JointModel
from raters.program import Program, models_of, pointwise_log_likelihood, responsibility, within

# `responsibilities` averages over as many draws as stay below this many numbers, and over this
# many at least.
_AVERAGED, _FEWEST = 40_000_000, 50
# Largest difference between probabilities that rounding makes.
_ROUNDING = 1e-12
# Numbers of one site, and draws of a chain, that a model is shown for its sentences about a fit: so
# many at most, but for the draws, and at least.
_SHOWN, _FEWEST_SHOWN = 2_000_000, 50
# Attribute of the result of a part: the model that was fitted.
PART_OF = "part_of"


class Part(NamedTuple):
    """One kind of judgement of a joint fit."""

    model: Model[Any]
    result: xr.DataTree


@checked
def part(model: Model[Any], result: xr.DataTree, name: str) -> Part:
    """One part of a joint fit as a result of its own model, which every verb takes.

    Its draws are those of the joint posterior, so that predictions, audits, checks and scores of
    one kind of judgement use what all kinds tell. The prior is not that of the part's model alone:
    groups of the prior are those of the joint model.

    Parameters
    ----------
    model : JointModel
    result : xarray.DataTree
    name : str
        Name of the part.

    Returns
    -------
    Part
        ``model`` and ``result``.

    Examples
    --------
    >>> import raters as rt
    >>> careful, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> others, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=300, seed=1)
    >>> both = rt.judgements.Together.of({"careful": careful, "others": others})
    >>> models = {"careful": rt.BTL(), "others": rt.ExtendedBTL(reward_scale=1.0)}
    >>> model = rt.models.JointModel(models, shared=["reward"])
    >>> nuts = rt.NUTS(draws=500, warmup=300, chains=1)
    >>> result = rt.fit(model, both, nuts, seed=0, progress=False)
    >>> rt.predict(*rt.fitting.part(model, result, "others")).dims
    ('chain', 'draw', 'comparison')
    """
    parts = models_of(model)
    if "" in parts:
        expected = "pass the model and its result to the verb as they are"
        refuse("model", model, "is a model of one kind of judgement, without parts", expected)
    one_of("name", name, parts)
    program = results.program_of(model, result, several=True)
    own = program.parts[name]
    values, mode = (
        _of_part(program, result, name, group) if group in result.children else {}
        for group in ("posterior", "mode")
    )
    flags = program.data.flags()
    facts = {str(key): value for key, value in result.attrs.items() if key not in flags}
    facts |= {"model": to_json(own.model), PART_OF: to_json(model)}
    tree = results.as_tree(own, Draws(values, {}, mode=mode), facts)
    # Numbers of draws are those of the joint result, which may be thinned.
    tree["posterior"] = tree["posterior"].to_dataset().assign_coords(results.lead_coords(result))
    for group in {"sample_stats", "optimisation"} & set(result.children):
        tree[group] = result[group].to_dataset()
    results.add_deterministic(own, tree)
    if "log_likelihood" in result.children:
        tree["log_likelihood"] = pointwise(own, tree)
    for group, table in responsibilities(own, tree).items():
        tree[group] = table
    return Part(own.model, tree)


# ---------------------------------------------------------------------- of all parts


def _of_part(
    program: Program[Any], result: xr.DataTree, name: str, group: str = "posterior"
) -> dict[str, np.ndarray]:
    """Values of the sites of a part, with the axes of a result in front."""
    values = {site: np.asarray(result[group][site].values) for site in program.sites}
    if not name:
        return values
    model = program.model
    assert isinstance(model, JointModel)
    lead = 2 if group == "posterior" else 0
    return model.in_part(values, name, program.parts[name].sites, lead)


def pointwise(program: Program[Any], result: xr.DataTree) -> xr.Dataset:
    """Log-likelihood of each unit of the data under every draw, as a result stores it."""
    variables, names = {}, results.lead_coords(result)
    sizes = tuple(map(len, names.values()))
    for name, own in program.parts.items():
        # Computed in float32, the likeliest outcomes have equal log-likelihoods, and Pareto
        # smoothing refuses equal tails.
        values = results.thinned(_of_part(program, result, name), None, 0)
        table = results.in_double(pointwise_log_likelihood, own, values).astype(np.float32)
        axis = program.axis_name(name, own.unit)
        array = table.reshape(*sizes, -1)
        variables[within(name, own.model.observed)] = (("chain", "draw", axis), array)
        names[axis] = names_array(own.data.coords[own.unit])
    return xr.Dataset(variables, names)


@partial(jax.jit, static_argnums=0)
def _mean_responsibility(model: Model[Any], data: Any, draws: Values) -> Float[Array, "unit class"]:
    num_draws = len(next(iter(draws.values())))

    def add(
        total: Float[Array, "unit class"], values: Values
    ) -> tuple[Float[Array, "unit class"], None]:
        return total + responsibility(model, data, values), None

    first = jax.tree.map(lambda value: value[0], draws)
    one = jax.eval_shape(lambda: responsibility(model, data, first))
    return jax.lax.scan(add, jnp.zeros(one.shape), draws)[0] / num_draws


def responsibilities(program: Program[Any], result: xr.DataTree) -> dict[str, xr.Dataset]:
    """Posterior probability of each class that the likelihood sums out, averaged over (evenly
    thinned) draws, by group of the result."""
    groups = {}
    for name, own in program.parts.items():
        if (latent := own.latent) is None:
            continue
        values = results.thinned(_of_part(program, result, name), None, 0)
        num_draws = len(next(iter(values.values())))
        keep = min(num_draws, max(_FEWEST, _AVERAGED // max(own.num_units * latent.size, 1)))
        rows = np.linspace(0, num_draws - 1, keep).astype(int)
        with jax.enable_x64(True):
            draws = {site: np.asarray(value[rows], np.float64) for site, value in values.items()}
            on_device = jax.tree.map(jnp.asarray, own.data)
            mean = np.asarray(_mean_responsibility(own.model, on_device, draws))
        # Where rounding alone tells the largest apart, they are equal.
        largest = mean.max(axis=1, keepdims=True)
        mean = np.where(mean >= largest - _ROUNDING, largest, mean)
        called = [program.axis_name(name, axis) for axis in latent.axes]
        names = map(names_array, (own.coords[axis] for axis in latent.axes))
        coords = dict(zip(called, names, strict=True))
        groups[within(name, latent.group)] = xr.Dataset({"responsibility": (called, mean)}, coords)
    return groups


def fit_warnings(program: Program[Any], result: xr.DataTree) -> tuple[str, ...]:
    """Sentences of the models about a fit; see `raters.Model.warnings`."""
    sentences: list[str] = []
    for name, own in program.parts.items():
        draws = _of_part(program, result, name)
        # A sentence about shares of the draws needs no more of them than show a share of a
        # twentieth.
        chains, number = next(iter(draws.values())).shape[:2]
        largest = max(value[0, 0].size for value in draws.values())
        kept = max(_SHOWN // (largest * chains), _FEWEST_SHOWN)
        draws = {site: value[:, :: max(number // kept, 1)] for site, value in draws.items()}
        probs = None
        if own.latent is not None:
            axes = [program.axis_name(name, axis) for axis in own.latent.axes]
            group: Any = result[within(name, own.latent.group)]
            probs = group["responsibility"].transpose(*axes).values
        known = set(own.model.warnings(own.data))
        before = f"part {name!r}: " if name else ""
        found = own.model.warnings(own.data, Fit(draws, probs))
        sentences += [before + one for one in found if one not in known]
    return tuple(sentences)
