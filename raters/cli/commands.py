"""The commands but for those of campaigns."""

from __future__ import annotations

import inspect
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import figures
from raters.acquisition import Candidates, Policy, formats, posterior
from raters.auditing.audit import check_limits
from raters.auditing.intervals import ranked_by
from raters.auditing.truth.calibration import CROWD, trusted_codes
from raters.auditing.verdicts import Costs
from raters.checking.dependence import NothingShared
from raters.cli import files, reading
from raters.cli.files import Files, collected_warnings, note, show, write_table
from raters.cli.reading import Task, chosen, flag_of, options_of, pairs, task_of
from raters.errors import DataError, SettingError, refuse
from raters.errors.validation import one_of, share
from raters.fitting.result import check_several, model_of
from raters.judgements.base import Judgements
from raters.judgements.names import dashed, name_text, shorten
from raters.judgements.reading.features import OF_ITEMS, in_units_of_users
from raters.judgements.reading.files import content_of, names_in, read_table, table_format
from raters.kinds import kind_of, registered_kinds
from raters.kinds.reading import shapes_of
from raters.program import Program
from raters.reporting.board import check_order
from raters.reporting.facts import as_json, scores_of, why_unjudged
from raters.reporting.judges.judges import people_and_prices
from raters.reporting.views import FORMS, as_options, check_form

# ---------------------------------------------------------------- audit and report


# From an export and a table to the entries of a new export.
Fill = Callable[..., formats.Entries]


class Part(NamedTuple):
    """Additions by `--with`: a table, which is among the facts, files, and text in its place."""

    table: pd.DataFrame
    files: Files
    text: str = ""


def audit(given: Namespace) -> None:
    """Fit, judge, suggest; write everything, then print it."""
    files.check_outputs(given, option="--report", check_form=check_form)
    files.check_outputs(given, (".json",), option="--labels")
    for path in given.labels:  # Whether an export can hold them, before anything is fitted.
        none: dict[str, list[Any]] = {"item": [], "label": [], "probability": []}
        _writer(path, none, formats.with_predictions, given)
    files.check_writable(given.out, given, names=("result.nc", "summary.json"))
    with collected_warnings() as caught:
        result, page, parts, items = _audited(given)
        # Without items, labels are refused before the fit.
        fill = formats.with_predictions
        table = None if items is None else items.to_dataframe().reset_index()
        labels = {path: _writer(path, table, fill, given) for path in given.labels}
        facts = {"settings": vars(given), "warnings": caught}
        facts |= {"with": {name: part.table for name, part in parts.items()}}
        # Figures go with a report, since drawing them takes seconds.
        outputs: Files = {n: w for n, w in page.files.items() if given.report or n.endswith(".csv")}
        outputs["result.nc"] = partial(files.to_netcdf, result)
        outputs["summary.json"] = partial(files.write_text, as_json({**page.facts, **facts}))
        for part in parts.values():
            outputs |= part.files
        reports = {path: page.as_text(path) for path in given.report}
        written = files.write_folder(given.out, outputs, given.force, whole=True)
        _write_reports(reports, given)
        for path, write in labels.items():
            files.write_file(path, write, given.force, given.quiet)
    _print(page, parts)
    note(f"wrote {', '.join(written)} to {given.out}", given.quiet)


def report(given: Namespace) -> None:
    """Report a fit: print it, or write it in the form that a file's name asks for."""
    files.check_outputs(given, check_form=check_form)
    with collected_warnings():
        _, page, parts, _ = _audited(given)
        _write_reports({path: page.as_text(path) for path in given.out}, given)
    if not given.out:
        _print(page, parts)


def _writer(path: Path, table: Any, fill: Fill, given: Namespace) -> files.Writer:
    """Writer of a table, or of the export that was read with what the table says."""
    if path.suffix.lower() != ".json":
        return partial(write_table, table)
    return partial(files.write_text, _into_export(fill, table, given))


def _into_export(fill: Fill, table: Any, given: Namespace) -> str:
    """JSON of the export that was read, with what a table says."""
    content = content_of(given.file)
    if given.file.suffix.lower() == ".json":  # Numbers as they are: tables keep their digits.
        content = json.loads(given.file.read_text(encoding="utf-8-sig"))
    if not isinstance(content, list):
        expected = "give JSON of Label Studio or Argilla, or write a table (.csv)"
        raise DataError(f"{str(given.file)!r} has no tasks; {expected}")
    return files.as_text(fill(content, table, control=given.control))


