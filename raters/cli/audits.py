"""The commands ``raters audit``, ``report``, ``fit`` and ``rank``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

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
from raters.cli.fitting import Task, file_of, task_of
from raters.cli.settings import built, pairs
from raters.errors import DataError, SettingError, refuse
from raters.errors.validation import share
from raters.families.sections import ranked, ranked_by
from raters.fitting.draws import check_several
from raters.reporting.facts import as_json, why_unjudged
from raters.reporting.report import check_form

# Writers of files by name.
Files = dict[str, Callable[[Path], object]]
# Sites that say which is better, in the order of looking for them.
_RANKED = ("reward", "worth", "quality", "ability")


class Part(NamedTuple):
    """Additions by `--with`: text, files, and a table, which is among the facts."""

    table: pd.DataFrame
    files: Files
    text: str = ""


def audit(given: Namespace) -> None:
    """Fit, judge, suggest; write everything, then print it."""
    _check_reports(given.report, given, "--report")
    outputs.check_writable(given.out, given, names=("result.nc", "summary.json"))
    with collected_warnings() as caught:
        result, page, parts = _audited(given)
        facts = {"settings": vars(given), "warnings": caught}
        facts |= {"with": {name: part.table for name, part in parts.items()}}
        files = dict(page.files)
        files["result.nc"] = partial(outputs.to_netcdf, result)
        files["summary.json"] = partial(_write_text, as_json({**page.facts, **facts}))
        for part in parts.values():
            files |= part.files
        texts = {path: page.as_text(path) for path in given.report}
        written = outputs.write_folder(given.out, files, given.force, whole=True)
        _write_reports(texts, given.force)
    _print(page.to_text(), parts)
    note([f"wrote {', '.join([*written, *map(str, texts)])} to {given.out}"], given.quiet)


def report(given: Namespace) -> None:
    """Report a fit: print it, or write it in the form that a file's name asks for."""
    _check_reports(given.out, given)
    with collected_warnings():
        _, page, parts = _audited(given)
        texts = {path: page.as_text(path) for path in given.out}
        _write_reports(texts, given.force)
    if not texts:
        _print(page.to_text(), parts)
    note([f"wrote {path}" for path in texts], given.quiet)


def _print(text: str, parts: dict[str, Part]) -> None:
    print(text)
    for name, part in parts.items():
        print(f"{name.upper()}\n")
        if part.text:
            print(part.text)
        else:
            show(part.table)


def _audited(given: Namespace) -> tuple[xr.DataTree, rt.reporting.Report, dict[str, Part]]:
    """The fit, and the report on it."""
    names = [name.strip() for name in given.more.split(",") if name.strip()]
    for name in names:
        if name not in (*_PARTS, "influence"):
            refuse("more", name, "is unknown", f"choose some of {', '.join(_PARTS)}, influence")
    gold = [tables.read_table(path) for path in given.gold]
    known = pd.concat(gold, ignore_index=True) if gold else None
    threshold = getattr(given, "threshold", None)
    check_limits(0.0 if threshold is None else threshold, given.level, 0.05, 5)
    options = {"costs": built(Costs, pairs(getattr(given, "cost", ()), "cost", "drop_good=5"))}
    task, _ = task_of(given)
    program, drop = task.program, getattr(given, "drop", False)
    if why := why_unjudged(program):
        if gold or given.reference or given.trust_crowd or drop:
            expected = f"--gold, --reference, --trust-crowd and --drop need an audit. {why}"
            raise SettingError(expected)
    elif given.trust_crowd and (gold or given.reference):
        raise SettingError("--trust-crowd does not go with --gold and --reference; leave one out")
    trusted_codes(program.data, given.reference)
    truths = task.kind.truths
    if truths is None and (gold or given.reference):
        many = task.kind.words.many
        raise SettingError(f"--gold and --reference need a calibration, and {many} have none")
    if known is not None and truths is not None and not truths.number(program.data, known):
        refuse("gold", problem="holds no truth", expected=f"fill in its column {truths.answer!r}")
    # Log-likelihoods of single judgements are most of a result, and nothing of an audit.
    result = task.fit(log_likelihood=False)
    check_several(result, "an audit says how sure it is")
    model, seed, verdicts, without = program.model, given.seed, None, None
    if not why:
        verdicts = rt.audit(
            model,
            result,
            gold=known,
            reference=CROWD if given.trust_crowd else tuple(given.reference),
            threshold=threshold,
            level=given.level,
            influence="influence" in names,
            seed=seed,
            **options,
        )
        without = _dropped(task, verdicts) if drop else None
    flagged = [] if verdicts is None else verdicts.flagged
    questions, why_none = next_questions(program, result, flagged, seed)
    page = rt.report(
        model, result, verdicts, dropped=without, questions=questions, questions_note=why_none
    )
    return result, page, {n: _PARTS[n](task, result, known) for n in names if n in _PARTS}


def _dropped(task: Task, verdicts: rt.auditing.Audit) -> xr.DataTree | None:
    """A second fit without those flagged, where there are some, and others."""
    if not verdicts.flagged:
        note(["nobody is flagged, so there is nothing to drop"], task.given.quiet)
        return None
    fit: dict[str, Any] = {"progress": task.bars, "log_likelihood": False, "seed": task.given.seed}
    model, data = task.program.model, task.program.data
    try:
        return rt.auditing.drop(model, data, verdicts, task.backend, **fit)
    except DataError as error:
        note([f"no second fit: {error}"])
        return None


