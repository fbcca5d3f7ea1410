"""Sections of reports that several kinds share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.kinds import AuditContext, Column, Section
from raters.models.comparisons.directions import has_directions

# Probability of a sign from which on it is called known.
_KNOWN = 0.975

ADVERSARY = Column("p_adversarial", "percent")
GUESSING = Column("p_guessing", "percent")
ACCURACY = Column("accuracy", "percent")
AGREEMENT = Column("agreement", "percent")
INFLUENCE = Column("influence", "percent")
COMPETENCE = Column("competence", "interval", marks=(0.0, 1.0))


def ranked(draws: xr.DataArray, level: float) -> pd.DataFrame:
    """Items from the highest to the lowest, with intervals of their values and ranks."""
    stacked = draws.stack(sample=("chain", "draw")).transpose("sample", "item")
    order = np.argsort(-stacked.values.mean(0), kind="stable")
    values = stacked.values[:, order]
    ranks = np.argsort(np.argsort(-values, axis=1), axis=1) + 1
    tails, name = ((1 - level) / 2, (1 + level) / 2), str(draws.name)
    low, high = np.quantile(values, tails, axis=0)
    rank_low, rank_high = np.quantile(ranks, tails, axis=0, method="nearest")
    return pd.DataFrame(
        {
            "item": stacked["item"].values[order],
            "rank": np.arange(1, len(order) + 1),
            name: values.mean(0),
            f"{name}_low": low,
            f"{name}_high": high,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "p_best": (ranks == 1).mean(0),
            "p_above_next": np.append((values[:, :-1] > values[:, 1:]).mean(0), np.nan),
        }
    )


def order_of(table: pd.DataFrame, level: float) -> dict[str, Any]:
    """Finding on a ranking: its ends, and how many neighbours are told apart."""
    names = table["item"].tolist()
    apart = int((table["p_above_next"].iloc[:-1] >= level).sum())
    return {
        "code": "order",
        "first": names[0],
        "p_best": table["p_best"].iloc[0],
        "last": names[-1],
        "neighbours": len(table) - 1,
        "apart": apart,
    }


def ranking(context: AuditContext, site: str = "reward") -> Section | None:
    """Items by their rewards or worths; of a mixture, for each type of annotators."""
    if site not in context.program.sites:
        return None
    posterior, audit = context.result["posterior"].dataset, context.audit
    calibration = None if audit is None else audit.calibration
    draws = posterior[site]
    if calibration is not None:
        draws = calibration.truth.expand_dims("chain").rename(site)
    columns = (
        Column("rank", "range"),
        Column("item", "name"),
        Column(site, "interval"),
        Column("p_best", "percent"),
        Column("p_above_next", "percent"),
    )
    if "type" in draws.dims:
        share = posterior["type_weight"].mean(("chain", "draw")).to_series()
        tables = {
            kind: ranked(draws.sel(type=kind, drop=True), context.level) for kind in share.index
        }
        parts = [table.assign(type=kind) for kind, table in tables.items()]
        findings = [
            order_of(table, context.level) | {"type": kind, "share": share[kind]}
            for kind, table in tables.items()
        ]
        table, figures = pd.concat(parts, ignore_index=True), {}
    else:
        table = ranked(draws, context.level)
        findings = [order_of(table, context.level) | {"true": calibration is not None}]
        shown = xr.DataTree.from_dict({"posterior": xr.Dataset({site: draws})})
        figures = {"rewards": {"result": shown, "level": context.level}} if site == "reward" else {}
    if has_directions(context.program):
        share = posterior["type_weight"].mean(("chain", "draw"))
        shares = {kind: float(share.sel(type=kind)) for kind in ("guesser", "adversary")}
        findings.append({"code": "directions"} | shares)
    if audit is not None and "worlds" in audit.tables:
        findings.append({"code": "mirrored"})
    if audit is not None and audit.influential:
        findings.append({"code": "influence"} | audit.influential)
    return Section(
        key="items",
        title="Ranking",
        findings=tuple(findings),
        columns=columns,
        table=table,
        group="type" if "type" in table else "",
        facts={"num_items": draws.sizes["item"]},
        figures=figures,
    )


def signs(table: pd.DataFrame, name: str) -> dict[str, Any]:
    """Finding on the signs of coefficients."""
    up, down = table["p_positive"] >= _KNOWN, table["p_positive"] <= 1 - _KNOWN
    names = {"up": table[name][up].tolist(), "down": table[name][down].tolist()}
    return {"code": "signs", **names, "open": int((~up & ~down).sum()), "of": len(table)}
