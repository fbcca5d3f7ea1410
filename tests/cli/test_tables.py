"""Tables in every format, and rows that hold no judgement."""

from __future__ import annotations

import dataclasses
import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xarray as xr
from pyarrow import parquet

import raters as rt
from raters import datasets
from raters.cli import tables
from raters.cli.reading import read, source_of
from raters.errors import DataError
from tests.cli.test_app import columns


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz"]
)
def test_every_format_reads_the_same(ending, tmp_path):
    table = pd.DataFrame({"winner": ["007", "7"], "loser": ["x", "y"], "annotator": [1, 2]})
    tables.write_table(table, tmp_path / f"votes{ending}")
    again = tables.read_table(tmp_path / f"votes{ending}")
    assert again["winner"].tolist() == ["007", "7"]
    assert list(map(str, again["annotator"])) == ["1", "2"]


AWKWARD = [
    "00",
    "0",
    "1",
    "1.0",
    "+1",
    "None",
    "NA",
    "null",
    "nan",
    "a\u2028b",
    "c\x85b",
    "d\x0bb",
    "e\nb",
    "f\rb",
    "\r",
]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"])
def test_names_stand_as_in_the_file(ending, tmp_path):
    """Text that looks like numbers or like nothing is a name, and what breaks lines is a part."""
    table = pd.DataFrame({"item": AWKWARD, "who": "w", "says": "None"})
    table.loc[1::2, "says"] = "NA"
    file = tmp_path / f"labels{ending}"
    tables.write_table(table, file)
    given = columns(item="item", annotator="who", label="says")
    labels, _ = read(source_of(file, dataclasses.replace(given, drop_bad_rows=True)))
    assert labels.num_labels == len(AWKWARD)
    assert set(labels.items) == set(AWKWARD)
    assert labels.classes == ("NA", "None")


def test_space_at_the_beginning_of_rows_stays(tmp_path):
    """Also where a part of the file ends that is read at once."""
    names = [" " * 200 + str(number) for number in range(3000)]
    tables.write_table({"item": names, "who": "w"}, tmp_path / "labels.csv.gz")
    assert tables.read_table(tmp_path / "labels.csv.gz")["item"].tolist() == names


def test_blank_lines_are_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("\n \na,b\n1,2\n\n,\n  \n3,\n\n")
    assert tables.read_table(tmp_path / "a.csv").to_numpy().tolist() == [["1", "2"], ["3", ""]]
    (tmp_path / "b.csv").write_text("\n \n\n")
    with pytest.raises(rt.errors.DataError, match="is not a readable CSV table"):
        tables.read_table(tmp_path / "b.csv")


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".jsonl", ".jsonl.gz", ".parquet"])
def test_numbers_keep_their_digits(ending, tmp_path):
    numbers = [1 / 3, 1e-7 / 3, 2.0**60, 5e-324, -0.1]
    tables.write_table({"one": numbers}, tmp_path / f"numbers{ending}")
    assert list(map(float, tables.read_table(tmp_path / f"numbers{ending}")["one"])) == numbers


def test_numbers_of_json_lines_are_names_with_all_their_digits(tmp_path):
    names = ["1.00000000000000000001", "1.00000000000000000002", "1e400", "1e500", "-1e400"]
    names += ["1e99999999999999999999", "1e-99999999999999999999"]
    others = ("1", "1.0", "1.50", "0", "-0")
    lines = [f'{{"winner": {name}, "loser": {one}}}' for name in names for one in others]
    (tmp_path / "votes.jsonl").write_text("\n".join(lines))
    votes, _ = read(source_of(tmp_path / "votes.jsonl", columns(winner="winner", loser="loser")))
    assert set(votes.items) == {*names, *others}


