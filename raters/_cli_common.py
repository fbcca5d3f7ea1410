"""What the commands have in common: settings from options, notes and warnings, and parts of an audit."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import xarray as xr

import raters as rt
from raters import _check, _cli_files
from raters.errors import ConvergenceWarning, DataError, DataWarning, SettingError
from raters.inference import Backend
from raters.report import check_form

Options = Mapping[str, Any]
BACKENDS: dict[str, type[Backend]] = {"gibbs": rt.PGGibbs, "nuts": rt.NUTS, "svi": rt.SVI, "em": rt.PGEM}
COMPARISON_MODELS = ("btl", "extended-btl")
# Options that one kind of table has and the other has not.
_OWN = {
    "comparisons": ("ties", "competence", "position_bias", "reward_scale", "competence_spread"),
    "labels": ("truth", "classes", "repeats", "feature"),
}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "comparisons": {"model": "extended-btl", "competence": "signed"},
    "labels": {"model": "dawid-skene", "feature": []},
}
# Figures of an audit and its second fit; what this one does not write must not lie there from another.
_SOMETIMES = (
    "result-dropped.nc",
    "rewards.png",
    "competences.png",
    "auditor.png",
    "confusions.png",
    "certainty.png",
)


class Source(NamedTuple):
    """A table, which column plays which role, and whether that was guessed."""

    table: pd.DataFrame
    columns: _cli_files.Columns
    guessed: bool

    @property
    def of_labels(self) -> bool:
        """Whether the table holds labels, and not comparisons."""
        return self.columns.label is not None


def source(options: Options) -> tuple[Source, dict[str, Any]]:
    """The table, and the options with the defaults of what is in it; `SettingError` for options of the other kind."""
    columns = _cli_files.Columns(**{name: options[name] for name in _cli_files.Columns.__annotations__})
    columns.check()
    table = _cli_files.read_table(options["file"])
    if guessed := not columns.has_sides:
        columns = columns.guessed(list(map(str, table.columns)))
    found = Source(table, columns, guessed)
    kind, other = ("labels", "comparisons") if found.of_labels else ("comparisons", "labels")
    read = " ".join(f"--{role} {name}" for role, name in columns.given().items())
    for name in _OWN[other]:
        if options[name] not in (None, [], ()) and options[name] is not False:
            need = "--item, --label and --annotator" if other == "labels" else "--winner and --loser, or their like"
            option = "--" + name.replace("_", "-")
            raise SettingError(f"{option} belongs to {other} ({need}), and this is a table of {kind} ({read}); leave it out")
    if options["model"] is not None and (options["model"] in COMPARISON_MODELS) == found.of_labels:
        instead = _DEFAULTS[kind]["model"]
        raise SettingError(
            f"--model {options['model']} takes {other}, and this is a table of {kind} ({read}); try --model {instead}"
        )
    return found, dict(options) | {name: options[name] or value for name, value in _DEFAULTS[kind].items()}


def note_source(options: Options, found: Source, left_out: int) -> None:
    """Say what was read. Once the table is read: an error stands alone."""
    if found.guessed:
        read = " ".join(f"--{role} {name}" for role, name in found.columns.given().items())
        note(options, f"no columns were named; reading {read}")
    if left_out:
        wrong = _cli_files.what_is_wrong(found.columns).removeprefix("has ")
        note(options, f"left out {left_out} of {len(found.table)} rows, with {wrong}")


def backend(options: Options) -> Backend:
    """The back-end that is asked for, with those settings that it has."""
    kind = BACKENDS[options["backend"]]
    given = {name: options[name] for name in ("draws", "warmup", "chains") if options[name] is not None}
    for name in given:
        if not hasattr(kind, name):
            raise SettingError(f"--{name} has no meaning for --backend {options['backend']}; leave it out")
    return kind(**given)


def costs(options: Options) -> rt.Costs:
    """The costs of the verdicts; the other limits of the audit are checked with them."""
    _check.share("level", options["level"])
    if not math.isfinite(options["threshold"]):
        raise SettingError(f"threshold={options['threshold']!r} is not possible; it must be a finite number such as 0.25")
    return rt.Costs(options["cost_keep_bad"], options["cost_drop_good"], options["cost_review"])


def refit(
    model: rt.Model, data: rt.Comparisons | rt.Labels, found: rt.Audit, backend: Backend, options: Options
) -> xr.DataTree | None:
    """A second fit without those flagged, or None when there is nobody to drop, or nobody to keep."""
    if not found.flagged:
        note(options, "nobody is flagged, so there is nothing to drop")
        return None
    try:
        return rt.drop(model, data, found, backend, seed=options["seed"], progress=bars(options))
    except DataError as error:
        warnings.warn(f"no second fit: {error}", DataWarning, stacklevel=2)
        return None


def check_reports(options: Options) -> None:
    """`SettingError` when a report cannot be written, before anything is fitted."""
    for path in options["report"] or ():
        check_form(path)
        # The folder of everything else is made when it is not there.
        if path.parent.resolve() != options["out"].resolve() or path.is_dir():
            _cli_files.check_writable(path, folder=False, option="--report")


def reports(
    options: Options,
    model: rt.Model,
    result: xr.DataTree,
    found: rt.Audit | None,
    asked: pd.DataFrame,
    remark: str,
    command: str,
) -> dict[Path, str]:
    """The text of each report that is wanted."""
    if found is None or not options["report"]:
        return {}
    made = rt.report(model, result, found, questions=asked, questions_note=remark, command=command)
    return {path: made.as_text(path) for path in options["report"]}


def write_reports(texts: Mapping[Path, str]) -> list[str]:
    """Each report whole or not at all; gives their names, as notes have them."""
    for path, text in texts.items():
        with _cli_files.replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    return [str(path) for path in texts]


def remove_stale(folder: Path, written: Iterable[str], also: Iterable[str] = ()) -> None:
    """Files of an earlier audit that this one has not written."""
    for name in {*_SOMETIMES, *also} - set(written):
        (folder / name).unlink(missing_ok=True)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Warnings as one line each on standard error, and as a list; each only once."""
    seen: list[str] = []

    def show(message, *_args, **_settings) -> None:
        text = _cli_files.as_options(str(message))
        if text not in seen:
            seen.append(text)
            print(f"raters: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = show
        yield seen


def note(options: Options, text: str) -> None:
    """A line for the person, on standard error, unless ``--quiet``."""
    if not options["quiet"]:
        print(f"raters: {text}", file=sys.stderr)


def bars(options: Options) -> bool:
    """Progress bars belong on a terminal: in a log they are noise."""
    return options["progress"] and not options["quiet"] and sys.stderr.isatty()
