"""Back-ends: their interface, the draws that they return, and the diagnostics that every back-end
reports in the same words."""

from __future__ import annotations

import abc
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from tqdm.auto import tqdm

from raters.errors import ConvergenceWarning
from raters.model import Model, Permute, Values
from raters.program import Program

# Cited by the back-ends that are NumPyro's.
NUMPYRO = r"""
@misc{phan2019composable,
  author        = {Phan, Du and Pradhan, Neeraj and Jankowiak, Martin},
  title         = {Composable Effects for Flexible and Accelerated Probabilistic Programming
                   in {NumPyro}},
  year          = {2019},
  eprint        = {1912.11554},
  archiveprefix = {arXiv},
}
"""


class Draws(NamedTuple):
    """Draws of a back-end, with statistics and facts of the run.

    Attributes
    ----------
    values : dict of str to array, shape (chain, draw, ...)
        Draws of each latent site.
    stats : dict of str to array, shape (chain, draw)
        Statistics of each draw.
    history : dict of str to array, shape (step,)
        Traces of the optimisation.
    facts : dict of str to number
        Attributes of the result.
    mode : dict of str to array
        Posterior mode of each latent site, where the back-end found one.
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
    convergence is checked. `reference` holds what to cite, as BibTeX entries.
    """

    exact: ClassVar[bool]

    reference: ClassVar[str] = ""

    def why_not(self, program: Program[Any]) -> str | None:
        """The sentence that says why this back-end cannot run the program.

        Parameters
        ----------
        program : Program

        Returns
        -------
        str or None
            None where it can.
        """
        return program.model.why_not(program.data)

    @abc.abstractmethod
    def run(
        self,
        program: Program[Any],
        key: jax.Array,
        *,
        start: Values | None = None,
        progress: bool = False,
    ) -> Draws:
        """Fit, and return draws.

        Parameters
        ----------
        program : Program
        key : jax.Array
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
    """Starting point of each chain: the last draw of the earlier chain of its number, counted
    round.

    Chains that share an earlier one set out from draws evenly spaced along it, so that they do not
    all begin at one point.

    Parameters
    ----------
    start : dict of str to array, shape (chain, draw, ...)
        Draws of each latent site.
    chains : int
        Number of chains to start.

    Returns
    -------
    list of dict
        Value of each latent site, in float64, for each chain.
    """
    earlier, number = next(iter(start.values())).shape[:2]
    sharing = -(-chains // earlier)
    starts = []
    for chain in range(chains):
        draw = number - 1 - (chain // earlier) * number // sharing
        starts.append(
            {
                name: np.asarray(value[chain % earlier, draw], np.float64)
                for name, value in start.items()
            }
        )
    return starts


def centre(model: Model[Any], start: Values) -> Values:
    """One point in the middle of draws: their mean; for a model whose numbering of types has no
    meaning, the last draw.

    Parameters
    ----------
    model : Model
    start : dict of str to array, shape (chain, draw, ...)
        Draws of each latent site.

    Returns
    -------
    dict of str to array
        Value of each latent site.
    """
    if any(isinstance(symmetry, Permute) for symmetry in model.symmetries):
        return last_draws(start, 1)[0]
    return {name: np.asarray(value, np.float64).mean((0, 1)) for name, value in start.items()}


def progress_bar(total: int, what: str, shown: bool) -> tqdm:
    """A tqdm bar, silent when not wanted.

    Parameters
    ----------
    total : int
        Number of steps.
    what : str
        Text in front of the bar.
    shown : bool

    Returns
    -------
    tqdm.tqdm
    """
    return tqdm(total=total, desc=what, disable=not shown, leave=False)


def numpy_seeds(key: jax.Array, number: int) -> list[np.random.SeedSequence]:
    """Independent seeds for NumPy generators from a JAX key.

    Parameters
    ----------
    key : jax.Array
    number : int

    Returns
    -------
    list of numpy.random.SeedSequence
    """
    return np.random.SeedSequence(np.asarray(jax.random.key_data(key)).tolist()).spawn(number)


# R-hat and effective sample sizes need halves of a chain.
_FEWEST = 4


def warn_unless_converged(values: dict[str, np.ndarray], divergences: int = 0) -> dict[str, float]:
    """Largest R-hat and smallest bulk effective sample size over all variables; warns when
    either is poor.

    Parameters
    ----------
    values : dict of str to array, shape (chain, draw, ...)
        Draws, identified.
    divergences : int
        Number of transitions that diverged.

    Returns
    -------
    dict
        ``max_rhat``, which is NaN for one chain, and ``min_ess``.

    Warns
    -----
    ConvergenceWarning
        When draws are not finite, chains have not mixed, or transitions diverged.
    """
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    broken = [name for name, draws in values.items() if not np.isfinite(draws).all()]
    if broken:
        warnings.warn(
            f"draws of {', '.join(broken)} are not finite; the chains have failed, do not use this"
            " result",
            ConvergenceWarning,
            stacklevel=3,
        )
        return {"max_rhat": np.nan, "min_ess": 0.0}
    chains, number = next(iter(values.values())).shape[:2]
    if number < _FEWEST:
        warnings.warn(
            f"{number} draw(s) of a chain say nothing of its convergence; draw at least"
            f" {_FEWEST}, and better 1000",
            ConvergenceWarning,
            stacklevel=3,
        )
        return {"max_rhat": np.nan, "min_ess": 0.0}
    worst_rhat, worst_ess = ("", 1.0), ("", np.inf)
    for name, draws in values.items():
        chains, number = draws.shape[:2]
        flat = np.asarray(draws, np.float64).reshape(chains, number, -1)
        flat = flat[:, :, np.ptp(flat, axis=(0, 1)) > 0]
        if flat.shape[-1] == 0:
            continue
        ess = array_stats.ess(flat, chain_axis=0, draw_axis=1, method="bulk")
        worst_ess = min(worst_ess, (name, float(np.min(ess))), key=lambda entry: entry[1])
        if chains > 1:
            each = array_stats.rhat(flat, chain_axis=0, draw_axis=1)
            worst_rhat = max(worst_rhat, (name, float(np.max(each))), key=lambda entry: entry[1])
    _warn_of_mixing(worst_rhat, worst_ess, chains)
    if divergences:
        warnings.warn(
            f"{divergences} of {chains * number} transitions diverged; raise the target acceptance"
            " rate, or use Gibbs sampling",
            ConvergenceWarning,
            stacklevel=3,
        )
    rhat = worst_rhat[1] if chains > 1 else np.nan
    return {"max_rhat": rhat, "min_ess": float(worst_ess[1])}


def _warn_of_mixing(
    worst_rhat: tuple[str, float], worst_ess: tuple[str, float], chains: int
) -> None:
    """Warn of the worst variables when their diagnostics are poor."""
    if worst_rhat[1] > 1.01 or worst_ess[1] < 100 * chains:
        rhat = (
            f"largest R-hat {worst_rhat[1]:.3f} ({worst_rhat[0]}; should be at most 1.01)"
            if worst_rhat[0]
            else "R-hat needs two chains"
        )
        warnings.warn(
            f"the chains have not mixed well: {rhat}, smallest bulk effective sample size"
            f" {worst_ess[1]:.0f} ({worst_ess[0]}; should be at least {100 * chains}); draw more",
            ConvergenceWarning,
            stacklevel=4,
        )
