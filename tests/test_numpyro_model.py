"""Plain NumPyro functions as models."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
import xarray as xr
from arviz_stats.base import array_stats

import raters as rt
from raters.errors import DataError, DataWarning, RatersError, SettingError
from raters.inference.polya_gamma.detection import names_of
from raters.model import read_by
from raters.program.functions import function_name

RNG = np.random.default_rng(3)
GROUP = RNG.integers(0, 8, 240)
X = RNG.normal(size=(240, 2))
EFFECT = np.array([-1.2, -0.8, -0.4, -0.1, 0.2, 0.5, 0.9, 1.3])
Y = (RNG.random(240) < 1 / (1 + np.exp(-(X @ [1.0, -0.5] + EFFECT[GROUP] + 0.4)))).astype(int)
DATA = {"x": X, "group": GROUP, "num_groups": 8, "y": Y}


def mixed(x, group, num_groups, y=None):
    """Logistic regression with effects of groups, in whitened coordinates."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("group", num_groups):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
    effect = numpyro.deterministic("effect", mean + scale * z)
    slope = numpyro.sample("slope", dist.Normal(jnp.zeros(x.shape[1]), 1.0).to_event(1))
    with numpyro.plate("rows", len(x)):
        numpyro.sample("obs", dist.Bernoulli(logits=effect[group] + (x * slope).sum(-1)), obs=y)


def centred(x, group, num_groups, y=None):
    """The same with effects about their mean."""
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("group", num_groups):
        effect = numpyro.sample("effect", dist.Normal(mean, scale))
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    numpyro.sample("obs", dist.Bernoulli(logits=effect[group] + x @ slope), obs=y)


def counted(at_bats, hits=None):
    """Binomial outcomes, with an entry for each row."""
    with numpyro.plate("player", at_bats.shape[0]):
        log_odds = numpyro.sample("log_odds", dist.Normal(-1.0, 0.5))
        numpyro.sample("obs", dist.Binomial(at_bats, logits=log_odds), obs=hits)


def several(x, y=None, size=3):
    """Categorical outcomes."""
    weight = numpyro.sample("weight", dist.Normal(0.0, 1.0).expand([x.shape[1], size]).to_event(2))
    numpyro.sample("obs", dist.Categorical(logits=x @ weight), obs=y)


def counts(x, y=None):
    """Poisson outcomes."""
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("obs", dist.Poisson(jnp.exp(slope * x)), obs=y)


MIXED = rt.models.numpyro_model(mixed, observed="y")
GIBBS = rt.PGGibbs(draws=1000, warmup=50, chains=2)


@pytest.fixture(scope="module")
def fitted() -> xr.DataTree:
    """A Gibbs run of the mixed model."""
    return rt.fit(MIXED, DATA, GIBBS, seed=0, progress=False)


def z_scores(one: xr.DataTree, other: xr.DataTree, names: tuple[str, ...]) -> np.ndarray:
    """Differences of the means of draws and of their squares, in Monte-Carlo errors."""
    scores = []
    for name in names:
        moments = []
        for result in (one, other):
            draws = result["posterior"][name].values.reshape(
                *result["posterior"][name].shape[:2], -1
            )
            both = np.concatenate([draws, draws**2], -1)
            ess = array_stats.ess(both, chain_axis=0, draw_axis=1, method="mean")
            moments.append((both.mean((0, 1)), both.std((0, 1)) / np.sqrt(ess)))
        (mean, error), (own, own_error) = moments
        scores.append((mean - own) / np.hypot(error, own_error))
    return np.concatenate(scores)


@pytest.mark.slow
def test_gibbs_agrees_with_nuts_in_both_forms_of_a_mixed_model(fitted):
    """40 and 24 differences with a normal tail beyond 4.8: a false alarm in 10,000 runs."""
    backend = rt.NUTS(draws=1500, warmup=300, chains=2)
    nuts = rt.fit(MIXED, DATA, backend, seed=1, progress=False)
    scores = z_scores(fitted, nuts, ("mean", "scale", "effect", "z", "slope"))
    assert np.abs(scores).max() < 4.8, scores
    other = rt.models.numpyro_model(centred, observed="y")
    again = rt.fit(other, DATA, GIBBS, seed=2, progress=False)
    scores = z_scores(again, nuts, ("mean", "scale", "effect", "slope"))
    assert np.abs(scores).max() < 4.8, scores
    # Drawn together with the effects: given them alone, the scale hardly moves.
    for result in (fitted, again):
        scale = result["posterior"]["scale"].values
        assert array_stats.ess(scale, chain_axis=0, draw_axis=1, method="bulk") > 400


@pytest.mark.slow
def test_results_have_the_axes_of_the_plates_and_deterministic_sites(fitted):
    posterior = fitted["posterior"]
    assert posterior["z"].dims == ("chain", "draw", "group")
    assert posterior["slope"].dims == ("chain", "draw", "slope_dim_0")
    expected = posterior["mean"] + posterior["scale"] * posterior["z"]
    np.testing.assert_allclose(posterior["effect"].values, expected.values, rtol=1e-6)
    assert fitted["log_likelihood"]["y"].dims == ("chain", "draw", "observation")
    np.testing.assert_array_equal(fitted["observed_data"]["y"], Y)


