"""Item responses in audits, reports, questions, and on the command line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.cli import app
from raters.families.responses import sections
from raters.fitting.result import program_of
from raters.kinds import AuditContext

MODEL = rt.TwoPL()
# Ann is right on all, eve on none, and nothing depends on who answers q5.
TABLE = pd.DataFrame(
    np.tril(np.ones((6, 6), int))[:, :5], columns=[f"q{code}" for code in range(5)]
).assign(q5=[0, 1, 0, 1, 0, 1])
TABLE.insert(0, "who", ["eve", "bob", "cat", "dan", "fay", "ann"])


@pytest.fixture(scope="module")
def result(fit_quietly):
    responses = rt.Responses.from_wide(pd.concat([TABLE] * 4), person="who")
    return fit_quietly(MODEL, responses, rt.PGEM(draws=300))


@pytest.fixture(scope="module")
def audit(result):
    return rt.audit(MODEL, result)


def test_an_audit_judges_the_ability_and_calls_nobody_a_spammer(audit) -> None:
    table = audit.table.to_dataframe()
    assert audit.judged == "ability"
    assert table["ability"].idxmax() == "ann"
    assert table.loc["ann", "share_right"] == pytest.approx(1.0)
    assert table.loc["eve", "judgements"] == 24
    assert not {"p_spammer", "p_adversarial", "p_guessing", "influence"} & set(table)
    assert not any(word in str(audit) for word in ("crowd", "spam", "advers", "guess"))


def test_items_are_shown_from_the_hardest_on(audit, result, tmp_path) -> None:
    section = sections.items(AuditContext(program_of(MODEL, result), result, audit, 0.9))
    rows = section.tables[0].rows
    difficulty = [row["difficulty"] for row in rows]
    assert difficulty == sorted(difficulty, reverse=True)
    share = {row["item"]: row["share_right"] for row in rows}
    assert share["q0"] == 1.0
    assert share["q4"] == pytest.approx(1 / 3)
    section.files["items.csv"](tmp_path / "items.csv")
    assert list(pd.read_csv(tmp_path / "items.csv")["item"]) == [row["item"] for row in rows]
    assert audit.tables["item_parameters"]["discrimination"].sizes == {"item": 6}


def test_items_that_tell_nothing_are_named(audit, result) -> None:
    flat = result.copy(deep=True)
    discrimination = flat["posterior"]["discrimination"]
    flat["posterior"]["discrimination"] = discrimination.where(discrimination["item"] != "q5", 0.1)
    context = AuditContext(program_of(MODEL, flat), flat, audit, 0.9)
    assert "1 item hardly tells persons apart: q5." in sections.items(context).sentence


def test_wrong_keys_are_named(fit_quietly) -> None:
    """Of 300 persons and 8 items, the keys of an easy and of a hard one are turned round."""
    rng = np.random.default_rng(0)
    ability = rng.normal(size=(300, 1))
    right = rng.random((300, 8)) < 1 / (1 + np.exp(np.linspace(-2, 2, 8) - 1.5 * ability))
    right[:, [1, 7]] = ~right[:, [1, 7]]
    table = pd.DataFrame(right.astype(int), columns=[f"q{code}" for code in range(8)])
    responses = rt.Responses.from_wide(table.assign(who=np.arange(300)), person="who")
    model = rt.TwoPL(discrimination="signed")
    result = fit_quietly(model, responses, rt.PGEM(draws=300))
    context = AuditContext(program_of(model, result), result, rt.audit(model, result), 0.9)
    section = sections.items(context)
    assert sorted(section.facts["reversed_items"]) == ["q1", "q7"]
    assert "Able persons answer 2 items wrong more often than others" in section.sentence
    # Abilities are the right way round, as most keys are.
    mean = result.posterior["ability"].mean(("chain", "draw")).values
    assert np.corrcoef(mean, ability[:, 0])[0, 1] > 0.7


def test_a_report_speaks_of_persons(audit, result) -> None:
    page = rt.report(MODEL, result, audit)
    assert "least able" in page.to_html()
    assert "least trusted" not in page.to_html()
    assert page.facts["sections"]["items"]["num_items"] == 6


def test_questions_are_asked_where_they_tell_most(fit_quietly) -> None:
    """An able person is asked what is hard, and one who is not what is easy."""
    person, item = (grid.ravel() for grid in np.indices((30, 9)))
    ability, difficulty = np.linspace(-2.5, 2.5, 30), np.linspace(-3, 3, 9)
    rng = np.random.default_rng(0)
    right = rng.random(270) < 1 / (1 + np.exp(difficulty[item] - ability[person]))
    table = {"who": person, "item": item, "right": right}
    responses = rt.Responses.from_frame(table, person="who", item="item", correct="right")
    fitted = fit_quietly(rt.Rasch(), responses, rt.PGEM(draws=300))

    def asked(who: int) -> float:
        pool = rt.Candidates.of(responses, again=True, persons=[who])
        chosen = rt.suggest(rt.Rasch(), fitted, pool, target="competence", batch_size=3)
        return float(np.mean(difficulty[chosen["item"].values.astype(int)]))

    assert asked(29) > 0.5
    assert asked(0) < -0.5


@pytest.mark.slow
def test_the_command_line_reads_long_and_wide_tables(tmp_path, capsys) -> None:
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 2, (20, 5))).add_prefix("q").assign(age=30)
    wide.insert(0, "person", range(20))
    wide.to_csv(tmp_path / "wide.csv", index=False)
    long = wide.drop(columns="age").melt("person", var_name="item", value_name="correct")
    long.to_csv(tmp_path / "long.csv", index=False)
    quick = ["--backend", "em", "--draws", "200", "--quiet"]
    summaries = {}
    for name, roles in {
        "wide": ["--person", "person", "--column", "q*"],
        "long": ["--person", "person", "--item", "item", "--correct", "correct"],
        "guessed": [],
    }.items():
        file, out = ("long" if name == "guessed" else name), tmp_path / name
        command = ["audit", str(tmp_path / f"{file}.csv"), *roles, *quick, "--out", str(out)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert app.main(command) == 0, capsys.readouterr().err
        summaries[name] = json.loads((out / "summary.json").read_text())["sections"]
        assert (out / "items.csv").exists()
    assert summaries["long"] == summaries["guessed"]
    assert summaries["wide"]["items"]["num_items"] == 5
    assert app.main(["audit", str(tmp_path / "wide.csv"), "--person", "person", "--column", "*"])
    assert "30" in capsys.readouterr().err


def test_labels_with_a_column_of_what_is_right_stay_labels(tmp_path, capsys) -> None:
    """A worker is no person who is tested: only one kind has these columns."""
    rows = {"item": [1, 1, 2, 2], "worker": ["a", "b"] * 2, "label": ["x", "y", "x", "x"]}
    pd.DataFrame(rows | {"correct": [1, 0, 1, 1]}).to_csv(tmp_path / "labels.csv", index=False)
    assert app.main(["agreement", str(tmp_path / "labels.csv")]) == 0, capsys.readouterr().err
