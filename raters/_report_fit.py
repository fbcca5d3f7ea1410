"""What a report says of the fit: whether it can be relied on, and what to do next."""

from __future__ import annotations

import shlex
import warnings
from typing import Any

import numpy as np
import xarray as xr

from raters import inference
from raters._report_words import CLEAR, listing
from raters.data import Comparisons
from raters.inference.svi import _warn_unless_settled
from raters.labels import Labels
from raters.model import Model


def backend_name(result: xr.DataTree) -> str:
    """The class of the back-end, as the result records it; empty where it does not."""
    return str(result.attrs.get("backend", "")).partition("(")[0]


def convergence(model: Model, result: xr.DataTree, data: Comparisons | Labels, command: str) -> dict[str, Any]:
    """Whether the numbers would stay in a longer run, in words and then in numbers."""
    name, attrs = backend_name(result), result.attrs
    kind = getattr(inference, name, None)
    exact = getattr(kind, "exact", None)
    chains, draws = (result["posterior"].sizes[axis] for axis in ("chain", "draw"))
    numbers = {key: attrs[key] for key in _NUMBERS if key in attrs} | {"chains": chains, "draws": draws}
    settled, sentence = _settled(exact, name, numbers, result)
    doubts = list(model.doubts(result))
    found = {
        "settled": settled and not doubts,
        "exact": exact,
        "sentence": sentence,
        "numbers": [{"name": key, "meaning": _NUMBERS[key], "value": numbers[key]} for key in _NUMBERS if key in numbers],
        "doubts": doubts,
        "cautions": _cautions(model, data),
    }
    return found | ({} if settled else {"line": _longer(name, draws, data, command)})


_NUMBERS = {
    "max_rhat": "largest R-hat: disagreement of the chains; at most 1.01 is wanted",
    "min_ess": "smallest bulk effective sample size; at least 100 for each chain is wanted",
    "divergences": "divergent transitions; 0 is wanted",
    "converged": "whether the optimiser stopped by itself; 1 is wanted",
    "starts": "starts of the optimiser",
    "starts_at_best": "starts that ended at the best optimum",
    "sweeps": "sweeps of the optimiser",
    "elbo": "evidence lower bound at the end",
    "chains": "chains",
    "draws": "draws kept in each chain",
}


def _settled(exact: bool | None, name: str, numbers: dict[str, Any], result: xr.DataTree) -> tuple[bool, str]:
    """Whether the fit can be relied on, and the sentence."""
    if exact is None:
        return False, "The result does not record how it was fitted, so nothing can be said about whether the fit has settled."
    if exact:
        return _mixed(numbers)
    if name == "SVI":
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            _warn_unless_settled(np.asarray(result["optimisation"]["elbo"]))
        if said:
            return False, "The approximation was still improving when it stopped: the numbers on this page may still move."
        return True, "The approximation had stopped improving. It is an approximation: intervals tend to be too narrow."
    if not numbers.get("converged", 0):
        return False, "The optimiser was cut off before it was done: the numbers on this page may still move."
    starts, best = numbers.get("starts", 1), numbers.get("starts_at_best", 1)
    agree = f"{best} of {starts} starts ended there" if starts > 1 else "one start was made"
    return True, (
        f"The optimiser came to rest at the most probable values ({agree}); intervals are drawn around these by a normal "
        "approximation, which is quick and usually close, but not exact."
    )


def _mixed(numbers: dict[str, Any]) -> tuple[bool, str]:
    """Of chains: whether they agree and are long enough."""
    chains = numbers["chains"]
    rhat, ess = (float(numbers.get(key, np.nan)) for key in ("max_rhat", "min_ess"))
    jumps = numbers.get("divergences", 0)
    if chains == 1 and ess >= 100:
        return False, "There is a single chain, and nothing to compare it with: run several to see whether they agree."
    who = f"The {chains} chains" if chains > 1 else "The single chain"
    if not rhat <= 1.01:
        return False, f"{who} have not agreed yet: the numbers on this page may still move. Run longer before acting on them."
    if not ess >= 100 * chains:
        return False, f"{who} are going to the same place, but are too short to tell it precisely. Run longer before acting."
    if jumps:
        return False, f"{who} agree, but {jumps:,} steps went astray (diverged), so a corner may have been missed."
    return True, (
        f"{who} agree with one another, and hold as much as {ess:,.0f} independent draws or more of every number: a longer run "
        "would hardly change this page."
    )


