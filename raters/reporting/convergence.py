"""Convergence of the fit in plain words, and what to do next."""

from __future__ import annotations

import dataclasses
import shlex
import warnings
from typing import Any

import numpy as np
import xarray as xr

from raters.auditing.audit import Audit
from raters.errors import SettingError
from raters.fitting.result import fit_warnings
from raters.fitting.storage import from_json
from raters.inference import NUTS, PGEM, SVI, Backend, PGGibbs
from raters.inference.svi import still_rising
from raters.judgements.base import Judgements
from raters.kinds import AuditContext, kind_of
from raters.program import Program
from raters.reporting.facts import plural_noun
from raters.reporting.sentences import CLEAR, counted, listing
from raters.reporting.standing import LARGEST_RHAT, SHORT, Standing, standing

# How the command line calls the exact samplers, the one that is taken first at the front.
_EXACT: dict[type[Backend], str] = {PGGibbs: "gibbs", NUTS: "nuts"}
# With fewer draws a longer run is hardly worth its warm-up.
_FEWEST = 1000


def convergence(
    program: Program[Any], result: xr.DataTree, audit: Audit, command: str
) -> dict[str, Any]:
    """Convergence of a fit.

    Returns
    -------
    dict
        ``settled`` (whether a longer run would change little of what is stated), ``relied_on``
        (settled, and without warnings of the model), ``exact`` (of the back-end), a ``sentence``,
        the ``numbers`` behind it, the judges whose verdict is ``open`` and may change with a longer
        run, ``fit_warnings`` and ``data_warnings``; and the ``line`` that makes a better fit, where
        one is needed and possible.
    """
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
        "relied_on": settled and not of_fit,
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
    line = None if settled else _better(program, settings, numbers, command)
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
    "max_rhat": "largest R-hat: disagreement of the chains; at most 1.01 is wanted",
    "min_ess": "smallest bulk effective sample size; at least 100 for each chain is wanted",
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
        return (
            False,
            (
                "The result does not record how it was fitted, so nothing can be said about whether"
                " the fit has settled."
            ),
        )
    if backend.exact:
        return _mixed(numbers, stands)
    k, ess = (float(numbers.get(key, np.nan)) for key in ("pareto_k", "min_ess"))
    if numbers["draws"] > 1 and np.isnan(ess):
        unchecked = "have not been checked against the posterior"
        far = f"are far from the posterior by their own check (Pareto k̂ {k:.2f})"
        return (
            False,
            (
                f"The draws of this approximation {unchecked if np.isnan(k) else far}: means and"
                " intervals on this page may be off."
            ),
        )
    if ess < SHORT:
        return (
            False,
            (
                "The draws of this approximation, corrected by their importance weights, hold as"
                f" much as {ess:,.0f} independent draws, too few to tell much."
            ),
        )
    if backend is SVI:
        if still_rising(np.asarray(result["optimisation"]["elbo"])) is not None:
            return (
                False,
                (
                    "The approximation was still improving when it stopped: the numbers on this"
                    " page may still move."
                ),
            )
        return (
            True,
            (
                "The approximation had stopped improving, and is near the posterior by its own"
                " check."
            ),
        )
    if not numbers.get("converged", 0):
        return (
            False,
            (
                "The optimiser was cut off before it was done: the numbers on this page may still"
                " move."
            ),
        )
    starts, best = numbers.get("starts", 1), numbers.get("starts_at_best", 1)
    agree = f"{best} of {starts} starts ended there" if starts > 1 else "one start was made"
    return (
        True,
        (
            f"The optimiser came to rest at the most probable values ({agree}); intervals are drawn"
            " around these by an approximation, which is near the posterior by its own check."
        ),
    )


def _mixed(numbers: dict[str, Any], stands: Standing | None) -> tuple[bool, str]:
    """Of chains: whether they agree and are long enough."""
    chains, divergences = numbers["chains"], numbers.get("divergences", 0)
    rhat, ess = _diagnostics(numbers)
    if chains == 1:
        short = "" if ess >= 100 else ", and it is too short to tell much"
        alone = f"There is a single chain{short or ', and nothing to compare it with'}"
        return False, f"{alone}: run several{short and ', and longer,'} to see whether they agree."
    if stands is not None and stands.poor and stands.all_stands and not divergences:
        return True, _all_stands(chains, stands)
    if not rhat <= LARGEST_RHAT:
        text = (
            "have not agreed yet: the numbers on this page may still move. Run longer before acting"
            " on them."
        )
    elif not ess >= SHORT * chains:
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
            f"{name} (R-hat {rhat:.3f}, effective draws {ess:,.0f})"
            for name, (rhat, ess) in stands.poor.items()
        ]
    )


def _all_stands(chains: int, stands: Standing) -> str:
    """The sentence where only what nothing is stated of has not mixed."""
    return (
        f"What this page states stands: each verdict is the same within its Monte-Carlo error. The"
        f" {chains} chains have not mixed as well as is wanted for {_of_sites(stands)}; run longer"
        " to quote these."
    )


