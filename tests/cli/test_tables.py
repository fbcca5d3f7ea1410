"""Tables in every format, and rows that hold no judgement."""

from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

import raters as rt
from raters import datasets
from raters.cli import tables
from raters.cli.reading import read, source_of
from tests.cli.test_app import columns


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".csv.gz", ".tsv.gz", ".jsonl.gz"]
)
def test_every_format_reads_the_same(ending, tmp_path):
    table = pd.DataFrame({"winner": ["007", "7"], "loser": ["x", "y"], "annotator": [1, 2]})
    tables.write_table(table, tmp_path / f"votes{ending}")
    again = tables.read_table(tmp_path / f"votes{ending}")
    assert again["winner"].tolist() == ["007", "7"]
    assert again["annotator"].tolist() == [1, 2]


def test_rows_that_hold_no_vote_are_left_out_on_request(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("winner,loser\na,b\na,\nb,b\nb,a\n")
    options = dataclasses.replace(columns(winner="winner", loser="loser"), drop_bad_rows=True)
    votes, notes = read(source_of(file, options))
    assert votes.num_votes == 2
    assert notes[0].startswith("left out 2 of 4 rows")


def test_the_packaged_table_has_the_columns_of_the_demonstration():
    options = columns(item="patient", rating="rating", annotator="rater")
    votes, notes = read(source_of(datasets.anesthesia_path(), options))
    assert (votes.num_items, votes.num_annotators, notes) == (45, 7, ())
    assert votes.num_votes == rt.datasets.anesthesia_votes().num_votes
