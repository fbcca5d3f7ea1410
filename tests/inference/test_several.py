"""Gibbs and EM of several kinds of judgement: blocks, conditionals of what the kinds share, ties,
modes and draws around them, and what is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats
from scipy.special import expit, logsumexp, ndtri

import raters as rt
from raters.errors import BackendError
from raters.inference.polya_gamma import augmentation, joint, joint_plan, sweep, ties
from raters.program import log_joint, start_of
from tests.inference.test_mirror import crowd, shift
from tests.several import OF_LABELS, ONE_REWARD, labelled, walks

_VOTES = rt.BTL(reward_scale=1.0)
TWO_CROWDS = rt.models.JointModel(
    {"one": rt.ExtendedBTL(reward_scale=1.0), "two": rt.ExtendedBTL(reward_scale=1.0)},
    shared=["reward", "competence", "competence_spread"],
)
VOTES_AND_RANKINGS = rt.models.JointModel(
    {"votes": _VOTES, "ranked": rt.PlackettLuce(worth_scale=1.0)},
    shared=[{"votes": "reward", "ranked": "worth"}],
)
TWO_TASKS = rt.models.JointModel(
    {"one": rt.DawidSkene(), "two": rt.DawidSkene()}, shared=["confusion", "prevalence"]
)


def votes_of(seed: int, number: int, items: int = 4) -> rt.Comparisons:
    """Votes of three annotators."""
    rng = np.random.default_rng(seed)
    first = rng.integers(items, size=number)
    table = {
        "winner": first,
        "loser": (first + rng.integers(1, items, size=number)) % items,
        "who": np.arange(number) % 3,
    }
    return rt.Comparisons.from_frame(table, winner="winner", loser="loser", annotator="who")


def rankings_of(seed: int, number: int, items: int = 4) -> rt.Rankings:
    """Rankings of three items each by three annotators."""
    rng = np.random.default_rng(seed)
    table = [
        (ranking, item, place + 1, ranking % 3)
        for ranking in range(number)
        for place, item in enumerate(rng.permutation(items)[:3])
    ]
    names = ("ranking", "item", "rank", "annotator")
    columns = dict(zip(names, zip(*table, strict=True), strict=True))
    roles = dict(zip(names, names, strict=True))
    return rt.Rankings.from_frame(columns, **roles, unranked="not offered")


@pytest.fixture(scope="module")
def crowds() -> rt.judgements.Together:
    return rt.judgements.Together.of({"one": votes_of(0, 30), "two": votes_of(1, 40)})


@pytest.fixture(scope="module")
def ranked() -> rt.judgements.Together:
    return rt.judgements.Together.of({"votes": votes_of(0, 12), "ranked": rankings_of(1, 6)})


@pytest.fixture(scope="module")
def tasks() -> rt.judgements.Together:
    one = rt.datasets.label_crowd(12, 4, 3, 2, seed=0).labels
    frame = rt.datasets.label_crowd(9, 4, 3, 2, seed=1).labels.to_frame()
    frame["item"] = [f"other {item}" for item in frame["item"]]
    two = rt.Labels.from_frame(frame, item="item", annotator="annotator", label="label")
    return rt.judgements.Together.of({"one": one, "two": two})


@pytest.fixture(scope="module")
def labels_and_votes() -> rt.judgements.Together:
    return labelled()


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def planned(model: rt.models.JointModel, data: rt.judgements.Together) -> Any:
    return joint_plan.plan(rt.program.Program(model, data), start_of(model, data))


# ------------------------------------------------------------------------------------ blocks


def test_blocks_are_those_of_the_parts_and_shared_ones_are_one(crowds, ranked, tasks) -> None:
    plan = planned(TWO_CROWDS, crowds)
    assert [block.sites for block in plan.blocks] == [("reward",), ("competence",)]
    assert [len(members) for members in plan.members] == [2, 2]
    assert plan.hyper == ("competence_spread",)
    plan = planned(VOTES_AND_RANKINGS, ranked)
    assert [block.sites for block in plan.blocks] == [("reward",)]
    assert [member.block.sites for member in plan.members[0]] == [("reward",), ("worth",)]
    plan = planned(TWO_TASKS, tasks)
    assert {block.sites for block in plan.blocks} == {("prevalence",), ("confusion",)}


def test_tied_sites_are_blocks_of_their_own(labels_and_votes) -> None:
    plan = planned(OF_LABELS, labels_and_votes)
    tied = {block.sites[0] for block, tie in zip(plan.blocks, plan.ties, strict=True) if tie}
    assert tied == {"labels.accuracy", "votes.competence"}
    assert plan.hyper == ("accuracy_correlation",)


def test_a_shared_site_without_a_product_is_updated_entry_by_entry(crowds, monkeypatch) -> None:
    monkeypatch.setattr(joint_plan, "_is_joint", lambda *_: False)
    model = rt.models.JointModel(
        {"one": rt.BTL(), "two": rt.BTL()}, shared=["reward", "reward_scale"]
    )
    plan = planned(model, crowds)
    assert plan.blocks == ()
    assert set(plan.free) == {"reward", "reward_scale"}
    assert plan.reaching == {"reward"}


# ------------------------------------------------------------------------------- conditionals


def together_in_one(crowds: rt.judgements.Together) -> rt.Comparisons:
    """The votes of both parts in one table."""
    one, two = crowds.parts
    return one.joined(two)


def test_the_conditional_of_a_shared_site_is_that_of_all_rows(crowds) -> None:
    values = {
        "reward": np.array([0.3, -0.2, 0.8, -0.9]),
        "competence": np.array([0.9, 0.4, 0.7]),
        "competence_spread": np.array(0.5),
    }
    plan, weights = planned(TWO_CROWDS, crowds), augmentation.Expected(augmentation.expectation)
    whole = rt.program.Program(rt.ExtendedBTL(reward_scale=1.0), together_in_one(crowds))
    alone = sweep.plan(whole, values)
    for block in plan.blocks:
        own = joint.conditional(plan, crowds, values, block, weights, draws=True)
        one = sweep.block_conditional(
            alone, whole.data, values, block, augmentation.Expected(augmentation.expectation),
            draws=True,
        )  # fmt: skip
        np.testing.assert_allclose(own.shift, one.shift, rtol=1e-10)
        current = block.current(values)
        np.testing.assert_allclose(own.product(current), one.product(current), rtol=1e-10)


def test_counts_of_a_shared_site_are_those_of_both_tasks(tasks) -> None:
    model, data = TWO_TASKS, tasks
    whole = rt.program.Program(rt.DawidSkene(), tasks.parts[0].joined(tasks.parts[1]))
    values = start_of(whole.model, whole.data)
    plan, alone = planned(model, data), sweep.plan(whole, values)
    classes = joint.expected_classes(plan, data, values)
    all_classes = np.concatenate([classes["one"][:12], classes["two"][12:]])
    block = next(block for block in plan.blocks if block.sites == ("confusion",))
    weights = augmentation.Expected(augmentation.expectation)
    both = joint.conditional(plan, data, values, block, weights, classes, draws=False)
    one = sweep.block_conditional(
        alone, whole.data, values, block, weights, all_classes, draws=False
    )
    np.testing.assert_allclose(both.parameters[0], one.parameters[0], rtol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        pytest.param("crowds", marks=pytest.mark.exhaustive),
        "rankings",
        pytest.param("tasks", marks=pytest.mark.exhaustive),
        pytest.param("labels and votes", marks=pytest.mark.slow),
    ],
)
def test_conditionals_have_the_slope_of_the_joint_density(
    model: str, crowds, ranked, tasks, labels_and_votes
) -> None:
    """Fisher's identity, at a draw of the prior; and the rest of the contract."""
    model, data = {
        "crowds": (TWO_CROWDS, crowds),
        "rankings": (VOTES_AND_RANKINGS, ranked),
        "tasks": (TWO_TASKS, tasks),
        "labels and votes": (OF_LABELS, labels_and_votes),
    }[model]
    rt.testing.check_model(model, data)


