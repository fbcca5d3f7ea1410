"""Simulation of outcomes from a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Num
from numpyro import handlers

from raters.errors import BackendError, SettingError, refuse
from raters.errors.validation import checked
from raters.fitting.fit import check_types
from raters.fitting.result import check_model
from raters.judgements.base import Judgements
from raters.judgements.together import Together
from raters.model import Model, Values
from raters.program import Program


class Simulated(NamedTuple):
    """Outcomes drawn from a model, and the parameters that they were drawn under."""

    data: Any
    truth: dict[str, Num[np.ndarray, " ..."]]


@checked
def simulate(
    model: Model[Any], questions: Judgements, *, seed: int, given: Values | None = None
) -> Simulated:
    """Draw outcomes for questions, and first the parameters from the prior unless they are given.

    Parameters
    ----------
    model : Model
    questions : Judgements
        Who is asked what, how often; outcomes in it are ignored.
    seed : int
    given : mapping, optional
        Values of sites to hold, by name; the others are drawn from the prior given them.

    Returns
    -------
    Simulated
        ``data``, the questions with outcomes, and ``truth``, every site's value; for labels also
        ``true_class``, the code of each item's class, and for models of types ``type``, that of
        each annotator.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> again = rt.simulate(rt.ExtendedBTL(), votes, seed=1)
    >>> again.truth["competence"].shape
    (3,)
    """
    check_model(model)
    questions = model.read(questions)
    check_types(model, questions, None, seed)
    asked = questions.unanswered()
    if reason := model.why_not(asked):
        raise BackendError(reason)
    program = Program(model, asked)
    table = with_whole_counts(jax.tree.map(jnp.asarray, asked))
    held = _held(model, program.sites, given or {})
    seeded = handlers.substitute(handlers.seed(model.generate, jax.random.key(seed)), held)
    trace = handlers.trace(seeded).get_trace(table)
    truth = {name: np.asarray(trace[name]["value"]) for name in program.sites}
    outcomes = {}
    for name, part in (program.parts or {"": program}).items():
        observed = trace[f"{name}.{part.model.observed}" if name else model.observed]
        if part.latent and observed["intermediates"]:
            latent = f"{name}.{part.latent.name}" if name else part.latent.name
            truth[latent] = np.asarray(observed["intermediates"][0])
        outcomes[name] = np.asarray(observed["value"])
    return Simulated(asked.answered(outcomes if program.parts else outcomes[""]), truth)


def with_whole_counts(table: Any) -> Any:
    """The table with integer counts, as NumPyro draws binomial outcomes out of these only."""
    if isinstance(table, Together):
        return dataclasses.replace(table, parts=tuple(map(with_whole_counts, table.parts)))
    if table.count is None:
        return table
    return dataclasses.replace(table, count=table.count.astype(int))


def _held(model: Model[Any], sites: dict[str, Any], given: Values) -> Values:
    """Values of sites to hold, checked against the model."""
    if not isinstance(given, Mapping):
        expected = "it must map names of sites to values"
        refuse("given", given, expected=expected, instead="given={'reward': ...}")
    if unknown := [name for name in given if name not in sites]:
        refuse("given", unknown[0], f"names no site of {model.title}", f"it has {list(sites)}")
    return {name: _of_site(name, value, sites[name]) for name, value in given.items()}


def _of_site(name: str, value: Any, site: Any) -> jax.Array:
    """A value as an array, checked against its site."""
    try:
        held = jnp.asarray(value, float)
    except (TypeError, ValueError) as error:
        raise SettingError(
            parameter="given",
            value=value,
            problem=f"holds no numbers for {name!r}",
            expected="give numbers",
        ) from error
    if np.shape(value) != site.shape:
        problem = f"has {name!r} of shape {np.shape(value)}"
        refuse("given", problem=problem, expected=f"it must be {site.shape}")
    support = site.support
    inside = jnp.isfinite(held).all(tuple(range(-support.event_dim, 0))) & support(held)
    if not inside.all():
        problem = (
            f"has {name!r} with {float(held[~inside].ravel()[0]):g}, which its prior rules out"
        )
        refuse("given", problem=problem, expected=f"it must lie in {support}")
    return held
