"""Mixture of Plackett–Luce models, one for each type of annotator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import scipy.sparse
from jaxtyping import Float

from raters.distributions import GroupedMixture
from raters.judgements.counts import mean_ranks
from raters.judgements.rankings import Rankings
from raters.model import Fit, Shift, Symmetry, Values
from raters.models.rankings import _sites
from raters.models.settings import CheckedModel
from raters.terms import types


@dataclass(frozen=True)
class MixturePlackettLuce(CheckedModel[Rankings]):
    r"""Mixture of Plackett–Luce models: each annotator belongs to a type with its own worths.

    .. math::

        z_a \sim \mathrm{Categorical}(\eta), \qquad
        P(i_1 \succ \dots \succ i_K \mid a, z_a = z)
        = \prod_{k=1}^{K} \frac{e^{u_{i_k z}}}{\sum_{j \in R_k} e^{u_{jz}}}, \\
        \eta \sim \mathrm{Dirichlet}(1, \dots, 1), \qquad
        u_{iz} \sim \mathrm{Normal}(0, s), \quad s \sim \mathrm{LogNormal}(0, 1)

    in the notation of `PlackettLuce`, with the worst named by the utilities turned round. Of two
    items it is `MixtureBTL`.

    The type of each annotator is summed out, so the likelihood is a product over annotators, the
    unit that `raters.log_likelihood` and ``arviz.loo`` leave out. The probability of each type for
    each annotator is in the result, as ``result["types"]["responsibility"]``. Where nobody is named
    each ranking is by an annotator of its own, and has a type of its own.

    To choose the number of types, see `MixtureBTL`. Worths of each type are centred, and types are
    numbered by decreasing share. The likelihood has a mode for each way to divide the annotators;
    compare several seeds.

    Parameters
    ----------
    num_types : int
        Number of types.
    worth_scale : float, optional
        Standard deviation s of the worths; learned unless given.

    Examples
    --------
    >>> import raters as rt
    >>> rankings = rt.Rankings.from_wide(
    ...     {"who": ["ann", "ann", "bob", "bob"], "best": ["tea", "tea", "beer", "beer"],
    ...      "next": ["milk"] * 4, "last": ["beer", "beer", "tea", "tea"]},
    ...     places=["best", "next", "last"], annotator="who")
    >>> rt.program.Program(rt.models.MixturePlackettLuce(), rankings).sites["worth"].dims
    ('item', 'type')
    """

    num_types: int = 2
    worth_scale: float | None = None

    reference: ClassVar[str] = "gormley2006analysis mollica2017bayesian"

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        return (Shift("worth", axis=0), *types.permute(self.num_types, "worth"))

    def generate(self, data: Rankings) -> None:
        weight = types.sample_weight(self.num_types, 1.0)
        scale = _sites.worth_scale_site(self.worth_scale)
        with (
            numpyro.plate("item", data.num_items, dim=-2),
            numpyro.plate("type", self.num_types, dim=-1),
        ):
            worth = numpyro.sample("worth", dist.Normal(0.0, scale))
        order, place = _sites.orders(worth[_sites.item_of(data)], data)
        with numpyro.plate("annotator", data.num_annotators):
            mixture = GroupedMixture(
                dist.Categorical(probs=weight), order, data.annotator, data.num_annotators
            )
            facts = {"unit": "annotator", "latent_class": "type"}
            numpyro.sample("place", mixture, obs=place, infer=facts)

    def _profiles(self, data: Rankings) -> Float[np.ndarray, "annotator item"]:
        """Return the mean place of each item: 1 the first of all, −1 the last, 0 not offered."""
        shape = data.num_annotators, data.num_items
        if data.place is None:
            return np.zeros(shape)
        offered, weight = np.asarray(data.offered), np.asarray(data.weight, float)[:, None]
        there = (offered >= 0) & (weight > 0)
        size = there.sum(1, keepdims=True)
        score = 1 - 2 * (mean_ranks(np.asarray(data.place), there) - 1) / np.maximum(size - 1, 1)
        row, position = np.nonzero(there)
        cells = np.asarray(data.annotator)[row], offered[row, position]
        times = np.broadcast_to(weight, offered.shape)[row, position]
        total, number = (
            scipy.sparse.coo_array((part, cells), shape=shape).toarray()
            for part in (score[row, position] * times, times)
        )
        return np.asarray(total / (number + 1))

    def start(self, data: Rankings, rng: np.random.Generator | None = None) -> Values:
        share, parts = types.clustered(data, self._profiles(data), self.num_types, rng)
        starts = [_sites.worth_start(part, self.worth_scale) for part in parts]
        joined = {name: jnp.stack([start[name] for start in starts], -1) for name in starts[0]}
        start = {name: jnp.mean(one) if one.ndim == 1 else one for name, one in joined.items()}
        return {"type_weight": jnp.asarray(share)} | start

    def another_start(self, data: Rankings, rng: np.random.Generator) -> Values:
        return self.start(data, rng)

    def warnings(self, data: Rankings, fit: Fit | None = None) -> tuple[str, ...]:
        if fit is None:
            return self._of_data(data)
        return types.separation_warnings(fit.responsibility, "ranking")

    def why_not(self, data: Rankings) -> str | None:
        return types.why_not(self.num_types, data, "ranking")

    def _of_data(self, data: Rankings) -> tuple[str, ...]:
        number = np.bincount(
            np.asarray(data.annotator), _sites.num_choices(data), data.num_annotators
        )
        unbounded = _sites.of_unbounded(data, self.worth_scale)
        return (*types.data_warnings(self.num_types, number, "choice"), *unbounded)
