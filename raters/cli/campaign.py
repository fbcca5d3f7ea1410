"""The commands ``raters campaign ...`` on a journal, one step of a campaign at a time."""

from __future__ import annotations

import inspect
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters.acquisition import ExpectedAccuracy, ExpectedTau, Policy, formats
from raters.acquisition.campaign.campaign import Campaign
from raters.cli import files, reading
from raters.cli.commands import pool_options
from raters.cli.files import Files, check_columns, collected_warnings, note
from raters.errors import DataError, SettingError
from raters.errors.validation import one_of
from raters.judgements.base import Judgements
from raters.judgements.display import visible
from raters.judgements.names import check_once, name_text
from raters.judgements.reading.files import content_of, names_in, read_table, table_format
from raters.kinds import registered_kinds
from raters.kinds.reading import roles_of
from raters.model import Model
from raters.program import Program
from raters.reporting.files import unmarked

_MARK = {"label-studio": "-config.xml", "argilla": "-settings.json"}


def _opened(given: Namespace, budget: float | None = None) -> Campaign:
    reading.kind_asked(given.kind)  # imports it
    return Campaign.open(given.journal, budget=budget)


# ---------------------------------------------------------------- start


def start(given: Namespace) -> None:
    """Read what there is, and write the journal."""
    out = given.out
    if out.is_file():
        raise SettingError(f"--out {str(out)!r} is there; go on with raters campaign ask {out}")
    files.check_writable(out, given)
    with collected_warnings():
        if given.file is None:
            model, pool = _from_names(given)
            data = None
        else:
            model, read = reading.read_given(given)
            data = read.judgements
            pool = rt.Candidates.of(data, **pool_options(given))
        owners = (model, Policy(), *reading.backends_given(given))
        _, policy, *backend = reading.built(reading.settings_of(given), *owners)
        options = {name: getattr(given, name) for name in ("batch_size", "budget", "seed")}
        options |= {"backend": backend[0]} if backend else {}
        if given.until is not None:
            rule = ExpectedAccuracy if Program(model, pool).has_truth else ExpectedTau
            options["stop"] = rule(given.until)
        Campaign(out, model, pool, data=data, policy=policy, again=given.again or None, **options)
    note(f"wrote {out} ({pool.num_rows:,} questions; {model!r})", given.quiet)
    kind = f" --kind {given.kind}" if given.kind else ""
    note(f"ask with: raters campaign ask {out}{kind}", given.quiet)


def _from_names(given: Namespace) -> tuple[Model[Any], Judgements]:
    """Model and pool of a campaign that starts from nothing."""
    asked = reading.kind_asked(given.kind)
    for kind in registered_kinds() if asked is None else (asked,):
        if kind.questions is None:
            continue
        roles = roles_of(kind.questions).items()
        listed = [name for name, role in roles if role.origin == "Iterable"]
        if listed and set(listed) == set(given.roles):
            model = reading.model_given(given, kind, given.roles)
            options: dict[str, Any] = {n: names_in(given.roles[n][0]) for n in listed}
            options |= {} if given.size is None else {"size": given.size}
            accepted = inspect.signature(kind.questions).parameters
            implied = kind.implied(model).items()
            options |= {name: value for name, value in implied if name in accepted}
            return model, kind.questions(**options)
    expected = "give --items A,B and --annotators A,B, of labels also --classes A,B"
    there = " ".join(map("--{}".format, given.roles)) or "nothing"
    raise SettingError(f"without FILE, {expected}; given: {there}")


# ---------------------------------------------------------------- ask and tell


def ask(given: Namespace) -> None:
    """Hand out questions: written to a file, or printed."""
    files.check_outputs(given)
    with collected_warnings():
        campaign = _opened(given, given.budget)
        questions = campaign.ask(given.number, annotator=given.annotator or None)
    if not questions.sizes["id"]:
        why = campaign.why_done or "the annotators named have answered all that they can"
        note(f"there is nothing to ask: {why}")
        return
    if given.out is None:
        files.show(shown(questions))
    else:
        files.write_file(given.out, _writer(questions), given.force, given.quiet)
    note(f"tell the answers with: raters campaign tell {given.journal}", given.quiet)


def shown(questions: xr.Dataset) -> pd.DataFrame:
    """Questions as a table of text: id, names, possible answers where they differ, who is asked."""
    table = questions.to_dataframe().reset_index()
    roles = formats.roles_of(questions)
    if "answers" in table:
        table["answers"] = table["answers"].map(", ".join)
        roles.append("answers")
    return table[["id", *roles, "by", "score"]]


