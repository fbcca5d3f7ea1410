"""Convergence of the fit in plain words."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import xarray as xr

from raters.auditing.audit import Audit
from raters.errors import SettingError
from raters.fitting.result import fit_warnings
from raters.fitting.storage import from_json
from raters.inference import NUTS, SVI, Backend, PGGibbs
from raters.inference.importance import largest_k
from raters.inference.mixing import FEWEST_DRAWS, LARGEST_RHAT
from raters.inference.svi import still_rising
from raters.judgements.names import counted
from raters.program import Program
from raters.reporting.sentences import listing
from raters.reporting.standing import Standing, standing
from raters.reporting.steps import better

# How the command line calls the exact samplers, the one that is taken first at the front.
_EXACT: dict[type[Backend], str] = {PGGibbs: "gibbs", NUTS: "nuts"}
# With fewer draws a longer run is hardly worth its warm-up.
_FEWEST = 1000


def convergence(
    program: Program[Any], result: xr.DataTree, audit: Audit | None, command: str
) -> dict[str, Any]:
    """Convergence of a fit."""
    settings = settings_of(result)
    backend = None if settings is None else type(settings)
    chains, draws = (result["posterior"].sizes[axis] for axis in ("chain", "draw"))
    numbers = {key: result.attrs[key] for key in _NUMBERS if key in result.attrs} | {
        "chains": chains,
        "draws": draws,
    }
    stands = None
    if backend is not None and backend.exact and not _agree(numbers):
        stands = standing(program, result, audit)
    settled, sentence = _settled(backend, numbers, result, stands)
    of_fit = list(fit_warnings(program, result))
    facts = {
        "settled": settled,
        "relied_on": settled and not of_fit and not (audit is not None and audit.anchor.doubts),
        "exact": getattr(backend, "exact", None),
        "sentence": sentence,
        "numbers": [
            {"name": key, "meaning": meaning, "value": numbers[key]}
            for key, meaning in _NUMBERS.items()
            if key in numbers
        ],
        "open": _open(stands, settled, len(program.data.judges)),
        "fit_warnings": of_fit,
        "data_warnings": _data_warnings(program),
    }
    if settled:
        return facts
    diverged = numbers.get("divergences", 0) > 0
    line = better(program, settings, command, agree=_agree(numbers), diverged=diverged)
    return facts | ({} if line is None else {"line": line})


def _open(stands: Standing | None, settled: bool, judges: int) -> list[Any]:
    """Judges whose verdict may change, unless it is everybody's."""
    if stands is None or settled or len(stands.verdicts) == judges:
        return []
    return stands.verdicts


def settings_of(result: xr.DataTree) -> Backend | None:
    """Back-end with its settings as the result records it, or None where it cannot be rebuilt."""
    try:
        backend = from_json(str(result.attrs.get("backend", "")), (Backend,), "back-end")
    except SettingError:
        return None
    return backend if isinstance(backend, Backend) else None


_NUMBERS = {
    "max_rhat": f"largest R-hat: disagreement of the chains; at most {LARGEST_RHAT} is wanted",
    "min_ess": f"smallest bulk effective sample size; {FEWEST_DRAWS} for each chain are wanted",
    "pareto_k": "Pareto k̂ of the draws against the posterior; at most .7 is wanted",
    "divergences": "divergent transitions; 0 is wanted",
    "converged": "whether the optimiser stopped by itself; 1 is wanted",
    "starts": "starts of the optimiser",
    "starts_at_best": "starts that ended at the best optimum",
    "sweeps": "sweeps of the optimiser",
    "elbo": "evidence lower bound at the end",
    "chains": "chains",
    "draws": "draws kept in each chain",
}


def _settled(
    backend: type[Backend] | None,
    numbers: dict[str, Any],
    result: xr.DataTree,
    stands: Standing | None,
) -> tuple[bool, str]:
    """State of the back-end at its end, and the sentence."""
    if backend is None:
        text = (
            "The result does not record how it was fitted, so nothing can be said about whether the"
            " fit has settled."
        )
        return False, text
    if backend.exact:
        return _mixed(numbers, stands)
    if text := _far(numbers):
        return False, text
    if backend is SVI:
        moving = still_rising(np.asarray(result["optimisation"]["elbo"])) is not None
        cut_off = "The approximation was still improving when it stopped"
        at_rest = "The approximation had stopped improving, and"
    else:
        moving = not numbers.get("converged", 0)
        cut_off = "The optimiser was cut off before it was done"
        at_rest = (
            f"The optimiser came to rest at the most probable values ({_starts(numbers)});"
            " intervals are drawn around these by an approximation, which"
        )
    if moving:
        return False, f"{cut_off}: the numbers on this page may still move."
    # Importance weights are those of its own draws.
    seen = "by a check that does not see where it never draws"
    return True, f"{at_rest} is near the posterior, {seen}."


