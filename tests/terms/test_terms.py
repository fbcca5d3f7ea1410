"""Combinations of terms that the package does not name, and a term outside of it, have every
verb."""

from __future__ import annotations

import json

import numpy as np
import numpyro.distributions as dist
import pandas as pd
import pytest
import xarray as xr
from numpyro.diagnostics import effective_sample_size

import raters as rt
from raters.cli import app
from raters.errors import BackendError, SettingError
from raters.fitting.result import model_of
from raters.fitting.storage import from_json, to_json
from raters.model import Model, Scale, Sign, identify
from raters.terms import (
    Competence,
    Covariates,
    Drift,
    Effect,
    Groups,
    Guessers,
    PositionBias,
    Rewards,
    Strata,
)
from raters.testing import check_model
from tests.terms.fatigue import TIRED

ROLES = {"first": "a", "second": "b", "outcome": "better", "annotator": "who", "stratum": "topic"}
LENGTHS = {"length": ("length_a", "length_b")}
MODELS = {
    "tired": TIRED,
    "guessers": rt.models.PairwiseModel(
        Guessers() * (Competence("positive") * (Rewards() + Strata()))
        + Covariates()
        + PositionBias("annotator")
    ),
    "drift": rt.models.PairwiseModel(
        (Competence("signed") + Drift("week", 3) + Effect("nth") + Groups("base")) * Rewards()
        + PositionBias()
    ),
    "apart": rt.models.PairwiseModel(Competence("signed", 1.0) * Rewards() + Strata()),
}


def table(rows: int = 240) -> pd.DataFrame:
    """Votes of four annotators on five items, the better of which wins but for tired ones."""
    rng = np.random.default_rng(0)
    first = rng.integers(5, size=rows)
    second, who = (first + rng.integers(1, 5, size=rows)) % 5, rng.integers(4, size=rows)
    nth = rng.random(rows).round(1)
    won = rng.random(rows) < 1 / (1 + np.exp(-(1 - nth) * (first - second)))
    columns = {"a": first, "b": second, "better": np.where(won, "a", "b"), "who": who, "nth": nth}
    columns |= {"topic": rng.integers(2, size=rows), "week": rng.integers(3, size=rows)}
    columns |= {"base": np.array(["gpt", "llama"])[who % 2]}
    return pd.DataFrame(columns | {name: rng.normal(size=rows) for name in LENGTHS["length"]})


@pytest.fixture(scope="module")
def votes() -> rt.Comparisons:
    return rt.Comparisons.from_frame(
        table(), **ROLES, features=LENGTHS, columns=["nth", "week", "base"]
    )


def test_facts_of_combinations_follow_from_their_terms(votes) -> None:
    guessers, drift = MODELS["guessers"], MODELS["drift"]
    rewards = ("reward", "reward_scale", "deviation", "deviation_spread")
    assert Scale(rewards, ("competence",)) in guessers.symmetries
    assert any(isinstance(one, Sign) and one.exchanged for one in guessers.symmetries)
    assert not any(isinstance(one, Sign) for one in TIRED.symmetries[:-1])
    assert not rt.models.PairwiseModel(Strata()).symmetries[1:]
    assert set(rt.program.Program(drift, votes).sites) == {
        *("competence", "step", "step_spread", "nth_effect", "base_effect", "base_spread"),
        *("reward", "reward_scale", "position_bias"),
    }
    for model in MODELS.values():
        assert from_json(to_json(model), (Model,), "model") == model
    assert "columns=['nth']" in TIRED.why_not(rt.Comparisons.from_frame(table(), **ROLES))
    with pytest.raises(SettingError):
        Rewards() + 1  # type: ignore[operator]


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_combinations_meet_the_contract(votes, name) -> None:
    check_model(MODELS[name], votes)


