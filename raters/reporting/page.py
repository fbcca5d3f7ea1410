"""Facts of a report as one dictionary of plain values; the forms of a report are views of it."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.auditing.agreement import is_measurable
from raters.auditing.audit import Audit
from raters.auditing.pairwise import pairwise
from raters.auditing.verdicts import DIFFERS, IN_QUESTION, VERDICTS
from raters.errors import DataWarning
from raters.inference.mixing import FEWEST_DRAWS
from raters.judgements.base import Judgements
from raters.judgements.names import counted
from raters.kinds import AuditContext, Column, Kind, Section, Table, kind_of
from raters.program import Program
from raters.reporting import convergence, facts, sentences, steps
from raters.reporting.cite import known_entries
from raters.reporting.sections import sections_of

# A program that reads the JSON looks at this; it rises when a name in it changes its meaning or
# goes.
SCHEMA_VERSION = 5
# Judges of the matrix, and how many of them may be those who should go or be looked at.
MATRIX, _SUSPECTS = 30, 20


def facts_of(
    program: Program[Any],
    result: xr.DataTree,
    audit: Audit,
    dropped: xr.DataTree | None,
    questions: pd.DataFrame | None,
    note: str,
    title: str | None,
    command: str,
) -> dict[str, Any]:
    """Facts of a report, in the order in which they are read."""
    data, kind = program.data.unpadded(), kind_of(program.data)
    real = AuditContext(Program(program.model, data), result, audit, audit.level, dropped)
    sections = list(sections_of(real))
    people = judges(audit, kind)
    fitted = convergence.convergence(real.program, result, audit, command)
    page = {
        "schema_version": SCHEMA_VERSION,
        "title": title or f"Audit of {counted(len(people), data.judge, _judges(data))}",
        "kind": kind.name,
        "judge": data.judge,
        "judged": audit.judged,
        "words": kind.words._asdict() | {"lowest": kind.lowest},
        "answer": _answer(audit, people, fitted, kind, sections),
        "worlds": _worlds(audit),
        "columns": [_column(column, audit.margin) for column in columns(audit, kind)],
        "annotators": people,
        "sections": {section.key: section_facts(section, audit.margin) for section in sections},
        "agreement": _agreement(data, audit, people),
        "convergence": fitted,
        "next": (
            steps.next_steps(real, people, fitted, command)
            | {
                "questions": [] if questions is None else questions,
                "question_columns": [
                    dataclasses.asdict(column) for column in question_columns(data, questions)
                ],
                "questions_note": note,
            }
        ),
        "how": _how(real, audit, kind, sections, command),
        "cite": known_entries(program.model, str(result.attrs.get("backend", ""))),
    }
    plain: dict[str, Any] = facts.plain(page)
    return plain


def _judges(data: Judgements) -> str:
    return facts.plural_noun(data.judge)


# ---------------------------------------------------------------- the audit's table


def judges(audit: Audit, kind: Kind) -> list[dict[str, Any]]:
    """Rows of the audit's table with a reason: those who should go, then those to look at, each
    least trusted first."""
    in_worlds = _in_worlds(audit)
    return [
        row
        | {"reason": _reason(row, audit, kind)}
        | ({"worlds": in_worlds[row[audit.judge]]} if in_worlds else {})
        for row in by_verdict(audit)
    ]


def by_verdict(audit: Audit) -> list[dict[str, Any]]:
    """Rows of the audit's table in the order of `judges`."""
    frame = facts.audit_frame(audit)
    place = frame["verdict"].map(dict(zip(VERDICTS, range(len(VERDICTS)), strict=True)))
    rows = frame.iloc[np.argsort(place.to_numpy(), kind="stable")].to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _in_worlds(audit: Audit) -> dict[Any, list[dict[str, Any]]]:
    """Judged quantity of each judge in each of several possible worlds; empty with one."""
    if (table := audit.tables.get("worlds")) is None:
        return {}
    frame = table.to_dataframe().reset_index()
    return {
        name: part.drop(columns=[audit.judge, "world"]).to_dict("records")
        for name, part in frame.groupby(audit.judge, sort=False)
    }


def _worlds(audit: Audit) -> dict[str, Any] | None:
    """Probabilities of several possible worlds, and what they are; None with one."""
    if (table := audit.tables.get("worlds")) is None:
        return None
    probability = table["probability"].values.tolist()
    return {"probability": probability, "sentence": sentences.worlds(audit)}


