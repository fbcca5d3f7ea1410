"""Replicated answers: their probabilities under draws, given drawn classes, and answers drawn."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from raters.errors import SettingError
from raters.judgements.base import Judgements
from raters.model import Model, Values
from raters.program import Program, answer_probs, left_out_responsibility, responsibility

AnswerTable = Float[np.ndarray, "answer row"]

# Numbers that are computed at a time.
_PIECE = 20_000_000


class AnswerProbs(NamedTuple):
    """Probabilities of the answers of each row under one draw."""

    probs: AnswerTable
    classes: Int[np.ndarray, " unit"] | None


def single(data: Judgements) -> Any:
    """The judgements without rows of count 0; with one row each, unless a row holds their sum."""
    real = data.unpadded()
    if real.summed or real.count is None:
        return real
    rows = np.repeat(np.arange(real.num_rows), np.asarray(real.count).round().astype(np.int64))
    return dataclasses.replace(real.rows(rows), count=None)


def source_rows(data: Judgements) -> Int[np.ndarray, " judgement"]:
    """Row of `data` that each row of `single` is taken from."""
    rows = np.arange(data.num_rows)
    if data.count is None:
        return rows
    count = np.asarray(data.count).round().astype(np.int64)
    # Half a vote is possible in a sum and not in a count.
    return rows[count > 0] if data.summed else np.repeat(rows, count)


def probs_of_draws(
    program: Program[Any], draws: Values, seed: int, *, left_out: bool = False
) -> Iterator[AnswerProbs]:
    """Probabilities of the answers of each row, one draw after the other."""
    data = program.data
    latent = program.latent is not None
    known = jax.tree.map(jnp.asarray, data)
    unit = np.asarray(data.codes(program.unit)) if latent else None
    num_draws = len(next(iter(draws.values())))
    keys = jax.random.split(jax.random.key(seed), num_draws)
    size = max(1, _PIECE // max(1, data.num_rows * len(data.answers())))
    for start in range(0, num_draws, size):
        part = {name: value[start : start + size] for name, value in draws.items()}
        probs, classes = _tables(
            program.model, left_out, known, unit, part, keys[start : start + size]
        )
        probs, classes = np.asarray(probs, np.float64), np.asarray(classes)
        # Single precision leaves sums of probabilities a little off 1.
        probs /= np.maximum(probs.sum(1, keepdims=True), np.finfo(float).tiny)
        for table, drawn in zip(probs, classes, strict=True):
            yield AnswerProbs(table, drawn if latent and not left_out else None)


@partial(jax.jit, static_argnums=(0, 1))
def _tables(
    model: Model[Any],
    left_out: bool,
    data: Any,
    unit: Any,
    draws: Values,
    keys: Key[Array, " draw"],
) -> tuple[Float[Array, "draw answer row"], Int[Array, "draw unit"]]:
    asked = dataclasses.replace(data, count=None)

    def one(part: tuple[Values, Any]) -> tuple[Any, Any]:
        values, key = part
        probs = answer_probs(model, asked, values)  # (class, answer, row)
        if unit is None:
            return probs[0], jnp.zeros(0, int)
        if left_out:
            share = left_out_responsibility(model, data, values).T  # (class, row)
            return (share[:, None] * probs).sum(0), jnp.zeros(0, int)
        classes = jax.random.categorical(key, jnp.log(responsibility(model, data, values)))
        return jnp.take_along_axis(probs, classes[unit][None, None], 0)[0], classes

    return jax.lax.map(one, (draws, keys))


def answer_counts(data: Judgements) -> AnswerTable:
    """Number of judgements of each row with each answer."""
    data.check_listed()
    answers = np.asarray(data.answers(), float)
    outcome, number = (np.asarray(x, float) for x in (getattr(data, data.answer), data.weight))
    if not data.summed:
        return np.asarray(outcome == answers[:, None], float)
    if len(answers) != 2:
        raise SettingError(
            f"rows of {type(data).__name__} are sums of judgements with {len(answers)} possible"
            " answers, so they do not say how many there are of each; write one row for each"
            " judgement"
        )
    first = (outcome - number * answers[1]) / (answers[0] - answers[1])
    return np.stack([first, number - first])


def replicated(data: Judgements, probs: AnswerTable, rng: np.random.Generator) -> AnswerTable:
    """Numbers of judgements with each answer, drawn."""
    number = np.asarray(data.weight, float)
    if data.together:
        real = np.flatnonzero(number > 0)
        counts = np.zeros((2, len(number)))
        unit = np.asarray(data.codes(data.unit))[real]
        counts[:, real] = _chosen(unit, probs[-1, real], number[real], rng)
        return counts
    if data.summed:
        first = rng.binomial(number.round().astype(np.int64), np.clip(probs[0], 0, 1))
        return np.stack([first, number - first]).astype(float)
    below = np.cumsum(probs, 0)[:-1] < rng.random(probs.shape[1])
    return np.asarray(below.sum(0) == np.arange(len(probs))[:, None], float)


def _chosen(
    unit: Int[np.ndarray, " row"],
    probs: Float[np.ndarray, " row"],
    number: Float[np.ndarray, " row"],
    rng: np.random.Generator,
) -> AnswerTable:
    """Multinomial numbers of the judgements that do not choose each row, and that do."""
    size = np.bincount(unit)
    begin = np.cumsum(size) - size
    left, mass = np.zeros(len(size), np.int64), np.ones(len(size))
    left[unit] = number.round().astype(np.int64)
    chosen = np.zeros(len(unit))
    # Binomial numbers, given those of the rows before: all nth rows at a time.
    for place in range(int(size.max(initial=0))):
        units = np.flatnonzero(size > place)
        rows = begin[units] + place
        share = np.where(
            size[units] == place + 1, 1.0, probs[rows] / np.maximum(mass[units], 1e-30)
        )
        chosen[rows] = rng.binomial(left[units], np.clip(share, 0, 1))
        left[units] -= chosen[rows].astype(np.int64)
        mass[units] -= probs[rows]
    return np.stack([number - chosen, chosen])
