"""Guessers and adversaries as types: their probabilities against quadrature, and what an audit says
of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, gammaln
from scipy.stats import norm

import raters as rt
from raters.fitting.result import draws_of
from raters.kinds.orders import competences
from raters.program import class_probs
from raters.terms import types as of_types

pytestmark = pytest.mark.slow

SPREAD = 0.4
MODEL = rt.models.GuesserBTL(reward_scale=1.5, competence_spread=SPREAD)
TYPES = ("competent", "guesser", "adversary")


def votes(*wins: int, of: int) -> rt.Comparisons:
    """Two items, and how often each annotator takes the first."""
    number = len(wins)
    columns = (np.full(number, place, np.int32) for place in (0, 1))
    count = np.full(number, float(of), np.float32)
    who = np.arange(number, dtype=np.int32)
    names = ("x", "y"), tuple(range(number))
    return rt.Comparisons(*columns, who, np.array(wins, np.float32), count, *names)


def exact(*wins: int, of: int) -> np.ndarray:
    """P(type) of each annotator, by quadrature over the difference of the rewards and the
    competences, and by enumeration of the types with their shares integrated out."""
    gap, beta = np.linspace(-12, 12, 1201), np.linspace(0, 4, 401)
    prior = norm.pdf(beta, 1.0, SPREAD)
    chance = expit(gap[:, None] * beta)
    parts = np.empty((len(wins), 3, len(gap)))
    for place, number in enumerate(wins):
        competent = (chance**number * (1 - chance) ** (of - number) * prior).sum(1) / prior.sum()
        parts[place] = competent, np.full(len(gap), 0.5**of), competent[::-1]
    found = np.zeros((len(wins), 3))
    concentration = np.array([3.0, 1.0, 1.0])
    for types in product(range(3), repeat=len(wins)):
        share = gammaln(concentration + np.bincount(types, minlength=3)).sum()
        each = np.prod([parts[place, kind] for place, kind in enumerate(types)], axis=0)
        weight = np.exp(share) * (each @ norm.pdf(gap, 0, 1.5 * np.sqrt(2)))
        for place, kind in enumerate(types):
            found[place, kind] += weight
    return found / found.sum(1, keepdims=True)


@pytest.mark.parametrize(
    ("backend", "error"),
    [(rt.PGGibbs(draws=3000, warmup=300, chains=2), 0.03), (rt.PGEM(draws=4000), 0.15)],
    ids=lambda value: type(value).__name__,
)
def test_types_against_quadrature(backend, error, fit_quietly, monkeypatch) -> None:
    """Gibbs within 5 standard errors of at least 1,000 effective draws, of probabilities that are
    averaged: a false alarm in a thousand runs or fewer. Each annotator is the other's mirror image,
    which without the step has no chance. The prior of the shares is one under which they are nearly
    normal at the mode; under the model's, PGEM is .1 to .26 off."""
    monkeypatch.setattr(of_types, "_SHARES", (3.0, 1.0, 1.0))
    result = fit_quietly(MODEL, votes(14, 2, of=16), backend)
    found = result["types"]["responsibility"].transpose("annotator", "type").values
    np.testing.assert_allclose(found, exact(14, 2, of=16), atol=error)


@pytest.fixture(scope="module")
def crowd() -> tuple[rt.Comparisons, dict[str, np.ndarray]]:
    """Six competent annotators, a guesser and an adversary, with 60 votes each."""
    return rt.datasets.crowd(8, 8, 480, seed=2, guessers=0.125, adversaries=0.125)


@pytest.fixture(scope="module")
def fitted(crowd, fit_quietly):
    """A fit of them by Gibbs."""
    backend = rt.PGGibbs(draws=400, warmup=150, chains=2)
    return fit_quietly(rt.models.GuesserBTL(), crowd.votes, backend)


def test_types_are_found(crowd, fitted) -> None:
    likeliest = fitted["types"]["responsibility"].argmax("type").values
    assert [TYPES[kind] for kind in likeliest] == crowd.truth["kind"].tolist()


def test_audit_by_hand(fitted) -> None:
    """Probabilities of types are those of the result, and P(competence < τ) is their sum over what
    is below τ, within 5 standard errors of drawn types: a false alarm in a million."""
    model, threshold = rt.models.GuesserBTL(), 0.8
    table = rt.audit(model, fitted, reference="crowd", threshold=threshold).table
    probs = fitted["types"]["responsibility"].transpose("annotator", "type").values
    np.testing.assert_allclose(table["p_guessing"], probs[:, 1])
    np.testing.assert_allclose(table["p_adversarial"], probs[:, 2])
    program = rt.program.Program(model, rt.judgements.Comparisons.from_result(fitted))
    draws, _ = draws_of(program, fitted)
    each = np.asarray(class_probs(model, program.data, draws), float)
    below = each[..., 1:].sum(-1) + each[..., 0] * (draws["competence"] < threshold)
    error = np.sqrt((below * (1 - below)).sum(0)) / len(below)
    assert (np.abs(table["p_below"] - below.mean(0)) <= 5 * error + 1e-9).all()
    mean = ((each[..., 0] - each[..., 2]) * draws["competence"]).mean(0)
    np.testing.assert_allclose(table["competence"], mean, atol=0.1)


def test_competences_have_the_sign_of_the_type(fitted) -> None:
    program = rt.program.Program(
        rt.models.GuesserBTL(), rt.judgements.Comparisons.from_result(fitted)
    )
    draws, _ = draws_of(program, fitted)
    signed = competences(program, draws)
    guesser, adversary = (signed == 0).mean(0), (signed < 0).mean(0)
    probs = fitted["types"]["responsibility"].transpose("annotator", "type").values
    np.testing.assert_allclose(np.stack([guesser, adversary], 1), probs[:, 1:], atol=0.1)
    same = np.where(signed == 0, 0.0, draws["competence"])
    np.testing.assert_allclose(np.abs(signed), same, rtol=1e-6)
