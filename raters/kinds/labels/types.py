"""Probabilities of the types of annotators, of models whose prior is a mixture over types."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from raters.distributions.type_mixture import TypeMixture
from raters.inference.polya_gamma import latent_classes
from raters.model import Model, Values
from raters.program import Program, skeleton, trace

PerAnnotator = Float[np.ndarray, " annotator"]

# Column of an audit's table that holds the probability of a type, in place of that of a range of
# competences.
_COLUMNS = {"guesser": "p_spammer", "adversary": "p_adversarial"}


def type_site(program: Program[Any]) -> str | None:
    """Site whose prior is a mixture over types of judges; None where there is none."""
    mixture = TypeMixture.__name__
    return next(
        (name for name, site in program.sites.items() if site.distribution == mixture), None
    )


def type_probs(program: Program[Any], draws: Values) -> dict[str, PerAnnotator]:
    """Posterior probability of each type of each annotator, from draws of the parameters."""
    return _mean_probs(program, program.data.first_unit(), draws, None)


def type_probs_given(
    program: Program[Any], draws: Values, true_class: Int[np.ndarray, "draw unit"]
) -> dict[str, PerAnnotator]:
    """Probability of each type of each annotator under draws of the true classes."""
    with jax.enable_x64(True):
        return _mean_probs(program, program.data, draws, jnp.asarray(true_class))


def _mean_probs(
    program: Program[Any], data: Any, draws: Values, true_class: Int[Array, "draw unit"] | None
) -> dict[str, PerAnnotator]:
    """Mean probability of each type over draws, by its name."""
    site = type_site(program)
    if site is None:
        return {}
    data = jax.tree.map(jnp.asarray, data)
    probs = np.asarray(_at_draws(program.model, site, data, draws, true_class), np.float64)
    names: list[str] = []
    part = program.data.first_unit()
    jax.eval_shape(lambda: names.extend(skeleton(program.model, part)[site]["fn"].names))
    return dict(zip(names, probs.T, strict=True))


@partial(jax.jit, static_argnums=(0, 1))
def _at_draws(
    model: Model[Any], site: str, data: Any, draws: Values, true_class: Any
) -> Float[Array, "annotator type"]:
    """Probabilities of the types given the parameters, or the classes, averaged over draws."""

    def of(entry: tuple[Values, Array | None]) -> Array:
        values, codes = entry
        found = trace(model, data, values)[site]
        if codes is None:
            return jnp.asarray(found["fn"].type_probs(found["value"]))
        classes = jax.nn.one_hot(codes, data.num_classes)
        parameters = latent_classes.parameters(model, data, values, classes, site)
        probs = jax.nn.softmax(latent_classes.component_log_probs(parameters), axis=-1)
        return jnp.asarray(found["fn"].by_type(probs))

    return jnp.mean(jax.lax.map(of, (draws, true_class)), 0)


def type_columns(probs: dict[str, PerAnnotator]) -> dict[str, PerAnnotator]:
    """Columns of an audit's table that the probabilities of types give."""
    return {column: probs[name] for name, column in _COLUMNS.items() if name in probs}