@pytest.mark.slow
def test_predictions_of_fitted_and_of_new_rows(fitted):
    probs = rt.predict(MIXED, fitted)
    assert probs.dims == ("chain", "draw", "observation")
    posterior = fitted["posterior"]
    logits = posterior["effect"].values[..., GROUP[0]] + posterior["slope"].values @ X[0]
    np.testing.assert_allclose(probs.values[..., 0], 1 / (1 + np.exp(-logits)), rtol=1e-4)
    new = rt.predict(MIXED, fitted, {"x": X[:3], "group": GROUP[:3], "num_groups": 8})
    np.testing.assert_allclose(new.values, probs.values[..., :3], rtol=1e-6)
    with pytest.raises(DataError, match=r"gives 'z' the shape \(9,\), and it was fitted with"):
        rt.predict(MIXED, fitted, {"x": X[:3], "group": GROUP[:3], "num_groups": 9})


@pytest.mark.slow
def test_a_result_is_read_back_and_names_its_function(fitted, tmp_path):
    fitted.to_netcdf(tmp_path / "fit.nc")
    with xr.open_datatree(tmp_path / "fit.nc") as opened:
        again = opened.load()
    assert rt.fitting.result.model_of(again) == MIXED
    one, other = (rt.log_likelihood(MIXED, result) for result in (again, fitted))
    densities = (result["log_likelihood"]["y"].values for result in (one, other))
    np.testing.assert_allclose(*densities, rtol=1e-6)
    again.attrs["model"] = again.attrs["model"].replace(":mixed", ":forgotten")
    with pytest.raises(SettingError, match=r":forgotten is not known here; pass the model itself"):
        rt.fitting.result.model_of(again)


@pytest.mark.slow
def test_a_file_does_not_name_functions_that_are_no_models(fitted):
    altered = fitted.copy()
    altered.attrs["model"] = altered.attrs["model"].replace(f"{__name__}:mixed", "os:system")
    with pytest.raises(SettingError, match="the function os:system is not known here"):
        rt.fitting.result.model_of(altered)


def test_tables_are_arguments_by_column(fit_quietly):
    table = pd.DataFrame({"at_bats": [45, 45, 40], "hits": [18, 17, 9]})
    model = rt.models.numpyro_model(counted, observed="hits")
    result = fit_quietly(model, table, rt.PGGibbs(draws=50, warmup=10))
    assert result["posterior"]["log_odds"].dims == ("chain", "draw", "player")
    probs = rt.predict(model, result)  # of 0 to 45 hits
    assert probs.sizes["answer"] == 46
    np.testing.assert_allclose(probs.sum("answer").values, 1.0, rtol=1e-5)


def test_simulated_outcomes_can_be_fitted():
    made = rt.simulate(MIXED, DATA, seed=0, given={"mean": 0.0})
    assert made.data.outcomes.shape == Y.shape
    assert set(np.unique(made.data.outcomes)) <= {0, 1}
    assert made.truth["z"].shape == (8,)


def test_categorical_outcomes_are_choices():
    model = rt.models.numpyro_model(several, observed="y")
    data = {"x": X, "y": RNG.integers(0, 3, 240)}
    assert "blocks: none\n" in rt.fitting.describe(model, data)
    program = rt.program.Program(model, read_by(model, data))
    assert rt.HMC().why_not(program) is None


# ------------------------------------------------------------------------------- what is refused


def subsampled(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    with numpyro.plate("rows", len(x), subsample_size=10) as rows:
        numpyro.sample("obs", dist.Bernoulli(logits=slope * x[rows]), obs=y[rows])


def optimised(x, y=None):
    slope = numpyro.param("slope", 1.0) + numpyro.sample("b", dist.Normal(0.0, 1.0))
    numpyro.sample("obs", dist.Bernoulli(logits=slope * x), obs=y)


def bent(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
    numpyro.sample("obs", dist.Bernoulli(logits=slope**2 * x), obs=y)


_OTHERS = "use HMC, NUTS or SVI"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (counts, f"observed distribution is Poisson; Pólya-Gamma needs Bernoulli.*{_OTHERS}"),
        (bent, "no site that Pólya-Gamma updates .'slope': the logits are not affine in it"),
        (optimised, "parameters without a prior .'slope'.; write numpyro.sample"),
        (subsampled, "draws a subsample in the plate 'rows'; leave subsample_size out"),
    ],
)
def test_programs_that_cannot_be_augmented(function, text):
    model = rt.models.numpyro_model(function, observed="y")
    with pytest.raises(RatersError, match=text):
        rt.fit(model, {"x": X[:, 0], "y": Y}, rt.PGGibbs(), seed=0)


