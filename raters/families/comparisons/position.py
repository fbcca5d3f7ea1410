"""Section of a report on position bias: how often the first of two equal items is chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from raters import figures
from raters.auditing.position import PositionBias, position_bias
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.judgements.separation import MIXED_ORDER, order_share
from raters.kinds import AuditContext, Column, Section, Table
from raters.reporting.facts import percent

_COLUMNS = (
    Column("annotator", "annotator", "name"),
    Column("judgements", "votes", "whole"),
    Column(
        "first_share",
        "first of equals",
        "interval",
        "First of equals is the probability of choosing the item shown first where both are equally"
        " good: 0.5 without a bias.",
        marks=(0.5,),
    ),
    Column(
        "p_position_bias",
        "P(bias)",
        "percent",
        "P(bias) is the probability that it differs from 0.5 by {margin} or more.",
    ),
    Column("position_bias", "bias in logits", "number"),
)


def bias(context: AuditContext) -> Section | None:
    """Position bias of the crowd and of each annotator, who favours the first most on top."""
    found = position_bias(context.program, context.result)
    if found is None:
        return None
    data, audit = context.program.data, context.audit
    share = found.crowd_share(data.judgements_by(data.judge).astype(float))
    low, high = np.quantile(share, ((1 - context.level) / 2, (1 + context.level) / 2))
    crowd = {"first_share": share.mean(), "first_share_low": low, "first_share_high": high}
    votes = data.halved()
    observed = float(np.sum(votes.wins) / np.sum(votes.weight))
    separate = order_share(data) >= MIXED_ORDER
    sentences = [_of_crowd(crowd, observed, found, context.level, separate)]
    tables: tuple[Table, ...] = ()
    files = {}
    if audit is not None and "first_share" in audit.table:
        frame = audit.table.to_dataframe().reset_index()
        frame = frame.sort_values("first_share", ascending=False, kind="stable", ignore_index=True)
        sentences += _of_annotators(frame, context.level, audit.margin) if separate else []
        caption = (
            "Annotators by position bias, those who favour the first most on top. P(bias):"
            f" probability that the share differs from 0.5 by {audit.margin:g} or more"
        )
        rows = frame.to_dict("records")
        tables = (Table("position_bias", caption, _COLUMNS, rows, both_ends=True),)
        files["position_bias.png"] = lambda path: figures.position_bias(audit).savefig(path)
    return Section(
        key="position_bias",
        title="Position bias",
        sentence=" ".join(sentences),
        tables=tables,
        facts={name: float(value) for name, value in crowd.items()}
        | {"observed_first_share": observed},
        files=files,
    )


def _of_crowd(
    crowd: dict[str, Any], observed: float, found: PositionBias, level: float, separate: bool
) -> str:
    """Share of choices of the first of two equal items, and of all votes."""
    mean = "" if found.shared or found.bias.shape[1] == 1 else ", as a mean over the annotators"
    of_all = f"Of all votes, {percent(observed)} are for the item shown first."
    if not separate:
        return (
            f"{of_all} Nearly all pairs were shown in one order, so that the votes cannot tell"
            " whether this is a bias or the items shown first are better: the prior decides, and"
            " neither the numbers below nor the rewards can be relied on. Show pairs in random"
            " order."
        )
    return (
        f"Between two equal items the one shown first is chosen {_share(crowd, level)}{mean}."
        f" {of_all} The model separates this bias from the rewards of the items."
    )


def _of_annotators(frame: pd.DataFrame, level: float, margin: float) -> list[str]:
    """Annotators at both ends, and the number who are biased; nothing on a single one."""
    voted = frame[frame["judgements"] > 0]
    if len(voted) < 2:
        return []
    ends = []
    for row, side, beyond in ((voted.iloc[0], "first", 1), (voted.iloc[-1], "second", -1)):
        if beyond * (row["first_share"] - 0.5) > 0:
            own = {name: row[name] for name in row.index if str(name).startswith("first_share")}
            ends.append(
                f"{isolated(row['annotator'])} favours the item shown {side} most: of two equal"
                f" items the first is chosen {_share(own, level)}."
            )
    biased = int((voted["p_position_bias"] >= level).sum())
    ends.append(
        f"Of {counted(len(voted), 'annotator')} who voted, {biased:,}"
        f" {'is' if biased == 1 else 'are'} biased with {percent(level)} probability or more, by"
        f" {margin:g} or more from one half."
    )
    return ends


def _share(row: dict[str, Any], level: float) -> str:
    """Share of the time, with its interval, in words."""
    low, high = percent(row["first_share_low"]), percent(row["first_share_high"])
    return f"{percent(row['first_share'])} of the time ({percent(level)} interval {low} to {high})"
