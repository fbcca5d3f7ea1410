"""Back-ends: their interface, and the draws that they return."""

from __future__ import annotations

import abc
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Array
from threadpoolctl import ThreadpoolController
from tqdm.auto import tqdm

from raters.errors import ConvergenceWarning
from raters.errors.words import words_of
from raters.model import Model, Permute, Values
from raters.program import Program

worded = words_of("raters.inference")
# Draws of each site that a fit sets out from, shape (chain, draw, ...).
Start = Values | None


class Draws(NamedTuple):
    """Draws of a back-end, and facts of the run.

    `values` and `stats` have shape (chain, draw, ...), `history` of an optimisation (step,);
    `facts` are attributes of the result, and `mode` the posterior mode, where one was found.
    """

    values: dict[str, np.ndarray]
    stats: dict[str, np.ndarray]
    history: dict[str, np.ndarray] = {}
    facts: dict[str, Any] = {}
    mode: dict[str, np.ndarray] = {}


@dataclass(frozen=True)
class Backend(abc.ABC):
    """A way to fit any model: a frozen dataclass of settings.

    A subclass writes `run`, and `exact`: True if its draws are from the posterior, so that their
    convergence is checked. `reference` is as of `Model`.
    """

    exact: ClassVar[bool]

    reference: ClassVar[str] = ""

    def why_not(self, program: Program[Any]) -> str | None:
        """The sentence that says why this back-end cannot run the program; None where it can."""
        reason = program.model.why_not(program.data)
        if reason is None:
            _ = program.sites  # An error of the model's own is shown as it is.
        return reason

    @abc.abstractmethod
    def run(
        self, program: Program[Any], key: Array, *, start: Start = None, progress: bool = False
    ) -> Draws:
        """Fit, and return draws.

        Parameters
        ----------
        program : Program
        key : Array
            Key of JAX's random numbers.
        start : dict of str to array, shape (chain, draw, ...), optional
            Draws of each latent site to set out from; the model's own start unless given.
        progress : bool
            Show a progress bar on standard error.

        Returns
        -------
        Draws
        """


def last_draws(start: Values, chains: int) -> list[Values]:
    """Starting point of each chain."""
    earlier, number = next(iter(start.values())).shape[:2]
    sharing = -(-chains // earlier)
    starts = []
    for chain in range(chains):
        draw = number - 1 - (chain // earlier) * number // sharing
        at = chain % earlier, draw
        starts.append({name: np.asarray(value[at], np.float64) for name, value in start.items()})
    return starts


def centre(model: Model[Any], start: Values) -> Values:
    """One point in the middle of draws: their mean, or the last draw of a model of types."""
    if any(isinstance(symmetry, Permute) for symmetry in model.symmetries):
        return last_draws(start, 1)[0]
    return {name: np.asarray(value, np.float64).mean((0, 1)) for name, value in start.items()}


def warn(text: str, stacklevel: int = 4) -> None:
    """Warn that draws are not to be relied on."""
    warnings.warn(text, ConvergenceWarning, stacklevel=stacklevel + 1)


def progress_bar(total: int, what: str, shown: bool) -> tqdm:
    """A tqdm bar, silent when not wanted."""
    return tqdm(total=total, desc=what, disable=not shown, leave=False)


def numpy_seeds(key: Array, number: int) -> list[np.random.SeedSequence]:
    """Independent seeds for NumPy generators from a JAX key."""
    return np.random.SeedSequence(np.asarray(jax.random.key_data(key)).tolist()).spawn(number)


def jax_keys(rng: np.random.Generator, number: int) -> Array:
    """Independent JAX keys from a NumPy generator."""
    return jax.random.split(jax.random.key(rng.integers(2**32, dtype=np.uint64)), number)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Context in which BLAS runs in one thread: the matrices of a sweep are small."""
    return _libraries().limit(limits=1, user_api="blas")


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of this process, which take some milliseconds to find."""
    return ThreadpoolController()
