"""The audit of ``raters joint``: one verdict on each annotator from all kinds of judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import xarray as xr

import raters as rt
from raters.auditing.audit import check_limits
from raters.auditing.together import judged_parts
from raters.cli import console, page
from raters.cli.fitting import anchor_of, check_anchor
from raters.cli.options import Rows, VerdictOptions, option
from raters.errors import SettingError
from raters.fitting.draws import check_several
from raters.kinds import Column, kind_of
from raters.program import Program
from raters.reporting.page import by_verdict
from raters.reporting.unjudged import why_unjudged

GOLD = "Known truths of a part: a table as `raters audit` takes it for --gold. May be given again."


@dataclass(frozen=True)
class GoldOfParts:
    """Known truths by part."""

    gold: Annotated[list[str] | None, option("Audit", "--gold", help=GOLD, metavar="NAME=FILE")] = (
        None
    )


@dataclass(frozen=True)
class JointAuditOptions(VerdictOptions, GoldOfParts):
    """Options of the audit of all kinds together, and of its table."""

    rows: Rows = 20


class Anchored(NamedTuple):
    """Keyword arguments of the audit that say who is right, or a sentence why nobody is judged."""

    anchor: Mapping[str, Any]
    why_not: str = ""


def anchored(program: Program[Any], options: JointAuditOptions) -> Anchored:
    """Known truths and trusted annotators, read and checked before a fit."""
    check_limits(threshold=0.5, **options.limits)
    files = _files(options.gold, program)
    if why := _why_unjudged(program):
        if files or options.reference or options.trust_crowd:
            raise SettingError(
                f"--gold, --reference and --trust-crowd are of an audit, and there is none: {why}"
            )
        return Anchored({}, f"Nobody is judged: {why}.")
    judged = judged_parts(program)
    for name in files:
        if name not in judged:
            raise SettingError(
                f"--gold {name}=...: nobody is judged by the part {name!r}; give known truths of"
                f" {' or '.join(map(repr, judged))}"
            )
    gold: dict[str, Any] = {}
    for name in judged:
        data = program.parts[name].data
        anchor = anchor_of(options, files.get(name), kind_of(data))
        check_anchor(data, anchor)
        gold |= {} if anchor["gold"] is None else {name: anchor["gold"]}
    return Anchored({"gold": gold, "reference": anchor["reference"]})


def _files(texts: Sequence[str] | None, program: Program[Any]) -> dict[str, list[Path]]:
    """Tables of known truths by part."""
    files: dict[str, list[Path]] = {}
    for text in texts or ():
        name, _, file = text.partition("=")
        if name not in program.parts or not file:
            raise SettingError(
                parameter="gold",
                value=text,
                problem="names no part and no file",
                expected=f"write NAME=FILE, with a part out of {', '.join(program.parts)}",
            )
        files.setdefault(name, []).append(Path(file))
    return files


def _why_unjudged(program: Program[Any]) -> str:
    """Why there is no verdict on anybody; empty where there is one."""
    try:
        judged = judged_parts(program)
    except SettingError as error:
        return f"the model {error.problem}"
    if all(why_unjudged(program.parts[name]) for name in judged):
        return "no part tells who gave a judgement"
    return ""


def audited(
    model: rt.models.JointModel,
    result: xr.DataTree,
    anchor: Anchored,
    options: JointAuditOptions,
    seed: int,
) -> rt.auditing.Audit | str:
    """The audit, or the sentence why there is none."""
    if anchor.why_not:
        return anchor.why_not
    try:
        check_several(result, "an audit says how sure it is")
    except SettingError as error:
        return f"Nobody is judged: the result {error.problem}."
    return rt.audit(model, result, seed=seed, **anchor.anchor, **options.limits)


def print_audit(out: console.Output, found: rt.auditing.Audit | str, rows: int) -> None:
    """Print what the audit stands on and its table, or why there is none."""
    if isinstance(found, str):
        out.print(found, highlight=False, markup=False)
        return
    out.print(found.anchor.sentence, style="bold", highlight=False, markup=False)
    out.print()
    judged = [
        name.removesuffix("_low")
        for name in map(str, found.table.data_vars)
        if name.endswith("_low")
    ]
    shown = [Column(name, name.replace(".", " "), "interval") for name in judged]
    below = Column("p_below", "below threshold", "percent")
    words = ("judgements", "least trusted")
    page.print_judges(out, found, by_verdict(found), [*shown, below], words, rows)
