"""Next steps, each with the line that does it."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import numpy as np

from raters.auditing.verdicts import DIFFERS, IN_QUESTION
from raters.inference import NUTS, PGEM, PGVI, SVI, Backend, PGGibbs
from raters.judgements.base import Judgements
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, kind_of
from raters.program import Program
from raters.reporting.facts import plural_noun
from raters.reporting.sentences import CLEAR, about, listing, questions_of

# How the command line calls the exact samplers, the one that is taken first at the front.
_EXACT: dict[type[Backend], str] = {PGGibbs: "gibbs", NUTS: "nuts"}
# With fewer draws a longer run is hardly worth its warm-up.
_FEWEST = 1000
# Questions that a step names, and the file with all of those whose truth is wanted.
_NAMED, WANTED = 3, "truths-wanted.csv"

Step = tuple[str, str | None]


def next_steps(
    context: AuditContext, people: list[dict[str, Any]], fitted: dict[str, Any], command: str
) -> dict[str, list[dict[str, Any]]]:
    """Next steps in order, each with the line that does it where there is one."""
    data = context.program.data
    rows = {
        verdict: [row for row in people if row["verdict"] == verdict]
        for verdict in ("drop", DIFFERS, "review", "too few judgements")
    }
    names = {
        verdict: [row[data.judge] for row in of_verdict] for verdict, of_verdict in rows.items()
    }
    todo, line_of_better = about_the_fit(context.program, names, fitted, command)
    if context.audit is not None and context.audit.anchor.doubts:
        text = "Look at the known truths before anything else: every number here stands on them."
        todo.insert(0, (text, None))
    todo += _truths(context, command)
    if names["drop"]:
        # After a better fit, that one is to be repeated.
        done = context.dropped is not None and fitted["relied_on"]
        line = None if done else _dropped(context.program, command and (line_of_better or command))
        todo.append((_about_drops(names["drop"], fitted["relied_on"], done), line))
    adversaries = [
        row[data.judge]
        for row in rows["drop"] + rows[DIFFERS] + rows["review"]
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


def about_the_fit(
    program: Program[Any], names: dict[str, list[Any]], fitted: dict[str, Any], command: str
) -> tuple[list[Step], str | None]:
    """Steps that make the fit better or check it, and the line of the better fit."""
    if not fitted["settled"]:
        line: str | None = fitted.get("line")
        text = "Fit again before anything else: what follows may still change."
        if fitted["open"]:
            text = f"Fit longer before acting on the verdicts of {listing(fitted['open'])}."
        return [(text, line)], line
    if fitted["fit_warnings"]:
        return [(f"{text[:1].upper()}{text[1:]}.", None) for text in fitted["fit_warnings"]], None
    wanted = not fitted["exact"] and any(names[verdict] for verdict in IN_QUESTION)
    if wanted and (line := _exact(program, command)):
        text = (
            "Before anybody loses work by this, check it with the exact sampler, which takes"
            " longer."
        )
        return [(text, line)], line
    return [], None


def _truths(context: AuditContext, command: str) -> list[Step]:
    """Step that finds out truths which settle open verdicts."""
    audit = context.audit
    if audit is None or audit.settling is None:
        return []
    wanted = audit.settling
    first = wanted.questions.head(_NAMED).astype(str).agg(" and ".join, axis=1).tolist()
    more = f", and {wanted.number - len(first):,} more" if wanted.number > len(first) else ""
    listed = ", ".join(map(isolated, first))
    open_verdicts = counted(wanted.open, "open verdict")
    text = (
        f"Find out the truth of {questions_of(wanted)} ({listed}{more}): that is expected to settle"
        f" {about(wanted.settled)} of {open_verdicts}."
    )
    if command:
        folder = _given(command, "--out") or "raters-audit"
        text += f" All are in {folder}/{WANTED}: fill in the last column of a copy."
        line = _command(command, {}, "--gold", "truths.csv")
    else:
        text += " They are in audit.settling.questions."
        line = "audit = rt.audit(model, result, gold)"
    return [(text, line)]


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
    for backend in (PGGibbs, PGEM, PGVI, NUTS, SVI):
        for field in dataclasses.fields(backend):
            # `--batch-size` is a number of questions.
            name = {"batch_size": "svi-batch-size"}.get(field.name, field.name.replace("_", "-"))
            if isinstance(field.default, bool):
                options |= {f"--{name}": 0, f"--no-{name}": 0}
            else:
                options[f"--{name}"] = 1
    return options


def better(
    program: Program[Any], used: Backend | None, command: str, *, agree: bool, diverged: bool
) -> str | None:
    """Line of a fit that can be relied on sooner than the one that was `used`."""
    if not isinstance(used, (NUTS, PGGibbs)):
        return _exact(program, command)
    diverged = diverged and isinstance(used, NUTS)
    longer = used
    if not (diverged and agree):
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
    return f"without = rt.auditing.drop(model, {_variable(program.data)}, audit,{by} seed=0)"


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
