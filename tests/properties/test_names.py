"""Names of any text go through every reader and writer as they are, or are refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import tempfile
import unicodedata
import warnings
import xml.etree.ElementTree as ET
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import xarray as xr
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import raters as rt
from raters import kinds
from raters.acquisition import formats
from raters.acquisition.campaign.settings import Setup
from raters.cli import campaign as campaign_files
from raters.cli import files
from raters.cli.files import read_result
from raters.errors import DataError, DataWarning, RatersError
from raters.fitting.result import as_tree, data_of
from raters.inference.base import Draws
from raters.judgements.reading.files import content_of, read_table, table_format
from raters.program import Program
from raters.reporting.files import for_people, unmarked
from tests.kinds.replies import REPLIES, Replies

# What breaks lines, is not seen, changes the direction, or has a meaning in some file.
AWKWARD = " \t\n\r\x0b\x0c\x1c\x85\u2028\u2029\u200b\u200f\u202e\u0301\ufeff\"'`,;|=+-@\\#<&$"
WORDS = [
    *("00", "0", "01", "1", "1.0", "+1", "1e3", "-0", "inf", "nan", "NaN", "None", "NA", "null"),
    *("N/A", "-", "True", "tie", "first", "left", "sep=;", " a", "a ", "2020-01-01", "=1+1"),
    *("x" * 200, "e\u0301" * 100, "\u202eabc", "\ufeffid", "'=1"),
]
SIDES = {"first", "second", "left", "right", "a", "b", "true", "false", "win", "loss"}
FORMATS = [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".tsv.gz", ".ndjson.gz"]

characters = st.characters(codec="utf-8", exclude_characters="\0")
name = st.text(st.sampled_from(AWKWARD) | characters, min_size=1, max_size=8) | st.sampled_from(
    WORDS
)
FEW = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MANY = settings(FEW, max_examples=150)


def names(least: int, most: int) -> st.SearchStrategy[list[str]]:
    return st.lists(name, min_size=least, max_size=most, unique=True)


@pytest.fixture(autouse=True)
def _quiet(monkeypatch) -> Iterator[None]:
    """Names that are nearly equal are warned of; a kind outside the package is known; whether a
    model can run takes JAX a second to say."""
    monkeypatch.setitem(kinds._KINDS, REPLIES.name, REPLIES)
    monkeypatch.setattr(Setup, "check_possible", lambda _: None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        yield


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


# ---------------------------------------------------------------- three kinds of judgement


class Case(NamedTuple):
    """Rows of a table, the roles of its columns, and how they are read."""

    read: Callable[..., rt.judgements.Judgements]
    rows: list[tuple[Any, ...]]
    roles: dict[str, str]
    model: rt.Model

    @property
    def table(self) -> dict[str, list[Any]]:
        columns = zip(*self.rows, strict=True)
        return {
            f"the {role}": list(column) for role, column in zip(self.roles, columns, strict=True)
        }

    @property
    def columns(self) -> dict[str, str]:
        return {role: f"the {role}" for role in self.roles}

    def of(self, table: Any) -> rt.judgements.Judgements:
        return self.read(table, **self.columns)

    @property
    def expected(self) -> Counter:
        """Number of times that each row comes, by role."""
        return Counter(frozenset(zip(self.roles.values(), row, strict=True)) for row in self.rows)


def by_name(data: rt.judgements.Judgements) -> Counter:
    """Number of times that each judgement was made, by the columns of `Judgements.to_frame`."""
    found: Counter = Counter()
    for row in data.to_frame().to_dict("records"):
        number = row.pop("count")
        if "outcome" in row:
            sides = row.pop("first"), row.pop("second")
            winner, loser = sides if row.pop("outcome") == "first" else sides[::-1]
            row |= {"winner": winner, "loser": loser}
        found[frozenset(row.items())] += number
    return found


@st.composite
def comparisons(draw: st.DrawFn) -> Case:
    items, people = draw(names(2, 4)), draw(names(1, 3))
    pair = st.permutations(items).map(lambda order: tuple(order[:2]))
    rows = draw(st.lists(st.tuples(pair, st.sampled_from(people)), min_size=1, max_size=6))
    roles = {"winner": "winner", "loser": "loser", "annotator": "annotator"}
    return Case(rt.Comparisons.from_frame, [(*pair, who) for pair, who in rows], roles, rt.BTL())


@st.composite
def labels(draw: st.DrawFn) -> Case:
    classes, items, people = draw(names(2, 3)), draw(names(1, 3)), draw(names(1, 3))
    rows = [(draw(st.sampled_from(items)), draw(st.sampled_from(people)), one) for one in classes]
    roles = {"item": "item", "annotator": "annotator", "label": "label"}
    return Case(rt.Labels.from_frame, rows, roles, rt.models.OneCoin())


@st.composite
def responses(draw: st.DrawFn) -> Case:
    row = st.tuples(name, name, st.sampled_from(["0", "1"]))
    roles = {"person": "person", "item": "item", "correct": "correct"}
    rows = draw(st.lists(row, min_size=1, max_size=4))
    return Case(Replies.from_frame, rows, roles, REPLIES.default)


cases = comparisons() | labels() | responses()


# ---------------------------------------------------------------- tables


def written(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table once it was a file."""
    files.write_table(table, path, people=False)
    return read_table(path)


