"""Citations: BibTeX that everybody's tools read, each work once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import arviz as az
import pytest
import xarray as xr

import raters as rt
from raters.errors import SettingError
from raters.reporting.bibtex import entries

MODELS = [getattr(rt.models, name) for name in rt.models.__all__ if name != "Model"]
# Of few draws, on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:.*draws:raters.errors.ConvergenceWarning")

BACKENDS = [rt.NUTS, rt.PGEM, rt.PGGibbs, rt.SVI]
GOOD = "@misc{me2025, author = {Me, I.}, title = {On {BTL}}, year = {2025}}"


def plain(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """Kind, key and fields of printed entries, read by their lines: another reader than the one
    that wrote them."""
    found = []
    for block in text.split("\n\n"):
        first, *lines, last = block.split("\n")
        kind, key = re.fullmatch(r"@(\w+)\{([\w:-]+),", first).groups()
        pairs = [re.fullmatch(r"  (\w+) *= \{(.+)\},", line).groups() for line in lines]
        assert last == "}"
        assert all(value.count("{") == value.count("}") for _, value in pairs)
        assert len({name for name, _ in pairs}) == len(pairs)
        found.append((kind, key, dict(pairs)))
    return found


@pytest.mark.parametrize("cls", [*MODELS, *BACKENDS])
def test_everything_has_entries_with_what_their_kind_needs(cls):
    needed = {
        "article": {"author", "title", "journal", "year", "volume", "pages"},
        "inproceedings": {"author", "title", "booktitle", "year", "pages"},
        "book": {"author", "title", "publisher", "year"},
        "incollection": {"author", "title", "booktitle", "editor", "publisher", "year"},
        "online": {"author", "title", "year", "url"},
        "misc": {"author", "title", "year", "eprint", "archiveprefix"},
        "unpublished": {"author", "title", "note"},
    }
    for kind, key, fields in plain(rt.cite(cls)):
        assert needed[kind] <= set(fields), key
        # The key says who and when, so that two works do not meet in one by chance.
        family = re.sub(r"\{\\\W(\w)\}", r"\1", fields["author"].partition(",")[0].lower())
        assert key.startswith(family + fields.get("year", "_")), key
        assert all(
            "," in author or author.startswith("{") for author in fields["author"].split(" and ")
        ), key
        assert re.fullmatch(r"\d{4}", fields.get("year", "2025")), key
        assert re.fullmatch(r"\d+(--\d+)?", fields.get("pages", "1")), key
        assert not re.search(r"&|;|\bet al", fields["author"]), key
        assert rt.cite(cls).isascii()


def test_each_work_once_in_the_order_asked_and_one_key_for_each():
    found = [key for _, key, _ in plain(rt.cite(rt.PGGibbs(), rt.BTL(), rt.PGEM))]
    assert found == [
        "polson2013bayesian",
        "liu2000generalised",
        "bradley1952rank",
        "luce1959individual",
        "varadhan2008simple",
    ]
    works = plain(rt.cite(*MODELS, *BACKENDS))
    assert (
        len({key for _, key, _ in works})
        == len(works)
        == len({fields["title"] for _, _, fields in works})
    )


def test_settings_add_what_they_come_from():
    plain_keys = [key for _, key, _ in plain(rt.cite(rt.BTL()))]
    with_ties = [key for _, key, _ in plain(rt.cite(rt.BTL(ties="davidson", covariates=True)))]
    assert with_ties == [*plain_keys, "davidson1970extending", "rao1967ties", "li2024style"]


def test_instances_and_classes_are_cited_alike():
    assert rt.cite(rt.MixtureBTL(num_types=3), rt.SVI()) == rt.cite(rt.MixtureBTL, rt.SVI)


@pytest.fixture(scope="module")
def result() -> xr.DataTree:
    votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    return rt.fit(
        rt.ExtendedBTL(competence="signed"), votes, rt.PGEM(draws=10), seed=0, progress=False
    )


@pytest.mark.slow
def test_a_result_says_what_it_was_fitted_with(result, tmp_path):
    assert rt.cite(result) == rt.cite(rt.ExtendedBTL, rt.PGEM)
    result.to_netcdf(tmp_path / "result.nc")
    assert rt.cite(az.from_netcdf(tmp_path / "result.nc"), rt.BTL()) == rt.cite(
        rt.ExtendedBTL, rt.PGEM, rt.BTL
    )


@dataclass(frozen=True)
class Mine(rt.BTL):
    """A model of one's own."""

    reference: ClassVar[str] = GOOD


