"""Files of ``raters campaign``: tables to fill in, answers in them, and what other tools read and write."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from raters import _cli_files, _frame
from raters._cli_common import Options, note
from raters.acquisition import formats
from raters.acquisition.campaign import Campaign
from raters.errors import DataError

_MARK = {"label-studio": "-config.xml", "argilla": "-settings.json"}


def answers_in(path: Path, campaign: Campaign) -> dict[str, str]:
    """Answers from a table with columns ``id`` and ``answer``; rows without an answer are left out."""
    rows = _rows_of(path)
    found: dict[str, str] = {}
    asked = campaign.asked.to_dataframe()
    for place, row in enumerate(rows, 1):
        question, answer = ((row.get(name) or "").strip() for name in ("id", "answer"))
        if not answer:
            continue
        for role in ("first", "second", "item", "by"):
            said = (row.get(role) or "").strip()
            if said and question in asked.index and role in asked and _frame.text(asked.loc[question, role]).strip() != said:
                raise DataError(
                    f"row {place} of {str(path)!r} has {said!r} in column {role} for question {question}, which was about "
                    f"{_frame.text(asked.loc[question, role])!r}: were columns sorted apart? Nothing was written"
                )
        if found.setdefault(question, answer) != answer:
            raise DataError(
                f"{str(path)!r} has two answers to question {question}: {found[question]!r} and {answer!r}; keep one"
            )
    if not found:
        raise DataError(f"{str(path)!r} holds no answer: its column `answer` is empty")
    return found


def _rows_of(path: Path) -> list[dict[str, str]]:
    """Rows as text. Read here, because a table reader takes the answers `None` and `NA` for missing ones."""
    _cli_files.must_be_file(path)
    kind = _cli_files.table_format(path)
    if kind in ("CSV", "TSV") and path.suffix.lower() != ".gz":
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise DataError(f"{str(path)!r} is not UTF-8 text; save it as CSV in UTF-8") from error
        header = lines[0] if lines else ""
        mark = "\t" if kind == "TSV" else ";" if ";" in header and "," not in header else ","
        rows: list[dict[str, str]] = list(csv.DictReader(lines, delimiter=mark))
        columns = next(csv.reader(lines, delimiter=mark), [])
    else:
        table = _cli_files.read_table(path)
        columns = list(map(str, table.columns))
        rows = [
            {name: "" if pd.isna(value) else _frame.text(value) for name, value in row.items()}
            for row in table.to_dict("records")
        ]
    for name in ("id", "answer"):
        if name not in columns:
            raise DataError(
                f"{str(path)!r} has no column {name!r}; it has {columns}. Give the table that raters campaign ask wrote"
            )
    return rows


def read_json(path: Path) -> Any:
    """What a JSON file holds; `DataError` when it is none."""
    _cli_files.must_be_file(path)
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except ValueError as error:
        raise DataError(f"{str(path)!r} is not JSON: {error}") from error


def write_questions(questions: xr.Dataset, path: Path) -> None:
    """Questions as a table with an empty column for the answers, which `answers_in` reads."""
    table = questions.to_dataframe().reset_index()
    roles = ["item"] if "item" in questions else ["first", "second"]
    with _cli_files.replacing(path) as stage:
        _cli_files.write_table(table[["id", *roles, "by", "score"]].assign(answer=""), stage)


def write_for(options: Options, questions: xr.Dataset) -> None:
    """Questions for another tool, and beside them its interface."""
    out, to = options["out"], options["to"]
    texts = _texts(options["texts"])
    beside = out.with_name(out.name.split(".")[0] + _MARK[to])
    if to == "label-studio":
        content, settings = (
            formats.to_label_studio(questions, texts),
            formats.label_studio_config(questions, ties=options["ties"]),
        )
    else:
        content = formats.to_argilla(questions, texts)
        settings = json.dumps(formats.argilla_settings(questions, ties=options["ties"]), indent=1, ensure_ascii=False)
    with _cli_files.staged(out.parent) as folder:
        (folder / out.name).write_text(json.dumps(content, indent=1, ensure_ascii=False), "utf-8")
        (folder / beside.name).write_text(settings, "utf-8")
    note(options, f"wrote {len(content)} question(s) to {out}, and the interface to {beside}")


def _texts(path: Path | None) -> dict[Any, str] | None:
    if path is None:
        return None
    table = _cli_files.read_table(path)
    for name in ("item", "text"):
        if name not in table:
            raise DataError(f"--texts {str(path)!r} has no column {name!r}; it has {sorted(map(str, table.columns))}")
    return {name: str(shown) for name, shown in zip(table["item"], table["text"], strict=True)}
