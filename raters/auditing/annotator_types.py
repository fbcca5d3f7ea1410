"""Probabilities of the types of annotators, of models whose prior is a mixture over types."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from raters.distributions import TypeMixture
from raters.inference.polya_gamma import latent_classes
from raters.model import Model, Values
from raters.program import Program, skeleton, trace

# Column of an audit's table that holds the probability of a type, in place of that of a range of
# competences.
_COLUMNS = {"guesser": "p_spammer", "adversary": "p_adversarial"}


def type_site(program: Program[Any]) -> str | None:
    """Site whose prior is a mixture over types of judges; None where there is none.

    Parameters
    ----------
    program : Program

    Returns
    -------
    str or None
    """
    mixture = TypeMixture.__name__
    return next(
        (name for name, site in program.sites.items() if site.distribution == mixture), None
    )


def type_names(program: Program[Any], site: str) -> tuple[str, ...]:
    """Names of the types of the site.

    Parameters
    ----------
    program : Program
    site : str

    Returns
    -------
    tuple of str
    """
    found: list[tuple[str, ...]] = []
    part = program.data.first_unit()
    jax.eval_shape(lambda: found.append(skeleton(program.model, part)[site]["fn"].names))
    return found[0]


def type_probs(program: Program[Any], draws: Values) -> dict[str, Float[np.ndarray, " annotator"]]:
    r"""Posterior probability of each type of each annotator, from draws of the parameters.

    .. math:: P(z_a = t \mid y) = \operatorname{E}\left[
        \frac{\eta_t \, p_t(\theta_a)}{\sum_u \eta_u \, p_u(\theta_a)} \,\middle|\, y \right]

    Parameters
    ----------
    program : Program
    draws : dict of str to array, shape (draw, ...)

    Returns
    -------
    dict of str to array
        Empty for models without types.
    """
    site = type_site(program)
    if site is None:
        return {}
    row = jax.tree.map(jnp.asarray, program.data.first_unit())
    probs = np.asarray(_at_draws(program.model, site, row, draws), np.float64)
    return dict(zip(type_names(program, site), probs.T, strict=True))


@partial(jax.jit, static_argnums=(0, 1))
def _at_draws(
    model: Model[Any], site: str, row: Any, draws: Values
) -> Float[Array, "annotator type"]:
    """Probabilities of the types given the parameters, averaged over draws."""

    def of(values: Values) -> Array:
        found = trace(model, row, values)[site]
        probs: Array = found["fn"].type_probs(found["value"])
        return probs

    probs: Array = jax.lax.map(of, draws).mean(0)
    return probs


def type_probs_given(
    program: Program[Any], draws: Values, true_class: Int[np.ndarray, "draw unit"]
) -> dict[str, Float[np.ndarray, " annotator"]]:
    r"""Probability of each type of each annotator under draws of the true classes.

    The annotator's probabilities are integrated out: with n for the counts of labels by true
    class,

    .. math:: P(z_a = t \mid n) \propto \eta_t \int p_t(\theta_a) \, p(n_a \mid \theta_a)
        \, d\theta_a

    Parameters
    ----------
    program : Program
    draws : dict of str to array, shape (draw, ...)
        Of the parameters, for the shares of the types and what is learned of each.
    true_class : int array, shape (draw, unit)
        As many draws of the codes of the classes.

    Returns
    -------
    dict of str to array
        Empty for models without types.
    """
    site = type_site(program)
    if site is None:
        return {}
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, program.data)
        probs = np.asarray(_at_classes(program.model, site, data, draws, jnp.asarray(true_class)))
    return dict(zip(type_names(program, site), probs.T, strict=True))


@partial(jax.jit, static_argnums=(0, 1))
def _at_classes(
    model: Model[Any], site: str, data: Any, draws: Values, true_class: Int[Array, "draw unit"]
) -> Float[Array, "annotator type"]:
    """Probabilities of the types given the classes, averaged over draws."""

    def of(entry: tuple[Values, Array]) -> Array:
        values, codes = entry
        classes = jax.nn.one_hot(codes, data.num_classes)
        parameters = latent_classes.parameters(model, data, values, classes, site)
        probs = jax.nn.softmax(latent_classes.component_log_probs(parameters), axis=-1)
        by_type: Array = trace(model, data, values)[site]["fn"].by_type(probs)
        return by_type

    probs: Array = jax.lax.map(of, (draws, true_class)).mean(0)
    return probs


def type_columns(
    probs: dict[str, Float[np.ndarray, " annotator"]],
) -> dict[str, Float[np.ndarray, " annotator"]]:
    """Columns of an audit's table that the probabilities of types give.

    Parameters
    ----------
    probs : dict of str to array
        Probability of each type, by its name.

    Returns
    -------
    dict of str to array
    """
    return {column: probs[name] for name, column in _COLUMNS.items() if name in probs}
