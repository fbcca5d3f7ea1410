"""Back-ends for models where none is given."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.inference.defaults import default_backend, quick_backend
from raters.model import read_by


@pytest.mark.parametrize(
    ("model", "persons", "items", "backend"),
    [
        (rt.models.Rasch(), 30, 5, rt.HMC(longest=16)),
        (rt.models.IdealPoint(), 30, 5, rt.NUTS()),
        (rt.models.Rasch(), 30, 25, rt.HMC(longest=16)),
        (rt.models.IdealPoint(), 30, 25, rt.HMC(longest=16)),
        (rt.models.TwoPL(), 30, 5, rt.NUTS()),
        (rt.models.TwoPL(), 30, 25, rt.HMC(longest=16)),
        (rt.models.TwoPL(), 3000, 5, rt.PGGibbs(longest=16)),
    ],
)
def test_responses_have_the_sampler_that_mixes(model, persons, items, backend):
    """By `benchmarks/default_backends.py`; of very many persons HMC and NUTS would take long."""
    person, item = (place.ravel() for place in np.indices((persons, items)))
    table = {"person": person, "item": item, "correct": (person * 7 + item * 5) % 3 > 0}
    columns = {name: name for name in table}
    data = rt.Responses.from_frame(table, **columns)
    assert default_backend(rt.program.Program(model, data)) == backend


@pytest.mark.parametrize(
    ("model", "number", "backend"),
    [
        (rt.BTL(), 400, rt.PGGibbs),
        (rt.BTL(), 600, rt.HMC),
        (rt.ExtendedBTL("signed"), 600, rt.HMC),
        (rt.ExtendedBTL(), 600, rt.PGGibbs),
        (rt.HierarchicalBTL(), 600, rt.PGGibbs),
        (rt.MixtureBTL(), 600, rt.PGGibbs),
    ],
)
def test_many_votes_are_for_hamiltonian_monte_carlo(model, number, backend):
    votes, _ = rt.datasets.paper(num_items=4, num_annotators=3, num_votes=number, seed=0)
    assert default_backend(rt.program.Program(model, votes)) == backend(longest=16)


def test_ties_and_rankings_are_for_hamiltonian_monte_carlo(tied_ranks, ranked):
    votes, _ = rt.datasets.paper(num_items=4, num_annotators=3, num_votes=600, seed=0)
    table = votes.to_frame()
    table["outcome"] = np.where(np.arange(len(table)) % 4 == 0, "tie", table["outcome"])
    columns = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    tied = rt.Comparisons.from_frame(table, **columns, ties="keep")
    for model, data in (
        (rt.BTL(ties="davidson"), tied),
        (rt.PlackettLuce(ties="davidson"), tied_ranks),
        (rt.ExtendedPlackettLuce(), ranked),
    ):
        assert type(default_backend(rt.program.Program(model, data))) is rt.HMC


def _many_responses() -> rt.Responses:
    """More responses than short chains are for where there is a mode."""
    responses, _ = rt.datasets.response_crowd(150, 350, seed=0)
    return responses


def test_a_quick_answer_is_by_short_chains_where_these_are_the_default(few, ranked):
    labels, _ = rt.datasets.label_crowd(10, 3, 3, 2, seed=0)
    for model, data, backend in (
        (rt.PlackettLuce(), ranked, rt.HMC(draws=200, warmup=100, chains=2)),
        (rt.ExtendedBTL(), few, rt.PGEM()),
        (rt.DawidSkene(), labels, rt.PGEM()),
        (rt.models.IdealPoint(), _many_responses(), rt.HMC(draws=200, warmup=100, chains=2)),
    ):
        assert quick_backend(rt.program.Program(model, data)) == backend


def test_a_prior_of_the_user_that_is_not_normal_is_for_nuts(few):
    model = rt.ExtendedBTL(prior={"competence": dist.Beta(2.0, 2.0)})
    assert default_backend(rt.program.Program(model, few)) == rt.NUTS()


def _effects(group, whitened, y=None):
    """Effects of a learned scale, in one of two forms."""
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    effect = numpyro.sample("effect", dist.Normal(0.0, 1.0 if whitened else scale).expand([3]))
    effect = scale * effect if whitened else effect
    numpyro.sample("obs", dist.Bernoulli(logits=effect[group]), obs=y)


@pytest.mark.parametrize(
    ("whitened", "backend"), [(True, rt.NUTS()), (False, rt.PGGibbs(longest=16))]
)
def test_a_scale_that_enters_the_log_odds_by_itself_is_for_nuts(whitened, backend):
    model = rt.models.numpyro_model(_effects, observed="y")
    data = {"group": np.arange(12) % 3, "whitened": whitened, "y": np.arange(12) % 2}
    assert default_backend(rt.program.Program(model, read_by(model, data))) == backend


def test_vectors_of_single_judges_are_for_hmc():
    choices, _ = rt.datasets.choice_crowd(seed=0)
    program = rt.program.Program(rt.models.MixedLogit(), choices)
    assert isinstance(default_backend(program), rt.HMC)


def test_chains_of_labels_may_go_on():
    labels, _ = rt.datasets.label_crowd(10, 3, 3, 2, seed=0)
    assert default_backend(rt.program.Program(rt.DawidSkene(), labels)).longest > 1
