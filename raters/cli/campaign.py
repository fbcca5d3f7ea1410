"""The commands ``raters campaign ...`` on a journal, one step of a campaign at a time."""

from __future__ import annotations

import dataclasses
import math
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
import xarray as xr
from rich.markup import escape

from raters.acquisition import Campaign, Status, formats
from raters.acquisition.campaign.exports import all_answers, pair_of, roles_of
from raters.acquisition.campaign.journal import TellResult
from raters.cli import campaign_files as files
from raters.cli import console, outputs, tables
from raters.cli.asking import own_names
from raters.cli.campaign_start import pairs
from raters.cli.fitting import collected_warnings
from raters.cli.kinds import check_asked, kind_asked
from raters.cli.options import KindName, QuietOption, note
from raters.errors import DataError, SettingError
from raters.judgements.display import WHOLE, display_name, visible
from raters.judgements.names import loosely, name_text, shorten
from raters.judgements.pairs import side_words

JOURNAL = "Journal written by `raters campaign start`."


@dataclass(frozen=True)
class JournalOptions:
    """A journal, and how much to say."""

    journal: Annotated[Path, typer.Argument(metavar="CAMPAIGN.db", help=JOURNAL)]
    kind: KindName = None
    quiet: QuietOption = False

    def open(self, budget: float | None = None) -> Campaign:
        """The campaign."""
        asked = kind_asked(self.kind)
        if not self.journal.exists():
            raise DataError(
                f"there is no journal {str(self.journal)!r}; write it with raters campaign start"
                f" --out {self.journal}"
            )
        campaign = Campaign.open(self.journal, budget=budget)
        check_asked(asked, campaign.pool)
        return campaign

    def command(self, name: str) -> str:
        """A further command on this journal, as one would type it."""
        return files.command(name, self.journal, self.kind)

    def note(self, *lines: str) -> None:
        """Print lines on standard error, unless ``--quiet``."""
        note(*lines, quiet=self.quiet)


def on_journal(command: Callable[..., None]) -> Callable[..., None]:
    """A command that writes into the journal, and says of an interruption where to look."""

    @wraps(command)
    def run(options: JournalOptions, *arguments: Any) -> None:
        where = f"{options.command('status')} says what was written"
        with outputs.if_interrupted(where), collected_warnings():
            command(options, *arguments)

    return run


# ---------------------------------------------------------------- asking and answering


@on_journal
def ask(
    options: JournalOptions,
    number: int | None,
    judges: list[str] | None,
    budget: float | None,
    out: Path | None,
    force: bool,
) -> None:
    """Hand out questions: written to a file, or printed."""
    if out is not None:
        tables.table_format(out)
        outputs.check_writable(out, folder=False, force=force, inputs=[options.journal])
    campaign = options.open(budget)
    questions = campaign.ask(number, annotator=_own(campaign, judges))
    count = questions.sizes["id"]
    if not count:
        why = campaign.why_done or ("these annotators were asked everything that they may be asked")
        print(f"Nothing to ask: {visible(why)}.")
        return
    again = f"{options.command('export')} --to csv --out FILE"
    with outputs.already(f"{count} question(s) are open; write them with {again}"):
        if out is None:
            _print_questions(questions)
        else:
            files.write_questions(questions, out, force=force)
    where = "" if out is None else f" in {out}, to fill in its column `answer`"
    back = "" if out is None else f" {out}"
    options.note(f"{count} question(s){where}; answers: {options.command('tell')}{back}")


@on_journal
def tell(
    options: JournalOptions,
    file: Path | None,
    question: str | None,
    answer: str | None,
    judges: list[str] | None,
    correct: bool,
) -> None:
    """Take answers from a file, from the options, or from whoever types them."""
    if (question is None) != (answer is None):
        raise SettingError("--id and --answer go together: --id a3f1-1 --answer first")
    if file is not None and question is not None:
        raise SettingError("FILE and --id both bring answers; give one of them")
    campaign = options.open()
    if file is not None:
        _report(options, campaign.tell(files.answers_in(file, campaign), correct=correct))
    elif question is not None:
        _report(options, campaign.tell(question, answer, correct=correct))
    else:
        _one_by_one(options, campaign, judges)