@pytest.mark.slow
def test_what_cannot_be_augmented_is_fitted_by_nuts(fit_quietly):
    model = rt.models.numpyro_model(counts, observed="y")
    data = {"x": X[:40, 0], "y": RNG.poisson(1.0, 40)}
    result = fit_quietly(model, data, rt.NUTS(draws=20, warmup=20, chains=1))
    assert result["log_likelihood"]["y"].sizes["observation"] == 40
    with pytest.raises(DataError, match="numbers without end, of which no table"):
        rt.predict(model, result)


def _centred(x, group, num_groups, y=None):
    mean = numpyro.sample("mean", dist.Normal(0, 1))
    scale = numpyro.sample("scale", dist.Gamma(2.0, 2.0))
    with numpyro.plate("group", num_groups):
        effect = numpyro.sample("effect", dist.Normal(mean, scale))
    numpyro.sample("obs", dist.Bernoulli(logits=effect[group] + x), obs=y)


def _two_parameters(person, item, y=None):
    with numpyro.plate("items", 5):
        slope = numpyro.sample("slope", dist.LogNormal(0, 0.5))
        level = numpyro.sample("level", dist.Normal(0, 1))
    with numpyro.plate("people", 20):
        ability = numpyro.sample("ability", dist.Normal(0, 1))
    numpyro.sample(
        "obs", dist.Bernoulli(logits=slope[item] * (ability[person] - level[item])), obs=y
    )


def _bounded(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    power = numpyro.sample("power", dist.Uniform(2, 3))
    numpyro.sample("obs", dist.Bernoulli(logits=slope * x * jnp.log(power)), obs=y)


@pytest.mark.slow
@pytest.mark.parametrize("program", [_centred, _two_parameters, _bounded])
def test_programs_with_free_sites_are_sampled(program, fit_quietly) -> None:
    """Also where an index stands beside a learned scale, and where a bound is not 0."""
    rng = np.random.default_rng(0)
    data = {
        "x": rng.normal(size=100),
        "group": np.arange(100) % 5,
        "num_groups": np.arange(100).max() % 5 + 1,  # a number of NumPy
        "person": np.arange(100) // 5,
        "item": np.arange(100) % 5,
        "y": rng.integers(0, 2, 100),
    }
    names = program.__code__.co_varnames[: program.__code__.co_argcount]
    model = rt.models.numpyro_model(program, observed="y")
    few = rt.PGGibbs(draws=10, warmup=5, chains=1)
    result = fit_quietly(model, {name: data[name] for name in names}, few, seed=0)
    for name, draws in result.posterior.data_vars.items():
        assert np.isfinite(draws).all(), name


def test_outcomes_in_another_shape_are_refused() -> None:
    def table(rows, columns, y=None):
        row = numpyro.sample("row", dist.Normal(jnp.zeros(rows), 1).to_event(1))
        column = numpyro.sample("column", dist.Normal(jnp.zeros(columns), 1).to_event(1))
        numpyro.sample("obs", dist.Bernoulli(logits=row[:, None] + column), obs=y)

    model = rt.models.numpyro_model(table, observed="y")
    y = np.random.default_rng(0).integers(0, 2, (4, 3))
    with pytest.raises(
        DataError, match=r"has the shape \(3, 4\), and the observed site .* \(4, 3\)"
    ):
        model.read({"rows": 4, "columns": 3, "y": y.T})


def test_codes_beyond_the_last_entry_are_warned_of() -> None:
    def grouped(group, num_groups, y=None):
        with numpyro.plate("group", num_groups):
            effect = numpyro.sample("effect", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Bernoulli(logits=effect[group]), obs=y)

    model = rt.models.numpyro_model(grouped, observed="y")
    data = {"group": np.arange(12) % 4, "num_groups": 4, "y": np.arange(12) % 2}
    model.read(data)
    with pytest.warns(DataWarning, match="index 4 is out of bounds .* size 4; JAX reads another"):
        model.read({**data, "group": data["group"] + 1})


def test_blocks_are_found_anew_in_other_data() -> None:
    def power(x, y=None):
        a = numpyro.sample("a", dist.Normal(0, 1))
        b = numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("obs", dist.Bernoulli(logits=a + b * x[:, 0] + b**2 * x[:, 1]), obs=y)

    model = rt.models.numpyro_model(power, observed="y")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50)
    for factor, blocks in ((0.0, (("a", "b"),)), (1.0, (("a",),))):
        data = model.read({"x": x * [1.0, factor], "y": y})
        assert names_of(rt.program.Program(model, data)) == blocks


def test_functions_are_told_apart_by_all_that_they_hold() -> None:
    def made(*held):
        def program(x):
            return x, held

        return function_name(program)

    many, other = np.zeros(5_000), np.zeros(5_000)
    other[2_500] = 1
    for one, another in ((many, other), ([many], [other]), ({"a": 1}, {"b": 1}), (None, 0)):
        assert made(one) == made(one)
        assert made(one) != made(another)
    assert made(many) == made(many.copy())
    assert made(np.array(["a", None], object)) == made(np.array(["a", None], object))
