"""BibTeX citations of the models and back-ends used."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from textwrap import dedent
from typing import Any

import xarray as xr

from raters.errors import SettingError, refuse
from raters.fitting.storage import from_json, stored_class
from raters.inference.base import Backend
from raters.model import Model, references_of

_ENTRY = re.compile(r"^@\w+\s*\{\s*([^\s,{}]+),.*?(?=^@|\Z)", re.MULTILINE | re.DOTALL)


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
        if they have one: keys of the entries of raters, or BibTeX.

    Raises
    ------
    SettingError
        When another object is given, when a `reference` is neither, or when there is nothing to
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
    """
    entries = cited_entries([thing for argument in used for thing in _things(argument)])
    if not entries:
        raise SettingError(
            "there is nothing to cite; write rt.cite(model, backend), such as rt.cite(rt.BTL(),"
            " rt.NUTS()), of classes that have a `reference`"
        )
    return "\n\n".join(entries)


def known_entries(model: Model[Any], backend: str) -> list[str]:
    """Return the entries of a model and of the back-end that a result names."""
    things: list[Any] = [model]
    with contextlib.suppress(SettingError):
        things.append(stored_class(backend, (Backend,)))
    return cited_entries(things)


def cited_entries(things: Sequence[Any]) -> list[str]:
    """Return each entry of models, back-ends or their classes once, in their order."""
    by_key: dict[str, str] = {}
    for thing in things:
        for key, entry in (pair for text in references_of(thing) for pair in _entries(text)):
            if by_key.setdefault(key, entry) != entry:
                refuse("reference", key, "is the key of two works", "give each a key of its own")
    return list(by_key.values())


@cache
def _known() -> dict[str, str]:
    """Return the entries of raters by key."""
    return _split(files("raters").joinpath("references.bib").read_text("utf-8"))


def _split(text: str) -> dict[str, str]:
    """Return the entries of a text of BibTeX by key."""
    return {match[1]: match[0].strip() for match in _ENTRY.finditer(text)}


def _entries(reference: str) -> list[tuple[str, str]]:
    """Return key and entry of each work of a `reference`: keys of raters, or BibTeX."""
    own = _split(dedent(reference).strip())
    if own:
        return list(own.items())
    if unknown := [key for key in reference.split() if key not in _known()]:
        problem = "is no key of raters/references.bib"
        expected = "give keys of it separated by spaces, or entries of BibTeX"
        instead = "reference = '@article{key, author = {...}, ...}'"
        refuse("reference", unknown[0], problem, expected, instead=instead)
    return [(key, _known()[key]) for key in reference.split()]


def _things(argument: Any) -> list[Any]:
    """Return the models and back-ends, or their classes, that an argument of `cite` stands for."""
    if isinstance(argument, xr.DataTree) and {"model", "backend"} <= set(argument.attrs):
        model = from_json(argument.attrs["model"], (Model,), "model")
        return [model, stored_class(argument.attrs["backend"], (Backend,))]
    cls = argument if isinstance(argument, type) else type(argument)
    if not issubclass(cls, (Model, Backend)):
        expected = "give models and back-ends, or a result of rt.fit"
        instead = "rt.cite(rt.BTL(), rt.NUTS())"
        refuse("used", argument, "is no model and no back-end", expected, instead=instead)
    return [argument]
