"""What is known when the next question is chosen: weighted posterior draws, and the judgements behind them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.scipy.special import expit
from numpyro import handlers

from raters._result import check_model, data_of, draws_of
from raters.data import Comparisons
from raters.errors import DataError, SettingError
from raters.inference._trace import latent_sites, pointwise_log_likelihood, trace
from raters.labels import Labels
from raters.model import Model, Values
from raters.predict import class_probabilities, latent_of, logits_of_types, of_items

# Chances of as many questions are computed at once as keep a table below this many numbers (16 MB, which caches hold).
_NUMBERS = 1 << 22
_MOST_ROWS, _FEWEST_ROWS = 1 << 14, 1 << 8
# Probabilities of classes are kept for all draws up to this many numbers (0.8 GB).
_MOST_UNITS = 200_000_000


class Chances(NamedTuple):
    """What the draws say of the answers to some questions.

    `table` has axes (chain, draw, answer, question); `weight` has axes (chain, draw) or (chain, draw, question), and sums to 1
    over the draws.
    """

    table: jax.Array
    weight: jax.Array


@dataclass(frozen=True)
class Posterior:
    """Weighted draws of a model's parameters, and the judgements that they were fitted to.

    Parameters
    ----------
    model : Model
    data : Comparisons or Labels
        What was fitted; questions are read in its codes.
    draws : mapping
        Values of each site, shape (chain, draw, ...).
    weight : array, shape (chain, draw)
        Sums to 1.
    independent : float, optional
        How many independent draws these are worth at most, by the diagnostics of the fit.
    pool : Comparisons or Labels, optional
        What can still be asked or waits for an answer, in the codes of `data`, for rules that look at it; everything without.
    cost : array, shape (annotator,), optional
        What an answer of each annotator costs, for such rules: 1 without it.

    Examples
    --------
    >>> import raters as rt
    >>> from raters.acquisition import Posterior, scores
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=200), seed=0, progress=False)
    >>> posterior = Posterior.of(rt.BTL(), result, draws=100)
    >>> chances = posterior.chances(rt.Candidates.pairs(votes))
    >>> chances.table.shape
    (1, 100, 2, 18)
    >>> scores.bald(chances.table, chances.weight).shape
    (18,)
    """

    model: Model
    data: Comparisons | Labels
    draws: Values
    weight: np.ndarray
    independent: float = math.inf
    pool: Comparisons | Labels | None = None
    cost: np.ndarray | None = None

    @classmethod
    def of(cls, model: Model, result: xr.DataTree, *, draws: int = 200, seed: int = 0) -> Posterior:
        """From a result of `raters.fit`, its draws thinned at random to `draws` in one chain."""
        check_model(model)
        data = data_of(result)
        values, _ = draws_of(model, result, draws, seed)
        return cls._equal(model, data, {name: value[None] for name, value in values.items()})

    @classmethod
    def prior(cls, model: Model, questions: Comparisons | Labels, *, draws: int = 200, seed: int = 0) -> Posterior:
        """Before any answer: draws from the prior. `questions` have the names of all items and annotators."""
        check_model(model)
        one = dataclasses.replace(questions.take(slice(0, 1)).without_outcomes(), count=None)
        sites = tuple(latent_sites(model, one))
        table = _prior_draws(model, jax.tree.map(jnp.asarray, one), jax.random.split(jax.random.key(seed), draws), sites)
        # A row that counts for nothing: a model cannot run on no rows at all.
        nothing = rows_of(questions, np.zeros(0, int)).with_outcomes(np.zeros(0, np.float32)).padded(1)
        return cls._equal(model, nothing, {name: np.asarray(table[name])[None] for name in sites})

    @classmethod
    def _equal(cls, model, data, values) -> Posterior:
        shape = next(iter(values.values())).shape[:2]
        values = {name: np.asarray(value, np.float32) for name, value in values.items()}
        return cls(model, data, values, np.full(shape, 1.0 / (shape[0] * shape[1]), np.float32))

    @property
    def effective_draws(self) -> float:
        """How many equal draws the weighted ones are worth, :math:`1 / \\sum w^2`."""
        return float(1.0 / np.square(self.weight).sum())

    @property
    def independent_draws(self) -> float:
        """How many independent draws they are worth, weights and the fit's diagnostics considered."""
        return min(self.effective_draws, self.independent)

    def after(self, data: Comparisons | Labels) -> Posterior:
        """The same draws weighted by the likelihood of what came since.

        Parameters
        ----------
        data : Comparisons or Labels
            *All* judgements so far, those that were fitted among them, with the same names.
        """
        self._check_names(data)
        gain = self._log_likelihood(data) - self._log_likelihood(self.data)
        log = np.log(np.maximum(self.weight.astype(np.float64), 1e-300)) + gain.reshape(self.weight.shape)
        weight = np.exp(log - log.max())
        return dataclasses.replace(self, data=data, weight=(weight / weight.sum()).astype(np.float32))

    def _log_likelihood(self, data) -> np.ndarray:
        return np.asarray(_log_likelihoods(self.model, jax.tree.map(jnp.asarray, data), self._flat), np.float64)

    def _check_names(self, data: Comparisons | Labels) -> None:
        for role in ("items", "annotators") if self._of_items else ("annotators",):
            here, there = tuple(getattr(data, role)), tuple(getattr(self.data, role))
            if here != there:
                raise DataError(
                    f"these are in codes of other {role} ({len(here)}) than what was fitted ({len(there)}); make them from the "
                    "same table, or use rt.suggest, which goes by name"
                )

    @cached_property
    def _of_items(self) -> bool:
        return of_items(self.model, self.data)

    @property
    def _flat(self) -> Values:
        return {name: jnp.asarray(value.reshape(-1, *value.shape[2:])) for name, value in self.draws.items()}

    @cached_property
    def _responsibilities(self) -> jax.Array | None:
        """Probability of each class of each unit under each draw, shape (draw, unit, class); None for a model without."""
        latent = latent_of(self.model, self.data)
        if latent is None:
            return None
        number = self.weight.size * len(self.data.coords[latent.axes[0]])
        if number > _MOST_UNITS:
            raise SettingError(
                f"{self.weight.size} draws of the classes of {number // self.weight.size:,} {latent.axes[0]}s do not fit in "
                f"memory; write draws={max(2, self.weight.size * _MOST_UNITS // number)}"
            )
        return class_probabilities(self.model, jax.tree.map(jnp.asarray, self.data), self._flat)

    def responsibility(self) -> np.ndarray:
        """Posterior probability of each class of each unit, shape (unit, class), for a model that sums classes out."""
        if self._responsibilities is None:
            raise SettingError(f"{type(self.model).__name__} sums out no classes")
        return np.tensordot(self.weight.ravel(), np.asarray(self._responsibilities), 1)

    def site(self, name: str, why: str) -> jax.Array:
        """Draws of a site, shape (chain, draw, ...); `SettingError` with `why` for a model that has none of that name."""
        if name not in self.draws:
            kind, instead = type(self.model).__name__, "truth" if isinstance(self.data, Labels) else "everything"
            raise SettingError(f"{kind} has no {name}, {why}; it has {sorted(self.draws)}. Write target={instead!r}")
        return jnp.asarray(self.draws[name])

    def chances(self, questions: Comparisons | Labels, *, by_class: bool = False) -> Chances:
        """What the draws say of the answers: to a comparison, that the first or the second wins; to an item, each class.

        Where a likelihood sums out a class (the true class of an item, the type of an annotator), so do the chances; or,
        `by_class`, the axis draw holds each draw once for each class, weighted by its probability.
        """
        self._check_names(questions)
        of = _label_chances if isinstance(questions, Labels) else _vote_chances
        asked = jax.tree.map(jnp.asarray, questions.without_outcomes())
        return of(self.model, by_class, asked, self._flat, jnp.asarray(self.weight), self._responsibilities)

    def pieces(self, questions: Comparisons | Labels) -> Iterator[tuple[Any, int]]:
        """Questions in pieces whose chances fit in memory, all of one shape, and how many of each piece are questions."""
        answers = len(self.data.classes) ** 2 if isinstance(self.data, Labels) else 2
        rows = int(np.clip(_NUMBERS // (self.weight.size * answers), _FEWEST_ROWS, _MOST_ROWS))
        total = len(questions.annotator)
        rows = min(rows, max(_FEWEST_ROWS, 1 << (total - 1).bit_length()))
        for begin in range(0, total, rows):
            row = np.arange(begin, begin + rows)
            yield rows_of(questions, np.minimum(row, total - 1)), min(rows, total - begin)


def rows_of(questions: Any, rows: np.ndarray) -> Any:
    """Some of the questions, by row (`take` goes by unit, which may be an item)."""
    if isinstance(questions, Comparisons):
        return questions.take(rows)
    group, annotator = np.asarray(questions.group)[rows], np.asarray(questions.annotator)[rows]
    return dataclasses.replace(questions, group=group, annotator=annotator, label=None, count=None, most=1)


def sample_of(questions: Any, most: int, rng: np.random.Generator) -> Any:
    """At most so many of the questions, drawn at random, in their order."""
    total = len(questions.annotator)
    return rows_of(questions, np.sort(rng.choice(total, min(most, total), replace=False)))


def both(one: Any, other: Any) -> Any:
    """The questions of two tables in the same codes, one after the other."""
    columns = ("group", "annotator") if isinstance(one, Labels) else ("first", "second", "annotator")
    joined = {name: np.concatenate([np.asarray(getattr(part, name)) for part in (one, other)]) for name in columns}
    if isinstance(one, Comparisons) and one.features is not None:
        joined["features"] = np.concatenate([np.asarray(part.features) for part in (one, other)])
    return dataclasses.replace(one.without_outcomes(), **joined, count=None)


@partial(jax.jit, static_argnums=(0, 3))
def _prior_draws(model: Model, data: Any, keys: jax.Array, sites: tuple[str, ...]) -> Values:
    def one(key):
        drawn = handlers.trace(handlers.seed(model.generate, key)).get_trace(data)
        return {name: drawn[name]["value"] for name in sites}

    return jax.lax.map(one, keys)


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(model: Model, data: Any, draws: Values) -> jax.Array:
    return jax.lax.map(lambda values: pointwise_log_likelihood(model, data, values).sum(), draws)


@partial(jax.jit, static_argnums=(0, 1))
def _vote_chances(
    model: Model, by_class: bool, asked: Any, draws: Values, weight: jax.Array, types: jax.Array | None
) -> Chances:
    def one(values):
        logits = logits_of_types(model, asked, values).T
        return jnp.stack([expit(logits), expit(-logits)], 1)

    share = None if types is None else types[:, asked.annotator].transpose(0, 2, 1)
    return _of_draws(jax.lax.map(one, draws), weight, share, by_class)


@partial(jax.jit, static_argnums=(0, 1))
def _label_chances(model: Model, by_class: bool, asked: Any, draws: Values, weight: jax.Array, classes: jax.Array) -> Chances:
    shown = dataclasses.replace(asked, label=jnp.zeros(asked.num_rows, int))

    def one(values):
        component = trace(model, shown, values)[model.observed]["fn"].component_distribution
        log = [component.log_prob(jnp.full((asked.num_rows, 1), label)) for label in range(asked.num_classes)]
        return jnp.exp(jnp.stack(log)).transpose(2, 0, 1)

    return _of_draws(jax.lax.map(one, draws), weight, classes[:, asked.group].transpose(0, 2, 1), by_class)


def _of_draws(table: jax.Array, weight: jax.Array, share: jax.Array | None, by_class: bool) -> Chances:
    """From chances of shape (draw, class, answer, question) and shares of the classes, (draw, class, question)."""
    if share is None:
        table = table[:, 0]
    elif by_class:
        weight = (weight.reshape(-1, 1, 1) * share).reshape(len(weight), -1, share.shape[-1])
    else:
        table = (share[:, :, None, :] * table).sum(1)
    return Chances(table.reshape(len(weight), -1, *table.shape[-2:]), weight)
