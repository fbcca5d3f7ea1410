"""BibTeX citations of the models and back-ends used."""

from __future__ import annotations

from typing import Any

import xarray as xr

from raters.errors import SettingError
from raters.fitting.storage import stored_class
from raters.inference.base import Backend
from raters.model import Model
from raters.reporting.bibtex import Entry, entries


def cite(*used: Model[Any] | Backend | type | xr.DataTree) -> str:
    """Return BibTeX entries for the models and back-ends used.

    Parameters
    ----------
    *used : models and back-ends, their classes, or results
        A result of `raters.fit` stands for its model and its back-end.

    Returns
    -------
    str
        Each entry once, in the order given. User-defined classes are cited by their `reference`,
        if they have one.

    Raises
    ------
    SettingError
        When another object is given, when a `reference` is not BibTeX, or when there is nothing to
        cite.

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

    A result is cited by its model and its back-end:

    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> rt.cite(result) == rt.cite(rt.BTL(), rt.PGEM())
    True
    """
    classes = [cls for argument in used for cls in _classes(argument)]
    collected = _collected(classes)
    if not collected:
        names = " and ".join(cls.__name__ for cls in classes)
        reason = (
            f"{names} {'have' if len(classes) > 1 else 'has'} no `reference`"
            if classes
            else "nothing was given"
        )
        raise SettingError(
            f"there is nothing to cite: {reason}; write rt.cite(model, backend), such as"
            " rt.cite(rt.BTL(), rt.NUTS())"
        )
    return "\n\n".join(map(str, collected))


def known_entries(model: Model[Any], backend: str) -> list[str]:
    """Return the entries of a model and of the back-end that a result names.

    A class without a `reference`, and a back-end that is not imported, add nothing.
    """
    try:
        classes = [type(model), stored_class(backend, (Backend,))]
    except SettingError:
        classes = [type(model)]
    return list(map(str, _collected(classes)))


def _collected(classes: list[type]) -> list[Entry]:
    """Return each entry once, in the order of the classes."""
    by_key: dict[str, Entry] = {}
    for cls in classes:
        for entry in _entries(cls):
            if by_key.setdefault(entry.key, entry) != entry:
                raise SettingError(
                    f"{cls.__name__}.reference has the key {entry.key} for another work; give it a"
                    " key of its own"
                )
    return list(by_key.values())


def _classes(argument: Any) -> list[type]:
    """Return the classes of models and back-ends that an argument of `cite` stands for."""
    if isinstance(argument, xr.DataTree) and {"model", "backend"} <= set(argument.attrs):
        expected = {"model": (Model,), "backend": (Backend,)}
        return [stored_class(argument.attrs[name], kind) for name, kind in expected.items()]
    cls = argument if isinstance(argument, type) else type(argument)
    if not issubclass(cls, (Model, Backend)):
        raise SettingError(
            f"cannot cite {f'a {cls.__name__}' if cls is not argument else argument.__name__}; give"
            " models and back-ends, such as rt.cite(rt.BTL(), rt.NUTS()), or a result of rt.fit"
        )
    return [cls]


def _entries(cls: Any) -> tuple[Entry, ...]:
    """Parse the `reference` of a class."""
    try:
        return entries(cls.reference)
    except ValueError as error:
        raise SettingError(f"{cls.__name__}.reference is no BibTeX: {error}") from error
