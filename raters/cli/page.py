"""The printed page of an audit: tables of a kind's sections, judges, agreement, next questions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import pandas as pd
from rich.markup import escape

import raters as rt
from raters.auditing.verdicts import DIFFERS
from raters.cli import console
from raters.judgements.base import Judgements
from raters.kinds import Column, Section, Table
from raters.reporting.facts import STATISTICS, percent, plural_noun, span
from raters.reporting.page import question_columns, question_roles
from raters.reporting.sentences import worlds

# Least width of a name, and width of the ends of an interval.
_NAME, _ENDS = 12, 11
# Rankings that an agreement leaves out.
_LACKING = {
    "kendall_w": "are of other items",
    "observed_agreement": "order no pair of items that another annotator orders",
}


class PrintedColumn(NamedTuple):
    """A column of a printed table: its heading, its cell of a row, and whether it is text."""

    heading: str
    cell: Callable[[Mapping[str, Any]], str]
    text: bool = False


def printed_columns(column: Column, level: float) -> list[PrintedColumn]:
    """Printed columns of a column of a report; an interval takes two."""
    name = column.name

    def of(form: Callable[[Any], str]) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: "" if row.get(name) is None else form(row[name])

    def ends(form: Callable[[Any, Any], str]) -> Callable[[Mapping[str, Any]], str]:
        return lambda row: form(row[f"{name}_low"], row[f"{name}_high"])

    heading = _split(column.heading)
    if column.form == "interval":
        interval = PrintedColumn(f"{level:.0%}\ninterval", _in_worlds(ends(span)))
        return [PrintedColumn(heading, _in_worlds(of("{:.2f}".format))), interval]
    cells = {
        "name": of(console.shown_name),
        "text": of(console.shown_name),
        "whole": of("{:,.0f}".format),
        "number": of("{:.2f}".format),
        "percent": of(percent),
        "range": _range(name),
    }
    return [PrintedColumn(heading, cells[column.form], column.form in ("name", "text"))]


def _in_worlds(cell: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], str]:
    """A line for each world, where there are several."""
    return lambda row: "\n".join(map(cell, row.get("worlds", [row])))


def _range(name: str) -> Callable[[Mapping[str, Any]], str]:
    """The two ends, behind the value where the rows have it."""

    def text(row: Mapping[str, Any]) -> str:
        both = f"{row[f'{name}_low']:g}–{row[f'{name}_high']:g}"
        return f"{row[name]:g} ({both})" if name in row else both

    return text


def _split(heading: str) -> str:
    """A heading of several words in two lines, for a narrow column."""
    first, space, last = heading.rpartition(" ")
    return f"{first}\n{last}" if space and len(heading) > 8 else heading


# ---------------------------------------------------------------- sections of a kind


def print_section(out: console.Output, section: Section, level: float, rows: int) -> None:
    """Print the sentence of a section, and its tables in so many rows each."""
    if section.matrices and not section.tables:
        return
    out.print(section.sentence, highlight=False, markup=False)
    out.print()
    for table in section.tables:
        print_table(out, table, level, rows)


def print_table(out: console.Output, table: Table, level: float, rows: int) -> None:
    """Print a table, shortened to so many rows."""
    title = f"{table.heading}. {table.caption}" if table.heading else table.caption
    out.print(title, style="bold", highlight=False, markup=False)
    grid = console.new_grid("")
    columns = [one for column in table.columns for one in printed_columns(column, level)]
    for one in columns:
        add_column(grid, one)
    first_text = next((place for place, one in enumerate(columns) if one.text), 0)
    head = None if table.both_ends else rows
    console.fill(
        grid,
        table.rows,
        rows,
        lambda row: tuple(one.cell(row) for one in columns),
        column=first_text,
        head=head,
    )
    out.print(grid)
    out.print()


def _score(value: float) -> str:
    """Three decimals, or two digits of what would be 0 then."""
    return f"{value:.3f}" if abs(value) >= 0.001 or not value else f"{value:.1e}"


def add_column(grid: Any, column: PrintedColumn) -> None:
    """Add a column to a grid: text is folded where it is long, numbers are not."""
    heading = escape(column.heading)
    if column.text:
        grid.add_column(heading, overflow="fold", min_width=6)
    else:
        grid.add_column(heading, justify="right", no_wrap=True)


# ---------------------------------------------------------------- judges


def print_judges(
    out: console.Output,
    audit: rt.auditing.Audit,
    judges: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    words: tuple[str, str],
    rows: int,
) -> None:
    """Print the audit's table, the verdicts, and what dropping the flagged would cost."""
    many, lowest = words
    name = PrintedColumn(audit.judge, lambda row: console.shown_name(row[audit.judge]), text=True)
    count = PrintedColumn(many, lambda row: f"{row['judgements']:,.0f}")
    verdict = PrintedColumn("verdict", lambda row: _verdict(row["verdict"]), text=True)
    first, *others, below = (printed_columns(column, audit.level) for column in columns)
    last = [*below, verdict]
    room = out.width - _NAME - sum(map(_width, [count, *first, *last]))
    num_shown = sum(
        taken <= room for taken in accumulate(sum(map(_width, column)) for column in others)
    )
    shown = [one for column in others[:num_shown] for one in column]
    printed = [name, count, *first, *shown, *last]
    grid = console.new_grid(f"{plural_noun(audit.judge).capitalize()}, {lowest} first")
    for one in printed:
        add_column(grid, one)
    dropped = sum(row["verdict"] == "drop" for row in judges)
    head = max((rows + 1) // 2, min(dropped, rows - 1))
    console.fill(
        grid, judges, rows, lambda row: tuple(one.cell(row) for one in printed), column=0, head=head
    )
    out.print(grid)
    out.print()
    if "worlds" in audit.tables:
        out.print(worlds(audit), highlight=False)
        out.print()
    hidden = ", ".join(column.heading for column in columns[1 + num_shown : -1])
    more = f" A wider terminal also shows: {hidden}." if hidden else ""
    console.print_verdicts(out, audit, more)


def _width(column: PrintedColumn) -> int:
    """Columns of text that a column of numbers takes, with a space after it."""
    lines = column.heading.splitlines()
    return max(_ENDS if "interval" in lines else 4, *map(len, lines)) + 1


def _verdict(verdict: str) -> str:
    """A verdict in its colour; the lines below the table have it in full."""
    text = "differs" if verdict == DIFFERS else verdict
    return f"[{console.STYLES[verdict]}]{text}[/]"


# ---------------------------------------------------------------- agreement


def print_agreement(
    out: console.Output, judge: str, table: pd.DataFrame | None, why_not: str, level: float
) -> None:
    """Print agreement, one row for each statistic, or why it cannot be measured."""
    if table is None:
        out.print(why_not + "\n", highlight=False)
        return
    grid = console.new_grid(f"Agreement between {plural_noun(judge)}")
    grid.add_column("statistic")
    grid.add_column("estimate", justify="right")
    grid.add_column(f"{level:.0%} interval", justify="right")
    for row in table.itertuples():
        grid.add_row(STATISTICS[str(row.Index)], f"{row.estimate:.2f}", span(row.low, row.high))
    out.print(grid)
    _print_questions_used(out, judge, table)


def print_agreement_by_class(
    out: console.Output, judge: str, table: pd.DataFrame, level: float
) -> None:
    """Print agreement on each class against the rest, one row for each class."""
    grid = console.new_grid(
        f"Agreement between {plural_noun(judge)} on each class, with {level:.0%} intervals"
    )
    shown = [name for name in STATISTICS if name in table.index.unique("statistic")]
    grid.add_column("class", overflow="fold", min_width=6)
    for heading in ("share", *(STATISTICS[name] for name in shown)):
        grid.add_column(_split(heading), justify="right")
    for name, rows in table.groupby(level="class", sort=False):
        of_class = rows.droplevel("class")
        cells = [of_class.loc[one] for one in shown]
        grid.add_row(
            console.shown_name(name),
            percent(float(of_class["share"].iloc[0])),
            *(f"{cell.estimate:.2f}\n{span(cell.low, cell.high)}" for cell in cells),
        )
    out.print(grid)
    _print_questions_used(out, judge, table)


def _print_questions_used(out: console.Output, judge: str, table: pd.DataFrame) -> None:
    """Print how many questions agreement was measured on, where some were left out."""
    if "rankings" in table:
        for row in table.itertuples():
            if row.rankings_left_out:
                lacking = _LACKING[str(row.Index)]
                text = f"{row.rankings:,} rankings; {row.rankings_left_out:,} {lacking}"
                out.print(f"{STATISTICS[str(row.Index)]}: of {text}.", highlight=False)
        out.print()
        return
    items, left_out = int(table["items"].iloc[0]), int(table["items_left_out"].iloc[0])
    if left_out:
        out.print(
            f"From {items:,} questions; {left_out:,} {'has' if left_out == 1 else 'have'} answers"
            f" by fewer than two {plural_noun(judge)}.",
            highlight=False,
        )
    out.print()


# ---------------------------------------------------------------- questions


def print_questions(out: console.Output, data: Judgements, table: pd.DataFrame, note: str) -> None:
    """Print the most informative questions, with their score and the answer that is likely."""
    if len(table):
        columns = question_columns(data, table)
        asked = sum(column.name in question_roles(data) for column in columns)
        printed = [one for column in columns for one in printed_columns(column, 0.0)]
        printed.insert(asked, PrintedColumn("score", lambda row: _score(row["score"])))
        grid = console.new_grid("Next questions, in the order in which they were chosen")
        for one in printed:
            add_column(grid, one)
        for row in table.to_dict("records"):
            grid.add_row(*(one.cell(row) for one in printed))
        out.print(grid)
    if note:
        if len(table):
            out.print()
        out.print(note, highlight=False)
