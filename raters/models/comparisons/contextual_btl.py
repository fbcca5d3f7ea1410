"""Bradley–Terry–Luce models with rewards linear in features of the responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Float

from raters.judgements.comparisons import Comparisons
from raters.model import Symmetry, Values
from raters.models import types
from raters.models.comparisons import _covariates, _types


@dataclass(frozen=True)
class ContextualBTL(types.TypeModel[Comparisons]):
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
    def symmetries(self) -> tuple[Symmetry, ...]:
        return types.permute(self, "coefficient")

    def generate(self, data: Comparisons) -> None:
        weight = types.sample_weight(self.num_types, 1.0)
        scale = self.coefficient_scale
        if scale is None:
            scale = numpyro.sample("coefficient_scale", dist.LogNormal(0.0, 1.0))
        with (
            numpyro.plate("feature", len(data.feature_names), dim=-2),
            numpyro.plate("type", self.num_types, dim=-1),
        ):
            coefficient = numpyro.sample("coefficient", dist.Normal(0.0, scale))
        _types.observe(weight, jnp.asarray(data.features) @ coefficient, data)

    def profiles(self, data: Comparisons) -> Float[np.ndarray, "annotator feature"]:
        return _types.profiles(data, np.asarray(data.features, float))

    def start_of_types(self, parts: list[Comparisons]) -> Values:
        columns = [_covariates.regression(part, self.coefficient_scale) for part in parts]
        coefficient = np.stack(columns, -1)
        start: Values = {}
        if self.coefficient_scale is None:
            start["coefficient_scale"] = jnp.asarray(max(float(np.std(coefficient)), 0.1))
        return start | {"coefficient": jnp.asarray(coefficient)}

    def why_not(self, data: Comparisons) -> str | None:
        return _covariates.why_no_features(self, data) or _types.why_not(self, data)

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        messages = list(types.data_warnings(self, data.judgements_by("annotator")))
        if equal := int((np.asarray(data.features) == 0).all(1).sum()):
            messages.append(
                f"{equal} of {data.num_comparisons} comparisons have the same features on both"
                " sides; their answers say nothing"
            )
        return (*messages, *_covariates.of_features(data))
