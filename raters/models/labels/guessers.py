"""Models of a crowd in which some guess, and some give wrong labels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float
from scipy.special import gammaln

from raters.distributions.labels import TypeMixture, log_beta
from raters.judgements.labels import Labels
from raters.model import Fit, Values
from raters.models.labels import _sites
from raters.models.labels._sites import AccuracyModel, ConfusionModel, Confusions
from raters.terms.base import sampled
from raters.terms.types import sample_weight

_TYPES = ("competent", "guesser", "adversary")
# Prior of the shares of the types: numbers of annotators of each that it is worth.
_SHARES = (8.0, 2.0, 1.0)
# Concentration of a guesser's probabilities about those of chance: it stands for infinity.
_GUESS_LABELS = 200.0
# Priors of the mean competence and of how alike the competent are.
_COMPETENCE, _ALIKE = (2.0, 1.0), (10.0, 1.0)
# Most ways of guessing, most numbers in the matrices of all of them, and the finest steps of a
# label's probability from one to the next.
_MOST_WAYS, _NUMBERS, _FINEST = 300, 27_000, 20
# Share of guesses that are of any class.
_ANY = 0.02


def _sample_types(num_classes: int) -> tuple[Array, Array, Array, Array]:
    """Sample the share of each type, the mean probability of a right label of the competent and of
    adversaries, and how alike the competent are."""
    weight = sample_weight(jnp.array(_SHARES))
    # From 0, by chance, to 1.
    competence = numpyro.sample("mean_competence", dist.Beta(*_COMPETENCE))
    median, spread = _ALIKE
    alike = numpyro.sample("concentration", dist.LogNormal(jnp.log(median), spread))
    chance = 1 / num_classes
    return weight, chance + (1 - chance) * competence, chance * (1 - competence), alike


def _start_types() -> Values:
    """Start from the prior's shares, and from a competence and a concentration in the middle."""
    share = jnp.array(_SHARES)
    start = {"type_weight": share / share.sum(), "mean_competence": jnp.array(0.6)}
    return start | {"concentration": jnp.array(_ALIKE[0])}


@dataclass(frozen=True)
class GuesserOneCoin(AccuracyModel):
    r"""One-coin model of a crowd in which some guess, and some give wrong labels.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad
        P(y_{ia} = j \mid t_i = k)
        = \begin{cases} \alpha_a & j = k \\ (1 - \alpha_a)/(K - 1) & j \ne k \end{cases}, \\
        \alpha_a \sim
        \eta_1 \, \mathrm{Beta}(\nu m, \nu (1 - m))
        + \eta_2 \, \mathrm{Beta}\!\left(\tfrac{\kappa}{K}, \kappa - \tfrac{\kappa}{K}\right)
        + \eta_3 \, \mathrm{Beta}(\nu m', \nu (1 - m')), \\
        m = \tfrac1K + \left(1 - \tfrac1K\right) u, \qquad m' = \frac{1 - u}{K}, \qquad
        u \sim \mathrm{Beta}(2, 1), \quad \nu \sim \mathrm{LogNormal}(\log 10, 1), \\
        \eta \sim \mathrm{Dirichlet}(8, 2, 1), \qquad p \sim \mathrm{Dirichlet}(1, \dots, 1)

    The components of the prior are the types of annotators: competent, guessers, whose accuracy is
    that of chance, and adversaries, who give the right label as rarely as the competent give each
    wrong one. `raters.audit` states the probability of each type. κ = 200 stands for infinity,
    under which an accuracy has no density. `GuesserDawidSkene` describes guessers who prefer some
    classes.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(spammers=0.3, seed=1)
    >>> model = rt.models.GuesserOneCoin()
    >>> result = rt.fit(model, labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> mode = result["mode"]["accuracy"].values
    >>> float(mode[truth["kind"] == "spammer"].max().round(2))
    0.35
    """

    reference = "zhang2016spectral"

    def accuracy(self, data: Labels) -> Float[Array, " annotator"]:
        weight, competent, adversary, alike = _sample_types(data.num_classes)
        right = jnp.stack([competent, jnp.full_like(competent, 1 / data.num_classes), adversary])
        total = jnp.stack([alike, jnp.full_like(alike, _GUESS_LABELS), alike])
        concentration = jnp.stack([total * right, total * (1 - right)], -1)
        record = jnp.stack(_sites.beta_record(data), -1)[:, None]
        given = concentration + record
        log_share = log_beta(given, 1) - log_beta(concentration, 1)
        component = dist.Beta(given[..., 0], given[..., 1])
        prior = TypeMixture(weight, component, _TYPES, log_share=log_share)
        return sampled("accuracy", prior, annotator=data.num_annotators)

    def start(self, data: Labels) -> Values:
        return _start_types() | super().start(data)