@on_journal
def withdraw(options: JournalOptions, ids: list[str] | None, judges: list[str] | None) -> None:
    """Take open questions back."""
    campaign = options.open()
    ids = list(ids or [])
    if judges:
        waiting = campaign.outstanding(annotator=_own(campaign, judges))
        ids += waiting["id"].values.tolist()
    elif not ids:
        raise SettingError(
            "say which: ids of questions, or --annotator NAME for all that wait for this one"
        )
    taken = campaign.withdraw(ids)
    closed = f"; {len(ids) - len(taken)} were not open" if len(taken) < len(ids) else ""
    options.note(f"withdrew {len(taken)} question(s){closed}")


def _own(campaign: Campaign, names: list[str] | None) -> list[Any] | None:
    """Names of judges as the pool has them."""
    return own_names(names, campaign.pool.judges) if names else None


def _one_by_one(options: JournalOptions, campaign: Campaign, judges: list[str] | None) -> None:
    """Put every open question to whoever is at the terminal."""
    questions = campaign.outstanding(annotator=_own(campaign, judges))
    ids, count = questions["id"].values.tolist(), 0
    if not ids:
        print(f"No question is open; hand some out with {options.command('ask')}.")
        return
    for question in ids:
        try:
            state = _typed(questions.sel(id=question), partial(campaign.tell, question))
        except (EOFError, KeyboardInterrupt):
            print()
            break
        if state is _Step.QUIT:
            break
        count += state is _Step.NOTED
    options.note(f"{count} answer(s) taken")


class _Step(Enum):
    """Outcome of a prompt."""

    NOTED, SKIP, QUIT = range(3)


class _Prompt(NamedTuple):
    """Text that asks one question, the meaning of each key, and keys that are also names of other
    answers: these have no meaning, and others stand in their place."""

    text: str
    keys: dict[str, str | _Step]
    ambiguous: set[str]


def _typed(question: xr.Dataset, take: Callable[[str], TellResult]) -> _Step:
    """Outcome of the prompt for one question, once what was typed is clear."""
    prompt = _prompt(question)
    while True:
        typed = input(f"{visible(prompt.text)} > ")
        if not (word := loosely(typed)):
            continue
        if word in prompt.ambiguous:
            keys = ", ".join(prompt.keys)
            text = f"{typed!r} is a name and also a key for something else; type one of {keys}"
            note(text, quiet=False)
            continue
        answer = prompt.keys.get(typed.strip(), prompt.keys.get(word, typed))
        if isinstance(answer, _Step):
            return answer
        try:
            take(answer)
        except DataError as error:
            note(str(error), quiet=False)
            continue
        print(f"noted {question['id'].item()}", flush=True)
        return _Step.NOTED


def _prompt(question: xr.Dataset) -> _Prompt:
    """The prompt for one question."""
    plain = question.attrs.get("plain", ())
    names = {
        role: f"{role} {name_text(value)}" if role in plain else name_text(value)
        for role in roles_of(question)
        for value in [question[role].item()]
    }
    start = f"{question['id'].item()} {question['by'].item()}:"
    end: dict[str, str | _Step] = {"skip": _Step.SKIP, "quit": _Step.QUIT}
    if question.attrs.get("ordered"):
        keys, ambiguous = _keys(end, {})
        about = f"{', '.join(names.values())} ({_order_asked(question)})?"
        return _Prompt(f"{start} {about} {_shown(keys, end)}", keys, ambiguous)
    if (pair := pair_of(question)) is None:
        possible = all_answers(question, None)
        keys, ambiguous = _keys(end, {answer: answer for answer in possible})
        quoted = {one: f"'{one}'" for one in possible if loosely(one) in ambiguous}
        keys = {**{key: one for one, key in quoted.items()}, **keys}
        about, offered = (", ".join(some) for some in (names.values(), possible))
        marked = ", ".join(f"{one} ({quoted[one]})" if one in quoted else one for one in possible)
        text = f"{start} {marked}?" if about == offered else f"{start} {about}: {marked}?"
        return _Prompt(f"{text} {_shown(keys, end)}", keys, ambiguous)
    first, second = (names.pop(side) for side in pair)
    left, right = side_words(first, second)
    sides: dict[str, str | _Step] = {"left": left, "right": right}
    ends = end if "tie" in (first, second) else {"tie": "tie", **end}
    keys, ambiguous = _keys(sides | ends, {first: left, second: right})
    about = "".join(f" {name}," for name in names.values())
    key_of = {meaning: key for key, meaning in keys.items()}
    text = f"{start}{about} {first} ({key_of[left]}) or {second} ({key_of[right]})?"
    return _Prompt(f"{text} {_shown(keys, ends)}", keys, ambiguous)


