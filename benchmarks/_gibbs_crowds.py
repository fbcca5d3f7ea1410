"""Extended-BTL and the score of the default policy in NumPy, without raters: Gibbs sampling for
several crowds at once, and batches of questions from its draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from polyagamma import random_polyagamma
from scipy.special import expit, gammainc, gammaincinv, ndtr, ndtri

ITEMS, ANNOTATORS, SIZE, DRAWS, WARMUP, SCALE = 20, 10, 19, 300, 40, 2.3
FIRST, SECOND = np.triu_indices(ITEMS, 1)
PAIRS = len(FIRST)
# Candidates, the best by score, that a batch is from.
SHORTLIST = 400


class Draws(NamedTuple):
    """Draws of one crowd's posterior."""

    reward: np.ndarray
    competence: np.ndarray


# ---------------------------------------------------------------- the posterior, for several crowds


class Sampler:
    """Gibbs sampling of Extended-BTL for several crowds that have equally many answers."""

    def __init__(self, rng: np.random.Generator, crowds: int) -> None:
        self.rng, self.crowds = rng, crowds
        self.reward = np.zeros((crowds, ITEMS))
        self.competence = np.full((crowds, ANNOTATORS), 0.5)
        # Of the audits: their precision, and the precision times what they measured.
        self.audited = np.zeros((2, self.crowds, ANNOTATORS))

    def draws(self, pair: np.ndarray, who: np.ndarray, won: np.ndarray) -> list[Draws]:
        """Draws after these answers, each of shape (crowd, answer)."""
        reward = np.empty((DRAWS, self.crowds, ITEMS))
        competence = np.empty((DRAWS, self.crowds, ANNOTATORS))
        crowd = np.arange(self.crowds)[:, None]
        sides = FIRST[pair] + ITEMS * crowd, SECOND[pair] + ITEMS * crowd
        flat = [each.ravel() for each in (*sides, who + ANNOTATORS * crowd, won - 0.5)]
        for sweep in range(-WARMUP, DRAWS):
            if pair.shape[1]:
                self._sweep(*flat)
            else:
                self.reward = self.rng.normal(0, SCALE, self.reward.shape)
                self.competence = self.rng.random(self.competence.shape)
            if sweep >= 0:
                reward[sweep], competence[sweep] = self.reward, self.competence
        return [Draws(reward[:, one], competence[:, one]) for one in range(self.crowds)]

    def _sweep(self, first: np.ndarray, second: np.ndarray, who: np.ndarray, won: np.ndarray):
        """Pólya-Gamma variables, competences, rewards, and the scale that they share."""
        gap = self.reward.ravel()[first] - self.reward.ravel()[second]
        logit = self.competence.ravel()[who] * gap
        weight = random_polyagamma(1.0, logit, method="devroye", random_state=self.rng)
        self._draw_competence(gap, weight, who, won)
        own = self.competence.ravel()[who]
        self._draw_reward(first, second, weight * own * own, won * own)
        self._move_scale()

    def _draw_competence(self, gap, weight, who, won) -> None:
        """From a normal distribution within [0, 1]; of the prior, 0.5 ± 10, little is seen."""
        shape = self.competence.shape
        precision = np.bincount(who, weight * gap * gap, self.competence.size).reshape(shape)
        shift = np.bincount(who, won * gap, self.competence.size).reshape(shape)
        precision, shift = precision + 0.01 + self.audited[0], shift + 0.005 + self.audited[1]
        mean, spread = shift / precision, 1 / np.sqrt(precision)
        # From the tail on the far side of the interval, where probabilities are not near 1.
        side = np.where(mean > 0.5, -1.0, 1.0)
        near = side * (np.where(mean > 0.5, 1.0, 0.0) - mean) / spread
        low, high = ndtr(near), ndtr(near + 1 / spread)
        chance = np.clip(low + self.rng.random(shape) * (high - low), 1e-300, 1 - 1e-16)
        self.competence = np.clip(mean + side * spread * ndtri(chance), 0.0, 1.0)

    def _draw_reward(self, first, second, weight, shift) -> None:
        """From a normal distribution whose precision is a graph Laplacian plus the prior's."""
        size = self.crowds * ITEMS
        cells = np.bincount(first * ITEMS + second % ITEMS, weight, size * ITEMS)
        cells = cells.reshape(self.crowds, ITEMS, ITEMS)
        precision = -(cells + cells.transpose(0, 2, 1))
        diagonal = np.arange(ITEMS)
        precision[:, diagonal, diagonal] = SCALE**-2 - precision.sum(2)
        total = np.bincount(first, shift, size) - np.bincount(second, shift, size)
        root = np.linalg.cholesky(precision)
        half = np.linalg.solve(root, total.reshape(self.crowds, ITEMS, 1))
        half += self.rng.normal(size=half.shape)
        self.reward = np.linalg.solve(root.transpose(0, 2, 1), half)[..., 0]

    def _move_scale(self) -> None:
        """Rewards times c and competences over c, which answers do not see: c² is Gamma
        distributed, and no competence may be above 1. Audits see it, and decide on the proposal."""
        shape = (ITEMS - ANNOTATORS) / 2
        rate = (self.reward**2).sum(1) / (2 * SCALE**2)
        least = self.competence.max(1) ** 2
        low = gammainc(shape, least * rate)
        chance = np.minimum(low + self.rng.random(self.crowds) * (1 - low), 1 - 1e-14)
        scale = np.sqrt(np.maximum(gammaincinv(shape, chance) / rate, least))[:, None]
        precision, shift = self.audited
        new = self.competence / scale
        change = precision * (self.competence**2 - new**2) / 2 + shift * (new - self.competence)
        moves = np.log(self.rng.random(self.crowds)) < change.sum(1)
        self.reward = np.where(moves[:, None], self.reward * scale, self.reward)
        self.competence = np.where(moves[:, None], new, self.competence)