# ---------------------------------------------------------------------------------------- ties


def tied_conditional(
    labels_and_votes: rt.judgements.Together, site: str
) -> tuple[ties.Tied, np.ndarray]:
    plan, rng = planned(OF_LABELS, labels_and_votes), np.random.default_rng(0)
    values = start_of(OF_LABELS, labels_and_votes) | {
        "accuracy_correlation": np.asarray(0.8),
        "labels.accuracy": np.array([0.9, 0.55, 0.7, 0.8]),
        "votes.competence": np.array([2.0, -0.5, 0.3, 1.2]),
        "votes.reward": rng.normal(size=12),
    }
    block = next(block for block in plan.blocks if block.sites == (site,))
    classes = joint.expected_classes(plan, labels_and_votes, values)
    weights = augmentation.Expected(augmentation.expectation)
    given = joint.conditional(plan, labels_and_votes, values, block, weights, classes, draws=True)
    assert isinstance(given, ties.Tied)
    return given, block.current(values)


def density_of(given: ties.Tied, entry: int, at: np.ndarray) -> np.ndarray:
    """Log density of one entry at some points, by hand but for the conditional by itself."""
    labels = len(getattr(given.own, "parameters", ())) == 2
    values, rho = given.given[3], 0.8
    if labels:
        first, second = (part[entry] for part in given.own.parameters)
        own = (first - 1) * np.log(at) + (second - 1) * np.log1p(-at)
        score, other = ndtri(at**2), np.asarray(values["votes.competence"])[entry] - 1
    else:
        own = given.own.shift[entry] * at - given.own.diagonal[entry] * at**2 / 2
        score, other = at - 1, ndtri(np.asarray(values["labels.accuracy"])[entry] ** 2)
    return own - (score - rho * other) ** 2 / (2 * (1 - rho**2)) + score**2 / 2


