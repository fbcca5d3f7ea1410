"""Calibration of models of demonstrations: ranks of whole fits by NUTS, whose moves along the scale
orbit and to the mirror image are part of them, and Geweke's test of the Gibbs kernel of lapses."""

from __future__ import annotations

import numpy as np
import pytest

import raters as rt
from raters.checking import sbc
from raters.checking.calibration import uniformity
from raters.inference import nuts
from raters.inference.polya_gamma import latent_classes, line
from tests.statistical.joint import BOUND, LEVEL, short, smallest, worst


@pytest.fixture(scope="module")
def to_show() -> rt.Demonstrations:
    """Ten steps of two demonstrators in a grid of 4 cells."""
    data = rt.datasets.demonstration_crowd(2, 2, 2, 1, 5, seed=0, num_features=2).demonstrations
    return data.unanswered()


def ranks_of(data: rt.Demonstrations):
    backend = rt.NUTS(draws=120, warmup=120, chains=1, max_tree_depth=5)
    return sbc(rt.MaxEntIRL(), data, backend, seed=0, replicates=60, draws=19, progress=False)


@pytest.mark.exhaustive
def test_ranks_of_rewards_and_rationalities_are_uniform(to_show) -> None:
    """60 replicates; false-alarm rate 1e-4, all quantities together."""
    ranks = ranks_of(to_show)
    assert smallest(ranks) > LEVEL, str(uniformity(ranks))


@pytest.mark.exhaustive
def test_an_orbit_without_its_volume_is_caught(to_show, monkeypatch) -> None:
    monkeypatch.setattr(line, "orbit_power", lambda values, scale: 0)
    nuts._advance.clear_cache()
    many = rt.datasets.demonstration_crowd(2, 2, 12, 1, 5, seed=0, num_features=2).demonstrations
    try:
        assert smallest(ranks_of(many.unanswered())) < LEVEL
    finally:
        nuts._advance.clear_cache()


def test_the_kernel_of_lapses_leaves_the_joint_distribution_invariant(to_show) -> None:
    result = short(rt.models.BehaviouralCloning(), to_show)
    assert worst(result) < BOUND, str(result["z"].to_series())


@pytest.mark.exhaustive
def test_lapses_of_the_wrong_share_are_caught(to_show, monkeypatch) -> None:
    right = latent_classes.drawn

    def wrong(model, data, values, key):
        return right(model, data, values | {"competence": values["competence"] ** 2}, key)

    monkeypatch.setattr(latent_classes, "drawn", wrong)
    result = short(rt.models.BehaviouralCloning(), to_show)
    assert worst(result) > BOUND


def test_rewards_and_rationalities_are_recovered(fit_quietly) -> None:
    """|z| < 5 on the scale of the crowd's mean: false-alarm rate below 1e-4 in all, were the
    posterior normal."""
    data, truth = rt.datasets.demonstration_crowd(
        3, 3, 12, 6, 10, seed=3, num_features=2, careless=0.17, adversaries=0.17
    )
    result = fit_quietly(rt.MaxEntIRL(), data, rt.NUTS(draws=250, warmup=250, chains=2))
    draws = {
        name: result.posterior[name].values.reshape(-1, result.posterior[name].shape[-1])
        for name in ("coefficient", "rationality")
    }
    scale = np.abs(draws["rationality"]).mean(1, keepdims=True)
    true_scale = np.abs(truth["rationality"]).mean()
    found = {
        "rationality": (draws["rationality"] / scale, truth["rationality"] / true_scale),
        "coefficient": (draws["coefficient"] * scale, truth["coefficient"] * true_scale),
    }
    for values, true in found.values():
        assert (np.abs(values.mean(0) - true) < 5 * values.std(0)).all()
        assert (values.std(0) < 0.5).all()
    below = (draws["rationality"] < 0).mean(0)
    assert below[truth["kind"] == "adversary"].min() > 0.99
    assert below[truth["kind"] == "competent"].max() < 0.01
