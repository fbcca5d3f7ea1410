"""Facts of a report as one dictionary of plain values; every form of a report is a view of it."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.auditing.agreement import agreement, is_measurable
from raters.auditing.audit import Audit, audit, by_verdict
from raters.auditing.verdicts import DIFFERS, IN_QUESTION, VERDICTS
from raters.errors import DataError, DataWarning, refuse
from raters.fitting.storage import shown
from raters.inference.mixing import FEWEST_DRAWS
from raters.judgements.base import Judgements
from raters.judgements.names import name_text, plural
from raters.judgements.stored import imported_class
from raters.kinds import AuditContext, Column, Section, finding, kind_of
from raters.program import Program
from raters.reporting.cite import known_entries
from raters.reporting.convergence import convergence

# A program that reads the JSON looks at this; it rises when a name in it changes its meaning.
SCHEMA_VERSION = 7
# Packages that produced the numbers.
_PACKAGES = ("raters", "numpyro", "jax", "arviz", "xarray", "numpy")


def facts_of(
    context: AuditContext,
    sections: list[Section],
    questions: pd.DataFrame | None,
    note: str,
    title: str | None,
) -> dict[str, Any]:
    """Facts of a report, in the order in which they are read."""
    program, audited, result = context.program, context.audit, context.result
    data, kind = program.data, kind_of(program.data)
    fit = convergence(context)
    people = [] if audited is None else judges(audited)
    worlds = None if audited is None else audited.tables.get("worlds")
    judge, limits = data.judge.replace("_", " "), list[Any]()
    if audited is not None:
        on_crowd = audited.anchor.is_missing or audited.anchor.crowd
        codes = "careless_or_misled", "crowd_is_right" if on_crowd else "fair_sample"
        limits = list(map(finding, (*codes, "beyond_the_model")))
    page = {
        "schema_version": SCHEMA_VERSION,
        "title": title or f"{kind.words.many.capitalize()} by {plural_noun(data.judge)}",
        "kind": kind.name,
        "judge": data.judge,
        "judged": "" if audited is None else audited.judged,
        "words": kind.words._asdict() | {"judge": judge, "judges": plural_noun(data.judge)},
        "asked": _asked(context),
        "answer": _answer(context) | {"relied_on": fit["relied_on"]},
        "worlds": None if worlds is None else worlds["probability"].values,
        "columns": [] if audited is None else list(map(vars, audit_columns(audited, program))),
        "annotators": people,
        "sections": {section.key: _section(section) for section in sections},
        "agreement": None if kind.unjudged else _agreement(data, context.level),
        "convergence": fit,
        "next": {
            "steps": _next(context, people, fit),
            "questions": [] if questions is None else questions,
            "question_columns": list(map(vars, question_columns(data, questions))),
            "note": note,
        },
        "limits": limits + [limit for section in sections for limit in section.limits],
        "how": _how(context),
        "cite": known_entries(program.model, str(result.attrs.get("backend", ""))),
    }
    return plain(page)


def plural_noun(axis: str) -> str:
    """Plural of the name of an axis, as a text has it."""
    return plural(axis).replace("_", " ")


# ---------------------------------------------------------------- what was asked, and how


def data_facts(data: Judgements) -> dict[str, Any]:
    """Sizes of the data."""
    latent = None if data.known is None else data.axes[data.known]
    axes = [axis for axis in data.question_axes() if axis != latent]
    sizes: dict[str, Any] = {plural_noun(axis): len(data.coords[axis]) for axis in axes}
    sizes[kind_of(data).words.many] = data.num_judgements
    if data.answer in data.axes:
        sizes["classes"] = list(data.coords[data.axes[data.answer]])
    if data.known is not None:
        sizes["known_truths"] = data.num_known
    if "feature" in data.names:
        sizes["features"] = [name for name in data.coords["feature"] if name != "intercept"]
    return sizes


def _asked(context: AuditContext) -> dict[str, Any]:
    """The question: the data, the model, and the limits of the audit."""
    audited, model = context.audit, type(context.program.model).__name__
    asked = {"data": data_facts(context.program.data), "model": model, "level": context.level}
    if audited is None:
        return asked
    names = ("threshold", "margin", "min_judgements")
    return asked | {name: getattr(audited, name) for name in names} | {"costs": vars(audited.costs)}


def _how(context: AuditContext) -> dict[str, Any]:
    """Computation of the numbers."""
    attrs = {str(name): value for name, value in context.result.attrs.items()}
    container: Any = imported_class(attrs["data"], (Judgements,))
    about_data = {"data", *container.statics(derived=True)}
    fit = {name: value for name, value in attrs.items() if name not in about_data}
    documentation = (type(context.program.model).__doc__ or "").strip()
    return {
        "model": repr(context.program.model),
        "model_sentence": " ".join(documentation.partition("\n\n")[0].split()),
        "rule": "" if context.audit is None else context.audit.rule,
        "fit": fit | {name: shown(fit[name]) for name in ("model", "backend") if name in fit},
        "versions": {name: version(name) for name in _PACKAGES},
    }


# ---------------------------------------------------------------- judges


def judges(audited: Audit) -> list[dict[str, Any]]:
    """Rows of the audit's table, each with the reason for the verdict."""
    rows: list[dict[str, Any]] = by_verdict(audited).to_dict("records")
    worlds = audited.tables.get("worlds")
    for row in rows:
        row["reason"] = reason_of(row, audited)
        if worlds is not None:
            both = worlds.sel({audited.judge: row[audited.judge]}, drop=True)
            row["worlds"] = both.to_dataframe().to_dict("records")
    return rows


