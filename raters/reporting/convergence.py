"""Convergence of the fit, as a code with numbers."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr

from raters.auditing.audit import Audit
from raters.auditing.verdicts import DIFFERS, effective_draws, margin_of_error, mixing_of, verdicts
from raters.errors import SettingError
from raters.fitting.parts import fit_warnings
from raters.fitting.storage import from_json
from raters.inference import SVI, Backend
from raters.inference.defaults import default_backend
from raters.inference.importance import largest_k
from raters.inference.mixing import FEWEST_DRAWS, LARGEST_RHAT, Mixing
from raters.inference.svi import still_rising
from raters.kinds import AuditContext
from raters.program import Program

_NUMBERS = (
    *("max_rhat", "min_ess", "pareto_k", "divergences", "converged", "starts", "starts_at_best"),
    *("sweeps", "elbo"),
)


def convergence(context: AuditContext) -> dict[str, Any]:
    """Convergence of a fit, and what depends on it where it has not converged."""
    program, result, audit = context.program, context.result, context.audit
    sizes = result["posterior"].sizes
    numbers = {name: result.attrs[name] for name in _NUMBERS if name in result.attrs}
    numbers |= {"chains": sizes["chain"], "draws": sizes["draw"]}
    backend: Any = None  # Where it cannot be rebuilt.
    with suppress(SettingError):
        backend = from_json(str(result.attrs.get("backend", "")), (Backend,), "back-end")
    hangs: dict[str, Any] = {"poor": [], "values": [], "open": []}
    # Draws of an exact back-end are corrected by weights where `raters.update` moved them.
    exact = None if backend is None else backend.exact and "pareto_k" not in numbers
    if backend is None:
        code = "unrecorded"
    elif exact:
        mixed = mixing_of(program, result) if sizes["chain"] > 1 else {}
        hangs = _what_hangs(program, result, audit, mixed)
        code = _of_chains(numbers, hangs)
    else:
        code = _of_approximation(numbers, isinstance(backend, SVI), result)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.data.warn()
    of_data = program.model.warnings(program.data)
    settled, of_fit = code in ("mixed", "stands", "near"), list(fit_warnings(program, result))
    doubts = audit is not None and audit.anchor.doubts
    everybody = len(hangs["open"]) == len(program.data.judges)
    return {
        "code": code,
        "settled": settled,
        "relied_on": settled and not of_fit and not doubts,
        "exact": exact,
        "sampler": None if settled and exact else type(default_backend(program)).__name__,
        "numbers": numbers,
        "wanted": {
            "max_rhat": LARGEST_RHAT,
            "min_ess": FEWEST_DRAWS * sizes["chain"],
            "pareto_k": largest_k(sizes["draw"]),
        },
        "poor": hangs["poor"],
        "open": [] if settled or everybody else hangs["open"],
        "values": hangs["values"],
        "fit_warnings": of_fit,
        "data_warnings": [str(one.message) for one in caught] + list(of_data),
    }


def _of_chains(numbers: dict[str, Any], hangs: dict[str, Any]) -> str:
    """State of several chains."""
    rhat, ess = (float(numbers.get(name, np.nan)) for name in ("max_rhat", "min_ess"))
    diverged = bool(numbers.get("divergences", 0))
    agree = rhat <= LARGEST_RHAT and ess >= FEWEST_DRAWS * numbers["chains"]
    stands = hangs["poor"] and not hangs["open"] and not hangs["values"]
    states = {
        "one_chain": numbers["chains"] == 1,
        "stands": not agree and stands and not diverged,
        "disagree": not rhat <= LARGEST_RHAT,
        "short": not agree,
        "diverged": diverged,
        "mixed": True,
    }
    return next(code for code, holds in states.items() if holds)


def _of_approximation(numbers: dict[str, Any], by_svi: bool, result: xr.DataTree) -> str:
    """State of an optimiser, and of draws that are corrected by their importance weights."""
    k, ess = (float(numbers.get(name, np.nan)) for name in ("pareto_k", "min_ess"))
    if numbers["draws"] > 1 and np.isnan(ess):
        return "unchecked" if np.isnan(k) else "far"
    if ess < FEWEST_DRAWS:
        return "few"
    rising = by_svi and still_rising(np.asarray(result["optimisation"]["elbo"])) is not None
    return "moving" if rising or not (by_svi or numbers.get("converged", 0)) else "near"


def _what_hangs(
    program: Program[Any], result: xr.DataTree, audit: Audit | None, mixed: dict[str, Mixing]
) -> dict[str, Any]:
    """Sites that have not mixed, and the verdicts and values that hang on them."""
    chains = result["posterior"].sizes["chain"]
    poor, values = [], []
    for name, site in mixed.items():
        rhat, ess = float(site.rhat.max(initial=1.0)), float(site.ess.min(initial=np.inf))
        if rhat > LARGEST_RHAT or ess < FEWEST_DRAWS * chains:
            poor.append({"site": name, "rhat": rhat, "ess": ess})
            values += [name] if program.sites[name].dims and ess < FEWEST_DRAWS else []
    hangs = {"poor": poor, "values": values, "open": list[Any]()}
    if audit is None or not mixed:
        return hangs
    # Verdicts that are other ones within two Monte-Carlo standard errors.
    verdict, p_below = audit.table["verdict"].values, audit.table["p_below"].values
    verdict, any_action = np.where(verdict == DIFFERS, "drop", verdict), np.ones(len(verdict), bool)
    error = margin_of_error(p_below, effective_draws(program, result, mixed))
    lower, upper = (
        verdicts(np.clip(p_below + sign * error, 0, 1), audit.costs, any_action) for sign in (-1, 1)
    )
    judged = verdict != "too few judgements"
    is_open = judged & ((lower != verdict) | (upper != verdict)) | (verdict == "too few draws")
    return hangs | {"open": audit.table[audit.judge].values[is_open].tolist()}
