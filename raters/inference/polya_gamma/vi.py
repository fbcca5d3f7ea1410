"""Mean-field variational inference from the Pólya-Gamma conditionals, with corrected spreads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from tqdm.auto import tqdm

from raters._validation import positive, whole
from raters.errors import ConvergenceWarning
from raters.inference.base import Backend, Draws, centre, numpy_seeds, one_blas_thread, progress_bar
from raters.inference.polya_gamma import augmentation, response, sets, sweep
from raters.inference.polya_gamma.integrated import integrated
from raters.inference.polya_gamma.laplace_classes import around_classes
from raters.inference.polya_gamma.mean_field import MeanField, State
from raters.model import Values
from raters.program import Program, log_likelihoods


@dataclass(frozen=True)
class PGVI(Backend):
    """"""

    draws: int = 1000
    tolerance: float = 1e-4
    max_sweeps: int = 500

    exact: ClassVar[bool] = False

    def run(
        self,
        program: Program[Any],
        key: jax.Array,
        *,
        start: Values | None = None,
        progress: bool = False,
    ) -> Draws:
        with jax.enable_x64(True), one_blas_thread(), progress_bar(1, "PGVI", progress) as bar:
            model, data = program.model, program.data
            first = {
                name: np.asarray(value, np.float64) for name, value in model.start(data).items()
            }
            plan = sweep.plan(program, first)
            first = first if start is None else centre(model, start)
            data = sweep.on_device(data)
            field = MeanField(plan, data, first)
            state, history, converged = self._climb(field, bar)
            rng = np.random.default_rng(numpy_seeds(key, 1)[0])
            values, stats = self._draws(field, state, rng)
        return Draws(values, stats, {"elbo": history}, {"elbo": float(history[-1]), "sweeps": len(history)})

    def _climb(self, field, bar):
        state = field.sweep(field.start())[1]
        history = []
        for _ in range(self.max_sweeps):
            bound, state = field.sweep(state)
            history.append(bound)
            if len(history) > 1 and history[-1] - history[-2] < self.tolerance:
                return state, np.array(history), True
        return state, np.array(history), False

    def _draws(self, field, state, rng):
        plan, values = field.setting.plan, field.values(state)
        row = field.data.take(slice(0, 1))
        draws, log_q = response.drawn(field, state, self.draws, rng)
        draws |= {name: np.repeat(np.asarray(value)[None], self.draws, 0) for name, value in state.hyper.items()}
        log_prior, draws = integrated(plan, row, draws, rng)
        on_device = {name: jnp.asarray(value) for name, value in draws.items()}
        log_p = log_prior + np.asarray(log_likelihoods(plan.model, field.data, on_device))
        return {k: v[None] for k, v in draws.items()}, {"log_p": log_p[None], "log_q": log_q[None]}
