"""The command ``raters joint``: one model of several kinds of judgement, each from a table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
import xarray as xr

import raters as rt
from raters.cli import console, outputs, tables
from raters.cli.app import CONTEXT, UsageError, usage_sentence
from raters.cli.fitting import backend_of, collected_warnings, program_of, source_and_model
from raters.cli.joint_audit import JointAuditOptions, anchored, audited, print_audit
from raters.cli.kinds import kind_asked, kind_in
from raters.cli.options import (
    ColumnOptions,
    FitOptions,
    Force,
    GeneratedOptions,
    ModelOptions,
    option,
    settings,
    with_options,
)
from raters.errors import RatersError, SettingError
from raters.judgements.base import Judgements
from raters.judgements.common_names import check_part_name
from raters.kinds import registered_kinds
from raters.model import Model
from raters.program import Program
from raters.reporting import facts

PART = (
    "One kind of judgement, all in quotation marks: its name, its table, and the options that"
    " `raters fit` takes for its columns and its model ('NAME=FILE --help' lists them). Give two or"
    " more."
)
SHARED = (
    "Sites that are one number in several parts: SITE of all parts, or PART.SITE=PART.SITE. May be"
    " given again."
)
TIED = (
    "Sites of the same people in different units, with a correlation that is learned:"
    " PART.SITE=PART.SITE. May be given again."
)
_SAME = "PART.SITE=PART.SITE"
RESULT, SUMMARY = "result.nc", "summary.json"


@dataclass(frozen=True)
class JointOptions:
    """Parts, and what they have in common."""

    part: Annotated[list[str], option("Parts", "--part", help=PART, metavar="'NAME=FILE OPTIONS'")]
    shared: Annotated[list[str] | None, option("Parts", "--shared", help=SHARED, metavar=_SAME)] = (
        None
    )
    tied: Annotated[list[str] | None, option("Parts", "--tied", help=TIED, metavar=_SAME)] = None
    correlation: Annotated[
        float | None, option("Parts", help="Correlation of tied sites; learned unless given.")
    ] = None
    out: Annotated[
        Path,
        option(
            None,
            help="Folder for result.nc, the result of each part, NAME.nc, and the verdicts.",
            metavar="DIR",
        ),
    ] = Path("raters-joint")
    force: Force = False


class _Part(NamedTuple):
    """One kind of judgement, as it was read."""

    model: Model[Any]
    data: Judgements
    notes: tuple[str, ...]


class Fitted(NamedTuple):
    """A joint model, its result, the result of each part by its name, and the audit."""

    model: rt.models.JointModel
    result: xr.DataTree
    of_parts: Mapping[str, xr.DataTree]
    audit: rt.auditing.Audit | str


def joint(options: JointOptions, fitting: FitOptions, limits: JointAuditOptions) -> None:
    """Read the parts, fit, audit, and write the whole and each part."""
    asked = _asked(options.part)
    groups = {
        name: [_group(text, name, asked) for text in getattr(options, name) or ()]
        for name in ("shared", "tied")
    }
    sure = [RESULT, SUMMARY, *(f"{name}.nc" for name in asked)]
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings() as cautions:
        outputs.check_writable(options.out, folder=True, force=options.force, names=sure)
        found = _fitted(asked, groups | {"correlation": options.correlation}, fitting, limits)
        summary = _summary(found, settings(options, fitting, limits)) | {"warnings": cautions}

        def write(folder: Path) -> None:
            outputs.to_netcdf(found.result, folder / RESULT)
            for name, result in found.of_parts.items():
                outputs.to_netcdf(result, folder / f"{name}.nc")
            if isinstance(found.audit, rt.auditing.Audit):
                tables.write_for_people(facts.audit_frame(found.audit), folder / "annotators.csv")
            facts.write_json(summary, folder / SUMMARY)

        written = outputs.write_folder(options.out, write, force=options.force)
    seconds = found.result.attrs["seconds"]
    note = f"wrote {', '.join(written)} to {options.out} ({seconds:.1f} s)"
    with outputs.already(note):
        out = console.Output()
        _print_correlations(out, found)
        print_audit(out, found.audit, limits.rows)
    fitting.note(note)


def _summary(found: Fitted, given: Mapping[str, Any]) -> dict[str, Any]:
    """Options, facts of the fit, and verdicts."""
    verdicts = found.audit if isinstance(found.audit, str) else facts.audit_summary(found.audit)
    return {
        "settings": given,
        "model": repr(found.model),
        "versions": facts.versions(),
        "fit": facts.fit_facts(found.result),
        "audit": verdicts,
    }


def _fitted(
    asked: Mapping[str, Sequence[str]],
    common: Mapping[str, Any],
    fitting: FitOptions,
    limits: JointAuditOptions,
) -> Fitted:
    """Fit to the tables of all parts, and audit those who judge."""
    parts = {name: _read(name, words) for name, words in asked.items()}
    model = rt.models.JointModel({name: part.model for name, part in parts.items()}, **common)
    data = rt.judgements.Together.of({name: part.data for name, part in parts.items()})
    backend = backend_of(fitting, model, data)
    anchor = anchored(Program(model, data), limits)
    for name, part in parts.items():
        fitting.note(*(f"{name}: {note}" for note in part.notes))
    result = rt.fit(model, data, backend, seed=fitting.seed, progress=fitting.bars)
    of_parts = {name: rt.fitting.part(model, result, name).result for name in parts}
    return Fitted(model, result, of_parts, audited(model, result, anchor, limits, fitting.seed))


# ---------------------------------------------------------------- what was asked for


def _asked(texts: Sequence[str]) -> dict[str, list[str]]:
    """The words of each part, the first of them its file, by its name."""
    asked: dict[str, list[str]] = {}
    for text in texts:
        try:
            words = shlex.split(text)
        except ValueError as error:  # A quotation mark that is not closed.
            raise _unreadable(text, f"cannot be read ({str(error).lower()})") from error
        name, sign, file = (words or [""])[0].partition("=")
        if not (name and sign and file):
            raise _unreadable(text, "names no part and no file")
        check_part_name("part", name)
        if name in asked:
            raise SettingError(
                parameter="part",
                value=text,
                problem=f"is a second part of the name {name!r}",
                expected="give each part a name of its own",
            )
        if f"{name}.nc" == RESULT:
            raise SettingError(
                parameter="part",
                value=text,
                problem=f"has the name of the whole, {RESULT}",
                expected="give it another name",
            )
        asked[name] = [file, *words[1:]]
    if len(asked) < 2:
        raise SettingError("a joint model has two parts or more; give --part once more")
    return asked


def _unreadable(text: str, problem: str) -> SettingError:
    return SettingError(
        parameter="part",
        value=text,
        problem=problem,
        expected=(
            "write the name, the file and the options of one kind of judgement in quotation marks,"
            " such as 'votes=votes.csv --winner a --loser b --annotator who'"
        ),
    )


def _group(text: str, option_name: str, parts: Mapping[str, Any]) -> str | dict[str, str]:
    """A site of all parts, or sites of some: ``votes.competence=labels.accuracy``."""
    pieces = [piece.strip() for piece in text.split("=")]
    if len(pieces) == 1 and "." not in text:
        return pieces[0]
    sites = [piece.partition(".") for piece in pieces]
    group = {part: site for part, _, site in sites}
    if not (2 <= len(sites) == len(group) and all(map(all, sites))):
        raise SettingError(
            parameter=option_name,
            value=text,
            problem="does not name one site in each of two parts or more",
            expected=f"write {_SAME}, with parts out of {', '.join(parts)}",
        )
    return group


# ---------------------------------------------------------------- reading


def _read(name: str, words: Sequence[str]) -> _Part:
    """One part, by the options that ``raters fit`` has for a table and its model."""
    found: list[_Part] = []

    def part(
        file: Annotated[Path, typer.Argument(metavar="FILE", help="Table of judgements.")],
        columns: ColumnOptions,
        model: ModelOptions,
    ) -> None:
        """Read one part."""
        found.append(_of_table(file, columns, model))

    try:
        kind_asked(kind_in(words))
        app = typer.Typer(add_completion=False, context_settings=CONTEXT)
        app.command()(with_options(part, GeneratedOptions.of(registered_kinds())))
        command = typer.main.get_command(app)
        with command.make_context(f"--part {name}=", list(words)) as context:
            command.invoke(context)
    except UsageError as error:
        raise SettingError(f"--part {name}: {usage_sentence(error, words)}") from error
    except RatersError as error:
        text = error.worded(lambda parameter: f"--{parameter.replace('_', '-')}")
        raise type(error)(f"--part {name}: {text}") from error
    return found[0]


def _of_table(file: Path, columns: ColumnOptions, model: ModelOptions) -> _Part:
    """The judgements of a table, and a model of them."""
    program, notes = program_of(*source_and_model(file, columns, model))
    return _Part(program.model, program.data, notes)


# ---------------------------------------------------------------- printing


def _print_correlations(out: console.Output, found: Fitted) -> None:
    """Print the correlations of tied sites, where they are learned."""
    model = found.model
    if not model.tied or model.correlation is not None:
        return
    grid = console.new_grid("Correlations of tied sites")
    grid.add_column("sites", no_wrap=True)
    for heading in ("mean", "90% interval"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for group in model.tied:
        draws = found.result["posterior"][model.correlation_of(group)]
        low, high = draws.quantile([0.05, 0.95]).values
        sites = " and ".join(f"{part}.{site}" for part, site in group)
        grid.add_row(sites, f"{float(draws.mean()):.2f}", f"{low:.2f}…{high:.2f}")
    out.print(grid)
    out.print()