# ---------------------------------------------------------------- a batch


class Greedy:
    """Questions by the expected fall of the variance of their pair's order, each given the answers
    to those before it, as of `target="ranking"`."""

    def __init__(self, draws: Draws) -> None:
        gap = (draws.reward[:, FIRST] - draws.reward[:, SECOND]).astype(np.float32)
        self.gap, self.draws, self.root = gap, draws, np.float32(np.sqrt(len(gap)))
        self.order = self._centred((gap > 0).astype(np.float32))
        chance = expit(draws.competence[:, :, None].astype(np.float32) * gap[:, None])
        mean = chance.mean(0).ravel()
        self.answer = self._centred(chance).reshape(len(gap), -1)
        self.variance = np.maximum(mean * (1 - mean), 1e-9)
        own = np.einsum("skq,sq->kq", self.answer.reshape(chance.shape), self.order)
        self.own = own.ravel()
        self.pair = np.tile(np.arange(PAIRS), ANNOTATORS)
        self.who = np.repeat(np.arange(ANNOTATORS), PAIRS)

    def _centred(self, values: np.ndarray) -> np.ndarray:
        return (values - values.mean(0)) / self.root

    def choose(
        self,
        quota: np.ndarray | None = None,
        factor: np.ndarray | None = None,
        bonus: np.ndarray | None = None,
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Rows of (pair, annotator), the fall of the variances, and the covariance of what the
        competences are worth (see `worth`) after the answers.

        With a quota each annotator gets as many questions; a factor multiplies the scores of each;
        a bonus weighs the fall of the variance of each worth, and is added.
        """
        quota = np.full(ANNOTATORS, SIZE) if quota is None else quota.copy()
        factor = np.ones(ANNOTATORS) if factor is None else factor
        worth = self._centred(self.worth().astype(np.float32))
        bonus = np.zeros(ANNOTATORS, np.float32) if bonus is None else bonus.astype(np.float32)
        score = factor[self.who] * self.own**2 / self.variance
        if bonus.any():
            score = score + bonus @ ((worth.T @ self.answer) ** 2 / self.variance)
        near = np.flatnonzero(quota[self.who] > 0)
        near = near[np.argsort(-score[near])[:SHORTLIST]]
        answer, variance, own = self.answer[:, near], self.variance[near], self.own[near]
        pair, who = self.pair[near], self.who[near]
        of_worth = worth.T @ answer
        # Columns of a Cholesky factor: covariances of the chosen answers with all, and with orders.
        rows, orders = np.zeros((SIZE, len(near))), np.zeros((SIZE, PAIRS))
        told, gain, chosen, free = np.zeros((SIZE, ANNOTATORS)), 0.0, [], np.ones(len(near), bool)
        for place in range(min(SIZE, int(quota.sum()))):
            score = factor[who] * own**2 / variance + bonus @ (of_worth**2 / variance)
            best = int(np.where(free & (quota[who] > 0), score, -1.0).argmax())
            chosen.append((pair[best], who[best]))
            gain += own[best] ** 2 / variance[best]
            quota[who[best]] -= 1
            free &= pair != pair[best]
            root = np.sqrt(variance[best])
            before = rows[:place, best]
            told[place] = of_worth[:, best] / root
            rows[place] = (answer[:, best] @ answer - before @ rows[:place]) / root
            orders[place] = (answer[:, best] @ self.order - before @ orders[:place]) / root
            variance = np.maximum(variance - rows[place] ** 2, 1e-9)
            own = own - rows[place] * orders[place][pair]
            of_worth = of_worth - told[place][:, None] * rows[place]
        return np.array(chosen), gain, told.T @ told

    def worth(self) -> np.ndarray:
        """Worth of the next questions to each annotator under each draw of the competence: the mean
        of the highest 19 scores, were that competence known, shape (draw, annotator)."""
        if not hasattr(self, "_worth"):
            grid, best = np.linspace(0, 1, 11), []
            for competence in grid:
                chance = expit(np.float32(competence) * self.gap)
                mean = chance.mean(0)
                own = np.einsum("sq,sq->q", self._centred(chance), self.order)
                score = own**2 / np.maximum(mean * (1 - mean), 1e-9)
                best.append(np.sort(score)[-SIZE:].mean())
            self._worth = np.interp(self.draws.competence, grid, best)
        return self._worth
