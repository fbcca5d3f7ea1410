"""Models with rewards that are linear in features of what is compared."""

from __future__ import annotations

from dataclasses import dataclass

from raters.judgements.comparisons import Comparisons
from raters.model import Fit
from raters.models.base import open_reward
from raters.models.comparisons.pairwise import VoteModel
from raters.terms import Competence, LinearRewards, LinearTypes, Term
from raters.terms.competence import Range, Width


@dataclass(frozen=True)
class ContextualBTL(VoteModel):
    r"""Bradley–Terry–Luce model with rewards linear in features of prompt and response.

    .. math::

        r_z(x, y) = \phi(x, y)^\top \theta_z, \qquad
        P(y_1 \succ y_2 \mid x, k, z_k = z) = \sigma(r_z(x, y_1) - r_z(x, y_2)), \\
        z_k \sim \mathrm{Categorical}(\eta), \qquad
        \eta \sim \mathrm{Dirichlet}(1, \dots, 1), \qquad
        \theta_{fz} \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    With one type this is the reward model of reinforcement learning from human feedback, with a
    posterior. With several it is the mixture that EM-DPO fits: DPO's weighted loss in the policy
    :math:`\pi_z \propto \pi_\mathrm{ref} \exp(r_z / \beta)` is this model's expected log-likelihood
    in θ. `raters.alignment` turns coefficients into policies.

    All coefficients have one prior scale, so features should be on similar scales. `MixtureBTL`
    describes how to choose the number of types, and how they are numbered.

    Parameters
    ----------
    num_types : int
        Number of types.
    coefficient_scale : float, optional
        Standard deviation s of the coefficients; learned unless given.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.Comparisons.from_frame(
    ...     {"a": ["a1", "a2", "a3"], "b": ["b1", "b2", "b3"], "better": ["a", "a", "b"],
    ...      "who": ["ann", "bob", "ann"], "length_a": [3.0, 2.0, 1.0],
    ...      "length_b": [1.0, 1.0, 2.0]},
    ...     first="a", second="b", outcome="better", annotator="who",
    ...     features={"length": ("length_a", "length_b")})
    >>> result = rt.fit(rt.models.ContextualBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["coefficient"].dims
    ('chain', 'draw', 'feature', 'type')
    """

    num_types: int = 1
    coefficient_scale: float | None = None

    reference = "chidambaram2024direct rafailov2023direct"

    @property
    def predictor(self) -> Term:
        return LinearTypes(self.num_types, self.coefficient_scale)


@dataclass(frozen=True)
class LinearExtendedBTL(VoteModel):
    r"""Extended-BTL model with a reward that is linear in features of what is compared.

    .. math::

        P(i \succ j \mid k) = \sigma(\beta_k \, \theta^\top (\phi_i - \phi_j)), \qquad
        \theta_f \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \qquad
        \beta_k \sim \mathrm{Normal}(1, \tau) \text{ on } B

    It has the competences of `ExtendedBTL` and the coefficients of `ContextualBTL`. With the
    discounted sums of the features along two trajectories for :math:`\phi`, it is the model of
    comparisons of reward-rational choice (Jeon, Milli and Dragan 2020), in which :math:`\theta` is
    the reward and :math:`\beta` the rationality of `MaxEntIRL`. `JointModel` fits both together.

    Identification: the likelihood is invariant to the scale, (θ, β) → (c·θ, β/c), and with
    ``"signed"`` to the sign. The prior, with the crowd about β = 1, determines both.

    Parameters
    ----------
    competence : {"unit", "positive", "signed"}
        Range B: [0, 1], [0, ∞) or the real line. Choose ``"signed"`` to find adversaries.
    coefficient_scale : float, optional
        Standard deviation s of the coefficients, in logits for one unit of a feature; learned
        unless given.
    competence_spread : float, "learned" or "auto"
        Standard deviation τ of the competences about 1, before truncation. ``"auto"``: 1 with
        ``"signed"``, else learned.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=6, num_annotators=4, num_votes=300, seed=0)
    >>> votes = votes.with_features([[0.0, 1], [1, 0], [2, 1], [0, 0], [1, 1], [2, 0]],
    ...                             names=["length", "polite"])
    >>> result = rt.fit(rt.models.LinearExtendedBTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> result.posterior["coefficient"].dims
    ('chain', 'draw', 'feature')
    """

    competence: Range = "signed"
    coefficient_scale: float | None = None
    competence_spread: Width = "auto"

    reference = "shejole_learning jeon2020reward"

    @property
    def predictor(self) -> Term:
        competence = Competence(self.competence, self.competence_spread)
        return competence * LinearRewards(self.coefficient_scale)

    def fit_warnings(self, data: Comparisons, fit: Fit) -> tuple[str, ...]:
        if self.competence != "signed":
            return ()
        remedy = "one annotator who is known to be good would decide it"
        return open_reward(fit.draws["competence"], "votes", remedy)
