"""Citations: BibTeX that everybody's tools read, each work once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import pytest
import xarray as xr

import raters as rt
from raters.errors import SettingError
from raters.reporting.cite import _known
from tests.refusals import raises_about

BACKENDS = [rt.NUTS, rt.PGEM, rt.PGGibbs, rt.PGVI, rt.HMC, rt.SVI]
MODELS = [
    model
    for name in rt.models.__all__
    if isinstance(model := getattr(rt.models, name), type)
    and issubclass(model, rt.Model)
    and model.reference
]
GOOD = "@misc{me2025, author = {Me, I.}, title = {On {BTL}}, year = {2025}}"
REQUIRED = {
    "article": {"author", "title", "journal", "year", "volume", "pages"},
    "inproceedings": {"author", "title", "booktitle", "year", "pages"},
    "book": {"author", "title", "publisher", "year"},
    "incollection": {"author", "title", "booktitle", "editor", "publisher", "year"},
    "online": {"author", "title", "year", "url"},
    "misc": {"author", "title", "year", "eprint", "archiveprefix"},
    "unpublished": {"author", "title", "note"},
}


def keys(*used) -> list[str]:
    return re.findall(r"^@\w+\{([^,]+),", rt.cite(*used), re.MULTILINE)


def test_each_entry_has_what_its_kind_needs():
    for key, entry in _known().items():
        first, *lines, last = entry.split("\n")
        fields = dict(re.fullmatch(r"  (\w+) *= \{(.+)\},", line).groups() for line in lines)
        assert REQUIRED[re.fullmatch(r"@(\w+)\{[\w:-]+,", first)[1]] <= set(fields), key
        assert last == "}"
        assert len(fields) == len(lines)


def test_each_key_of_a_model_or_back_end_is_there_and_each_entry_is_cited():
    cited = keys(*MODELS, *BACKENDS)
    of_settings = ["davidson1970extending", "rao1967ties", "li2024style", "song2000multivariate"]
    assert sorted(cited + of_settings) == sorted(_known())


def test_each_work_once_in_the_order_asked():
    assert keys(rt.PGGibbs(), rt.BTL(), rt.PGEM) == [
        "polson2013bayesian",
        "liu2000generalised",
        "bradley1952rank",
        "luce1959individual",
        "varadhan2008simple",
    ]


@dataclass(frozen=True)
class Mine(rt.BTL):
    """A user's model."""

    reference: ClassVar[str] = f"\n    {GOOD}\n"


@dataclass(frozen=True)
class Silent(rt.BTL):
    """A user's model that says nothing."""

    reference: ClassVar[str] = ""


@dataclass(frozen=True)
class Prose(rt.BTL):
    """A user's model whose reference is prose."""

    reference: ClassVar[str] = "Me, I. (2025). On BTL."


@dataclass(frozen=True)
class Clash(rt.BTL):
    """A user's model that takes a key that is taken."""

    reference: ClassVar[str] = GOOD.replace("me2025", "bradley1952rank")


def test_models_of_users():
    assert rt.cite(Mine()) == GOOD
    assert keys(Mine(covariates=True)) == ["me2025", "li2024style"]
    assert rt.cite(Silent(), rt.NUTS()) == rt.cite(rt.NUTS())


def test_what_cannot_be_cited():
    for used in ((Prose(),), (rt.BTL(), Clash())):
        with raises_about(SettingError, "reference"):
            rt.cite(*used)
    for thing in ("BTL", dict, xr.DataTree()):
        with raises_about(SettingError, "used"):
            rt.cite(thing)
    for used in ((), (Silent(),)):
        with pytest.raises(SettingError):
            rt.cite(*used)
