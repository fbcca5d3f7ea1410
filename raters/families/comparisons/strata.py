"""Section of a report on strata: the ranking within each, and how far they differ."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, Column, Section, Table
from raters.reporting import facts

_COLUMNS = (
    Column("rank", "rank", "range"),
    Column("item", "item", "name"),
    Column("reward", "reward", "interval"),
    Column("p_best", "P(best)", "percent"),
    Column("common_rank", "in common", "whole"),
)


def by_stratum(context: AuditContext) -> Section | None:
    """Rankings within each stratum, of a model that has deviations."""
    if "deviation" not in context.program.sites:
        return None
    rewards = stratum_rewards(context.result)
    common = facts.ranking(context.result["posterior"].dataset["reward"], context.level)
    place = dict(zip(common["item"], common["rank"], strict=True))
    caption = "Items by stratum, highest reward first; a reward of 0 is the average item of it"
    tables, first = [], {}
    for name in rewards["stratum"].values.tolist():
        rows = facts.ranking(rewards.sel(stratum=name, drop=True), context.level)
        rows = rows.assign(common_rank=rows["item"].map(place))
        first[name] = rows["item"].iloc[0]
        rows = rows.to_dict("records")
        tables.append(
            Table("strata", caption, _COLUMNS, rows, heading=f"Stratum {name}", both_ends=True)
        )
    return Section(
        key="strata",
        title="Rankings by stratum",
        sentence=_sentence(first, common["item"].iloc[0]),
        tables=tuple(tables),
        facts={"first": {str(name): item for name, item in first.items()}},
        files={"strata.csv": lambda path: _frame(tables).to_csv(path, index=False)},
    )


def stratum_rewards(result: xr.DataTree) -> xr.DataArray:
    """Draws of the reward of each item in each stratum: the common one and its deviation."""
    posterior = result["posterior"].dataset
    rewards: xr.DataArray = posterior["reward"] + posterior["deviation"]
    return rewards.transpose("chain", "draw", "stratum", "item")


def _sentence(first: dict[Any, Any], common: Any) -> str:
    """The item that is first in most strata, and those in which another one is."""
    others = [
        f"{isolated(item)} in {isolated(name)}" for name, item in first.items() if item != common
    ]
    whole = counted(len(first), "stratum", "strata")
    if not others:
        return f"{isolated(common)} is first in common and in all {whole}."
    return (
        f"Of {whole}, {isolated(common)}, the first in common, is first in"
        f" {len(first) - len(others)}; others are first in {len(others)}: {', '.join(others[:5])}."
    )


def _frame(tables: list[Table]) -> pd.DataFrame:
    """All rankings as one table."""
    parts = [
        pd.DataFrame(table.rows).assign(stratum=table.heading.removeprefix("Stratum "))
        for table in tables
    ]
    whole = pd.concat(parts, ignore_index=True)
    return whole[["stratum", *(name for name in whole if name != "stratum")]]
