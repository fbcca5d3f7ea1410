"""Answers to the questions of a simulated campaign: drawn under a truth, or recorded."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.acquisition.questions import pool as pools
from raters.acquisition.scoring.posterior import Posterior
from raters.errors import SettingError
from raters.errors.validation import numbers
from raters.judgements.base import Judgements
from raters.model import Model, Values


class Answers(abc.ABC):
    """Source of answers: for each row of a pool, a sequence of them."""

    pool: Judgements

    @abc.abstractmethod
    def left(self, asked: Int[np.ndarray, " row"]) -> Bool[np.ndarray, " row"]:
        """True for the rows that can be asked once more, from how often it was asked."""

    @abc.abstractmethod
    def answer(self, row: int, number: int) -> float:
        """Outcome of a row when it is asked for the `number`-th time, counted from 0."""


class Simulated(Answers):
    """Answers drawn with the probability of each, shape (answer, row)."""

    def __init__(self, pool: Judgements, probs: Float[np.ndarray, "answer row"], seed: int) -> None:
        self.pool, self.cumulative, self.seed = pool, np.cumsum(probs, 0), seed

    def left(self, asked: Int[np.ndarray, " row"]) -> Bool[np.ndarray, " row"]:
        """True for the rows that can be asked once more: always where an answer is not final."""
        return np.ones(len(asked), bool) if self.pool.again else asked == 0

    def answer(self, row: int, number: int) -> float:
        """Outcome by a uniform random number of this row and count."""
        uniform = np.random.default_rng([self.seed, row, number]).random()
        place = int((uniform > self.cumulative[:-1, row]).sum())
        return float(self.pool.answers()[place])


class Recorded(Answers):
    """Recorded answers."""

    def __init__(self, votes: Judgements, seed: int) -> None:
        rng = np.random.default_rng(seed)
        record = votes.canonical()
        self.pool, _ = pools.prepared(record, None)
        own, keys = np.split(self.pool.keys(record), [self.pool.num_rows])
        place = {key: row for row, key in enumerate(own.tolist())}
        self.queues: list[list[float]] = [[] for _ in place]
        for row, key in enumerate(keys.tolist()):
            for outcome, number in record.single_outcomes(row).items():
                self.queues[place[key]] += [outcome] * number
        for queue in self.queues:
            rng.shuffle(queue)
        self.length = np.array([len(queue) for queue in self.queues])
        self.total = int(self.length.sum())

    def left(self, asked: Int[np.ndarray, " row"]) -> Bool[np.ndarray, " row"]:
        """True for the rows whose record is not used up."""
        return np.asarray(asked < self.length)

    def answer(self, row: int, number: int) -> float:
        """Next outcome of the record."""
        return self.queues[row][number]


def probs_under(
    model: Model[Any], truth: Mapping[str, Any], pool: Any
) -> Float[np.ndarray, "answer row"]:
    """Probability of each answer under the truth."""
    pool.check_listed()
    prior = Posterior.prior(model, pool, draws=1)
    latent = prior.program.latent
    values = _values(prior, truth, pool)
    known = Posterior(model, prior.data, values, np.ones((1, 1), np.float32))
    parts = []
    for piece, size in known.pieces(pool):
        # (class, answer, question)
        table = np.asarray(known.answer_probs(piece, by_class=True).table)[0]
        of = np.zeros(table.shape[-1], int)
        if latent is not None:
            if latent.name not in truth:
                raise SettingError(
                    parameter="truth",
                    problem=f"has no {latent.name!r}",
                    expected=(
                        f"{type(model).__name__} answers by it; add it, as a simulation of the"
                        " model gives it"
                    ),
                )
            of = np.asarray(truth[latent.name])[np.asarray(piece.codes(latent.unit))]
        parts.append(table[of, :, np.arange(len(of))].T[:, :size])
    return np.concatenate(parts, 1)


def _values(prior: Posterior, truth: Mapping[str, Any], pool: Judgements) -> Values:
    """Value of each site under the truth, shape (1, 1, ...); drawn where answers do not depend on
    it."""
    model, sites, latent = prior.model, prior.program.sites, prior.program.latent
    classes = set() if latent is None else {latent.name}
    if not isinstance(truth, Mapping) or (
        unknown := sorted(set(map(str, truth)) - set(sites) - classes)
    ):
        what = f"has {unknown}" if isinstance(truth, Mapping) else f"is {truth!r}"
        raise SettingError(
            parameter="truth",
            problem=what,
            expected=f"it maps sites of {type(model).__name__} to values: {sorted(sites)}",
        )
    values = {}
    for name, drawn in prior.draws.items():
        # Sites that only govern others, such as scales or the prevalence of classes, need not be
        # known.
        if name not in truth and (set(pool.question_axes()) - classes) & set(sites[name].dims):
            raise SettingError(
                parameter="truth",
                problem=f"has no {name!r}, which answers depend on",
                expected=f"add it, shape {drawn.shape[2:]}",
            )
        value = numbers("truth", truth.get(name, drawn[0, 0]))
        values[name] = value.astype(np.float32)[None, None]
        if values[name].shape != drawn.shape:
            raise SettingError(
                parameter="truth",
                problem=f"has {name!r} of shape {values[name].shape[2:]}",
                expected=f"the model needs {drawn.shape[2:]}",
            )
        if not np.isfinite(values[name]).all():
            raise SettingError(
                parameter="truth",
                problem=f"has {name!r} with values that are no numbers",
                expected="all must be finite",
            )
    return values
