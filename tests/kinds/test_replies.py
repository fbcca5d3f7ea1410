"""Item responses and a 2PL model, written outside the package."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.errors import DataError
from tests.kinds.replies import OwnTwoPL, Replies, table
from tests.refusals import raises_about

MODEL = OwnTwoPL()
GIBBS = rt.PGGibbs(draws=100, warmup=50, chains=2)


@pytest.fixture(scope="module")
def responses() -> Replies:
    return Replies.from_frame(table(), person="who", item="question", correct="right")


@pytest.fixture(scope="module")
def result(responses, fit_quietly):
    return fit_quietly(MODEL, responses, GIBBS)


def test_the_program_has_the_roles_of_the_container(responses):
    program = rt.program.Program(MODEL, responses)
    assert program.unit == "response"
    assert program.latent is None
    assert program.sites["ability"].dims == ("person",)
    assert {name: site.dims for name, site in program.sites.items()}["discrimination"] == ("item",)


def test_difficulties_are_recovered(fit_quietly):
    many = Replies.from_frame(table(400), person="who", item="question", correct="right")
    mode = fit_quietly(MODEL, many, rt.PGEM(draws=0))["mode"]
    difficulty = -mode["intercept"] / mode["discrimination"]
    assert np.corrcoef(difficulty, np.linspace(-1.5, 1.5, 8))[0, 1] > 0.97


def test_prediction_and_scores(result, responses):
    probability = rt.predict(MODEL, result)
    assert probability.dims == ("chain", "draw", "answer", "response")
    np.testing.assert_allclose(probability.sum("answer"), 1, atol=1e-5)
    table = {"person": ["p03"], "item": ["q2"], "correct": [1]}
    one = Replies.from_frame(table, **{name: name for name in table})
    again = rt.predict(MODEL, result, one)
    row = np.flatnonzero((probability["by"] == "p03") & (probability["item"] == "q2"))
    np.testing.assert_allclose(again[..., 0], probability[..., row[0]], atol=1e-6)
    by_person = rt.log_likelihood(MODEL, result, by="person").log_likelihood["correct"]
    assert by_person.sizes["person"] == 30


def test_unknown_names_are_refused(result):
    stranger = {"who": ["nobody"], "question": ["q2"], "right": [1]}
    asked = Replies.from_frame(stranger, person="who", item="question", correct="right")
    with raises_about(DataError, "person", "nobody"):
        rt.predict(MODEL, result, asked)


def test_the_audit_judges_persons_by_their_ability(result):
    audit = rt.audit(MODEL, result, reference="crowd")
    assert audit.table.sizes == {"person": 30}
    assert audit.judged == "ability"
    assert {"ability", "ability_low", "ability_high", "p_below", "verdict"} <= set(audit.table)
    best = result.posterior["ability"].mean(("chain", "draw")).values.argmax()
    assert str(audit.table["verdict"][best].values) == "keep"
    everybody = Replies.from_result(result)
    fewer = rt.auditing.drop(MODEL, everybody, audit, rt.PGEM(draws=0), seed=0, progress=False)
    assert fewer.posterior.sizes["person"] == 30 - len(audit.flagged)


def test_questions_are_what_nobody_answered(responses):
    with raises_about(DataError, "again"):
        rt.Candidates.of(responses)
    assert rt.Candidates.of(responses.rows(slice(0, 100))).num_rows == 140
    assert rt.Candidates.of(responses, again=True, limit=50).num_rows == 50


def test_rows_with_counts_are_repeats(responses):
    twice = responses.joined(responses)
    together = twice.aggregate()
    assert together.num_rows == responses.num_rows
    assert together.num_judgements == 2 * responses.num_judgements
    np.testing.assert_array_equal(np.asarray(together.count), 2)