@pytest.mark.parametrize("site", ["labels.accuracy", "votes.competence"])
def test_draws_of_tied_entries_have_their_conditional(site: str, labels_and_votes) -> None:
    """Means and squares of 4,000 draws against quadrature, in standard errors by batch means;
    |z| < 5: false-alarm rate below 1e-4 for all eight."""
    given, current = tied_conditional(labels_and_votes, site)
    rng, draws, now = np.random.default_rng(1), [], current
    for _ in range(4000):
        now = given.draw(rng, now)
        draws.append(now)
    grid = (
        np.linspace(1e-6, 1 - 1e-6, 4001) if site == "labels.accuracy" else np.linspace(-9, 9, 4001)
    )
    for entry in range(4):
        log_density = density_of(given, entry, grid)
        weight = np.exp(log_density - log_density.max())
        weight /= weight.sum()
        for power in (1, 2):
            values = np.array(draws)[:, entry] ** power
            batches = values.reshape(50, -1).mean(1)
            error = batches.std(ddof=1) / np.sqrt(50)
            assert abs(values.mean() - weight @ grid**power) < 5 * error


@pytest.mark.parametrize("site", ["labels.accuracy", "votes.competence"])
def test_modes_of_tied_entries_are_those_of_their_scores(site: str, labels_and_votes) -> None:
    given, current = tied_conditional(labels_and_votes, site)
    now = current
    for _ in range(8):
        now = given.mode(now)
    for entry in range(4):

        def loss(at: float, entry: int = entry) -> float:
            # In scores the prior by itself, f, gives way to that of the score; a normal one is it.
            own = density_of(given, entry, np.array([at]))[0]
            if site == "labels.accuracy":
                return -(own - np.log(2 * at) - ndtri(at**2) ** 2 / 2)
            return -own

        bounds = (1e-9, 1 - 1e-9) if site == "labels.accuracy" else (-9, 9)
        best = scipy.optimize.minimize_scalar(loss, bounds=bounds, options={"xatol": 1e-10})
        assert now[entry] == pytest.approx(best.x, abs=1e-5)


# --------------------------------------------------------------------------------------- modes


def mode_of(model: Any, data: Any, fit_quietly) -> dict[str, np.ndarray]:
    result = fit_quietly(model, data, rt.PGEM(draws=0, tolerance=1e-9))
    return {name: np.asarray(value) for name, value in result["mode"].data_vars.items()}


def test_the_mode_of_two_crowds_is_that_of_one_table(crowds, fit_quietly) -> None:
    model = rt.models.JointModel({"one": _VOTES, "two": _VOTES}, shared=["reward"])
    both = mode_of(model, crowds, fit_quietly)
    one = mode_of(_VOTES, together_in_one(crowds), fit_quietly)
    np.testing.assert_allclose(both["reward"], one["reward"], atol=1e-6)


def test_the_mode_of_votes_and_rankings_is_that_of_another_optimiser(ranked, fit_quietly) -> None:
    found = mode_of(VOTES_AND_RANKINGS, ranked, fit_quietly)["reward"]

    def loss(reward: np.ndarray) -> float:
        return -float(log_joint(VOTES_AND_RANKINGS, ranked, {"reward": jnp.asarray(reward)}))

    best = scipy.optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(found - found.mean(), best - best.mean(), atol=1e-5)


def test_even_classes_are_left_as_in_a_fit_by_itself(fit_quietly) -> None:
    """Two pairs of annotators whose labels are each other's image: EM would stay between them."""
    labels = crowd((shift(2, 0),) * 2 + (shift(2, 1),) * 2, 40, 1.0)
    data = rt.judgements.Together.of({"labels": labels, "votes": votes_of(0, 30)})
    models = {"labels": rt.DawidSkene(), "votes": _VOTES}
    mode = rt.PGEM(draws=0, starts=1)
    both = fit_quietly(rt.models.JointModel(models), data, mode)
    alone = [fit_quietly(model, data.part(name), mode) for name, model in models.items()]
    total = sum(one.attrs["log_joint"] for one in alone)
    assert both.attrs["log_joint"] == pytest.approx(total, abs=0.01)


