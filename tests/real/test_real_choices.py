"""Maximum likelihood of public choices, against published and recomputed values.

The modes are found by an optimiser of SciPy on the model's own density.
"""

from __future__ import annotations

from typing import Any

import arviz as az
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from jax.flatten_util import ravel_pytree
from numpyro.distributions import biject_to

import raters as rt
from raters.program import log_joint, pointwise_log_likelihood
from tests.real import data_folder

WIDE = {"coefficient_scale": 100.0, "constant_scale": 100.0}


@pytest.fixture(scope="module")
def trips() -> pd.DataFrame:
    """Travel from Toronto to Montreal (Bhat 1995, in R's mlogit)."""
    return pd.read_csv(data_folder("mlogit_ModeCanada") / "data.csv")


@pytest.fixture(scope="module")
def canada(trips) -> rt.Choices:
    """All 4,324 sets of two to four alternatives."""
    return rt.Choices.from_frame(
        trips,
        set="case",
        alternative="alt",
        chosen="choice",
        features=["cost", "freq", "ivt", "ovt"],
        choosers=["income"],
    )


@pytest.fixture(scope="module")
def three_modes(trips) -> rt.Choices:
    """Car, train and air of those who had all four, without those who took the bus."""
    table = trips[(trips["noalt"] == 4) & (trips["alt"] != "bus")]
    table = table[table.groupby("case")["choice"].transform("sum") == 1]
    return rt.Choices.from_frame(
        table.assign(time=table["ivt"] + table["ovt"]),
        set="case",
        alternative="alt",
        chosen="choice",
        features=["cost", "freq", "time"],
        specific=["time"],
        choosers=["income"],
    )


def swissmetro() -> rt.Choices:
    """Stated choices of train, metro and car (Bierlaire, Axhausen and Abay 2001), as in Biogeme's
    examples."""
    table = pd.read_csv(data_folder("swissmetro") / "wide.csv.gz")
    table = table[table["PURPOSE"].isin([1, 3]) & (table["CHOICE"] != 0)].copy()
    modes = ("TRAIN", "SM", "CAR")
    for mode in modes:
        season = mode != "CAR"
        table[f"{mode}_time"] = table[f"{mode}_TT"] / 100
        table[f"{mode}_cost"] = table[f"{mode}_CO"] / 100 * (1 - season * table["GA"])
    for mode in ("TRAIN", "CAR"):
        table[f"{mode}_there"] = table[f"{mode}_AV"] * (table["SP"] != 0)
    return rt.Choices.from_wide(
        table,
        choice="CHOICE",
        alternatives={1: "train", 2: "metro", 3: "car"},
        features={name: [f"{mode}_{name}" for mode in modes] for name in ("time", "cost")},
        available={"train": "TRAIN_there", "car": "CAR_there"},
        annotator="ID",
    )


@pytest.fixture(scope="module")
def survey() -> rt.Choices:
    return swissmetro()


class Mode:
    """The mode of a model, and the covariance there."""

    def __init__(self, model: Any, data: rt.Choices) -> None:
        with jax.enable_x64(True):
            table = jax.tree.map(jnp.asarray, data)
            supports = rt.program.Program(model, data).supports
            transforms = {name: biject_to(support) for name, support in supports.items()}
            start = {
                name: transforms[name].inv(jnp.asarray(value, float))
                for name, value in model.start(data).items()
            }
            point, unravel = ravel_pytree(start)

            def values(entries: jax.Array) -> dict[str, jax.Array]:
                return {name: transforms[name](x) for name, x in unravel(entries).items()}

            slope = jax.jit(
                jax.value_and_grad(lambda entries: -log_joint(model, table, values(entries)))
            )
            found = scipy.optimize.minimize(
                lambda x: tuple(map(np.asarray, slope(x))), point, jac=True, method="BFGS"
            )
            self.values = {name: np.asarray(x) for name, x in values(found.x).items()}
            self.log_likelihood = float(pointwise_log_likelihood(model, table, self.values).sum())
            # In the coordinates of the sites, whose entries are not bounded here.
            flat, back = ravel_pytree({name: jnp.asarray(x) for name, x in self.values.items()})
            curvature = jax.hessian(lambda x: -log_joint(model, table, back(x)))(flat)
            self.variance = back(jnp.diag(jnp.linalg.inv(curvature)))

    def spread(self, site: str) -> np.ndarray:
        """Standard deviations of a site."""
        return np.sqrt(np.asarray(self.variance[site]))

    def difference(self, data: rt.Choices, one: str, other: str) -> float:
        """Constant of an alternative against another."""
        names = list(data.alternatives)
        constant = self.values["constant"]
        return float(constant[names.index(one)] - constant[names.index(other)])


