"""Every back-end gives the mirrored world its share."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.special import expit
from scipy.stats import beta, norm

import raters as rt
from raters.distributions import Votes
from raters.errors import ConvergenceWarning, DataWarning
from raters.inference import mirror
from raters.inference.base import Draws
from raters.model import Sign, probability_of_mirror
from raters.program import pointwise_log_likelihood, scattered

MODEL = rt.ExtendedBTL(competence="signed", reward_scale=1.0)


def votes(*wins: int, of: int) -> rt.Comparisons:
    """Two items, and how often each annotator takes the first."""
    table = {"w": [], "l": [], "who": []}
    for who, number in enumerate(wins):
        for place in range(of):
            pair = ["x", "y"] if place < number else ["y", "x"]
            for role, item in zip("wl", pair, strict=True):
                table[role].append(item)
            table["who"].append(who)
    return rt.Comparisons.from_frame(table, winner="w", loser="l", annotator="who")


def exact(*wins: int, of: int) -> np.ndarray:
    """P(competence < 0) of each annotator by quadrature over the difference of the rewards."""
    gap = np.linspace(-8, 8, 1601)
    beta = np.linspace(-7, 9, 1601)
    prior = norm.pdf(beta, 1.0, 1.0)
    chance = expit(gap[:, None] * beta)
    each = [chance**number * (1 - chance) ** (of - number) * prior for number in wins]
    total = norm.pdf(gap, 0, np.sqrt(2)) * np.prod([one.sum(1) for one in each], 0)
    below = [total @ (one[:, beta < 0].sum(1) / one.sum(1)) for one in each]
    return np.array(below) / total.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "error"),
    [
        (rt.PGGibbs(draws=4000, warmup=300, chains=2), 0.03),
        (rt.NUTS(draws=3000, warmup=500, chains=2), 0.03),
        (rt.PGEM(draws=4000), 0.12),
        (rt.SVI(draws=4000, steps=4000), 0.12),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("wins", [(13, 4), (13, 13, 4)])
def test_against_quadrature(backend, error, wins):
    """Exact back-ends within 5 standard errors of at least 500 effective draws in 8,000: a false
    alarm in a thousand runs or fewer. Without the step they miss by .15 or more."""
    data = votes(*wins, of=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DataWarning)
        result = rt.fit(MODEL, data, backend, seed=0, progress=False)
    below = (result.posterior["competence"] < 0).mean(("chain", "draw")).values
    np.testing.assert_allclose(below, exact(*wins, of=16), atol=error)


def test_a_fit_says_that_the_order_is_open():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = rt.fit(MODEL, votes(13, 3, of=16), rt.PGEM(draws=200), seed=0, progress=False)
    assert any("which way round the order is" in str(one.message) for one in caught)
    assert 0.05 < probability_of_mirror(result.posterior["competence"].values) <= 0.5


def test_a_clear_crowd_has_no_mirror(fit_quietly):
    data, _ = rt.datasets.crowd(num_annotators=8, num_votes=2000, seed=0)
    result = fit_quietly(rt.ExtendedBTL(competence="signed"), data, rt.PGEM(draws=200))
    assert probability_of_mirror(result.posterior["competence"].values) == 0


def test_draws_are_exchanged_in_the_share_of_the_other_mode(tiny):
    """Of draws at one point the share of mirror images is that of the prior: 5 standard errors, a
    false alarm in a million."""
    number = 4000
    sites = rt.Program(MODEL, tiny).sites
    values = {name: np.ones((1, number, *site.shape)) for name, site in sites.items()}
    values["competence"][:] = 0.02
    draws = mirror.weighed(rt.Program(MODEL, tiny), Draws(values, {}), np.random.default_rng(0))
    flipped = (draws.values["competence"] < 0).all(-1)
    assert ((draws.values["reward"] < 0).all(-1) == flipped).all()
    share = expit(-2 * 0.02 * sites["competence"].shape[0])
    assert abs(flipped.mean() - share) < 5 * np.sqrt(0.25 / number)


def test_the_mode_stays_where_it_was_found(fit_quietly):
    for seed in range(4):
        result = fit_quietly(MODEL, votes(5, 1, of=6), rt.PGEM(draws=0), seed=seed)
        np.testing.assert_allclose(
            result.posterior["competence"][0, 0], result["mode"]["competence"], atol=1e-6
        )


def test_draws_that_are_not_finite_stay(tiny):
    sites = rt.Program(MODEL, tiny).sites
    values = {name: np.full((1, 5, *site.shape), np.nan) for name, site in sites.items()}
    draws = Draws(values, {})
    assert mirror.weighed(rt.Program(MODEL, tiny), draws, np.random.default_rng(0)) is draws
    assert probability_of_mirror(values["competence"]) == 0
    assert probability_of_mirror(values["competence"][:, :0]) == 0


@dataclass(frozen=True)
class TwoSigns(rt.Model[rt.Comparisons]):
    """Two numbers that only the prior sees, as products of none."""

    blocks = ()

    @property
    def symmetries(self):
        return (Sign(("one",)), Sign(("two",)))

    def generate(self, data):
        prior = dist.Normal(0.6, 1.0)
        one, two = numpyro.sample("one", prior), numpyro.sample("two", prior)
        logits = jnp.abs(one) + jnp.abs(two) + jnp.zeros(data.num_rows)
        with numpyro.plate("comparison", data.num_rows):
            numpyro.sample(
                "outcome", Votes(logits, 1 if data.count is None else data.count), obs=data.wins
            )


@pytest.mark.slow
def test_two_signs_are_moved_one_by_one(tiny, fit_quietly):
    """P(one < 0 and two < 0) is the product: 5 standard errors of 2,000 effective draws, a false
    alarm in a million."""
    data = dataclasses.replace(
        tiny.rows(np.zeros(1, int)), count=np.zeros(1, np.float32), wins=np.zeros(1, np.float32)
    )
    result = fit_quietly(TwoSigns(), data, rt.NUTS(draws=4000, warmup=300, chains=1))
    one, two = ((result.posterior[name].values < 0).ravel() for name in ("one", "two"))
    below = norm.cdf(-0.6)
    error = 5 * np.sqrt(0.25 / 2000)
    assert abs(one.mean() - below) < error
    assert abs((one & two).mean() - below**2) < error


def test_a_model_without_the_symmetry_is_left_alone(tiny):
    values = {"reward": np.ones(3)}
    rng = np.random.default_rng(0)
    assert mirror.images(rt.BTL(), tiny) == ()
    assert mirror.step(rt.BTL(), (), tiny, tiny, values, rng) is values
    assert rng.random() == np.random.default_rng(0).random()
    assert mirror.mirrored(Sign(("reward",)), values)["reward"].tolist() == [-1, -1, -1]


# ------------------------------------------------------------------- classes that change places

COIN = rt.OneCoin(right=2.0, wrong=1.0)


def labels(alike: int, apart: int, truth: tuple[object, ...] | None = None) -> rt.Labels:
    """Two annotators, of two classes by turns, who agree on so many items."""
    table = {"i": [], "a": [], "l": []}
    for item in range(alike + apart):
        for who in range(2):
            table["i"].append(item)
            table["a"].append(who)
            table["l"].append(item % 2 if who == 0 or item < alike else 1 - item % 2)
    data = rt.Labels.from_frame(table, item="i", annotator="a", label="l")
    return data if truth is None else data.with_truth(dict([truth]))


def adversaries(alike: int, apart: int) -> np.ndarray:
    """P(accuracy < ½) of each annotator by quadrature over both accuracies and the prevalence."""
    grid = (np.arange(120) + 0.5) / 120
    share, one, two = np.meshgrid(grid, grid, grid, indexing="ij")
    log_density = np.log(beta.pdf(one, COIN.right, COIN.wrong) * beta.pdf(two, 2.0, 1.0))
    for item in range(alike + apart):
        first = item % 2
        second = first if item < alike else 1 - first
        log_density += np.log(
            (1 - share) * (one if first == 0 else 1 - one) * (two if second == 0 else 1 - two)
            + share * (one if first == 1 else 1 - one) * (two if second == 1 else 1 - two)
        )
    density = np.exp(log_density - log_density.max())
    below = [density[:, grid < 0.5].sum(), density[:, :, grid < 0.5].sum()]
    return np.array(below) / density.sum()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "error"),
    [
        (rt.PGGibbs(draws=4000, warmup=300, chains=2), 0.05),
        (rt.NUTS(draws=3000, warmup=500, chains=2), 0.05),
        (rt.PGEM(draws=4000), 0.12),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(("alike", "apart"), [(3, 9), (9, 3)])
def test_classes_against_quadrature(backend, error, alike, apart):
    """Exact back-ends within 5 standard errors of at least 2,500 effective draws: a false alarm in
    a million. Without the step one of them is an adversary for certain where they disagree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = rt.fit(COIN, labels(alike, apart), backend, seed=0, progress=False)
    below = (result.posterior["accuracy"] < 0.5).mean(("chain", "draw")).values
    np.testing.assert_allclose(below, adversaries(alike, apart), atol=error)


