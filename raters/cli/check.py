"""The command ``raters check``: where a model does not fit the judgements, and which one would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import xarray as xr
from rich.markup import escape

import raters as rt
from raters import figures
from raters.checking.dependence import NothingShared, known_classes
from raters.cli import console, outputs, tables
from raters.cli.fitting import (
    backend_of,
    collected_warnings,
    program_of,
    read_result,
    source_and_model,
)
from raters.cli.options import ColumnOptions, FitOptions, Force, ModelOptions, option, settings
from raters.errors import DataError, SettingError, validation
from raters.fitting.result import data_of
from raters.fitting.result import model_of as fitted_model
from raters.judgements.base import Judgements
from raters.model import Model
from raters.reporting import facts

_SHARED = ("dependence.csv", "dependence.png")
_NUMBERS = ("observed", "replicated", "replicated_low", "replicated_high")


@dataclass(frozen=True)
class CheckOptions:
    """Options of the check and of its output."""

    replicates: Annotated[int, option("Check", min=2, help="Replicated tables to draw.")] = 1000
    level: Annotated[
        float, option("Check", help="Largest probability of a failure if the model is right.")
    ] = 0.05
    gold: Annotated[
        list[Path] | None,
        option(
            "Check",
            "--gold",
            help="Table of true classes (item, truth), for shared mistakes; again for more.",
            metavar="FILE",
        ),
    ] = None
    out: Annotated[
        Path, option(None, help="Folder for result.nc, tables and figures.", metavar="DIR")
    ] = Path("raters-check")
    force: Force = False


@dataclass(frozen=True)
class CheckCommand:
    """Everything that was asked of a check."""

    file: Path
    columns: ColumnOptions
    model: ModelOptions
    fit: FitOptions
    check: CheckOptions


def check(request: CheckCommand) -> None:
    """Fit unless the file is a result, check; write everything, then print it."""
    options = request.check
    validation.share("level", options.level)
    sure = ("result.nc", "summary.json", "checks.csv", "checks.png", *_SHARED)
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings() as cautions:
        read_gold = [tables.read_table(path) for path in options.gold or ()]
        gold = pd.concat(read_gold, ignore_index=True) if read_gold else None
        model, result = _result(request, sure, gold)
        found = rt.check(
            model, result, replicates=options.replicates, seed=request.fit.seed, level=options.level
        )
        shared = _shared(model, result, gold, request.fit.seed)
    summary = {
        "settings": {"file": request.file}
        | settings(request.columns, request.model, request.fit, options),
        "model": repr(model),
        "data": facts.data_facts(data_of(result)),
        "versions": facts.versions(),
        "fit": facts.fit_facts(result),
        "checks": frame(found),
        "failed": found.failed,
        "sentences": list(found.sentences),
        "not_measured": dict(found.not_measured),
        "dependence": shared if isinstance(shared, str) else _facts(shared),
        "warnings": cautions,
    }
    written = _write(options, result, found, shared, summary)
    with outputs.already(note := f"wrote {', '.join(written)} to {options.out}"):
        _print(found)
        console.Output().print(
            escape(shared if isinstance(shared, str) else shared.sentence), highlight=False
        )
    request.fit.note(note)


def _result(
    request: CheckCommand, sure: tuple[str, ...], gold: pd.DataFrame | None
) -> tuple[Model[Any], xr.DataTree]:
    """The saved result, or a fit to the table; known classes that are not of it are refused before
    the fit."""
    where = request.check
    if tables.is_result(request.file):
        if request.columns.given or request.model.model or request.model.given:
            raise SettingError(
                f"{str(request.file)!r} is a saved result, which has its data and its model; leave"
                " out the options of columns and models"
            )
        outputs.check_writable(where.out, folder=True, force=where.force, names=sure)
        result = read_result(request.file)
        _check_gold(data_of(result), gold)
        return fitted_model(result), result
    fitting = request.fit
    source, model = source_and_model(request.file, request.columns, request.model)
    backend_of(fitting, model)  # Wrong options are said before the table is read.
    outputs.check_writable(where.out, folder=True, force=where.force, names=sure)
    program, notes = program_of(source, model)
    backend = backend_of(fitting, model, program.data)
    _check_gold(program.data, gold)
    fitting.note(*notes)
    return model, rt.fit(model, program.data, backend, seed=fitting.seed, progress=fitting.bars)


def _shared(
    model: Model[Any], result: xr.DataTree, gold: pd.DataFrame | None, seed: int
) -> rt.checking.Dependence | str:
    """Shared mistakes, or the sentence why they are not measured."""
    try:
        return rt.checking.dependence(model, result, gold, seed=seed)
    except NothingShared as error:
        return f"Shared mistakes are not measured: {error}."


def _check_gold(data: Judgements, gold: pd.DataFrame | None) -> None:
    """Raise for known classes that are not of these data."""
    if gold is None:
        return
    try:
        known_classes(data, gold)
    except DataError as error:
        # Its columns are no options.
        text = error.worded(lambda name: "" if name == "gold" else "the column")
        raise DataError(f"--gold: {text.strip()}") from error


def _facts(found: rt.checking.Dependence) -> dict[str, Any]:
    """The numbers of a dependence."""
    names = ("judges", "effective", "effective_interval", "mean", "mean_interval", "known")
    return {name: getattr(found, name) for name in names} | {"sentence": found.sentence}


def frame(found: rt.checking.Check) -> pd.DataFrame:
    """The table of a check, with one row for each discrepancy."""
    table = found.table.to_dataframe().reset_index()
    return table.rename(columns={"title": "meaning"})


def _write(
    options: CheckOptions,
    result: xr.DataTree,
    found: rt.checking.Check,
    shared: rt.checking.Dependence | str,
    summary: Mapping[str, Any],
) -> list[str]:
    """Everything into the folder, or nothing; gives the names of the files."""

    def write(folder: Path) -> None:
        outputs.to_netcdf(result, folder / "result.nc")
        tables.write_for_people(frame(found), folder / "checks.csv")
        if found.draws.sizes["discrepancy"]:
            figures.checks(found).savefig(folder / "checks.png")
        if not isinstance(shared, str):
            tables.write_for_people(shared.pairs(), folder / _SHARED[0])
            figures.dependence(shared).savefig(folder / _SHARED[1])
        facts.write_json(summary, folder / "summary.json")

    with collected_warnings():
        return outputs.write_folder(options.out, write, force=options.force)


def _print(found: rt.checking.Check) -> None:
    out = console.Output()
    grid = console.new_grid(f"Checks of {escape(found.model)}")
    grid.add_column("discrepancy", no_wrap=True)
    for heading in ("observed", "replicated", "95% interval", "p of all"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("verdict", no_wrap=True)
    for row in frame(found).to_dict("records"):
        observed, mean, low, high = (f"{row[name]:.3g}" for name in _NUMBERS)
        verdict = "[bold red]fails[/]" if row["fails"] else "[green]holds[/]"
        numbers = (observed, mean, f"{low}…{high}", f"{row['p_adjusted']:.2g}")
        grid.add_row(str(row["discrepancy"]).replace("_", " "), *numbers, verdict)
    out.print(grid)
    out.print()
    for line in found.remarks:
        out.print(escape(line), highlight=False)
