"""Printing: standard output, tables without lines, verdicts in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from raters.auditing.verdicts import DIFFERS
from raters.figures.rows import ends
from raters.judgements.display import display_name, visible
from raters.reporting import sentences, steps
from raters.reporting.facts import percent

if TYPE_CHECKING:
    from raters.auditing.audit import Audit

STYLES = {
    "keep": "green",
    "review": "yellow",
    "drop": "bold red",
    DIFFERS: "magenta",
    "too few judgements": "dim",
    "too few draws": "dim",
}


class Output(Console):
    """Standard output, to which no code points go that steer a terminal; a closed pipe is reported
    as such instead of ending the process on the spot."""

    def print(self, *objects: Any, **settings: Any) -> None:
        """Print as Rich does; no text steers the terminal."""
        safe = (visible(one) if isinstance(one, str) else one for one in objects)
        super().print(*safe, **settings)

    def on_broken_pipe(self) -> None:
        """Let the command line decide."""
        raise BrokenPipeError


def shown_name(name: Any) -> str:
    """A name in a cell of a table, in which nothing is markup."""
    return escape(display_name(name))


def print_verdicts(out: Console, audit: Audit, remark: str) -> None:
    """Number of each verdict, the rule, what dropping the flagged would cost, and the known truths
    that would settle what is open."""
    counts = pd.Series(audit.table["verdict"].values).value_counts()
    out.print(
        " · ".join(f"{verdict}: {counts[verdict]}" for verdict in STYLES if verdict in counts),
        highlight=False,
    )
    out.print(escape(audit.rule), highlight=False)
    share = (
        f"Expected share of wrong drops: {percent(audit.wrong_drops)}."
        if audit.flagged
        else "Nobody is dropped."
    )
    out.print(share + remark, highlight=False)
    if audit.settling is not None:
        text = f"{sentences.settled_by_truths(audit)}. They are in {steps.WANTED}: fill in the last"
        out.print(f"{text} column of a copy, and give it as --gold.", highlight=False)
    out.print()


def new_grid(title: str) -> Table:
    """A table without lines, under a title."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )


def fill(
    grid: Table,
    rows: Sequence[Mapping[str, Any]],
    most: int,
    cells: Callable[[Mapping[str, Any]], tuple[str, ...]],
    column: int,
    head: int | None = None,
) -> None:
    """Rows of both ends, and between them a row that says (in the given column) how many are left
    out."""
    shown, head, left_out = ends(len(rows), most, head)
    for place, number in enumerate(shown, 1):
        grid.add_row(*cells(rows[number]))
        if left_out and place == head:
            words = [""] * len(grid.columns)
            words[column] = f"… {left_out} more …"
            grid.add_row(*words, style="dim")
