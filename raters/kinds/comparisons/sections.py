"""Sections of a report on comparisons: strata, position, style, ties, and one annotator."""

from __future__ import annotations

import numpy as np

from raters import kinds
from raters.auditing.intervals import mean_and_interval, table
from raters.auditing.ranks import ranked, ranked_by
from raters.fitting.result import draws_of
from raters.judgements.connection import MIXED_ORDER, order_share
from raters.kinds.comparisons.audit import position_bias
from raters.kinds.sections import shown, ties_of_equals
from raters.models.comparisons.contradictions import MOST, information_shares
from raters.models.comparisons.directions import competences
from raters.terms.ties import ties_of

# Draws that shares of an interval are computed of.
_DRAWS = 100


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


def style(context: kinds.AuditContext) -> kinds.Section | None:
    """Coefficients of the features of the two sides, beside rewards."""
    sites = context.program.sites
    if not {"coefficient", "reward"} <= set(sites) or sites["coefficient"].dims != ("feature",):
        return None
    draws, data = draws_of(context.program, context.result)[0], context.program.data
    drawn = draws["coefficient"]
    columns = {"p_positive": (drawn > 0).mean(0)}
    found = table("feature", data.feature_names, columns, {"coefficient": drawn}, context.level)
    rows = found.to_dataframe().reset_index()
    return kinds.Section(
        key="style",
        findings=(kinds.finding("style", features=rows.to_dict("records")),),
        columns=shown("feature coefficient p_positive"),
        table=rows,
    )


def ties(context: kinds.AuditContext) -> kinds.Section | None:
    """Probability that a vote between two equal items is a tie."""
    if ties_of(context.program.model) is None:
        return None
    data = context.program.data
    weight = np.asarray(data.weight, float)
    return ties_of_equals(context, float(weight[np.asarray(data.wins) == 0.5].sum() / weight.sum()))


def leading_annotator(context: kinds.AuditContext) -> kinds.Section | None:
    """The annotator who has most of the information about the rewards, if anybody has."""
    program, data = context.program, context.program.data
    if not {"competence", "reward"} <= set(program.sites) or len(program.sites["reward"].dims) > 1:
        return None
    draws = draws_of(program, context.result, _DRAWS)[0]
    competence, bias = competences(program, draws), draws.get("position_bias")
    if bias is None or bias.ndim < 2:
        bias = np.zeros_like(competence)
    each = zip(competence, draws["reward"], bias, strict=True)
    halved = data.halved()
    shares = np.array([information_shares(halved, *one) for one in each])
    judge = int(np.argmax(shares.mean(0)))
    votes = data.judgements_by(data.judge)
    if (votes > 0).sum() < 2 or shares[:, judge].mean() <= MOST:
        return None
    share = mean_and_interval("share", shares[:, judge], context.level)
    numbers = {name: float(value) for name, value in share.items()}
    numbers |= {"of_votes": float(votes[judge] / votes.sum())}
    found = kinds.finding("leading", name=data.annotators[judge], **numbers)
    return kinds.Section("leading_annotator", findings=(found,))