LIBRARIES: dict[str, Callable[[dict[str, list[str]]], Any]] = {
    "dict": dict,
    "numpy": lambda table: {key: np.array(own, object) for key, own in table.items()},
    "pandas": pd.DataFrame,
    "objects": lambda table: pd.DataFrame(table, dtype=object),
    "categories": lambda table: pd.DataFrame(table, dtype="category"),
    "polars": pl.DataFrame,
    "lazy": lambda table: pl.DataFrame(table).lazy(),
    "polars categories": lambda table: pl.DataFrame(table).cast(pl.Categorical),
    "pyarrow": pa.table,
}


@FEW
@given(cases)
def test_judgements_are_read_alike_from_every_library(case):
    for library, make in LIBRARIES.items():
        assert by_name(case.of(make(case.table))) == case.expected, library


@pytest.mark.slow
@MANY
@given(cases, st.sampled_from(FORMATS))
def test_judgements_are_read_from_files_as_they_are(folder, case, ending):
    table = written(pd.DataFrame(case.table), folder / f"table{ending}")
    assert by_name(case.of(table)) == case.expected


@MANY
@given(cases, st.sampled_from(FORMATS))
def test_a_table_of_judgements_is_read_as_the_same_judgements(folder, case, ending):
    data = case.of(case.table)
    table = written(data.to_frame(), folder / f"table{ending}")
    columns = {name: name for name in table.columns}
    if isinstance(data, Replies):
        del columns["count"]
    try:
        again = case.read(table, **columns)
    except DataError as error:
        # Of an item called "first" it cannot be said whether it is a side.
        if error.parameter == "outcome" and {one.strip().lower() for one in data.items} & SIDES:
            return
        raise
    assert by_name(again) == case.expected


@MANY
@given(st.lists(st.tuples(name, name), min_size=1, max_size=5), st.sampled_from(FORMATS))
def test_tables_for_people_come_back(folder, rows, ending):
    file, table = folder / f"people{ending}", pd.DataFrame(rows, columns=["one", "two"])
    files.write_table(table, file)
    again = read_table(file)
    if table_format(file) in ("CSV", "TSV"):
        assert not any(cell.startswith(("=", "@", "\t", "\r")) for cell in again.to_numpy().ravel())
        again = again.map(unmarked)
    assert again.to_numpy().tolist() == table.to_numpy().tolist()


@FEW
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.sampled_from(FORMATS)
)
def test_numbers_keep_their_digits(folder, numbers, ending):
    table = written(pd.DataFrame({"one": numbers, "two": "x"}), folder / f"numbers{ending}")
    assert list(map(float, table["one"])) == numbers


# ---------------------------------------------------------------- near names, and no names

VARIANTS: list[Callable[[str], str]] = [
    lambda name: f" {name}",
    lambda name: f"{name}\t",
    lambda name: name[:1] + "\u200b" + name[1:],
    lambda name: unicodedata.normalize("NFD", name),
    lambda name: unicodedata.normalize("NFC", name),
    str.casefold,
]


@MANY
@given(name, st.sampled_from(VARIANTS), st.sampled_from(FORMATS))
@example("é", VARIANTS[3], ".csv")
@example("Ann", VARIANTS[5], ".csv")
def test_nearly_equal_names_stay_apart_with_a_warning(folder, one, variant, ending):
    other = variant(one)
    assume(other != one)
    table = {"winner": [one, other], "loser": [other, one]}
    with pytest.warns(DataWarning, match="told apart by case, space or invisible characters only"):
        votes = rt.Comparisons.from_frame(
            written(pd.DataFrame(table), folder / f"near{ending}"), winner="winner", loser="loser"
        )
    assert set(votes.items) == {one, other}