def test_numbers_of_json_lines_with_more_digits_than_floats_are_numbers(tmp_path):
    text = ("0.30000000000000004441", "0.5", "0.70000000000000000001")
    lines = [
        f'{{"item": {place}, "annotator": "w", "label": "{place % 2}", "x": {x}, "rating": {x}}}'
        for place, x in enumerate(text)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    given = columns(item="item", annotator="annotator", label="label", features=["x"])
    labels, _ = read(source_of(tmp_path / "a.jsonl", given))
    shift = labels.features[:, 1] * labels.scale[1] + labels.centre[1]
    np.testing.assert_allclose(shift, list(map(float, text)), rtol=1e-12)
    rated = columns(item="item", annotator="annotator", rating="rating")
    ratings, _ = read(source_of(tmp_path / "a.jsonl", rated))
    assert ratings.levels == tuple(str(float(number)) for number in text)


@pytest.mark.parametrize("kind", ["int64", "uint64", "dictionary"])
def test_whole_numbers_beside_gaps_of_parquet_keep_their_digits(kind, tmp_path):
    column = pa.array([2**60, None, 2**60 + 1], "int64" if kind == "dictionary" else kind)
    table = pa.table({"gold": column.dictionary_encode() if kind == "dictionary" else column})
    parquet.write_table(table, tmp_path / "a.parquet")
    kept = tables.read_table(tmp_path / "a.parquet")["gold"]
    assert kept.isna().tolist() == [False, True, False]
    assert list(map(int, kept.dropna())) == [2**60, 2**60 + 1]


def test_only_an_empty_cell_is_missing(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("winner,loser\nNone,NA\nnan,\n null\n")
    options = dataclasses.replace(columns(winner="winner", loser="loser"), drop_bad_rows=True)
    votes, notes = read(source_of(file, options))
    assert votes.items == ("NA", "None")
    assert notes[0].startswith("left out 2 of 3 rows")


@pytest.mark.parametrize(
    ("name", "content", "columns", "rows"),
    [
        ("a.csv", b"a;b\n1;2\n", ["a", "b"], [["1", "2"]]),
        ("a.csv", b"sep=;\r\na;b\r\n1;2,5\r\n", ["a", "b"], [["1", "2,5"]]),
        ("a.tsv", b"a,b\n1,2\n", ["a", "b"], [["1", "2"]]),
        ("a.csv", b"\n\nsep=;\na;b\n1;2\n", ["a", "b"], [["1", "2"]]),
        ("a.csv", b"\na;b\n1;2\n", ["a", "b"], [["1", "2"]]),
        ("a.csv", b"x" * 140_000 + b"\n1\n", ["x" * 140_000], [["1"]]),
        ("a.csv", "a,b\né,2\n".encode("utf-16"), ["a", "b"], [["é", "2"]]),
        ("a.csv", "\ufeffa,b\né,2\n".encode(), ["a", "b"], [["é", "2"]]),
        ("a.csv", b"a,b,,\n1,2,,\n", ["a", "b", "column 3", "column 4"], [["1", "2", "", ""]]),
        ("a.csv", b'a,b\n"' + b"x" * 140_000 + b'",2\n', ["a", "b"], [["x" * 140_000, "2"]]),
    ],
)
def test_spreadsheets_are_read(name, content, columns, rows, tmp_path):
    (tmp_path / name).write_bytes(content)
    table = tables.read_table(tmp_path / name)
    assert (list(table.columns), table.to_numpy().tolist()) == (columns, rows)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "a,b\né,2\n".encode("latin-1"), "iconv -f WINDOWS-1252"),
        ("a.csv", b"a,b,a\n1,2,3\n", "2 columns are called 'a'"),
        ("a.jsonl", b'{"a": 1, "a": 2}\n', "line 1: 2 columns are called 'a'"),
        (
            "a.csv",
            b"a,b\n1,2,3\n",
            "line 2 has 3 cells, and the header 2; quote cells that hold the separator",
        ),
        ("a.tsv", b"a\tb\n\n1\t2\t3\n", "line 3 has 3 cells, and the header 2; quote"),
        ("a.csv", b"\nsep=;\na;b\n1;2;3\n", "line 4 has 3 cells, and the header 2; quote"),
        ("a.jsonl", b'{"a": "\\ud800"}\n', "line 1 holds half of a surrogate pair"),
        ("a.jsonl", b"[" * 100_000, "line 1 is not JSON"),
        ("a.jsonl", b'{"a": {"b": 1}}', "is not one flat object"),
        ("a.csv", b'a,b\n"1,2\n', "a quotation mark in line 2 has no other"),
        ("a.csv", b"a\0b\n", "it is binary"),
        (
            "a.csv",
            b'a,b,c\n"tea,ann,x\nmilk,bob,y\n"beer,carl,x\n',
            "the quoted cell that begins in line 2, closed in line 4 has text behind its closing"
            " quotation mark, 'beer,carl,x'",
        ),
        ("a.tsv", b'a\tb\n"5" disk"\t1\n', "begins in line 2 has text behind its closing"),
        ("a.csv", b'sep=;\na;b\n"1" ;2\n', "begins in line 3 has text behind its closing"),
        ("a.csv", b'a,b\n1,"x\n2,"y\n3,"z"\n', "begins in line 2, closed in line 3 has text"),
        ("a.csv", b'a,b\n"a\\"b",1\n', "a mark inside of a cell is doubled, not written with"),
        ("a.csv", b"a,b\n" + b"1,2\n" * 20_000 + b"1,2\0\n", "line 20002 holds the character NUL"),
    ],
)
def test_what_is_no_table_is_refused(name, content, words, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(rt.errors.DataError, match=re.escape(words)):
        tables.read_table(tmp_path / name)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['"tea,ann,x', "milk,bob,y", 'beer",carl,x', "a,b,c"], "lines 2 to 4 are read as one row"),
        (['milk,bob,"y', 'beer,carl,x"'], "lines 2 to 3 are read as one row"),
        (['"tea, hot', 'and, with, milk",ann,x'], None),
        (['"tea', "", '""milk"", cold",ann,x', '"a","b","c"'], None),
    ],
)
def test_rows_that_quotation_marks_make_one_are_told(lines, said, end, tmp_path):
    """Warn only where each line would be a row: other texts of several lines are cells."""
    file = tmp_path / "a.csv"
    file.write_bytes(end.join(["item,annotator,label", *lines, ""]).encode())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        table = tables.read_table(file)
    assert [said in str(one.message) for one in found] == ([] if said is None else [True])
    assert end in "".join(table.iloc[0])


