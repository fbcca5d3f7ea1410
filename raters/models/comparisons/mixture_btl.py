"""Mixture of Bradley–Terry–Luce models, one for each type of annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.errors.validation import one_of, plain_positive
from raters.judgements.comparisons import Comparisons
from raters.model import Model, Scale, Shift, Symmetry, Values
from raters.models import competences, types
from raters.models.comparisons import _sites, _types


@dataclass(frozen=True)
class MixtureBTL(Model[Comparisons]):
    r"""Mixture of Bradley–Terry–Luce models: each annotator belongs to a type with its own rewards.

    .. math::

        z_k \sim \mathrm{Categorical}(\eta), \qquad
        P(i \succ j \mid k, z_k = z) = \sigma(\beta_k (r_{iz} - r_{jz})), \\
        \eta \sim \mathrm{Dirichlet}(c, \dots, c), \qquad
        r_{iz} \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    with β = 1, or with ``competence=`` learned for each annotator as in `ExtendedBTL`. Taste and
    skill are then separate: the type sets the direction of an annotator's preferences, and the
    competence their strength.

    The type of each annotator is summed out, so the likelihood is a product over annotators, the
    unit that `raters.log_likelihood` and ``arviz.loo`` leave out. The probability of each type for
    each annotator is in the result, as ``result["types"]["responsibility"]``.

    To choose the number of types, compare ``arviz.loo`` of several `num_types`; or give more than
    needed with a small concentration c < 1 or ``type_prior="stick_breaking"``, which empty the
    spare ones. With c below half of the number of rewards of a type, spare types empty as votes
    grow (Rousseau and Mengersen 2011). Under stick-breaking, a Dirichlet process truncated at
    `num_types`, :math:`\eta_t = v_t \prod_{u<t}(1 - v_u)` with
    :math:`v_t \sim \mathrm{Beta}(1, c)`.

    Identification: rewards of each type are centred. The likelihood is invariant to permutations of
    the types, so draws are relabelled by Stephens' algorithm, under which their responsibilities
    agree best, and types are then numbered by decreasing share.

    Annotators with a single vote separate types only by votes that no single set of rewards fits,
    such as a cycle. With few votes each, tastes must differ much: `raters.fit` warns where types
    are not separated. An annotator with opposite preferences and one of low competence can only be
    distinguished once they have voted on several pairs.

    Parameters
    ----------
    num_types : int
        Number of types.
    competence : {"unit", "positive"}, optional
        Range of each annotator's competence; 1 for all unless given. A negative competence would be
        a type with reversed rewards, so there is no ``"signed"``.
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    type_prior : {"dirichlet", "stick_breaking"}
        Prior of the shares of the types.
    concentration : float
        Concentration c of the prior on the shares.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.preference_types(num_items=4, num_annotators=30, votes_each=20,
    ...                                             num_types=2, seed=0)
    >>> result = rt.fit(rt.MixtureBTL(num_types=2), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["reward"].dims
    ('chain', 'draw', 'item', 'type')
    >>> result["types"]["responsibility"].dims
    ('annotator', 'type')
    """

    num_types: int = 2
    competence: Literal["unit", "positive"] | None = None
    reward_scale: float | None = None
    type_prior: types.TypePrior = "dirichlet"
    concentration: float = 1.0

    reference: ClassVar[str] = "chidambaram2024direct"

    def __post_init__(self) -> None:
        types.check_settings(self)
        if self.competence is not None:
            one_of("competence", self.competence, ("unit", "positive"))
        plain_positive(self, "reward_scale", optional=True)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Shift of each type's rewards, permutation of the types, and scale of rewards against
        competences."""
        up = ("reward", "reward_scale") if self.reward_scale is None else ("reward",)
        scale = (Scale(up=up, down=("competence",)),) if self.competence else ()
        return (Shift("reward", axis=0), *types.permute(self, "reward"), *scale)

    def generate(self, data: Comparisons) -> None:
        """Define the NumPyro program."""
        weight = types.sample_weight(self)
        reward_scale = _sites.reward_scale_site(self.reward_scale)
        with (
            numpyro.plate("item", data.num_items, dim=-2),
            numpyro.plate("type", self.num_types, dim=-1),
        ):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
        logits = reward[data.first] - reward[data.second]
        if self.competence is not None:
            # Each log-odds needs its own index, as the conjugate updates read it row by row.
            annotator = jnp.broadcast_to(jnp.asarray(data.annotator)[:, None], logits.shape)
            spread = competences.competence_spread_site(None)
            competence = competences.competence_site(self.competence, spread, data.num_annotators)
            logits = competence[annotator] * logits
        _types.observe(weight, logits, data)

    def start(self, data: Comparisons) -> Values:
        """Start from the win rates within clusters of annotators with similar votes."""
        return self._from_clusters(data, np.random.default_rng(0), tries=10)

    def another_start(self, data: Comparisons, rng: np.random.Generator) -> Values:
        """Return a start as `start` does, from a single clustering with random seeds."""
        return self._from_clusters(data, rng, tries=1)

    def _from_clusters(self, data: Comparisons, rng: np.random.Generator, tries: int) -> Values:
        cluster = types.clusters(
            _types.profiles(data, _types.item_design(data)), self.num_types, rng, tries
        )
        of_type = cluster[np.asarray(data.annotator)]
        rewards = [
            _sites.win_rate_rewards(data.take(of_type == code)) for code in range(self.num_types)
        ]
        start: Values = {"type_weight": jnp.asarray(types.shares(cluster, self.num_types))}
        start |= _sites.standardised(np.stack(rewards, -1), self.reward_scale)
        if self.competence:
            start |= _sites.competence_start(data, None)
        return start

    def why_not(self, data: Comparisons) -> str | None:
        """Refuse more types than annotators."""
        return _types.why_not(self, data)

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        """Warn of annotators with a single vote."""
        return types.data_warnings(self, data.judgements_by("annotator"))

    def fit_warnings(
        self, draws: Values, responsibility: np.ndarray | None, data: Comparisons
    ) -> tuple[str, ...]:
        """Warn of types that are empty or not separated."""
        return types.fit_warnings(responsibility)
