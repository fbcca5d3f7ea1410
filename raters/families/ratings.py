"""Ratings as a kind of judgement."""

from __future__ import annotations

import dataclasses

from raters.auditing import ratings
from raters.auditing.calibrated_orders import known_orders
from raters.auditing.calibrated_ratings import calibrate_ratings
from raters.auditing.known_orders import COLUMNS
from raters.families import sections
from raters.judgements.ratings import Ratings
from raters.kinds import AuditContext, Column, Kind, Reader, Section, Truths, Words, register
from raters.models import ratings as models
from raters.models.ratings import ManyFacet

# A bias of at least so many levels is named.
_FAR = 0.25


def ranking(context: AuditContext) -> Section | None:
    """Items by their rewards, each with its fair rating."""
    section = sections.ranking(context)
    if section is None or section.table is None:
        return None
    fair = ratings.items(context.program, context.result, context.level).to_dataframe()
    rank, item, *others = section.columns
    shown = (Column("fair_rating", "interval", marks=()), Column("mean_rating"))
    return dataclasses.replace(
        section,
        columns=(rank, item, *shown, *others[1:]),
        table=section.table.join(
            fair.drop(columns=[name for name in fair if name in section.table]), on="item"
        ),
    )


def severity(context: AuditContext) -> Section | None:
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
    facts = {
        "severe_or_lenient": [str(name) for name in apart.index],
        "not_all_levels": [str(name) for name in few.index],
    }
    ends = {
        "severe": frame.index[0],
        "severe_bias": frame["bias"].iloc[0],
        "lenient": frame.index[-1],
        "lenient_bias": frame["bias"].iloc[-1],
    }
    return Section(
        key="severity",
        title="Severity",
        findings=({"code": "severity", "of": len(frame), "far": _FAR} | ends | facts,),
        facts=facts,
        figures={"levels": {"audit": audit}},
    )


RATINGS = register(
    Kind(
        data=Ratings,
        readers=(
            Reader(Ratings.from_frame),
            Reader(Ratings.from_wide, shapes=(("item", "columns"),), may_be_empty=("columns",)),
        ),
        models=tuple(vars(models)[name] for name in models.__all__),
        default=ManyFacet(),
        words=Words("rating", "ratings"),
        quantities=ratings.quantities,
        truths=Truths(
            calibrate=calibrate_ratings, number=known_orders, columns=COLUMNS, answer="value"
        ),
        threshold=0.25,
        columns=(
            sections.COMPETENCE,
            sections.ACCURACY,
            Column("correlation"),
            Column("bias"),
            sections.GUESSING,
            sections.ADVERSARY,
            Column("levels_used", "whole"),
        ),
        sections=(ranking, severity),
    )
)