def _write_reports(texts: dict[Path, str], given: Namespace) -> None:
    for path, text in texts.items():
        files.write_file(path, partial(files.write_text, text), given.force, given.quiet)


def _print(page: rt.reporting.Report, parts: dict[str, Part]) -> None:
    print(page.to_text())
    for name, part in parts.items():
        print(f"{name.upper()}\n")
        if part.text:
            print(as_options(part.text))
        else:
            show(part.table)


def _audited(
    given: Namespace,
) -> tuple[xr.DataTree, rt.reporting.Report, dict[str, Part], xr.Dataset | None]:
    """The fit, the report on it, what was asked for beside it, and labels of the items."""
    names = [name.strip() for name in given.more.split(",") if name.strip()]
    for name in names:
        one_of("more", name, (*_PARTS, "influence"))
    threshold, drop = getattr(given, "threshold", None), getattr(given, "drop", False)
    check_limits(0.0 if threshold is None else threshold, given.level, 0.05, 5)
    (costs,) = reading.built(pairs(getattr(given, "cost", ()), "cost", "drop_good=5"), Costs)
    task, _ = task_of(given)
    program, truths = task.program, kind_of(task.program.data).truths
    gold, known = given.gold, _gold(given, task)
    if task.gold is not None and not gold and (truths is None or given.trust_crowd):
        known = None
        note("the known truths of the export are not used", given.quiet)
    if why := why_unjudged(program):
        if gold or given.reference or given.trust_crowd or drop:
            raise SettingError(f"--gold, --reference, --trust-crowd, --drop need an audit. {why}")
    elif given.trust_crowd and (gold or given.reference):
        raise SettingError("--trust-crowd does not go with --gold and --reference; leave one out")
    if getattr(given, "labels", ()) and (why or not program.has_truth):
        refuse("labels", given.labels, "need labels and an audit of them", "leave it out")
    trusted_codes(program.data, given.reference)
    if truths is None and (gold or given.reference):
        raise SettingError("--gold and --reference need a calibration, and this kind has none")
    if known is not None and truths is not None and not truths.number(program.data, known):
        refuse("gold", problem="holds no truth", expected=f"fill in its column {truths.answer!r}")
    # Log-likelihoods of single judgements are most of a result, and nothing of an audit.
    result = task.fit(log_likelihood=False)
    check_several(result, "an audit says how sure it is")
    verdicts, without = None, None
    if not why:
        options = {"threshold": threshold, "level": given.level, "costs": costs, "seed": given.seed}
        options |= {"gold": known, "influence": "influence" in names}
        options |= {"reference": CROWD if given.trust_crowd else tuple(given.reference)}
        verdicts = rt.audit(program.model, result, **options)
        without = _dropped(task, verdicts) if drop else None
    questions, reason = _next_questions(task, result, verdicts)
    asked: dict[str, Any] = {"questions": questions, "questions_note": reason}
    page = rt.report(program.model, result, verdicts, dropped=without, **asked)
    folder = given.out if isinstance(given.out, Path) else Path()
    stored = given.file if given.file.suffix == ".nc" else folder / "result.nc"
    came = {"front": "command line", "result": str(stored)}
    page = rt.reporting.Report({**page.facts, **came}, page.files)
    parts = {n: _PARTS[n](task, result, known) for n in names if n in _PARTS}
    return result, page, parts, None if verdicts is None else verdicts.items


def _gold(given: Namespace, task: Task) -> pd.DataFrame | None:
    """Known truths: of the tables that are named, or else of the export."""
    tables = [read_table(path) for path in given.gold]
    return pd.concat(tables, ignore_index=True) if tables else task.gold


def _dropped(task: Task, verdicts: rt.auditing.Audit) -> xr.DataTree | None:
    """A second fit without those flagged, where there are some, and others."""
    if not verdicts.flagged:
        note("nobody is flagged, so there is nothing to drop", task.given.quiet)
        return None
    model, data, options = task.program.model, task.program.data, task.options
    try:
        return rt.auditing.drop(model, data, verdicts, task.backend, **options)
    except DataError as error:
        note(f"no second fit: {error}")
        return None