def _check_reports(paths: Sequence[Path], given: Namespace, option: str = "--out") -> None:
    """Raise when a report cannot be written, before anything is fitted."""
    for path in paths:
        check_form(path)
        if path.parent.is_dir():
            outputs.check_writable(path, given, option=option)


def _write_reports(texts: dict[Path, str], force: bool) -> None:
    for path, text in texts.items():
        outputs.write_file(path, partial(_write_text, text), force)


def _write_text(text: str, path: Path) -> None:
    path.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- --with


def _agreement(task: Task, result: xr.DataTree, gold: Any) -> Part:
    """Agreement of annotators, observed and beyond chance."""
    table = rt.agreement(task.program.data, level=task.given.level).reset_index()
    return Part(table, {"agreement.csv": partial(tables.write_for_people, table)})


def _check(task: Task, result: xr.DataTree, gold: Any) -> Part:
    """Discrepancies of model and judgements, and shared mistakes."""
    model, seed = task.program.model, task.given.seed
    checked = rt.check(model, result, seed=seed)
    frame = checked.table.to_dataframe().reset_index().rename(columns={"title": "meaning"})
    files: Files = {"checks.csv": partial(tables.write_for_people, frame)}
    if len(frame):
        files["checks.png"] = lambda path: figures.checks(checked).savefig(path)
    try:
        shared = rt.checking.dependence(model, result, gold, seed=seed)
    except NothingShared as error:
        return Part(frame, files, f"{checked}\nShared mistakes are not measured: {error}.")
    files["dependence.csv"] = partial(tables.write_for_people, shared.pairs())
    return Part(frame, files, f"{checked}\n{shared}")


def _types(task: Task, result: xr.DataTree, gold: Any) -> Part:
    """Types of annotators who want different things, of the fit or of a mixture fitted quickly."""
    if "types" not in result.children:
        models = [one for one in task.kind.models if one.__name__.startswith("Mixture")]
        if not models or task.program.data.judge not in task.program.data.question_axes():
            many = task.kind.words.many
            refuse(
                "more", "types", f"is of comparisons and rankings, not of {many}", "leave it out"
            )
        model: Any = models[0]
        data, seed = task.program.data, task.given.seed
        result = rt.fit(model(num_types=3), data, rt.PGEM(), seed=seed, progress=task.bars)
    responsibility = result["types"]["responsibility"].transpose("annotator", "type")
    chances: pd.DataFrame = responsibility.to_pandas()
    people = pd.DataFrame({"type": chances.idxmax(axis=1), "probability": chances.max(axis=1)})
    ranking = ranking_of(result, task.given.level)
    assert ranking is not None
    shares = result["posterior"]["type_weight"].mean(("chain", "draw")).to_series()
    rows = []
    for name, part in shares.items():
        items = ranking.loc[ranking["type"] == name, "item"].map(str).tolist()
        ends = {"prefers": ", ".join(items[:3]), "likes_least": ", ".join(items[:-4:-1])}
        number = int((people["type"] == name).sum())
        rows.append({"type": name, "share": part, "annotators": number} | ends)
    files: Files = {
        "types.csv": partial(tables.write_for_people, ranking),
        "types-annotators.csv": partial(tables.write_for_people, people.reset_index()),
        "profiles.png": lambda path: figures.profiles(result).savefig(path),
    }
    return Part(pd.DataFrame(rows), files)


_PARTS: dict[str, Callable[[Task, xr.DataTree, Any], Part]] = {
    "agreement": _agreement,
    "check": _check,
    "types": _types,
}


# ---------------------------------------------------------------- fit and rank


def fit(given: Namespace) -> None:
    """Fit and save."""
    outputs.check_writable(given.out, given)
    if tables.is_result(file_of(given)):
        raise SettingError(f"{str(file_of(given))!r} is a fit already; give a table")
    with collected_warnings():
        task, _ = task_of(given)
        result = task.fit()
        outputs.write_file(given.out, partial(outputs.to_netcdf, result), given.force)
    seconds = f"{result.attrs['seconds']:.1f} s"
    note([f"wrote {given.out} ({task.program.model!r}, {task.backend!r}, {seconds})"], given.quiet)


def rank(given: Namespace) -> None:
    """Rank the items of a table or a result."""
    outputs.check_table(given)
    share("level", given.level)
    with collected_warnings():
        task, _ = task_of(given)
        table = ranking_of(task.fit(log_likelihood=False), given.level)
    if table is None:
        raise SettingError(
            f"{task.kind.words.many} under {type(task.program.model).__name__} put nothing in an"
            " order; raters audit says what they tell"
        )
    outputs.write_table(table, given)
    show(table.head(20))
    if len(table) > 20:
        note([f"the first 20 of {len(table)}; --out writes all"], given.quiet)


def ranking_of(result: xr.DataTree, level: float) -> pd.DataFrame | None:
    """Items from the best to the worst, of each type where there are types; None of a model that
    puts nothing in an order."""
    posterior = result["posterior"].dataset
    for site in _RANKED:
        if site in posterior:
            values = posterior[site]
            axes = [str(name) for name in values.dims if name not in ("chain", "draw", "type")]
            if len(axes) != 1:
                return None
            named = values.rename({axes[0]: "item"})
            if "type" in values.dims:
                table = ranked_by(named, "type", level)
            else:
                table = ranked(named, level)
            return table.rename(columns={"item": axes[0]})
    return None
