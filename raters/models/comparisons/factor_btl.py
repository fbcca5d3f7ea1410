"""BTL model with factors: annotators differ in what they look for, items in what they offer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
from scipy.special import expit

from raters.errors import Reason
from raters.judgements.comparisons import Comparisons
from raters.model import Affine, Rotation, Shift, Spread, Symmetry, Values
from raters.models.comparisons import _sites, tied
from raters.models.components import components
from raters.models.settings import CheckedModel


@dataclass(frozen=True)
class FactorBTL(CheckedModel[Comparisons]):
    r"""Bradley–Terry–Luce model with factors: the rewards of each annotator's own are those of the
    crowd and a product of few dimensions.

    .. math::

        P(i \succ j \mid k) = \sigma\Big(r_i - r_j + \sum_d u_{kd} (v_{id} - v_{jd})\Big), \\
        r_i \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1), \qquad
        u_{kd} \sim \mathrm{Normal}(0, 1), \\
        v_{id} \sim \mathrm{Normal}(0, \tau), \quad \tau \sim \mathrm{LogNormal}(\log ½, 1)

    The position :math:`u_k` says what annotator k looks for, the loading :math:`v_i` what item i
    offers of it. The crowd's rewards r are those of an annotator in the middle, :math:`u = 0`.
    Where `HierarchicalBTL` learns nothing of an item that an annotator never compared, here it is
    predicted from the votes of others with like votes.

    Identification: the likelihood is invariant to a shift of the rewards and of the loadings along
    each dimension (draws are centred); to a rotation or reflection of positions and loadings (draws
    are turned towards their mean, on its principal axes, each in the direction in which the
    annotator furthest from 0 is positive); and to stretches and shifts of the positions, of which
    the priors say where they lie.

    Parameters
    ----------
    num_dimensions : int
        Number of dimensions, at most the number of items less one.

    Examples
    --------
    >>> import raters as rt
    >>> asked, _ = rt.datasets.separated(num_items=5, num_annotators=12, num_votes=600, seed=0)
    >>> votes = rt.simulate(rt.models.FactorBTL(), asked, seed=3).data
    >>> result = rt.fit(rt.models.FactorBTL(), votes, seed=0, progress=False)
    >>> result.posterior["loading"].dims
    ('chain', 'draw', 'item', 'dimension')
    """

    num_dimensions: int = 1

    reference: ClassVar[str] = "rendle2009bpr"

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        return (("position",), ("reward", "loading"))

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (
            Shift("reward"),
            Shift("loading", axis=0),
            Rotation(("position", "loading")),
            Affine("position", "loading", "reward"),
        )

    @property
    def spreads(self) -> tuple[Spread, ...]:
        return (Spread("loading", "loading_scale"),)

    def generate(self, data: Comparisons) -> None:
        size, facts = self.num_dimensions, {"event_dims": ["dimension"]}
        reward_scale = _sites.reward_scale_site(None)
        loading_scale = numpyro.sample("loading_scale", dist.LogNormal(jnp.log(0.5), 1.0))
        with numpyro.plate("annotator", data.num_annotators):
            normal = dist.Normal(0.0, 1.0).expand([size]).to_event(1)
            position = numpyro.sample("position", normal, infer=facts)
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, reward_scale))
            normal = dist.Normal(0.0, loading_scale).expand([size]).to_event(1)
            loading = numpyro.sample("loading", normal, infer=facts)
        logits = reward[data.first] - reward[data.second]
        for place in range(size):
            # One index for each row, as the conjugate updates read it.
            column = np.full(data.num_rows, place)
            offered = loading[data.first, column] - loading[data.second, column]
            logits = logits + position[data.annotator, column] * offered
        with numpyro.plate("comparison", data.num_comparisons):
            _sites.observe(logits, data)

    def start(self, data: Comparisons) -> Values:
        start = _sites.standardised(_sites.win_rate_rewards(data), None)
        reward = np.asarray(start["reward"])
        first, second, who = (np.asarray(c) for c in (data.first, data.second, data.annotator))
        expected = np.asarray(data.weight, np.float64) * expit(reward[first] - reward[second])
        wins = expected if data.wins is None else np.asarray(data.wins, np.float64)
        cells = np.concatenate([wins - expected, expected - wins])
        codes = (np.tile(who, 2), np.concatenate([first, second]))
        shape = (data.num_annotators, data.num_items)
        table = scipy.sparse.coo_array((cells, codes), shape).tocsr()
        start["position"] = components(table, self.num_dimensions)
        loading = np.full((data.num_items, self.num_dimensions), 0.1)
        return start | {"loading": loading, "loading_scale": 0.5}

    def marginal(self, data: Comparisons) -> str:
        """Why no mode can be found."""
        return (
            "the joint mode of positions and loadings is inconsistent for the loadings, and"
            " FactorBTL has no form with the positions integrated out; use PGGibbs, NUTS or SVI"
        )

    def why_not(self, data: Comparisons) -> str | None:
        if self.num_dimensions >= data.num_items:
            problem = f"is more than {data.num_items} items can differ in"
            expected = f"it must be {max(data.num_items - 1, 1)} at most"
            return Reason("num_dimensions", self.num_dimensions, problem, expected)
        return tied.why_not(data)

    def data_warnings(self, data: Comparisons) -> tuple[str, ...]:
        annotators = int((data.judgements_by("annotator") > 0).sum())
        if messages := _sites.of_no_tastes(data):
            return messages
        if self.num_dimensions >= annotators:
            return (
                f"{annotators} annotators differ in at most {annotators} dimensions, and"
                f" num_dimensions is {self.num_dimensions}; fit fewer",
            )
        return ()