def _order_asked(question: xr.Dataset) -> str:
    """Phrase for the items that an order names, with an example."""
    if "lowest" not in question or not question["lowest"].item():
        return "the best first, as in A > B"
    letters = string.ascii_uppercase[: int(question["depth"].item()) + 1]
    best = "the best" if len(letters) == 2 else f"the best {len(letters) - 1}"
    return f"{best} and the worst, as in {' > '.join([*letters[:-1], '...', letters[-1]])}"


def _keys(
    actions: Mapping[str, str | _Step], names: Mapping[str, str]
) -> tuple[dict[str, str | _Step], set[str]]:
    """A key for each action that is no name, usually its first letter, with its meaning; and the
    letters and words of actions that are names of other answers."""
    alike = [(loosely(name), answer) for name, answer in names.items()]
    taken, keys = {name for name, _ in alike}, {}
    for action, meaning in actions.items():
        spelled = (action[0], action, *(":" * place + action for place in range(1, len(alike) + 1)))
        keys[next(key for key in spelled if key not in taken)] = meaning
    usual = dict(actions) | {action[0]: meaning for action, meaning in actions.items()}
    return keys, {name for name, answer in alike if usual.get(name, answer) != answer}


def _shown(keys: Mapping[str, str | _Step], actions: Mapping[str, str | _Step]) -> str:
    """Actions with their keys in brackets."""
    key_of = {meaning: key for key, meaning in keys.items()}
    return ", ".join(f"{action} ({key_of[meaning]})" for action, meaning in actions.items())


def _report(options: JournalOptions, taken: TellResult) -> None:
    parts = [f"{len(taken.new)} new answer(s)"]
    parts += [f"{len(taken.again)} told before" for _ in taken.again[:1]]
    parts += [f"{len(taken.corrected)} corrected" for _ in taken.corrected[:1]]
    parts += [f"{len(taken.late)} to questions that had been withdrawn" for _ in taken.late[:1]]
    options.note(", ".join(parts))


# ---------------------------------------------------------------- other tools


@dataclass(frozen=True)
class ExportCommand:
    """Everything that was asked of ``raters campaign export``."""

    to: str
    out: Path
    texts: Path | None
    ties: bool
    judges: list[str] | None
    force: bool


def export(options: JournalOptions, request: ExportCommand) -> None:
    """Write open questions, or all answers."""
    out, to = request.out, request.to
    for name, given in (("texts", request.texts), ("ties", request.ties)):
        if given and to in ("csv", "judgements"):
            raise SettingError(
                f"--{name} belongs to --to label-studio and --to argilla; leave it out"
            )
    inputs = [options.journal, request.texts]
    outputs.check_writable(out, folder=False, force=request.force, inputs=inputs)
    if to in ("csv", "judgements"):
        tables.table_format(out)
    campaign = options.open()
    if to == "judgements":
        table = campaign.data.to_frame()
        outputs.write_file(out, partial(tables.write_table, table), force=request.force)
        options.note(f"wrote {len(table)} rows to {out}")
        return
    questions = campaign.outstanding(annotator=_own(campaign, request.judges))
    if not questions.sizes["id"]:
        raise DataError(f"no question is open; hand some out first with {options.command('ask')}")
    if to == "csv":
        files.write_questions(questions, out, force=request.force)
        options.note(f"wrote {questions.sizes['id']} question(s) to {out}")
    else:
        # A tie that is an answer of its own is offered whether or not it was asked for.
        pool = campaign.pool
        ties = request.ties or (pool.pair is not None and 0.5 in pool.answers())
        count, beside = files.write_for(
            to, out, questions, request.texts, ties=ties, force=request.force
        )
        options.note(f"wrote {count} question(s) to {out}, and the interface to {beside}")