def _reason(row: Mapping[Any, Any], audit: Audit, kind: Kind) -> str:
    """Reason for a verdict; nothing for those who can stay."""
    if row["verdict"] == "too few judgements":
        return sentences.too_few(row, audit, kind.words)
    if row["verdict"] == "too few draws":
        return f"the fit holds fewer than {FEWEST_DRAWS} effective draws: draw more"
    if row["verdict"] == "keep":
        return ""
    if row.get("gives_one_answer"):
        return sentences.one_answer(audit)
    if kind.reason is None:
        return sentences.general_reason(row, audit)
    return kind.reason({**row, "anchored": not audit.anchor.is_missing})


def columns(audit: Audit, kind: Kind) -> list[Column]:
    """Columns of the audit's table that a report shows, the judged quantity first."""
    table = audit.table
    chosen = [column for column in kind.columns if column.name in table]
    judged = [column for column in chosen if column.name == audit.judged]
    if judged:
        return judged + [column for column in chosen if column.name != audit.judged]
    heading = _heading(audit.judged)
    first = Column(audit.judged, heading, "interval", f"The verdicts are about {heading}.")
    others = [
        str(name)
        for name, values in table.data_vars.items()
        if values.dtype.kind == "f"
        and name != audit.judged
        and not str(name).endswith(("_low", "_high"))
    ]
    return [first] + [
        Column(name, _heading(name), "percent" if name.startswith("p_") else "number")
        for name in others
    ]


def _heading(name: str) -> str:
    """Heading of a column that the kind does not describe: ``p_`` stands for a probability."""
    words = name.replace("_", " ")
    return f"P({words.removeprefix('p ')})" if name.startswith("p_") else words


def _column(column: Column, margin: float) -> dict[str, Any]:
    plain = dataclasses.asdict(column)
    return plain | {"meaning": column.meaning.replace("{margin}", f"{margin:g}")}


# ---------------------------------------------------------------- the answer


def _answer(
    audit: Audit,
    people: list[dict[str, Any]],
    fitted: dict[str, Any],
    kind: Kind,
    sections: list[Section],
) -> dict[str, Any]:
    """Judges to drop, how sure that is, and its cost; and the headlines of sections."""
    by_verdict = {
        verdict: [row for row in people if row["verdict"] == verdict] for verdict in VERDICTS
    }
    p_bad = {
        verdict: np.array([row["p_below"] for row in rows]) for verdict, rows in by_verdict.items()
    }
    judged = np.concatenate([p_bad[verdict] for verdict in (*IN_QUESTION, "keep")])
    costs, total = audit.costs, sum(int(row["judgements"]) for row in people)
    numbers = {
        "counts": {verdict: len(rows) for verdict, rows in by_verdict.items()},
        "flagged": [row[audit.judge] for row in by_verdict["drop"]],
        "differing": [row[audit.judge] for row in by_verdict[DIFFERS]],
        "review": [row[audit.judge] for row in by_verdict["review"]],
        "expected_wrong_drops": float((1 - p_bad["drop"]).sum()),
        "expected_share_of_wrong_drops": audit.wrong_drops,
        "expected_good_differing": float((1 - p_bad[DIFFERS]).sum()),
        "expected_bad_kept": float(p_bad["keep"].sum()),
        "expected_cost": float(
            (p_bad["keep"].sum() + p_bad[DIFFERS].sum()) * costs.keep_bad
            + (1 - p_bad["drop"]).sum() * costs.drop_good
            + len(p_bad["review"]) * costs.review
        ),
        "expected_cost_of_keeping_all": float(judged.sum() * costs.keep_bad),
        "judgements": total,
        "judgements_of_flagged": sum(int(row["judgements"]) for row in by_verdict["drop"]),
    }
    text = {
        "stands_on": audit.anchor.sentence,
        "sentence": sentences.answer(numbers, audit, kind.words),
        "not_final": sentences.not_final(fitted, audit),
        "headlines": [section.headline for section in sections if section.headline],
        "sure": sentences.sure(numbers, audit, kind.words),
        "would_change": sentences.would_change(audit),
    }
    return text | {"relied_on": fitted["relied_on"]} | numbers


# ---------------------------------------------------------------- sections of a kind


def section_facts(section: Section, margin: float) -> dict[str, Any]:
    """A section as plain values; its limits stand at the end of a page."""
    return {
        "title": section.title,
        "sentence": section.sentence,
        **section.facts,
        "counts": dict(section.counts),
        "tables": [_table(table, margin) for table in section.tables],
        "matrices": [dataclasses.asdict(matrix) for matrix in section.matrices],
    }


def _table(table: Table, margin: float) -> dict[str, Any]:
    return {
        "key": table.key,
        "heading": table.heading,
        "caption": table.caption,
        "num_open": table.num_open,
        "columns": [_column(column, margin) for column in table.columns],
        "rows": list(table.rows),
    }


# ---------------------------------------------------------------- agreement