def _cautions(model: Model, data: Comparisons | Labels) -> list[str]:
    """What these data cannot tell."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        data.warn()
    return [str(caution.message) for caution in said] + list(model.cautions(data))


# ---------------------------------------------------------------- what to do next


def steps(
    people: list[dict[str, Any]], fitted: dict[str, Any], data: Comparisons | Labels, command: str
) -> dict[str, list[dict[str, Any]]]:
    """What to do, in this order, each with the line that does it where there is one."""
    of = {verdict: [row for row in people if row["verdict"] == verdict] for verdict in ("drop", "review", "not enough votes")}
    found = []
    if not fitted["settled"]:
        text = "Run the fit for longer before anything else: what follows may still change."
        found.append((text, fitted.get("line") or _longer("", 0, data, command)))
    elif not fitted["exact"] and (of["drop"] or of["review"]):
        text = "Before anybody loses work by this, check it with the exact sampler, which takes longer."
        found.append((text, _exact(data, command)))
    if of["drop"]:
        found.append((_about_drops(of["drop"], fitted["settled"]), _dropped(data, command)))
    if upside_down := [row["annotator"] for row in of["drop"] + of["review"] if row["p_adversarial"] > CLEAR]:
        text = (
            f"Ask {listing(upside_down)} whether the instructions were read the wrong way round: their answers go against the "
            "others' so often that they tell something once they are turned."
        )
        found.append((text, None))
    if of["review"]:
        text = f"Read some of the answers of {listing([row['annotator'] for row in of['review']])}, and decide by hand."
        found.append((text, None))
    if of["not enough votes"]:
        names = listing([row["annotator"] for row in of["not enough votes"]])
        found.append((f"Ask more of {names} before judging them, or leave them as they are.", None))
    found.append(_ask(data, command))
    return {"steps": [{"what": what, "line": line} for what, line in found]}


def _about_drops(rows: list[dict[str, Any]], settled: bool) -> str:
    names = listing([row["annotator"] for row in rows])
    them = "this one" if len(rows) == 1 else "them"
    begin = "Put" if settled else "If they then still should go, put"
    return (
        f"{begin} no more questions to {names}, and fit again without {them} to see what changes. Look at some of the answers "
        "yourself first, and hear the person: the posterior is as good as the model."
    )


def _name(data: Comparisons | Labels) -> str:
    return "labels" if isinstance(data, Labels) else "votes"


def _command(text: str, leave_out: dict[str, int], *more: str) -> str:
    """The command with some options (and so many of their values) left out and others added."""
    words, kept = shlex.split(text), []
    while words:
        word = words.pop(0)
        if word.partition("=")[0] not in leave_out:
            kept.append(word)
        elif "=" not in word:
            words = words[leave_out[word] :]
    return shlex.join([*kept, *more])


def _longer(name: str, draws: int, data: Comparisons | Labels, command: str) -> str:
    """A longer run."""
    if name not in ("PGGibbs", "NUTS"):
        return _exact(data, command)
    if command:
        return _command(command, {"--draws": 1, "--chains": 1}, "--draws", str(max(4 * draws, 1000)))
    return f"result = rt.fit(model, {_name(data)}, rt.{name}(draws={max(4 * draws, 1000)}), seed=0)"


def _exact(data: Comparisons | Labels, command: str) -> str:
    if command:
        return _command(command, {"--backend": 1, "--draws": 1})
    return f"result = rt.fit(model, {_name(data)}, rt.PGGibbs(), seed=0)"


def _dropped(data: Comparisons | Labels, command: str) -> str:
    if command:
        return _command(command, {"--drop": 0}, "--drop")
    return f"without = rt.drop(model, {_name(data)}, found, seed=0)"


def _ask(data: Comparisons | Labels, command: str) -> tuple[str, str]:
    """What tells most about the annotators."""
    text = "To be surer of the annotators, ask what tells most about them."
    if command:
        words = shlex.split(command)
        out = words[words.index("--out") + 1] if "--out" in words[:-1] else "raters-audit"
        return text, shlex.join(["raters", "suggest", f"{out}/result.nc", "--target", "competence"])
    pool = "labels" if isinstance(data, Labels) else "pairs"
    return text, f'rt.suggest(model, result, rt.Candidates.{pool}({_name(data)}), target="competence")'
