"""Multivariate normal priors in blocks: of rewards of votes, and of coefficients of choices."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.optimize

import raters as rt
from raters.distributions.choices import Choice, of_offered
from raters.inference.polya_gamma.conditionals import joined, prior
from raters.program import log_joint

# Neighbours along a line have nearly equal rewards.
PLACES = np.arange(6)
KERNEL = 1.5 * np.exp(-0.5 * (PLACES[:, None] - PLACES) ** 2 / 4) + 0.05 * np.eye(6)
# What a chooser thinks of the two features is opposite.
OF_COEFFICIENTS = np.array([[1.0, -0.9], [-0.9, 1.0]])


@dataclass(frozen=True)
class Smooth(rt.Model[rt.Comparisons]):
    """Bradley–Terry–Luce with rewards that change slowly from an item to the next one."""

    blocks = (("reward",),)

    def generate(self, data: rt.Comparisons) -> None:
        kernel = jnp.asarray(KERNEL, float)
        reward = numpyro.sample(
            "reward",
            dist.MultivariateNormal(jnp.linspace(-1.0, 1.0, 6), kernel),
            infer={"event_dims": ["item"]},
        )
        logits = reward[data.first] - reward[data.second]
        count = jnp.asarray(data.weight)
        with numpyro.plate("comparison", data.num_rows):
            numpyro.sample("outcome", dist.BinomialLogits(logits, count), obs=data.wins)

    def start(self, data: rt.Comparisons) -> dict:
        return {"reward": np.zeros(6)}


@dataclass(frozen=True)
class Personal(rt.Model[rt.Choices]):
    """Logit whose coefficients are correlated, and each chooser's own."""

    blocks = (("coefficient",),)

    def generate(self, data: rt.Choices) -> None:
        covariance = jnp.asarray(OF_COEFFICIENTS, float)
        with numpyro.plate("annotator", data.num_annotators):
            coefficient = numpyro.sample(
                "coefficient",
                dist.MultivariateNormal(jnp.array([0.5, 0.0]), covariance),
                infer={"event_dims": ["feature"]},
            )
        own = coefficient[jnp.asarray(data.annotator)][:, None]
        utility = of_offered((data.features * own).sum(-1), data.offered)
        with numpyro.plate("set", data.num_rows):
            numpyro.sample("chosen", Choice(utility, data.count), obs=data.chosen)

    def start(self, data: rt.Choices) -> dict:
        return {"coefficient": np.zeros((data.num_annotators, 2))}


def votes() -> rt.Comparisons:
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, 3, 40), rng.integers(3, 6, 40)
    wins = rng.random(40) < 0.3
    names = np.array([f"i{place}" for place in PLACES])
    sides = {"winner": names[np.where(wins, first, second)]}
    sides |= {"loser": names[np.where(wins, second, first)]}
    return rt.Comparisons.from_frame(sides, winner="winner", loser="loser", items=names.tolist())


def choices() -> rt.Choices:
    rng, rows = np.random.default_rng(1), []
    for number in range(48):
        features = rng.normal(size=(3, 2))
        taken = np.argmax(features[:, 0] + rng.gumbel(size=3))
        rows += [
            (number, number % 4, place, place == taken, *features[place]) for place in range(3)
        ]
    roles, features = ["set", "annotator", "alternative", "chosen"], ["price", "size"]
    table = dict(zip(roles + features, zip(*rows, strict=True), strict=True))
    return rt.Choices.from_frame(table, **{name: name for name in roles}, features=features)


CASES = pytest.mark.parametrize(
    ("model", "data"), [(Smooth(), votes()), (Personal(), choices())], ids=["votes", "choices"]
)


def test_priors_of_several_sites_are_one_matrix() -> None:
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    correlated = dist.MultivariateNormal(jnp.array([1.0, 2.0]), jnp.asarray(covariance))
    both = joined([prior(dist.Normal(3.0, 0.5), (1,)), prior(correlated.expand([2]), (2, 2))])
    wanted = np.zeros((5, 5))
    wanted[0, 0] = 4.0
    wanted[1:3, 1:3] = wanted[3:, 3:] = np.linalg.inv(covariance)
    whole = np.asarray(both.across) + np.diag(both.precision)
    np.testing.assert_allclose(whole, wanted, atol=1e-6)
    np.testing.assert_allclose(both.mean, [3, 1, 2, 1, 2])


@pytest.mark.slow
@CASES
def test_the_mode_is_that_of_another_optimiser(model, data) -> None:
    result = rt.fit(model, data, rt.PGEM(draws=0), seed=0, progress=False)
    ((name, mode),) = result["mode"].data_vars.items()
    shape = mode.shape
    with jax.enable_x64(True):
        device = jax.tree.map(jnp.asarray, data)

        def loss(entries):
            return -log_joint(model, device, {name: entries.reshape(shape)})

        # NumPyro's gradient of votes is wrong where log-odds are exactly 0.
        found = scipy.optimize.minimize(
            jax.value_and_grad(loss), 0.1 * np.arange(mode.size), jac=True, options={"gtol": 1e-8}
        )
    np.testing.assert_allclose(mode.to_numpy().ravel(), found.x, atol=2e-5)
