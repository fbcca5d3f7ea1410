"""The commands ``raters audit``, ``fit`` and ``suggest``, for any kind of judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

import raters as rt
from raters import figures
from raters.acquisition import Policy
from raters.auditing.agreement import is_measurable
from raters.cli import console, outputs, page, tables
from raters.cli.asking import next_questions, own_names, questions
from raters.cli.fitting import (
    anchor_of,
    backend_name,
    backend_of,
    check_anchor,
    collected_warnings,
    limits_of,
    program_of,
    read_result,
    refit,
    source_and_model,
)
from raters.cli.generated import dashed
from raters.cli.kinds import check_asked, kind_asked, model_flag
from raters.cli.options import (
    AuditOptions,
    ColumnOptions,
    FitOptions,
    ModelOptions,
    OutputOptions,
    note,
    settings,
)
from raters.cli.reading import Source
from raters.errors import SettingError
from raters.figures.rows import AUDITED
from raters.fitting.result import data_of
from raters.fitting.result import model_of as fitted_model
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.judgements.names import plural
from raters.kinds import AuditContext, Column, Section, kind_of
from raters.program import Program
from raters.reporting import facts, sentences, steps
from raters.reporting.cells import write_csv
from raters.reporting.convergence import convergence
from raters.reporting.page import columns, judges, section_facts
from raters.reporting.report import check_form
from raters.reporting.sections import sections_of
from raters.reporting.unjudged import why_unjudged

# Files that every audit writes into its folder.
_SURE = ("result.nc", "summary.json")


@dataclass(frozen=True)
class AuditCommand:
    """Everything that was asked of an audit."""

    file: Path
    columns: ColumnOptions
    model: ModelOptions
    fit: FitOptions
    audit: AuditOptions
    output: OutputOptions
    command: str


@dataclass(frozen=True)
class Findings:
    """Everything that an audit found."""

    context: AuditContext
    sections: tuple[Section, ...]
    questions: pd.DataFrame
    questions_note: str
    agreement: pd.DataFrame | None = None
    agreement_note: str = ""


# ---------------------------------------------------------------- audit


def audit(request: AuditCommand) -> None:
    """Fit, judge, suggest; write everything, then print it."""
    check_reports(request.output, request.file)
    output = request.output
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings() as caught:
        source, model = source_and_model(request.file, request.columns, request.model)
        backend_of(request.fit, model)  # Wrong options are said before the table is read.
        limits = limits_of(request.audit, source.kind)
        anchor = anchor_of(request.audit, request.audit.gold, source.kind)
        outputs.check_writable(output.out, folder=True, force=output.force, names=_SURE)
        program, notes = program_of(source, model)
        backend = backend_of(request.fit, model, program.data)
        _check_judged(request, program)
        check_anchor(program.data, anchor)
        request.fit.note(*notes)
        findings = _findings(request, _audited(request, program, backend, limits | anchor))
        pages = _reports(request, findings)
    summary = _summary(request, source, findings) | {"warnings": caught}
    written = _write(output, findings, summary)
    with outputs.already(note := f"wrote {', '.join(written)} to {output.out}"):
        note = " and ".join([note, *_write_reports(pages, output.force)])
        _print(request, findings)
    request.fit.note(note)


def _check_judged(request: AuditCommand, program: Program[Any]) -> None:
    """`SettingError` for options of an audit with a model that judges nobody."""
    if not (why := why_unjudged(program)):
        return
    options, kind = request.audit, kind_of(program.data)
    wanted = {
        "--drop": options.drop,
        "--gold": options.gold,
        "--reference": options.reference,
        "--trust-crowd": options.trust_crowd,
        "--influence": options.influence,
    }
    for flag in (flag for flag, given in wanted.items() if given):
        if kind.unjudged:
            raise SettingError(f"{flag} needs an audit. {why}")
        raise SettingError(
            f"{flag} needs {plural(program.data.judge)} told apart, which"
            f" {model_flag(type(program.model))} does not; write {model_flag(type(kind.default))}"
        )


def _audited(
    request: AuditCommand, program: Program[Any], backend: Backend, limits: dict[str, Any]
) -> AuditContext:
    """Fit and audit, and fit again without those flagged."""
    fitting, options, (model, data) = request.fit, request.audit, (program.model, program.data)
    # Log-likelihoods of single judgements are most of a result, and nothing of an audit.
    result = rt.fit(
        model, data, backend, seed=fitting.seed, progress=fitting.bars, log_likelihood=False
    )
    verdicts, dropped = None, None
    if not why_unjudged(program):
        verdicts = rt.audit(model, result, seed=fitting.seed, **limits)
        dropped = refit(model, data, verdicts, backend, fitting) if options.drop else None
    return AuditContext(program, result, verdicts, options.level, dropped)


def _findings(request: AuditCommand, context: AuditContext) -> Findings:
    """Sections of the kind, agreement, and questions to ask next."""
    program, audited = context.program, context.audit
    data, sections = program.data, sections_of(context)
    flagged = [] if audited is None else audited.flagged
    asked = next_questions(
        program, context.result, flagged, request.audit.batch_size, request.fit.seed
    )
    if not is_measurable(data):
        return Findings(context, sections, *asked)
    return Findings(context, sections, *asked, *facts.agreement_or_why_not(data, context.level))


def _summary(request: AuditCommand, source: Source, findings: Findings) -> dict[str, Any]:
    """Everything that the audit says, as one dictionary."""
    context = findings.context
    audited, agreement = context.audit, findings.agreement
    # Options that were left out have values that suit the kind and the model.
    chosen: dict[str, Any] = {
        "kind": source.kind.name,
        "model": dashed(type(context.program.model).__name__),
        "backend": backend_name(request.fit, context.program.model, context.program.data),
    }
    if audited is not None:
        chosen["threshold"] = audited.threshold
    return {
        "settings": {"file": request.file}
        | settings(request.columns, request.model, request.fit, request.audit, request.output)
        | chosen,
        "model": repr(context.program.model),
        "data": facts.data_facts(context.program.data),
        "versions": facts.versions(),
        "fit": facts.fit_facts(context.result),
        "audit": None if audited is None else facts.audit_summary(audited),
        "sections": {
            one.key: section_facts(one, request.audit.margin) for one in findings.sections
        },
        "agreement": None if agreement is None else agreement.reset_index(names="statistic"),
        "agreement_note": findings.agreement_note,
        "suggestions": findings.questions,
        "suggestions_note": findings.questions_note,
    }


def _write(output: OutputOptions, findings: Findings, summary: Mapping[str, Any]) -> list[str]:
    """Write everything into the folder, or nothing; gives the names of the files."""
    context = findings.context

    def write(folder: Path) -> None:
        outputs.to_netcdf(context.result, folder / "result.nc")
        if context.dropped is not None:
            outputs.to_netcdf(context.dropped, folder / "result-dropped.nc")
        more = (_figures(context.audit), _wanted(context))
        for files in (*(section.files for section in findings.sections), *more):
            for name, write_one in files.items():
                write_one(folder / name)
        facts.write_json(summary, folder / "summary.json")

    with collected_warnings():
        return outputs.write_folder(output.out, write, force=output.force)


def _figures(audit: rt.auditing.Audit | None) -> dict[str, Callable[[Path], object]]:
    """Figures of the audit, where it has the quantities that they draw."""
    if audit is None:
        return {}
    drawn: dict[str, Callable[[Path], object]] = {
        "competences.png": lambda path: figures.competences(audit).savefig(path)
    }
    if set(audit.table.data_vars) >= AUDITED:
        drawn["auditor.png"] = lambda path: figures.auditor(audit).savefig(path)
    return drawn


def _wanted(context: AuditContext) -> dict[str, Callable[[Path], object]]:
    """Questions whose truth is wanted, with a column to fill in, where verdicts are open."""
    truths = kind_of(context.program.data).truths
    if truths is None or context.audit is None or context.audit.settling is None:
        return {}
    table = context.audit.settling.questions.assign(**{truths.answer: ""})
    return {steps.WANTED: lambda path: write_csv(table, path)}


def _print(request: AuditCommand, findings: Findings) -> None:
    """Print what the audit stands on, the first section of the kind, the judges, the other
    sections, and what to ask next."""
    out, context = console.Output(), findings.context
    kind, audited, rows = kind_of(context.program.data), context.audit, request.output.rows
    first, others = findings.sections[:1], findings.sections[1:]
    stands = audited.anchor.sentence if audited else why_unjudged(context.program, model_flag)
    out.print(stands, style="bold", highlight=False, markup=False)
    for reason in _not_final(context, request.command):
        out.print(reason, highlight=False, markup=False)
    out.print()
    for section in first:
        page.print_section(out, section, context.level, rows)
    if audited is not None:
        below = Column("p_below", f"below {audited.threshold:g}", "percent")
        shown = [one for one in columns(audited, kind) if one.name != below.name]
        words = (kind.words.many, kind.lowest)
        page.print_judges(out, audited, judges(audited, kind), [*shown, below], words, rows)
    for section in others:
        page.print_section(out, section, context.level, rows)
    if is_measurable(context.program.data):
        page.print_agreement(
            out,
            context.program.data.judge,
            findings.agreement,
            findings.agreement_note,
            context.level,
        )
    page.print_questions(out, context.program.data, findings.questions, findings.questions_note)


def _not_final(context: AuditContext, command: str) -> list[str]:
    """Why the verdicts may still change, as a report says it."""
    if context.audit is None:
        return []
    fitted = convergence(context.program, context.result, context.audit, command)
    return sentences.not_final(fitted, context.audit)


# ---------------------------------------------------------------- reports


def check_reports(output: OutputOptions, *inputs: Path) -> None:
    """`SettingError` when a report cannot be written, before anything is fitted."""
    for path in output.report or ():
        check_form(path)
        beside = path.parent.resolve() == output.out.resolve()
        if path.name == outputs.MANIFEST or (beside and path.name.lower() in _SURE):
            raise SettingError(
                f"--report {str(path)!r} has the name of a file that raters writes there itself;"
                f" name another, such as --report {path.with_name('report.json')}"
            )
        # The folder of everything else is made when it is not there.
        if not beside or path.is_dir():
            outputs.check_writable(
                path, folder=False, option="--report", force=output.force, inputs=inputs
            )


def _reports(request: AuditCommand, findings: Findings) -> dict[Path, str]:
    """The text of each report that is wanted."""
    context = findings.context
    if not request.output.report:
        return {}
    made = rt.report(
        context.program.model,
        context.result,
        context.audit,
        dropped=context.dropped,
        questions=findings.questions,
        questions_note=findings.questions_note,
        command=request.command,
    )
    return {path: made.as_text(path) for path in request.output.report}


def _write_reports(texts: Mapping[Path, str], force: bool) -> list[str]:
    """Write each report whole or not at all; gives their names, as notes have them."""
    for path, text in texts.items():
        write = partial(Path.write_text, data=text, encoding="utf-8")
        outputs.write_file(path, write, force=force)
    return [str(path) for path in texts]


# ---------------------------------------------------------------- fit and suggest


def fit(
    file: Path,
    columns: ColumnOptions,
    model: ModelOptions,
    fitting: FitOptions,
    out: Path,
    force: bool,
) -> None:
    """Fit and save."""
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings():
        source, fitted = source_and_model(file, columns, model)
        backend_of(fitting, fitted)  # Wrong options are said before the table is read.
        outputs.check_writable(out, folder=False, force=force, inputs=[file])
        program, notes = program_of(source, fitted)
        data = program.data
        backend = backend_of(fitting, fitted, data)
        fitting.note(*notes)
        result = rt.fit(fitted, data, backend, seed=fitting.seed, progress=fitting.bars)
    outputs.write_file(out, partial(outputs.to_netcdf, result), force=force)
    fitting.note(f"wrote {out} ({fitted!r}, {result.attrs['seconds']:.1f} s)")


@dataclass(frozen=True)
class SuggestCommand:
    """Everything that was asked of ``raters suggest``."""

    result: Path
    names: Mapping[str, list[str]]
    policy: Policy
    again: bool
    size: int | None
    batch_size: int
    draws: int | None
    seed: int
    out: Path | None
    quiet: bool
    force: bool
    kind: str | None


def suggest(request: SuggestCommand) -> None:
    """Score questions under a saved result."""
    if request.out is not None:
        tables.table_format(request.out)
        outputs.check_writable(
            request.out, folder=False, force=request.force, inputs=[request.result]
        )
    asked = kind_asked(request.kind)
    result = read_result(request.result)
    program: Program[Any] = Program(fitted_model(result), data_of(result))
    data = program.data
    check_asked(asked, data)
    names = {
        axis: own_names(some, data.coords[axis]) for axis, some in _axes(request, data).items()
    }
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings():
        table = questions(
            program,
            result,
            names,
            request.policy,
            again=request.again or None,
            size=request.size,
            batch_size=request.batch_size,
            draws=request.draws,
            seed=request.seed,
        )
    if request.out is None:
        page.print_questions(console.Output(), data, table, "")
        return
    write = partial(tables.write_for_people, table)
    outputs.write_file(request.out, write, force=request.force)
    with outputs.already(f"wrote {request.out}"):
        page.print_questions(console.Output(), data, table, "")
    note(f"wrote {len(table)} question(s) to {request.out}", quiet=request.quiet)


def _axes(request: SuggestCommand, data: Judgements) -> dict[str, list[str]]:
    """Names by axis; `SettingError` for an axis that these judgements have not."""
    for axis in request.names:
        if axis not in data.question_axes():
            raise SettingError(
                f"--{dashed(axis)} has no meaning for {kind_of(data).words.many}; their questions"
                f" have {', '.join(f'--{dashed(one)}' for one in data.question_axes())}"
            )
    return dict(request.names)
