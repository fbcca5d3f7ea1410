"""Comparisons as a kind of judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.acquisition.questions.candidates import Candidates
from raters.auditing import comparisons
from raters.auditing.calibrated_comparisons import calibrate_comparisons
from raters.auditing.calibrated_orders import known_orders
from raters.auditing.known_orders import COLUMNS
from raters.auditing.position import position_bias
from raters.families import sections
from raters.families.discrepancies.comparisons import DISCREPANCIES
from raters.judgements.comparisons import Comparisons
from raters.judgements.separation import MIXED_ORDER, order_share
from raters.kinds import AuditContext, Column, Kind, Reader, Section, Truths, Words, register
from raters.models import comparisons as models
from raters.models.comparisons import ContextualBTL, ExtendedBTL, LinearExtendedBTL


def compared_with_itself(frame: Any, columns: Mapping[str, str]) -> tuple[str, np.ndarray]:
    """Rows whose two sides are one item."""
    sides = [columns[role] for role in ("winner", "loser", "first", "second") if role in columns]
    if len(sides) != 2 or not set(sides) <= set(frame.columns):
        return "an item compared with itself", np.zeros(len(frame), bool)
    one, other = (frame[side].astype(str).to_numpy() for side in sides)
    return "an item compared with itself", one == other


def stratum_rewards(result: xr.DataTree) -> xr.DataArray:
    """Draws of the reward of each item in each stratum: the common one and its deviation."""
    posterior = result["posterior"].dataset
    rewards: xr.DataArray = posterior["reward"] + posterior["deviation"]
    return rewards.transpose("chain", "draw", "stratum", "item").rename("reward")


def by_stratum(context: AuditContext) -> Section | None:
    """Rankings within each stratum, of a model that has deviations."""
    if "deviation" not in context.program.sites:
        return None
    rewards = stratum_rewards(context.result)
    common = sections.ranked(context.result["posterior"].dataset["reward"], context.level)
    places = common.set_index("item")["rank"]
    tables = {
        name: sections.ranked(rewards.sel(stratum=name, drop=True), context.level)
        for name in rewards["stratum"].values.tolist()
    }
    first = {str(name): table["item"].iloc[0] for name, table in tables.items()}
    others = {name: item for name, item in first.items() if item != places.index[0]}
    parts = [table.assign(stratum=name) for name, table in tables.items()]
    table = pd.concat(parts, ignore_index=True)
    return Section(
        key="strata",
        title="Rankings by stratum",
        findings=(
            {"code": "strata", "first": places.index[0], "of": len(first), "others": others},
        ),
        columns=(
            Column("rank", "range"),
            Column("item", "name"),
            Column("reward", "interval"),
            Column("p_best", "percent"),
            Column("common_rank", "whole"),
        ),
        table=table.assign(common_rank=table["item"].map(places)),
        group="stratum",
        facts={"first": first},
    )


def position(context: AuditContext) -> Section | None:
    """Position bias of the crowd and of each annotator, who favours the first most on top."""
    bias = position_bias(context.program, context.result)
    if bias is None:
        return None
    data, audit, level = context.program.data, context.audit, context.level
    share = bias.crowd_share(data.judgements_by(data.judge).astype(float))
    low, high = np.quantile(share, ((1 - level) / 2, (1 + level) / 2))
    crowd = {"first_share": share.mean(), "first_share_low": low, "first_share_high": high}
    votes = data.halved()
    crowd["observed_first_share"] = float(np.sum(votes.wins) / np.sum(votes.weight))
    separate = order_share(data) >= MIXED_ORDER
    findings = [{"code": "position" if separate else "one_order"} | crowd]
    table, figures = None, {}
    if audit is not None and "first_share" in audit.table:
        table = audit.table.to_dataframe().reset_index()
        table = table.sort_values("first_share", ascending=False, kind="stable", ignore_index=True)
        figures = {"position_bias": {"audit": audit}}
        voted = table[table["judgements"] > 0]
        if separate and len(voted) > 1:
            biased = int((voted["p_position_bias"] >= level).sum())
            findings.append({"code": "position_of_judges", "biased": biased, "of": len(voted)})
    return Section(
        key="position_bias",
        title="Position bias",
        findings=tuple(findings),
        columns=(
            Column(data.judge, "name"),
            Column("judgements", "whole", "votes"),
            Column("first_share", "interval", marks=(0.5,)),
            Column("p_position_bias", "percent"),
            Column("position_bias", "number"),
        ),
        table=table,
        facts=crowd,
        figures=figures,
    )


COMPARISONS = register(
    Kind(
        data=Comparisons,
        readers=(
            Reader(
                Comparisons.from_frame,
                shapes=(("winner", "loser"), ("first", "second", "outcome")),
                bad_rows=compared_with_itself,
            ),
            Reader(
                Comparisons.from_rankings,
                may_be_empty=("places",),
                on_request="each ranking is read as comparisons of its places, which are not"
                " independent: intervals are too narrow",
            ),
        ),
        needs={
            "position_bias": ("first", "second", "outcome"),
            "covariates": ("features",),
            "strata": ("stratum",),
            ContextualBTL: ("features",),
            LinearExtendedBTL: ("features",),
        },
        implies={"ties": {"ties": "keep"}},
        models=tuple(vars(models)[name] for name in models.__all__),
        default=ExtendedBTL(competence="signed"),
        words=Words("vote", "votes"),
        questions=Candidates.pairs,
        quantities=comparisons.quantities,
        truths=Truths(
            calibrate=calibrate_comparisons, number=known_orders, columns=COLUMNS, answer="winner"
        ),
        threshold=0.25,
        columns=(
            sections.COMPETENCE,
            sections.GUESSING,
            Column("p_careless", "percent"),
            Column("p_different_taste", "percent"),
            sections.ADVERSARY,
            sections.ACCURACY,
            sections.AGREEMENT,
            sections.INFLUENCE,
        ),
        sections=(sections.ranking, by_stratum, position),
        discrepancies=DISCREPANCIES,
    )
)
