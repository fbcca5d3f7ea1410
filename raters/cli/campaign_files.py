"""Files of ``raters campaign``: tables to fill in, answers in them, and what other tools read and
write."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from raters.acquisition.campaign import formats
from raters.acquisition.campaign.campaign import Campaign
from raters.acquisition.campaign.exports import roles_of
from raters.cli import outputs, tables
from raters.errors import DataError
from raters.judgements.names import check_once, name_text
from raters.reporting.cells import unmarked

_MARK = {"label-studio": "-config.xml", "argilla": "-settings.json"}


def command(name: str, journal: Path, kind: str | None) -> str:
    """A further command on a journal, as one would type it."""
    own = f" --kind {kind}" if kind is not None and ":" in kind else ""
    return f"raters campaign {name} {journal}{own}"


def answers_in(path: Path, campaign: Campaign) -> dict[str, str]:
    """Answers from a table with columns ``id`` and ``answer``; rows without an answer are left
    out."""
    rows = _rows_of(path)
    answers: dict[str, str] = {}
    asked = campaign.asked.to_dataframe()
    roles = [name for name in campaign.pool.question_names() if name != "by"]
    for place, row in enumerate(rows, 1):
        question, answer = row["id"].strip(), row["answer"]
        if not answer:
            continue
        if answer.isspace():
            raise DataError(
                f"row {place} of {str(path)!r} has nothing but space in its column `answer`; empty"
                " it, or write the answer. Nothing was written"
            )
        for role in (*roles, "by"):
            name = (row.get(role) or "").strip()
            if (
                name
                and question in asked.index
                and name_text(asked.loc[question, role]).strip() != name
            ):
                raise DataError(
                    f"row {place} of {str(path)!r} has {name!r} in column {role} for question"
                    f" {question}, which was about {name_text(asked.loc[question, role])!r}: were"
                    " columns sorted apart? Nothing was written"
                )
        if answers.setdefault(question, answer) != answer:
            raise DataError(
                f"{str(path)!r} has two answers to question {question}: {answers[question]!r} and"
                f" {answer!r}; keep one"
            )
    if not answers:
        raise DataError(f"{str(path)!r} holds no answer: its column `answer` is empty")
    return answers


def _rows_of(path: Path) -> list[dict[str, str]]:
    """Rows as text."""
    table = tables.read_table(path)
    if tables.table_format(path) in ("CSV", "TSV"):
        table = table.map(unmarked)
    for name in ("id", "answer"):
        if name not in table:
            raise DataError(
                f"{str(path)!r} has no column {name!r}; it has {list(map(str, table.columns))}."
                " Give the table that raters campaign ask wrote"
            )
    return [
        {name: "" if pd.isna(value) else name_text(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def read_json(path: Path) -> Any:
    """Content of a JSON file; `DataError` when it is none."""
    tables.must_be_file(path)
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{str(path)!r} is not JSON: {error}") from error


def write_questions(questions: xr.Dataset, path: Path, *, force: bool) -> None:
    """Questions as a table with an empty column for the answers, which `answers_in` reads."""
    table = shown(questions).assign(answer="")
    outputs.write_file(path, partial(tables.write_for_people, table), force=force)


def shown(questions: xr.Dataset) -> pd.DataFrame:
    """Questions as a table of text: id, names, possible answers where they differ, who is asked."""
    table = questions.to_dataframe().reset_index()
    roles = roles_of(questions)
    if "answers" in table:
        table["answers"] = table["answers"].map(", ".join)
        if not any(table["answers"].equals(table[role].rename("answers")) for role in roles):
            roles.append("answers")
    return table[["id", *roles, "by", "score"]]


def write_for(
    tool: str, out: Path, questions: xr.Dataset, texts: Path | None, *, ties: bool, force: bool
) -> tuple[int, Path]:
    """Write questions for another tool, and beside them its interface."""
    text_of = _texts(texts)
    beside = tables.companion(out, _MARK[tool])
    outputs.check_writable(beside, folder=False, force=force, of=out.name)
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

    outputs.write_folder(out.parent, write, force=force, whole=False, of=out.name)
    return len(content), beside


def _texts(path: Path | None) -> dict[Any, str] | None:
    if path is None:
        return None
    table = tables.read_table(path)
    for name in ("item", "text"):
        if name not in table:
            raise DataError(
                f"--texts {str(path)!r} has no column {name!r}; it has"
                f" {sorted(map(str, table.columns))}"
            )
    check_once(table["item"], "texts")
    return dict(zip(table["item"], table["text"], strict=True))
