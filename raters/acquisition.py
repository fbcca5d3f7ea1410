"""What to ask next, and whom: the questions whose answers are expected to tell most (BALD)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from raters import _frame
from raters._check import whole
from raters._result import check_data, check_model, draws_of, label_array
from raters.data import Comparisons
from raters.errors import DataError
from raters.inference._trace import trace
from raters.labels import Labels
from raters.model import Model, Values
from raters.predict import latent_of, recode, weighted_logits

_CHUNK = 1 << 16


class Candidates:
    """Questions that could be asked, as `Comparisons` or `Labels` without outcomes."""

    @staticmethod
    def pairs(
        votes: Comparisons,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Comparisons:
        """Every pair of items, put to every annotator.

        Parameters
        ----------
        votes : Comparisons
            Where the names come from.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        limit : int
            Beyond this many, a uniform sample of so many.
        seed : int
            For the sample.

        Returns
        -------
        Comparisons
            Without outcomes.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.pairs(votes, annotators=[0]).num_comparisons
        6
        """
        _check_kind(votes, Comparisons, "Candidates.labels(labels)")
        whole("limit", limit)
        chosen_items = _codes(items, votes.items, "item")
        chosen_annotators = _codes(annotators, votes.annotators, "annotator")
        if len(chosen_items) < 2:
            raise DataError("a question needs two items; give at least two")
        pairs = len(chosen_items) * (len(chosen_items) - 1) // 2
        total = pairs * len(chosen_annotators)
        number = np.arange(total) if total <= limit else _sample(np.random.default_rng(seed), total, limit)
        pair, who = np.divmod(number, len(chosen_annotators))
        # Pair (i, j), i < j, has number j(j−1)/2 + i.
        larger = ((1 + np.sqrt(1 + 8 * pair.astype(np.float64))) / 2).astype(np.int64)
        larger -= larger * (larger - 1) // 2 > pair
        larger += (larger + 1) * larger // 2 <= pair
        smaller = pair - larger * (larger - 1) // 2
        return _questions(votes, chosen_items[smaller], chosen_items[larger], chosen_annotators[who])

    @staticmethod
    def annotators(votes: Comparisons, first: Any, second: Any) -> Comparisons:
        """One pair, put to every annotator: whom to ask.

        Parameters
        ----------
        votes : Comparisons
            Where the names come from.
        first, second : item names

        Returns
        -------
        Comparisons
            Without outcomes.

        Examples
        --------
        >>> import raters as rt
        >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
        >>> rt.Candidates.annotators(votes, 0, 1).num_comparisons
        3
        """
        _check_kind(votes, Comparisons, "Candidates.labels(labels)")
        one, other = _codes([first], votes.items, "item"), _codes([second], votes.items, "item")
        if one[0] == other[0]:
            raise DataError(f"a question needs two different items; both are {first!r}")
        who = np.arange(votes.num_annotators)
        return _questions(votes, np.repeat(one, len(who)), np.repeat(other, len(who)), who)

    @staticmethod
    def labels(
        labels: Labels,
        *,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        again: bool = False,
        limit: int = 1_000_000,
        seed: int = 0,
    ) -> Labels:
        """Every item, put to every annotator who has not labelled it.

        Parameters
        ----------
        labels : Labels
            The labels that there are.
        items, annotators : iterable, optional
            Restrict the questions to these names.
        again : bool
            Whether an annotator may be asked about an item that they have labelled.
        limit : int
            Beyond this many, a uniform sample of so many.
        seed : int
            For the sample.

        Returns
        -------
        Labels
            Without labels.

        Examples
        --------
        >>> import raters as rt
        >>> labels, _ = rt.datasets.label_crowd(20, 5, 3, seed=0)
        >>> rt.Candidates.labels(labels).num_rows
        40
        """
        _check_kind(labels, Labels, "Candidates.pairs(votes)")
        whole("limit", limit)
        item, annotator = _codes(items, labels.items, "item"), _codes(annotators, labels.annotators, "annotator")
        total = len(item) * len(annotator)
        asked = np.zeros(0, np.int64)
        if not again:
            seen = _places(labels.item, item, labels.num_items), _places(labels.annotator, annotator, labels.num_annotators)
            among = (seen[0] >= 0) & (seen[1] >= 0)
            asked = np.unique(seen[0][among] * len(annotator) + seen[1][among])
        if len(asked) == total:
            raise DataError("every annotator has labelled every item; write again=True to ask them again")
        place = np.arange(total - len(asked))
        if len(place) > limit:
            place = _sample(np.random.default_rng(seed), len(place), limit)
        # Number n of what was not asked is at place n + how much was asked before it.
        place = place + np.searchsorted(asked - np.arange(len(asked)), place, side="right")
        group, who = item[place // len(annotator)], annotator[place % len(annotator)]
        most = int(np.bincount(group).max())
        return dataclasses.replace(
            labels, group=group.astype(np.int32), annotator=who.astype(np.int32), label=None, count=None, most=most
        )


def _check_kind(data: Any, kind: type, instead: str) -> None:
    if not isinstance(data, kind):
        raise DataError(f"these candidates are made from {kind.__name__}, not {type(data).__name__}; write rt.{instead}")


def _codes(names: Iterable[Any] | None, known: tuple[Any, ...], role: str) -> np.ndarray:
    if names is None:
        return np.arange(len(known))
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise DataError(f"{role}s= takes a list of names, such as {role}s=[{names!r}], not {names!r} alone")
    names = tuple(names)
    if not names:
        raise DataError(f"{role}s= names nobody and nothing; give at least one {role}, or leave it out for all")
    codes = _frame.match(np.arange(len(names)), names, known, role)
    return np.unique(codes)


def _places(codes: Any, among: np.ndarray, number: int) -> np.ndarray:
    """Where each code stands among those chosen; −1 for others."""
    place = np.full(number, -1, np.int64)
    place[among] = np.arange(len(among))
    return place[np.asarray(codes)]


def _sample(rng: np.random.Generator, total: int, number: int) -> np.ndarray:
    """Distinct numbers below `total`, in order, without an array of that length."""
    found = np.unique(rng.integers(total, size=int(number * 1.1) + 100))
    while len(found) < number:
        found = np.unique(np.concatenate([found, rng.integers(total, size=number)]))
    return np.sort(rng.choice(found, number, replace=False))


def _questions(votes: Comparisons, first, second, annotator) -> Comparisons:
    first, second, annotator = (np.asarray(column, np.int32) for column in (first, second, annotator))
    return Comparisons(first, second, annotator, None, None, votes.items, votes.annotators, votes.ordered)


def suggest(
    model: Model,
    result: xr.DataTree,
    candidates: Comparisons | Labels,
    *,
    batch_size: int = 10,
    draws: int = 200,
    repeats: bool = False,
    seed: int = 0,
) -> xr.Dataset:
    r"""The questions whose answers are expected to tell most about the parameters.

    The score is BALD, the mutual information of the answer y and the parameters θ in bits,

    .. math::

        I(y; \theta) = H(\mathbb{E}_\theta\, p(y \mid \theta)) - \mathbb{E}_\theta\, H(p(y \mid \theta)).

    Unlike uncertainty sampling it is 0 for a guesser, whose answer is uncertain but tells nothing. For labels θ includes
    the true classes of the items, so the score counts what a label tells about the item as well as about the annotator.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    candidates : Comparisons or Labels
        Questions to choose from: ``Candidates.pairs(votes)``, ``Candidates.annotators(votes, first, second)``,
        ``Candidates.labels(labels)``, or any comparisons without regard to their outcomes.
    batch_size : int
        Questions to return. Scores are those of single questions.
    draws : int
        Posterior draws to use.
    repeats : bool
        Whether a pair, or an item to label, may come more than once in a batch (put to different annotators).
    seed : int
        Picks the draws.

    Returns
    -------
    xarray.Dataset
        With axis ``suggestion``, best first: ``first``, ``second``, ``by`` (names), ``score`` (bits), ``p_win``
        (posterior mean probability that the first item wins). For labels: ``item``, ``by``, ``score``, and ``label``, the
        most probable answer, with its probability ``p_label``.

    References
    ----------
    Houlsby, Huszár, Ghahramani and Lengyel (2011), arXiv:1112.5745.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=200), seed=0, progress=False)
    >>> rt.suggest(rt.BTL(), result, rt.Candidates.pairs(votes), batch_size=3).sizes["suggestion"]
    3
    """
    whole("batch_size", batch_size)
    whole("draws", draws, least=2)
    check_model(model)
    check_data(candidates, "candidates", model)
    values, _ = draws_of(model, result, draws, seed)
    if isinstance(candidates, Labels):
        return _suggest_labels(model, values, candidates, Labels.from_result(result), batch_size, repeats)
    fitted = Comparisons.from_result(result)
    questions = recode(model, candidates.without_outcomes(), fitted)
    score, p_win = scores(model, values, questions, fitted)
    chosen = _best(questions, score, batch_size, repeats)
    names = {"first": questions.items, "second": questions.items, "by": questions.annotators}
    codes = {"first": questions.first, "second": questions.second, "by": questions.annotator}
    columns = {role: label_array(names[role])[np.asarray(codes[role])[chosen]] for role in names}
    columns |= {"score": score[chosen], "p_win": p_win[chosen]}
    return xr.Dataset({name: ("suggestion", column) for name, column in columns.items()})


def scores(
    model: Model, draws: Values, candidates: Comparisons, fitted: Comparisons | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """BALD in bits and the probability that the first item wins, for each candidate.

    A model of types needs the `fitted` votes, which say what type each annotator is; an answer then tells of that too.
    Reads candidates in pieces and draws one at a time, so memory does not grow with either.
    """
    draws = {name: jnp.asarray(value, jnp.float32) for name, value in draws.items()}
    fitted = None if fitted is None or latent_of(model, fitted) is None else jax.tree.map(jnp.asarray, fitted)
    parts = []
    for piece in candidates.chunks(_CHUNK):
        short = _CHUNK - piece.num_comparisons if candidates.num_comparisons > _CHUNK else 0
        padded = piece.take(np.pad(np.arange(piece.num_comparisons), (0, short)))  # one shape, one compilation
        parts.append([np.asarray(part)[: piece.num_comparisons] for part in _bald(model, draws, padded, fitted)])
    score, p_win = (np.concatenate(part) for part in zip(*parts, strict=True))
    return score, p_win


@partial(jax.jit, static_argnums=0)
def _bald(model: Model, draws: Values, questions: Any, fitted: Any):
    number = len(next(iter(draws.values())))

    def add(sums, values):
        weight, logits = weighted_logits(model, questions, fitted, values)
        size = jnp.abs(logits)
        tail = jnp.exp(-size)
        lesser = tail / (1 + tail)  # probability of the less likely answer
        entropy = jnp.log1p(tail) + size * lesser
        wins = jnp.where(logits > 0, 1 - lesser, lesser)
        return (sums[0] + (weight * wins).sum(-1), sums[1] + (weight * entropy).sum(-1)), None

    zero = jnp.zeros(questions.num_comparisons)
    (wins, entropies), _ = jax.lax.scan(add, (zero, zero), draws)
    p_win = wins / number
    of_mean = -(jax.scipy.special.xlogy(p_win, p_win) + jax.scipy.special.xlog1py(1 - p_win, -p_win))
    return jnp.maximum(of_mean - entropies / number, 0.0) / jnp.log(2.0), p_win


def _best(candidates: Comparisons, score: np.ndarray, number: int, repeats: bool) -> np.ndarray:
    """Rows of the highest scores, each pair once unless `repeats`."""
    order = np.argsort(-score, kind="stable")
    if not repeats:
        first, second = np.asarray(candidates.first)[order], np.asarray(candidates.second)[order]
        pair = np.minimum(first, second).astype(np.int64) * candidates.num_items + np.maximum(first, second)
        _, earliest = np.unique(pair, return_index=True)
        order = order[np.sort(earliest)]
    return order[:number]


# ------------------------------------------------------------------------------------------------------------- labels


def _suggest_labels(model, draws: Values, candidates: Labels, fitted: Labels, number: int, repeats: bool) -> xr.Dataset:
    """The labels that are expected to tell most."""
    item = _frame.match(np.asarray(candidates.item), candidates.items, fitted.items, "item")
    annotator = _frame.match(np.asarray(candidates.annotator), candidates.annotators, fitted.annotators, "annotator")
    order = np.argsort(item, kind="stable")
    item, annotator = item[order], annotator[order]
    score, answer, p_answer = label_scores(model, draws, fitted, item, annotator)
    best = np.argsort(-score, kind="stable")
    if not repeats:
        _, earliest = np.unique(item[best], return_index=True)
        best = best[np.sort(earliest)]
    chosen = best[:number]
    columns = {
        "item": label_array(fitted.items)[item[chosen]],
        "by": label_array(fitted.annotators)[annotator[chosen]],
        "score": score[chosen],
        "label": label_array(fitted.classes)[answer[chosen]],
        "p_label": p_answer[chosen],
    }
    return xr.Dataset({name: ("suggestion", column) for name, column in columns.items()})


def label_scores(model: Model, draws: Values, fitted: Labels, item: np.ndarray, annotator: np.ndarray):
    """BALD in bits, the most probable answer and its probability, for labels of `item` (ascending codes) by `annotator`."""
    draws = {name: jnp.asarray(value, jnp.float32) for name, value in draws.items()}
    data = jax.tree.map(jnp.asarray, fitted)
    parts = []
    for begin in range(0, len(item), _CHUNK):
        piece = slice(begin, begin + _CHUNK)
        short = _CHUNK - len(item[piece]) if len(item) > _CHUNK else 0  # one shape, one compilation
        group, who = (np.pad(column[piece].astype(np.int32), (0, short), mode="edge") for column in (item, annotator))
        asked = dataclasses.replace(data, group=group, annotator=who, label=np.zeros_like(group), count=None, most=1)
        parts.append([np.asarray(part)[: len(item[piece])] for part in _label_bald(model, draws, data, asked)])
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


@partial(jax.jit, static_argnums=0)
def _label_bald(model: Model, draws: Values, data: Labels, asked: Labels):
    number = len(next(iter(draws.values())))

    def add(sums, values):
        site = trace(model, data, values)[model.observed]
        classes = site["fn"].responsibilities(site["value"])[asked.group]
        component = trace(model, asked, values)[model.observed]["fn"].component_distribution
        answers = [component.log_prob(jnp.full((asked.num_rows, 1), label)) for label in range(asked.num_classes)]
        log = jnp.stack(answers, axis=-1)  # (row, true class, label)
        chances = jnp.exp(log)
        entropy = -(chances * jnp.where(chances > 0, log, 0.0)).sum(-1)
        return (sums[0] + (classes[:, :, None] * chances).sum(1), sums[1] + (classes * entropy).sum(1)), None

    zero = jnp.zeros((asked.num_rows, asked.num_classes)), jnp.zeros(asked.num_rows)
    (total, entropies), _ = jax.lax.scan(add, zero, draws)
    mean = total / number
    of_mean = -jax.scipy.special.xlogy(mean, mean).sum(-1)
    score = jnp.maximum(of_mean - entropies / number, 0.0) / jnp.log(2.0)
    return score, mean.argmax(-1), mean.max(-1)
