"""Commands as Typer takes them: their own options, and those that follow from the kinds."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from raters.acquisition import Policy
from raters.acquisition.policy.policy import Target
from raters.cli import agreement as agreeing
from raters.cli import audit as auditing
from raters.cli import campaign as campaigns
from raters.cli import campaign_start as starting
from raters.cli import campaign_stream as streaming
from raters.cli import check as checking
from raters.cli import joint as joining
from raters.cli import simulate as simulating
from raters.cli import types as typing_of
from raters.cli.app import COMMANDS, CONTEXT
from raters.cli.generated import dashed
from raters.cli.joint_audit import JointAuditOptions
from raters.cli.kinds import kind_asked, kind_in
from raters.cli.options import (
    AuditOptions,
    ColumnOptions,
    FitOptions,
    Force,
    GeneratedOptions,
    KindName,
    ModelOptions,
    OutputOptions,
    QuietOption,
    SeedOption,
    option,
    with_options,
)
from raters.kinds import registered_kinds

FORMATS = "Table of judgements: .csv, .tsv, .jsonl (each also .gz), or .parquet (also a folder)."
Table = Annotated[Path, typer.Argument(metavar="FILE", help=FORMATS)]
Judges = Annotated[
    list[str] | None,
    typer.Option("--annotator", help="Only this one; may be given again.", metavar="NAME"),
]


def add_command(app: typer.Typer, name: str, arguments: Sequence[str]) -> None:
    """Add a command, with the options that follow from the kinds of judgement."""
    kind_asked(kind_in(arguments))
    if name == "campaign":
        app.add_typer(_campaign(), name=name)
        return
    generated = None
    if name in ("agreement", "audit", "check", "fit", "joint"):
        generated = GeneratedOptions.of(registered_kinds())
    elif name == "types":
        models = typing_of.MODELS
        kinds = tuple(kind for kind in registered_kinds() if kind.name in models)
        generated = GeneratedOptions.of(kinds, only=models.values(), backend="em")
    extra = {"suggest": _axis_parameters, "simulate": _design_parameters}.get(name)
    command = with_options(_COMMANDS[name], generated, extra() if extra else ())
    app.command(name, help=COMMANDS[name])(command)


# ---------------------------------------------------------------- tables


def audit(
    context: typer.Context,
    file: Table,
    columns: ColumnOptions,
    model: ModelOptions,
    fitting: FitOptions,
    limits: AuditOptions,
    output: OutputOptions,
) -> None:
    """Audit the judges of a table."""
    auditing.audit(
        auditing.AuditCommand(file, columns, model, fitting, limits, output, _as_typed(context))
    )


def _as_typed(context: typer.Context) -> str:
    """The command again, with the arguments and options that were given and no others."""
    words = ["raters", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        if (source := context.get_parameter_source(name)) is None or source.name != "COMMANDLINE":
            continue
        given = context.params[name]
        flag = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if isinstance(given, bool):
            words += flag if given else parameter.secondary_opts[:1]
        else:
            for value in given if isinstance(given, (list, tuple)) else [given]:
                words += [*flag, str(value)]
    return shlex.join(words)


def agreement(file: Table, columns: ColumnOptions, options: agreeing.AgreementOptions) -> None:
    """Measure the agreement in a table."""
    agreeing.agreement(file, columns, options)


def types(
    file: Table,
    columns: ColumnOptions,
    model: ModelOptions,
    fitting: FitOptions,
    options: typing_of.TypeOptions,
) -> None:
    """Find types of annotators."""
    typing_of.types(typing_of.TypesCommand(file, columns, model, fitting, options))


TABLE_OR_RESULT = f"{FORMATS[:-1]}; or RESULT.nc, saved by `raters fit` or `raters audit`."


def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=TABLE_OR_RESULT)],
    columns: ColumnOptions,
    model: ModelOptions,
    fitting: FitOptions,
    options: checking.CheckOptions,
) -> None:
    """Check a model by data that it replicates."""
    checking.check(checking.CheckCommand(file, columns, model, fitting, options))


def fit(
    file: Table,
    columns: ColumnOptions,
    model: ModelOptions,
    fitting: FitOptions,
    out: Annotated[Path, typer.Option("--out", help="The result, as netCDF.", metavar="FILE")],
    force: Force = False,
) -> None:
    """Fit a model and save the result."""
    auditing.fit(file, columns, model, fitting, out, force)


def joint(options: joining.JointOptions, fitting: FitOptions, limits: JointAuditOptions) -> None:
    """Fit one model of several kinds of judgement, and audit who gave them."""
    joining.joint(options, fitting, limits)


# ---------------------------------------------------------------- questions

SAVED = "Result saved by `raters fit` or `raters audit`."


def suggest(
    result: Annotated[Path, typer.Argument(metavar="RESULT.nc", help=SAVED)],
    given: Mapping[str, Any],
    batch_size: Annotated[int, typer.Option(min=1, help="Questions to suggest.")] = 10,
    again: Annotated[
        bool, typer.Option("--again", help="Ask again what was answered, but votes and rankings.")
    ] = False,
    size: Annotated[
        int | None, typer.Option("--size", min=2, help="Of rankings: items of a set.")
    ] = None,
    target: Annotated[Target | None, typer.Option(help=starting.WANTED)] = None,
    k: Annotated[int, typer.Option("--top", min=1, help="With --target top_k: how many.")] = 1,
    draws: Annotated[
        int | None,
        typer.Option(min=2, help="Posterior draws to score with; fewer for many candidates."),
    ] = None,
    seed: SeedOption = 0,
    kind: KindName = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Also write the questions as a table.", metavar="FILE"),
    ] = None,
    quiet: QuietOption = False,
    force: Force = False,
) -> None:
    """Choose questions under a saved result."""
    policy = Policy(target=target, k=k)
    names = {axis.removeprefix("axis_"): some for axis, some in given.items() if some}
    auditing.suggest(
        auditing.SuggestCommand(
            result, names, policy, again, size, batch_size, draws, seed, out, quiet, force, kind
        )
    )


def _axis_parameters() -> list[inspect.Parameter]:
    """An option for each axis that questions of some kind have."""
    axes = [axis for kind in registered_kinds() for axis in kind.data.question_axes()]
    return [
        _parameter(
            f"axis_{axis}",
            list[str] | None,
            option(
                "Questions",
                f"--{dashed(axis)}",
                help=f"Only this {axis.replace('_', ' ')}; may be given again.",
                metavar="NAME",
            ),
        )
        for axis in dict.fromkeys(axes)
    ]


def _parameter(name: str, annotation: Any, hint: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, hint]
    )


# ---------------------------------------------------------------- simulate


def simulate(
    given: Mapping[str, Any],
    out: Annotated[
        Path,
        typer.Option("--out", help="The table: .csv, .tsv, .jsonl or .parquet.", metavar="FILE"),
    ],
    design: Annotated[
        Literal[tuple(simulating.DESIGNS)],  # type: ignore[valid-type]
        option("Design", help="Kind of crowd and of judgements."),
    ] = "crowd",
    seed: SeedOption = 0,
    quiet: QuietOption = False,
    force: Force = False,
) -> None:
    """Draw judgements from a known truth."""
    chosen = {name: value for name, value in given.items() if value is not None}
    simulating.simulate(out, design, chosen, seed, quiet, force)


def _design_parameters() -> list[inspect.Parameter]:
    return [one.parameter() for one in simulating.design_options()]


_COMMANDS: dict[str, Callable[..., None]] = {
    "agreement": agreement,
    "audit": audit,
    "types": types,
    "check": check,
    "fit": fit,
    "joint": joint,
    "suggest": suggest,
    "simulate": simulate,
}


# ---------------------------------------------------------------- campaigns


def _campaign() -> typer.Typer:
    """The commands of campaigns."""
    app = typer.Typer(
        invoke_without_command=True, context_settings=CONTEXT, help=COMMANDS["campaign"]
    )
    app.callback()(_campaign_help)
    kinds = GeneratedOptions.of(registered_kinds())
    for name, (command, text) in _OF_CAMPAIGN.items():
        generated = kinds if name == "start" else None
        app.command(name, help=text)(with_options(command, generated))
    return app


def _campaign_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


BEFORE = "Judgements from before, as for `raters audit`; none without it."


def campaign_start(
    columns: ColumnOptions,
    model: ModelOptions,
    fitting: FitOptions,
    options: starting.CampaignOptions,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help=BEFORE)] = None,
    out: Annotated[Path, typer.Option("--out", help="The journal.", metavar="CAMPAIGN.db")] = Path(
        "campaign.db"
    ),
) -> None:
    """Start a campaign."""
    starting.start(starting.StartCommand(file, columns, model, fitting, options, out))


def campaign_ask(
    options: campaigns.JournalOptions,
    number: Annotated[
        int | None, typer.Option(min=1, help="How many questions. (default: a batch)")
    ] = None,
    annotator: Judges = None,
    budget: Annotated[float | None, typer.Option(help="A new budget.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="A table with a column for the answers.", metavar="FILE"),
    ] = None,
    force: Force = False,
) -> None:
    """Hand out questions."""
    campaigns.ask(options, number, annotator, budget, out, force)


ARRIVING = (
    "Questions that arrive, in order: a table with the columns of `ask`, such as first, second, by."
)
RATE = "Share of the questions that are asked. (default: 0.1 at first, then as before)"


def campaign_consider(
    options: campaigns.JournalOptions,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help=ARRIVING)] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(help="One question, column by column.", metavar="COLUMN=NAME"),
    ] = None,
    rate: Annotated[float | None, typer.Option(help=RATE)] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="A table of those that are asked.", metavar="FILE")
    ] = None,
    force: Force = False,
) -> None:
    """Decide on questions that arrive."""
    streaming.consider(options, streaming.ConsiderCommand(file, question, rate, out, force))


def campaign_tell(
    options: campaigns.JournalOptions,
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="The table of `ask` with answers.")
    ] = None,
    question: Annotated[
        str | None, typer.Option("--id", help="One question.", metavar="ID")
    ] = None,
    answer: Annotated[str | None, typer.Option(help="The answer to it.", metavar="ANSWER")] = None,
    annotator: Judges = None,
    correct: Annotated[
        bool, typer.Option("--correct", help="Let an answer take the place of another.")
    ] = False,
) -> None:
    """Take answers."""
    campaigns.tell(options, file, question, answer, annotator, correct)


def campaign_status(
    options: campaigns.JournalOptions,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fit nothing: only what can be counted.")
    ] = False,
) -> None:
    """Say where a campaign stands."""
    campaigns.status(options, quick)


def campaign_withdraw(
    options: campaigns.JournalOptions,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Questions that wait for an answer."),
    ] = None,
    annotator: Judges = None,
) -> None:
    """Take open questions back."""
    campaigns.withdraw(options, ids, annotator)


TO = (
    "csv: a table to fill in; label-studio, argilla: open questions as JSON, and beside it the"
    " interface; judgements: all answers."
)
TEXTS = "Table of what to show for each item: its columns `item` and `text`."


def campaign_export(
    options: campaigns.JournalOptions,
    to: Annotated[Literal["csv", "label-studio", "argilla", "judgements"], typer.Option(help=TO)],
    out: Annotated[Path, typer.Option("--out", help="Where to write it.", metavar="FILE")],
    texts: Annotated[Path | None, typer.Option(help=TEXTS, metavar="FILE")] = None,
    ties: Annotated[
        bool, typer.Option("--ties", help="Let people say that two are equally good.")
    ] = False,
    annotator: Judges = None,
    force: Force = False,
) -> None:
    """Write questions or answers."""
    campaigns.export(options, campaigns.ExportCommand(to, out, texts, ties, annotator, force))


def campaign_import(
    options: campaigns.JournalOptions,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Export of the tool.")],
    source: Annotated[
        Literal["csv", "label-studio", "argilla"], typer.Option("--from", help="The tool.")
    ],
    people: Annotated[
        list[str] | None,
        typer.Option(
            help="Annotator behind a user of that tool; may be given again.", metavar="USER=NAME"
        ),
    ] = None,
    correct: Annotated[
        bool, typer.Option("--correct", help="Let an answer take the place of another.")
    ] = False,
) -> None:
    """Take answers from an export."""
    campaigns.import_(options, file, source, people, correct)


_OF_CAMPAIGN: dict[str, tuple[Callable[..., None], str]] = {
    "start": (
        campaign_start,
        "Start a campaign: who can be asked about what, and what for. It need not be told again.",
    ),
    "ask": (
        campaign_ask,
        "Hand out the next questions; with --out as a table to fill in, which `tell` reads.",
    ),
    "consider": (
        campaign_consider,
        "Decide on questions that arrive one after another: ask each, or let it go, by its score"
        " among the last ones.",
    ),
    "tell": (
        campaign_tell,
        "Take answers: from a table, to one --id, or (without either) asking for them one by one.",
    ),
    "status": (
        campaign_status,
        "Say where a campaign stands: how much is answered and spent, and how sure the order is.",
    ),
    "withdraw": (
        campaign_withdraw,
        "Take open questions back, so that others may be asked; an answer that comes later still"
        " counts.",
    ),
    "export": (
        campaign_export,
        "Write the open questions for people to answer elsewhere, or all answers as a table of"
        " judgements.",
    ),
    "import": (
        campaign_import,
        "Take answers from the export of Label Studio (JSON) or Argilla (records as JSON).",
    ),
}