@dataclass(frozen=True)
class Silent(rt.BTL):
    """A model of one's own that says nothing."""

    reference: ClassVar[str] = ""


@dataclass(frozen=True)
class Prose(rt.BTL):
    """A model of one's own whose reference is prose."""

    reference: ClassVar[str] = "Me, I. (2025). On BTL."


@dataclass(frozen=True)
class Clash(rt.BTL):
    """A model of one's own that takes a key that is taken."""

    reference: ClassVar[str] = GOOD.replace("me2025", "bradley1952rank")


def test_models_of_ones_own():
    assert plain(rt.cite(Mine())) == [
        ("misc", "me2025", {"author": "Me, I.", "title": "On {BTL}", "year": "2025"})
    ]
    assert rt.cite(Silent(), rt.NUTS()) == rt.cite(rt.NUTS())


@pytest.mark.parametrize(
    ("used", "said"),
    [
        ((), "nothing was given; write rt.cite(model, backend)"),
        ((Silent(),), "Silent has no `reference`"),
        ((Silent, Silent()), "Silent and Silent have no `reference`"),
        ((Prose(),), "Prose.reference is no BibTeX: expected an entry such as @article{key"),
        ((rt.BTL(), Clash()), "Clash.reference has the key bradley1952rank for another work"),
        (("BTL",), "cannot cite a str; give models and back-ends"),
        ((dict,), "cannot cite dict; give models and back-ends"),
        (
            (xr.DataTree(),),
            (
                "cannot cite a DataTree; give models and back-ends, such as rt.cite(rt.BTL(),"
                " rt.NUTS()), or a result"
            ),
        ),
    ],
)
def test_what_cannot_be_cited(used, said):
    with pytest.raises(SettingError, match=re.escape(said)):
        rt.cite(*used)


@pytest.mark.slow
def test_a_result_of_a_model_of_ones_own_needs_the_model(result):
    other = result.copy()
    other.attrs["model"] = '{"class": "mine:Mine", "fields": {}}'
    with pytest.raises(SettingError, match="class 'Mine' of module 'mine' is not there"):
        rt.cite(other)


def test_the_contract_looks_at_references():
    votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    with pytest.raises(AssertionError, match=r"Prose\.reference is no BibTeX"):
        rt.testing.check_model(Prose(), votes)

    @dataclass(frozen=True)
    class Wordy(rt.PGEM):
        reference: ClassVar[str] = "somebody"

    with pytest.raises(AssertionError, match=r"Wordy\.reference is no BibTeX"):
        rt.testing.check_backend(Wordy(), rt.BTL(), votes)


def test_entries_come_back_as_they_were():
    text = "\n\n".join(map(str, entries(rt.cite(*MODELS, *BACKENDS))))
    assert text == rt.cite(*MODELS, *BACKENDS)
    assert entries("  \n") == ()


def test_the_bibtex_of_others_is_read_as_they_write_it():
    text = """@Article {me:2025, author = "Me, I.", title={x = {y}}, journal = {J}, year = 2025,
        pages = {e12}}
    @phdthesis{you, a = 1}"""
    first, second = entries(text)
    assert (first.kind, first.key, second.kind) == ("article", "me:2025", "phdthesis")
    assert dict(first.fields) == {
        "author": "Me, I.",
        "title": "x = {y}",
        "journal": "J",
        "year": "2025",
        "pages": "e12",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("{BTL}", "{BTL"), "me2025 has a brace in title that is not closed"),
        (
            GOOD.replace("{BTL}", "BTL}"),
            "after me2025 comes ', year = {2025}}'; expected another entry or nothing",
        ),
        (GOOD.replace("year", "title"), "me2025 has two fields title"),
        (GOOD.replace(", year = {2025}", ""), "me2025 has no year, which @misc needs"),
        (GOOD.replace("Me, I.", ""), "me2025 has no author, which @misc needs"),
        (GOOD.replace("@misc", "@article"), "me2025 has no journal, which @article needs"),
        (GOOD.replace("}, title", "} title"), "commas part fields"),
        (GOOD + GOOD, "two entries have the key me2025"),
        (GOOD + " and more", "after me2025 comes 'and more'"),
        (GOOD[:-1], "me2025 does not end in a brace after its fields"),
        (
            "Me (2025) " + GOOD,
            "expected an entry such as @article{key, author = {...}, ...}, found 'Me (2025)",
        ),
    ],
)
def test_what_is_no_bibtex_is_said(text, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        entries(text)