def apart(fit_quietly, model, votes, site: str) -> float:
    """Largest difference of means by NUTS and Gibbs, in Monte-Carlo errors."""
    means, errors = [], []
    for one in (rt.NUTS(500, 400, chains=2), rt.PGGibbs(1500, 300, chains=2)):
        draws = fit_quietly(model, votes, one).posterior[site].values
        means.append(draws.mean((0, 1)))
        errors.append(draws.std((0, 1)) / np.sqrt(effective_sample_size(draws)))
    return float((np.abs(means[0] - means[1]) / np.hypot(*errors)).max())


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_back_ends_agree(votes, fit_quietly, name) -> None:
    """Means within 4.5 Monte-Carlo errors of each other; false-alarm rate below 1e-4."""
    assert apart(fit_quietly, MODELS[name], votes, "reward") < 4.5


@pytest.mark.slow
def test_a_term_of_ones_own_has_every_verb(votes, fit_quietly, tmp_path) -> None:
    result = fit_quietly(TIRED, votes, rt.PGGibbs(draws=60, warmup=40, chains=2))
    assert result.posterior["fatigue"].dims == ("chain", "draw", "annotator")
    pool = rt.Candidates.pairs(votes)
    assert rt.predict(TIRED, result, pool).sizes["comparison"] == pool.num_rows
    assert rt.suggest(TIRED, result, pool, batch_size=2).sizes["suggestion"] == 2
    assert len(rt.check(TIRED, result, seed=0).table) > 0
    assert rt.simulate(TIRED, votes, seed=0).data.num_rows == votes.num_rows
    assert "Fatigue" in rt.report(TIRED, result, rt.audit(TIRED, result)).to_markdown()
    result.to_netcdf(tmp_path / "tired.nc")
    with xr.open_datatree(tmp_path / "tired.nc") as stored:
        assert model_of(stored) == TIRED


@pytest.mark.slow
def test_the_command_line_takes_a_model_of_ones_own(tmp_path, capsys) -> None:
    file = tmp_path / "votes.csv"
    table().to_csv(file, index=False)
    roles = [word for role, column in ROLES.items() for word in (f"--{role}", column)]
    words = ["audit", str(file), *roles, "--column", "nth", "--quiet", "--out", str(tmp_path / "o")]
    words += ["--model", "tests.terms.fatigue:TIRED", "--set", "draws=60", "--set", "warmup=40"]
    assert app.main(words) == 0, capsys.readouterr().err
    assert "Fatigue" in json.dumps(json.loads((tmp_path / "o/summary.json").read_text()))


def test_priors_of_ones_own_are_checked_and_stored(votes) -> None:
    rewards, own = {"reward": np.array([3.0, 5.0])}, {"reward": dist.Normal(3, 1)}
    centred, kept = (identify(one, rewards, 0)["reward"] for one in (rt.BTL(), rt.BTL(prior=own)))
    assert (centred.tolist(), kept.tolist()) == ([-1.0, 1.0], [3.0, 5.0])
    model = rt.ExtendedBTL(competence="signed", prior={"competence": dist.StudentT(4, 1, 1)})
    assert from_json(to_json(model), (Model,), "model") == model
    assert hash(model) != hash(rt.ExtendedBTL(competence="signed"))
    assert "StudentT(df=4, loc=1, scale=1)" in repr(model)
    program = rt.program.Program(model, votes)
    assert program.sites["competence"].distribution == "StudentT"
    assert "PGGibbs" in rt.PGEM().why_not(program)
    with pytest.raises(BackendError):
        rt.fit(model, votes, rt.PGEM(), seed=0, progress=False)
    for site, prior in {
        "skill": dist.Normal(0.0, 1.0),
        "competence": dist.Gamma(1.0, 1.0),
        "reward": dist.Normal(0.0, 1.0).expand([3]),
    }.items():
        with pytest.raises(SettingError, match=site):
            rt.program.Program(rt.ExtendedBTL("signed", prior={site: prior}), votes).sites  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize(
    "prior", [dist.StudentT(4, 1, 1), dist.Normal(1.0, 0.2)], ids=["free", "conjugate"]
)
def test_back_ends_agree_under_a_prior_of_ones_own(votes, fit_quietly, prior) -> None:
    """Means within 4.5 Monte-Carlo errors of each other; false-alarm rate below 1e-4."""
    model = rt.ExtendedBTL(competence="signed", reward_scale=1.0, prior={"competence": prior})
    assert apart(fit_quietly, model, votes, "competence") < 4.5
