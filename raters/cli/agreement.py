"""The command ``raters agreement``: how often annotators agree, and how far beyond chance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer

import raters as rt
from raters.auditing.agreement import Metric
from raters.cli import console, outputs, page, tables
from raters.cli.fitting import collected_warnings
from raters.cli.options import ColumnOptions, Force, QuietOption, note, option
from raters.cli.reading import read, source_of
from raters.judgements.base import Judgements
from raters.judgements.display import display_name
from raters.judgements.names import plural

_PANEL = "Agreement"
_METRIC = (
    "Distance of two classes in Krippendorff's alpha: none but equal or not; by their order (name"
    " them with --classes); or between the numbers that they are."
)


@dataclass(frozen=True)
class AgreementOptions:
    """Statistics to compute, and where to write them."""

    metric: Annotated[Metric | None, option(_PANEL, help=_METRIC)] = None
    by_class: Annotated[bool, option(_PANEL, "--by-class", help="Each class against the rest.")] = (
        False
    )
    level: Annotated[float, option(_PANEL, help="Coverage of the intervals.")] = 0.9
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write a table.", metavar="FILE")
    ] = None
    force: Force = False
    quiet: QuietOption = False


def agreement(file: Path, columns: ColumnOptions, options: AgreementOptions) -> None:
    """Measure the agreement in a table, write it if that is wanted, and print it."""
    if options.out is not None:
        tables.table_format(options.out)
        outputs.check_writable(options.out, folder=False, force=options.force, inputs=[file])
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings():
        source = source_of(file, columns)
        data, notes = read(source)
        note(*notes, quiet=options.quiet)
        table = rt.agreement(
            data, level=options.level, metric=options.metric, by_class=options.by_class
        )
    if options.out is None:
        _print(data, table, options)
        return
    write = partial(tables.write_for_people, table.reset_index())
    outputs.write_file(options.out, write, force=options.force)
    with outputs.already(f"wrote {options.out}"):
        _print(data, table, options)
    note(f"wrote {options.out}", quiet=options.quiet)


def _print(data: Judgements, table: pd.DataFrame, options: AgreementOptions) -> None:
    """Print the statistics, and what they are about."""
    out = console.Output()
    if options.by_class:
        page.print_agreement_by_class(out, data.judge, table, options.level)
    else:
        page.print_agreement(out, data.judge, table, "", options.level)
    metric = "ordinal" if options.metric is None and data.graded else options.metric
    if metric not in (None, "nominal"):
        classes = map(display_name, data.coords[data.axes[data.answer]])
        out.print(
            f"Distances are {metric}; the order of the classes is {' < '.join(classes)}.\n",
            highlight=False,
            markup=False,
        )
    if data.pair is not None:
        order = "in either order" if data.exchangeable else "in the order in which it was shown"
        chance = "one half"
        if not data.exchangeable:
            chance = f"that of {plural(data.judge)} who choose the first as often as all do"
        out.print(
            f"A question is a pair of {plural(data.axes[data.pair[0]])} {order}; agreement by"
            f" chance is {chance}.\n",
            highlight=False,
            markup=False,
        )
