"""Geweke's joint test passes for the Gibbs kernels of several kinds of judgement, and catches
errors put in on purpose."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
import xarray as xr

import raters as rt
from raters.inference.polya_gamma import gibbs
from tests.inference.test_several import votes_of
from tests.several import labelled
from tests.statistical.joint import BOUND, cases, short, worst

_UNIT = rt.ExtendedBTL(competence="unit", reward_scale=1.0)
_SIGNED = rt.ExtendedBTL(competence="signed", reward_scale=1.0)


def votes() -> rt.judgements.Together:
    return rt.judgements.Together.of({"one": votes_of(0, 9), "two": votes_of(3, 12)})


def labels_and_votes() -> rt.judgements.Together:
    labels = labelled(0, 5, 3).part("labels")
    return rt.judgements.Together.of({"labels": labels, "votes": votes_of(0, 12)})


def tasks() -> rt.judgements.Together:
    one, two = (labelled(seed, 5, 3).part("labels") for seed in (0, 1))
    return rt.judgements.Together.of({"one": one, "two": two})


KERNELS = {
    "tied competences": (
        rt.models.JointModel({"one": _UNIT, "two": _UNIT}, shared=["reward"], tied=["competence"]),
        votes,
    ),
    "labels and votes": (
        rt.models.JointModel(
            {"labels": rt.models.OneCoin(), "votes": _SIGNED},
            tied=[{"labels": "accuracy", "votes": "competence"}],
        ),
        labels_and_votes,
    ),
    "learned scales": (
        rt.models.JointModel({"one": rt.ExtendedBTL(), "two": rt.BTL()}, shared=["reward"]),
        votes,
    ),
    "two tasks": (
        rt.models.JointModel(
            {"one": rt.DawidSkene(), "two": rt.DawidSkene()}, shared=["confusion"]
        ),
        tasks,
    ),
}


def of_several(kernel: str) -> xr.Dataset:
    model, questions = KERNELS[kernel]
    return short(model, questions().unanswered())


@pytest.mark.parametrize("kernel", cases(KERNELS, ["tied competences"]))
def test_kernel_of_several_kinds_leaves_the_joint_distribution_invariant(kernel: str) -> None:
    result = of_several(kernel)
    assert worst(result) < BOUND, str(result["z"].to_series())


def _always(plan, tie, row, values, entries):
    """Accept every proposal for a tied entry."""
    return jnp.zeros(len(entries))


def _of_the_first_alone(readings, sums, *given):
    """Update a shared site given the rows of one part."""
    return _solved(readings[:1], sums[:1], *given)


def _with_two_priors(readings, sums, *given):
    """Count the prior of a shared site once for each part."""
    more = (len(sums) - 1) * sums[0].prior.precision
    first = sums[0]._replace(diagonal=sums[0].diagonal + more)
    return _solved(readings, [first, *sums[1:]], *given)


_solved = gibbs.solved


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ((gibbs, "log_copula"), _always),
        ((gibbs, "solved"), _of_the_first_alone),
        ((gibbs, "solved"), _with_two_priors),
    ],
    ids=["ties without a say", "rows of one part", "two priors"],
)
def test_errors_put_in_on_purpose_are_caught(place, wrong, monkeypatch) -> None:
    monkeypatch.setattr(*place, wrong)
    jax.clear_caches()
    try:
        assert worst(of_several("tied competences")) > BOUND
    finally:
        jax.clear_caches()