def reason_of(row: Mapping[Any, Any], audited: Audit) -> dict[str, Any] | None:
    """Code of the reason for a verdict, with its numbers; None for those who can stay."""
    plain_reasons: dict[str, dict[str, Any] | None] = {
        "keep": None,
        "too few judgements": {"code": "few_judgements", "number": row["judgements"]},
        "too few draws": {"code": "few_draws", "needed": FEWEST_DRAWS},
    }
    if row["verdict"] in plain_reasons:
        return plain_reasons[row["verdict"]]
    if row.get("gives_one_answer"):
        return {"code": "one_answer"}
    chances = {
        "adversarial": row.get("p_adversarial", 0.0),
        "own_taste": row.get("p_different_taste", 0.0),
        "careless": max(row.get(f"p_{name}", 0.0) for name in ("guessing", "spammer", "careless")),
    }
    code = max(chances, key=lambda name: chances[name])
    reason = {"code": code, "probability": chances[code]}
    if not chances[code] > 0.5:
        reason = {"code": "below", "probability": row["p_below"]}
    if row.get("bias_class") is not None and row.get("bias", 0.0) >= 0.1:
        reason |= {"too_often": row["bias_class"], "bias": row["bias"]}
    return reason | {"anchored": not audited.anchor.is_missing}


def audit_columns(audited: Audit, program: Program[Any]) -> list[Column]:
    """Columns of the audit's table that a report shows, the judged quantity first."""
    table = audited.table
    chosen = [column for column in kind_of(program.data).columns if column.name in table]
    if audited.judged not in [column.name for column in chosen]:
        numbers = [str(name) for name in table if table[name].dtype.kind == "f"]
        chosen = [Column(audited.judged, "interval")] + [
            Column(name, "percent" if name.startswith("p_") else "number")
            for name in numbers
            if name != audited.judged and not name.endswith(("_low", "_high"))
        ]
    return sorted(chosen, key=lambda column: column.name != audited.judged)


# ---------------------------------------------------------------- the answer


def why_unjudged(program: Program[Any]) -> str:
    """Sentence that says why a model judges nobody; empty where it does."""
    kind, data = kind_of(program.data), program.data
    if kind.unjudged or data.judge in program.axes:
        return kind.unjudged
    name, other = type(program.model).__name__, type(kind.default).__name__
    who = plural_noun(data.judge)
    return f"{name} treats all {who} alike, so that nobody is judged; {other} tells them apart."


