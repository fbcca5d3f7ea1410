"""Effects on votes beside the rewards, as sections of a report: style, ties, and one annotator."""

from __future__ import annotations

import numpy as np

from raters import kinds
from raters.auditing.intervals import mean_and_interval, table
from raters.fitting.result import draws_of
from raters.kinds.sections import shown, ties_of_equals
from raters.models.comparisons.contradictions import MOST, information_shares
from raters.models.comparisons.directions import competences
from raters.terms.ties import ties_of

# Draws that shares of an interval are computed of.
_DRAWS = 100


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
