"""Back-ends for models where none is given."""

import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.inference.defaults import default_backend, quick_backend
from raters.model import read_by


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (rt.models.TwoPL(), rt.datasets.response_crowd(30, 5, seed=0)[0]),
        (rt.models.ManyFacet(), rt.datasets.rating_crowd(20, 4, 3, seed=0)[0]),
        (rt.MixtureBTL(), rt.datasets.paper(4, 3, 90, seed=0)[0]),
    ],
)
def test_all_but_labels_are_for_hamiltonian_monte_carlo(model, data):
    assert default_backend(rt.program.Program(model, data)) == rt.HMC(longest=16)


def test_ties_rankings_and_choices_are_for_hamiltonian_monte_carlo(tied_ranks, ranked):
    votes, _ = rt.datasets.paper(num_items=4, num_annotators=3, num_votes=600, seed=0)
    table = votes.to_frame()
    table["outcome"] = np.where(np.arange(len(table)) % 4 == 0, "tie", table["outcome"])
    columns = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    tied = rt.Comparisons.from_frame(table, **columns, ties="keep")
    for model, data in (
        (rt.BTL(ties="davidson"), tied),
        (rt.PlackettLuce(ties="davidson"), tied_ranks),
        (rt.ExtendedPlackettLuce(), ranked),
        (rt.models.MixedLogit(), rt.datasets.choice_crowd(seed=0)[0]),
    ):
        own = rt.HMC(draws=500, warmup=200, longest=16)
        assert default_backend(rt.program.Program(model, data)) == own


def test_a_quick_answer_is_by_short_chains_where_these_are_the_default(ranked):
    """Of more than 50,000 rows, short chains are for models without a mode."""
    labels, _ = rt.datasets.label_crowd(10, 3, 3, 2, seed=0)
    many, _ = rt.datasets.response_crowd(150, 350, seed=0)
    for model, data, backend in (
        (rt.PlackettLuce(), ranked, rt.HMC(draws=200, warmup=100, chains=2)),
        (rt.DawidSkene(), labels, rt.PGEM()),
        (rt.models.IdealPoint(), many, rt.HMC(draws=200, warmup=100, chains=2)),
        (rt.models.Rasch(), many, rt.PGEM()),
    ):
        assert quick_backend(rt.program.Program(model, data)) == backend


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


def test_chains_of_labels_may_go_on():
    labels, _ = rt.datasets.label_crowd(10, 3, 3, 2, seed=0)
    assert default_backend(rt.program.Program(rt.DawidSkene(), labels)).longest > 1
