"""Logistic models of responses that are right or wrong."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Array, Float, Int
from scipy.special import expit

from raters.distributions.rows import votes_of
from raters.judgements.answers import Responses
from raters.judgements.grouped import Patterns
from raters.model import Fit, Rotation, Scale, Sign, Symmetry, Translation, Values
from raters.models.base import CheckedModel, open_mirror, worded
from raters.models.on_nodes import Integrable, Nodes, Rows, number_at
from raters.terms.base import sample_vectors, sampled
from raters.terms.competence import LOW
from raters.terms.tastes import components

Discrimination = Literal["positive", "signed"]
PerRow = Float[Array, " *row"]
# Logits per standard deviation of the ability for which the nodes lie close enough.
_STEEPEST = 2.0


class Logistic(Integrable[Responses]):
    """Model whose log-odds of a right response follow from ability and parameters of the item."""

    integrated = ("ability", "person", "item")
    most_cells: ClassVar[int] = 30_000_000

    @abc.abstractmethod
    def ability_spread(self, sites: Values) -> Any:
        """Standard deviation of the abilities."""

    @abc.abstractmethod
    def log_odds(self, ability: PerRow, item: Int[Array, " *row"], sites: Values) -> PerRow:
        """Log-odds of a right response."""

    def generate(self, data: Responses) -> None:
        sites = self.sample_others(data.num_items, 2)
        prior = dist.Normal(0.0, self.ability_spread(sites))
        ability = sampled("ability", prior, person=data.num_persons)
        logits = self.log_odds(ability[data.person], data.item, sites)
        rows = votes_of(logits, data.count)
        sampled("correct", rows, obs=data.correct, response=data.num_rows)

    def rows_at(self, node: Nodes, sites: Values, data: Patterns) -> Rows:
        # Each log-odds needs its own index, as the conjugate updates read it row by row.
        shape = (data.num_rows, len(node))
        item = jnp.broadcast_to(jnp.asarray(data.facet)[:, None], shape)
        ability = jnp.broadcast_to(self.ability_spread(sites) * node, shape)
        count = None if data.count is None else data.count[:, None]
        return votes_of(self.log_odds(ability, item, sites), count), None

    def num_nodes(self, patterns: Patterns) -> int:
        weight = np.asarray(patterns.weight, np.float64)
        most = np.bincount(np.asarray(patterns.group), weight, minlength=1).max(initial=0.0)
        return number_at(1 / np.sqrt(1 + _STEEPEST**2 * most / 4))

    def start(self, data: Responses) -> Values:
        return self.start_others(data) | {"ability": _log_odds_of(data, "person")}


@dataclass(frozen=True)
class Rasch(Logistic):
    r"""Rasch model: one ability for each person, and one difficulty for each item.

    .. math::

        P(\text{right} \mid p, i) = \sigma(\theta_p - b_i), \qquad
        \theta_p \sim \mathrm{Normal}(0, s), \quad b_i \sim \mathrm{Normal}(0, d), \quad
        s \sim \mathrm{HalfNormal}(h)

    Abilities and difficulties are in logits on one scale, with the mean of the population of
    persons at 0.

    `raters.PGEM` maximises the marginal likelihood, in which the abilities are integrated out, and
    then draws the abilities given the items. With large `difficulty_scale` and
    `ability_scale_prior` its mode is the marginal maximum-likelihood estimate.

    Parameters
    ----------
    difficulty_scale : float
        Standard deviation d of the difficulties, in logits.
    ability_scale_prior : float
        Scale h of the half-normal prior of the standard deviation of the abilities.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who")
    >>> result = rt.fit(rt.Rasch(), responses, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["ability"].dims
    ('chain', 'draw', 'person')
    """

    difficulty_scale: float = 3.0
    ability_scale_prior: float = 2.0

    reference = "rasch1960probabilistic"

    blocks = (("ability",), ("difficulty",))
    other_blocks = (("difficulty",), ("ability_scale",))

    def sample_others(self, number: int, num_levels: int) -> Values:
        # A half-normal prior, in the form that Pólya-Gamma back-ends read.
        prior = dist.TruncatedNormal(0.0, self.ability_scale_prior, low=0.0)
        ability_scale = numpyro.sample("ability_scale", prior)
        prior = dist.Normal(0.0, self.difficulty_scale)
        difficulty = sampled("difficulty", prior, item=number)
        return {"ability_scale": ability_scale, "difficulty": difficulty}

    def ability_spread(self, sites: Values) -> Any:
        return sites["ability_scale"]

    def log_odds(self, ability: PerRow, item: Int[Array, " *row"], sites: Values) -> PerRow:
        return ability - sites["difficulty"][item]

    def start_others(self, data: Responses | Patterns) -> Values:
        return {"difficulty": _start_difficulty(data), "ability_scale": np.asarray(1.0)}


@dataclass(frozen=True)
class TwoPL(Logistic):
    r"""Two-parameter logistic model: items differ in difficulty and in discrimination.

    .. math::

        P(\text{right} \mid p, i) = \sigma(a_i (\theta_p - b_i)), \qquad
        \theta_p \sim \mathrm{Normal}(0, 1), \quad b_i \sim \mathrm{Normal}(0, d), \quad
        a_i \sim \mathrm{Normal}(1, e) \text{ on } A

    where A is [0, ∞) (``"positive"``) or the real line (``"signed"``). Abilities are in standard
    deviations of the population of persons, whose mean is 0. The discrimination is the slope at the
    difficulty, in logits per standard deviation: an item that everybody answers by chance has 0.
    One that able persons answer wrong more often, such as an item with a wrong key, has a negative
    discrimination with ``"signed"``, and ends near 0 otherwise.

    Identification: with ``"signed"``, the likelihood is unchanged when abilities, difficulties and
    discriminations all change sign; the prior's mean of 1 encodes that most keys are right.

    `raters.PGEM` maximises the marginal likelihood, in which the abilities are integrated out, and
    then draws the abilities given the items. With large `difficulty_scale` and
    `discrimination_scale` its mode is the marginal maximum-likelihood estimate.

    Parameters
    ----------
    difficulty_scale : float
        Standard deviation d of the difficulties, in standard deviations of the ability.
    discrimination_scale : float
        Standard deviation e of the normal that the discriminations are a part of.
    discrimination : {"positive", "signed"}
        Range of the discriminations. Choose ``"signed"`` to find wrong keys.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who")
    >>> result = rt.fit(rt.TwoPL(), responses, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["discrimination"].dims
    ('item',)
    """

    difficulty_scale: float = 3.0
    discrimination_scale: float = 1.0
    discrimination: Discrimination = "positive"

    reference = "birnbaum1968some"

    blocks = (("ability",), ("difficulty",), ("discrimination",))
    other_blocks = (("difficulty",), ("discrimination",))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        sites = ("ability", "difficulty", "discrimination")
        sign = (Sign(sites),) if self.discrimination == "signed" else ()
        return (Scale(up=sites[:2], down=sites[2:]), *sign)

    def sample_others(self, number: int, num_levels: int) -> Values:
        normal, low = dist.Normal(0.0, self.difficulty_scale), LOW[self.discrimination]
        prior = dist.TruncatedNormal(1.0, self.discrimination_scale, low=low)
        with numpyro.plate("item", number):
            return {
                "difficulty": sampled("difficulty", normal),
                "discrimination": sampled("discrimination", prior),
            }

    def ability_spread(self, sites: Values) -> Any:
        return 1.0

    def log_odds(self, ability: PerRow, item: Int[Array, " *row"], sites: Values) -> PerRow:
        return sites["discrimination"][item] * (ability - sites["difficulty"][item])

    def start_others(self, data: Responses | Patterns) -> Values:
        difficulty = _start_difficulty(data)
        sign = np.ones(len(difficulty))
        if self.discrimination == "signed":
            sign = np.where(_start_covariance(data) < 0, -1.0, 1.0)
        return {"difficulty": sign * difficulty, "discrimination": sign}

    def fit_warnings(self, data: Responses, fit: Fit) -> tuple[str, ...]:
        if self.discrimination != "signed":
            return ()
        return open_mirror(fit.draws["ability"], data, "responses")


@dataclass(frozen=True)
class IdealPoint(CheckedModel[Responses]):
    r"""Ideal-point model: persons have positions, and each item divides them along a direction.

    .. math::

        P(\text{yes} \mid p, i) = \sigma\Big(c_i + \sum_d b_{id} \, x_{pd}\Big), \qquad
        x_{pd} \sim \mathrm{Normal}(0, 1), \quad b_{id} \sim \mathrm{Normal}(0, 2), \quad
        c_i \sim \mathrm{Normal}(0, 5)

    It follows from utilities that fall with the squared distance between a person's ideal point
    and what a vote of yes, and one of no, would bring about (Clinton, Jackman and Rivers 2004). Of
    a test it is `TwoPL` with slopes of either sign.

    Positions are known up to a rotation or reflection: draws are turned towards their mean, on its
    principal axes, each in the direction in which the person furthest from 0 is positive. With one
    dimension only the sign is open.

    Parameters
    ----------
    num_dimensions : int
        Number of dimensions.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.Responses.from_wide(
    ...     {"who": ["ann", "bob", "eve"], "bill 1": [1, 1, 0], "bill 2": [0, 0, 1]}, person="who")
    >>> result = rt.fit(rt.models.IdealPoint(), votes, seed=0, progress=False)
    >>> result.posterior["position"].dims
    ('chain', 'draw', 'person', 'dimension')
    """

    num_dimensions: int = 1

    reference = "clinton2004statistical"

    blocks = (("position",), ("intercept", "slope"))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        columns = range(self.num_dimensions)
        moves = tuple(Translation("position", "slope", "intercept", one) for one in columns)
        scale = (Scale(("position",), ("slope",)),) if self.num_dimensions == 1 else ()
        return (Rotation(("position", "slope")), *scale, *moves)

    def generate(self, data: Responses) -> None:
        dimensions = ("dimension", self.num_dimensions)
        position = sample_vectors("position", 1.0, ("person", data.num_persons), dimensions)
        intercept = sampled("intercept", dist.Normal(0.0, 5.0), item=data.num_items)
        slope = sample_vectors("slope", 2.0, ("item", data.num_items), dimensions)
        logits = intercept[data.item]
        for place in range(self.num_dimensions):
            # One index for each row, as the conjugate updates read it.
            column = np.full(data.num_rows, place)
            logits = logits + slope[data.item, column] * position[data.person, column]
        rows = votes_of(logits, data.count)
        sampled("correct", rows, obs=data.correct, response=data.num_rows)

    def start(self, data: Responses) -> Values:
        asked = np.maximum(data.judgements_by("item"), 1)
        share = (data.answers_by("item")[:, 1] + 0.5) / (asked + 1)
        weight = np.asarray(data.weight, np.float64)
        correct = weight * share[np.asarray(data.item)] if data.correct is None else data.correct
        apart = np.asarray(correct, np.float64) - weight * share[np.asarray(data.item)]
        cells = (apart, (np.asarray(data.person), np.asarray(data.item)))
        table = scipy.sparse.coo_array(cells, (data.num_persons, data.num_items)).tocsr()
        return {
            "position": components(table, self.num_dimensions),
            "intercept": np.log(share / (1 - share)),
            "slope": np.full((data.num_items, self.num_dimensions), 0.1),
        }

    def marginal(self, data: Responses) -> str:
        """Why no mode can be found."""
        return worded("no_mode", name="IdealPoint", others="items")


def _log_odds_of(data: Responses | Patterns, axis: str) -> Float[np.ndarray, " axis"]:
    """Log-odds of the share of right responses of each name, with half a response on each side."""
    axis = "facet" if isinstance(data, Patterns) and axis == "item" else axis
    codes, weight = np.asarray(data.codes(axis)), np.asarray(data.weight, np.float64)
    outcome = getattr(data, data.answer)
    right = weight / 2 if outcome is None else np.asarray(outcome, np.float64)
    if isinstance(data, Patterns):
        repeats = np.asarray(data.repeats, np.float64)[np.asarray(data.group)]
        weight, right = weight * repeats, right * repeats
    size = len(data.coords[axis])
    won, asked = (np.bincount(codes, part, size) for part in (right, weight))
    return np.log((won + 0.5) / (asked - won + 0.5))


def _start_difficulty(data: Responses | Patterns) -> Float[np.ndarray, " item"]:
    """Difficulty of each item by its share of right responses."""
    return -_log_odds_of(data, "item")


def _start_covariance(data: Responses | Patterns) -> Float[np.ndarray, " item"]:
    """Covariance of the responses to each item with the other responses of the same person."""
    axis, own = ("facet", data.group) if isinstance(data, Patterns) else ("item", data.person)
    item, person = np.asarray(data.codes(axis)), np.asarray(own)
    size, weight = len(data.coords[axis]), np.asarray(data.weight, np.float64)
    outcome = getattr(data, data.answer)
    if outcome is None:
        return np.zeros(size)
    times = np.ones(len(item))
    if isinstance(data, Patterns):
        times = np.asarray(data.repeats, np.float64)[person]
    share = expit(_log_odds_of(data, "item"))
    beyond = np.asarray(outcome, np.float64) - weight * share[item]
    total = np.bincount(person, beyond)
    return np.bincount(item, times * beyond * (total[person] - beyond), size)
