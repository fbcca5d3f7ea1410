"""One-coin model with guessers and adversaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.distributions.type_mixture import TypeMixture, log_beta
from raters.judgements.labels import Labels
from raters.model import Values
from raters.models.labels import _guessers, _sites


@dataclass(frozen=True)
class GuesserOneCoin(_sites.AccuracyModel):
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

    reference: ClassVar[str] = "zhang2016spectral"

    def accuracy(self, data: Labels) -> Float[Array, " annotator"]:
        weight = _guessers.sample_type_weight()
        concentration = _concentration(*_guessers.sample_competent(), data.num_classes)
        record = jnp.stack(_sites.beta_record(data), -1)[:, None]
        given = concentration + record
        log_share = log_beta(given, 1) - log_beta(concentration, 1)
        component = dist.Beta(given[..., 0], given[..., 1])
        with numpyro.plate("annotator", data.num_annotators):
            prior = TypeMixture(weight, component, _guessers.TYPES, log_share=log_share)
            return numpyro.sample("accuracy", prior)

    def start(self, data: Labels) -> Values:
        return _guessers.start() | super().start(data)


def _concentration(
    competence: Array, concentration: Array, num_classes: int
) -> Float[Array, "type 2"]:
    """Return concentrations of right and wrong labels of each type."""
    competent, adversary = _guessers.right(competence, num_classes)
    right = jnp.stack([competent, jnp.full_like(competent, 1 / num_classes), adversary])
    guesses = jnp.full_like(concentration, _guessers.GUESS_LABELS)
    total = jnp.stack([concentration, guesses, concentration])
    return jnp.stack([total * right, total * (1 - right)], -1)
