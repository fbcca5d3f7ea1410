r"""Sites of no block, drawn with a normal block that they govern integrated out.

With :math:`P = A^\top \Omega A + \Lambda` and :math:`s = A^\top (\kappa - \Omega o) + \Lambda \mu`
for a block of design A, offset o, prior mean μ and precision Λ, given the Pólya-Gamma variables ω,

.. math::

    \log p(\theta \mid \omega, y) = \log p(\theta) + \kappa^\top o - \tfrac12 o^\top \Omega o
        + \tfrac12 s^\top P^{-1} s - \tfrac12 \log |P| + \tfrac12 \log |\Lambda|
        - \tfrac12 \mu^\top \Lambda \mu .
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from raters.inference.arrays import Sites
from raters.inference.polya_gamma import line
from raters.inference.polya_gamma.plans import Plan
from raters.inference.polya_gamma.rows import Rows, block_prior
from raters.inference.polya_gamma.sums import How, Reading, Sums, log_integral, sums_of
from raters.inference.polya_gamma.unconstrained import coordinates, is_unbounded
from raters.model import Model, Scale, Values
from raters.program import log_prior, placing

# Multiplications of a density times the number of coordinates: beyond, a step would take longer
# than the rest of a sweep. Of the coordinates themselves there are few.
_MOST_WORK, _MOST_COORDINATES = 2e7, 30
# With more rows for each entry that it governs, a site moves about as far given the entries.
_MOST_ROWS = 30


def collapsed_of(
    plan: Plan, data: Any, readings: list[list[Reading]]
) -> tuple[tuple[Sites, ...], tuple[Scale, ...]]:
    """Return the sites that are drawn with each block integrated out, and orbits of scales with
    their sites, for blocks whose integral would take too long."""
    found: list[Sites] = [()] * len(plan.blocks)
    orbits: list[Scale] = []
    if plan.is_joint:
        return tuple(found), ()
    unbounded = partial(is_unbounded, plan.supports)
    normal = [
        place
        for place, one in enumerate(plan.blocks)
        if one.kind in ("rows", "class") and one.column == 0 and all(map(unbounded, one.sites))
    ]
    left = plan.hyper
    model: Model[Any] = plan.model
    # Of a program that declares nothing, also what enters the likelihood by itself.
    if normal and not (model.blocks is not None or model.symmetries or model.facts or plan.classes):
        bounded = [one.sites[0] for place, one in enumerate(plan.blocks) if place not in normal]
        left = tuple(name for name in plan.supports if name in (*plan.free, *bounded))
    for place in sorted(
        normal, key=lambda place: -len(plan.blocks[place].current(readings[place][0].values))
    ):
        (reading,) = readings[place]
        rows = jax.eval_shape(lambda reading: reading.rows().stacked(), reading)
        names = _slow_given(plan, data, reading, rows, left)
        if reading.block.kind == "rows" and _is_cheap(plan, reading, rows, names):
            found[place] = names
        else:
            orbits += [
                Scale((name, *_governed(plan, data, reading, name)), ())
                for name in names
                if name in plan.hyper and getattr(plan.supports[name], "lower_bound", None) == 0
            ]
        left = tuple(name for name in left if name not in names)
    return tuple(found), tuple(orbits)


def _slow_given(plan: Plan, data: Any, reading: Reading, rows: Rows, names: Sites) -> Sites:
    """Return the sites that hardly move given a block."""
    # The draw of ω is shared with the block, which reads the rows in one piece then.
    whole = next(iter(data.chunks(placing.CHUNK))) is data and rows.shift is None
    slow = []
    for name in names:
        entries = sum(_governed(plan, data, reading, name).values())
        reaches = name not in plan.hyper and whole
        if reaches or rows.offset.shape[0] <= _MOST_ROWS * entries:
            slow.append(name)
    return tuple(slow)


def _is_cheap(plan: Plan, reading: Reading, rows: Rows, names: Sites) -> bool:
    """Return whether a block can be integrated out for each step of some sites."""
    size, number = len(rows.prior.mean), rows.offset.shape[0]
    slots = size if rows.entry is None else rows.entry.shape[0]
    work = size**3 / 3 if slots > 1 or rows.prior.across is not None else size
    if reading.division is not None:
        work = reading.division.empty.size * reading.division.empty.shape[1] ** 2 / 3
    if not set(names) <= set(plan.hyper):
        work += number * slots**2
    own = jax.eval_shape(lambda values: coordinates(plan.supports, values, names), reading.values)
    many = sum(one.size for one in own.values())
    return bool(many <= _MOST_COORDINATES and many * work <= _MOST_WORK)


def _governed(plan: Plan, data: Any, reading: Reading, name: str) -> dict[str, int]:
    """Return the number of entries of each site of a block whose priors depend on another site."""
    own, numbers = {name: reading.values[name]}, {}
    for site in reading.block.sites:

        def prior(own: Values, site: str = site) -> tuple[Array, Array]:
            row = data.take(slice(0, 1))
            found = block_prior(plan.model, row, reading.values | own, (site,))
            return found.mean, found.precision

        slopes = jax.jvp(prior, (own,), (jax.tree.map(jnp.ones_like, own),))[1]
        if number := int(np.any([np.asarray(one) != 0 for one in slopes], axis=0).sum()):
            numbers[site] = number
    return numbers


def visit(
    plan: Plan, reading: Reading, sums: Sums, how: How, row: Any, names: Sites, key: Array
) -> Values:
    """Draw sites given ω with a block integrated out, one by one, by slice sampling."""
    sites, reaching = reading.block.sites, not set(names) <= set(plan.hyper)

    def density(moved: Values) -> Array:
        own, of_offset = sums, jnp.zeros(())
        if reaching:
            assert sums.omega is not None
            at = replace(reading, values=moved)
            own, rows = sums_of(at, sums.omega, how._replace(weights="given")), at.rows()
            of_offset = rows.kappa @ rows.offset - (sums.omega * rows.offset) @ rows.offset / 2
        own = own._replace(prior=block_prior(plan.model, row, moved, sites))
        others = log_prior(plan.model, row, moved, without=sites)
        return log_integral([own], reading.division) + of_offset + others

    return line.visit(density, plan.supports, (), names, reading.values, key)