def test_lines_of_one_column_are_text(tmp_path):
    (tmp_path / "a.csv").write_text('item\n"tea\nmilk"\n')
    assert tables.read_table(tmp_path / "a.csv")["item"].tolist() == ["tea\nmilk"]


def test_rows_that_hold_no_vote_are_left_out_on_request(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("winner,loser\na,b\na,\nb,b\nb,a\n")
    options = dataclasses.replace(columns(winner="winner", loser="loser"), drop_bad_rows=True)
    votes, notes = read(source_of(file, options))
    assert votes.num_votes == 2
    assert notes[0].startswith("left out 2 of 4 rows")


def test_the_packaged_table_has_the_columns_of_the_demonstration():
    options = columns(item="patient", rating="rating", annotator="rater")
    ratings, notes = read(source_of(datasets.anesthesia_path(), options))
    assert (ratings.num_items, ratings.num_annotators, notes) == (45, 7, ())
    assert ratings.num_ratings == rt.datasets.anesthesia_ratings().num_ratings


# ---------------------------------------------------------------- tables larger than memory


def _written(table, folder, tmp_path):
    """A table of votes as a file or as a folder of files, too large to be read at once."""
    path = tmp_path / ("votes" if folder else "votes.parquet")
    if folder:
        path.mkdir()
    for index in range(2 if folder else 1):
        part = table.iloc[index::2] if folder else table
        part.to_parquet(path / f"{index}.parquet" if folder else path)
    return path


@pytest.mark.parametrize("folder", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_large_files_are_read_in_parts(folder, named, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_ROWS", 5)
    table = pd.DataFrame(
        {"winner": ["a", "b", "a", "a"] * 3, "loser": ["b", "c", "b", "c"] * 3, "time": range(12)}
    )
    roles = columns(winner="winner", loser="loser") if named else columns()
    votes, notes = read(source_of(_written(table, folder, tmp_path), roles))
    assert votes.num_votes == 12
    expected = rt.Comparisons.from_frame(table, winner="winner", loser="loser")
    pd.testing.assert_frame_equal(votes.to_frame(), expected.to_frame())
    assert notes[-1] == "12 rows, of which 3 are different"


def test_missing_values_of_large_files_are_named_by_their_row(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_ROWS", 2)
    table = pd.DataFrame({"winner": ["a", None, "a", "b"], "loser": ["b", "c", "b", "b"]})
    path = _written(table, False, tmp_path)
    with pytest.raises(DataError, match="with winner empty, loser 'c' has a missing value"):
        read(source_of(path, columns()))
    votes, notes = read(source_of(path, dataclasses.replace(columns(), drop_bad_rows=True)))
    assert votes.num_votes == 2
    assert notes[-1].startswith("left out 2 of 3 different rows")


def test_large_files_of_other_shapes_are_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_MOST_ROWS", 2)
    table = pd.DataFrame({"essay": ["a", "b", "c"], "ann": [1, 2, 3], "bob": [2, 2, 3]})
    path = _written(table, False, tmp_path)
    ratings, _ = read(source_of(path, columns(item="essay", columns=["ann", "bob"])))
    assert ratings.num_rows == 6


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(DataError, match="is a directory"):
        source_of(tmp_path, columns())


def test_a_result_is_known_by_its_name_or_its_beginning(tmp_path):
    named, unnamed, table = (tmp_path / name for name in ("gone.nc", "result", "votes.csv"))
    xr.Dataset({"x": 1.0}).to_netcdf(unnamed, engine="netcdf4")
    table.write_text("a,b\n1,2\n")
    assert [tables.is_result(path) for path in (named, unnamed, table)] == [True, True, False]
    assert not tables.is_result(tmp_path)
