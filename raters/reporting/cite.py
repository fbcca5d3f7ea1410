"""BibTeX citations of the models and back-ends used."""

from __future__ import annotations

import contextlib
from typing import Any

import xarray as xr

from raters.errors import SettingError
from raters.fitting.storage import from_json, stored_class
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
    things = [thing for argument in used for thing in _things(argument)]
    collected = _collected(things)
    if not collected:
        names = " and ".join(map(_name, things))
        reason = (
            f"{names} {'have' if len(things) > 1 else 'has'} no `reference`"
            if things
            else "nothing was given"
        )
        raise SettingError(
            f"there is nothing to cite: {reason}; write rt.cite(model, backend), such as"
            " rt.cite(rt.BTL(), rt.NUTS())"
        )
    return "\n\n".join(map(str, collected))


def known_entries(model: Model[Any], backend: str) -> list[str]:
    """Return the entries of a model and of the back-end that a result names."""
    things: list[Any] = [model]
    with contextlib.suppress(SettingError):
        things.append(stored_class(backend, (Backend,)))
    return list(map(str, _collected(things)))


def _collected(things: list[Any]) -> list[Entry]:
    """Return each entry once, in the order of the things cited."""
    by_key: dict[str, Entry] = {}
    for thing in things:
        for entry in _entries(thing):
            if by_key.setdefault(entry.key, entry) != entry:
                raise SettingError(
                    f"{_name(thing)}.reference has the key {entry.key} for another work; give it a"
                    " key of its own"
                )
    return list(by_key.values())


def _things(argument: Any) -> list[Any]:
    """Return the models and back-ends, or their classes, that an argument of `cite` stands for."""
    if isinstance(argument, xr.DataTree) and {"model", "backend"} <= set(argument.attrs):
        model = from_json(argument.attrs["model"], (Model,), "model")
        return [model, stored_class(argument.attrs["backend"], (Backend,))]
    cls = argument if isinstance(argument, type) else type(argument)
    if not issubclass(cls, (Model, Backend)):
        raise SettingError(
            f"cannot cite {f'a {cls.__name__}' if cls is not argument else argument.__name__}; give"
            " models and back-ends, such as rt.cite(rt.BTL(), rt.NUTS()), or a result of rt.fit"
        )
    return [argument]


def _name(thing: Any) -> str:
    """Return the name of the class of a model or back-end."""
    return (thing if isinstance(thing, type) else type(thing)).__name__


def _entries(thing: Any) -> tuple[Entry, ...]:
    """Parse the `reference` of a class or back-end, or what a model has to be cited by."""
    try:
        return entries(thing.cited if isinstance(thing, Model) else thing.reference)
    except ValueError as error:
        raise SettingError(f"{_name(thing)}.reference is no BibTeX: {error}") from error
