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

from raters.errors import SettingError
from raters.fitting.fit import check_types
from raters.inference import PGGibbs
from raters.judgements.base import Judgements
from raters.model import Model, Values
from raters.program import Program


class Simulated(NamedTuple):
    """Outcomes drawn from a model, and the parameters that they were drawn under.

    Attributes
    ----------
    data : Judgements
        The questions with outcomes.
    truth : dict of str to array
        Value of each site, and latent class of each unit.
    """

    data: Any
    truth: dict[str, Num[np.ndarray, " ..."]]


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

    Raises
    ------
    SettingError
        When `given` names no site of the model, or holds a value of another shape or outside the
        support.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> again = rt.simulate(rt.ExtendedBTL(), votes, seed=1)
    >>> again.truth["competence"].shape
    (3,)
    """
    check_types(model, questions, PGGibbs(), seed)
    asked = questions.unanswered()
    table = jax.tree.map(jnp.asarray, asked)
    if table.count is not None:
        # NumPyro draws binomial outcomes out of integer counts only.
        table = dataclasses.replace(table, count=table.count.astype(int))
    program = Program(model, asked)
    held = _held(model, program.sites, given or {})
    seeded = handlers.substitute(handlers.seed(model.generate, jax.random.key(seed)), held)
    trace = handlers.trace(seeded).get_trace(table)
    truth = {name: np.asarray(trace[name]["value"]) for name in program.sites}
    observed = trace[model.observed]
    if program.latent and observed["intermediates"]:
        truth[program.latent.name] = np.asarray(observed["intermediates"][0])
    return Simulated(asked.answered(np.asarray(observed["value"])), truth)


def _held(model: Model[Any], sites: dict[str, Any], given: Values) -> Values:
    """Values of sites to hold, checked against the model."""
    if not isinstance(given, Mapping):
        raise SettingError(
            "given= takes a mapping of site names to values, such as given={'reward': ...}, not"
            f" {given!r}"
        )
    held = {}
    for name, value in given.items():
        if name not in sites:
            raise SettingError(
                f"{type(model).__name__} has no site {name!r} to hold; it has {list(sites)}"
            )
        try:
            held[name] = jnp.asarray(value, float)
        except (TypeError, ValueError) as error:
            raise SettingError(
                f"given={{{name!r}: ...}} must hold numbers, not {value!r}"
            ) from error
        if np.shape(value) != sites[name].shape:
            raise SettingError(
                f"{name!r} has shape {np.shape(value)}; {type(model).__name__} needs"
                f" {sites[name].shape}"
            )
        support = sites[name].support
        inside = jnp.isfinite(held[name]).all(tuple(range(-support.event_dim, 0))) & support(
            held[name]
        )
        if not inside.all():
            wrong = float(held[name][~inside].ravel()[0])
            raise SettingError(
                f"{name!r} holds {wrong:g}, which its prior rules out; it must lie in"
                f" {sites[name].support}"
            )
    return held
