"""Marginal maximum likelihood of public item responses, against published and recomputed values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from raters.judgements.grouped import Patterns
from tests.real import data_folder

RASCH = rt.Rasch(difficulty_scale=100.0, ability_scale_prior=100.0)
TWO_PL = rt.TwoPL(difficulty_scale=100.0, discrimination_scale=100.0)


def read(name: str, file: str, columns: list[str]) -> rt.Responses:
    table = pd.read_csv(data_folder(name) / file)
    return rt.Responses.from_wide(table, person="person", columns=columns)


@pytest.fixture(scope="module")
def lsat() -> rt.Responses:
    """Section 6 of the law school admission test: 1,000 persons, 5 items (Bock and Lieberman
    1970)."""
    return read("lsat6", "responses.csv", ["item*"])


@pytest.fixture(scope="module")
def aggression() -> rt.Responses:
    """Verbal aggression: 316 persons, 24 items (De Boeck and Wilson 2004), "yes" and "perhaps" as
    one."""
    return read("verbagg", "responses_binary.csv", ["S?*"])


def test_patterns_of_lsat6(lsat) -> None:
    assert Patterns.of(lsat, "person", "item").num_units == 30


@pytest.mark.parametrize(
    ("data", "model", "log_likelihood"),
    [
        # R's ltm prints −2466.938 and −2466.653 (Rizopoulos 2006).
        ("lsat", RASCH, -2466.9376),
        ("lsat", TWO_PL, -2466.6534),
        # Recomputed with 41 Gauss–Hermite nodes and L-BFGS.
        ("aggression", RASCH, -4036.905),
        ("aggression", TWO_PL, -4016.427),
    ],
    ids=["lsat6-Rasch", "lsat6-TwoPL", "verbagg-Rasch", "verbagg-TwoPL"],
)
def test_em_reaches_the_maximum(data, model, log_likelihood, request) -> None:
    responses = request.getfixturevalue(data)
    fitted = rt.fit(model, responses, rt.PGEM(draws=0), seed=0, progress=False)
    assert fitted.attrs["marginal_log_likelihood"] == pytest.approx(log_likelihood, abs=1e-3)


def test_estimates_of_lsat6(lsat) -> None:
    rasch, two = (
        rt.fit(model, lsat, rt.PGEM(draws=0), seed=0, progress=False)["mode"]
        for model in (RASCH, TWO_PL)
    )
    scale = float(rasch["ability_scale"])
    assert scale == pytest.approx(0.7551, abs=5e-4)
    published = [-3.6153, -1.3224, -0.3176, -1.7301, -2.7802]
    np.testing.assert_allclose(rasch["difficulty"] / scale, published, atol=3e-3)
    slopes = [0.826, 0.723, 0.891, 0.688, 0.657]
    np.testing.assert_allclose(two["discrimination"], slopes, atol=2e-3)


def test_em_reaches_the_maximum_of_graded_responses() -> None:
    """Verbal aggression on three levels; recomputed with 41 Gauss–Hermite nodes and L-BFGS."""
    table = pd.read_csv(data_folder("verbagg") / "responses_3cat.csv")
    graded = rt.GradedResponses.from_wide(table, person="person", columns=["S?*"])
    model = rt.models.GradedResponse(difficulty_scale=100.0, discrimination_scale=100.0)
    fitted = rt.fit(model, graded, rt.PGEM(draws=0), seed=0, progress=False)
    assert fitted.attrs["marginal_log_likelihood"] == pytest.approx(-6285.816, abs=1e-2)


def test_keys_that_are_turned_round_are_found() -> None:
    """Two of the 24 items of verbal aggression, of people and not of a model."""
    table = pd.read_csv(data_folder("verbagg") / "responses_binary.csv")
    items = [name for name in table if name.startswith("S")]
    turned = [items[3], items[16]]
    table[turned] = 1 - table[turned]
    responses = rt.Responses.from_wide(table, person="person", columns=items)
    model = rt.TwoPL(discrimination="signed")
    mode = rt.fit(model, responses, rt.PGEM(draws=0), seed=0, progress=False)["mode"]
    slope = mode["discrimination"]
    assert slope["item"].values[slope.values < 0].tolist() == turned


@pytest.mark.exhaustive
def test_ideal_points_of_senators(fit_quietly) -> None:
    """The 90th US Senate, against the published coordinates of W-NOMINATE (Poole et al. 2011), of
    which items with a minority below 2.5 % are left out."""
    folder = data_folder("senate90")
    table = pd.read_csv(folder / "votes_long.csv")
    share = table.groupby("vote")["yea"].mean()
    table = table[table["vote"].isin(share[share.between(0.025, 0.975)].index)]
    votes = rt.Responses.from_frame(table, person="legislator", item="vote", correct="yea")
    gibbs = rt.PGGibbs(draws=150, warmup=100, chains=2)
    fitted = fit_quietly(rt.models.IdealPoint(), votes, gibbs, log_likelihood=False)
    position = fitted.posterior["position"].mean(("chain", "draw", "dimension"))
    published = pd.read_csv(folder / "published_wnominate.csv").set_index("legislator")["coord1D"]
    both = pd.DataFrame(
        {"ours": position.to_series(), "theirs": published.rename(index=int)}
    ).dropna()
    assert abs(both.corr().iloc[0, 1]) > 0.98
    assert abs(both.corr("spearman").iloc[0, 1]) > 0.99
    mean = fitted.posterior.mean(("chain", "draw"))
    logits = mean["intercept"].values[votes.item] + (
        mean["slope"].values[votes.item] * mean["position"].values[votes.person]
    ).sum(-1)
    assert ((logits > 0) == (votes.correct > 0.5)).mean() > 0.795
