"""Sections of an audit: what each adds to the summary, to the files and to the printed page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import xarray as xr
from rich.markup import escape

import raters as rt
from raters import figures
from raters.cli import console
from raters.cli.options import AuditOptions
from raters.kinds import Kind
from raters.program import Program
from raters.reporting.facts import percent, span


@dataclass(frozen=True)
class AuditContext:
    """A fit and its audit, for sections.

    Parameters
    ----------
    kind : Kind
    program : Program
        Model and data.
    result : DataTree
    audit : Audit or None
        None for a model that takes all judges as alike.
    dropped : DataTree or None
        Result without those flagged.
    questions : DataFrame
        Questions to ask next.
    questions_note : str
    options : AuditOptions
    model_flag : str
        How the model was asked for.
    """

    kind: Kind
    program: Program[Any]
    result: xr.DataTree
    audit: rt.Audit | None
    dropped: xr.DataTree | None
    questions: pd.DataFrame
    questions_note: str
    options: AuditOptions
    model_flag: str


Show = Callable[[console.Output, int], None]


@dataclass(frozen=True)
class Section:
    """A part of an audit.

    Parameters
    ----------
    facts : mapping
        Entries of the summary.
    files : mapping
        From the name of a file to what writes it.
    show : callable, optional
        Prints it: ``show(out, rows)``, in tables of at most so many rows.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    show: Show | None = None


MakeSection = Callable[[AuditContext], Section | None]


def sections_of(kind: Kind) -> tuple[MakeSection, ...]:
    """Sections of a kind, in the order of the printed page; those of any kind where it has none of
    its own."""
    from raters.cli.sections_comparisons import COMPARISON_SECTIONS
    from raters.cli.sections_labels import LABEL_SECTIONS

    own = {"comparisons": COMPARISON_SECTIONS, "labels": LABEL_SECTIONS}
    return own.get(kind.name, (judge_section(()), question_section))


# ---------------------------------------------------------------- judges


class JudgeColumn(NamedTuple):
    """A column of the printed audit: its heading, its cell of a row, and the least width of a
    terminal that shows it."""

    heading: str
    cell: Callable[[Any], str]
    width: int = 0


def judge_section(columns: tuple[JudgeColumn, ...], title: str = "", last: int = 0) -> MakeSection:
    """The section on judges, with further columns of a kind.

    Parameters
    ----------
    columns : tuple of JudgeColumn
        Between the interval and the probability of being below the threshold.
    title : str
        Appended to the heading.
    last : int
        Number of the columns that come after that probability.
    """

    def section(context: AuditContext) -> Section:
        audit = context.audit
        if audit is None:
            return Section({"audit": None}, {}, _not_audited(context))
        frame = judge_frame(audit)
        facts = {
            "rule": audit.rule,
            "flagged": audit.flagged,
            "expected_share_of_wrong_drops": audit.wrong_drops,
            f"{audit.judge}s": frame,
        }

        def show(out: console.Output, rows: int) -> None:
            _print_judges(out, context, frame, columns, title, last, rows)

        return Section({"audit": facts}, _figures(audit), show)

    return section


def judge_frame(audit: rt.Audit) -> pd.DataFrame:
    """The audit as a table, least trusted first."""
    frame = audit.table.to_dataframe().reset_index()
    by = ["p_below", audit.judged]
    return frame.sort_values(by, ascending=[False, True], kind="stable", ignore_index=True)


def _figures(audit: rt.Audit) -> dict[str, Callable[[Path], object]]:
    """Figures of the audit, where it has the quantities that they draw."""
    if not {"competence", "agreement"} <= set(audit.table.data_vars):
        return {}
    return {
        "competences.png": lambda path: figures.competences(audit).savefig(path),
        "auditor.png": lambda path: figures.auditor(audit).savefig(path),
    }


def _not_audited(context: AuditContext) -> Show:
    from raters.cli.kinds import model_flag

    instead = model_flag(type(context.kind.default))
    judge = context.program.data.judge
    text = f"No audit of {judge}s: {context.model_flag} takes them all as alike; use {instead}.\n"
    return lambda out, rows: out.print(text, highlight=False)


