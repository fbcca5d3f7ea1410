"""Back-ends for models where none is given."""

import numpy as np
import pytest

import raters as rt
from raters.inference.defaults import default_backend


@pytest.mark.parametrize(
    ("model", "persons", "items", "backend"),
    [
        (rt.models.Rasch(), 30, 5, rt.PGGibbs(longest=16)),
        (rt.models.IdealPoint(), 30, 5, rt.NUTS()),
        (rt.models.Rasch(), 30, 25, rt.HMC()),
        (rt.models.IdealPoint(), 30, 25, rt.HMC()),
        (rt.models.TwoPL(), 30, 5, rt.NUTS()),
        (rt.models.TwoPL(), 3000, 5, rt.PGGibbs(longest=16)),
    ],
)
def test_responses_have_the_sampler_that_mixes(model, persons, items, backend):
    """By `benchmarks/default_backends.py`; of very many persons HMC and NUTS would take long."""
    person, item = (place.ravel() for place in np.indices((persons, items)))
    table = {"person": person, "item": item, "correct": (person * 7 + item * 5) % 3 > 0}
    columns = {name: name for name in table}
    assert default_backend(model, rt.Responses.from_frame(table, **columns)) == backend


def test_chains_of_labels_may_go_on():
    labels, _ = rt.datasets.label_crowd(10, 3, 3, 2, seed=0)
    assert default_backend(rt.DawidSkene(), labels).longest > 1