def _answer(context: AuditContext) -> dict[str, Any]:
    """Judges to drop, how sure that is, what it stands on, and what it costs."""
    audited = context.audit
    if audited is None:
        return {"stands_on": why_unjudged(context.program), "doubts": [], "counts": {}}
    frame = by_verdict(audited)
    numbers = frame.assign(count=1)[["verdict", "count", "p_below", "judgements"]]
    sums = numbers.groupby("verdict").sum().reindex(VERDICTS, fill_value=0)
    counts, bad, judgements = (sums[name] for name in sums)
    names = {name: frame[audited.judge][frame["verdict"] == name].tolist() for name in VERDICTS}
    costs, good = audited.costs, counts - bad
    cost = (bad["keep"] + bad[DIFFERS]) * costs.keep_bad
    cost += good["drop"] * costs.drop_good + counts["review"] * costs.review
    return {
        "stands_on": audited.anchor.sentence,
        "doubts": list(audited.anchor.doubts),
        "anchored": not audited.anchor.is_missing,
        "calibrated": audited.calibration is not None,
        "counts": counts.to_dict(),
        "flagged": names["drop"],
        "differing": names[DIFFERS],
        "review": names["review"],
        "expected_wrong_drops": good["drop"],
        "expected_share_of_wrong_drops": audited.wrong_drops,
        "expected_good_differing": good[DIFFERS],
        "expected_bad_kept": bad["keep"],
        "expected_cost": cost,
        "expected_cost_of_keeping_all": bad[[*IN_QUESTION, "keep"]].sum() * costs.keep_bad,
        "judgements": judgements.sum(),
        "judgements_of_flagged": judgements["drop"],
    }


def _next(
    context: AuditContext, people: list[dict[str, Any]], fit: dict[str, Any]
) -> list[dict[str, Any]]:
    """Steps that would change the answer, in order, as codes with numbers and names."""
    audited, judge = context.audit, context.program.data.judge
    doubted = audited is not None and bool(audited.anchor.doubts)
    steps: list[dict[str, Any]] = [{"code": "look_at_truths"}] * doubted
    names = {name: [row[judge] for row in people if row["verdict"] == name] for name in VERDICTS}
    in_question = [row for row in people if row["verdict"] in IN_QUESTION]
    adversaries = [row[judge] for row in in_question if row.get("p_adversarial", 0.0) > 0.8]
    if not fit["settled"]:
        steps.append({"code": "fit_again", "sampler": fit["sampler"], "open": fit["open"]})
    elif not fit["exact"] and fit["sampler"] and in_question:
        steps.append({"code": "check_exactly", "sampler": fit["sampler"]})
    if audited is not None and audited.settling is not None:
        settling = audited.settling
        first = settling.questions.head(3).astype(str).agg(" and ".join, axis=1).tolist()
        facts = ("is_enough", "number", "settled", "open")
        numbers = {name: getattr(settling, name) for name in facts}
        steps.append({"code": "find_truths", "first": first} | numbers)
    if names["drop"]:
        steps.append({"code": "drop", "names": names["drop"], "done": context.dropped is not None})
    last = {
        "ask_about_instructions": adversaries,
        "review": names["review"],
        "ask_more": names["too few judgements"],
    }
    steps += [{"code": code, "names": some} for code, some in last.items() if some]
    return [*steps, {"code": "suggest" if people else "compare"}]


# ---------------------------------------------------------------- sections


def sections_of(context: AuditContext) -> list[Section]:
    """Sections of the kind, and what changes without those flagged."""
    makers = (*kind_of(context.program.data).sections, without_flagged)
    sections = [section for make in makers if (section := make(context)) is not None]
    keys = [section.key for section in sections]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        expected = "give each section a key of its own"
        refuse("sections", twice, "are keys of several sections", expected)
    return sections


def _section(section: Section) -> dict[str, Any]:
    """A section as plain values."""
    table = section.table if section.columns else None
    rows = [] if table is None else table.to_dict("records")
    return {
        "title": section.title,
        "findings": section.findings,
        "columns": list(map(vars, section.columns)) if rows else [],
        "rows": rows,
        "group": section.group,
        "matrices": section.matrices,
    }


def without_flagged(context: AuditContext) -> Section | None:
    """Change of those who stay, and of the items, when those flagged are left out."""
    before, model = context.audit, context.program.model
    if context.dropped is None or before is None:
        return None
    names = ("threshold", "level", "margin", "min_judgements", "costs")
    after = audit(model, context.dropped, **{name: getattr(before, name) for name in names})
    stay = after.table[before.judge].values
    moves = pd.DataFrame(
        {
            before.judge: stay,
            "before": before.table[before.judged].sel({before.judge: stay}).values,
            "after": after.table[before.judged].values,
        }
    )
    moves = _largest(moves).head(5)
    left, every = (int(one.table["judgements"].sum()) for one in (after, before))
    numbers = {"judgements_left": left, "of": every, "moves": moves.to_dict("records")}
    findings = (finding("without", **numbers), *_changed_items(context))
    return Section("without_flagged", "Without those flagged", findings)