def _next_questions(
    task: Task, result: xr.DataTree, verdicts: rt.auditing.Audit | None
) -> tuple[pd.DataFrame | None, str]:
    """The next questions, none of them to a judge who is to be dropped, or why there are none."""
    data, out = task.program.data, set(map(str, verdicts.flagged if verdicts else ()))
    who = [name for name in data.judges if str(name) not in out]
    if not who or data.answer_scale == "choice":
        return None, "" if who else "Everybody is flagged: there is nobody to ask."
    try:
        pool = _pool_of(task.program, who if out else ())
    except DataError:
        return None, "Everybody who stays has answered every question."
    # The best of all questions score hardly higher.
    pool = posterior.sample_of(pool, 100_000, np.random.default_rng(task.given.seed))
    return _questions(task, result, pool, policy=Policy(target="everything")), ""


def _agreement(task: Task, result: xr.DataTree, gold: Any) -> Part:
    """Agreement of annotators, observed and beyond chance."""
    table = rt.agreement(task.program.data, level=task.given.level).reset_index()
    return Part(table, {"agreement.csv": partial(write_table, table)})


def _check(task: Task, result: xr.DataTree, gold: Any) -> Part:
    """Discrepancies of model and judgements, and shared mistakes."""
    model, seed = task.program.model, task.given.seed
    checked = rt.check(model, result, seed=seed)
    frame = checked.table.to_dataframe().reset_index().rename(columns={"title": "meaning"})
    outputs: Files = {"checks.csv": partial(write_table, frame)}
    if len(frame):
        outputs["checks.png"] = lambda path: figures.checks(checked).savefig(path)
    try:
        shared = rt.checking.dependence(model, result, gold, seed=seed)
    except NothingShared as error:
        return Part(frame, outputs, f"{checked}\nShared mistakes are not measured: {error}.")
    outputs["dependence.csv"] = partial(write_table, shared.pairs())
    return Part(frame, outputs, f"{checked}\n{shared}")


def _types(task: Task, result: xr.DataTree, gold: Any) -> Part:
    """Types of annotators who want different things, of the fit or of a mixture fitted quickly."""
    data = task.program.data
    if "types" not in result.children:
        models = [one for one in kind_of(data).models if one.__name__.startswith("Mixture")]
        if not models or data.judge not in data.question_axes():
            refuse("more", "types", "is of comparisons and rankings", "leave it out")
        model: Any = models[0]
        result = rt.fit(model(num_types=3), data, rt.PGEM(), **task.options)
    responsibility = result["types"]["responsibility"].transpose("annotator", "type")
    chances: pd.DataFrame = responsibility.to_pandas()
    people = pd.DataFrame({"type": chances.idxmax(axis=1), "probability": chances.max(axis=1)})
    scores: Any = scores_of(result["posterior"].dataset)
    ranking = ranked_by(scores, "type", task.given.level)
    shares = result["posterior"]["type_weight"].mean(("chain", "draw")).to_series()
    names = ranking.groupby("type")["item"].agg(lambda items: list(map(str, items)))
    numbers = people["type"].value_counts().reindex(shares.index, fill_value=0)
    table = pd.DataFrame({"share": shares, "annotators": numbers}).rename_axis("type")
    table["prefers"] = names.map(lambda some: ", ".join(some[:3]))
    table["likes_least"] = names.map(lambda some: ", ".join(some[:-4:-1]))
    outputs: Files = {"types.csv": partial(write_table, ranking)}
    outputs["types-annotators.csv"] = partial(write_table, people.reset_index())
    outputs["profiles.png"] = lambda path: figures.profiles(result).savefig(path)
    return Part(table.reset_index(), outputs)


_PARTS = {"agreement": _agreement, "check": _check, "types": _types}


# ---------------------------------------------------------------- fit, rank and suggest


def fit(given: Namespace) -> None:
    """Fit and save."""
    files.check_writable(given.out, given)
    if given.file.suffix == ".nc":
        raise SettingError(f"{str(given.file)!r} is a fit already; give a table")
    if given.update is not None:
        _update(given)
        return
    with collected_warnings():
        task, _ = task_of(given)
        result = task.fit()
        files.write_file(given.out, partial(files.to_netcdf, result), given.force)
    seconds = f"{result.attrs['seconds']:.1f} s"
    note(f"wrote {given.out} ({task.program.model!r}, {task.backend!r}, {seconds})", given.quiet)


