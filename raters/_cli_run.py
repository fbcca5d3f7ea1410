"""What each command of the command line does, once its arguments are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import raters as rt
from raters import _cli_files, _cli_label_report, _cli_labels, _cli_report, _cli_votes, _facts
from raters._cli_common import Options, backend, bars, check_reports, collected_warnings, note, source
from raters._result import data_of
from raters.errors import DataError
from raters.models import from_repr


def audit(options: Options, command: str) -> None:
    """Fit, judge, suggest; write everything, then print it. `command` is what was typed."""
    check_reports(options)
    found, options = source(options)
    (_cli_labels if found.of_labels else _cli_votes).audit(options, found, command)


def fit(options: Options) -> None:
    """Fit and save."""
    found, options = source(options)
    kind: Any = _cli_labels if found.of_labels else _cli_votes
    model, fitting = kind.model_of(options, found.columns), backend(options)
    _cli_files.check_writable(options["out"], folder=False)
    with collected_warnings():
        result = rt.fit(model, kind.read(options, found), fitting, seed=options["seed"], progress=bars(options))
    with _cli_files.replacing(options["out"]) as path:
        result.to_netcdf(path)
    note(options, f"wrote {options['out']} ({result.attrs['model']}, {result.attrs['seconds']:.1f} s)")


def suggest(options: Options) -> None:
    """Score questions under a saved result."""
    if options["out"] is not None:
        _cli_files.check_writable(options["out"], folder=False)
        _cli_files.table_format(options["out"])
    result = _read_result(options["result"])
    model, data = from_repr(result.attrs["model"]), data_of(result)
    questions: pd.DataFrame
    with collected_warnings():
        if isinstance(data, rt.Labels):
            questions, show = _cli_labels.questions(options, model, result, data), _cli_label_report.print_questions
        else:
            questions, show = _cli_votes.questions(options, model, result, data), _cli_report.print_questions
    if options["out"] is not None:
        with _cli_files.replacing(options["out"]) as path:
            _cli_files.write_table(questions, path)
    show(_cli_report.Output(), questions, "")


def simulate(options: Options) -> None:
    """Draw votes or labels and write them with their truth."""
    out: Path = options["out"]
    _cli_files.table_format(out)
    _cli_files.check_writable(out, folder=False)
    of_labels = options["design"] not in _cli_votes.DESIGNS
    table, truth = (_cli_labels if of_labels else _cli_votes).simulated(options)
    truth_file = out.with_name(out.name.split(".")[0] + "-truth.json")
    with _cli_files.staged(out.parent) as folder:
        _cli_files.write_table(table, folder / out.name)
        _facts.write_json({"design": options["design"], "seed": options["seed"]} | truth, folder / truth_file.name)
    what = "labels" if of_labels else "votes"
    note(options, f"wrote {len(table)} {what} to {out} and their truth to {truth_file}")


def _read_result(path: Path) -> xr.DataTree:
    _cli_files.must_be_file(path)
    try:
        result = xr.open_datatree(path).load()
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{str(path)!r} is not a netCDF file that can be read; give what raters fit wrote") from error
    result.close()
    if "model" not in result.attrs or "posterior" not in result.children or "constant_data" not in result.children:
        raise DataError(f"{str(path)!r} is a netCDF file, but no result of raters; give what raters fit wrote")
    return result
