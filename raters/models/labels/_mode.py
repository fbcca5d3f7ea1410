"""Classes at the mode of a Dawid–Skene model, beside those over the draws of a fit."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from raters.judgements.labels import Labels
from raters.models.labels import _sites
from raters.models.settings import worded

ClassProbs = Float[np.ndarray, "item true_class"]
# Share of the items above which a fit says so, and least number of them. On fourteen of fifteen
# public crowds at most 4 % differ, with accuracies within .007; on `web` 12 %, with .074 less.
_DIFFERENT, _FEWEST = 0.05, 5
# Most iterations, and most rows read in all of them: 5 iterations of 10⁶ labels, since a check
# must not take as long as the fit.
_ITERATIONS, _ROWS, _CLOSE = 100, 5_000_000, 1e-3


def mode_differs(
    responsibility: ClassProbs, concentration: ArrayLike, prevalence: float, data: Labels
) -> tuple[str, ...]:
    """Warn where the most probable classes at the mode are others than over the draws."""
    if data.label is None or not np.isfinite(responsibility).all():
        return ()
    labelled = data.judgements_by("item") > 0
    chosen = responsibility.argmax(1)
    number = int((classes_at_mode(concentration, prevalence, data) != chosen)[labelled].sum())
    share = number / max(int(labelled.sum()), 1)
    if number < _FEWEST or share <= _DIFFERENT:
        return ()
    return (worded("mode_differs", number=number, share=share),)


def classes_at_mode(
    concentration: ArrayLike, prevalence: float, data: Labels
) -> Int[np.ndarray, " item"]:
    """Most probable class of each item at the mode that EM climbs to from the vote."""
    prior = np.asarray(concentration, float)
    less = 0.0 if prior.min() < 1 else 1.0
    record = 0.0 if data.record is None else np.asarray(data.record, float)
    shares, counts = data.vote_shares(), _sites.label_counts(data)
    truth = np.full((1, 1), -1) if data.truth is None else np.asarray(data.truth)[:, None]
    excluded = (truth >= 0) & (truth != np.arange(data.num_classes))
    for _ in range(max(1, min(_ITERATIONS, _ROWS // max(data.num_rows, 1)))):
        of_class = shares.sum(0) + prevalence - 1 + 1e-12
        rows = prior - less + record + _sites.counts_by_class(counts, shares) + 1e-12
        log_rows = np.log(rows / rows.sum(-1, keepdims=True))
        by_column = log_rows.transpose(0, 2, 1).reshape(-1, data.num_classes)
        log_shares = np.log(of_class / of_class.sum()) + counts @ by_column
        log_shares = np.where(excluded, -np.inf, log_shares)
        updated = np.exp(log_shares - log_shares.max(1, keepdims=True))
        updated /= updated.sum(1, keepdims=True)
        done = np.abs(updated - shares).max() < _CLOSE
        shares = updated
        if done:
            break
    return shares.argmax(1)
