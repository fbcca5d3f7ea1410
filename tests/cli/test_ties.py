"""Ties and covariates on the command line: what a setting of the model implies for the reader."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import xarray as xr

import raters as rt
from raters.cli import app as cli

COLUMNS = ["--first", "a", "--second", "b", "--outcome", "says", "--annotator", "who"]


@pytest.fixture
def file(tmp_path) -> Path:
    table = pd.DataFrame(
        {
            "a": ["x", "y", "z", "x"] * 9,
            "b": ["y", "z", "x", "z"] * 9,
            "says": ["tie", "a", "b", "a", "b", "a"] * 6,
            "who": ["p", "q", "r"] * 12,
        }
    )
    table.to_csv(tmp_path / "votes.csv", index=False)
    return tmp_path / "votes.csv"


def run(capsys, *arguments: object) -> tuple[int, str, str]:
    code = cli.main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def fit(capsys, file, *options) -> tuple[int, str, str]:
    out = file.parent / "result.nc"
    short = ["--draws", 20, "--warmup", 10, "--chains", 2, "--out", out, "--quiet"]
    return run(capsys, "fit", file, *COLUMNS, *short, *options)


def test_a_model_of_ties_makes_the_reader_keep_them(file, capsys) -> None:
    code, _, error = fit(capsys, file, "--model", "btl", "--model-ties", "davidson")
    assert code == 0, error
    result = xr.open_datatree(file.parent / "result.nc")
    assert rt.Comparisons.from_result(result).tied
    assert "tie_propensity" in result["posterior"]


def test_what_was_given_goes_before_what_is_implied(file, capsys) -> None:
    code, _, error = fit(
        capsys, file, "--model", "btl", "--model-ties", "davidson", "--ties", "half"
    )
    assert code == 2
    assert "--model-ties" in error
    assert "--ties 'keep'" in error


def test_without_a_model_of_ties_they_are_an_error_as_before(file, capsys) -> None:
    code, _, error = fit(capsys, file, "--model", "btl")
    assert code == 2
    assert "does not allow the 6 tie(s)" in error


def test_the_help_says_how_the_two_go_together(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    code, text, _ = run(capsys, "audit", "--help")
    assert code == 0
    assert 'of votes read with ties="keep", which the command line then does.' in text


def test_a_campaign_from_nothing_asks_for_ties(tmp_path, capsys) -> None:
    journal = tmp_path / "campaign.db"
    options = ["--items", "x,y,z", "--annotators", "p,q", "--model", "btl"]
    options += ["--model-ties", "davidson", "--out", journal]
    code, _, error = run(capsys, "campaign", "start", *options)
    assert code == 0, error
    assert run(capsys, "campaign", "ask", journal, "--number", 2)[0] == 0
    campaign = rt.Campaign.open(journal)
    assert campaign.pool.tied
    campaign.tell({campaign.outstanding()["id"].values[0]: "tie"})
    assert campaign.data.wins.tolist() == [0.5]
    out = tmp_path / "tasks.json"
    assert run(capsys, "campaign", "export", journal, "--to", "label-studio", "--out", out)[0] == 0
    assert any("tie" in path.read_text().lower() for path in tmp_path.glob("tasks*"))
