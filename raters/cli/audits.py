"""The commands ``raters audit``, ``report``, ``fit`` and ``rank``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import figures
from raters.auditing.audit import check_limits
from raters.auditing.calibration import CROWD, trusted_codes
from raters.auditing.verdicts import Costs
from raters.checking.dependence import NothingShared
from raters.cli import outputs, tables
from raters.cli.asking import next_questions
from raters.cli.console import collected_warnings, note, show
from raters.cli.fitting import Task, Typed, task_of
from raters.cli.settings import built, pairs
from raters.errors import DataError, SettingError, refuse
from raters.fitting.draws import check_several
from raters.reporting.facts import as_json, why_unjudged
from raters.reporting.report import check_form

# Writers of files by name.
Files = dict[str, Callable[[Path], object]]
# Sites that say which is better, in the order of looking for them.
_RANKED = ("reward", "worth", "quality", "ability")


@dataclass(frozen=True)
class Asked:
    """Options of an audit."""

    gold: Sequence[Path] = ()
    reference: Sequence[str] = ()
    trust_crowd: bool = False
    threshold: float | None = None
    level: float = 0.9
    costs: Sequence[str] = ()
    drop: bool = False
    more: Sequence[str] = ()


@dataclass(frozen=True)
class Part:
    """Additions by `--with`: text, files, and facts."""

    text: str = ""
    table: pd.DataFrame | None = None
    files: Files = field(default_factory=dict)
    facts: Any = None


# ---------------------------------------------------------------- audit and report


def audit(
    typed: Typed,
    asked: Asked,
    batch_size: int,
    out: Path,
    report: Sequence[Path],
    rows: int,
    force: bool,
) -> None:
    """Fit, judge, suggest; write everything, then print it."""
    _check_reports(report, force, [typed.file])
    sure = ("result.nc", "summary.json")
    outputs.check_writable(out, folder=True, force=force, names=sure)
    with collected_warnings() as caught:
        result, page, parts = _audited(typed, asked, batch_size)
        settings = dataclasses.asdict(typed) | dataclasses.asdict(asked)
        summary = dict(page.facts) | {"settings": settings, "warnings": caught}
        summary |= {"with": {name: part.facts for name, part in parts.items()}}
        files = dict(page.files)
        if "items.csv" not in files and (ranking := ranked(result, asked.level)) is not None:
            files["items.csv"] = partial(tables.write_for_people, ranking)
        files["result.nc"] = partial(outputs.to_netcdf, result)
        files["summary.json"] = partial(_write_text, as_json(summary))
        for part in parts.values():
            files |= part.files
        texts = {path: page.as_text(path) for path in report}

        def write(folder: Path) -> None:
            for name, write_one in files.items():
                write_one(folder / name)

        written = outputs.write_folder(out, write, force=force)
        _write_reports(texts, force)
    _print(page.to_text(rows), parts)
    note([f"wrote {', '.join([*written, *map(str, report)])} to {out}"], typed.quiet)


def report(typed: Typed, asked: Asked, out: Sequence[Path], rows: int, force: bool) -> None:
    """Report a fit: print it, or write it in the form that a file's name asks for."""
    _check_reports(out, force, [typed.file])
    with collected_warnings():
        _, page, parts = _audited(typed, asked)
        texts = {path: page.as_text(path) for path in out}
    _write_reports(texts, force)
    if not out:
        _print(page.to_text(rows), parts)
    note([f"wrote {path}" for path in out], typed.quiet)


def _print(text: str, parts: dict[str, Part]) -> None:
    print(text)
    for name, part in parts.items():
        print(f"{name.upper()}\n")
        if part.table is not None:
            show(part.table)
        print(part.text)


def _audited(
    typed: Typed, asked: Asked, batch_size: int = 10
) -> tuple[xr.DataTree, rt.reporting.Report, dict[str, Part]]:
    """The fit, and the report on it."""
    for name in asked.more:
        if name not in (*_PARTS, "influence"):
            refuse("with", name, "is unknown", f"choose some of {', '.join(_PARTS)}, influence")
    gold = [tables.read_table(path) for path in asked.gold]
    task = task_of(typed)
    program, kind = task.program, task.kind
    why = why_unjudged(program)
    known = pd.concat(gold, ignore_index=True) if gold else None
    limits = _limits(asked, kind.threshold)
    if why and (gold or asked.reference or asked.trust_crowd or asked.drop):
        raise SettingError(f"--gold, --reference, --trust-crowd and --drop need an audit. {why}")
    anchor = {} if why else _anchor(asked, task, known)
    # Log-likelihoods of single judgements are most of a result, and nothing of an audit.
    result = task.fit(log_likelihood=False)
    check_several(result, "an audit says how sure it is")
    verdicts, without = None, None
    model, seed = program.model, typed.seed
    if not why:
        influence = "influence" in asked.more
        verdicts = rt.audit(model, result, **anchor, **limits, influence=influence, seed=seed)
        without = _dropped(task, verdicts) if asked.drop else None
    flagged = [] if verdicts is None else verdicts.flagged
    questions, why_none = next_questions(program, result, flagged, batch_size, seed)
    page = rt.report(
        model, result, verdicts, dropped=without, questions=questions, questions_note=why_none
    )
    more = [name for name in asked.more if name in _PARTS]
    return result, page, {name: _PARTS[name](task, result, asked, known) for name in more}


