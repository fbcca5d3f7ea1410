"""Comparisons as a kind of judgement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raters import kinds
from raters.acquisition.questions.candidates import Candidates
from raters.auditing import comparisons
from raters.auditing.intervals import mean_and_interval
from raters.auditing.position import position_bias
from raters.auditing.truth.known_orders import COLUMNS
from raters.auditing.truth.order_calibration import ComparisonCalibration, known_orders
from raters.families.discrepancies.comparisons import DISCREPANCIES
from raters.families.sections import ranked, ranked_by, ranking, shown
from raters.judgements.comparisons import Comparisons
from raters.judgements.separation import MIXED_ORDER, order_share
from raters.models import comparisons as models
from raters.models.comparisons import ContextualBTL, ExtendedBTL, LinearExtendedBTL


def compared_with_itself(frame: Any, columns: Mapping[str, str]) -> tuple[str, np.ndarray]:
    """Rows whose two sides are one item."""
    sides = [columns[role] for role in ("winner", "loser", "first", "second") if role in columns]
    if len(sides) != 2 or not set(sides) <= set(frame.columns):
        return "an item compared with itself", np.zeros(len(frame), bool)
    one, other = (frame[side].astype(str).to_numpy() for side in sides)
    return "an item compared with itself", one == other


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


COMPARISONS = kinds.Kind(
    data=Comparisons,
    readers=(
        kinds.Reader(
            Comparisons.from_frame,
            shapes=(("winner", "loser"), ("first", "second", "outcome")),
            bad_rows=compared_with_itself,
        ),
        kinds.Reader(
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
    models=tuple(vars(models)[name] for name in models.__all__ if name != "PairwiseModel"),
    default=ExtendedBTL(competence="signed"),
    words=kinds.Words("vote", "votes"),
    questions=Candidates.pairs,
    quantities=comparisons.quantities,
    truths=kinds.Truths(ComparisonCalibration.of, known_orders, COLUMNS, answer="winner"),
    threshold=0.25,
    columns=shown(
        "competence p_guessing p_careless p_different_taste p_adversarial"
        " accuracy agreement influence"
    ),
    sections=(ranking, by_stratum, position),
    discrepancies=DISCREPANCIES,
)
