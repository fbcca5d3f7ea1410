"""Status of a campaign: its counts, its costs, and how certain what was learned is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from raters.acquisition.campaign.certainty_rules import ExpectedAccuracy, ExpectedTau, OrderIsRight
from raters.acquisition.campaign.journal import Snapshot
from raters.acquisition.campaign.refits import Refits
from raters.acquisition.campaign.stopping import Stop
from raters.acquisition.scoring.posterior import Posterior
from raters.errors import SettingError

# Each certainty is the value of a stopping rule; its threshold is not read.
_CERTAINTIES: dict[str, Stop] = {
    "order_probability": OrderIsRight(0.5),
    "expected_tau": ExpectedTau(0.5),
    "expected_accuracy": ExpectedAccuracy(0.5),
}


@dataclass(frozen=True)
class Status:
    """Status of a campaign.

    Parameters
    ----------
    answered, open, withdrawn : int
        Number of questions with an answer, waiting for one, and withdrawn without one.
    batches : int
        Number of batches handed out.
    spent, committed : float
        Costs of the questions answered, and of the open ones.
    budget : float or None
    by_annotator : dict
        Number of questions answered by each annotator.
    fits : int
        Number of fits between batches since the campaign was opened.
    max_rhat, min_ess : float
        Diagnostics of the worst of those fits (NaN before the first). They are short on purpose;
        `Campaign.result` is not.
    order_probability, expected_tau : float or None
        Of comparisons: the posterior probability that the items are ordered as their mean rewards
        are, and the expected Kendall's τ of that order with the true one. None for labels, for a
        model without rewards, before any answer, and with ``probability=False``.
    expected_accuracy : float or None
        Of labels: the expected share of items whose most probable class is right.
    why_done : str or None
        Reason why there is nothing more to ask; None when there is.
    """

    answered: int
    open: int
    withdrawn: int
    batches: int
    spent: float
    committed: float
    budget: float | None
    by_annotator: dict[Any, int]
    fits: int
    max_rhat: float
    min_ess: float
    order_probability: float | None
    expected_tau: float | None
    expected_accuracy: float | None
    why_done: str | None


def status_of(
    snapshot: Snapshot,
    judges: tuple[Any, ...],
    budget: float | None,
    refits: Refits,
    posterior: Posterior | None,
    why_done: str | None,
) -> Status:
    """Return the status at a snapshot, with certainties where a posterior is given."""
    answered = snapshot.answered
    counts = np.bincount(snapshot.annotator[answered], minlength=len(judges)).tolist()
    return Status(
        answered=int(answered.sum()),
        open=int(snapshot.open.sum()),
        withdrawn=int((snapshot.withdrawn & ~answered).sum()),
        batches=int(snapshot.batch.max(initial=-1)) + 1,
        spent=float(snapshot.cost[answered].sum()),
        committed=float(snapshot.cost[snapshot.open].sum()),
        budget=budget,
        by_annotator=dict(zip(judges, counts, strict=True)),
        fits=refits.num_fits,
        max_rhat=refits.max_rhat,
        min_ess=refits.min_ess,
        **_certainties(posterior),
        why_done=why_done,
    )


def _certainties(posterior: Posterior | None) -> dict[str, float | None]:
    """Certainties of `Status` by name: None where they have no meaning, or without a posterior."""
    return {
        name: None if posterior is None else _certainty(rule, posterior)
        for name, rule in _CERTAINTIES.items()
    }


def _certainty(rule: Stop, posterior: Posterior) -> float | None:
    """Return the value of a stopping rule; None where it has no meaning."""
    try:
        return rule.value(posterior)
    except SettingError:
        return None