NO_NAMES = [None, float("nan"), "", "a\0b", "\ud800", "a\udfff"]


@pytest.mark.parametrize("wrong", NO_NAMES, ids=ascii)
@settings(FEW, max_examples=8)
@given(case=cases, place=st.integers(0, 100))
def test_what_is_no_name_is_refused_from_every_library(wrong, case, place):
    for library, make in LIBRARIES.items():
        try:
            table = make(spoilt(case, place, wrong))
        except (TypeError, ValueError, pl.exceptions.PolarsError):
            assert library not in ("dict", "numpy", "objects")  # the library cannot hold it
            continue
        with pytest.raises(RatersError):
            case.of(table)


@pytest.mark.parametrize("wrong", ["" if one != one else one for one in NO_NAMES], ids=ascii)
@settings(FEW, max_examples=12)
@given(case=cases, place=st.integers(0, 100), ending=st.sampled_from(FORMATS))
def test_what_is_no_name_is_refused_from_every_file(folder, wrong, case, place, ending):
    file = folder / f"wrong{ending}"
    assume(write_raw(spoilt(case, place, wrong), file))
    with pytest.raises(RatersError):
        case.of(read_table(file))


def spoilt(case: Case, place: int, wrong: Any) -> dict[str, list[Any]]:
    """The table with one name replaced, in a column of names."""
    table = case.table
    roles = [role for role in case.roles if role != "correct"]
    column = table[f"the {roles[place % len(roles)]}"]
    column[place % len(column)] = wrong
    return table


def write_raw(table: dict[str, list[Any]], file: Path) -> bool:
    """Write a table without raters, halves of characters and all; False when that cannot be."""
    kind, rows = table_format(file), list(zip(*table.values(), strict=True))
    if kind == "Parquet":
        try:
            pa.parquet.write_table(pa.table(table), file)
        except ValueError:
            return False
        return True
    if kind == "JSON lines":
        text = "\n".join(json.dumps(dict(zip(table, row, strict=True))) for row in rows)
    else:
        buffer = io.StringIO()
        mark = "\t" if kind == "TSV" else ","
        csv.writer(buffer, delimiter=mark, quoting=csv.QUOTE_ALL).writerows([table, *rows])
        text = buffer.getvalue()
    content = text.encode("utf-8", "surrogatepass")
    file.write_bytes(gzip.compress(content) if file.suffix == ".gz" else content)
    return True


# ---------------------------------------------------------------- results and journals


@pytest.mark.slow
@FEW
@given(cases)
def test_a_result_keeps_its_names(folder, case):
    data = case.of(case.table)
    program = Program(case.model, data)
    values = {name: np.zeros((1, 4, *site.shape)) for name, site in program.sites.items()}
    facts = {"model": rt.fitting.storage.to_json(case.model)}
    files.to_netcdf(as_tree(program, Draws(values, {}, {}, {}, None), facts), folder / "result.nc")
    result = read_result(folder / "result.nc")
    assert by_name(data_of(result)) == case.expected
    for axis, own in data.coords.items():
        if axis in result.posterior.coords:
            assert result.posterior[axis].values.tolist() == list(own), axis


# ---------------------------------------------------------------- campaigns


class Asked(NamedTuple):
    """A campaign, its questions, and the right answer to each in words."""

    campaign: rt.Campaign
    questions: xr.Dataset
    answers: dict[str, str]

    def check(self, told: Mapping[str, Any]) -> None:
        """Tell, reopen, and compare what is stored."""
        self.campaign.tell(told)
        again = rt.Campaign.open(self.campaign.path)
        asked = again.asked.set_index(id="id")
        for column in self.questions.data_vars:
            if column != "score":
                assert asked[column].values.tolist() == self.questions[column].values.tolist()
        stored = dict(zip(asked["id"].values, asked["answer"].values, strict=True))
        assert stored == self.answers
        assert again.pool.names == self.campaign.pool.names


@st.composite
def pools(draw: st.DrawFn) -> tuple[rt.Model, rt.judgements.Judgements]:
    """Questions about pairs, or about the classes of items; of few sizes, as each is compiled."""
    items, people = draw(names(3, 3)), draw(names(2, 2))
    if draw(st.booleans()):
        return rt.BTL(), rt.Candidates.pairs(items=items, annotators=people)
    classes = draw(names(2, 3))
    return rt.models.OneCoin(), rt.Candidates.labels(
        items=items, annotators=people, classes=classes
    )