def _writer(questions: xr.Dataset) -> partial[None]:
    """Writer of questions as a table with an empty column for answers, which `tell` reads."""
    return partial(files.write_table, shown(questions).assign(answer=""))


def tell(given: Namespace) -> None:
    """Take answers from a table, the export of a tool, or whoever types them."""
    if (given.source or given.people) and (given.file is None or not given.source):
        raise SettingError("--from TOOL and --people go with FILE, the export of that tool")
    with collected_warnings():
        campaign = _opened(given)
        if given.file is None:
            _one_by_one(campaign, campaign.outstanding(annotator=given.annotator or None))
            return
        read = _imported if given.source else answers_in
        taken = campaign.tell(read(given, campaign), correct=given.correct)
    words = "told before", "corrected", "to questions that were withdrawn"
    others = [f"{len(ids)} {word}" for word, ids in zip(words, taken[1:], strict=True) if ids]
    note(", ".join([f"{len(taken.new)} new answer(s)", *others]), given.quiet)


def _one_by_one(campaign: Campaign, questions: xr.Dataset) -> None:
    """Put open questions to whoever is at the terminal."""
    for question in questions["id"].values.tolist():
        about = questions.sel(id=question)
        roles = formats.roles_of(questions)
        names = ", ".join(f"{role} {name_text(about[role].item())}" for role in roles)
        answers = "first, second or tie" if about.attrs.get("pair") else "the best first, A > B"
        if not about.attrs.get("pair") and not about.attrs.get("ordered"):
            answers = ", ".join(formats.options_of(about))
        prompt = visible(f"{question} {about['by'].item()}: {names} ({answers}; skip, quit) > ")
        try:
            while (answer := input(prompt).strip()) not in ("quit", "skip"):
                try:
                    campaign.tell(question, answer)
                    print(f"noted {question}", flush=True)
                    break
                except DataError as error:
                    note(str(error))
        except EOFError:
            answer = "quit"
        if answer == "quit":
            print()
            return


def answers_in(given: Namespace, campaign: Campaign) -> dict[str, str]:
    """Answers from a table with columns ``id`` and ``answer``; rows without one are left out."""
    path = given.file
    table = read_table(path)
    check_columns(table, path, ["id", "answer"])
    if table_format(path) in ("CSV", "TSV"):
        table = table.map(unmarked)
    table = table.map(lambda cell: "" if pd.isna(cell) else name_text(cell))
    asked = campaign.asked.to_dataframe()
    names = {name_text(one) for several in campaign.pool.coords.values() for one in several}
    answers: dict[str, str] = {}
    for place, row in enumerate(table.to_dict("records"), 1):
        question, answer = row["id"].strip(), row["answer"]
        if not answer.strip() and answer not in names:
            continue
        for role in campaign.pool.question_names():
            name = row.get(role, "").strip()
            known = name_text(asked.loc[question, role]) if question in asked.index else name
            if name and known.strip() != name:
                about = f"row {place} of {str(path)!r} has {name!r} as {role} of {question}"
                raise DataError(f"{about}, which was {known!r}: were columns sorted apart?")
        if answers.setdefault(question, answer) != answer:
            raise DataError(f"{str(path)!r} has two answers to question {question}; keep one")
    if not answers:
        raise DataError(f"{str(path)!r} holds no answer: its column `answer` is empty")
    return answers


def _imported(given: Namespace, _: Campaign) -> dict[str, Any]:
    """Answers in the export of a tool, with notes on what is left out."""
    readers = {"label-studio": formats.from_label_studio, "argilla": formats.from_argilla}
    people = reading.pairs(given.people, "people", "USER=NAME")
    reader = reading.chosen("source", given.source, readers)
    content = reader(content_of(given.file), people or None)
    left = {"have no answer yet": content.open, "were skipped": content.skipped}
    left["were answered by people who were not asked"] = [one[0] for one in content.by_others]
    left["have different answers; say who is who with --people"] = list(content.disputed)
    for words, ids in left.items():
        if ids:
            note(f"{len(ids)} question(s) {words}: {', '.join(ids[:5])}")
    return content.answers


# ---------------------------------------------------------------- the other commands


def withdraw(given: Namespace) -> None:
    """Take open questions back."""
    taken = _opened(given).withdraw(given.ids)
    note(f"withdrew {len(taken)} of {len(given.ids)} question(s)", given.quiet)