@on_journal
def import_(
    options: JournalOptions, file: Path, source: str, people: list[str] | None, correct: bool
) -> None:
    """Take answers from an export."""
    campaign = options.open()
    if source == "csv":
        if people:
            raise SettingError(
                "--people belongs to --from label-studio and --from argilla; leave it out"
            )
        _report(options, campaign.tell(files.answers_in(file, campaign), correct=correct))
        return
    users = {
        user: own_names([name], campaign.pool.judges)[0]
        for user, name in pairs(people, "people", "USER=NAME")
    }
    read = formats.from_label_studio if source == "label-studio" else formats.from_argilla
    content = read(files.read_json(file), users or None)
    _report(options, campaign.tell(content.answers, correct=correct))
    if content.open:
        options.note(f"{len(content.open)} question(s) have no answer yet")
    if content.skipped:
        options.note(
            f"{len(content.skipped)} were skipped: {shorten(content.skipped)}; take them back with"
            " withdraw"
        )
    for question, who, answer in content.by_others:
        person = "somebody who is not named" if who is None else f"{who}, who was not asked"
        options.note(f"left out: {question} was answered ({answer}) by {person}")
    for question, answers in content.disputed.items():
        options.note(
            f"left out: {question} has different answers ({', '.join(map(str, answers))}); say who"
            " is who with --people"
        )


# ---------------------------------------------------------------- status


def status(options: JournalOptions, quick: bool) -> None:
    """Print where the campaign stands."""
    campaign = options.open()
    state = campaign.status(probability=not quick)
    grid = console.new_grid(f"Campaign {options.journal}")
    grid.add_column("", no_wrap=True)
    grid.add_column("", overflow="fold")
    for name, text in _state_rows(campaign, state).items():
        grid.add_row(name, escape(visible(text)))
    console.Output().print(grid)


def _state_rows(campaign: Campaign, state: Status) -> dict[str, str]:
    """State of a campaign, in words."""
    budget = "" if state.budget is None else f" of {state.budget:g}"
    committed = f", and {state.committed:g} for open questions" if state.committed else ""
    by_judge = [
        f"{display_name(name)}: {count}" for name, count in state.by_annotator.items() if count
    ]
    rows = {
        "model": repr(campaign.model),
        "policy": _differing(campaign.policy),
        "answered": f"{state.answered} questions, in {state.batches} batch(es)",
        "open": f"{state.open}",
        "withdrawn": f"{state.withdrawn}",
        "spent": f"{state.spent:g}{budget}{committed}",
        f"by {campaign.pool.judge}": ", ".join(by_judge) or "nobody yet",
    }
    if state.order_probability is not None:
        rows["order"] = (
            f"right with probability {state.order_probability:.3f}; expected tau with the true one"
            f" {state.expected_tau:.3f}"
        )
    if state.expected_accuracy is not None:
        rows["classes"] = (
            f"{state.expected_accuracy:.1%} of the items' most probable classes are expected to be"
            " right"
        )
    if state.fits:
        rows["short fits"] = (
            "" if math.isnan(state.max_rhat) else f"largest R-hat {state.max_rhat:.3f}, "
        ) + f"smallest effective sample size {state.min_ess:.0f}"
    stream = campaign.considered
    if count := stream.sizes["seen"]:
        rows["stream"] = (
            f"{count} arrived, {int(stream['ask'].sum())} asked; rate {float(stream['rate'][-1]):g}"
        )
    return rows | {"done": state.why_done or "no"}


def _differing(thing: Any) -> str:
    """Settings that differ from their defaults, by name."""
    fields = [one for one in dataclasses.fields(thing) if getattr(thing, one.name) != one.default]
    text = ", ".join(f"{one.name}={getattr(thing, one.name)!r}" for one in fields)
    return f"{type(thing).__name__}({text})" if text else f"{type(thing).__name__}(), the default"


def _print_questions(questions: xr.Dataset) -> None:
    grid = console.new_grid("Next questions")
    table = files.shown(questions)
    for heading in table.columns[:-1]:
        grid.add_column("ask" if heading == "by" else heading, overflow="fold", min_width=6)
    grid.add_column("score", justify="right", no_wrap=True)
    for *names, score in table.itertuples(index=False):
        grid.add_row(*(escape(display_name(name, WHOLE)) for name in names), f"{score:.3f}")
    console.Output().print(grid)
