"""Bradley–Terry–Luce model: one reward per item, no differences between annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from raters.errors.validation import boolean, plain_positive
from raters.judgements.comparisons import Comparisons
from raters.model import Model, Shift, Spread, Symmetry, Values
from raters.models.comparisons import _covariates, _sites, _strata, tied


@dataclass(frozen=True)
class BTL(Model[Comparisons]):
    r"""Bradley–Terry–Luce model: the item with the higher reward is preferred more often.

    .. math::

        P(i \succ j) = \sigma(r_i - r_j + x^\top \theta + \gamma), \qquad
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \quad
        \theta_f \sim \mathrm{Normal}(0, c), \quad \gamma \sim \mathrm{Normal}(0, 1)

    with i shown first; γ is present only with ``position_bias=True``, and the features x of i less
    those of j, such as their lengths, only with ``covariates=True``: rewards are then those of
    items whose features are equal ("style control"). With `ties`, a tie is an answer of its own
    (`raters.distributions.Davidson`, `raters.distributions.RaoKupper`), whose propensity
    ν ~ Normal(0, 2) is such that of votes on two equal items :math:`e^\nu / (2 + e^\nu)` are ties.

    With ``strata=True`` an item has the reward :math:`r_i + \delta_{si}` in stratum s, with
    :math:`\delta_{si} \sim \mathrm{Normal}(0, \tau)` and
    :math:`\tau \sim \mathrm{LogNormal}(\log ½, 1)`: r is the common part, and the posterior of
    ``reward + deviation`` is the order within each stratum. Adding a constant to all deviations of
    a stratum changes nothing, so that these too are centred, :math:`\sum_i \delta_{si} = 0`; what
    all deviations of an item have in common may move to its reward, and the priors divide it.

    Identification: the likelihood is invariant to a common shift of the rewards, so draws are
    centred, Σr = 0. With independent normal priors this is the same posterior as under the
    constraint. Rewards are in logits.

    Parameters
    ----------
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    position_bias : bool
        Learn an advantage γ of the item shown first, in logits. Needs an order of presentation.
    covariates : bool
        Learn coefficients of the features of the comparisons, beside the rewards.
    coefficient_scale : float
        Standard deviation c of the coefficients, in logits for each unit of a feature.
    strata : bool
        Learn a deviation of each item in each stratum of the votes.
    deviation_spread : float, optional
        Standard deviation τ of the deviations, in logits; learned unless given.
    ties : {"davidson", "rao-kupper"}, optional
        Model of ties, of votes read with ``ties="keep"``, which the command line then does.
    tie_propensity : {"shared", "annotator"}
        Whose propensity to call a tie is learned: one that all share, or that of each annotator.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["reward"].dims
    ('chain', 'draw', 'item')
    """

    reward_scale: float | None = None
    position_bias: bool = False
    covariates: bool = False
    coefficient_scale: float = 1.0
    strata: bool = False
    deviation_spread: float | None = None
    ties: tied.TieModel | None = None
    tie_propensity: tied.TiePropensity = "shared"

    reference: ClassVar[str] = "bradley1952rank luce1959individual"

    @property
    def cited(self) -> tuple[str, ...]:
        """Those of ties and of covariates too, where there are any."""
        ties = "" if self.ties is None else "davidson1970extending rao1967ties"
        return (self.reference, ties, "li2024style" if self.covariates else "")

    def __post_init__(self) -> None:
        plain_positive(self, "reward_scale", optional=True)
        boolean("position_bias", self.position_bias)
        _covariates.check_settings(self)
        _strata.check_settings(self)
        tied.check_settings(self)

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """Rewards, jointly with deviations, coefficients, the position bias and the propensity to
        call a tie where there are such; propensities of annotators by themselves."""
        bias = ("position_bias",) if self.position_bias else ()
        joint = ("reward", *_strata.block(self), *_covariates.block(self), *bias)
        if not tied.in_block(self):
            return (joint,)
        shared = self.tie_propensity == "shared"
        return ((*joint, "tie_propensity"),) if shared else (joint, ("tie_propensity",))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Common shift of the rewards; with strata also those of the deviations, and the transfer
        between the two."""
        return (Shift("reward"), *_strata.symmetries(self))

    @property
    def spreads(self) -> tuple[Spread, ...]:
        """The spread of the deviations, where it is learned."""
        return _strata.spreads(self)

    def generate(self, data: Comparisons) -> None:
        """Define the NumPyro program."""
        reward_scale = _sites.reward_scale_site(self.reward_scale)
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
        logits = _strata.sample_gap(self, reward, data) + _covariates.sample(self, data)
        if self.position_bias:
            logits = logits + numpyro.sample("position_bias", dist.Normal(0.0, 1.0))
        tied.observe(self, logits, data)

    def start(self, data: Comparisons) -> Values:
        """Start from the log-odds of the win rates."""
        start = _sites.standardised(_sites.win_rate_rewards(data), self.reward_scale)
        start |= {"position_bias": jnp.asarray(0.0)} if self.position_bias else {}
        start |= _covariates.start(self, data) | _strata.start(self, data)
        return start | tied.start(self, data)

    def why_not(self, data: Comparisons) -> str | None:
        """Refuse a position bias for votes without an order of presentation, covariates for votes
        without features, strata for votes without such, and ties that the votes have and the model
        has not, or the other way round."""
        of_order = _sites.why_not_ordered(data) if self.position_bias else None
        return (
            of_order
            or _covariates.why_not(self, data)
            or _strata.why_not(self, data)
            or tied.why_not(data, self)
        )

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        """Warn of pairs shown in one order, where a position bias is learned, and of features that
        cannot be told from rewards."""
        of_order = _sites.of_one_order(data) if self.position_bias else ()
        terms = _covariates.data_warnings(self, data) + _strata.data_warnings(self, data)
        return of_order + terms
