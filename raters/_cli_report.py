"""What the command line prints: ranking, audit, next questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from raters._facts import audit_frame, percent, span
from raters._plots import ends

if TYPE_CHECKING:
    from raters.audit import Audit

STYLES = {"keep": "green", "review": "yellow", "drop": "bold red", "not enough votes": "dim"}
# Below this many columns of text the audit leaves out what the others imply.
NARROW = 76


class Output(Console):
    """Standard output; a closed pipe is reported as such instead of ending the process on the spot."""

    def on_broken_pipe(self) -> None:
        """Let the command line decide."""
        raise BrokenPipeError


def print_ranking(out: Console, table: pd.DataFrame, level: float, most: int) -> None:
    """The ranking, shortened to its two ends."""
    grid = new_grid("Items, highest reward first")
    share = f"{level:.0%}"
    grid.add_column("rank", justify="right", no_wrap=True)
    grid.add_column("item", overflow="fold", min_width=14)
    for heading in ("reward", f"{share} interval", f"rank, {share}", "P(best)", "P(above next)"):
        grid.add_column(heading, justify="right", no_wrap=heading not in ("P(best)", "P(above next)"))

    def cells(row):
        interval, ranks = span(row.reward_low, row.reward_high), f"{row.rank_low}–{row.rank_high}"
        chances = (percent(row.p_best), percent(row.p_above_next))
        return str(row.rank), escape(str(row.item)), f"{row.reward:.2f}", interval, ranks, *chances

    fill(grid, table, most, cells, column=1)
    out.print(grid)
    out.print()


def print_audit(out: Console, found: Audit, level: float, threshold: float, most: int) -> None:
    """Annotators from the least trusted to the most, then the rule and what dropping the flagged would cost."""
    table = audit_frame(found)
    grid = new_grid("Annotators, least trusted first (guessing … below: probabilities)")
    wide = out.width >= NARROW
    grid.add_column("annotator", overflow="fold", min_width=11)
    grid.add_column("votes", justify="right", no_wrap=True)
    grid.add_column("compe-\ntence", justify="right", no_wrap=True)
    grid.add_column(f"{level:.0%}\ninterval", justify="right", no_wrap=True)
    if wide:
        grid.add_column("accu-\nracy", justify="right", no_wrap=True)
        grid.add_column("agree-\nment", justify="right", no_wrap=True)
    for heading in ("guess-\ning", "adver-\nsarial", f"below\n{threshold:g}"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", min_width=7)

    def cells(row):
        middle = (percent(row.accuracy), percent(row.agreement)) if wide else ()
        chances = (percent(share) for share in (row.p_guessing, row.p_adversarial, row.p_below))
        interval = span(row.competence_low, row.competence_high)
        verdict = f"[{STYLES[row.verdict]}]{row.verdict}[/]"
        return escape(str(row.annotator)), str(row.votes), f"{row.competence:.2f}", interval, *middle, *chances, verdict

    dropped = int((table["verdict"] == "drop").sum())
    head = max((most + 1) // 2, min(dropped, most - 1))
    fill(grid, table, most, cells, column=0, head=head)
    out.print(grid)
    out.print()
    print_verdicts(out, found, "" if wide else " A wider terminal also shows accuracy and agreement.")


def print_verdicts(out: Console, found: Audit, remark: str) -> None:
    """How many of each verdict there are, the rule, and what dropping the flagged would cost."""
    counts = pd.Series(found.table["verdict"].values).value_counts()
    out.print(" · ".join(f"{verdict}: {counts[verdict]}" for verdict in STYLES if verdict in counts), highlight=False)
    out.print(escape(found.rule), highlight=False)
    share = f"Expected share of wrong drops: {found.wrong_drops:.1%}." if found.flagged else "Nobody is dropped."
    out.print(share + remark, highlight=False)
    out.print()


def print_questions(out: Console, questions: pd.DataFrame, note: str) -> None:
    """The most informative questions."""
    grid = new_grid("Next questions, in the order in which they were chosen")
    for heading in ("first", "second", "ask"):
        grid.add_column(heading, overflow="fold", min_width=6)
    grid.add_column("score", justify="right", no_wrap=True)
    grid.add_column("P(first wins)", justify="right", no_wrap=True)
    for row in questions.itertuples():
        names = (escape(str(name)) for name in (row.first, row.second, row.by))
        grid.add_row(*names, f"{row.score:.3f}", percent(row.p_win))
    out.print(grid)
    if note:
        out.print()
        out.print(note, highlight=False)


def print_change(out: Console, change: Mapping[str, Any], items: int, flagged: int, most: int = 8) -> None:
    """What leaving out the flagged annotators does to the ranking."""
    out.print(
        f"Without the {flagged} flagged annotator(s): Kendall's tau of the two rankings {change['kendall_tau']:.3f}; "
        f"{change['moved']} of {items} items change rank.",
        highlight=False,
    )
    moves = [f"{escape(str(move['item']))} ({move['rank']} → {move['new_rank']})" for move in change["moves"][:most]]
    if moves:
        out.print("Largest moves: " + ", ".join(moves), highlight=False)
    out.print()


def ranking_change(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
    """Kendall's tau between two rankings of the same items, and the items that moved, furthest first."""
    from scipy.stats import kendalltau

    both = before[["item", "rank"]].merge(after[["item", "rank"]].rename(columns={"rank": "new_rank"}), on="item")
    both["moved"] = (both["new_rank"] - both["rank"]).abs()
    moves = both[both["moved"] > 0].sort_values("moved", ascending=False, kind="stable").drop(columns="moved")
    tau = float(kendalltau(both["rank"], both["new_rank"]).statistic)
    return {"kendall_tau": tau, "moved": len(moves), "moves": moves.to_dict("records")}


def new_grid(title: str) -> Table:
    """A table without lines, under a title."""
    return Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 1, 0, 0), header_style="bold")


def fill(grid: Table, table: pd.DataFrame, most: int, cells, column: int, head: int | None = None) -> None:
    """Rows of both ends, and between them a row that says (in the given column) how many are left out."""
    shown, head, left_out = ends(len(table), most, head)
    for place, row in enumerate(table.iloc[shown].itertuples(), 1):
        grid.add_row(*cells(row))
        if left_out and place == head:
            words = [""] * len(grid.columns)
            words[column] = f"… {left_out} more …"
            grid.add_row(*words, style="dim")