def _limits(asked: Asked, usual: float | None) -> dict[str, Any]:
    """Keyword arguments of the audit, checked before a fit."""
    costs = built(Costs, pairs(asked.costs, "cost", "drop_good=5"))
    threshold = usual if asked.threshold is None else asked.threshold
    limits = {"threshold": threshold, "level": asked.level, "costs": costs}
    check_limits(threshold, asked.level, 0.05, 5)
    return limits


def _anchor(asked: Asked, task: Task, known: pd.DataFrame | None) -> dict[str, Any]:
    """Keyword arguments of the audit that say who is right, checked before a fit."""
    data, truths = task.program.data, task.kind.truths
    if truths is None and (known is not None or asked.reference):
        many = task.kind.words.many
        raise SettingError(f"--gold and --reference need a calibration, and {many} have none")
    if asked.trust_crowd and (known is not None or asked.reference):
        raise SettingError("--trust-crowd does not go with --gold and --reference; leave one out")
    trusted_codes(data, asked.reference)
    if known is not None and truths is not None and not truths.number(data, known):
        column = truths.answer if truths.answer in known else known.columns[-1]
        refuse("gold", problem="holds no truth", expected=f"fill in its column {column!r}")
    return {"gold": known, "reference": CROWD if asked.trust_crowd else tuple(asked.reference)}


def _dropped(task: Task, verdicts: rt.auditing.Audit) -> xr.DataTree | None:
    """A second fit without those flagged, where there are some, and others."""
    if not verdicts.flagged:
        note(["nobody is flagged, so there is nothing to drop"], task.typed.quiet)
        return None
    model, data, seed = task.program.model, task.program.data, task.typed.seed
    try:
        return rt.auditing.drop(
            model, data, verdicts, task.backend, seed=seed, progress=task.bars, log_likelihood=False
        )
    except DataError as error:
        note([f"no second fit: {error}"])
        return None


def _check_reports(paths: Sequence[Path], force: bool, inputs: Sequence[Path]) -> None:
    """Raise when a report cannot be written, before anything is fitted."""
    for path in paths:
        check_form(path)
        if path.parent.is_dir() or path.parent == Path():
            outputs.check_writable(path, option="--report", force=force, inputs=inputs)


def _write_reports(texts: dict[Path, str], force: bool) -> None:
    for path, text in texts.items():
        outputs.write_file(path, partial(_write_text, text), force=force)


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- --with


def _agreement(task: Task, result: xr.DataTree, asked: Asked, gold: Any) -> Part:
    """Agreement of annotators, observed and beyond chance."""
    table = rt.agreement(task.program.data, level=asked.level).reset_index()
    write = partial(tables.write_for_people, table)
    return Part(table=table, files={"agreement.csv": write}, facts=table)


def _check(task: Task, result: xr.DataTree, asked: Asked, gold: Any) -> Part:
    """Discrepancies of model and judgements, and shared mistakes."""
    model, seed = task.program.model, task.typed.seed
    found = rt.check(model, result, seed=seed)
    frame = found.table.to_dataframe().reset_index().rename(columns={"title": "meaning"})
    files: Files = {"checks.csv": partial(tables.write_for_people, frame)}
    if len(frame):
        files["checks.png"] = lambda path: figures.checks(found).savefig(path)
    try:
        shared = rt.checking.dependence(model, result, gold, seed=seed)
    except NothingShared as error:
        return Part(f"{found}\nShared mistakes are not measured: {error}.", None, files, frame)
    files["dependence.csv"] = partial(tables.write_for_people, shared.pairs())
    return Part(f"{found}\n{shared}", None, files, frame)


