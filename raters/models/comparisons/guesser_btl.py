"""Extended-BTL with guessers and adversaries as types of annotators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.judgements.comparisons import Comparisons
from raters.model import Scale, Shift, Sign, Symmetry, Values
from raters.models import competences
from raters.models.comparisons import _sites, _types, tied
from raters.models.comparisons._takeover import takeover
from raters.models.comparisons.directions import DIRECTIONS, directed
from raters.models.mirror import open_mirror
from raters.models.settings import CheckedModel

_TYPES = tuple(DIRECTIONS)
# Prior of the shares of the types.
_SHARES = (6.0, 1.0, 1.0)
# Prior of the spread of the competences: median, and standard deviation of its logarithm. A spread
# of 1 puts many competent annotators near 0, where the guessers are, and the types would not differ
# in what they say of votes.
_SPREAD, _SPREAD_SCALE = 0.3, 0.5


@dataclass(frozen=True)
class GuesserBTL(CheckedModel[Comparisons]):
    r"""Extended-BTL with guessers and adversaries as types of annotators of their own.

    .. math::

        z_k \sim \mathrm{Categorical}(\eta), \qquad
        P(i \succ j \mid k, z_k) = \sigma(d_{z_k} \beta_k (r_i - r_j) + \gamma_k), \qquad
        d = (1, 0, -1), \\
        \eta \sim \mathrm{Dirichlet}(6, 1, 1), \qquad
        \beta_k \sim \mathrm{Normal}(1, \tau) \text{ on } [0, \infty), \quad
        \tau \sim \mathrm{LogNormal}(\log 0.3, ½), \\
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    with the types competent, guesser and adversary, and position biases γ as in `ExtendedBTL`, only
    with ``position_bias=True``: a guesser may favour a side.

    The posterior probability that an annotator is a guesser or an adversary is that of the type, in
    ``result["types"]["responsibility"]``. The type is summed out, so the likelihood is a product
    over annotators, the unit that `raters.log_likelihood` and ``arviz.loo`` leave out. The prior of
    the spread τ keeps competent annotators away from 0: one who knows little is hardly in the
    model, and with few votes is called a guesser.

    Identification: the likelihood is invariant to

    - a shift of the rewards: draws are centred, Σr = 0;
    - the scale, (r, β) → (c·r, β/c): the prior, with competences about 1, determines it;
    - the mirror, r → −r with competent annotators and adversaries exchanged in η: the prior encodes
      that more annotators are competent. The odds of the mirror image are
      :math:`(\eta_3 / \eta_1)^5`.

    The site ``competence`` is β, without the sign. `raters.audit` gives d·β.

    Parameters
    ----------
    reward_scale : float, optional
        Standard deviation s of the rewards, in logits; learned unless given.
    competence_spread : float, optional
        Standard deviation τ of the competences about 1, before truncation; learned unless given.
    position_bias : bool
        Learn by how many logits γ_k each annotator favours the item shown first. Needs an order of
        presentation.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(8, 10, 1500, seed=0)
    >>> result = rt.fit(rt.models.GuesserBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> guess = result["types"]["responsibility"].sel(type="guesser")
    >>> [name for name in guess["annotator"].values.tolist() if guess.sel(annotator=name) > 0.5]
    [9]
    """

    reward_scale: float | None = None
    competence_spread: float | None = None
    position_bias: bool = False

    reference: ClassVar[str] = "shejole_learning raykar2012eliminating"

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        bias = (("position_bias",),) if self.position_bias else ()
        return (("type_weight",), ("reward",), ("competence",), *bias)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        up = ("reward", "reward_scale") if self.reward_scale is None else ("reward",)
        mirror = Sign(("reward",), exchanged=(("type_weight", (2, 1, 0)),))
        return (Shift("reward"), Scale(up=up, down=("competence",)), mirror)

    def generate(self, data: Comparisons) -> None:
        prior = dist.Dirichlet(jnp.array(_SHARES))
        weight = numpyro.sample("type_weight", prior, infer={"event_dims": ["type"]})
        reward_scale = _sites.reward_scale_site(self.reward_scale)
        spread = competences.competence_spread_site(self.competence_spread, _SPREAD, _SPREAD_SCALE)
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
        competence = competences.competence_site("positive", spread, data.num_annotators)
        # Each log-odds needs its own index, as the conjugate updates read it row by row.
        first, second, annotator = (
            jnp.broadcast_to(jnp.asarray(code)[:, None], (data.num_comparisons, len(_TYPES)))
            for code in (data.first, data.second, data.annotator)
        )
        sign = jnp.array(list(DIRECTIONS.values()))
        logits = sign * competence[annotator] * (reward[first] - reward[second])
        if self.position_bias:
            logits = logits + _sites.position_bias_site(data.num_annotators)[annotator]
        _types.observe(weight, logits, data, _TYPES)

    def start(self, data: Comparisons) -> Values:
        start: Values = {"type_weight": jnp.asarray(np.array(_SHARES) / sum(_SHARES))}
        start |= _sites.standardised(_sites.win_rate_rewards(data), self.reward_scale)
        start |= _sites.competence_start(data, self.competence_spread)
        if self.competence_spread is None:
            start["competence_spread"] = jnp.asarray(_SPREAD)
        return start | (_sites.position_bias_start(data) if self.position_bias else {})

    def fit_warnings(
        self, draws: Values, responsibility: np.ndarray | None, data: Comparisons
    ) -> tuple[str, ...]:
        flat = {name: np.asarray(value) for name, value in draws.items()}
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in flat.items()}
        competence = directed(self, data, flat)[None]
        # A mean over two mirrored worlds describes neither of them.
        mirrored = open_mirror(competence, data, "votes")
        return mirrored or takeover(draws | {"competence": competence}, data)

    def why_not(self, data: Comparisons) -> str | None:
        return _sites.why_not_ordered(self, data) or tied.why_not(data)

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        return _sites.of_one_annotator(data) + _sites.of_one_order(self, data)
