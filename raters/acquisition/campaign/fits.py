"""Fits of a campaign between batches: few, short, and started where the last one ended."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

import numpy as np
from jaxtyping import Float

from raters.acquisition.posterior import Posterior
from raters.acquisition.questions.pool import seed_of
from raters.errors import ConvergenceWarning, refuse
from raters.fitting.fit import check_whole, run
from raters.fitting.result import check_values, thinned
from raters.inference import Backend
from raters.inference.mixing import warn_unless_converged
from raters.judgements.base import Judgements
from raters.judgements.counts import pad_to
from raters.model import Model, Values
from raters.program import Program

_DRAWS = 500
# Draws re-weighted by new answers are used until they are worth less than this share of equal ones.
_LEAST_SHARE = 0.25

Outcomes = Float[np.ndarray, " question"]


class Fits:
    """Posterior of the answers so far, by weighted draws of the last fit where those suffice."""

    def __init__(self, model: Model[Any], backend: Backend, pool: Judgements, seed: int) -> None:
        self.number = 0
        self.max_rhat, self.min_ess = math.nan, math.nan
        self._model, self._backend, self._pool, self._seed = model, backend, pool, seed
        self._start: Values | None = None
        # Answers with the posterior given them: of the last fit, and of the last call.
        self._fitted: tuple[Outcomes, Posterior] | None = None
        self._current: tuple[Outcomes, Posterior] | None = None

    def posterior(self, answers: Outcomes, data: Judgements, batch_size: int) -> Posterior:
        """Return the posterior given these answers, which are in `data` with earlier judgements."""
        if self._current is None or not np.array_equal(self._current[0], answers, equal_nan=True):
            posterior = self._weighted(answers, data, batch_size)
            self._current = answers, posterior or self._refit(answers, data)
        return self._current[1]

    def _weighted(self, answers: Outcomes, data: Judgements, batch_size: int) -> Posterior | None:
        """Return the draws of the last fit, weighted; None when another fit is due."""
        if self._fitted is None:
            if data.num_rows > np.isfinite(answers).sum():  # there are earlier judgements
                return None
            self._fitted = np.zeros(0), prior(self._model, self._pool, self._seed)
        fitted, posterior = self._fitted
        before = np.full(len(answers), np.nan)
        before[: len(fitted)] = fitted
        new = np.isfinite(answers) & np.isnan(before)
        corrected = np.isfinite(before) & (before != answers)
        if corrected.any() or new.sum() >= batch_size:
            return None
        if not new.any():
            return posterior
        weighted = posterior.after(padded(data))
        return weighted if weighted.effective_draws >= _LEAST_SHARE * weighted.weight.size else None

    def _refit(self, answers: Outcomes, data: Judgements) -> Posterior:
        program = Program(self._model, padded(data))
        if self._backend.why_not(program):
            # A mixture needs as many annotators as types: until they have answered, draws of the
            # prior are used.
            return prior(self._model, self._pool, self._seed).after(program.data)
        seed = seed_of(self._seed, 1, 1 + int(np.isfinite(answers).sum()))
        check_whole(data)
        with warnings.catch_warnings():
            # Short fits have not converged to the second digit: `Campaign.status` says so.
            warnings.simplefilter("ignore", ConvergenceWarning)
            draws = run(program, self._backend, seed, start=self._start)
            facts = dict(draws.facts)
            if self._backend.exact:
                facts |= warn_unless_converged(draws.values)
        self.number += 1
        ess, rhat = (float(facts.get(name, math.nan)) for name in ("min_ess", "max_rhat"))
        self.max_rhat = float(np.fmax(self.max_rhat, rhat))
        self.min_ess = float(np.fmin(self.min_ess, ess))
        values = {name: np.asarray(draws.values[name]) for name in program.sites}
        for name, site in program.sites.items():
            check_values(values[name], name, site, "backend")
        posterior = Posterior.equal(program, thinned(values, _DRAWS, seed))
        several_draws(self._backend, posterior.weight.size)
        # Nothing sets out from a fit that failed. What climbs to a mode sets out from one.
        start = values
        if draws.mode and not self._backend.exact:
            start = {name: np.asarray(draws.mode[name])[None, None] for name in program.sites}
        self._start = {name: np.asarray(value, np.float64) for name, value in start.items()}
        if ess > 0:  # neither unknown nor that of draws that are not finite
            posterior = dataclasses.replace(posterior, independent=ess)
        self._fitted = answers, posterior
        return posterior


def padded(data: Judgements) -> Judgements:
    """Rows of count 0 up to a power of two: growing data share compiled functions."""
    return data.padded(pad_to(data.num_rows))


def several_draws(backend: Backend, number: int | None = None) -> int:
    """Number of draws of a posterior after a fit by this back-end; `SettingError` for one draw, as
    `Posterior.of` refuses its results."""
    if number is None:
        number = getattr(backend, "draws", _DRAWS) * getattr(backend, "chains", 1)
    if number < 2:
        refuse("backend", backend, "gives one draw", "take more", instead="rt.PGGibbs(draws=250)")
    return min(number, _DRAWS)


def prior(model: Model[Any], pool: Judgements, seed: int, draws: int = _DRAWS) -> Posterior:
    """Posterior before any answer."""
    return Posterior.prior(model, pool, draws=draws, seed=seed_of(seed, 1, 0))
