"""The command ``raters campaign consider``: questions that arrive, one after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from raters.acquisition import Campaign
from raters.acquisition.campaign.stream import Decision
from raters.cli import campaign_files as files
from raters.cli import outputs, tables
from raters.cli.asking import own_names
from raters.cli.campaign import JournalOptions, on_journal
from raters.cli.campaign_start import pairs
from raters.errors import DataError, SettingError
from raters.judgements.display import visible
from raters.judgements.names import name_text


@dataclass(frozen=True)
class ConsiderCommand:
    """Everything that was asked of ``raters campaign consider``."""

    file: Path | None
    question: list[str] | None
    rate: float | None
    out: Path | None
    force: bool


@on_journal
def consider(options: JournalOptions, request: ConsiderCommand) -> None:
    """Decide on each question, and print or write those to be asked."""
    if (request.file is None) == (not request.question):
        raise SettingError(
            "give the questions that arrive in a table FILE, or one as --question first=tea"
            " --question second=milk --question by=ann"
        )
    if request.out is not None:
        tables.table_format(request.out)
        inputs = [options.journal, request.file]
        outputs.check_writable(request.out, folder=False, force=request.force, inputs=inputs)
    campaign = options.open()
    arriving = _arriving(campaign, request)
    taken: list[Decision] = []
    for place, question in enumerate(arriving):
        before = f"{place} question(s) before it are decided on, and {len(taken)} are open"
        with outputs.already(before) if place else nullcontext(), _of_row(request.file, place):
            decision = campaign.consider(question, rate=request.rate)
        taken += [decision] if decision.ask else []
        _print(question, decision)
    where = ""
    if request.out is not None and taken:
        again = f"{options.command('export')} --to csv --out FILE"
        with outputs.already(f"{len(taken)} question(s) are open; write them with {again}"):
            # All of the stream, so that those of an earlier call are not lost with their table.
            ids, questions = campaign.considered["id"].values, campaign.outstanding()
            questions = questions.isel(id=np.isin(questions["id"].values, ids))
            files.write_questions(questions, request.out, force=request.force)
        where, number = f", in {request.out}", questions.sizes["id"]
        where += "" if number == len(taken) else f" with all {number} of the stream that are open"
    options.note(
        f"{len(taken)} of {len(arriving)} question(s) to be asked{where}; answers:"
        f" {options.command('tell')}",
        *_regret(taken),
    )


@contextmanager
def _of_row(file: Path | None, place: int) -> Iterator[None]:
    """Say which row of a table an error is about."""
    try:
        yield
    except DataError as error:
        if file is None or error.parameter != "question":
            raise
        text = error.worded(lambda _: "the question")
        raise DataError(f"row {place + 1} of {str(file)!r}: {text}") from error


def _regret(taken: Sequence[Decision]) -> list[str]:
    """Regret of those asked against a pool of those seen lately, in a line."""
    scored = [one for one in taken if math.isfinite(one.best)]
    best = sum(one.best for one in scored)
    if not best > 0:
        return []
    regret = sum(one.best - one.score for one in scored)
    return [
        f"regret against a pool of those seen lately: {regret:.3g} of {best:.3g}, the scores of the"
        " best of them each time"
    ]


def _print(question: Mapping[str, Any], decision: Decision) -> None:
    """One line: what becomes of a question, and why."""
    about = ", ".join(f"{name} {name_text(value)}" for name, value in question.items())
    what = f"ask {decision.id}" if decision.ask else "let go"
    print(f"{what}: {visible(about)}: {visible(decision.reason)}", flush=True)


def _arriving(campaign: Campaign, request: ConsiderCommand) -> list[dict[str, Any]]:
    """Questions by column, with the names that the pool has."""
    if request.file is None:
        rows: list[Mapping[str, str]] = [dict(pairs(request.question, "question", "COLUMN=NAME"))]
    else:
        rows = _rows_of(campaign, request.file)
    known = {
        name: list(dict.fromkeys(column.tolist()))
        for name, column in campaign.pool.question_names().items()
    }
    return [
        {name: own_names([value], known.get(name, ()))[0] for name, value in row.items()}
        for row in rows
    ]


def _rows_of(campaign: Campaign, file: Path) -> list[Mapping[str, str]]:
    """Rows of a table that has the columns of a question; others are left out."""
    table = tables.read_table(file)
    columns = list(campaign.pool.rows(np.zeros(1, int)).question_names())
    if lacking := [name for name in columns if name not in table]:
        raise DataError(
            f"{str(file)!r} has no column {lacking[0]!r}; a question has {', '.join(columns)}, and"
            f" the table {list(map(str, table.columns))}"
        )
    for name in columns:
        if (empty := table[name].isna() | (table[name] == "")).any():
            raise DataError(
                f"row {int(empty.to_numpy().argmax()) + 1} of {str(file)!r} has no {name}; fill"
                " it in, or leave the row out"
            )
    if table.empty:
        raise DataError(f"{str(file)!r} holds no question")
    return [
        {name: name_text(row[name]) for name in columns}
        for row in pd.DataFrame(table[columns]).to_dict("records")
    ]
