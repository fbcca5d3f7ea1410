"""Quantities of an audit of comparisons whose annotators have rewards of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int
from scipy.special import expit, log_expit, logsumexp

from raters.fitting.result import draws_of
from raters.judgements.comparisons import Comparisons
from raters.kinds import Quantities
from raters.model import Values
from raters.program import Program

PerPair = Float[np.ndarray, " pair"]

# Quantities are computed under so many draws at most, and from so many different pairs of an
# annotator.
_DRAWS, _PAIRS = 1000, 2000
# Correlation with the crowd's rewards below which an annotator has a taste of their own, and below
# whose negative an annotator is an adversary.
_ANOTHER = 0.5


def quantities(program: Program[Any], result: xr.DataTree, margin: float) -> Quantities:
    """Own rewards of each annotator, beside those of the crowd."""
    draws, _ = draws_of(program, result, _DRAWS)
    rng, data = np.random.default_rng(0), program.data.unpadded()
    of_each = [
        _of_annotator(draws, code, data.rows(rows), rng)
        for code, rows in enumerate(_rows(data, rng))
    ]
    every, weights = zip(*of_each, strict=True)
    values = {name: np.stack([each[name] for each in every], axis=1) for name in every[0]}
    weight = np.array(weights)
    flips = _shares(weight * (data.judgements_by(data.judge) > 0), len(values["competence"]), rng)
    competence = values["competence"] = np.where(flips, 0.0, values["competence"])
    values["accuracy"] = np.where(flips, 0.5, values["accuracy"])
    guesses = values["own_accuracy"] < 0.5 + margin
    reverse = values["taste_agreement"] < -_ANOTHER
    different = (values["taste_agreement"] < _ANOTHER) & ~reverse & ~guesses
    return Quantities(
        values=values,
        judged="competence",
        columns={
            "relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0),
            "p_careless": weight + (1 - weight) * guesses.mean(0),
            "p_different_taste": (1 - weight) * different.mean(0),
            "p_adversarial": (1 - weight) * (reverse & ~guesses).mean(0),
        },
    )


def _shares(
    weight: Float[np.ndarray, " annotator"], number: int, rng: np.random.Generator
) -> Bool[np.ndarray, "draw annotator"]:
    """Random draws of each annotator, as many as the weight says."""
    ranks = rng.permuted(np.tile(np.arange(number), (len(weight), 1)), axis=1).T
    return np.asarray((ranks + 0.5) / number < weight)


def _rows(data: Comparisons, rng: np.random.Generator) -> list[Int[np.ndarray, " pair"]]:
    """Rows of each annotator; of many, some drawn by their votes."""
    count = np.asarray(data.weight, float)
    order = np.argsort(data.annotator, kind="stable")
    ends = np.cumsum(np.bincount(data.annotator, minlength=data.num_annotators))
    each = np.split(order, ends[:-1])
    for code, rows in enumerate(each):
        if len(rows) > _PAIRS:
            share = count[rows] / count[rows].sum()
            each[code] = rng.choice(rows, _PAIRS, replace=False, p=share)
    return each


def _of_annotator(
    draws: Values, code: int, compared: Comparisons, rng: np.random.Generator
) -> tuple[dict[str, Float[np.ndarray, " draw"]], float]:
    """Quantities of one annotator, and the weight of coin flips."""
    reward, first, second = draws["reward"], compared.first, compared.second
    votes, wins = np.asarray(compared.weight, float), np.asarray(compared.wins, float)
    num_items = reward.shape[1]
    if not votes.sum() > 0:  # All is prior, on any pairs.
        first = rng.integers(num_items, size=200)
        second = (first + rng.integers(1, num_items, size=200)) % num_items
        votes, wins = np.ones(200), np.full(200, np.nan)
    share = votes / votes.sum()
    crowd = reward[:, first] - reward[:, second]
    own = crowd + _liked(draws, code, first) - _liked(draws, code, second)
    if "competence" in draws:
        own = own * draws["competence"][:, code, None]
    both, of_crowd, of_own = (
        np.maximum(one * other @ share, least)
        for one, other, least in ((own, crowd, -np.inf), (crowd, crowd, 1e-300), (own, own, 1e-300))
    )
    values = {
        "competence": both / of_crowd,
        "accuracy": expit(own * np.sign(crowd)) @ share,
        "taste_agreement": both / np.sqrt(of_crowd * of_own),
        "consistency": np.sqrt(of_own / of_crowd),
        "own_accuracy": expit(np.abs(own)) @ share,
    }
    if np.isnan(wins).any():
        return values, 0.5
    bias = draws["position_bias"][:, code, None] if "position_bias" in draws else np.zeros((1, 1))
    gain = _predictive(own + bias, votes, wins) - _predictive(bias + 0 * own, votes, wins)
    return values, float(expit(-gain))


def _liked(
    draws: Values, code: int, item: Int[np.ndarray, " pair"]
) -> Float[np.ndarray, "draw pair"]:
    """Taste of an annotator for some items."""
    if "taste" in draws:
        return np.asarray(draws["taste"][:, code, item])
    position, loading = (np.asarray(draws[name]) for name in ("position", "loading"))
    return np.asarray(np.einsum("nd,npd->np", position[:, code], loading[:, item]))


def _predictive(logits: Float[np.ndarray, "draw pair"], votes: PerPair, wins: PerPair) -> float:
    """Expected log predictive density of an annotator's votes, by WAIC."""
    each = wins * log_expit(logits) + (votes - wins) * log_expit(-logits)
    return float((logsumexp(each, axis=0) - np.log(len(each)) - each.var(0)).sum())
