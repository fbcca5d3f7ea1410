"""Verdicts where the answers tell nothing of who is good enough."""

import numpy as np

import raters as rt
from tests import hand

MODEL = rt.ExtendedBTL(reward_scale=1.0, competence_spread=0.5)
DRAWS = {
    "reward": np.random.default_rng(0).normal(size=(200, 2)),
    "competence": np.random.default_rng(1).uniform(0.3, 1, size=(200, 2)),
}


def test_nobody_is_kept_by_the_prior_alone() -> None:
    ties = hand.ordered_votes(*[(0, 1, "tie", who) for who in "xy" * 6], ties="half")
    alone = hand.votes(*[(0, 1, "x")] * 8 + [(1, 0, "x")] * 4)
    told = hand.votes(*[(0, 1, "x")] * 6 + [(1, 0, "y")] * 6)
    for votes, verdict in ((ties, "review"), (alone, "review"), (told, "keep")):
        draws = DRAWS | {"competence": DRAWS["competence"][:, : votes.num_annotators]}
        result = hand.result(votes, **draws)
        audit = rt.audit(MODEL, result)
        assert set(audit.table["verdict"].values) == {verdict}, votes
