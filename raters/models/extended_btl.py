"""Extended-BTL: one reward per item and one competence per annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from raters._check import boolean, one_of, plain_positive, positive
from raters.data import Comparisons
from raters.model import Model, Scale, Shift, Sign, Symmetry, Values
from raters.models import _votes

Competence = Literal["unit", "positive", "signed"]
_LOW = {"unit": 0.0, "positive": 0.0, "signed": None}
_HIGH = {"unit": 1.0, "positive": None, "signed": None}


@dataclass(frozen=True)
class ExtendedBTL(Model[Comparisons]):
    r"""Extended Bradley–Terry–Luce: the higher an annotator's competence, the more often the better item gets the vote.

    .. math::

        P(i \succ j \mid k) = \sigma(\beta_k (r_i - r_j) + \gamma_k), \qquad
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \\
        \beta_k \sim \mathrm{Normal}(1, \tau) \text{ on } B, \quad \tau \sim \mathrm{LogNormal}(\log ½, 1), \qquad
        \gamma_k \sim \mathrm{Normal}(\bar\gamma, \phi), \quad \bar\gamma \sim \mathrm{Normal}(0, 1), \quad
        \phi \sim \mathrm{LogNormal}(\log ½, 1)

    where B is [0, 1] (``"unit"``), [0, ∞) (``"positive"``) or the real line (``"signed"``), and γ is present only with
    ``position_bias=True``. A competence of 0 is a guesser, 1 the annotator that all are measured against, below 0 an
    adversary, whose votes are informative once turned round.

    The competences are hierarchical: reward scale and spread are learned from all votes with the crowd's centre at β = 1, so
    an annotator with three votes borrows from the others. With ``"signed"`` the spread is 1 unless it is asked to be learned:
    where a few adversaries stand far off the rest, a learned normal spread fits the rest and hides them (on the
    reading-level votes of Chen et al. 2013 it finds 1 negative competence instead of 13). As τ → 0 the model becomes `BTL`;
    as τ → ∞ with ``"unit"`` the prior becomes the uniform one of the paper.

    Identification: the likelihood ignores (a) a shift of the rewards: draws are centred, Σr = 0; (b) the scale,
    (r, β) → (c·r, β/c): fixed by the prior, which puts the reference annotator at β = 1, so report ratios of competences and
    β·(r_i − r_j) where the unit matters; (c) with ``"signed"``, the sign, (r, β) → (−r, −β): the prior's mean of 1 says
    that the crowd as a whole is on the side of the truth.

    Departures from the paper: Σr = 0 with β in [0, 1] does not fix the scale (r can grow while β shrinks), so the priors
    above are needed; the printed M-step of §4.2.2 diverges (no κ term, no sign for the loser), the appendix's is
    right but for a sign in its Step 3, and raters derives the updates from this program instead; "MLE is infeasible" is
    not so; β in [0, 1] cannot represent an adversary, ``"signed"`` can.

    Parameters
    ----------
    competence : {"unit", "positive", "signed"}
        Where competences may lie. Choose ``"signed"`` to find adversaries.
    reward_scale : float, optional
        Standard deviation s of the rewards; learned when it is not given.
    competence_spread : float, "learned" or "auto"
        Standard deviation τ of the competences about 1, before truncation. ``"auto"``: 1 with ``"signed"``, else learned.
    position_bias : bool
        Whether each annotator favours the item shown first, by γ_k logits. Needs an order of presentation.

    References
    ----------
    Shejole, K. and Kush. Learning human expertise in RLHF using Extended-BTL model. IIT Bombay.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=5, num_annotators=4, num_votes=400, seed=0)
    >>> result = rt.fit(rt.ExtendedBTL(competence="signed"), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["competence"].dims
    ('chain', 'draw', 'annotator')
    """

    competence: Competence = "unit"
    reward_scale: float | None = None
    competence_spread: float | Literal["auto", "learned"] = "auto"
    position_bias: bool = False

    takes: ClassVar[type] = Comparisons
    reference: ClassVar[str] = r"""
    @unpublished{shejole_learning,
      author = {Shejole, Kaustubh and {Kush}},
      title  = {Learning Human Expertise in {RLHF} Using {Extended-BTL} Model},
      note   = {Department of Computer Science, IIT Bombay, under the guidance of Arpit Agarwal},
    }
    """

    def __post_init__(self) -> None:
        one_of("competence", self.competence, _LOW)
        plain_positive(self, "reward_scale", optional=True)
        boolean("position_bias", self.position_bias)
        if isinstance(self.competence_spread, str):
            one_of("competence_spread", self.competence_spread, ("auto", "learned"))
        else:
            positive("competence_spread", self.competence_spread)
            object.__setattr__(self, "competence_spread", float(self.competence_spread))

    @property
    def _fixed_spread(self) -> float | None:
        """The spread of the competences, or None when it is learned."""
        if isinstance(self.competence_spread, str):
            return 1.0 if self.competence_spread == "auto" and self.competence == "signed" else None
        return self.competence_spread

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """Rewards, then competences, then position biases."""
        bias = (("position_bias",),) if self.position_bias else ()
        return (("reward",), ("competence",), *bias)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Shift of the rewards, scale against competences, and the common sign of both when that is free."""
        up = ("reward", "reward_scale") if self.reward_scale is None else ("reward",)
        sign = (Sign(("reward", "competence")),) if self.competence == "signed" else ()
        return (Shift("reward"), Scale(up=up, down=("competence",)), *sign)

    def generate(self, data: Comparisons) -> None:
        """The NumPyro program."""
        reward_scale = _votes.reward_scale_site(self.reward_scale)
        spread = self._fixed_spread
        if spread is None:
            spread = numpyro.sample("competence_spread", dist.LogNormal(jnp.log(0.5), 1.0))
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
        low, high = _LOW[self.competence], _HIGH[self.competence]
        with numpyro.plate("annotator", data.num_annotators):
            competence = numpyro.sample("competence", dist.TruncatedNormal(1.0, spread, low=low, high=high))
        logits = competence[data.annotator] * (reward[data.first] - reward[data.second])
        if self.position_bias:
            logits = logits + self._position_bias(data)[data.annotator]
        with numpyro.plate("comparison", data.num_comparisons):
            _votes.observe(logits, data)

    def _position_bias(self, data: Comparisons):
        mean = numpyro.sample("position_bias_mean", dist.Normal(0.0, 1.0))
        spread = numpyro.sample("position_bias_spread", dist.LogNormal(jnp.log(0.5), 1.0))
        with numpyro.plate("annotator", data.num_annotators):
            return numpyro.sample("position_bias", dist.Normal(mean, spread))

    def start(self, data: Comparisons) -> Values:
        """Log-odds of the win rates; everyone near the reference, so on the truth's side of the sign."""
        start = _votes.standardised(_votes.win_rate_rewards(data), self.reward_scale)
        start["competence"] = jnp.full(data.num_annotators, 0.8)
        if self._fixed_spread is None:
            start["competence_spread"] = jnp.asarray(0.5)
        if self.position_bias:
            start["position_bias"] = jnp.zeros(data.num_annotators)
            start |= {"position_bias_mean": jnp.asarray(0.0), "position_bias_spread": jnp.asarray(0.5)}
        return start

    def why_not(self, data: Comparisons) -> str | None:
        """A position bias needs an order of presentation."""
        return _votes.why_not_ordered(data) if self.position_bias else None

    def cautions(self, data: Comparisons) -> tuple[str, ...]:
        """With one annotator, competence and the scale of the rewards are one number."""
        if len(set(data.annotator.tolist())) > 1:
            return ()
        return (
            "all votes are by one annotator, whose competence cannot be told from the scale of the rewards; "
            "name the column that says who voted (annotator=...), or fit BTL()",
        )
