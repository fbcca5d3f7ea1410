"""What to cite."""

from __future__ import annotations

from typing import Any

import xarray as xr

from raters import inference, models
from raters._bibtex import Entry, entries
from raters.errors import SettingError
from raters.inference.base import Backend
from raters.model import Model


def cite(*used: Model | Backend | type | xr.DataTree) -> str:
    """BibTeX entries for the models and back-ends used.

    Parameters
    ----------
    *used : models and back-ends, their classes, or results
        A result of `raters.fit` stands for the model and the back-end that it came from.

    Returns
    -------
    str
        Each entry once, in the order given. A class of one's own is cited by its `reference`, and adds nothing without.

    Raises
    ------
    SettingError
        When something else is given, when a `reference` is no BibTeX, or when nothing is known to cite.

    Examples
    --------
    >>> import raters as rt
    >>> print(rt.cite(rt.DawidSkene()))
    @article{dawid1979maximum,
      author  = {Dawid, A. P. and Skene, A. M.},
      title   = {Maximum Likelihood Estimation of Observer Error-Rates Using the {EM} Algorithm},
      journal = {Journal of the Royal Statistical Society. Series C (Applied Statistics)},
      year    = {1979},
      volume  = {28},
      number  = {1},
      pages   = {20--28},
      doi     = {10.2307/2346806},
    }

    Of a result, what it was fitted with:

    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.cite(result) == rt.cite(rt.BTL(), rt.PGEM())
    True
    """
    classes = [cls for thing in used for cls in _classes(thing)]
    found = _collected(classes)
    if not found:
        names = " and ".join(cls.__name__ for cls in classes)
        what = f"{names} {'have' if len(classes) > 1 else 'has'} no `reference`" if classes else "nothing was given"
        raise SettingError(
            f"there is nothing to cite: {what}; write rt.cite(model, backend), such as rt.cite(rt.BTL(), rt.NUTS())"
        )
    return "\n\n".join(map(str, found))


def known_entries(model: Model, backend: str) -> list[str]:
    """The entries of a model and of the back-end with this ``repr``.

    A class of one's own without a `reference`, and a back-end that raters does not know by its ``repr``, add nothing.
    """
    kind = known(backend, inference)
    return list(map(str, _collected([type(model), *([] if kind is None else [kind])])))


def known(text: str, package: Any) -> Any:
    """The class of `package` that a ``repr`` begins with; None when it has none of that name."""
    name = text.partition("(")[0]
    return getattr(package, name) if name in package.__all__ else None


def _collected(classes: list[type]) -> list[Entry]:
    """Each entry once, in the order of the classes."""
    found: dict[str, Entry] = {}
    for cls in classes:
        for entry in _entries(cls):
            if found.setdefault(entry.key, entry) != entry:
                raise SettingError(
                    f"{cls.__name__}.reference has the key {entry.key} for another work; give it a key of its own"
                )
    return list(found.values())


def _classes(thing: Any) -> list[type]:
    """The models and back-ends that something stands for."""
    if isinstance(thing, xr.DataTree) and {"model", "backend"} <= set(thing.attrs):
        return [_named(thing.attrs["model"], models), _named(thing.attrs["backend"], inference)]
    cls = thing if isinstance(thing, type) else type(thing)
    if not issubclass(cls, (Model, Backend)):
        raise SettingError(
            f"cannot cite {f'a {cls.__name__}' if cls is not thing else thing.__name__}; give models and back-ends, such as "
            "rt.cite(rt.BTL(), rt.NUTS()), or a result of rt.fit"
        )
    return [cls]


def _named(text: str, package: Any) -> type:
    """The class that a result names in its attributes, by the ``repr`` of what it was fitted with."""
    cls = known(text, package)
    if cls is None:
        name = text.partition("(")[0]
        raise SettingError(f"this result was fitted with {name}, which is not of raters; write rt.cite(model, backend)")
    return cls


def _entries(cls: Any) -> tuple[Entry, ...]:
    try:
        return entries(cls.reference)
    except ValueError as error:
        raise SettingError(f"{cls.__name__}.reference is no BibTeX: {error}") from error