def asked_of(folder: Path, model: rt.Model, pool: rt.judgements.Judgements, choice: int) -> Asked:
    """A new campaign with three questions; `choice` says which answer is right."""
    path = Path(tempfile.mkdtemp(dir=folder)) / "campaign.db"
    policy = rt.Policy(score=rt.acquisition.Random())
    campaign = rt.Campaign(path, model, pool, policy=policy)
    questions = campaign.ask(3)
    answers = {}
    for place, one in enumerate(questions["id"].values.tolist()):
        own = questions.isel(id=place)
        possible = [own[side].item() for side in own.attrs.get("pair", ())] or own.attrs["answers"]
        answers[one] = possible[choice % len(possible)]
    return Asked(campaign, questions, answers)


def by_table(asked: Asked, ending: str) -> dict[str, Any]:
    """Answers filled in to the table that `raters campaign ask` writes, saved again."""
    file = asked.campaign.path.with_name(f"questions{ending}")
    files.write_table(campaign_files.shown(asked.questions).assign(answer=""), file)
    table = read_table(file)
    filled = table[["id"]].assign(answer=table["id"].map(asked.answers))
    if table_format(file) in ("CSV", "TSV"):
        filled = for_people(filled)
    files.write_table(table.assign(answer=filled["answer"]), file, people=False)
    return campaign_files.answers_in(Namespace(file=file), asked.campaign)


def exported(asked: Asked, tool: str) -> tuple[list[dict[str, Any]], Path]:
    """Tasks or records in the file for a tool, and the file with its interface."""
    file = asked.campaign.path.with_name("tasks.json")
    written = campaign_files.files_for(tool, file, asked.questions, None, ties=False)
    files.write_folder(file.parent, written)
    return content_of(file), file.with_name(list(written)[1])


def by_label_studio(asked: Asked) -> dict[str, Any]:
    """Answers given in Label Studio."""
    tasks, beside = exported(asked, "label-studio")
    interface = ET.fromstring(beside.read_text("utf-8"))
    offered = [choice.get("value") for choice in interface.iter("Choice")]
    for task in tasks:
        answer = asked.answers[task["data"]["question_id"]]
        if offered:
            assert answer in offered
            result = {"type": "choices", "value": {"choices": [answer]}}
        else:
            side = "left" if task["data"]["first_name"] == answer else "right"
            result = {"type": "pairwise", "value": {"selected": side}}
        task["annotations"] = [{"completed_by": 1, "result": [result]}]
    path = asked.campaign.path.with_name("export.json")
    path.write_text(json.dumps(tasks), "utf-8")
    return formats.from_label_studio(content_of(path)).answers


def by_argilla(asked: Asked) -> dict[str, Any]:
    """Answers given in Argilla."""
    records, beside = exported(asked, "argilla")
    (question,) = content_of(beside)["questions"]
    offered = [option["value"] for option in question["settings"]["options"]]
    for record in records:
        answer = asked.answers[record["id"]]
        if offered == ["first", "second"] and "first" in record["fields"]:
            answer = "first" if record["fields"]["first"] == answer else "second"
        assert answer in offered
        record["responses"] = {"answer": [{"value": answer, "user_id": "u", "status": "submitted"}]}
    path = asked.campaign.path.with_name("export.json")
    path.write_text(json.dumps(records, ensure_ascii=False), "utf-8")
    return formats.from_argilla(content_of(path)).answers


WAYS: dict[str, Callable[[Asked], Mapping[str, Any]]] = {
    "words": lambda asked: asked.answers,
    "csv": lambda asked: by_table(asked, ".csv"),
    "tsv": lambda asked: by_table(asked, ".tsv"),
    "jsonl": lambda asked: by_table(asked, ".jsonl"),
    "parquet": lambda asked: by_table(asked, ".parquet"),
    "label-studio": by_label_studio,
    "argilla": by_argilla,
}


# A cell of space may be a slip, an item may be called "left", and XML has no control characters.
REFUSED = r"nothing but space|which XML cannot|also a word for a side"


@pytest.mark.slow
@settings(FEW, max_examples=60)
@given(pools(), st.integers(0, 5), st.sampled_from(list(WAYS)))
def test_answers_come_back_whichever_way_they_go(folder, setup, choice, way):
    asked = asked_of(folder, *setup, choice)
    try:
        asked.check(WAYS[way](asked))
    except DataError as error:
        if not re.search(REFUSED, str(error)):
            raise
        assert not asked.campaign.asked["answer"].values.any()
