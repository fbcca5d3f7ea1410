"""Facts of a report without an audit: nobody is judged, or the model treats all judges alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pandas as pd
import xarray as xr

from raters.auditing.agreement import is_measurable
from raters.auditing.verdicts import IN_QUESTION
from raters.kinds import AuditContext, kind_of
from raters.program import Program
from raters.reporting import convergence, facts, page, sentences, steps
from raters.reporting.cite import known_entries
from raters.reporting.sections import sections_of

# Probability of the intervals, where no audit says another one.
_LEVEL = 0.9


def why_unjudged(
    program: Program[Any], name_of: Callable[[type], str] = attrgetter("__name__")
) -> str:
    """Sentences that say why a model judges nobody; empty where it does."""
    kind, data = kind_of(program.data), program.data
    if kind.unjudged or data.judge in program.axes:
        return kind.unjudged
    who = facts.plural_noun(data.judge)
    own, other = name_of(type(program.model)), name_of(type(kind.default))
    return (
        f"{own} treats all {who} alike, so that nobody is judged; {other} tells them apart."
        " Nothing here tells whether the crowd is right: what most say is taken as it is, and known"
        " truths tell of the items that they belong to and of no others."
    )


def unjudged_facts(
    program: Program[Any],
    result: xr.DataTree,
    questions: pd.DataFrame | None,
    note: str,
    title: str | None,
    command: str,
) -> dict[str, Any]:
    """Facts of a report without an audit: the sections of the kind, the fit, and what to do
    next."""
    data = program.data.unpadded()
    program, kind = Program(program.model, data), kind_of(data)
    context = AuditContext(program, result, None, _LEVEL)
    sections = list(sections_of(context))
    fitted = convergence.convergence(program, result, None, command)
    headlines = [section.headline for section in sections if section.headline]
    sentence = headlines[0] if headlines else sections[0].sentence if sections else ""
    columns = page.question_columns(data, questions)
    plain: dict[str, Any] = facts.plain(
        {
            "schema_version": page.SCHEMA_VERSION,
            "title": title or f"{kind.words.many.capitalize()} by {facts.plural_noun(data.judge)}",
            "kind": kind.name,
            "judge": data.judge,
            "judged": "",
            "words": kind.words._asdict() | {"lowest": kind.lowest},
            "answer": {
                "stands_on": why_unjudged(program),
                "sentence": sentence,
                "not_final": sentences.not_final(fitted, None),
                "headlines": headlines[1:],
                "sure": [],
                "would_change": "",
                "counts": {},
                "relied_on": fitted["relied_on"],
            },
            "worlds": None,
            "columns": [],
            "annotators": [],
            "sections": {section.key: page.section_facts(section, 0.0) for section in sections},
            "agreement": _agreement(program),
            "convergence": fitted,
            "next": {
                "steps": _next_steps(program, fitted, command),
                "questions": [] if questions is None else questions,
                "question_columns": [dataclasses.asdict(column) for column in columns],
                "questions_note": note,
            },
            "how": page.computed(context, command) | {"level": _LEVEL, "limits": []},
            "cite": known_entries(program.model, str(result.attrs.get("backend", ""))),
        }
    )
    return plain


def _next_steps(
    program: Program[Any], fitted: dict[str, Any], command: str
) -> list[dict[str, Any]]:
    """A better fit, checks, and other models."""
    todo, _ = steps.about_the_fit(
        program, {verdict: [] for verdict in IN_QUESTION}, fitted, command
    )
    words = kind_of(program.data).words.many
    others = [
        one.__name__ for one in kind_of(program.data).models if one is not type(program.model)
    ]
    compared = (
        f"Compare models by how well they predict {words} left out, with arviz.compare:"
        f" {sentences.joined(others)}."
    )
    todo += [(compared, None)] if others else []
    return [{"what": what, "line": line} for what, line in todo]


def _agreement(program: Program[Any]) -> dict[str, Any] | None:
    """Statistics of agreement without a matrix, whose judges would stand in the order of an audit;
    None of a kind in which nobody is right or wrong."""
    data, kind = program.data, kind_of(program.data)
    if kind.unjudged or not is_measurable(data):
        return None
    who = facts.plural_noun(data.judge)
    return {
        "annotators": [],
        "verdicts": [],
        "of": len(data.judges),
        "with_answers": int((data.judgements_by(data.judge) > 0).sum()),
        "by_chance": page.by_chance(data),
        "share": [],
        "common": [],
        "mean": None,
        "sentence": f"All {who} together; an audit shows them one by one.",
        "chance": sentences.chance(data),
        **page.agreement_statistics(data, _LEVEL),
    }