def _largest(moves: pd.DataFrame) -> pd.DataFrame:
    """Rows from the largest difference between before and after on."""
    size = (moves["after"] - moves["before"]).abs()
    return moves.loc[size.sort_values(ascending=False, kind="stable").index]


def _changed_items(context: AuditContext) -> list[dict[str, Any]]:
    """Items whose label or rank is another one without those flagged."""
    assert context.dropped is not None
    what, find = ("rank", ranks_of)
    if "classes" in context.result.children:
        what, find = ("label", labels_of)
    both = pd.DataFrame({"before": find(context.result), "after": find(context.dropped)})
    if both.index.name != "item":
        return []
    changes, tau = both[both["before"] != both["after"]].reset_index(), None
    if what == "rank":
        tau = float(both["before"].corr(both["after"], method="kendall"))
        changes = _largest(changes)
    numbers = {"what": what, "of": len(both), "kendall_tau": tau}
    return [finding("changed", **numbers, changes=changes.to_dict("records"))]


# ---------------------------------------------------------------- conclusions of a fit

# Sites that put something in an order, in the order of looking for them.
SCORES = ("reward", "worth", "quality", "ability")


def scores_of(posterior: xr.Dataset) -> xr.DataArray | None:
    """Draws of what puts entries in an order; None of a model without."""
    return next((posterior[site] for site in SCORES if site in posterior), None)


def ranks_of(result: xr.DataTree) -> pd.Series:
    """Place of each entry by its posterior mean; none of a model that puts none in order."""
    scores = scores_of(result["posterior"].dataset)
    if scores is None or scores.ndim != 3:
        return pd.Series(dtype=int)
    mean = scores.mean(("chain", "draw")).to_series()
    return mean.rank(ascending=False, method="first").astype(int)


def classes_of(result: xr.DataTree) -> pd.DataFrame:
    """Probability of each class of each item."""
    frame: pd.DataFrame = result["classes"]["responsibility"].transpose("item", ...).to_pandas()
    return frame


def labels_of(result: xr.DataTree) -> pd.Series:
    """Most probable class of each item; none of a model without classes of items."""
    if "classes" not in result.children:
        return pd.Series(dtype=object)
    return classes_of(result).idxmax(axis=1).map(name_text).astype(object)


# ---------------------------------------------------------------- agreement


def _agreement(data: Judgements, level: float) -> dict[str, Any] | None:
    """Statistics of the agreement of all judges; None where there are none."""
    if not is_measurable(data):
        return None
    with warnings.catch_warnings(), suppress(DataError):
        warnings.simplefilter("ignore", DataWarning)
        return {"statistics": agreement(data, level=level).reset_index(names="statistic")}
    return None


# ---------------------------------------------------------------- next questions


def question_columns(data: Judgements, questions: pd.DataFrame | None) -> list[Column]:
    """Columns of the table of next questions: the question, the judge to ask, and the answer."""
    if questions is None:
        return []
    asked = [Column(name, "text", "ask" * (name == "by")) for name in question_roles(data)]
    if data.success is not None:
        heading = f"P({data.pair[0]} wins)" if data.pair else ""
        asked.append(Column(data.success[0], "percent", heading))
    else:
        asked.append(Column(data.predicted, "text", "likely answer"))
        asked.append(Column(f"p_{data.predicted}", "percent", "its probability"))
    return [column for column in asked if column.name in questions]


def question_roles(data: Judgements) -> list[str]:
    """Names of the columns of a question, that of the judge (``by``) last."""
    return sorted(data.rows(slice(0, 1)).question_names(), key=lambda name: name == "by")


# ---------------------------------------------------------------- plain values


def plain(value: Any) -> Any:
    """The value as strict JSON has it: a number that is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("records"))
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def as_json(values: Mapping[str, Any]) -> str:
    """Strict JSON of `values`."""
    return json.dumps(plain(values), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
