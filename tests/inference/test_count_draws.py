"""Many draws of a counted site at once: those that are made one by one."""

from __future__ import annotations

import numpy as np
import pytest

from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.latent_classes import Breaks, Counts


@pytest.mark.parametrize(
    "parameters",
    [
        (np.random.default_rng(0).uniform(0.1, 20, (6, 4, 4)),),
        (np.random.default_rng(0).uniform(0.1, 20, (5, 9)),),
        tuple(np.random.default_rng(0).uniform(0.1, 20, (2, 30))),
    ],
    ids=["few classes", "many classes", "shares"],
)
@pytest.mark.parametrize("at_a_time", [1, 100, 10_000])
def test_draws_are_those_made_one_by_one(parameters, at_a_time, monkeypatch) -> None:
    monkeypatch.setattr(latent_classes, "_AT_A_TIME", at_a_time)
    counts = Counts(parameters)
    current = np.zeros(np.size(parameters[0]))
    drawn = counts.draws(np.random.default_rng(1), current, 7)
    rng = np.random.default_rng(1)
    np.testing.assert_array_equal(drawn, [counts.draw(rng, current) for _ in range(7)])


def test_other_conditionals_draw_one_by_one() -> None:
    breaks = Breaks((np.array([2.0, 3.0]), np.array([4.0, 1.0])))
    drawn = breaks.draws(np.random.default_rng(0), np.zeros(3), 5)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(drawn, [breaks.draw(rng, np.zeros(3)) for _ in range(5)])
