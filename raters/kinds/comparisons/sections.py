"""Sections of a report on comparisons."""

from __future__ import annotations

import numpy as np

from raters import kinds
from raters.auditing.intervals import mean_and_interval
from raters.judgements.separation import MIXED_ORDER, order_share
from raters.kinds.comparisons.audit import position_bias
from raters.kinds.sections import ranked, ranked_by, shown


def by_stratum(context: kinds.AuditContext) -> kinds.Section | None:
    """Rankings within each stratum, of a model that has deviations."""
    if "deviation" not in context.program.sites:
        return None
    posterior = context.result["posterior"].dataset
    rewards = (posterior["reward"] + posterior["deviation"]).rename("reward")
    rewards = rewards.transpose("chain", "draw", "stratum", "item")
    table = ranked_by(rewards, "stratum", context.level)
    common = ranked(posterior["reward"], context.level)
    places = common.set_index("item")["rank"]
    first = table.groupby("stratum", sort=False)["item"].first()
    others = first[first != places.index[0]].to_dict()
    return kinds.Section(
        key="strata",
        title="Rankings by stratum",
        findings=(kinds.finding("strata", first=places.index[0], of=len(first), others=others),),
        columns=shown("rank item reward p_best common_rank"),
        table=table.assign(common_rank=table["item"].map(places)),
        group="stratum",
    )


def position(context: kinds.AuditContext) -> kinds.Section | None:
    """Position bias of the crowd and of each annotator, who favours the first most on top."""
    bias = position_bias(context.program, context.result)
    if bias is None:
        return None
    data, audit, level = context.program.data, context.audit, context.level
    voted = data.judgements_by(data.judge) > 0
    of_all = bias.shared or not voted.any()
    share = bias.first_share[:, slice(None) if of_all else voted].mean(1, keepdims=True)
    crowd = {name: x[0] for name, x in mean_and_interval("first_share", share, level).items()}
    votes, separate = data.halved(), order_share(data) >= MIXED_ORDER
    observed = float(np.sum(votes.wins) / np.sum(votes.weight))
    findings = [kinds.finding("position" if separate else "one_order", observed=observed, **crowd)]
    table = None
    if audit is not None and "first_share" in audit.table:
        table = audit.table.to_dataframe().reset_index()
        table = table.sort_values("first_share", ascending=False, kind="stable", ignore_index=True)
        biased = table["p_position_bias"][table["judgements"] > 0] >= level
        numbers = {"biased": int(biased.sum()), "of": len(biased)}
        findings.append(kinds.finding("position_of_judges", **numbers))
    return kinds.Section(
        key="position_bias",
        findings=tuple(findings),
        columns=shown("annotator judgements first_share p_position_bias position_bias"),
        table=table,
    )