def _update(given: Namespace) -> None:
    """Add the judgements of a table to a stored fit; print what changed."""
    if given.model or given.backend or given.set or given.quick:
        raise SettingError("--update has a model; leave out --model, --backend, --set and --quick")
    with collected_warnings():
        result = files.read_result(given.update)
        _, more = reading.read_given(given, model_of(result))
        bars = not given.quiet and sys.stderr.isatty()
        updated = rt.update(result, more.judgements, seed=given.seed, progress=bars)
        files.write_file(given.out, partial(files.to_netcdf, updated.result), given.force)
    if len(updated.changes):
        show(updated.changes.head(40))
    weighted = f"by weights (Pareto k̂ {updated.pareto_k:.2f})"
    how = weighted if np.isfinite(updated.pareto_k) else "by another fit"
    seconds = f"{updated.result.attrs['seconds']:.1f} s"
    note(f"wrote {given.out}; {len(updated.changes)} changes, {how}, {seconds}", given.quiet)


def rank(given: Namespace) -> None:
    """Print a leaderboard of a table or a result, and write it in the form that is asked for."""
    share("level", given.level)
    files.check_outputs(given, (".png", *FORMS))
    with collected_warnings():
        task, _ = task_of(given)
        check_order(task.program, "table")
        options = {"level": given.level, "unit": given.unit, "by": given.by, "seed": given.seed}
        board = rt.leaderboard(task.fit(log_likelihood=False), **options)
    board = replace(board, facts={**board.facts, "front": "command line"})
    if given.out is not None:
        files.write_file(given.out, partial(_write_board, board), given.force, given.quiet)
    print(board.to_text(), end="")


def judges(given: Namespace) -> None:
    """Fit, compare the judges, and print their board, or the card of one."""
    files.check_outputs(given, FORMS)
    lengths = tuple(names_in(given.lengths)) if given.lengths else None
    if lengths is not None and len(lengths) != 2:
        refuse("lengths", given.lengths, "are not two columns", "write --lengths len_a,len_b")
    named = [*(lengths or ()), given.question, given.swapped, given.time]
    columns = [name for name in named if name]
    if given.file.suffix != ".nc" and columns:
        given.roles["columns"] = list(dict.fromkeys([*given.roles.get("columns", []), *columns]))
    costs = pairs(given.cost, "cost").items()
    cost = {name: reading.value_of(text, float) for name, text in costs}
    with collected_warnings():
        task, _ = task_of(given)
        kind = kind_of(task.program.data)
        if kind.name not in ("labels", "comparisons"):
            problem = f"is of {kind.words.many}, and judges are compared by labels or votes"
            refuse("table", str(given.file), problem, "raters audit says whom to trust")
        # What needs no fit is refused before it.
        people = names_in(given.people) if given.people else ()
        _, others, _ = people_and_prices(task.program.data, people, cost)
        judged = [name_text(task.program.data.judges[code]) for code in others]
        if given.card is not None and name_text(given.card) not in judged:
            refuse("card", given.card, "is no judge", f"name one of {shorten(judged)}")
        share("target", given.target)
        gold = _gold(given, task)
        options = {name: getattr(given, name) for name in ("target", "level", "seed")}
        options |= {name: getattr(given, name) or "" for name in ("question", "swapped", "time")}
        options |= {"lengths": lengths, "cost": cost or None, "gold": gold, "people": people}
        board = rt.judges(task.fit(log_likelihood=False), **options)
    board = replace(board, facts={**board.facts, "front": "command line"})
    for path in given.out:
        files.write_file(path, partial(_write_board, board), given.force, given.quiet)
    print(board if given.card is None else board.table.loc[name_text(given.card)].to_string())


def _write_board(board: Any, path: Path) -> None:
    """Write a board in the form that the ending of a file asks for."""
    ending = path.suffix.lower()
    if ending == ".png":
        board.plot().savefig(path)
    elif ending in FORMS:
        files.write_text(board.as_text(path), path)
    else:
        write_table(board.to_frame(), path)