def _far(numbers: dict[str, Any]) -> str:
    """The sentence where an approximation is not known to be near the posterior."""
    k, ess = (float(numbers.get(key, np.nan)) for key in ("pareto_k", "min_ess"))
    if numbers["draws"] > 1 and np.isnan(ess):
        unchecked = "have not been checked against the posterior"
        shown = f"Pareto k̂ {k:.2f}"
        if k <= largest_k(numbers["draws"]):
            shown += ", with weights that are worth less than a tenth as many draws"
        far = f"are far from the posterior by their own check ({shown})"
        return (
            f"The draws of this approximation {unchecked if np.isnan(k) else far}: means and"
            " intervals on this page may be off."
        )
    if ess < FEWEST_DRAWS:
        return (
            "The draws of this approximation, corrected by their importance weights, hold as much"
            f" as {np.floor(ess):,.0f} independent draws, too few to tell much."
        )
    return ""


def _starts(numbers: dict[str, Any]) -> str:
    """Number of starts of the optimiser that agree."""
    starts, best = numbers.get("starts", 1), numbers.get("starts_at_best", 1)
    return f"{best} of {starts} starts ended there" if starts > 1 else "one start was made"


def _mixed(numbers: dict[str, Any], stands: Standing | None) -> tuple[bool, str]:
    """Of chains: whether they agree and are long enough."""
    chains, divergences = numbers["chains"], numbers.get("divergences", 0)
    rhat, ess = _diagnostics(numbers)
    if chains == 1:
        short = "" if ess >= FEWEST_DRAWS else ", and it is too short to tell much"
        alone = f"There is a single chain{short or ', and nothing to compare it with'}"
        return False, f"{alone}: run several{short and ', and longer,'} to see whether they agree."
    if stands is not None and stands.poor and stands.all_stands and not divergences:
        return True, _all_stands(chains, stands)
    if not rhat <= LARGEST_RHAT:
        text = (
            "have not agreed yet: the numbers on this page may still move. Run longer before acting"
            " on them."
        )
    elif not ess >= FEWEST_DRAWS * chains:
        text = (
            "are going to the same place, but are too short to tell it precisely. Run longer before"
            " acting."
        )
    elif divergences:
        text = (
            f"agree, but {counted(divergences, 'transition')} diverged, so a part of the posterior"
            " may have been missed."
        )
    else:
        text = (
            f"agree with one another, and hold as much as {ess:,.0f} independent draws or more of"
            " every number: a longer run would hardly change this page."
        )
    return _agree(numbers) and not divergences, f"The {chains} chains {text}{_what_hangs(stands)}"


def _of_sites(stands: Standing) -> str:
    """The sites that have not mixed, with their numbers."""
    return listing(
        [
            f"{name} (R-hat {rhat:.3f}, effective draws {np.floor(ess):,.0f})"
            for name, (rhat, ess) in stands.poor.items()
        ]
    )


def _all_stands(chains: int, stands: Standing) -> str:
    """The sentence where no verdict and no value of a table hangs on what has not mixed."""
    verdicts = ": each verdict is the same within its Monte-Carlo error" if stands.judged else ""
    return (
        f"A longer run would hardly change this page{verdicts}. The"
        f" {chains} chains have not mixed as well as is wanted for {_of_sites(stands)}; run longer"
        " to quote these."
    )


def _what_hangs(stands: Standing | None) -> str:
    """Conclusions that hang on what has not mixed."""
    if stands is None or not stands.poor:
        return ""
    parts = [f"values of {listing(stands.values)} may move"] if stands.values else []
    if stands.verdicts:
        parts.insert(0, f"the verdicts of {listing(stands.verdicts)} may still change")
    elif stands.judged:
        parts.insert(0, "every verdict is the same within its Monte-Carlo error")
    ending = f": {', and '.join(parts)}" if parts else ""
    return f" It is {_of_sites(stands)}{ending}."


def _diagnostics(numbers: dict[str, Any]) -> tuple[float, float]:
    """The largest R-hat and the smallest effective sample size; NaN where they are not recorded."""
    rhat, ess = (float(numbers.get(key, np.nan)) for key in ("max_rhat", "min_ess"))
    return rhat, ess


def _agree(numbers: dict[str, Any]) -> bool:
    """True if there are several chains that agree and are long enough."""
    rhat, ess = _diagnostics(numbers)
    chains = numbers["chains"]
    return chains > 1 and rhat <= LARGEST_RHAT and ess >= FEWEST_DRAWS * chains


def _data_warnings(program: Program[Any]) -> list[str]:
    """Sentences of the data and of the model about what these data cannot tell."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.data.warn()
    of_model = program.model.data_warnings(program.data)
    return [str(warning.message) for warning in caught] + list(of_model)
