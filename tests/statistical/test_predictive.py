"""The discrepancies of `raters.check` have the same distribution in observed and in replicated
answers when the model is right, single failures of a model are found, and errors put in on purpose
are seen."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom

import raters as rt
from raters.checking import predictive
from raters.checking.discrepancies import Layout
from raters.checking.predictive import Check
from raters.fitting import predict as replicates
from raters.fitting.predict import single
from raters.kinds import kind_of
from raters.program import Program, prior_draws

TABLES = 250
# Of a standard normal z: 2.6e-6 for each of the 33 quantities below.
_BOUND = 4.7

VOTES = dataclasses.replace(rt.datasets.separated(6, 5, 150, seed=0).votes, ordered=True)
LABELS = rt.datasets.label_crowd(30, 6, 4, 3, seed=0).labels
CASES = {
    "BTL": (rt.BTL(), VOTES),
    "signed": (rt.ExtendedBTL(competence="signed", position_bias=True), VOTES),
    "MixtureBTL": (rt.MixtureBTL(num_types=2), VOTES),
    "DawidSkene": (rt.DawidSkene(), LABELS),
    "known classes": (rt.DawidSkene(), LABELS.with_truth({0: 1, 1: 0, 2: 2})),
    "ItemDifficulty": (rt.models.ItemDifficulty(), LABELS),
}


def signs(model: rt.Model, questions: Any) -> dict[str, float]:
    """z of the difference between replicated and observed values of each discrepancy.

    Tables are drawn from the prior predictive distribution, and the one draw of each is the truth:
    data and truth are then exchangeable with replicated data and truth, and so are the two values.
    Only whether one is above the other counts, so that nothing hangs on tails.
    """
    asked = questions.without_truth().unanswered()
    table = jax.tree.map(jnp.asarray, asked)
    if table.count is not None:
        table = dataclasses.replace(table, count=table.count.astype(int))
    sites = tuple(Program(model, questions).sites)
    keys = jax.random.split(jax.random.key(0), TABLES)
    drawn = {
        name: np.asarray(value)
        for name, value in prior_draws(model, (*sites, model.observed), table, keys).items()
    }
    outcomes = drawn.pop(asked.observed)
    time = np.random.default_rng(0).random(single(questions).num_rows)
    rows = []
    for place in range(TABLES):
        layout = Layout(Program(model, single(asked.answered(outcomes[place]))), time)
        prepared = {one.name: one.prepare(layout) for one in kind_of(asked).discrepancies}
        measures = {name: one for name, one in prepared.items() if not isinstance(one, str)}
        truth = {name: value[place][None] for name, value in drawn.items()}
        observed, replicated = predictive._values(layout, list(measures.values()), truth, place)
        rows.append(np.sign(replicated - observed)[:, 0])
    mean = np.mean(rows, 0)
    spread = np.sqrt(np.maximum(np.mean(np.abs(rows), 0), 1e-9) / TABLES)
    return dict(zip(measures, mean / spread, strict=True))


_LIKE_OTHERS = ("BTL", "MixtureBTL", "ItemDifficulty", "signed")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive) if name in _LIKE_OTHERS else name
        for name in CASES
    ],
)
def test_observed_and_replicated_values_are_exchangeable(name):
    """False-alarm rate 2.6e-6 for each discrepancy, 1e-4 for all cases."""
    z = signs(*CASES[name])
    assert len(z) >= 5
    assert max(map(abs, z.values())) < _BOUND, z


def _other_rows(data, probs, rng):
    return replicates.replicated(data, np.roll(probs, 1, axis=1), rng)


def _more_certain(data, probs, rng):
    sure = probs**1.7
    return replicates.replicated(data, sure / sure.sum(0), rng)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "broken", "seen"),
    [
        ("BTL", "another row", "competence"),
        ("BTL", "too certain", "competence"),
        ("DawidSkene", "new classes", "agreement"),
        pytest.param("MixtureBTL", "new classes", "judge_items", marks=pytest.mark.exhaustive),
    ],
)
def test_errors_put_in_on_purpose_are_seen(name, broken, seen, monkeypatch):
    if broken == "new classes":

        def uniform(model, data, values):
            right = rt.program.densities.responsibility(model, data, values)
            return jnp.full_like(right, 1 / right.shape[-1])

        monkeypatch.setattr(replicates, "responsibility", uniform)
        replicates._tables.clear_cache()
    else:
        wrong = {"another row": _other_rows, "too certain": _more_certain}[broken]
        monkeypatch.setattr(predictive, "replicated", wrong)
    try:
        z = signs(*CASES[name])
    finally:
        replicates._tables.clear_cache()
    assert abs(z[seen]) > _BOUND, z


# ---------------------------------------------------------------- whole checks

BACKEND = rt.PGGibbs(draws=200, warmup=200, chains=1)
QUIET = pytest.mark.filterwarnings(
    "ignore::raters.errors.DataWarning", "ignore::raters.errors.ConvergenceWarning"
)


def checked(model: rt.Model, data: Any, seed: int = 0, **options: Any) -> Check:
    result = rt.fit(model, data, BACKEND, seed=seed, progress=False, log_likelihood=False)
    return rt.check(model, result, replicates=500, seed=seed, **options)


@pytest.mark.exhaustive
@QUIET
@pytest.mark.parametrize("name", ["BTL", "DawidSkene"])
def test_a_right_model_seldom_fails(name):
    """Tables from the prior predictive distribution: each fails with probability .05 at most, so
    that more than `most` of 40 do with probability below 1e-5."""
    model, questions = CASES[name]
    failed = [
        bool(checked(model, rt.simulate(model, questions, seed=seed).data, seed).failed)
        for seed in range(40)
    ]
    assert sum(failed) <= (most := int(binom.ppf(1 - 1e-5, 40, 0.05))), most


def votes(logits, items: int = 9, number: int = 800, **options: Any) -> rt.Comparisons:
    """Votes of 5 annotators with given log-odds of the first item."""
    rng = np.random.default_rng(0)
    first = rng.integers(items, size=number)
    second = (first + rng.integers(1, items, size=number)) % items
    won = rng.random(number) < 1 / (1 + np.exp(-logits(first, second, np.arange(number))))
    table = {"a": first, "b": second, "won": np.where(won, "first", "second")}
    table["who"] = rng.integers(5, size=number)
    return rt.Comparisons.from_frame(
        table, first="a", second="b", outcome="won", annotator="who", **options
    )


def misleading() -> rt.Labels:
    """Labels of items of which every third one is nearly beyond telling."""
    questions = rt.datasets.label_crowd(80, 8, 6, 2, seed=0).labels
    given = {
        "ease": np.where(np.arange(80) % 3 == 0, 0.15, 1.5),
        "ability": np.full(8, 2.5),
        "prevalence": np.array([0.5, 0.5]),
    }
    return rt.simulate(rt.models.ItemDifficulty(), questions, seed=1, given=given).data


def copied() -> rt.Labels:
    """Labels of twelve annotators, two of whom copy two others."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=150)
    said = np.where(rng.random((12, 150)) < 0.75, truth, 1 - truth)
    copies = rng.random((2, 150)) < 0.9
    said[[1, 3]] = np.where(copies, said[[0, 2]], said[[1, 3]])
    who, item = np.indices(said.shape).reshape(2, -1)
    table = {"item": item, "who": who, "says": said.ravel()}
    return rt.Labels.from_frame(table, item="item", annotator="who", label="says")


