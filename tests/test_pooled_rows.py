"""Equal rows of different groups as one: as from all rows, and only where that holds."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.inference.polya_gamma import latent_classes, plans, sums, sweep
from raters.judgements.comparisons import Comparisons
from raters.program import PooledRows, Program, pooled_rows, scattered


@pytest.fixture(autouse=True)
def _small(monkeypatch) -> None:
    monkeypatch.setattr(pooled_rows, "_FEW_ROWS", 0)


@pytest.fixture(scope="module")
def votes() -> Comparisons:
    """Votes by 60 annotators of two types on 5 items, some several times."""
    return rt.datasets.preference_types(5, 60, 12, 2, seed=0).votes


def _pooled(model, data):
    start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
    program = Program(model, data)
    point = scattered(start, program.supports, np.random.default_rng(1), least=0.3)
    return program, point, PooledRows.of(program, start)


@pytest.mark.slow
@pytest.mark.parametrize("known", [False, True])
def test_distinct_rows_give_what_all_rows_give(votes, known) -> None:
    model = rt.MixtureBTL(num_types=2, reward_scale=2.0)
    data = votes.padded(votes.num_rows + 7) if known else votes
    with jax.enable_x64(True):
        _, point, pooled = _pooled(model, data)
        assert pooled is not None
        assert pooled.rows.num_rows < data.num_rows / 3
        classes, total = pooled.expected(point)
        expected, log_likelihood = latent_classes.expected(model, data, point)
        np.testing.assert_allclose(classes.groups, expected, atol=1e-10)
        assert total == pytest.approx(float(log_likelihood), abs=1e-10 * abs(total))
        of_all = latent_classes.parameters(model, data, point, expected, "type_weight")
        of_few = latent_classes.parameters(model, pooled.rows, point, classes, "type_weight")
        np.testing.assert_allclose(of_few[0], of_all[0], atol=1e-10)
        program = Program(model, data)
        plan = plans.plan(program, point)
        how, row = sums.How("curvature"), data.first_unit()
        of_all, of_few = (
            sweep.climbed(plan, how, rows, row, jax.tree.map(jnp.asarray, point), {"": given})[0]
            for rows, given in ((data, expected), (pooled.rows, classes))
        )
        for name in point:
            np.testing.assert_allclose(of_few[name], of_all[name], atol=1e-9)


def test_em_ends_where_it_does_without(votes, monkeypatch) -> None:
    model, backend = rt.MixtureBTL(num_types=2, reward_scale=2.0), rt.PGEM(draws=0, starts=1)
    program, key = Program(model, votes), jax.random.key(0)
    pooled = backend.run(program, key)
    monkeypatch.setattr(PooledRows, "of", lambda *_: None)
    plain = backend.run(program, key)
    assert pooled.facts["log_joint"] == pytest.approx(plain.facts["log_joint"], abs=1e-6)
    np.testing.assert_allclose(pooled.mode["reward"], plain.mode["reward"], atol=1e-4)


def test_competences_of_the_groups_are_not_pooled(votes) -> None:
    with jax.enable_x64(True):
        model = rt.MixtureBTL(num_types=2, competence="positive", reward_scale=2.0)
        assert _pooled(model, votes)[2] is None


@dataclass(frozen=True)
class _AmongOthers(rt.MixtureBTL):
    """A mixture whose rows depend on each other: margins are centred over the rows."""

    def generate(self, data: Comparisons) -> None:
        weight = numpyro.sample("type_weight", dist.Dirichlet(jnp.ones(self.num_types)))
        with numpyro.plate("item", data.num_items, dim=-2), numpyro.plate("type", self.num_types):
            reward = numpyro.sample("reward", dist.Normal(0.0, 1.0))
        margin = reward[data.first] - reward[data.second]
        votes = rt.distributions.Votes(margin - margin.mean(0), data.weight[:, None])
        with numpyro.plate("annotator", data.num_annotators):
            mixture = rt.distributions.GroupedMixture(
                dist.Categorical(probs=weight), votes, data.annotator, data.num_annotators
            )
            facts = {"unit": "annotator", "latent_class": "type"}
            numpyro.sample("outcome", mixture, obs=data.wins, infer=facts)


def test_rows_that_depend_on_each_other_are_not_pooled(votes) -> None:
    with jax.enable_x64(True):
        assert _pooled(_AmongOthers(num_types=2, reward_scale=1.0), votes)[2] is None
