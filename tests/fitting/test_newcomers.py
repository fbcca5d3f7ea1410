"""Predictions for choosers who were fitted, and for those who were not."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.special

import raters as rt
from raters.errors import DataWarning
from tests.models.test_mixed_logit import MODELS, panel


@pytest.fixture(scope="module")
def choices() -> rt.Choices:
    return panel()


def asked_of(who: object, choices: rt.Choices) -> rt.Choices:
    """A set of alternatives 0 and 1, of which the first has more of feature 0."""
    table = {"set": [0, 0], "what": [0, 1], "who": [who, who], "feature 0": [1.0, 0.0]}
    table["feature 1"] = [0.0, 0.0]
    roles = {"set": "set", "alternative": "what", "annotator": "who"}
    features = ["feature 0", "feature 1"]
    return rt.Choices.from_frame(table, **roles, features=features, like=choices)


def test_predicts_for_known_choosers_by_their_own_coefficients(choices) -> None:
    model = rt.MixedLogit(constants=False)
    result = rt.fit(model, choices, rt.PGEM(draws=0), seed=0, progress=False)
    shares = rt.predict(model, result, asked_of(4, choices)).squeeze().values
    own = float(result.posterior["own_coefficient"].squeeze()[4, 0])
    np.testing.assert_allclose(shares[0], scipy.special.expit(own), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_predicts_for_new_choosers_by_those_of_the_population(name: str, choices) -> None:
    """The logit of a normal difference of utilities, integrated on 60 Gauss-Hermite nodes under
    each draw."""
    model = dataclasses.replace(MODELS[name], constants=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = rt.fit(model, choices, rt.PGEM(draws=200), seed=0, progress=False)
    with pytest.warns(DataWarning, match=r"1 annotator of the questions were fitted \(somebody\)"):
        shares = rt.predict(model, result, asked_of("somebody", choices))[..., 0].squeeze().values
    draws = {site: each.values[0] for site, each in result.posterior.data_vars.items()}
    # Component 0 + 2 is of the first alternative, and component 1 of the second.
    apart = (
        (draws["component_spread"] ** 2).sum(1)
        if name == "components"
        else draws["coefficient_spread"][:, 0] ** 2
    )
    nodes, weight = np.polynomial.hermite_e.hermegauss(60)
    utility = draws["coefficient"][:, :1] + np.sqrt(apart)[:, None] * nodes
    exact = scipy.special.expit(utility) @ weight / weight.sum()
    assert apart.max() > 1
    np.testing.assert_allclose(shares, exact, atol=0.04)
    np.testing.assert_allclose(shares.mean(), exact.mean(), atol=0.004)