def _what_hangs(stands: Standing | None) -> str:
    """Which conclusions hang on what has not mixed."""
    if stands is None or not stands.poor:
        return ""
    verdicts = (
        f"the verdicts of {listing(stands.verdicts)} may still change"
        if stands.verdicts
        else "every verdict is the same within its Monte-Carlo error"
    )
    moving = f", and values of {listing(stands.values)} may move" if stands.values else ""
    return f" It is {_of_sites(stands)}: {verdicts}{moving}."


def _diagnostics(numbers: dict[str, Any]) -> tuple[float, float]:
    """The largest R-hat and the smallest effective sample size; NaN where they are not recorded."""
    rhat, ess = (float(numbers.get(key, np.nan)) for key in ("max_rhat", "min_ess"))
    return rhat, ess


def _agree(numbers: dict[str, Any]) -> bool:
    """True if there are several chains that agree and are long enough."""
    rhat, ess = _diagnostics(numbers)
    return numbers["chains"] > 1 and rhat <= LARGEST_RHAT and ess >= SHORT * numbers["chains"]


def _data_warnings(program: Program[Any]) -> list[str]:
    """Sentences of the data and of the model about what these data cannot tell."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.data.warn()
    of_model = program.model.data_warnings(program.data)
    return [str(warning.message) for warning in caught] + list(of_model)


# ---------------------------------------------------------------- what to do next

Step = tuple[str, str | None]


def steps(
    context: AuditContext, people: list[dict[str, Any]], fitted: dict[str, Any], command: str
) -> dict[str, list[dict[str, Any]]]:
    """Next steps in order, each with the line that does it where there is one."""
    data = context.program.data
    rows = {
        verdict: [row for row in people if row["verdict"] == verdict]
        for verdict in ("drop", "review", "too few judgements")
    }
    names = {
        verdict: [row[data.judge] for row in of_verdict] for verdict, of_verdict in rows.items()
    }
    todo, better = _about_the_fit(context.program, names, fitted, command)
    if names["drop"]:
        # After a better fit, that one is to be repeated.
        done = context.dropped is not None and fitted["relied_on"]
        line = None if done else _dropped(context.program, command and (better or command))
        todo.append((_about_drops(names["drop"], fitted["relied_on"], done), line))
    adversaries = [
        row[data.judge]
        for row in rows["drop"] + rows["review"]
        if row.get("p_adversarial", 0.0) > CLEAR
    ]
    if adversaries:
        text = (
            f"Ask {listing(adversaries)} whether the instructions were read the wrong way round:"
            " their answers go against the others' so often that they tell something once they are"
            " turned."
        )
        todo.append((text, None))
    if names["review"]:
        text = f"Read some of the answers of {listing(names['review'])}, and decide by hand."
        todo.append((text, None))
    if unjudged := names["too few judgements"]:
        text = f"Ask more of {listing(unjudged)} before judging them, or leave them as they are."
        todo.append((text, None))
    todo.append(ask(data, command, names["drop"]))
    return {"steps": [{"what": what, "line": line} for what, line in todo]}


def _about_the_fit(
    program: Program[Any], names: dict[str, list[Any]], fitted: dict[str, Any], command: str
) -> tuple[list[Step], str | None]:
    """Steps that make the fit better or check it, and the line of the better fit."""
    if not fitted["settled"]:
        better: str | None = fitted.get("line")
        text = "Fit again before anything else: what follows may still change."
        if fitted["open"]:
            text = f"Fit longer before acting on the verdicts of {listing(fitted['open'])}."
        return [(text, better)], better
    if fitted["fit_warnings"]:
        return [(f"{text[:1].upper()}{text[1:]}.", None) for text in fitted["fit_warnings"]], None
    wanted = not fitted["exact"] and (names["drop"] or names["review"])
    if wanted and (better := _exact(program, command)):
        text = (
            "Before anybody loses work by this, check it with the exact sampler, which takes"
            " longer."
        )
        return [(text, better)], better
    return [], None


def _about_drops(names: list[Any], relied_on: bool, done: bool) -> str:
    """Advice on dropping these judges; `done` where the fit without them is in the report."""
    them = "this one" if len(names) == 1 else "them"
    begin = "Put" if relied_on else "If they then still should go, put"
    again = "" if done else f", and fit again without {them} to see what changes"
    return (
        f"{begin} no more questions to {listing(names)}{again}. Look at some of the answers"
        " yourself first, and hear the person: the posterior is as good as the model."
    )


def _variable(data: Judgements) -> str:
    """Name of the data in lines of Python."""
    return kind_of(data).words.many.replace(" ", "_")


def _command(text: str, leave_out: dict[str, int], *more: str) -> str:
    """The command without some options (and as many of their values), and with others."""
    words, kept = shlex.split(text), []
    while words:
        word = words.pop(0)
        if word.partition("=")[0] not in leave_out:
            kept.append(word)
        elif "=" not in word:
            words = words[leave_out[word] :]
    return shlex.join([*kept, *more])


def _fitting() -> dict[str, int]:
    """Options of the command line that say how to fit, each with the number of its values."""
    options = {"--backend": 1}
    for backend in (PGGibbs, PGEM, NUTS, SVI):
        for field in dataclasses.fields(backend):
            # `--batch-size` is a number of questions.
            name = {"batch_size": "svi-batch-size"}.get(field.name, field.name.replace("_", "-"))
            if isinstance(field.default, bool):
                options |= {f"--{name}": 0, f"--no-{name}": 0}
            else:
                options[f"--{name}"] = 1
    return options


def _better(
    program: Program[Any], used: Backend | None, numbers: dict[str, Any], command: str
) -> str | None:
    """Line of a fit that can be relied on sooner than the one that was `used`."""
    if not isinstance(used, (NUTS, PGGibbs)):
        return _exact(program, command)
    diverged = isinstance(used, NUTS) and numbers.get("divergences", 0)
    longer = used
    if not (diverged and _agree(numbers)):
        longer = dataclasses.replace(
            used, draws=max(4 * used.draws, _FEWEST), chains=max(used.chains, 4)
        )
    if diverged and isinstance(longer, NUTS):
        # Nine tenths nearer to 1, in whose neighbourhood steps are small.
        longer = dataclasses.replace(
            longer, target_accept=max(0.99, round(1 - (1 - longer.target_accept) / 10, 6))
        )
    if not command:
        return f"result = rt.fit(model, {_variable(program.data)}, rt.{longer!r}, seed=0)"
    changed = {
        f"--{field.name.replace('_', '-')}": str(getattr(longer, field.name))
        for field in dataclasses.fields(longer)
        if getattr(longer, field.name) != getattr(used, field.name)
    }
    options = [word for flag, value in changed.items() for word in (flag, value)]
    return _command(command, dict.fromkeys(changed, 1), *options)


def _exact(program: Program[Any], command: str) -> str | None:
    """Line of a fit by an exact sampler, or None where none can fit the model."""
    sampler = _sampler(program)
    if sampler is None:
        return None
    if command:
        return _command(
            command, _fitting(), *(["--backend", _EXACT[sampler]] if sampler is not PGGibbs else [])
        )
    return f"result = rt.fit(model, {_variable(program.data)}, rt.{sampler.__name__}(), seed=0)"


def _sampler(program: Program[Any]) -> type[Backend] | None:
    """The first exact sampler that can fit the model; None where none can."""
    return next((sampler for sampler in _EXACT if sampler().why_not(program) is None), None)


def _dropped(program: Program[Any], command: str) -> str | None:
    """Line of a fit without those who should go; None where the command made one already."""
    if command:
        return None if "--drop" in shlex.split(command) else _command(command, {}, "--drop")
    by = " rt.NUTS()," if _sampler(program) is NUTS else ""
    return f"without = rt.drop(model, {_variable(program.data)}, audit,{by} seed=0)"


def _given(command: str, option: str) -> str | None:
    """Value of an option in a command; None where it is not given."""
    words = shlex.split(command)
    for place, word in enumerate(words):
        name, joined, value = word.partition("=")
        if name == option and (joined or place + 1 < len(words)):
            return value if joined else words[place + 1]
    return None


def ask(data: Judgements, command: str, dropped: list[Any]) -> Step:
    """The questions that tell most about the judges, once those `dropped` are gone."""
    judges = plural_noun(data.judge)
    if not data.again and not _left_to_ask(data, dropped):
        return (
            f"To be surer of the {judges}, put new questions to them: whoever stays has answered"
            " every question.",
            None,
        )
    text = f"To be surer of the {judges}, ask what tells most about them"
    if dropped:
        text += f", and leave out what this would ask {listing(dropped)}"
    if command:
        folder, kind = _given(command, "--out") or "raters-audit", _given(command, "--kind")
        own = ["--kind", kind] if kind else []
        return f"{text}.", shlex.join(
            ["raters", "suggest", f"{folder}/result.nc", "--target", "competence", *own]
        )
    pool = f"rt.Candidates.of({_variable(data)})"
    return f"{text}.", f'rt.suggest(model, result, {pool}, target="competence")'


def _left_to_ask(data: Judgements, dropped: list[Any]) -> bool:
    """True if somebody who stays has not answered every question."""
    gone = set(map(str, dropped))
    stays = np.array([str(name) not in gone for name in data.judges])
    stays |= not stays.any()
    judge, question, _, weight = data.tallies()
    answered = (weight > 0) & stays[judge]
    num_pairs = len(np.unique((judge * (int(question.max(initial=0)) + 1) + question)[answered]))
    # A unit that nobody was asked about, such as an item without labels, has no row.
    with_units = data.unit not in (data.row, data.judge)
    num_questions = data.num_units if with_units else len(np.unique(question))
    return bool(num_pairs < stays.sum() * num_questions)
