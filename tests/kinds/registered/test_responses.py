"""Item responses in audits, reports, questions, and on the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.fitting.result import program_of
from raters.kinds import AuditContext
from raters.kinds import responses as family

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


def test_items_are_shown_from_the_hardest_on(audit, result) -> None:
    section = family.hardest_first(AuditContext(program_of(MODEL, result), result, audit, 0.9))
    table = section.table.set_index("item")
    assert table["difficulty"].is_monotonic_decreasing
    assert table.loc["q0", "share_right"] == 1.0
    assert table.loc["q4", "share_right"] == pytest.approx(1 / 3)
    assert section.findings[0]["hardest"] == table.index[0]
    assert audit.tables["item_parameters"]["discrimination"].sizes == {"item": 6}


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
    section = family.hardest_first(context)
    assert sorted(section.findings[0]["reversed_items"]) == ["q1", "q7"]
    # Abilities are the right way round, as most keys are.
    mean = result.posterior["ability"].mean(("chain", "draw")).values
    assert np.corrcoef(mean, ability[:, 0])[0, 1] > 0.7