REWARD = 1.5 * np.random.default_rng(2).normal(size=9)
PAIR = np.random.default_rng(1).normal(size=(9, 9))
FAILURES = {
    "position": (
        rt.ExtendedBTL(),
        lambda: rt.datasets.position_biased(seed=0).votes,
        rt.ExtendedBTL(position_bias=True),
    ),
    "judge_items": (
        rt.BTL(),
        lambda: rt.datasets.preference_types(8, 24, 40, 2, seed=3).votes,
        rt.MixtureBTL(num_types=2),
    ),
    "competence": (
        rt.BTL(),
        lambda: rt.datasets.crowd(num_items=8, num_annotators=10, num_votes=1500, seed=0).votes,
        rt.ExtendedBTL(competence="signed"),
    ),
    "intransitivity": (
        rt.BTL(),
        lambda: votes(lambda one, two, row: 2.0 * np.sin(2 * np.pi * (two - one) / 9), number=2000),
        None,
    ),
    "agreement": (
        rt.BTL(),
        lambda: votes(lambda one, two, row: PAIR[one, two] - PAIR[two, one]),
        None,
    ),
    "agreement of labels": (rt.DawidSkene(), misleading, rt.models.ItemDifficulty()),
    "judge_pairs": (rt.DawidSkene(), copied, None),
    "judge_answers": (
        rt.models.OneCoin(),
        lambda: rt.datasets.label_crowd(100, 8, 6, 3, seed=0).labels,
        rt.DawidSkene(),
    ),
}


@pytest.mark.slow
@QUIET
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive)
        if name in ("agreement of labels", "position", "judge_items")
        else name
        for name in FAILURES
    ],
)
def test_each_failure_is_found_and_the_model_that_mends_it_does_not_fail(name):
    model, data, better = FAILURES[name]
    own = data()
    found, what = checked(model, own), name.split()[0]
    assert what in found.failed, found
    if better is not None:
        sentence = found.sentences[found.failed.index(what)]
        assert f"rt.{type(better).__name__}(" in sentence
        assert not checked(better, own).failed


@pytest.mark.slow
@QUIET
def test_a_crowd_that_tires_drifts():
    def logits(one, two, row):
        return (REWARD[one] - REWARD[two]) * np.where(row < 750, 2, 0.3)

    data = votes(logits, number=1500, aggregate=False)
    found = checked(rt.BTL(), data, time=np.arange(1500))
    assert found.failed == ["drift"]
    assert "less well later" in found.sentences[0]
    # The same votes in another order of time do not.
    shuffled = np.random.default_rng(3).permutation(1500)
    assert not checked(rt.BTL(), data, time=shuffled).failed
