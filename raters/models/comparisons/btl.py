"""Bradley–Terry–Luce model: one reward per item, no differences between annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from raters.judgements.comparisons import Comparisons
from raters.model import Shift, Symmetry, Values
from raters.models.comparisons import _covariates, _sites, _strata, tied


@dataclass(frozen=True)
class BTL(tied.TermModel):
    r"""Bradley–Terry–Luce model: the item with the higher reward is preferred more often.

    .. math::

        P(i \succ j) = \sigma(r_i - r_j + x^\top \theta + \gamma), \qquad
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \quad
        \theta_f \sim \mathrm{Normal}(0, 1), \quad \gamma \sim \mathrm{Normal}(0, 1)

    with i shown first; γ is present only with ``position_bias=True``, and the features x of i less
    those of j, such as their lengths, only with ``covariates=True``: rewards are then those of
    items whose features are equal ("style control"). With `ties`, a tie is an answer of its own
    (Davidson 1970; Rao and Kupper 1967), whose propensity ν ~ Normal(0, 2) is such that of votes on
    two equal items :math:`e^\nu / (2 + e^\nu)` are ties.

    With ``strata=True`` an item has the reward :math:`r_i + \delta_{si}` in stratum s, with
    :math:`\delta_{si} \sim \mathrm{Normal}(0, \tau)` and
    :math:`\tau \sim \mathrm{LogNormal}(\log ½, 1)`.

    Identification: the likelihood is invariant to a common shift of the rewards, so draws are
    centred, Σr = 0, and so are the deviations of each stratum. Rewards are in logits.

    Parameters
    ----------
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    position_bias : bool
        Learn an advantage γ of the item shown first, in logits. Needs an order of presentation.
    covariates : bool
        Learn coefficients of the features of the comparisons, beside the rewards.
    strata : bool
        Learn a deviation of each item in each stratum of the votes.
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
    strata: bool = False
    ties: tied.TieModel | None = None
    tie_propensity: tied.TiePropensity = "shared"

    reference: ClassVar[str] = "bradley1952rank luce1959individual"

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        bias = ("position_bias",) if self.position_bias else ()
        joint = ("reward", *_strata.block(self), *_covariates.block(self), *bias)
        if not tied.in_block(self):
            return (joint,)
        shared = self.tie_propensity == "shared"
        return ((*joint, "tie_propensity"),) if shared else (joint, ("tie_propensity",))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (Shift("reward"), *_strata.symmetries(self))

    def generate(self, data: Comparisons) -> None:
        reward_scale = _sites.reward_scale_site(self.reward_scale)
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
        logits = _strata.sample_gap(self, reward, data) + _covariates.sample(self, data)
        if self.position_bias:
            logits = logits + numpyro.sample("position_bias", dist.Normal(0.0, 1.0))
        tied.observe(self, logits, data)

    def start(self, data: Comparisons) -> Values:
        start = _sites.standardised(_sites.win_rate_rewards(data), self.reward_scale)
        start |= {"position_bias": jnp.asarray(0.0)} if self.position_bias else {}
        start |= _covariates.start(self, data) | _strata.start(self, data)
        return start | tied.start(self, data)

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        terms = _covariates.data_warnings(self, data) + _strata.data_warnings(self, data)
        return _sites.of_one_order(self, data) + terms
