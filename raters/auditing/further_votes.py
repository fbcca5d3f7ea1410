"""Votes that would still be needed to tell items apart, by futures drawn from the posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, ndtr

from raters.model import Values
from raters.models.comparisons.directions import competences
from raters.program import Program
from raters.terms.ties import votes_with_ties

# For each set of pairs, the pairs that are voted on.
Pairs = Int[np.ndarray, "set pair"]
Gaps = Float[np.ndarray, "draw set pair"]

# Numbers of votes that are looked at, judges who would cast them, and half a step of a derivative.
_VOTES = np.geomspace(1, 1e6, 146)
_JUDGES, _STEP = 24, 0.05


def votes_needed(
    gap: Gaps, information: Float[np.ndarray, "set pair"], level: float, rng: np.random.Generator
) -> list[Float[np.ndarray, " set"]]:
    r"""Further votes, divided evenly over the pairs of a set, until the posterior probability that
    each pair is in the likelier of its orders is at least `level` (by Bonferroni's inequality): in
    half of all futures, and the ends of an interval.

    Each draw is a future: its gaps :math:`\delta` are the truth, m votes on a pair estimate them as
    :math:`\hat\delta \sim \mathrm{Normal}(\delta, 1 / (m I))`, and the posterior, taken as normal
    about the mean of the draws, is updated by them. The interval is from the number that suffices
    in (1 − level) / 2 of the futures to the one that suffices in (1 + level) / 2; infinite beyond a
    million.
    """
    number, size = len(gap), gap.shape[-1]
    mean = gap.mean(0)
    across = np.einsum("nsp,nsq->spq", gap - mean, gap - mean) / max(number - 1, 1)
    noise, shares = rng.normal(size=gap.shape), []
    for votes in _VOTES:
        error = size / (votes * information)
        seen = gap - mean + noise * np.sqrt(error)
        gain = np.linalg.solve(across + error[..., None] * np.eye(size), across)
        after = np.einsum("spp->sp", across) - np.einsum("spq,sqp->sp", across, gain)
        expected = mean + np.einsum("nsq,sqp->nsp", seen, gain)
        wrong = ndtr(-np.abs(expected) / np.sqrt(np.maximum(after, 1e-300))).sum(-1)
        shares.append((wrong <= 1 - level).mean(0))
    # Few votes may mislead for a while: a share counts once it is not left again.
    least = np.minimum.accumulate(np.stack(shares)[::-1])[::-1]
    grid = np.append(np.ceil(_VOTES), np.inf)
    ends = (0.5, (1 - level) / 2, (1 + level) / 2)
    return [grid[(least < end).sum(0)] for end in ends]


def information(
    program: Program[Any], draws: Values, gap: Gaps, one: Pairs, other: Pairs
) -> Float[np.ndarray, "set pair"]:
    """Fisher's information of one vote about the gap of each pair, over the judges who have voted.

    Where judges have tastes of their own, each votes once, and the information is that of votes
    averaged over their tastes."""
    data, shape = program.data, gap.shape
    votes = data.judgements_by(data.judge)
    judges = np.random.default_rng(0).choice(len(votes), _JUDGES, p=votes / votes.sum())
    competence = competences(program, draws) if "competence" in draws else None
    taste = draws.get("taste")

    def probs(shift: float) -> Float[np.ndarray, "judge answer draw set pair"]:
        each = []
        for code in judges:
            logits = gap + shift
            if taste is not None:
                logits = logits + taste[:, code, one] - taste[:, code, other]
            if competence is not None:
                logits = logits * competence[:, code, None, None]
            flat = logits.reshape(len(logits), -1)
            tied = votes_with_ties(program.model, draws, flat, code)
            answers = np.stack([expit(flat), expit(-flat)])
            if tied is not None:
                answers = np.moveaxis(np.exp(np.asarray(tied.log_probs())), -1, 0)
            each.append(answers.reshape(-1, *shape))
        table = np.stack(each)
        return table if taste is None else table.mean(0, keepdims=True)

    up, down = probs(_STEP), probs(-_STEP)
    slope, mean = (up - down) / (2 * _STEP), (up + down) / 2
    each: np.ndarray = (slope**2 / np.maximum(mean, 1e-12)).sum(1)
    return np.maximum(each.mean((0, 1)), 1e-12)
