"""What a report says of an audit, as one dictionary of plain values; its forms are views of this."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters import _facts, _report_fit, _report_words
from raters._pairwise import pairwise
from raters._result import data_of
from raters.audit import Audit
from raters.cite import known_entries
from raters.data import Comparisons
from raters.errors import DataWarning
from raters.labels import Labels
from raters.model import Model

# A program that reads the JSON looks at this; it rises when a name in it changes its meaning or goes.
SCHEMA_VERSION = 1
VERDICTS = ("drop", "review", "keep", "not enough votes")
# Annotators of the matrix, and how many of them may be those who should go or be looked at.
MATRIX, _SUSPECTS = 30, 20
# Items whose label is most doubtful.
_DOUBTFUL = 200


def facts_of(
    model: Model, result: xr.DataTree, found: Audit, questions: pd.DataFrame | None, note: str, title: str | None, command: str
) -> dict[str, Any]:
    """The facts, in the order in which they are read."""
    data = data_of(result).unpadded()
    people = annotators(found)
    fitted = _report_fit.convergence(model, result, data, command)
    facts = {
        "schema_version": SCHEMA_VERSION,
        "title": title or f"Audit of {_report_words.counted(data.num_annotators, 'annotator')}",
        "kind": "labels" if isinstance(data, Labels) else "comparisons",
        "answer": _answer(found, people, fitted),
        "annotators": people,
        "items": _label_items(found, data) if isinstance(data, Labels) else _rankings(result, found.level),
        "agreement": _agreement(data, found, people),
        "convergence": fitted,
        "next": _report_fit.steps(model, people, fitted, data, command)
        | {"questions": [] if questions is None else questions, "questions_note": note},
        "how": _how(model, result, found, data, command),
        "cite": known_entries(model, str(result.attrs.get("backend", ""))),
    }
    return _facts.plain(facts)


def annotators(found: Audit) -> list[dict[str, Any]]:
    """All of the audit's table, with a reason: those who should go, then those to look at, each least trusted first."""
    frame = _facts.audit_frame(found)
    place = frame["verdict"].map(dict(zip(VERDICTS, range(len(VERDICTS)), strict=True)))
    rows = frame.iloc[np.argsort(place.values, kind="stable")].to_dict("records")
    return [row | {"reason": _report_words.reason(row, found)} for row in rows]


def _answer(found: Audit, people: list[dict[str, Any]], fitted: dict[str, Any]) -> dict[str, Any]:
    """Who should go, how sure that is, and what it costs."""
    by_verdict = {verdict: [row for row in people if row["verdict"] == verdict] for verdict in VERDICTS}
    p_bad = {verdict: np.array([row["p_below"] for row in rows]) for verdict, rows in by_verdict.items()}
    judged = np.concatenate([p_bad[verdict] for verdict in VERDICTS[:3]])
    costs, votes = found.costs, sum(int(row["votes"]) for row in people)
    numbers = {
        "counts": {verdict: len(rows) for verdict, rows in by_verdict.items()},
        "flagged": [row["annotator"] for row in by_verdict["drop"]],
        "review": [row["annotator"] for row in by_verdict["review"]],
        "expected_wrong_drops": float((1 - p_bad["drop"]).sum()),
        "expected_share_of_wrong_drops": found.wrong_drops,
        "expected_bad_kept": float(p_bad["keep"].sum()),
        "expected_cost": float(
            p_bad["keep"].sum() * costs.keep_bad
            + (1 - p_bad["drop"]).sum() * costs.drop_good
            + len(p_bad["review"]) * costs.review
        ),
        "expected_cost_of_keeping_all": float(judged.sum() * costs.keep_bad),
        "votes": votes,
        "votes_of_flagged": sum(int(row["votes"]) for row in by_verdict["drop"]),
    }
    said = {"sentence": _report_words.answer(numbers, found), "sure": _report_words.sure(numbers, found, fitted)}
    return said | {"relied_on": fitted["relied_on"]} | numbers


# ---------------------------------------------------------------- items