def test_trips_with_three_modes(three_modes) -> None:
    """The vignette of mlogit prints −1951.3."""
    assert three_modes.num_sets == 2769
    mode = Mode(rt.MultinomialLogit(interactions=True, **WIDE), three_modes)
    assert mode.log_likelihood == pytest.approx(-1951.3437, abs=1e-3)
    published = {
        "cost": (-0.028497, 0.00656),
        "freq": (0.074029, 0.00473),
        "time:car": (-0.014024, 0.00138),
    }
    for name, (value, error) in published.items():
        place = three_modes.feature_names.index(name)
        assert mode.values["coefficient"][place] == pytest.approx(value, abs=2e-6)
        assert mode.spread("coefficient")[place] == pytest.approx(error, rel=0.03)
    income = mode.values["interaction"][0]
    names = list(three_modes.alternatives)
    assert income[names.index("air")] - income[names.index("car")] == pytest.approx(
        0.028246, abs=2e-6
    )


def test_spreads_of_draws_around_the_mode(three_modes) -> None:
    """Standard errors of mlogit within 3 %; the Monte Carlo error of 20,000 draws is .5 %."""
    model = rt.MultinomialLogit(interactions=True, **WIDE)
    backend = rt.PGEM(draws=20_000)
    result = rt.fit(model, three_modes, backend, seed=0, progress=False, log_likelihood=False)
    spread = result.posterior["coefficient"].std(("chain", "draw"))
    for name, error in {"cost": 0.00656, "freq": 0.00473, "time:car": 0.00138}.items():
        assert float(spread.sel(feature=name)) == pytest.approx(error, rel=0.03)


def test_all_trips(canada) -> None:
    assert canada.num_sets == 4324
    mode = Mode(rt.MultinomialLogit(interactions=True, **WIDE), canada)
    assert mode.log_likelihood == pytest.approx(-2711.8241, abs=1e-3)
    coefficient = dict(zip(canada.feature_names, mode.values["coefficient"], strict=True))
    assert coefficient["cost"] == pytest.approx(-0.050462, abs=2e-6)
    assert coefficient["ivt"] == pytest.approx(-0.0090712, abs=1e-6)
    spread = dict(zip(canada.feature_names, mode.spread("coefficient"), strict=True))
    assert spread["cost"] == pytest.approx(0.00282, rel=0.03)
    assert spread["ivt"] == pytest.approx(0.000564, rel=0.03)


def test_swissmetro(survey) -> None:
    """Biogeme's example b01 prints −5331.252."""
    assert survey.num_sets == 6768
    mode = Mode(rt.MultinomialLogit(**WIDE), survey)
    assert mode.log_likelihood == pytest.approx(-5331.2520, abs=1e-3)
    np.testing.assert_allclose(mode.values["coefficient"], [-1.2779, -1.0838], atol=1e-4)
    assert mode.difference(survey, "train", "metro") == pytest.approx(-0.70119, abs=1e-5)
    assert mode.difference(survey, "car", "metro") == pytest.approx(-0.15463, abs=1e-5)


