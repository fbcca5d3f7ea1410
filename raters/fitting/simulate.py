"""Simulation of outcomes from a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Num
from numpyro import handlers

from raters.errors import BackendError, refuse
from raters.errors.validation import checked
from raters.fitting.fit import check_types
from raters.fitting.result import outside
from raters.judgements.base import Judgements
from raters.judgements.together import parts_of, with_parts
from raters.model import Model, Values, read_by
from raters.program import Program, Site, within


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
        Outcomes in it are ignored.
    seed : int
    given : mapping, optional
        Values of sites to hold, by name.

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
    questions = read_by(model, questions)
    check_types(model, questions, seed)
    asked = questions.unanswered()
    if reason := model.why_not(asked):
        raise BackendError(reason)
    program = Program(model, asked)
    table = with_whole_counts(jax.tree.map(jnp.asarray, asked))
    fixed = site_values(model, program.sites, given or {})
    seeded = handlers.substitute(handlers.seed(model, jax.random.key(seed)), fixed)
    trace = handlers.trace(seeded).get_trace(table)
    truth = {name: np.asarray(trace[name]["value"]) for name in program.sites}
    outcomes = {}
    for name, part in program.parts.items():
        observed = trace[within(name, part.model.observed)]
        if part.latent and observed["intermediates"]:
            truth[within(name, part.latent.name)] = np.asarray(observed["intermediates"][0])
        outcomes[name] = np.asarray(observed["value"])
    return Simulated(asked.answered(outcomes.get("", outcomes)), truth)


def with_whole_counts(table: Any) -> Any:
    """The table with integer counts, as NumPyro draws binomial outcomes out of these only."""

    def counted(part: Any) -> Any:
        count = part.count
        return part if count is None else dataclasses.replace(part, count=count.astype(int))

    return with_parts(table, {name: counted(part) for name, part in parts_of(table).items()})


def site_values(
    model: Model[Any], sites: dict[str, Site], given: Mapping[str, Any], parameter: str = "given"
) -> Values:
    """Values of sites that are known, checked against the model."""
    values = {}
    for name, value in given.items():
        if name not in sites:
            refuse(parameter, name, f"names no site of {model.title}", f"it has {list(sites)}")
        array, site = np.array(np.nan), sites[name]
        with suppress(TypeError, ValueError, OverflowError):
            array = np.asarray(value, float)
        if array.shape != site.shape or not np.isfinite(array).all() or outside(array, site).any():
            problem = f"is nothing that {name!r} can be"
            expected = f"give numbers of the shape {site.shape}, in {site.support}"
            refuse(parameter, value, problem, expected)
        values[name] = jnp.asarray(array, float)
    return values