def _rankings(result: xr.DataTree, level: float) -> dict[str, Any]:
    """The items from most to least preferred; of a mixture, for each type."""
    reward: Any = result["posterior"]["reward"]
    if "type" not in reward.dims:
        rankings = [{"type": None, "share": 1.0, "ranking": _facts.ranking(reward, level)}]
    else:
        share = result["posterior"]["type_weight"].mean(("chain", "draw"))
        rankings = [
            {
                "type": kind,
                "share": float(share.sel(type=kind)),
                "ranking": _facts.ranking(reward.sel(type=kind, drop=True), level),
            }
            for kind in reward["type"].values.tolist()
        ]
    return {"number": reward.sizes["item"], "sentence": _report_words.ranked(rankings, level), "rankings": rankings}


def _label_items(found: Audit, labels: Labels) -> dict[str, Any]:
    """How many items are of which class, how many of those labels are expected to be wrong, and the most doubtful."""
    items = found.items
    assert items is not None
    frame = _facts.items_frame(items)
    said = frame["label"].value_counts()
    sizes = _facts.data_facts(labels)
    numbers = {
        "number": labels.num_items,
        "by_class": [{"class": name, "items": int(said.get(name, said.get(str(name), 0)))} for name in labels.classes],
        "known_truths": sizes["known_truths"],
        "expected_wrong": found.expected_wrong,
        "expected_share_wrong": found.expected_wrong / labels.num_items,
    }
    return numbers | {"sentence": _report_words.labelled(numbers), "doubtful": frame.head(_DOUBTFUL)}


# ---------------------------------------------------------------- agreement


def _agreement(data: Comparisons | Labels, found: Audit, people: list[dict[str, Any]]) -> dict[str, Any]:
    """Who agrees with whom, for those who matter most; of labels also the statistics that are corrected for chance."""
    code = {str(name): place for place, name in enumerate(data.annotators)}
    chosen = _most_relevant(people)
    matrix = pairwise(data, np.array([code[str(row["annotator"])] for row in chosen], int))
    statistics, silence = None, ""
    if isinstance(data, Labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            statistics, silence = _facts.agreement_or_why_not(data, found.level)
    numbers = {
        "annotators": [row["annotator"] for row in chosen],
        "verdicts": [row["verdict"] for row in chosen],
        "of": len(people),
        "with_answers": sum(row["votes"] > 0 for row in people),
        "by_chance": _by_chance(data),
        "share": matrix.share,
        "common": matrix.common,
        "mean": float(np.nanmean(matrix.share)) if (matrix.common > 0).any() else None,
    }
    return numbers | {
        "sentence": _report_words.matrix(numbers, isinstance(data, Labels)),
        "statistics": None if statistics is None else _named(statistics),
        "statistics_note": silence,
    }


def _by_chance(data: Comparisons | Labels) -> float:
    """How often two agree who answer without looking, but each as everybody does on the whole; votes are of two sides."""
    if not isinstance(data, Labels):
        return 0.5
    given = np.bincount(np.asarray(data.label, int), np.asarray(data.weight, float), data.num_classes)
    return float(((given / given.sum()) ** 2).sum())


def _most_relevant(people: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All annotators who answered, or those who should go, those to look at and the most active others, least trusted first."""
    there = sorted((row for row in people if row["votes"] > 0), key=lambda row: -row["votes"])
    if len(there) > MATRIX:
        drop, review = ([row for row in there if row["verdict"] == verdict] for verdict in ("drop", "review"))
        others = [row for row in there if row["verdict"] not in ("drop", "review")]
        suspects = [*drop, *review][: max(_SUSPECTS, MATRIX - len(others))]
        there = suspects + others[: MATRIX - len(suspects)]
    return sorted(there, key=lambda row: (-row["p_below"], row["competence"]))


def _named(statistics: pd.DataFrame) -> pd.DataFrame:
    table = statistics.reset_index(names="statistic")
    return table.assign(name=table["statistic"].map(_facts.STATISTICS))


# ---------------------------------------------------------------- how


def _how(model: Model, result: xr.DataTree, found: Audit, data: Comparisons | Labels, command: str) -> dict[str, Any]:
    costs = {name: getattr(found.costs, name) for name in ("keep_bad", "drop_good", "review")}
    return {
        "model": repr(model),
        "model_sentence": (type(model).__doc__ or "").strip().splitlines()[0] if type(model).__doc__ else "",
        "fit": _facts.fit_facts(result),
        "data": _facts.data_facts(data),
        "rule": found.rule,
        "threshold": found.threshold,
        "level": found.level,
        "margin": found.margin,
        "min_votes": found.min_votes,
        "costs": costs,
        "command": command,
        "not_said": _report_words.NOT_SAID[isinstance(data, Labels)],
    }
