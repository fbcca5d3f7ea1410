"""Citations: BibTeX that everybody's tools read, each work once."""

from __future__ import annotations

import re

import raters as rt
from raters.reporting.cite import _known

BACKENDS = [rt.NUTS, rt.PGEM, rt.PGGibbs, rt.HMC, rt.SVI]
MODELS = [
    model
    for name in rt.models.__all__
    if isinstance(model := getattr(rt.models, name), type)
    and issubclass(model, rt.Model)
    and model.reference
]
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
    of_settings = ["davidson1970extending", "firth2019davidson", "rao1967ties"]
    of_settings += ["li2024style", "song2000multivariate"]
    assert sorted(cited + of_settings) == sorted(_known())


def test_each_work_once_in_the_order_asked():
    assert keys(rt.PGGibbs(), rt.BTL(), rt.PGEM) == [
        "polson2013bayesian",
        "liu2000generalised",
        "bradley1952rank",
        "luce1959individual",
        "varadhan2008simple",
    ]