def _print_judges(
    out: console.Output,
    context: AuditContext,
    frame: pd.DataFrame,
    columns: tuple[JudgeColumn, ...],
    title: str,
    last: int,
    rows: int,
) -> None:
    audit, options = context.audit, context.options
    assert audit is not None
    shown = [column for column in columns if out.width >= column.width]
    grid = console.new_grid(f"{audit.judge.capitalize()}s, least trusted first{title}")
    grid.add_column(audit.judge, overflow="fold", min_width=10)
    for heading in (
        context.kind.words.many,
        _split(audit.judged),
        f"{options.level:.0%}\ninterval",
    ):
        grid.add_column(heading, justify="right", no_wrap=True)
    below = JudgeColumn(f"below\n{options.threshold:g}", lambda row: percent(row.p_below))
    place = len(shown) - len([one for one in columns[len(columns) - last :] if one in shown])
    shown.insert(place, below)
    for one in shown:
        justify: Any = "right" if one in (*columns[: len(columns) - last], below) else "left"
        grid.add_column(one.heading, justify=justify, no_wrap=True, max_width=11)
    grid.add_column("verdict", min_width=7)

    def cells(row: Any) -> tuple[str, ...]:
        mean, low, high = (getattr(row, audit.judged + end) for end in ("", "_low", "_high"))
        verdict = f"[{console.STYLES[row.verdict]}]{row.verdict}[/]"
        middle = (one.cell(row) for one in shown)
        name = escape(str(getattr(row, audit.judge)))
        return name, f"{row.votes:g}", f"{mean:.2f}", span(low, high), *middle, verdict

    dropped = int((frame["verdict"] == "drop").sum())
    console.fill(
        grid, frame, rows, cells, column=0, head=max((rows + 1) // 2, min(dropped, rows - 1))
    )
    out.print(grid)
    out.print()
    hidden = [
        one.heading.replace("-\n", "").replace("\n", " ") for one in columns if one not in shown
    ]
    more = f" A wider terminal also shows: {', '.join(hidden)}." if hidden else ""
    console.print_verdicts(out, audit, more)


def _split(word: str) -> str:
    """A long word in two lines, as the heading of a narrow column."""
    return word if len(word) < 9 else f"{word[: len(word) // 2]}-\n{word[len(word) // 2 :]}"


# ---------------------------------------------------------------- questions

_PREDICTED = {"p_win": "P(first wins)"}


def question_section(context: AuditContext) -> Section:
    """Questions to ask next."""
    table, note = context.questions, context.questions_note
    facts = {"suggestions": table, "suggestions_note": note}
    return Section(facts, {}, lambda out, rows: print_questions(out, table, note))


def print_questions(out: console.Output, table: pd.DataFrame, note: str) -> None:
    """Print the most informative questions, with the answer that is likely."""
    if len(table):
        names = list(table.columns[: table.columns.get_loc("score")])
        predicted = [name for name in table.columns if name not in (*names, "score")]
        grid = console.new_grid("Next questions, in the order in which they were chosen")
        for name in names:
            grid.add_column("ask" if name == "by" else name, overflow="fold", min_width=6)
        grid.add_column("score", justify="right", no_wrap=True)
        for name in predicted:
            if name.startswith("p_"):
                heading = _PREDICTED.get(name, "P(answer)")
                grid.add_column(heading, justify="right", no_wrap=True)
            else:
                grid.add_column("likely answer", overflow="fold")
        for row in table.to_dict("records"):
            likely = (
                percent(row[name]) if name.startswith("p_") else escape(str(row[name]))
                for name in predicted
            )
            about = (escape(str(row[name])) for name in names)
            grid.add_row(*about, f"{row['score']:.3f}", *likely)
        out.print(grid)
    if note:
        if len(table):
            out.print()
        out.print(note, highlight=False)
