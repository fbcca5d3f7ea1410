"""The commands ``raters campaign ...`` on a journal, one step of a campaign at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters.acquisition import Campaign, ExpectedAccuracy, ExpectedTau, Policy, Random, formats
from raters.acquisition.campaign.formats import all_answers, roles_of
from raters.acquisition.campaign.journal import TellResult
from raters.acquisition.questions.arguments import check_askable
from raters.cli import outputs, tables
from raters.cli.asking import candidates, own_names
from raters.cli.columns import flag_of, kind_asked, read, source_of
from raters.cli.columns import roles_of as reader_roles
from raters.cli.console import collected_warnings, note, show
from raters.cli.fitting import Typed
from raters.cli.settings import backends, built, chosen, fields, model_of, pairs, split
from raters.errors import DataError, SettingError, refuse
from raters.judgements.base import Judgements
from raters.judgements.display import visible
from raters.judgements.names import check_once, name_text
from raters.kinds import Kind, registered_kinds
from raters.model import Model
from raters.program import Program
from raters.reporting.files import unmarked

_MARK = {"label-studio": "-config.xml", "argilla": "-settings.json"}


@dataclass(frozen=True)
class Journal:
    """A journal, and how much to say."""

    path: Path
    kind: str | None = None
    quiet: bool = False

    def open(self, budget: float | None = None) -> Campaign:
        """The campaign."""
        kind_asked(self.kind)
        if not self.path.exists():
            raise DataError(
                f"there is no journal {str(self.path)!r}; write it with raters campaign start"
                f" --out {self.path}"
            )
        return Campaign.open(self.path, budget=budget)

    def command(self, name: str) -> str:
        """A further command on this journal."""
        return f"raters campaign {name} {self.path}" + (f" --kind {self.kind}" if self.kind else "")


# ---------------------------------------------------------------- start


@dataclass(frozen=True)
class Plan:
    """Target of a campaign, and its rule to stop."""

    target: str | None = None
    k: int = 1
    costs: Sequence[str] = ()
    budget: float | None = None
    until: float | None = None
    again: bool | None = None
    size: int | None = None
    batch_size: int = 10


def start(typed: Typed, plan: Plan, out: Path) -> None:
    """Read what there is, and write the journal."""
    if out.exists() and not out.is_dir():
        raise SettingError(
            f"--out {str(out)!r} is there already; name another file, or go on with raters campaign"
            f" ask {out}"
        )
    outputs.check_writable(out)
    file, given = typed.roles
    costs = {name: _number(text) for name, text in pairs(plan.costs, "cost", "ann=2.5").items()}
    with collected_warnings():
        if file is None:
            model, pool, data = _from_names(typed, plan, given)
        else:
            model, pool, data = _from_table(typed, plan, file, given)
        backend = chosen("backend", typed.backend, backends()) if typed.backend else None
        settings = split(typed.set, model, Policy, *([backend] if backend else []))
        chance = {"score": Random()} if plan.target == "random" else {"target": plan.target}
        policy = built(Policy(**chance, k=plan.k, costs=costs or None), settings[1])
        rule = ExpectedAccuracy if Program(model, pool).has_truth else ExpectedTau
        rt.Campaign(
            out,
            model,
            pool,
            data=data,
            backend=built(backend, settings[2]) if backend else None,
            policy=policy,
            stop=None if plan.until is None else rule(plan.until),
            batch_size=plan.batch_size,
            budget=plan.budget,
            again=plan.again,
            seed=typed.seed,
        )
    journal = Journal(out, typed.kind)
    note([f"wrote {out} ({pool.num_rows:,} questions; {model!r})"], typed.quiet)
    note([f"ask with: {journal.command('ask')}"], typed.quiet)


def _model(typed: Typed, kind: Kind) -> Model[Any]:
    owner = model_of(typed.model, kind)
    known = fields(owner)
    model: Model[Any] = built(owner, {name: typed.set[name] for name in typed.set if name in known})
    return model


def _from_table(
    typed: Typed, plan: Plan, file: Path, given: Mapping[str, Sequence[str]]
) -> tuple[Model[Any], Judgements, Judgements | None]:
    """Model, pool and earlier judgements; names given beside the table are added to those in it."""
    every = {
        kind.data.names[axis] for kind in registered_kinds() for axis in kind.data.question_axes()
    }
    wanted = {name: tables.names_in(given[name][0]) for name in given if name in every}
    rest = {name: texts for name, texts in given.items() if name not in every}
    source = source_of(file, rest, kind_asked(typed.kind), typed.model)
    model = _model(typed, source.kind)
    implied = source.kind.implied(model)
    data, notes = read(source, drop_bad_rows=typed.drop_bad_rows, **implied)
    note(notes, typed.quiet)
    names = {name: _with_new(getattr(data, name), some) for name, some in wanted.items()}
    if any(names[name] != list(getattr(data, name)) for name in names):
        data, _ = read(source, drop_bad_rows=typed.drop_bad_rows, **implied, **names)
    axes = {name: axis for axis, name in data.names.items() if axis in data.question_axes()}
    about = {axes[name]: some for name, some in wanted.items()}
    pool = candidates(data, about, typed.seed, again=plan.again, size=plan.size)
    return model, pool, data


def _with_new(known: Sequence[Any], given: Sequence[Any]) -> list[Any]:
    """The names there are, and the new ones after them."""
    texts = {name_text(name) for name in known}
    return [*known, *(name for name in given if name_text(name) not in texts)]


def _from_names(
    typed: Typed, plan: Plan, given: Mapping[str, Sequence[str]]
) -> tuple[Model[Any], Judgements, None]:
    """Model and pool of a campaign that starts from nothing."""
    kind, needed = _kind_of_names(typed, given)
    model = _model(typed, kind)
    if missing := [name for name in needed if name not in given]:
        every = " ".join(f"{flag_of(name, role)} A,B" for name, role in needed.items())
        flag = flag_of(missing[0], needed[missing[0]])
        raise SettingError(
            f"without FILE, say what to ask about and whom, {every}: {flag} is missing"
        )
    if more := [name for name in given if name not in needed]:
        refuse(more[0], given[more[0]], "is about FILE, and there is no FILE", "leave it out")
    assert kind.questions is not None
    known = reader_roles(kind.questions)
    names = {name: tables.names_in(given[name][0]) for name in needed}
    options = {"again": bool(plan.again)} | ({} if plan.size is None else {"size": plan.size})
    options |= kind.implied(model)
    accepted = {name: one for name, one in options.items() if name in known}
    return model, kind.questions(**names, **accepted, seed=typed.seed), None


def _kind_of_names(typed: Typed, given: Mapping[str, Any]) -> tuple[Kind, dict[str, Any]]:
    """The kind whose questions can be made of the names given, and the names that it needs."""
    own = kind_asked(typed.kind)
    if own is not None:
        check_askable(own.data, "kind")
    needs: list[tuple[Kind, dict[str, Any]]] = []
    for kind in registered_kinds() if own is None else (own,):
        if kind.questions is not None:
            roles = reader_roles(kind.questions).items()
            listed = {name: role for name, role in roles if role.origin == "Iterable"}
            needs += [(kind, listed)] if listed else []
    every = {name for _, listed in needs for name in listed}
    possible = [one for one in needs if every & set(given) <= set(one[1])]
    if not possible:
        raise SettingError("without judgements to begin with, such a campaign needs FILE")
    return min(possible, key=lambda one: len(one[1]))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return refuse("cost", text, "is no number", "write --cost ann=2.5")


# ---------------------------------------------------------------- ask and tell


def ask(
    journal: Journal,
    number: int | None,
    judges: Sequence[str],
    budget: float | None,
    out: Path | None,
    force: bool,
) -> None:
    """Hand out questions: written to a file, or printed."""
    if out is not None:
        tables.table_format(out)
        outputs.check_writable(out, force=force, inputs=[journal.path])
    with collected_warnings():
        campaign = journal.open(budget)
        questions = campaign.ask(number, annotator=_own(campaign, judges))
    count = questions.sizes["id"]
    if not count:
        why = campaign.why_done or "these annotators were asked everything that they may be asked"
        print(f"Nothing to ask: {visible(why)}.")
    elif out is None:
        show(shown(questions))
        note([f"{count} question(s); answers: {journal.command('tell')}"], journal.quiet)
    else:
        # They are open by now, and `export` writes them again.
        write_questions(questions, out, force=force)
        text = f"{count} question(s) in {out}, to fill in its column `answer`; answers:"
        note([f"{text} {journal.command('tell')} {out}"], journal.quiet)


def tell(
    journal: Journal,
    file: Path | None,
    question: str | None,
    answer: str | None,
    judges: Sequence[str],
    source: str | None,
    people: Sequence[str],
    correct: bool,
) -> None:
    """Take answers from a table, the export of a tool, the options, or whoever types them."""
    if (question is None) != (answer is None) or (file is not None and question is not None):
        raise SettingError("give FILE, or --id and --answer together: --id a3f1-1 --answer first")
    if ((source or people) and file is None) or (people and not source):
        raise SettingError("--from TOOL and --people go with FILE, the export of that tool")
    with collected_warnings():
        campaign = journal.open()
        if question is not None:
            taken = campaign.tell(question, answer, correct=correct)
        elif file is not None and source is None:
            taken = campaign.tell(answers_in(file, campaign), correct=correct)
        elif file is not None:
            taken = campaign.tell(_imported(campaign, file, str(source), people), correct=correct)
        else:
            _one_by_one(campaign, judges)
            return
    _report(journal, taken)


def _report(journal: Journal, taken: TellResult) -> None:
    numbers = {
        "told before": taken.again,
        "corrected": taken.corrected,
        "to questions that had been withdrawn": taken.late,
    }
    parts = [f"{len(taken.new)} new answer(s)"]
    parts += [f"{len(ids)} {words}" for words, ids in numbers.items() if ids]
    note([", ".join(parts)], journal.quiet)


def _own(campaign: Campaign, names: Sequence[str]) -> list[Any] | None:
    """Names of judges as the pool has them."""
    return own_names(names, campaign.pool.judges) if names else None


def _one_by_one(campaign: Campaign, judges: Sequence[str]) -> None:
    """Put every open question to whoever is at the terminal."""
    questions = campaign.outstanding(annotator=_own(campaign, judges))
    roles = roles_of(questions) if questions.sizes["id"] else []
    for question in questions["id"].values.tolist():
        about = questions.sel(id=question)
        names = ", ".join(f"{role} {name_text(about[role].item())}" for role in roles)
        answers = "the best first, as in A > B"
        if not about.attrs.get("ordered"):
            pair = about.attrs.get("pair")
            answers = "first, second or tie" if pair else ", ".join(all_answers(about))
        while True:
            try:
                text = f"{question} {about['by'].item()}: {names} ({answers}; skip, quit) > "
                typed = input(visible(text)).strip()
            except EOFError:
                typed = "quit"
            if typed in ("skip", "quit"):
                break
            try:
                campaign.tell(question, typed)
                print(f"noted {question}", flush=True)
                break
            except DataError as error:
                note([str(error)])
        if typed == "quit":
            print()
            return


def withdraw(journal: Journal, ids: Sequence[str], judges: Sequence[str]) -> None:
    """Take open questions back."""
    campaign = journal.open()
    ids = list(ids)
    if judges:
        ids += campaign.outstanding(annotator=_own(campaign, judges))["id"].values.tolist()
    elif not ids:
        raise SettingError("name ids of questions, or --annotator NAME for all that wait for them")
    taken = campaign.withdraw(ids)
    note([f"withdrew {len(taken)} of {len(ids)} question(s)"], journal.quiet)


def consider(
    journal: Journal,
    file: Path | None,
    question: Sequence[str],
    rate: float | None,
    out: Path | None,
    force: bool,
) -> None:
    """Decide on questions that arrive; print each decision, and write those to be asked."""
    if (file is None) == (not question):
        raise SettingError(
            "give a table FILE of questions, or one as --question first=tea --question second=milk"
            " --question by=ann"
        )
    if out is not None:
        tables.table_format(out)
        outputs.check_writable(out, force=force, inputs=[journal.path, file])
    campaign = journal.open()
    taken = 0
    with collected_warnings():
        arriving = _arriving(campaign, file, question)
        for place, one in enumerate(arriving, 1):
            try:
                decision = campaign.consider(one, rate=rate)
            except DataError as error:
                raise DataError(f"question {place}, after {taken} to be asked: {error}") from error
            taken += decision.ask
            about = ", ".join(f"{name} {name_text(value)}" for name, value in one.items())
            what = f"ask {decision.id}" if decision.ask else "let go"
            print(f"{what}: {visible(about)}: {visible(decision.reason)}", flush=True)
    if out is not None and taken:  # With those of an earlier call that are still open.
        waiting = campaign.outstanding()
        of_stream = np.isin(waiting["id"].values, campaign.considered["id"].values)
        write_questions(waiting.isel(id=of_stream), out, force=force)
    note([f"{taken} of {len(arriving)} question(s) to be asked"], journal.quiet)


def _arriving(
    campaign: Campaign, file: Path | None, question: Sequence[str]
) -> list[dict[str, Any]]:
    """Questions by column, with the names that the pool has."""
    columns = campaign.pool.question_names()
    rows: list[dict[str, str]] = [pairs(question, "question", "COLUMN=NAME")]
    if file is not None:
        table = tables.read_table(file)
        _check_columns(table, file, list(columns))
        if (table[list(columns)] == "").to_numpy().any():
            raise DataError(f"{str(file)!r} has empty cells in {', '.join(columns)}; fill them in")
        rows = table[list(columns)].map(name_text).to_dict("records")
    known = {name: dict.fromkeys(column.tolist()) for name, column in columns.items()}
    return [
        {name: own_names([value], known.get(name, ()))[0] for name, value in row.items()}
        for row in rows
    ]


# ---------------------------------------------------------------- status and export


def status(journal: Journal, quick: bool) -> None:
    """Print where the campaign stands."""
    with collected_warnings():
        campaign = journal.open()
        state = campaign.status(probability=not quick)
    facts = {"model": repr(campaign.model)} | vars(state)
    facts["by_annotator"] = ", ".join(
        f"{name}: {count}" for name, count in state.by_annotator.items() if count
    )
    facts |= {"considered": campaign.considered.sizes["seen"], "done": campaign.why_done or "no"}
    for name, value in facts.items():
        if value is not None and name != "why_done" and value == value:
            text = f"{value:g}" if isinstance(value, float) else value
            print(f"{name.replace('_', ' '):18} {visible(str(text))}")


def export(
    journal: Journal,
    to: str,
    out: Path,
    texts: Path | None,
    ties: bool,
    judges: Sequence[str],
    force: bool,
) -> None:
    """Write open questions, or all answers."""
    if to not in _MARK and (texts or ties):
        raise SettingError("--texts and --ties belong to --to label-studio and --to argilla")
    outputs.check_writable(out, force=force, inputs=[journal.path, texts])
    if to not in _MARK:
        tables.table_format(out)
    campaign = journal.open()
    if to == "judgements":
        table = campaign.data.to_frame()
        outputs.write_file(out, partial(tables.write_table, table), force=force)
        note([f"wrote {len(table)} rows to {out}"], journal.quiet)
        return
    questions = campaign.outstanding(annotator=_own(campaign, judges))
    if not questions.sizes["id"]:
        raise DataError(f"no question is open; hand some out first with {journal.command('ask')}")
    if to == "csv":
        write_questions(questions, out, force=force)
    else:
        # A tie that is an answer of its own is offered whether or not it was asked for.
        pool = campaign.pool
        ties = ties or (pool.pair is not None and 0.5 in pool.answers())
        write_for(to, out, questions, texts, ties=ties, force=force)
    note([f"wrote {questions.sizes['id']} question(s) to {out}"], journal.quiet)


# ---------------------------------------------------------------- files


def shown(questions: xr.Dataset) -> pd.DataFrame:
    """Questions as a table of text: id, names, possible answers where they differ, who is asked."""
    table = questions.to_dataframe().reset_index()
    roles = roles_of(questions)
    if "answers" in table:
        table["answers"] = table["answers"].map(", ".join)
        if not any(table["answers"].equals(table[role].rename("answers")) for role in roles):
            roles.append("answers")
    return table[["id", *roles, "by", "score"]]


def write_questions(questions: xr.Dataset, path: Path, *, force: bool = False) -> None:
    """Questions as a table with an empty column for the answers, which `answers_in` reads."""
    table = shown(questions).assign(answer="")
    outputs.write_file(path, partial(tables.write_for_people, table), force=force)


def answers_in(path: Path, campaign: Campaign) -> dict[str, str]:
    """Answers from a table with columns ``id`` and ``answer``; rows without one are left out."""
    table = tables.read_table(path)
    _check_columns(table, path, ["id", "answer"])
    if tables.table_format(path) in ("CSV", "TSV"):
        table = table.map(unmarked)
    table = table.map(lambda cell: "" if pd.isna(cell) else name_text(cell))
    asked = campaign.asked.to_dataframe()
    answers: dict[str, str] = {}
    for place, row in enumerate(table.to_dict("records"), 1):
        question, answer = row["id"].strip(), row["answer"]
        where = f"row {place} of {str(path)!r}"
        if not answer:
            continue
        if answer.isspace():
            raise DataError(f"{where} has nothing but space in its column `answer`; empty it")
        for role in campaign.pool.question_names():
            name = row.get(role, "").strip()
            known = name_text(asked.loc[question, role]) if question in asked.index else name
            if name and known.strip() != name:
                raise DataError(
                    f"{where} has {name!r} in column {role} for question {question}, which was"
                    f" about {known!r}: were columns sorted apart? Nothing was written"
                )
        if answers.setdefault(question, answer) != answer:
            raise DataError(f"{str(path)!r} has two answers to question {question}; keep one")
    if not answers:
        raise DataError(f"{str(path)!r} holds no answer: its column `answer` is empty")
    return answers


def _check_columns(table: pd.DataFrame, path: Path, names: Sequence[str]) -> None:
    for name in names:
        if name not in table:
            raise DataError(
                f"{str(path)!r} has no column {name!r}; it has {list(map(str, table.columns))}"
            )


def read_json(path: Path) -> Any:
    """Content of a JSON file; `DataError` when it is none."""
    tables.must_be_file(path)
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{str(path)!r} is not JSON: {error}") from error


def _imported(campaign: Campaign, file: Path, source: str, people: Sequence[str]) -> dict[str, Any]:
    """Answers in the export of a tool, with notes on what is left out."""
    users = {
        user: own_names([name], campaign.pool.judges)[0]
        for user, name in pairs(people, "people", "USER=NAME").items()
    }
    reader = formats.from_label_studio if source == "label-studio" else formats.from_argilla
    content = reader(read_json(file), users or None)
    left = {
        "have no answer yet": content.open,
        "were skipped": content.skipped,
        "were answered by people who were not asked": [one[0] for one in content.by_others],
        "have different answers; say who is who with --people": list(content.disputed),
    }
    note(
        f"{len(ids)} question(s) {words}: {', '.join(ids[:5])}"
        for words, ids in left.items()
        if ids
    )
    return content.answers


def write_for(
    tool: str, out: Path, questions: xr.Dataset, texts: Path | None, *, ties: bool, force: bool
) -> tuple[int, Path]:
    """Write questions for another tool, and beside them its interface."""
    text_of = None if texts is None else _texts(texts)
    beside = tables.companion(out, _MARK[tool])
    outputs.check_writable(beside, force=force)
    if tool == "label-studio":
        content = formats.to_label_studio(questions, text_of)
        settings = formats.label_studio_config(questions, ties=ties)
    else:
        content = formats.to_argilla(questions, text_of)
        fields = formats.argilla_settings(questions, ties=ties)
        settings = json.dumps(fields, indent=1, ensure_ascii=False)

    def write(folder: Path) -> None:
        (folder / out.name).write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")
        (folder / beside.name).write_text(settings, "utf-8")

    outputs.write_folder(out.parent, write, force=force, whole=False)
    return len(content), beside


def _texts(path: Path) -> dict[Any, str]:
    table = tables.read_table(path)
    _check_columns(table, path, ["item", "text"])
    check_once(table["item"], "texts")
    return dict(zip(table["item"], table["text"], strict=True))