def _agreement(data: Judgements, audit: Audit, people: list[dict[str, Any]]) -> dict[str, Any]:
    """Agreement of those who matter most with one another, and where the answers are names or sides
    of a pair the statistics that are corrected for chance."""
    code = {str(name): place for place, name in enumerate(data.judges)}
    chosen = _most_relevant(people, audit.judged)
    matrix = pairwise(data, np.array([code[str(row[data.judge])] for row in chosen], int))
    numbers = {
        "annotators": [row[data.judge] for row in chosen],
        "verdicts": [row["verdict"] for row in chosen],
        "of": len(people),
        "with_answers": sum(row["judgements"] > 0 for row in people),
        "by_chance": by_chance(data),
        "share": matrix.share,
        "common": matrix.common,
        "mean": float(np.nanmean(matrix.share)) if (matrix.common > 0).any() else None,
    }
    return numbers | {
        "sentence": sentences.matrix(numbers, data),
        "chance": sentences.chance(data),
        **agreement_statistics(data, audit.level),
    }


def agreement_statistics(data: Judgements, level: float) -> dict[str, Any]:
    """Statistics of agreement of all judges, and why there are none."""
    statistics, note = None, ""
    if is_measurable(data):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            statistics, note = facts.agreement_or_why_not(data, level)
    return {
        "statistics": None if statistics is None else _named(statistics),
        "statistics_note": note,
    }


def by_chance(data: Judgements) -> float:
    """Probability that two who answer without looking agree."""
    if data.pair is not None or not data.listed:
        return 0.5
    _, _, answer, weight = data.tallies()
    counts = np.bincount(answer, weight)
    return float(((counts / counts.sum()) ** 2).sum())


def _most_relevant(people: list[dict[str, Any]], judged: str) -> list[dict[str, Any]]:
    """All judges who answered, or those in question and the most active others, least trusted
    first."""
    active = sorted(
        (row for row in people if row["judgements"] > 0), key=lambda row: -row["judgements"]
    )
    if len(active) > MATRIX:
        others = [row for row in active if row["verdict"] not in IN_QUESTION]
        suspects = [row for each in IN_QUESTION for row in active if row["verdict"] == each]
        suspects = suspects[: max(_SUSPECTS, MATRIX - len(others))]
        active = suspects + others[: MATRIX - len(suspects)]
    return sorted(active, key=lambda row: (-row["p_below"], row[judged]))


def _named(statistics: pd.DataFrame) -> pd.DataFrame:
    table = statistics.reset_index(names="statistic")
    return table.assign(name=table["statistic"].map(facts.STATISTICS))


# ---------------------------------------------------------------- next, and how


def question_columns(data: Judgements, questions: pd.DataFrame | None) -> list[Column]:
    """Columns of the table of next questions: the question, the judge to ask, and the answer."""
    if questions is None:
        return []
    asked = [
        Column(name, "ask" if name == "by" else name.replace("_", " "), "text")
        for name in question_roles(data)
    ]
    if data.success is not None:
        name, _ = data.success
        heading = f"P({data.pair[0]} wins)" if data.pair else name.replace("_", " ")
        asked.append(Column(name, heading, "percent"))
    else:
        asked.append(Column(data.predicted, "likely answer", "text"))
        asked.append(Column(f"p_{data.predicted}", "its probability", "percent"))
    return [column for column in asked if column.name in questions]


def question_roles(data: Judgements) -> list[str]:
    """Names of the columns of a question, that of the judge (``by``) last."""
    return sorted(data.rows(slice(0, 1)).question_names(), key=lambda name: name == "by")


def _how(
    context: AuditContext, audit: Audit, kind: Kind, sections: list[Section], command: str
) -> dict[str, Any]:
    """Computation of the numbers, and their limits."""
    data = context.program.data
    costs = {name: getattr(audit.costs, name) for name in ("keep_bad", "drop_good", "review")}
    return computed(context, command) | {
        "rule": audit.rule,
        "threshold": audit.threshold,
        "level": audit.level,
        "margin": audit.margin,
        "min_judgements": audit.min_judgements,
        "costs": costs,
        "limits": sentences.limits(data, kind.words, audit)
        + [text for section in sections for text in section.limits],
    }


def computed(context: AuditContext, command: str) -> dict[str, Any]:
    """The model, the data and the fit."""
    model, data = context.program.model, context.program.data
    documentation = (type(model).__doc__ or "").strip()
    sizes = facts.data_facts(data)
    return {
        "model": repr(model),
        "model_sentence": " ".join(documentation.partition("\n\n")[0].split()),
        "fit": facts.fit_facts(context.result),
        "data": sizes,
        "data_sentence": sentences.data_sentence(sizes, data, kind_of(data).words),
        "command": command,
    }
