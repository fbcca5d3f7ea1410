"""Bradley–Terry–Luce models with rewards linear in features of the responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.models.comparisons.pairwise import VoteModel
from raters.terms import LinearTypes, Term


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

    reference: ClassVar[str] = "chidambaram2024direct rafailov2023direct"

    @property
    def predictor(self) -> Term:
        return LinearTypes(self.num_types, self.coefficient_scale)
