"""Influence of single annotators against fits without them, and what is said of it."""

import dataclasses
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kendalltau

import raters as rt
from raters.auditing.influence import _left_out, _weights, influence
from raters.errors import ConvergenceWarning, DataWarning
from raters.fitting.result import draws_of, program_of
from raters.inference.importance import largest_k
from raters.program import class_probs
from tests import hand
from tests.models.test_hierarchical import overrun

GIBBS = rt.PGGibbs(draws=1000, chains=2)
SIGNED = rt.ExtendedBTL(competence="signed")


def without(data, judge):
    """The data with one judge's rows at a count of 0, so that nothing is compiled again."""
    stays = np.asarray(data.codes(data.judge)) != judge
    columns = {"count": np.where(stays, np.asarray(data.weight, float), 0.0)}
    if data.summed:
        columns[data.answer] = np.where(stays, np.asarray(getattr(data, data.answer), float), 0.0)
    return dataclasses.replace(data, **columns)


def fitted(model, data):
    """A fit that says nothing of its length."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        return rt.fit(model, data, GIBBS, seed=0, progress=False)


@pytest.fixture(scope="module")
def votes():
    """300 votes of ten annotators on eight items, and their fit."""
    data, _ = rt.datasets.crowd(num_items=8, num_annotators=10, num_votes=300, seed=0)
    data = without(data, -1)
    return data, fitted(SIGNED, data)


@pytest.fixture(scope="module")
def labels():
    """Labels of 80 items by sixteen annotators, and their fit."""
    data, _ = rt.datasets.label_crowd(80, 16, 10, 2, seed=0)
    data = without(data, -1)
    return data, fitted(rt.DawidSkene(), data)


def weights(model, result):
    program = program_of(model, result)
    draws, _ = draws_of(program, result)
    left = _left_out(program, draws, np.arange(len(program.data.judges)))
    return program, draws, left, *_weights(left)


@pytest.mark.slow
def test_weighted_rewards_are_those_of_a_fit_without(votes):
    """Rewards of eight items, one annotator: a difference of .15 is more than five standard
    errors."""
    data, result = votes
    _, draws, _, weight, shape = weights(SIGNED, result)
    assert (shape < largest_k(2000)).mean() >= 0.6
    judge = np.argmin(shape)
    other = fitted(SIGNED, without(data, judge))
    expected = other.posterior["reward"].mean(("chain", "draw")).values
    np.testing.assert_allclose(weight[:, judge] @ draws["reward"], expected, atol=0.15)


@pytest.mark.slow
def test_weighted_classes_are_those_of_a_fit_without(labels):
    """Class probabilities of 80 items; their mean difference is below .02 where weights hold."""
    data, result = labels
    program, draws, left, weight, shape = weights(rt.DawidSkene(), result)
    assert (shape < largest_k(2000)).mean() >= 0.6
    probs = np.asarray(class_probs(program.model, jax.tree.map(jnp.asarray, data), draws))
    judge = int(np.argsort(shape)[0])
    other = fitted(rt.DawidSkene(), without(data, judge))
    after = np.tensordot(weight[:, judge], probs, 1)
    cells = np.flatnonzero(left.cells.judge == judge)
    after[left.cells.unit[cells]] = np.tensordot(weight[:, judge], left.without[:, cells], 1)
    expected = other["classes"]["responsibility"].transpose("item", "true_class").values
    assert np.abs(after - expected).mean() < 0.02


@pytest.fixture(scope="module")
def takeover():
    """Eight people with one order, and a very consistent judge with more votes and the reverse of
    the last half of it."""
    rng = np.random.default_rng(0)
    crowd = np.linspace(-1, 1, 8)
    own = 6 * crowd
    own[4:] = own[4:][::-1]
    rows = []
    for name, reward, number in [*((f"p{k}", crowd, 30) for k in range(8)), ("judge", own, 600)]:
        for _ in range(number):
            one, other = rng.choice(8, 2, replace=False)
            wins = rng.random() < 1 / (1 + np.exp(reward[other] - reward[one]))
            rows.append((one, other, name) if wins else (other, one, name))
    return hand.votes(*rows)


@pytest.mark.slow
def test_one_who_decides_is_named(takeover, fit_quietly):
    result = fit_quietly(SIGNED, takeover, rt.PGGibbs(draws=300, chains=2))
    with pytest.warns(DataWarning, match="without judge"):
        audit = rt.audit(SIGNED, result, influence=True)
    change = audit.table["influence"].to_series()
    assert change.idxmax() == "judge"
    assert change["judge"] > 0.1 > change.drop("judge").max()
    assert audit.influential["name"] == "judge"
    assert audit.influential["deciding"] == 1
    assert audit.influential["unknown"] == int(change.isna().sum())
    assert "influence" not in rt.audit(SIGNED, result).table


@pytest.mark.slow
def test_without_a_judge_of_most_votes_the_others_are_the_right_way_up(fit_quietly):
    """Beside the judge the others' competences are about 0, and the mode nearby without the judge
    is their order upside down."""
    votes = overrun()
    result = fit_quietly(SIGNED, votes, rt.PGGibbs(draws=300, chains=2))
    found = influence(program_of(SIGNED, result), result)
    assert found.refitted[12]
    others = votes.take(np.asarray(votes.annotator) != 12)
    alone = fit_quietly(SIGNED, others, rt.PGGibbs(draws=300, chains=2))
    before, after = (
        one["posterior"]["reward"].mean(("chain", "draw")).values for one in (result, alone)
    )
    turned = (1 - kendalltau(before, after).statistic) / 2
    assert turned > 0.5
    # Means and modes may differ in one pair or two.
    assert found.change[12] == pytest.approx(turned, abs=0.08)
