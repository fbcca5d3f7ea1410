"""Models of responses: the marginal likelihood by quadrature, consistency, draws of abilities, and
ideal points."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import scipy.linalg
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

import raters as rt
from raters.inference.base import Draws
from raters.inference.identification import turned
from raters.inference.polya_gamma import tables
from raters.model import Rotation
from raters.models.responses import logistic
from raters.program import likelihood_of

DIFFICULTY = np.array([-1.5, -0.4, 0.3, 1.2])
DISCRIMINATION = np.array([0.5, 1.0, 1.6, 2.2])
ROLES = {"person": "who", "item": "question", "correct": "right"}


@pytest.fixture(scope="module")
def responses() -> rt.Responses:
    """20 persons, 4 items, a fifth of the cells empty, some answered twice."""
    rng = np.random.default_rng(2)
    who, question = (grid.ravel() for grid in np.indices((20, 4)))
    kept = np.flatnonzero(rng.random(80) < 0.8)
    rows = np.concatenate([kept, kept[:9]])
    right = rng.random(len(rows)) < expit(
        rng.normal(size=20)[who[rows]] - DIFFICULTY[question[rows]]
    )
    table = {"who": who[rows], "question": question[rows], "right": right}
    return rt.Responses.from_frame(table, **ROLES)


def of_person(data: rt.Responses, person: int, slope: np.ndarray, scale: float):
    """Likelihood of one person as a function of the ability, prior included."""
    mine = np.asarray(data.person) == person
    item, right = np.asarray(data.item)[mine], np.asarray(data.correct)[mine]
    wrong = np.asarray(data.weight)[mine] - right

    def density(ability: float) -> float:
        p = expit(slope[item] * (ability - DIFFICULTY[item]))
        return float(norm.pdf(ability, scale=scale) * np.prod(p**right * (1 - p) ** wrong))

    return density


def moment(density, power: int) -> float:
    return quad(lambda ability: ability**power * density(ability), -12, 12)[0]


CASES = {
    "Rasch": (rt.Rasch(), {"difficulty": DIFFICULTY, "ability_scale": 1.3}, np.ones(4), 1.3),
    "TwoPL": (
        rt.TwoPL(),
        {"difficulty": DIFFICULTY, "discrimination": DISCRIMINATION},
        DISCRIMINATION,
        1.0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_marginal_likelihood_is_that_of_quadrature(case, responses) -> None:
    model, values, slope, scale = CASES[case]
    marginal = model.marginal(responses)
    with jax.enable_x64(True):
        data = jax.tree.map(np.asarray, marginal.data)
        got = float(likelihood_of(marginal.model, data, values))
    persons = [quad(of_person(responses, code, slope, scale), -12, 12)[0] for code in range(20)]
    # Binomial coefficients of the cells that were answered twice and half right.
    halves = np.asarray(responses.count) == 2 * np.asarray(responses.correct)
    assert got == pytest.approx(np.log(persons).sum() + np.log(2) * halves.sum(), abs=1e-8)


def test_the_mode_is_consistent_where_the_joint_mode_is_not() -> None:
    """With two items the maximum of the joint likelihood has twice the difference of the
    difficulties (Andersen 1973). That of the marginal one is log(n₁₀ / n₀₁) for any distribution of
    abilities, as in conditional likelihood."""
    number = {(1, 1): 200, (1, 0): 150, (0, 1): 50, (0, 0): 100}
    cells = np.repeat(list(number), list(number.values()), axis=0)
    table = {"who": np.arange(len(cells)), "q1": cells[:, 0], "q2": cells[:, 1]}
    responses = rt.Responses.from_wide(table, person="who")
    model = rt.Rasch(difficulty_scale=100.0, ability_scale_prior=100.0)
    fitted = rt.fit(model, responses, rt.PGEM(draws=0), seed=0, progress=False)
    easy, hard = fitted["mode"]["difficulty"].values
    assert hard - easy == pytest.approx(np.log(150 / 50), abs=2e-3)
    # A person's mode follows from the number right alone.
    ability = fitted["mode"]["ability"].values
    one_right = ability[cells.sum(1) == 1]
    np.testing.assert_allclose(one_right, one_right[0], atol=1e-8)
    assert ability[cells.sum(1) == 2].min() > one_right[0] > ability[cells.sum(1) == 0].max()
    assert fitted.posterior["ability"].sizes["draw"] == 1


@pytest.mark.slow
def test_abilities_are_drawn_from_their_conditional(responses) -> None:
    """Means and second moments of all abilities against quadrature; false-alarm rate below 1e-4 for
    each of 40 (|z| > 4.6, as independent draws)."""
    model, values, slope, scale = CASES["TwoPL"]
    number = 3000
    with jax.enable_x64(True):
        draws = Draws(
            {name: np.repeat(value[None, None], number, axis=1) for name, value in values.items()},
            {"log_p": np.zeros((1, number))},
            mode=values,
        )
        marginal, program = model.marginal(responses), rt.program.Program(model, responses)
        added = tables.added(program, marginal, draws, np.random.default_rng(0))
    ability = added.values["ability"][0]
    for person in range(20):
        density = of_person(responses, person, slope, scale)
        total, *moments = (moment(density, power) for power in range(5))
        for power in (1, 2):
            mean, square = moments[power - 1] / total, moments[2 * power - 1] / total
            error = np.sqrt((square - mean**2) / number)
            z = (np.mean(ability[:, person] ** power) - mean) / error
            assert abs(z) < 4.6, (person, power, z)
        grid = np.linspace(-4, 4, 4001)
        best = grid[np.argmax([density(x) for x in grid])]
        assert added.mode["ability"][person] == pytest.approx(best, abs=2e-3)


def test_em_refuses_what_does_not_fit_into_memory(responses, monkeypatch) -> None:
    monkeypatch.setattr(logistic.Logistic, "most_cells", 1000)
    program = rt.program.Program(rt.Rasch(), responses)
    reason = rt.PGEM().why_not(program)
    assert "NUTS or SVI" in reason
    assert rt.PGGibbs().why_not(program) is None


# ------------------------------------------------------------------ ideal points


def _senate(persons: int, items: int, dimensions: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    position = rng.normal(size=(persons, dimensions)) * [1.5, 0.8][:dimensions]
    slope = rng.normal(0, 1.5, (items, dimensions))
    logits = rng.normal(size=items) + position @ slope.T
    yes = rng.random(logits.shape) < 1 / (1 + np.exp(-logits))
    person, item = (grid.ravel() for grid in np.indices(yes.shape))
    votes = rt.Responses(
        person, item, yes.ravel().astype(float), None, tuple(range(persons)), tuple(range(items))
    )
    return votes, position


@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [1, 2])
def test_positions_are_recovered_up_to_a_rotation(dimensions, fit_quietly) -> None:
    votes, position = _senate(40, 80, dimensions)
    model = rt.models.IdealPoint(num_dimensions=dimensions)
    result = fit_quietly(model, votes, rt.PGGibbs(draws=150, warmup=100, chains=2))
    mean = result.posterior["position"].mean(("chain", "draw")).values
    turn = scipy.linalg.orthogonal_procrustes(mean, position)[0]
    for column in range(dimensions):
        assert np.corrcoef((mean @ turn)[:, column], position[:, column])[0, 1] > 0.9
    # On principal axes, each in the direction of the person furthest from 0.
    spread = mean.std(0)
    assert (np.diff(spread) <= 0).all()
    furthest = mean[np.argmax(np.abs(mean), axis=0), np.arange(dimensions)]
    assert (furthest > 0).all()


def test_draws_turned_at_random_come_together() -> None:
    rng = np.random.default_rng(1)
    centre = {"position": rng.normal(size=(6, 2)), "slope": rng.normal(size=(4, 2))}
    turns = [np.linalg.qr(rng.normal(size=(2, 2)))[0] for _ in range(30)]
    values = {
        name: np.stack([(site + 0.01 * rng.normal(size=site.shape)) @ turn for turn in turns])
        for name, site in centre.items()
    }
    symmetry = Rotation(("position", "slope"))
    found = turned(symmetry, values, 1)
    assert found["position"].std(0).max() < 0.05
    # Products, which the likelihood sees, are as they were.
    for name in ("position", "slope"):
        assert found[name].shape == values[name].shape
    before = np.einsum("dpk,dik->dpi", values["position"], values["slope"])
    after = np.einsum("dpk,dik->dpi", found["position"], found["slope"])
    np.testing.assert_allclose(after, before, atol=1e-9)
    single = turned(symmetry, {name: value[0] for name, value in values.items()}, 0)
    np.testing.assert_allclose(single["position"] @ single["slope"].T, before[0], atol=1e-9)