@pytest.mark.slow
def test_the_objective_never_falls_and_is_flat_at_the_mode(labels_and_votes, fit_quietly) -> None:
    model = OF_LABELS
    result = fit_quietly(model, labels_and_votes, rt.PGEM(draws=0, starts=1, tolerance=1e-10))
    rises = np.diff(result["optimisation"]["log_joint"].values)
    assert rises.min() > -1e-8
    plan = planned(model, labels_and_votes)
    mode = {name: jnp.asarray(value.values) for name, value in result["mode"].data_vars.items()}

    def density(values: dict[str, Any]) -> Any:
        return joint.objective(plan, labels_and_votes, mode | values)

    slopes = jax.grad(density)({name: mode[name] for name in mode if name != "labels.prevalence"})
    for name, slope in slopes.items():
        assert float(jnp.abs(slope).max()) < 2e-3, name


def test_draws_around_the_mode_have_the_densities_that_are_stored(ranked) -> None:
    """Without hyper-parameters ``log_p`` is the joint density, and ``log_q`` that of the normal
    with the curvature at the mode, by finite differences."""
    plan = planned(VOTES_AND_RANKINGS, ranked)

    def density(reward: Any) -> Any:
        return log_joint(VOTES_AND_RANKINGS, ranked, {"reward": jnp.asarray(reward)})

    mode = scipy.optimize.minimize(lambda reward: -float(density(reward)), np.zeros(4)).x
    start = {"reward": np.zeros(4)}
    draws, stats = joint.draws(plan, ranked, start, 50, np.random.default_rng(0))
    step = 1e-4 * np.eye(4)
    slope = jax.grad(density)
    curvature = np.stack([(slope(mode - one) - slope(mode + one)) / 2e-4 for one in step])
    normal = scipy.stats.multivariate_normal(mode, np.linalg.inv(curvature))
    for place in range(50):
        reward = draws["reward"][0, place]
        assert stats["log_p"][0, place] == pytest.approx(float(density(reward)), rel=1e-9)
        assert stats["log_q"][0, place] == pytest.approx(normal.logpdf(reward), rel=1e-3)


@pytest.mark.parametrize(
    "diagonal", [(2.0, 0.5, 1.0), (2.0, -0.5, 1.0), (0.5, -2.0, -1.0), (1e9, 1.0, 1e-3)]
)
@pytest.mark.parametrize("orbits", [0, 1])
def test_draws_on_a_section_have_their_spreads_and_densities(diagonal, orbits) -> None:
    """Of falling and of unlike curvatures too: across a section the normal has the curvature within
    it, of falling directions the size. 4,000 draws have its covariance within 5 standard errors in
    each of 9 entries (false-alarm rate below 1e-5), and its densities exactly."""
    rng = np.random.default_rng(0)
    curvature = np.diag(diagonal)
    normals = np.eye(3)[1:2][:orbits]
    plane = np.delete(np.eye(3), 1, axis=1) if orbits else np.eye(3)
    draws, log_q = joint._on_section(curvature, normals, 4000, rng)
    variance = 1 / np.abs(plane.T @ np.asarray(diagonal))
    normal = scipy.stats.norm(0, np.sqrt(variance))
    np.testing.assert_allclose(log_q, normal.logpdf(draws @ plane).sum(1), rtol=1e-9)
    np.testing.assert_allclose(draws @ normals.T, 0, atol=1e-12)
    unit = (draws @ plane) / np.sqrt(variance)
    error = np.where(np.eye(len(variance)) > 0, 2**0.5, 1.0) / 4000**0.5
    assert (np.abs(unit.T @ unit / 4000 - np.eye(len(variance))) < 5 * error).all()


def on_a_pair(*number: int) -> rt.Comparisons:
    """So many votes for the one item and for the other."""
    table = {"a": ["x"] * 2, "b": ["y"] * 2, "o": ["first", "second"], "n": number}
    return rt.Comparisons.from_frame(table, first="a", second="b", outcome="o", count="n")


