"""Sections of an audit of comparisons: the ranking, the annotators, what dropping changes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr
from rich.markup import escape

from raters import figures
from raters.cli import console
from raters.cli.sections import (
    AuditContext,
    JudgeColumn,
    MakeSection,
    Section,
    judge_section,
    question_section,
)
from raters.reporting.facts import percent, ranking, span

# Most items whose change of rank is printed.
_MOVES = 8


def _has_ranking(result: xr.DataTree) -> bool:
    """True if there is one reward for each item."""
    posterior = result["posterior"]
    return "reward" in posterior and posterior["reward"].dims == ("chain", "draw", "item")


def ranking_section(context: AuditContext) -> Section | None:
    """Items from the highest reward to the lowest."""
    result, level = context.result, context.options.level
    if not _has_ranking(result):
        return None
    table = ranking(result["posterior"].dataset["reward"], level)
    return Section(
        {"ranking": table},
        {"rewards.png": lambda path: figures.rewards(result, level=level).savefig(path)},
        lambda out, rows: print_ranking(out, table, level, rows),
    )


def print_ranking(out: console.Output, table: pd.DataFrame, level: float, most: int) -> None:
    """Print the ranking, shortened to its two ends."""
    grid = console.new_grid("Items, highest reward first")
    share = f"{level:.0%}"
    grid.add_column("rank", justify="right", no_wrap=True)
    grid.add_column("item", overflow="fold", min_width=14)
    for heading in ("reward", f"{share} interval", f"rank, {share}", "P(best)", "P(above next)"):
        wide = heading not in ("P(best)", "P(above next)")
        grid.add_column(heading, justify="right", no_wrap=wide)

    def cells(row: Any) -> tuple[str, ...]:
        interval, ranks = span(row.reward_low, row.reward_high), f"{row.rank_low}–{row.rank_high}"
        shares = (percent(row.p_best), percent(row.p_above_next))
        return str(row.rank), escape(str(row.item)), f"{row.reward:.2f}", interval, ranks, *shares

    console.fill(grid, table, most, cells, column=1)
    out.print(grid)
    out.print()


def change_section(context: AuditContext) -> Section:
    """Change of the ranking when those flagged are left out."""
    if context.dropped is None or context.audit is None or not _has_ranking(context.result):
        return Section({"without_flagged": None})
    tables = [
        ranking(result["posterior"].dataset["reward"], context.options.level)
        for result in (context.result, context.dropped)
    ]
    change, items = ranking_change(*tables), len(tables[0])
    moves = [
        f"{escape(str(move['item']))} ({move['rank']} → {move['new_rank']})"
        for move in change["moves"][:_MOVES]
    ]
    text = (
        f"Without the {len(context.audit.flagged)} flagged annotator(s): Kendall's tau of the two"
        f" rankings {change['kendall_tau']:.3f}; {change['moved']} of {items} items change rank."
    )

    def show(out: console.Output, rows: int) -> None:
        out.print(text, highlight=False)
        if moves:
            out.print("Largest moves: " + ", ".join(moves), highlight=False)
        out.print()

    return Section({"without_flagged": change}, {}, show)


def ranking_change(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
    """Kendall's tau between two rankings of the same items, and the items that moved, furthest
    first."""
    from scipy.stats import kendalltau

    both = before[["item", "rank"]].merge(
        after[["item", "rank"]].rename(columns={"rank": "new_rank"}), on="item"
    )
    both["moved"] = (both["new_rank"] - both["rank"]).abs()
    moves = (
        both[both["moved"] > 0]
        .sort_values("moved", ascending=False, kind="stable")
        .drop(columns="moved")
    )
    tau = float(kendalltau(both["rank"], both["new_rank"]).statistic)
    return {"kendall_tau": tau, "moved": len(moves), "moves": moves.to_dict("records")}


_COLUMNS = (
    JudgeColumn("accu-\nracy", lambda row: percent(row.accuracy), console.NARROW),
    JudgeColumn("agree-\nment", lambda row: percent(row.agreement), console.NARROW),
    JudgeColumn("guess-\ning", lambda row: percent(row.p_guessing)),
    JudgeColumn("adver-\nsarial", lambda row: percent(row.p_adversarial)),
)
COMPARISON_SECTIONS: tuple[MakeSection, ...] = (
    ranking_section,
    judge_section(_COLUMNS, " (guessing … below: probabilities)"),
    change_section,
    question_section,
)