def _types(task: Task, result: xr.DataTree, asked: Asked, gold: Any) -> Part:
    """Types of annotators who want different things, of the fit or of a mixture fitted quickly."""
    if "types" not in result.children:
        models = [one for one in task.kind.models if one.__name__.startswith("Mixture")]
        if not models or task.program.data.judge not in task.program.data.question_axes():
            many = task.kind.words.many
            refuse(
                "with", "types", f"is of comparisons and rankings, not of {many}", "leave it out"
            )
        model: Any = models[0]
        data, seed = task.program.data, task.typed.seed
        result = rt.fit(model(num_types=3), data, rt.PGEM(), seed=seed, progress=task.bars)
    chances = result["types"]["responsibility"].transpose("annotator", "type")
    likeliest = chances["type"].values[chances.values.argmax(1)]
    people = pd.DataFrame({"annotator": chances["annotator"].values, "type": likeliest})
    people["probability"] = chances.values.max(1)
    ranking = ranked(result, asked.level)
    assert ranking is not None
    weights = result["posterior"]["type_weight"].mean(("chain", "draw")).to_series()
    ends = ranking.groupby("type")["item"].agg(prefers=_first, likes_least=_last)
    summary = pd.DataFrame({"share": weights, "annotators": people.value_counts("type")})
    summary = summary.join(ends).fillna({"annotators": 0}).reset_index(names="type")
    files: Files = {
        "types.csv": partial(tables.write_for_people, ranking),
        "types-annotators.csv": partial(tables.write_for_people, people),
        "profiles.png": lambda path: figures.profiles(result).savefig(path),
    }
    return Part(table=summary, files=files, facts=summary)


def _first(names: pd.Series) -> str:
    return ", ".join(map(str, names.head(3)))


def _last(names: pd.Series) -> str:
    return ", ".join(map(str, names.tail(3)[::-1]))


_PARTS: dict[str, Callable[[Task, xr.DataTree, Asked, Any], Part]] = {
    "agreement": _agreement,
    "check": _check,
    "types": _types,
}


# ---------------------------------------------------------------- fit and rank


def fit(typed: Typed, out: Path, force: bool) -> None:
    """Fit and save."""
    outputs.check_writable(out, force=force, inputs=[typed.file])
    if tables.is_result(typed.file):
        raise SettingError(f"{str(typed.file)!r} is a fit already; give a table")
    with collected_warnings():
        task = task_of(typed)
        result = task.fit()
        outputs.write_file(out, partial(outputs.to_netcdf, result), force=force)
    seconds = f"{result.attrs['seconds']:.1f} s"
    note([f"wrote {out} ({task.program.model!r}, {task.backend!r}, {seconds})"], typed.quiet)


def rank(typed: Typed, level: float, rows: int, out: Path | None, force: bool) -> None:
    """Rank the items of a table or a result."""
    if out is not None:
        tables.table_format(out)
        outputs.check_writable(out, force=force, inputs=[typed.file])
    with collected_warnings():
        task = task_of(typed)
        table = ranked(task.fit(log_likelihood=False), level)
    if table is None:
        raise SettingError(
            f"{task.kind.words.many} under {type(task.program.model).__name__} put nothing in an"
            " order; raters audit says what they tell"
        )
    if out is not None:
        outputs.write_file(out, partial(tables.write_for_people, table), force=force)
        note([f"wrote {len(table)} rows to {out}"], typed.quiet)
    show(table.head(rows))
    if len(table) > rows:
        note([f"the first {rows} of {len(table)}; --rows {len(table)} shows all"], typed.quiet)


def ranked(result: xr.DataTree, level: float) -> pd.DataFrame | None:
    """Items from the best to the worst, of each type where there are types; None of a model that
    puts nothing in an order."""
    posterior = result["posterior"].dataset
    for site in _RANKED:
        if site in posterior:
            break
    else:
        return None
    values = posterior[site]
    (axis, *others) = [name for name in values.dims if name not in ("chain", "draw", "type")]
    if others:
        return None
    if "type" not in values.dims:
        return _ranking(values, str(axis), level)
    parts = []
    for number in values["type"].values:
        part = _ranking(values.sel(type=number), str(axis), level)
        part.insert(0, "type", number)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def _ranking(values: xr.DataArray, axis: str, level: float) -> pd.DataFrame:
    """Names along an axis from the highest value to the lowest, with intervals of their ranks."""
    draws = values.stack(sample=("chain", "draw")).transpose("sample", axis).values
    order = np.argsort(-draws.mean(0), kind="stable")
    draws = draws[:, order]
    places = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(draws, tails, axis=0)
    rank_low, rank_high = np.quantile(places, tails, axis=0, method="nearest")
    name = str(values.name)
    return pd.DataFrame(
        {
            "rank": np.arange(1, len(order) + 1),
            axis: values[axis].values[order],
            name: draws.mean(0),
            f"{name}_low": low,
            f"{name}_high": high,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "p_best": (places == 1).mean(0),
        }
    )
