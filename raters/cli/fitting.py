"""Models and back-ends from options, and what the commands that fit have in common."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

import raters as rt
from raters.auditing.audit import check_limits
from raters.auditing.calibration import CROWD, trusted_codes
from raters.cli import tables
from raters.cli.generated import (
    GeneratedOption,
    backend_names,
    converted,
    dashed,
    field_types,
    model_names,
)
from raters.cli.kinds import model_flag
from raters.cli.options import AuditOptions, ColumnOptions, FitOptions, ModelOptions, VerdictOptions
from raters.cli.outputs import has_changed
from raters.cli.reading import Source, read, source_for, source_of
from raters.errors import ConvergenceWarning, DataError, DataWarning, SettingError
from raters.inference import Backend
from raters.inference.defaults import default_backend
from raters.judgements.base import Judgements
from raters.judgements.display import visible
from raters.kinds import Kind, kind_of, registered_kinds
from raters.model import Model
from raters.program import Program


def model_of(options: ModelOptions, kind: Kind, where: str) -> Model[Any]:
    """The model that the options describe."""
    default = type(kind.default)
    name = options.model or dashed(default.__name__)
    own = model_names((kind,))
    if name not in own:
        others = [other.name for other in registered_kinds() if name in model_names((other,))]
        raise SettingError(
            f"--model {name} takes {' and '.join(others)}, and this is {where}; try"
            f" {model_flag(default)}"
        )
    model: Model[Any] = built(own[name], kind.default, options, f"--model {name}")
    return model


def source_and_model(
    file: Path, columns: ColumnOptions, options: ModelOptions
) -> tuple[Source, Model[Any]]:
    """A table with how to read it for the model that the options describe, and this model."""
    source = source_of(file, columns, options)
    model = model_of(options, source.kind, source.described)
    check_needs(model, source.kind, columns)
    return source_for(source, model), model


def program_of(source: Source, model: Model[Any]) -> tuple[Program[Any], tuple[str, ...]]:
    """The model with the judgements in the table, and notes on how they were read."""
    table = read(source)
    program = Program(model, table.data)
    check_features(program, source.options)
    return program, table.notes


def built(cls: type, default: Any, options: ModelOptions | FitOptions, flag: str) -> Any:
    """An object of a frozen dataclass, its fields those that were given."""
    types = field_types(cls)
    for name in options.given:
        if name not in types:
            raise SettingError(_belongs(_of(options.options, name), flag))
    given = {name: converted(value, types[name][0], name) for name, value in options.given.items()}
    same: Any = default if type(default) is cls else None
    return cls(**given) if same is None else dataclasses.replace(same, **given)


def _of(options: Iterable[GeneratedOption], name: str) -> GeneratedOption:
    return next(one for one in options if one.name == name)


def _belongs(option: GeneratedOption, instead: str) -> str:
    kind = instead.split()[0]
    return (
        f"{option.flag} belongs to {kind} {', '.join(option.owners)}, and this is {instead};"
        " leave it out"
    )


def backend_of(options: FitOptions, model: Model[Any], data: Any = None) -> Backend:
    """The back-end that the options describe, or one that suits the model on these data."""
    name = backend_name(options, model, data)
    backend: Backend = built(backend_names()[name], None, options, f"--backend {name}")
    return backend


def backend_name(options: FitOptions, model: Model[Any], data: Any = None) -> str:
    """Name of the back-end that the options ask for, or of one that suits the model."""
    default = type(default_backend(model, data))
    own = (name for name, backend in backend_names().items() if backend is default)
    return options.backend or next(own)


def limits_of(options: AuditOptions, kind: Kind) -> dict[str, Any]:
    """Keyword arguments of the audit, checked before a fit."""
    threshold = kind.threshold if options.threshold is None else options.threshold
    limits = options.limits | {"threshold": threshold}
    check_limits(**limits)
    return limits | {"influence": options.influence}


def anchor_of(
    options: VerdictOptions, gold_files: Sequence[Path] | None, kind: Kind
) -> dict[str, Any]:
    """Keyword arguments of the audit that say who is right, read before a fit."""
    if kind.truths is None and (gold_files or options.reference):
        raise SettingError(
            f"--gold and --reference need a calibration, and {kind.words.many} have none; leave"
            " them out"
        )
    if options.trust_crowd and (gold_files or options.reference):
        raise SettingError(
            "--trust-crowd takes the crowd to be right, and --gold and --reference tell where it is"
            " not; leave one out"
        )
    gold = [tables.read_table(path) for path in gold_files or ()]
    columns = set() if kind.truths is None else set(kind.truths.columns)
    if len({frozenset(columns & set(map(str, table.columns))) for table in gold}) > 1:
        raise SettingError("the tables of --gold must have the same columns for the known truths")
    return {
        "gold": pd.concat(gold, ignore_index=True) if gold else None,
        "reference": CROWD if options.trust_crowd else tuple(options.reference or ()),
    }


def check_anchor(data: Judgements, anchor: Mapping[str, Any]) -> None:
    """Raise for known truths and trusted annotators that are not of these data, before a fit."""
    if not isinstance(anchor["reference"], str):
        trusted_codes(data, anchor["reference"])
    gold, truths = anchor["gold"], kind_of(data).truths
    if gold is None or truths is None:
        return
    try:
        number = truths.number(data, gold)
    except DataError as error:
        # Its columns are no options.
        text = error.worded(lambda name: "" if name == "gold" else "the column")
        raise DataError(f"--gold: {text.strip()}") from error
    if not number:
        raise DataError(
            "--gold holds no truth: fill in its column"
            f" {truths.answer if truths.answer in gold else gold.columns[-1]!r}, with values that"
            " differ"
        )


def check_needs(model: Model[Any], kind: Kind, columns: ColumnOptions) -> None:
    """`SettingError` when columns are not given that the model, or a setting of it, needs."""
    settings = [name for name in field_types(type(model)) if getattr(model, name) is True]
    needs: tuple[type[Model[Any]] | str, ...] = (type(model), *settings)
    for need in needs:
        lacking = [role for role in kind.needs.get(need, ()) if role not in columns.given]
        if lacking:
            wanted = " and ".join(map(columns.flag, lacking))
            if isinstance(need, str) and field_types(type(model))[need][1] is True:
                raise SettingError(
                    f"{dashed(type(model).__name__)} needs {wanted} with the name of a column;"
                    f" --no-model-{dashed(need)} fits without"
                )
            flag = f"--{dashed(need)}" if isinstance(need, str) else model_flag(need)
            raise SettingError(f"{flag} needs {wanted} as well")


def check_features(program: Program[Any], columns: ColumnOptions) -> None:
    """`SettingError` when features or families are given that the model does not read."""
    for role, axis in (("features", "feature"), ("family", "family")):
        if role not in columns.given or axis in program.axes:
            continue
        needs = kind_of(program.data).needs
        settings = field_types(type(program.model))
        users = [
            f"--{dashed(one)}" if isinstance(one, str) else model_flag(one)
            for one, roles in needs.items()
            if role in roles and (isinstance(one, type) or one in settings)
        ]
        raise SettingError(
            f"{columns.flag(role)} is of no use to {model_flag(type(program.model))}; leave"
            f" it out, or write {' or '.join(users)}"
        )


# ---------------------------------------------------------------- fits, warnings, files


def refit(
    model: Model[Any],
    data: Judgements,
    audit: rt.auditing.Audit,
    backend: Backend,
    options: FitOptions,
) -> xr.DataTree | None:
    """A second fit without those flagged, or None when there is nobody to drop, or nobody to
    keep."""
    if not audit.flagged:
        options.note("nobody is flagged, so there is nothing to drop")
        return None
    try:
        return rt.auditing.drop(
            model,
            data,
            audit,
            backend,
            seed=options.seed,
            progress=options.bars,
            log_likelihood=False,
        )
    except DataError as error:
        warnings.warn(f"no second fit: {error}", DataWarning, stacklevel=2)
        return None


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Warnings as one line each on standard error, and as a list; each only once."""
    seen: list[str] = []

    def show(message: Any, *_args: Any, **_settings: Any) -> None:
        text = visible(" ".join(str(message).split()))
        if text not in seen:
            seen.append(text)
            print(f"raters: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = show
        yield seen


def read_result(path: Path) -> xr.DataTree:
    """A result that was saved."""
    tables.must_be_file(path)
    if has_changed(path):
        raise DataError(
            f"{str(path)!r} is not as raters wrote it: it is damaged, or something else wrote it"
            " since; write it again with raters fit or raters audit, or, if it was changed on"
            " purpose, give a copy of another name"
        )
    try:
        with xr.open_datatree(path, engine="netcdf4") as stored:
            result = stored.load()
    except (OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{str(path)!r} is not a netCDF file that can be read; give what raters fit wrote"
        ) from error
    groups = {"posterior", "constant_data"}
    if "model" not in result.attrs or not groups <= set(result.children):
        raise DataError(
            f"{str(path)!r} is a netCDF file, but no result of raters; give what raters fit wrote"
        )
    return result
