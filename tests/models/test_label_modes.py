"""Classes at the mode of Dawid and Skene's model beside those over the draws."""

import dataclasses

import numpy as np
import pytest

import raters as rt
from raters.models.labels import _sites
from raters.models.labels.confusion import classes_at_mode

CROWD, TRUTH = rt.datasets.label_crowd(60, 6, 5, 3, spammers=0.0, num_features=2, seed=0)


def prior(labels: rt.Labels, diagonal: float = 1.0, off: float | None = None) -> np.ndarray:
    return np.asarray(_sites.concentration(diagonal, off, labels.num_classes))


@pytest.mark.parametrize(("diagonal", "off"), [(1.0, None), (5.0, 1.0)])
def test_the_mode_is_that_of_em(fit_quietly, diagonal: float, off: float | None) -> None:
    model = rt.DawidSkene(diagonal=diagonal, off_diagonal=off)
    found = fit_quietly(model, CROWD, rt.PGEM(draws=0), seed=0)["classes"]["responsibility"]
    chances = found.transpose("item", "true_class").values
    clear = chances.max(1) > 0.6
    own = classes_at_mode(prior(CROWD, diagonal, off), 1.0, CROWD)
    assert clear.mean() > 0.9
    assert (own == chances.argmax(1))[clear].all()


def test_repeated_labels_count_and_known_classes_stay() -> None:
    twice = dataclasses.replace(CROWD, count=np.full(CROWD.num_rows, 2.0, np.float32))
    rows = np.repeat(np.arange(CROWD.num_rows), 2)
    repeated = CROWD.rows(rows)
    concentration = prior(CROWD)
    same = classes_at_mode(concentration, 1.0, twice)
    np.testing.assert_array_equal(same, classes_at_mode(concentration, 1.0, repeated))
    wrong = (classes_at_mode(concentration, 1.0, CROWD)[:2] + 1) % CROWD.num_classes
    known = {CROWD.items[place]: CROWD.classes[code] for place, code in enumerate(wrong)}
    anchored = classes_at_mode(concentration, 1.0, CROWD.with_truth(known))
    np.testing.assert_array_equal(anchored[:2], wrong)