def test_a_part_of_the_choices_ignores_time(survey) -> None:
    """Biogeme's example b07 prints −5208.498, with a share of 0.2508 of the choices."""
    model = rt.models.LatentClassLogit(by="set", ignored=("time",), **WIDE)
    mode = Mode(model, survey)
    assert mode.log_likelihood == pytest.approx(-5208.4980, abs=0.01)
    assert mode.values["type_weight"][1] == pytest.approx(0.2508, abs=2e-3)
    assert mode.values["coefficient"][0] == pytest.approx(-2.798, abs=0.01)


@pytest.mark.exhaustive
def test_train_and_car_in_a_nest(survey) -> None:
    """Biogeme's example b09 prints −5236.900, with a nest parameter of 2.05."""
    mode = Mode(rt.models.NestedLogit(nests=(("train", "car"),), **WIDE), survey)
    assert mode.log_likelihood == pytest.approx(-5236.9000, abs=0.01)
    assert 1 / mode.values["dissimilarity"][0] == pytest.approx(2.0541, abs=2e-3)
    # By the delta method, of 1/μ.
    error = mode.spread("dissimilarity")[0] / mode.values["dissimilarity"][0] ** 2
    assert error == pytest.approx(0.118, rel=0.03)


@pytest.mark.parametrize(
    ("data", "model", "log_likelihood", "error"),
    [
        ("three_modes", rt.MultinomialLogit(interactions=True, **WIDE), -1951.3437, 1e-3),
        ("canada", rt.MultinomialLogit(interactions=True, **WIDE), -2711.8241, 1e-3),
        ("survey", rt.MultinomialLogit(**WIDE), -5331.2520, 1e-3),
        (
            "survey",
            rt.models.LatentClassLogit(by="set", ignored=("time",), **WIDE),
            -5208.4980,
            0.01,
        ),
    ],
    ids=["three modes", "all trips", "swissmetro", "ignoring time"],
)
def test_em_reaches_the_maximum(data, model, log_likelihood, error, request) -> None:
    choices = request.getfixturevalue(data)
    fitted = rt.fit(model, choices, rt.PGEM(draws=0), seed=0, progress=False)
    mode = {name: np.asarray(value) for name, value in fitted["mode"].data_vars.items()}
    with jax.enable_x64(True):
        table = jax.tree.map(jnp.asarray, choices)
        own = float(pointwise_log_likelihood(model, table, mode).sum())
    assert own == pytest.approx(log_likelihood, abs=error)


def test_the_posterior_of_swissmetro(survey) -> None:
    """Means and standard deviations of Biogeme's 8,000 draws by NUTS (example b01, Bayesian), which
    it prints to three digits; 4.5 Monte Carlo errors of both, 1e-4 of false alarms for all eight.
    """
    model = rt.MultinomialLogit(**WIDE)
    result = rt.fit(model, survey, rt.PGGibbs(), seed=0, progress=False)
    posterior = result["posterior"]
    constant = posterior["constant"]
    own = {
        "train": constant.sel(alternative="train") - constant.sel(alternative="metro"),
        "car": constant.sel(alternative="car") - constant.sel(alternative="metro"),
        "time": posterior["coefficient"].sel(feature="time"),
        "cost": posterior["coefficient"].sel(feature="cost"),
    }
    # Mean, standard deviation, bulk effective draws.
    printed = {
        "train": (-0.701, 0.0546, 4050),
        "car": (-0.155, 0.0432, 4430),
        "time": (-1.28, 0.0573, 3850),
        "cost": (-1.08, 0.0522, 6010),
    }
    for name, (mean, spread, draws) in printed.items():
        error = spread * np.sqrt(1 / draws + 1 / float(az.ess(own[name].values)))
        assert abs(float(own[name].mean()) - mean) < 4.5 * error + 0.005, name
        # A standard deviation of so many draws is off by 1 / √(2 draws), relatively.
        assert abs(float(own[name].std()) / spread - 1) < 4.5 * error / spread / np.sqrt(2) + 0.005
    loo = az.loo(rt.log_likelihood(model, result))
    assert loo.elpd == pytest.approx(-5336.8, abs=1.0)