def test_draws_of_a_small_part_beside_a_large_one(fit_quietly) -> None:
    """Parts that share nothing: the spread of the small one is that of a fit by itself, as that of
    10^8 votes does not tell it. Its sd of 1,000 draws is within 5 standard errors, 11 percent
    (false-alarm rate below 1e-6)."""
    fixed, backend = rt.BTL(reward_scale=1.0), rt.PGEM(draws=1000)

    def spread(draws: Any) -> float:
        return float((draws[..., 0] - draws[..., 1]).std())

    small = on_a_pair(3, 1)
    data = rt.judgements.Together.of({"large": on_a_pair(70_000_000, 20_000_000), "small": small})
    model = rt.models.JointModel({"large": fixed, "small": fixed})
    both = fit_quietly(model, data, backend).posterior["small.reward"].values
    alone = fit_quietly(fixed, small, backend).posterior["reward"].values
    assert spread(both) == pytest.approx(spread(alone), rel=0.11 * 2**0.5)


def test_weights_of_draws_across_an_orbit_give_the_evidence() -> None:
    """One annotator on two items, and votes by everybody: the mean weight of 4,000 draws against
    quadrature, within 5 standard errors. The seed is fixed, as weights have a long tail, so that a
    standard error says less than it does of a normal. Scales are fixed, and the place on the orbit
    of rewards and competence is integrated out."""
    signed = rt.ExtendedBTL(competence="signed", reward_scale=1.0)
    model = rt.models.JointModel({"one": signed, "two": _VOTES})
    data = rt.judgements.Together.of({"one": on_a_pair(40, 10), "two": on_a_pair(30, 12)})
    plan = planned(model, data)
    assert len(plan.scales) == 1
    assert plan.hyper == ()
    _, stats = joint.draws(plan, data, start_of(model, data), 4000, np.random.default_rng(0))
    weight = (stats["log_p"] - stats["log_q"])[0]
    found, share = logsumexp(weight) - np.log(4000), np.exp(weight - logsumexp(weight))
    error = share.std() * 4000**0.5
    # Orbits keep the sign of a competence; mirror images have weights of their own.
    gap, competence = np.linspace(-9, 9, 1201), np.linspace(0.005, 8.995, 900)[:, None]
    difference = scipy.stats.norm(0, 2**0.5).pdf(gap)
    chance = expit(competence * gap)
    prior = difference * scipy.stats.norm(1, 1).pdf(competence)

    def likelihood(chance: np.ndarray, part: rt.Comparisons) -> np.ndarray:
        each = [
            scipy.stats.binom.pmf(int(y), int(n), chance)
            for y, n in zip(np.asarray(part.wins), np.asarray(part.weight), strict=True)
        ]
        return np.prod(each, axis=0)

    step = (gap[1] - gap[0]) * (competence[1, 0] - competence[0, 0])
    of_one = (prior * likelihood(chance, data.part("one"))).sum() * step
    of_two = (difference * likelihood(expit(gap), data.part("two"))).sum() * (gap[1] - gap[0])
    assert found == pytest.approx(np.log(of_one * of_two), abs=5 * error)
    assert error < 0.05


# ------------------------------------------------------------------------------------ refusals


def test_a_part_that_no_back_end_augments_is_named() -> None:
    data = walks().together
    for backend in (rt.PGGibbs(), rt.PGEM()):
        with pytest.raises(BackendError, match=r"part 'shown': MaxEntIRL .*use NUTS or SVI"):
            rt.fit(ONE_REWARD, data, backend, seed=0)


def test_a_panel_and_abilities_to_be_integrated_out_are_refused(crowds) -> None:
    choices = rt.datasets.choice_crowd(3, 4, 3, 2, seed=0).choices
    votes = votes_of(0, 12)
    both = rt.judgements.Together.of({"votes": votes, "chosen": choices})
    model = rt.models.JointModel({"votes": _VOTES, "chosen": rt.MixedLogit()})
    with pytest.raises(BackendError, match=r"part 'chosen': MixedLogit has a sampler of its own"):
        rt.fit(model, both, rt.PGGibbs(), seed=0)
    responses = rt.datasets.response_crowd(5, 4, seed=0).responses
    tests = rt.judgements.Together.of({"one": responses, "two": responses.take(slice(0, 12))})
    model = rt.models.JointModel({"one": rt.Rasch(), "two": rt.Rasch()}, shared=["difficulty"])
    with pytest.raises(BackendError, match=r"part 'one': PGEM integrates 'ability' of Rasch out"):
        rt.fit(model, tests, rt.PGEM(), seed=0)
    model = rt.models.JointModel({"one": rt.models.FactorBTL(), "two": _VOTES})
    with pytest.raises(BackendError, match=r"part 'one': the joint mode .* FactorBTL"):
        rt.fit(model, crowds, rt.PGEM(), seed=0)
