"""Sections of a report on ratings."""

from __future__ import annotations

import dataclasses

from raters import kinds
from raters.kinds import sections
from raters.kinds.ratings import audit as audited
from raters.kinds.sections import shown

# A bias of at least so many levels is named.
_FAR = 0.25


def ranking(context: kinds.AuditContext) -> kinds.Section | None:
    """Items by their rewards, each with its fair rating."""
    section = sections.ranking(context)
    if section is None or section.table is None:
        return None
    fair = audited.items(context.program, context.result, context.level).to_dataframe()
    new = fair.drop(columns=[name for name in fair if name in section.table])
    rank, item, _, *others = section.columns
    columns = (rank, item, *shown("fair_rating mean_rating"), *others)
    return dataclasses.replace(section, columns=columns, table=section.table.join(new, on="item"))


def severity(context: kinds.AuditContext) -> kinds.Section | None:
    """The most severe and the most lenient annotator, and who leaves out levels of the scale."""
    audit = context.audit
    if audit is None:
        return None
    frame = audit.table.to_dataframe()
    frame = frame[frame["judgements"] > 0].sort_values("bias", kind="stable")
    if len(frame) < 2:
        return None
    apart = frame[(frame["bias_low"] > 0) | (frame["bias_high"] < 0)]
    apart = apart[apart["bias"].abs() >= _FAR]
    few = frame[frame["levels_used"] < context.program.data.num_levels]
    names, bias = frame.index.tolist(), frame["bias"].tolist()
    numbers = {
        "severe_or_lenient": apart.index.tolist(),
        "not_all_levels": few.index.tolist(),
        "severe": names[0],
        "severe_bias": bias[0],
        "lenient": names[-1],
        "lenient_bias": bias[-1],
    }
    return kinds.Section(
        key="severity", findings=(kinds.finding("severity", of=len(frame), far=_FAR, **numbers),)
    )
