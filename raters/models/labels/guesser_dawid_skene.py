"""Dawid and Skene's model with guessers and adversaries."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float
from scipy.special import gammaln

from raters.distributions.type_mixture import TypeMixture, log_beta
from raters.judgements.labels import Labels
from raters.model import Fit, Values
from raters.models.labels import _guessers, _sites

# Most ways of guessing, most numbers in the matrices of all of them, and the finest steps of a
# label's probability from one to the next.
_MOST_WAYS, _NUMBERS, _FINEST = 300, 27_000, 20
# Share of guesses that are of any class.
_ANY = 0.02


@dataclass(frozen=True)
class GuesserDawidSkene(_sites.ConfusionModel):
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

    reference: ClassVar[str] = "dawid1979maximum"

    def confusion(self, data: Labels) -> Float[Array, "annotator true_class label"]:
        weight = _guessers.sample_type_weight()
        concentration, log_normaliser = _components(*_guessers.sample_competent(), data.num_classes)
        ways = len(concentration) - 2
        log_share = jnp.array([0.0, *[-np.log(ways)] * ways, 0.0])
        log_share = jnp.broadcast_to(log_share, (data.num_annotators, ways + 2))
        if data.record is not None:
            concentration = concentration + jnp.asarray(data.record)[:, None]
            before, log_normaliser = log_normaliser, log_beta(concentration, 2)
            log_share += log_normaliser - before
        prior = TypeMixture(
            weight,
            dist.Dirichlet(concentration).to_event(1),
            _guessers.TYPES,
            (0, *[1] * ways, 2),
            log_share,
            log_normaliser,
        )
        with numpyro.plate("annotator", data.num_annotators):
            return numpyro.sample("confusion", prior, infer={"event_dims": ["true_class", "label"]})

    def warnings(self, data: Labels, fit: Fit | None = None) -> tuple[str, ...]:
        return _sites.few_labels(data)

    def start(self, data: Labels) -> Values:
        return _guessers.start() | super().start(data)


def _components(
    competence: Array, concentration: Array, num_classes: int
) -> tuple[Float[Array, "component true_class label"], Float[Array, " component"]]:
    """Return the concentrations of each component, and the logarithms of their normalisers."""
    competent, adversary = _guessers.right(competence, num_classes)
    diagonal, others = jnp.eye(num_classes, dtype=bool), num_classes - 1

    def about(right: Array) -> Float[Array, "1 true_class label"]:
        return jnp.where(diagonal, right, (1 - right) / others)[None]

    guesses = _guessers.GUESS_LABELS * ways_of_guessing(num_classes)
    # Computed once: of NumPy, they are no part of the program.
    of_guesses = num_classes * (gammaln(guesses).sum(-1) - gammaln(_guessers.GUESS_LABELS))
    guesses = np.broadcast_to(guesses[:, None], (len(guesses), num_classes, num_classes))
    parts = (
        concentration * about(competent),
        jnp.asarray(guesses),
        concentration / others * about(adversary),
    )
    log_normalisers = log_beta(parts[0], 2), jnp.asarray(of_guesses), log_beta(parts[2], 2)
    return jnp.concatenate(parts), jnp.concatenate(log_normalisers)


@lru_cache
def ways_of_guessing(num_classes: int) -> Float[np.ndarray, "way label"]:
    """Return probabilities of labels on a grid over the simplex, as fine as there is room for."""
    steps = next(
        (
            number
            for number in range(_FINEST, 1, -1)
            if comb(number + num_classes - 1, number) <= min(_MOST_WAYS, _NUMBERS // num_classes**2)
        ),
        0,
    )
    if steps:
        bars = np.array(list(combinations(range(steps + num_classes - 1), num_classes - 1)))
        edges = np.pad(bars, ((0, 0), (1, 1)), constant_values=-1)
        edges[:, -1] = steps + num_classes - 1
        grid = (np.diff(edges, axis=1) - 1) / steps
    else:
        grid = np.vstack([np.eye(num_classes), np.full(num_classes, 1 / num_classes)])
    return (1 - _ANY) * grid + _ANY / num_classes