def suggest(given: Namespace) -> None:
    """Choose questions under a fit."""
    files.check_outputs(given, (".json",))
    if given.out is not None:  # Whether an export can hold them, before anything is fitted.
        _writer(given.out, {"item": [], "by": []}, formats.relabel_queue, given)
    with collected_warnings():
        task, (policy,) = task_of(given, Policy())
        pool = _pool_of(task.program, **pool_options(given))
        result = task.fit(log_likelihood=False)
        table = _questions(task, result, pool, policy=policy, batch_size=given.batch_size)
    if given.out is not None:
        write = _writer(given.out, table, formats.relabel_queue, given)
        files.write_file(given.out, write, given.force)
        note(f"wrote {len(table)} questions to {given.out}", given.quiet)
    show(table)


def pool_options(given: Namespace) -> dict[str, Any]:
    """Options of the questions that were given."""
    options = {"size": given.size, "again": given.again or None}
    return {name: value for name, value in options.items() if value is not None}


def _pool_of(program: Program[Any], judges: Sequence[Any] = (), **options: Any) -> Judgements:
    """Questions to these judges, or to all; where judges are alike, one stands for anyone."""
    data = program.data
    if _judges_alike(program):
        judges = judges or data.judges[:1]
        every = kind_of(data).questions
        if every is None or "again" in inspect.signature(every).parameters:
            options["again"] = True
    if judges:
        options[data.names[data.judge]] = list(judges)
    return Candidates.of(data, **options)


def _judges_alike(program: Program[Any]) -> bool:
    """True if it does not matter who is asked."""
    return program.data.judge not in (*program.axes, program.unit)


def _questions(task: Task, result: xr.DataTree, pool: Judgements, **options: Any) -> pd.DataFrame:
    """The most informative questions of a pool under a fit."""
    asked = rt.suggest(task.program.model, result, pool, seed=task.given.seed, **options)
    table = asked.to_dataframe().reset_index(drop=True)
    return table.assign(by="anyone") if _judges_alike(task.program) else table


# ---------------------------------------------------------------- simulate and models


def simulate(given: Namespace) -> None:
    """Draw judgements from a known truth, and write them with it."""
    out, seed = given.out, given.seed
    truth_file = files.companion(out, "-truth.json")
    for path in (out, truth_file):
        files.check_writable(path, given)
    table_format(out, written=True)
    generator = partial(chosen("design", given.design, reading.designs()), seed=seed)
    ((data, truth),) = reading.built(reading.settings_of(given), generator)
    names = {axis: list(names) for axis, names in data.coords.items()}
    text = as_json({"design": given.design, "seed": seed, "names": names, "truth": truth})
    table, kind = pd.DataFrame(data.to_frame()), kind_of(data)
    if getattr(data, "feature_names", ()) and kind.name == "labels":
        raw, columns = in_units_of_users(data, OF_ITEMS)
        table[list(columns[1:])] = np.asarray(raw)[np.asarray(data.item), 1:]
    outputs: Files = {out.name: partial(write_table, table, people=False)}
    outputs[truth_file.name] = partial(files.write_text, text)
    files.write_folder(out.parent, outputs, given.force)
    number = f"{data.num_judgements} {kind.words.many}"
    note(f"wrote {number} to {out}, their truth to {truth_file}", given.quiet)


def models(given: Namespace) -> None:
    """List kinds with their columns and models, and back-ends; or one of them in full."""
    name, kinds = given.name, {kind.name: kind for kind in registered_kinds()}
    if name is None:
        for kind in kinds.values():
            print(f"{kind.name}: {', '.join(dashed(one.__name__) for one in kind.models)}")
        print(f"back-ends: {', '.join(reading.backends())}")
        print(f"designs of raters simulate: {', '.join(reading.designs())}")
        print("\nraters models NAME lists columns of a kind, settings of anything else.")
    elif name in kinds:
        print(f"{name}; by default {kinds[name].default!r}")
        for shape in shapes_of([kinds[name]], [kinds[name]]):
            roles = shape.roles
            others = [flag_of(one, roles[one]) for one in roles if one not in shape.required]
            print(f"\n{options_of(shape)}\n  also {' '.join(others)}")
    else:
        every = {**reading.models(), **reading.backends(), **reading.designs()}
        owner = chosen("name", name, every)
        print(f"{owner.__name__}: {(owner.__doc__ or '').strip().splitlines()[0]}")
        usual = next((k.default for k in kinds.values() if type(k.default) is owner), owner)
        for one, (annotation, default) in reading.fields(usual).items():
            kind_name = getattr(annotation, "__name__", str(annotation)).replace("typing.", "")
            print(f"  --set {one}={default}  ({kind_name})")
