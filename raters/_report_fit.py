"""What a report says of the fit: whether it can be relied on, and what to do next."""

from __future__ import annotations

import dataclasses
import shlex
import warnings
from typing import Any

import numpy as np
import xarray as xr

from raters import inference
from raters._report_words import CLEAR, counted, listing
from raters._reprs import read
from raters.acquisition.candidates import Candidates
from raters.cite import known
from raters.data import Comparisons
from raters.errors import DataError
from raters.inference import NUTS, SVI, Backend, PGGibbs
from raters.inference.svi import still_rising
from raters.labels import Labels
from raters.model import Model

# How the command line calls the exact samplers, the one that is taken first at the front.
_EXACT = {PGGibbs: "gibbs", NUTS: "nuts"}
# With fewer draws a longer run is hardly worth its warm-up.
_FEWEST = 1000


def convergence(model: Model, result: xr.DataTree, data: Comparisons | Labels, command: str) -> dict[str, Any]:
    """Whether the numbers would stay in a longer run, in words and then in numbers."""
    attrs = result.attrs
    kind = known(str(attrs.get("backend", "")), inference)
    exact = getattr(kind, "exact", None)
    chains, draws = (result["posterior"].sizes[axis] for axis in ("chain", "draw"))
    numbers = {key: attrs[key] for key in _NUMBERS if key in attrs} | {"chains": chains, "draws": draws}
    settled, sentence = _settled(kind, numbers, result)
    doubts = list(model.doubts(result))
    found = {
        "settled": settled,
        "relied_on": settled and not doubts,
        "exact": exact,
        "sentence": sentence,
        "numbers": [{"name": key, "meaning": _NUMBERS[key], "value": numbers[key]} for key in _NUMBERS if key in numbers],
        "doubts": doubts,
        "cautions": _cautions(model, data),
    }
    line = None if settled else _better(model, settings_of(result), numbers, data, command)
    return found | ({} if line is None else {"line": line})


def settings_of(result: xr.DataTree) -> Backend | None:
    """The back-end with its settings, as the result records it; None where it does not, or where raters does not know it."""
    kinds = {name: getattr(inference, name) for name in inference.__all__}
    try:
        found = read(str(result.attrs.get("backend", "")), kinds)
    except ValueError:
        return None
    return found if isinstance(found, Backend) else None


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


def _settled(kind: Any, numbers: dict[str, Any], result: xr.DataTree) -> tuple[bool, str]:
    """Whether the back-end was done, and the sentence."""
    if kind is None:
        return False, "The result does not record how it was fitted, so nothing can be said about whether the fit has settled."
    if kind.exact:
        return _mixed(numbers)
    if kind is SVI:
        if still_rising(np.asarray(result["optimisation"]["elbo"])) is not None:
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
    chains, jumps = numbers["chains"], numbers.get("divergences", 0)
    rhat, ess = _diagnostics(numbers)
    if chains == 1:
        short = "" if ess >= 100 else ", and it is too short to tell much"
        alone = f"There is a single chain{short or ', and nothing to compare it with'}"
        return False, f"{alone}: run several{short and ', and longer,'} to see whether they agree."
    if not rhat <= 1.01:
        text = "have not agreed yet: the numbers on this page may still move. Run longer before acting on them."
    elif not ess >= 100 * chains:
        text = "are going to the same place, but are too short to tell it precisely. Run longer before acting."
    elif jumps:
        text = f"agree, but {counted(jumps, 'step')} went astray (diverged), so a corner may have been missed."
    else:
        text = (
            f"agree with one another, and hold as much as {ess:,.0f} independent draws or more of every number: a longer run "
            "would hardly change this page."
        )
    return _agree(numbers) and not jumps, f"The {chains} chains {text}"


def _diagnostics(numbers: dict[str, Any]) -> tuple[float, float]:
    """The largest R-hat and the smallest effective sample size; NaN where they are not recorded."""
    rhat, ess = (float(numbers.get(key, np.nan)) for key in ("max_rhat", "min_ess"))
    return rhat, ess


def _agree(numbers: dict[str, Any]) -> bool:
    """Whether there are several chains that agree and are long enough."""
    rhat, ess = _diagnostics(numbers)
    return numbers["chains"] > 1 and rhat <= 1.01 and ess >= 100 * numbers["chains"]


