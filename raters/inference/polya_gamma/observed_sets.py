"""Sets that observed distributions choose from."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpyro.distributions as dist

from raters.distributions import Choice, Davidson, GroupedMixture, PlackettLuce
from raters.distributions.ties import OUTCOMES


class Sets(NamedTuple):
    """Sets of an observed distribution."""

    code: Any
    number: Any
    place: Any = None


@singledispatch
def sets_of(fn: dist.Distribution, classes: Any, value: Any) -> Sets | None:
    """Return the sets that an observed distribution chooses from, or None for another one."""
    return None


@sets_of.register
def _(fn: Choice, classes: Any, value: Any) -> Sets:
    return Sets(fn.set, jnp.ones(fn.num_sets) if fn.count is None else fn.count)


@sets_of.register
def _(fn: dist.CategoricalLogits, classes: Any, value: Any) -> Sets:
    number, size = fn.logits.shape
    return Sets(jnp.repeat(jnp.arange(number), size), jnp.ones(number))


@sets_of.register
def _(fn: Davidson, classes: Any, value: Any) -> Sets:
    number = len(fn.logits)
    code = jnp.repeat(jnp.arange(number), len(OUTCOMES))
    return Sets(code, jnp.ones(number) if fn.count is None else fn.count)


@sets_of.register
def _(fn: PlackettLuce, classes: Any, value: Any) -> Sets:
    number = jnp.ones(fn.num_sets) if fn.count is None else fn.count
    return Sets(fn.set, number, value)


@sets_of.register
def _(fn: GroupedMixture, classes: Any, value: Any) -> Sets | None:
    component = fn.component_distribution
    if not isinstance(component, (Choice, PlackettLuce)):
        return None
    num_classes = component.batch_shape[-1]
    share = classes[fn.group]  # a group holds sets
    number = share if component.count is None else component.count[:, None] * share
    code = component.set[:, None] * num_classes + jnp.arange(num_classes)
    place = jnp.repeat(value, num_classes) if isinstance(component, PlackettLuce) else None
    return Sets(code.ravel(), number.ravel(), place)
