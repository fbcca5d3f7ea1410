"""Maximum likelihood of public rankings, against published and recomputed values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import raters as rt
from tests.real import data_folder

FLAT = rt.PlackettLuce(worth_scale=100.0)
# They came last in every race that they were in: Hunter (2004) leaves them out.
LAST = (84, 85, 86, 87)


@pytest.fixture(scope="module")
def races() -> rt.Rankings:
    """36 races of 43 drivers each, without the four who never beat anybody."""
    table = pd.read_csv(data_folder("nascar2002") / "rankings.csv")
    long = table.melt("race", value_name="driver").dropna()
    long["finish"] = long["variable"].str.removeprefix("pos").astype(int)
    long = long[~long["driver"].isin(LAST)]
    roles = {"ranking": "race", "item": "driver", "rank": "finish"}
    return rt.Rankings.from_frame(long, **roles, unranked="not offered")


def drivers() -> dict[int, str]:
    return pd.read_csv(data_folder("nascar2002") / "items.csv").set_index("item")["name"].to_dict()


def sushi(places: int) -> rt.Rankings:
    table = pd.read_csv(data_folder("sushi10") / "rankings.csv")
    columns = [f"pos{place}" for place in range(1, places + 1)]
    return rt.Rankings.from_wide(table, places=columns, unranked="below", items=range(1, 11))


def log_likelihood(rankings: rt.Rankings, result) -> float:
    """That of the mode, in double precision: near 71,211 single precision has steps of 0.008."""
    worth = result["mode"]["worth"].values
    place, offered = rankings.place, rankings.offered
    order = np.argsort(np.where(place > 0, place, 99), axis=1, kind="stable")
    code = np.take_along_axis(offered, order, axis=1)
    utility = np.where(code >= 0, worth[np.maximum(code, 0)], -np.inf)
    rest = np.logaddexp.accumulate(utility[:, ::-1], axis=1)[:, ::-1]
    placed = np.arange(code.shape[1]) < rankings.depth[:, None]
    terms = np.where(placed, np.where(placed, utility, 0) - np.where(placed, rest, 0), 0)
    return float(np.asarray(rankings.weight, float) @ terms.sum(1))


@pytest.mark.exhaustive
def test_nascar_reaches_the_maximum(races, fit_quietly) -> None:
    """The log-likelihood and the order that the note of Hunter (2004) prints; log-worths against
    Austin Cameron and their standard errors are those of R's PlackettLuce."""
    result = fit_quietly(FLAT, races, rt.PGEM(draws=20_000))
    assert log_likelihood(races, result) == pytest.approx(-4191.0973, abs=1e-3)
    worth = result["mode"]["worth"].to_series()
    name = drivers()
    first = [name[code] for code in worth.sort_values(ascending=False).index[:5]]
    names = ["PJ Jones", "Scott Pruett", "Mike Bliss", "Mark Martin", "Rusty Wallace"]
    assert first == names
    by_name = {name[code]: code for code in worth.index}
    draws = result["posterior"]["worth"]
    for driver, apart, error in (("Bill Elliott", 1.5189, 1.053), ("Boris Said", 0.7635, 1.2347)):
        own, other = by_name[driver], by_name["Austin Cameron"]
        assert worth[own] - worth[other] == pytest.approx(apart, abs=2e-3)
        spread = float((draws.sel(item=own) - draws.sel(item=other)).std())
        assert spread == pytest.approx(error, rel=0.03)


@pytest.mark.parametrize(
    ("places", "maximum"), [(10, -71211.5992), (3, -29446.4617), (1, -9755.0689)]
)
def test_sushi_reaches_the_maximum(places: int, maximum: float, fit_quietly) -> None:
    """Recomputed by L-BFGS on the stages; the best of one place are shares of first choices."""
    rankings = sushi(places)
    result = fit_quietly(FLAT, rankings, rt.PGEM(draws=0))
    assert log_likelihood(rankings, result) == pytest.approx(maximum, abs=1e-3)
    if places == 10:
        worth = np.exp(result["mode"]["worth"].values)
        assert worth[7] / worth.sum() == pytest.approx(0.2450, abs=5e-5)  # fatty tuna


@pytest.mark.slow
def test_two_types_of_sushi_eaters_reach_the_maximum(fit_quietly) -> None:
    """−69504.913 by an EM algorithm of its own from two starts."""
    rankings = sushi(10)
    model = rt.models.MixturePlackettLuce(worth_scale=100.0)
    mode = fit_quietly(model, rankings, rt.PGEM(draws=0, starts=2))["mode"]
    worth, share = mode["worth"].values, mode["type_weight"].values
    order = np.argsort(rankings.place, axis=1)
    code = np.take_along_axis(np.asarray(rankings.offered), order, axis=1)
    total = np.zeros((rankings.num_annotators, 2))
    for type_code in range(2):
        utility = worth[code, type_code]
        rest = np.logaddexp.accumulate(utility[:, ::-1], axis=1)[:, ::-1]
        each = (utility - rest).sum(1) * np.asarray(rankings.weight)
        np.add.at(total[:, type_code], rankings.annotator, each)
    found = np.logaddexp.reduce(total + np.log(share), axis=1).sum()
    assert found == pytest.approx(-69504.913, abs=2e-3)


@pytest.mark.exhaustive
def test_gibbs_and_nuts_agree_on_races(races, fit_quietly) -> None:
    """Means of every worth; false-alarm rate 1e-4 for each (|z| > 4.5, as errors are
    estimated)."""
    import arviz as az

    model = rt.PlackettLuce(worth_scale=1.0)
    gibbs = fit_quietly(model, races, rt.PGGibbs(draws=1500, warmup=100, chains=2))
    nuts = fit_quietly(model, races, rt.NUTS(draws=700, warmup=300, chains=2))
    one, other = (az.summary(tree, var_names=["worth"], round_to="none") for tree in (gibbs, nuts))
    error = np.hypot(one["mcse_mean"].astype(float), other["mcse_mean"].astype(float))
    z = (one["mean"].astype(float) - other["mean"].astype(float)) / error
    assert np.abs(z).max() < 4.5, z