def consider(given: Namespace) -> None:
    """Decide on questions that arrive; print each decision, and write those to be asked."""
    files.check_outputs(given)
    campaign, taken = _opened(given), 0
    table = read_table(given.file)
    columns = list(campaign.pool.question_names())
    check_columns(table, given.file, columns)
    if (table[columns] == "").to_numpy().any():
        raise DataError(f"{str(given.file)!r} has empty cells in {', '.join(columns)}; fill them")
    with collected_warnings():
        for place, row in enumerate(table.to_dict("records"), 1):
            one = {name: row[name] for name in columns}
            try:
                decision = campaign.consider(one, rate=given.rate)
            except DataError as error:
                raise DataError(f"question {place}, after {taken} to be asked: {error}") from error
            taken += decision.ask
            about = ", ".join(f"{name} {name_text(value)}" for name, value in one.items())
            what = f"ask {decision.id}" if decision.ask else "let go"
            print(f"{what}: {visible(about)}: {visible(decision.reason)}", flush=True)
    if given.out is not None and taken:  # With those of an earlier call that are still open.
        waiting = campaign.outstanding()
        of_stream = np.isin(waiting["id"].values, campaign.considered["id"].values)
        files.write_file(given.out, _writer(waiting.isel(id=of_stream)), given.force)
    note(f"{taken} of {len(table)} question(s) to be asked", given.quiet)


def status(given: Namespace) -> None:
    """Print where the campaign stands."""
    with collected_warnings():
        campaign = _opened(given)
        state = campaign.status(probability=not given.quick)
    facts = {"model": repr(campaign.model)} | vars(state)
    counts = state.by_annotator.items()
    facts["by_annotator"] = ", ".join(f"{name}: {count}" for name, count in counts if count)
    facts |= {"considered": campaign.considered.sizes["seen"], "why_done": state.why_done or "-"}
    for name, value in facts.items():
        if value is not None and value == value:
            text = f"{value:g}" if isinstance(value, float) else value
            print(f"{name.replace('_', ' '):18} {visible(str(text))}")


def export(given: Namespace) -> None:
    """Write open questions, or all answers."""
    form, out = given.to, given.out
    one_of("to", form, ("csv", "judgements", *_MARK))
    files.check_outputs(given, (out.suffix.lower(),) if form in _MARK else ())
    campaign = _opened(given)
    questions = campaign.outstanding()
    outputs: Files = {out.name: _writer(questions)}
    if form == "judgements":
        outputs = {out.name: partial(files.write_table, campaign.data.to_frame(), people=False)}
    elif not questions.sizes["id"]:
        raise DataError("no question is open; hand some out first with raters campaign ask")
    elif form in _MARK:
        outputs = files_for(form, out, questions, texts_of(given.texts), ties_of(campaign))
    written = files.write_folder(out.parent, outputs, given.force)
    note(f"wrote {', '.join(written)}", given.quiet)


def ties_of(campaign: Campaign) -> bool:
    """True if a tie is an answer."""
    return campaign.pool.pair is not None and 0.5 in campaign.pool.answers()


def texts_of(path: Path | None) -> dict[Any, str] | None:
    """Texts to show for names, from a table; None without one."""
    if path is None:
        return None
    table = read_table(path)
    check_columns(table, path, ["item", "text"])
    check_once(table["item"], "texts")
    return dict(zip(table["item"], table["text"], strict=True))


def files_for(tool: str, out: Path, asked: xr.Dataset, texts: formats.Texts, ties: bool) -> Files:
    """Files of questions for another tool, and of its interface."""
    if tool == "label-studio":
        content = formats.to_label_studio(asked, texts)
        settings: Any = formats.label_studio_config(asked, ties=ties)
    else:
        content = formats.to_argilla(asked, texts)
        settings = formats.argilla_settings(asked, ties=ties)
    written = {out.name: content, files.companion(out, _MARK[tool]).name: settings}
    plain = {n: one if isinstance(one, str) else files.as_text(one) for n, one in written.items()}
    return {name: partial(files.write_text, text) for name, text in plain.items()}


# ---------------------------------------------------------------- serve


def serve(given: Namespace) -> None:
    """Serve until interrupted; the links of people are in the table of tokens."""
    try:
        from raters.acquisition import server
    except ImportError as error:
        raise SettingError(f"{error.name} is missing; install raters[serve]") from error
    campaign = _opened(given)
    path = given.tokens or files.companion(given.journal, "-tokens.csv")
    tokens = server.tokens_of(path, campaign)
    desk = server.Desk(campaign, texts_of(given.texts), ties_of(campaign))
    address = f"http://{given.host}:{given.port}"
    note(f"serving {given.journal} at {address}/#TOKEN; tokens are in {path}", given.quiet)
    server.serve(server.application(desk, tokens), given.host, given.port)