@pytest.mark.parametrize("seed", range(3))
def test_two_annotators_who_never_agree_are_as_likely_to_be_right(seed, fit_quietly):
    """The data are symmetric: P = ½, within 5 standard errors of 400 effective draws."""
    data = labels(0, 30)
    result = fit_quietly(rt.DawidSkene(), data, rt.PGGibbs(draws=500, warmup=200), seed=seed)
    diagonal = result.posterior["confusion"].values[..., 0, 0]
    np.testing.assert_allclose((diagonal < 0.5).mean((0, 1)), 0.5, atol=0.13)
    with pytest.warns(
        ConvergenceWarning, match=r"leave open which of the classes 0 and 1 is which"
    ):
        rt.fit(rt.DawidSkene(), data, rt.PGGibbs(draws=500, warmup=200), seed=seed, progress=False)


def test_a_known_class_decides_which_is_which(fit_quietly):
    known = labels(0, 30, truth=(0, 0))
    assert [move.broken for move in mirror.images(rt.DawidSkene(), known)] == [True]
    result = fit_quietly(rt.DawidSkene(), known, rt.PGGibbs(draws=500, warmup=200))
    assert (result.posterior["confusion"].values[:, :, 0, 0, 0] > 0.5).mean() > 0.9


def test_pairs_of_classes_that_may_change_places():
    three = rt.datasets.label_crowd(20, 4, 3, 3, seed=0).labels
    (move,) = mirror.images(rt.DawidSkene(), three)
    assert move.pairs == ((0, 1), (0, 2), (1, 2))
    assert mirror.images(rt.OneCoin(), three) == ()  # One accuracy has an image with two classes.
    values = {"prevalence": np.array([0.1, 0.2, 0.7]), "confusion": np.arange(18).reshape(2, 3, 3)}
    image = mirror.mirrored(move.symmetry, values, (0, 2))
    np.testing.assert_allclose(image["prevalence"], [0.7, 0.2, 0.1])
    np.testing.assert_array_equal(image["confusion"], values["confusion"][:, ::-1])


@pytest.mark.parametrize(
    "model",
    [rt.OneCoin(), rt.ItemDifficulty(), rt.DawidSkene(), rt.HierarchicalDawidSkene(), rt.Pooled()],
    ids=lambda model: type(model).__name__,
)
def test_images_leave_the_likelihood_of_two_classes(model):
    check_image(model, labels(9, 3))


@pytest.mark.parametrize("model", [rt.Raykar(), rt.Raykar(hidden=3), rt.Yan()])
def test_images_leave_the_likelihood_of_two_classes_with_features(model):
    check_image(model, rt.datasets.label_crowd(20, 4, 3, 2, num_features=2, seed=0).labels)


def check_image(model: rt.Model, data: rt.Labels) -> None:
    """Assert that the image of a point of the prior has its likelihood."""
    program = rt.Program(model, data)
    values = scattered(model.start(data), program.supports, np.random.default_rng(0))
    (move,) = mirror.images(model, data)
    image = mirror.mirrored(move.symmetry, values)
    here, there = (
        float(pointwise_log_likelihood(model, data, point).sum()) for point in (values, image)
    )
    assert here == pytest.approx(there, rel=1e-5)
