"""The verb: what it returns, what it asks by default, and what it refuses."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import raters as rt
from raters.acquisition import Top
from raters.errors import DataWarning
from tests import hand
from tests.acquisition.crowd import DRAWS, MODEL, PAIRS, RESULT, RNG, VOTES, wins

EVERY = rt.Policy(target="everything", batch=Top())


def ask(**options):
    return rt.suggest(MODEL, RESULT, options.pop("candidates", PAIRS), draws=DRAWS, **options)


def test_a_guesser_is_not_worth_asking():
    for policy in (EVERY, rt.Policy(target="ranking", batch=Top())):
        found = ask(batch_size=1000, policy=policy)
        guesser = found["by"].values == 2
        assert guesser.sum() == 15
        assert np.abs(found["score"].values[guesser]).max() < 1e-5
        np.testing.assert_allclose(found["p_win"].values[guesser], 0.5, atol=1e-6)
        assert found["score"].values[~guesser].min() > 1e-4


def test_probabilities_are_means_over_the_draws():
    found = ask(batch_size=1000, policy=EVERY).to_dataframe()
    found = found.set_index(["first", "second", "by"])["p_win"]
    asked = list(zip(PAIRS.first, PAIRS.second, PAIRS.annotator, strict=True))
    assert len(found) == len(asked) == 60
    np.testing.assert_allclose([found[key] for key in asked], wins().mean(0), atol=1e-5)


def test_settled_data_leave_nothing_to_ask():
    order = np.arange(6.0)
    settled = hand.result(
        VOTES, reward=3 * order + RNG.uniform(size=(DRAWS, 6)), competence=np.ones((DRAWS, 4))
    )
    with pytest.warns(DataWarning, match="all questions score 0"):
        rt.suggest(MODEL, settled, PAIRS, draws=DRAWS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rt.suggest(MODEL, settled, PAIRS, target="reward", draws=DRAWS)
        ask()
        # Who is owed a share is asked, though the guesser's answers tell nothing: others would.
        assert ask(policy=rt.Policy(least_share=0.25), batch_size=1)["by"].values == [2]
    with pytest.warns(DataWarning, match="nobody may be asked: the quotas are used up"):
        assert ask(policy=rt.Policy(quota=0)).sizes["suggestion"] == 0


# ------------------------------------------------------------------ the batch


def test_a_pair_shown_the_other_way_round_is_the_same_pair():
    names = VOTES.items, VOTES.annotators
    flipped = rt.Comparisons([0, 1, 2], [1, 0, 0], [0, 1, 0], None, None, *names, True)
    assert ask(candidates=flipped, batch_size=10).sizes["suggestion"] == 2
    assert ask(candidates=flipped, batch_size=10, policy=EVERY).sizes["suggestion"] == 3