@dataclass(frozen=True)
class GuesserDawidSkene(ConfusionModel):
    r"""Dawid–Skene model of a crowd in which some guess, and some give wrong labels.

    .. math::

        t_i \sim \mathrm{Categorical}(p), \qquad
        y_{ia} \mid t_i = k \sim \mathrm{Categorical}(\pi_{ak}), \\
        \pi_a \sim
        \eta_1 \prod_k \mathrm{Dirichlet}(\pi_{ak}; \nu m \text{ at } k,
            \nu \tfrac{1 - m}{K - 1} \text{ elsewhere})
        + \frac{\eta_2}{G} \sum_{g=1}^{G} \prod_k \mathrm{Dirichlet}(\pi_{ak}; \kappa q_g) \\
        \qquad + \eta_3 \prod_k \mathrm{Dirichlet}(\pi_{ak}; \nu' m' \text{ at } k,
            \nu' \tfrac{1 - m'}{K - 1} \text{ elsewhere}), \\
        m = \tfrac1K + \left(1 - \tfrac1K\right) u, \quad m' = \frac{1 - u}{K}, \quad
        \nu' = \frac{\nu}{K - 1}, \qquad
        u \sim \mathrm{Beta}(2, 1), \quad \nu \sim \mathrm{LogNormal}(\log 10, 1), \\
        \eta \sim \mathrm{Dirichlet}(8, 2, 1), \qquad p \sim \mathrm{Dirichlet}(1, \dots, 1)

    The components of the prior are the types of annotators: competent; guessers, whose labels have
    the same probabilities whatever the class; and adversaries, who give the right label as rarely
    as the competent give each wrong one. `raters.audit` states the probability of each type.

    A guesser's labels may have any probabilities. They are summed over a grid :math:`q_g` on the
    simplex, of 21 points for two classes, 286 for four, and, beyond 15 classes, of the classes one
    by one and all alike. κ = 200 stands for infinity, under which a matrix has no density.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(spammers=0.3, num_classes=2, seed=1)
    >>> model = rt.models.GuesserDawidSkene()
    >>> result = rt.fit(model, labels, rt.PGEM(draws=0), seed=0, progress=False)
    >>> result["mode"]["confusion"].dims
    ('annotator', 'true_class', 'label')
    """

    reference = "dawid1979maximum"

    def confusion(self, data: Labels) -> Confusions:
        weight, competent, adversary, alike = _sample_types(data.num_classes)
        concentration, log_normaliser = _components(competent, adversary, alike, data.num_classes)
        ways = len(concentration) - 2
        log_share = jnp.array([0.0, *[-np.log(ways)] * ways, 0.0])
        log_share = jnp.broadcast_to(log_share, (data.num_annotators, ways + 2))
        if data.record is not None:
            concentration = concentration + jnp.asarray(data.record)[:, None]
            before, log_normaliser = log_normaliser, log_beta(concentration, 2)
            log_share += log_normaliser - before
        component, type_of = dist.Dirichlet(concentration).to_event(1), (0, *[1] * ways, 2)
        prior = TypeMixture(weight, component, _TYPES, type_of, log_share, log_normaliser)
        number = data.num_annotators
        return sampled("confusion", prior, "true_class", "label", annotator=number)

    def warnings(self, data: Labels, fit: Fit | None = None) -> tuple[str, ...]:
        return _sites.few_labels(data)

    def start(self, data: Labels) -> Values:
        return _start_types() | super().start(data)


def _components(
    competent: Array, adversary: Array, concentration: Array, num_classes: int
) -> tuple[Float[Array, "component true_class label"], Float[Array, " component"]]:
    """Return the concentrations of each component, and the logarithms of their normalisers."""
    diagonal, others = jnp.eye(num_classes, dtype=bool), num_classes - 1

    def about(right: Array) -> Float[Array, "1 true_class label"]:
        return jnp.where(diagonal, right, (1 - right) / others)[None]

    guesses = _GUESS_LABELS * ways_of_guessing(num_classes)
    # Computed once: of NumPy, they are no part of the program.
    of_guesses = num_classes * (gammaln(guesses).sum(-1) - gammaln(_GUESS_LABELS))
    guesses = np.broadcast_to(guesses[:, None], (len(guesses), num_classes, num_classes))
    expert = concentration * about(competent)
    parts = expert, jnp.asarray(guesses), concentration / others * about(adversary)
    log_normalisers = log_beta(parts[0], 2), jnp.asarray(of_guesses), log_beta(parts[2], 2)
    return jnp.concatenate(parts), jnp.concatenate(log_normalisers)


@lru_cache
def ways_of_guessing(num_classes: int) -> Float[np.ndarray, "way label"]:
    """Return probabilities of labels on a grid over the simplex, as fine as there is room for."""

    def ways(steps: int) -> int:
        return comb(steps + num_classes - 1, steps)

    most = min(_MOST_WAYS, _NUMBERS // num_classes**2)
    steps = next((number for number in range(_FINEST, 1, -1) if ways(number) <= most), 0)
    if steps:
        bars = np.array(list(combinations(range(steps + num_classes - 1), num_classes - 1)))
        edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=-1)
        edges[:, -1] = steps + num_classes - 1
        grid = (np.diff(edges, axis=1) - 1) / steps
    else:
        grid = np.vstack([np.eye(num_classes), np.full(num_classes, 1 / num_classes)])
    return (1 - _ANY) * grid + _ANY / num_classes