def _cautions(model: Model, data: Comparisons | Labels) -> list[str]:
    """What these data cannot tell."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        data.warn()
    return [str(caution.message) for caution in said] + list(model.cautions(data))


# ---------------------------------------------------------------- what to do next


def steps(
    model: Model,
    people: list[dict[str, Any]],
    fitted: dict[str, Any],
    data: Comparisons | Labels,
    command: str,
) -> dict[str, list[dict[str, Any]]]:
    """What to do, in this order, each with the line that does it where there is one."""
    of = {verdict: [row for row in people if row["verdict"] == verdict] for verdict in ("drop", "review", "not enough votes")}
    found: list[tuple[str, str | None]] = []
    better: str | None = None
    if not fitted["settled"]:
        better = fitted.get("line")
        found.append(("Fit again before anything else: what follows may still change.", better))
    elif fitted["doubts"]:
        found += [(f"{doubt[:1].upper()}{doubt[1:]}.", None) for doubt in fitted["doubts"]]
    elif not fitted["exact"] and (of["drop"] or of["review"]) and (better := _exact(model, data, command)):
        found.append(("Before anybody loses work by this, check it with the exact sampler, which takes longer.", better))
    if of["drop"]:
        # After a better fit, that one is to be repeated.
        line = _dropped(model, data, command and (better or command))
        found.append((_about_drops(of["drop"], fitted["relied_on"]), line))
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
    found.append(_ask(data, command, of["drop"]))
    return {"steps": [{"what": what, "line": line} for what, line in found]}


def _about_drops(rows: list[dict[str, Any]], relied_on: bool) -> str:
    names = listing([row["annotator"] for row in rows])
    them = "this one" if len(rows) == 1 else "them"
    begin = "Put" if relied_on else "If they then still should go, put"
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


# Options of the command line that say how to fit.
_FITTING = {"--backend": 1, "--draws": 1, "--warmup": 1, "--chains": 1}


def _better(
    model: Model, used: Backend | None, numbers: dict[str, Any], data: Comparisons | Labels, command: str
) -> str | None:
    """A fit that can be relied on sooner than the one that was `used`."""
    if not isinstance(used, (NUTS, PGGibbs)):
        return _exact(model, data, command)
    astray = isinstance(used, NUTS) and numbers.get("divergences", 0)
    longer = used
    if not (astray and _agree(numbers)):
        longer = dataclasses.replace(used, draws=max(4 * used.draws, _FEWEST), chains=max(used.chains, 4))
    if not command:
        if astray and isinstance(longer, NUTS):
            # Nine tenths nearer to 1, in whose neighbourhood steps are small.
            longer = dataclasses.replace(longer, target_accept=max(0.99, round(1 - (1 - longer.target_accept) / 10, 6)))
        return f"result = rt.fit(model, {_name(data)}, rt.{longer!r}, seed=0)"
    if astray:
        # The command line has no target_accept: take the sampler that cannot go astray, or adapt for longer.
        if _sampler(model, data) is PGGibbs:
            return _exact(model, data, command)
        longer = dataclasses.replace(longer, warmup=4 * longer.warmup)
    changed = [name for name in ("draws", "warmup", "chains") if getattr(longer, name) != getattr(used, name)]
    options = [word for name in changed for word in (f"--{name}", str(getattr(longer, name)))]
    return _command(command, {f"--{name}": 1 for name in changed}, *options)


def _exact(model: Model, data: Comparisons | Labels, command: str) -> str | None:
    """A fit by an exact sampler."""
    kind = _sampler(model, data)
    if kind is None:
        return None
    if command:
        return _command(command, _FITTING, *(["--backend", _EXACT[kind]] if kind is not PGGibbs else []))
    return f"result = rt.fit(model, {_name(data)}, rt.{kind.__name__}(), seed=0)"


def _sampler(model: Model, data: Comparisons | Labels) -> Any:
    """The first exact sampler that can fit the model; None where none can."""
    return next((kind for kind in _EXACT if kind().why_not(model, data) is None), None)


def _dropped(model: Model, data: Comparisons | Labels, command: str) -> str | None:
    """A fit without those who should go; None where the command made one already."""
    if command:
        return None if "--drop" in shlex.split(command) else _command(command, {}, "--drop")
    by = " rt.NUTS()," if _sampler(model, data) is NUTS else ""
    return f"without = rt.drop(model, {_name(data)}, found,{by} seed=0)"


def _folder(command: str) -> str:
    """Where the command wrote its result."""
    words = shlex.split(command)
    for place, word in enumerate(words):
        option, joined, value = word.partition("=")
        if option == "--out" and (joined or place + 1 < len(words)):
            return value if joined else words[place + 1]
    return "raters-audit"


def _ask(data: Comparisons | Labels, command: str, dropped: list[dict[str, Any]]) -> tuple[str, str | None]:
    """What tells most about the annotators."""
    names = [row["annotator"] for row in dropped]
    if isinstance(data, Labels):
        go = set(map(str, names))
        stay = [name for name in data.annotators if str(name) not in go]
        try:
            Candidates.labels(data, annotators=stay or None, limit=1)
        except DataError:
            return "To be surer of the annotators, put new items to them: whoever stays has labelled every item.", None
    text = "To be surer of the annotators, ask what tells most about them"
    if names:
        text += f", and leave out what this would ask {listing(names)}"
    if command:
        return f"{text}.", shlex.join(["raters", "suggest", f"{_folder(command)}/result.nc", "--target", "competence"])
    pool = "labels" if isinstance(data, Labels) else "pairs"
    return f"{text}.", f'rt.suggest(model, result, rt.Candidates.{pool}({_name(data)}), target="competence")'
