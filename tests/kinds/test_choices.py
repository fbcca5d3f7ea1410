"""Choices from sets whose size varies, written outside the package: what can be answered depends on
the question."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.errors import BackendError, DataError
from raters.testing import check_backend
from tests.kinds.choices import PICKS, Choices, MultinomialLogit, table
from tests.refusals import raises_about

MODEL = MultinomialLogit()
NUTS = rt.NUTS(draws=60, warmup=80, chains=2)


@pytest.fixture(scope="module")
def choices() -> Choices:
    return Choices.from_frame(table(), chooser="who", offered="menu", chosen="took")


@pytest.fixture(scope="module")
def result(choices, fit_quietly):
    return fit_quietly(MODEL, choices, NUTS)


def test_what_was_not_offered_has_no_probability(result, choices):
    probability = rt.predict(MODEL, result).mean(("chain", "draw"))
    np.testing.assert_allclose(probability.sum("answer"), 1, atol=1e-5)
    offered = np.zeros(probability.shape, bool)
    for row, places in enumerate(np.asarray(choices.offered)):
        offered[places[places >= 0], row] = True
    assert (probability.values[~offered] == 0).all()
    assert (probability.values[offered] > 0).all()


def test_utilities_are_recovered(result):
    utility = result.posterior["utility"].mean(("chain", "draw"))
    assert utility.sortby(-utility)["alternative"].values.tolist()[0] == "a"
    assert utility.sortby(-utility)["alternative"].values.tolist()[-1] == "e"


def test_a_set_is_the_same_in_any_order(choices):
    turned = {"who": ["k0", "k0"], "menu": ["a|b|c", "c|a|b"], "took": ["a", "b"]}
    two = Choices.from_frame(turned, chooser="who", offered="menu", chosen="took")
    assert two.keys()[0] == two.keys()[1]
    assert two.questions().num_rows == 1


def test_a_choice_of_what_was_not_offered_is_refused():
    wrong = {"who": ["k0"], "menu": ["a|b"], "took": ["c"]}
    with pytest.raises(DataError) as caught:
        Choices.from_frame(wrong, chooser="who", offered="menu", chosen="took")
    assert caught.value.parameter == "chosen"


def test_audit_and_suggestions(result, choices):
    audit = rt.audit(MODEL, result, reference="crowd")
    assert audit.judged == "consistency"
    suggested = rt.suggest(MODEL, result, rt.Candidates.of(choices), batch_size=3)
    for menu, likeliest in zip(
        suggested["offered"].values, suggested["chosen"].values, strict=True
    ):
        assert likeliest in menu.split(", ")


def test_a_campaign_takes_only_what_was_offered(choices, tmp_path):
    pool = rt.Candidates.of(choices)
    path = tmp_path / "campaign.db"
    backend = rt.NUTS(draws=40, warmup=40, chains=1)
    campaign = rt.Campaign(path, MODEL, pool, data=choices, backend=backend)
    asked = campaign.ask(2)
    question, menu = str(asked["id"][0].values), asked["answers"].values[0]
    absent = next(name for name in "abcde" if name not in menu)
    with raises_about(DataError, "answers", absent):
        campaign.tell(question, absent)
    assert campaign.tell(question, menu[0]).new == (question,)
    assert rt.Campaign.open(path).data.num_judgements == choices.num_judgements + 1


@pytest.mark.slow
def test_the_contract_of_a_back_end(choices):
    check_backend(NUTS, MODEL, choices)


def test_a_back_end_that_cannot_says_so(choices):
    with pytest.raises(BackendError, match="the observed distribution is Repeated; Pólya-Gamma"):
        rt.fit(MODEL, choices, rt.PGGibbs(), seed=0)


def test_the_kind_is_found_by_its_container(choices):
    from raters.kinds import kind_named, kind_of

    assert kind_of(choices) is PICKS
    assert kind_named("picks") is PICKS
