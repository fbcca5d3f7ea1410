"""The command line: ``raters audit``, ``types``, ``fit``, ``suggest``, ``campaign``, ``simulate``."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from raters.errors import RatersError

app = typer.Typer(
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Bayesian models of human judgement: who can be trusted, what people prefer, and what to ask next.",
)
# Typer has carried its own copy of click since 0.26, so the base class of usage errors is found through Typer.
_UsageError: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")


def _option(panel: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, rich_help_panel=panel, **settings)


def _column(text: str) -> Any:
    return _option("Columns", help=f"Column with {text}.", metavar="COLUMN")


Table = Annotated[
    Path, typer.Argument(metavar="FILE", help="Votes or labels: .csv, .tsv, .jsonl (each also .gz), or .parquet.")
]
Winner = Annotated[str | None, _column("the preferred item")]
Loser = Annotated[str | None, _column("the other item")]
First = Annotated[str | None, _column("the item shown first")]
Second = Annotated[str | None, _column("the item shown second")]
Outcome = Annotated[str | None, _column("who won: an item, a side, 1/0, or a tie")]
Item = Annotated[str | None, _column("the rated or labelled item")]
Rating = Annotated[str | None, _column("the item's rating; higher wins")]
Label = Annotated[str | None, _column("the class that the annotator gave the item")]
Annotator = Annotated[str | None, _column("who voted, or gave the label")]
Count = Annotated[str | None, _column("the number of equal votes in the row")]
TIES = "What a tie means. (default: error for votes, half for ratings)"
Ties = Annotated[Literal["error", "drop", "half"] | None, _option("Columns", help=TIES)]
BAD_ROWS = "Leave out rows with a missing value or an item compared with itself."
DropBadRows = Annotated[bool, _option("Columns", "--drop-bad-rows", help=BAD_ROWS)]


def _of_labels(help: str, **settings: Any) -> Any:
    return _option("Labels", help=help, **settings)


Truth = Annotated[str | None, _of_labels("Column with the item's true class, empty where unknown.", metavar="COLUMN")]
Classes = Annotated[str | None, _of_labels("All classes, in order. (default: those met, sorted)", metavar="A,B,...")]
REPEATS = "When an annotator labels an item again: count every label, keep the first, or refuse. (default: keep)"
Repeats = Annotated[Literal["keep", "drop", "error"] | None, _of_labels(REPEATS)]
Feature = Annotated[
    list[str] | None, _of_labels("Column with a number that describes the item; may be given again.", metavar="COLUMN")
]
MODEL = "btl, pooled and majority-vote take all annotators as alike. (default: extended-btl; of labels dawid-skene)"
ModelName = Annotated[
    Literal[
        "btl",
        "extended-btl",
        "dawid-skene",
        "one-coin",
        "hierarchical-dawid-skene",
        "item-difficulty",
        "raykar",
        "yan",
        "pooled",
        "majority-vote",
    ]
    | None,
    _option("Model", "--model", help=MODEL),
]
COMPETENCE = "Where competences may lie: [0, 1], above 0, or anywhere. Only signed can find adversaries. (default: signed)"
Competence = Annotated[Literal["unit", "positive", "signed"] | None, _option("Model", help=COMPETENCE)]
PositionBias = Annotated[bool, _option("Model", "--position-bias", help="Learn who favours what is shown first.")]
RewardScale = Annotated[float | None, _option("Model", help="Standard deviation of the rewards. (default: learned)")]
SPREAD = "Standard deviation of the competences, or 'learned'. (default: 1 when signed, else learned)"
Spread = Annotated[str | None, _option("Model", help=SPREAD, metavar="NUMBER")]
BackendName = Annotated[Literal["gibbs", "nuts", "svi", "em"], _option("Fit", "--backend", help="gibbs and nuts are exact.")]
Draws = Annotated[int | None, _option("Fit", min=4, help="Posterior draws (per chain). (default: 1000)")]
Warmup = Annotated[int | None, _option("Fit", min=1, help="Draws to discard first (gibbs, nuts).")]
Chains = Annotated[int | None, _option("Fit", min=1, help="Chains (gibbs, nuts). (default: 4)")]
Seed = Annotated[int, _option("Fit", min=0, max=2**31 - 1, help="The same seed gives the same result.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no notes on standard error.")]
Progress = Annotated[bool, typer.Option("--progress/--no-progress", help="Progress bars (only ever on a terminal).")]
THRESHOLD = "An annotator with a competence below it is bad; 1 is a reliable one, 0 one who guesses."
Threshold = Annotated[float, _option("Audit", help=THRESHOLD)]
Level = Annotated[float, _option("Audit", help="Posterior probability of the intervals.")]
MinVotes = Annotated[int, _option("Audit", min=0, help="With fewer votes nobody is judged.")]
KeepBad = Annotated[float, _option("Audit", "--cost-keep-bad", help="Cost of keeping a bad annotator.")]
DropGood = Annotated[float, _option("Audit", "--cost-drop-good", help="Cost of dropping a good one.")]
Review = Annotated[float, _option("Audit", "--cost-review", help="Cost of looking into an annotator's votes.")]
Refit = Annotated[bool, _option("Audit", "--drop", help="Fit again without the flagged; report what changes.")]
REPORT = "Also a report to hand on: .html (a page), .md (for a pull request) or .json; may be given again."
ReportFile = Annotated[list[Path] | None, _option("Audit", "--report", help=REPORT, metavar="FILE")]
Place = Annotated[
    list[str] | None,
    _option("Columns", help="Of rankings: column with the item in this place; give it for each place.", metavar="COLUMN"),
]
NumTypes = Annotated[int, _option("Types", min=1, help="Number of types.")]
OF_TYPES = "Learn a competence for each annotator, in [0, 1] or above 0. (default: all alike)"
TypeCompetence = Annotated[Literal["unit", "positive"] | None, _option("Types", "--competence", help=OF_TYPES)]
PRIOR = "Prior of the shares; stick_breaking lets spare types empty."
TypePrior = Annotated[Literal["dirichlet", "stick_breaking"], _option("Types", help=PRIOR)]
Concentration = Annotated[float, _option("Types", help="Of that prior; the smaller, the fewer types.")]
Compare = Annotated[str | None, _option("Types", help="Also compare these numbers of types, by LOO.", metavar="1,2,...")]
FIRST_LOOK = "em takes seconds and suits a first look; gibbs and nuts are exact."
TypeBackend = Annotated[Literal["em", "gibbs", "nuts", "svi"], _option("Fit", "--backend", help=FIRST_LOOK)]
BatchSize = Annotated[int, typer.Option(min=1, help="Questions to suggest.")]
WANTED = "What the answers are for. (default: the ranking, or the true classes)"
TargetName = Literal["ranking", "reward", "top_k", "truth", "competence", "predictive", "everything"]
Folder = Annotated[Path, typer.Option("--out", help="Folder for result.nc, summary.json, tables and figures.", metavar="DIR")]
Rows = Annotated[int, typer.Option(min=2, help="Most rows of a printed table; of more, both ends are shown.")]


@app.callback(invoke_without_command=True)
def _raters(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed

        print(f"raters {installed('raters')}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def _fitting(
    file: Table,
    winner: Winner = None,
    loser: Loser = None,
    first: First = None,
    second: Second = None,
    outcome: Outcome = None,
    item: Item = None,
    rating: Rating = None,
    label: Label = None,
    annotator: Annotator = None,
    count: Count = None,
    ties: Ties = None,
    drop_bad_rows: DropBadRows = False,
    truth: Truth = None,
    classes: Classes = None,
    repeats: Repeats = None,
    feature: Feature = None,
    model: ModelName = None,
    competence: Competence = None,
    position_bias: PositionBias = False,
    reward_scale: RewardScale = None,
    competence_spread: Spread = None,
    backend: BackendName = "gibbs",
    draws: Draws = None,
    warmup: Warmup = None,
    chains: Chains = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    progress: Progress = True,
) -> None:
    """The options of every command that fits."""


def _that_fits(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `_fitting` before its own, which replace those of the same name. Commands read all of
    them from the context."""
    signatures = [inspect.signature(function, eval_str=True).parameters for function in (_fitting, command)]
    named = {name: one.replace(kind=one.KEYWORD_ONLY) for signature in signatures for name, one in signature.items()}
    parameters = list(named.values())

    def run(**given: Any) -> None:
        command(**{name: value for name, value in given.items() if name in signatures[1]})

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


@app.command()
@_that_fits
def audit(
    context: typer.Context,
    threshold: Threshold = 0.25,
    level: Level = 0.9,
    min_votes: MinVotes = 5,
    cost_keep_bad: KeepBad = 1.0,
    cost_drop_good: DropGood = 1.0,
    cost_review: Review = 0.2,
    drop: Refit = False,
    report: ReportFile = None,
    batch_size: BatchSize = 10,
    out: Folder = Path("raters-audit"),
    rows: Rows = 20,
) -> None:
    """Rank or label the items, audit the annotators, and say what to ask next."""
    from raters import _cli_run

    _cli_run.audit(context.params, _as_typed(context))


def _as_typed(context: typer.Context) -> str:
    """The command again, with the arguments and options that were given and no others."""
    words = ["raters", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        if (source := context.get_parameter_source(name)) is None or source.name != "COMMANDLINE":
            continue
        given = context.params[name]
        option = [] if parameter.param_type_name == "argument" else [parameter.opts[0]]
        if isinstance(given, bool):
            words += option if given else parameter.secondary_opts[:1]
        else:
            for value in given if isinstance(given, (list, tuple)) else [given]:
                words += [*option, str(value)]
    return shlex.join(words)


@app.command()
def types(
    context: typer.Context,
    file: Table,
    winner: Winner = None,
    loser: Loser = None,
    first: First = None,
    second: Second = None,
    outcome: Outcome = None,
    item: Item = None,
    rating: Rating = None,
    place: Place = None,
    annotator: Annotator = None,
    count: Count = None,
    ties: Ties = None,
    drop_bad_rows: DropBadRows = False,
    num_types: NumTypes = 3,
    competence: TypeCompetence = None,
    reward_scale: RewardScale = None,
    type_prior: TypePrior = "dirichlet",
    concentration: Concentration = 1.0,
    compare: Compare = None,
    backend: TypeBackend = "em",
    draws: Draws = None,
    warmup: Warmup = None,
    chains: Chains = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    progress: Progress = True,
    level: Annotated[float, typer.Option(help="Posterior probability of the intervals.")] = 0.9,
    out: Folder = Path("raters-types"),
) -> None:
    """Find types of annotators who want different things: what each prefers, and who is of which."""
    from raters import _cli_types

    _cli_types.types(context.params)


@app.command()
@_that_fits
def fit(
    context: typer.Context, out: Annotated[Path, typer.Option("--out", help="The result, as netCDF.", metavar="FILE")]
) -> None:
    """Fit a model and save the result, for `raters suggest` or for arviz.from_netcdf."""
    from raters import _cli_run

    _cli_run.fit(context.params)


@app.command()
def suggest(
    context: typer.Context,
    result: Annotated[Path, typer.Argument(metavar="RESULT.nc", help="What `raters fit` or `raters audit` saved.")],
    batch_size: BatchSize = 10,
    annotator: Annotated[list[str] | None, typer.Option(help="Ask only this one; may be given again.", metavar="NAME")] = None,
    item: Annotated[list[str] | None, typer.Option(help="Ask only about these; may be given again.", metavar="NAME")] = None,
    again: Annotated[bool, typer.Option("--again", help="Of labels: annotators may be asked about an item again.")] = False,
    target: Annotated[TargetName | None, typer.Option(help=WANTED)] = None,
    k: Annotated[int, typer.Option("--top", min=1, help="With --target top_k: how many.")] = 1,
    draws: Annotated[int, typer.Option(min=2, help="Posterior draws to score with.")] = 200,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option("--out", help="Also write the questions as a table.", metavar="FILE")] = None,
) -> None:
    """Say which questions, put to whom, would tell most of what is wanted."""
    from raters import _cli_run

    _cli_run.suggest(context.params)


campaign = typer.Typer(
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Ask people, question by question: what to ask next, whom, and when to stop. No answer is lost in a crash.",
)
app.add_typer(campaign, name="campaign")


@campaign.callback()
def _campaign(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def _of_campaign(help: str, *names: str, **settings: Any) -> Any:
    return _option("Campaign", *names, help=help, **settings)


Journal = Annotated[Path, typer.Argument(metavar="CAMPAIGN.db", help="What `raters campaign start` wrote.")]
EarlierVotes = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="Votes or labels from before, as for `raters audit`; none without it.")
]
NAMES = "To ask {}: names separated by commas, or a file with one a line. (default: those in FILE)"
Items = Annotated[str | None, _of_campaign(NAMES.format("about"), metavar="A,B,...")]
Annotators = Annotated[str | None, _of_campaign(NAMES.format("whom"), metavar="A,B,...")]
# A union of two Literals is more than Typer reads; a Literal of a Literal is one.
Target = Annotated[Literal[TargetName, "random"] | None, _of_campaign(WANTED)]
COST = "What an answer of this annotator costs (1 where nothing is said); may be given again."
Cost = Annotated[list[str] | None, _of_campaign(COST, "--cost", metavar="NAME=NUMBER")]
Quota = Annotated[int | None, _of_campaign("Most questions for one annotator.", min=1)]
LeastShare = Annotated[float, _of_campaign("Share of all questions that every annotator gets at least.")]
UNTIL = (
    "Stop when the order is expected to have this tau with the true one; of labels, when this share is expected to be right."
)
Until = Annotated[float | None, _of_campaign(UNTIL)]
Budget = Annotated[float | None, _of_campaign("Most that all answers may cost.")]
AskAgain = Annotated[
    bool | None,
    _of_campaign("Put questions again to who answered them. (default: yes, but no for labels)", "--again/--no-again"),
]
Questions = Annotated[int, _of_campaign("Questions at a time.", "--batch-size", min=1)]
Asked = Annotated[list[str] | None, typer.Option("--annotator", help="Only this one; may be given again.", metavar="NAME")]
Correct = Annotated[bool, typer.Option("--correct", help="Let an answer take the place of another.")]
People = Annotated[list[str] | None, typer.Option(help="Who a user of that tool is; may be given again.", metavar="USER=NAME")]


@campaign.command("start")
@_that_fits
def campaign_start(
    context: typer.Context,
    file: EarlierVotes = None,
    items: Items = None,
    annotators: Annotators = None,
    target: Target = None,
    k: Annotated[int, _of_campaign("With --target top_k: how many.", "--top", min=1)] = 1,
    cost: Cost = None,
    quota: Quota = None,
    least_share: LeastShare = 0.0,
    budget: Budget = None,
    until: Until = None,
    again: AskAgain = None,
    batch_size: Questions = 10,
    out: Annotated[Path, typer.Option("--out", help="The journal.", metavar="CAMPAIGN.db")] = Path("campaign.db"),
) -> None:
    """Start a campaign: who can be asked about what, and what for. It need not be told again."""
    from raters import _cli_campaign

    _cli_campaign.start(context.params)


@campaign.command("ask")
def campaign_ask(
    context: typer.Context,
    journal: Journal,
    number: Annotated[int | None, typer.Option(min=1, help="How many questions. (default: a batch)")] = None,
    annotator: Asked = None,
    budget: Annotated[float | None, typer.Option(help="A new budget.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="A table with a column for the answers.", metavar="FILE")] = None,
    quiet: Quiet = False,
) -> None:
    """Hand out the next questions; with --out as a table to fill in, which `tell` reads."""
    from raters import _cli_campaign

    _cli_campaign.ask(context.params)


@campaign.command("tell")
def campaign_tell(
    context: typer.Context,
    journal: Journal,
    file: Annotated[Path | None, typer.Argument(metavar="[FILE]", help="The table of `ask` with answers.")] = None,
    question: Annotated[str | None, typer.Option("--id", help="One question.", metavar="ID")] = None,
    answer: Annotated[str | None, typer.Option(help="The answer to it.", metavar="ANSWER")] = None,
    annotator: Asked = None,
    correct: Correct = False,
    quiet: Quiet = False,
) -> None:
    """Take answers: from a table, to one --id, or (without either) asking for them one by one."""
    from raters import _cli_campaign

    _cli_campaign.tell(context.params)


@campaign.command("status")
def campaign_status(
    context: typer.Context,
    journal: Journal,
    quick: Annotated[bool, typer.Option("--quick", help="Fit nothing: only what can be counted.")] = False,
) -> None:
    """Say where a campaign stands: how much is answered and spent, and how sure the order is."""
    from raters import _cli_campaign

    _cli_campaign.status(context.params)


@campaign.command("withdraw")
def campaign_withdraw(
    context: typer.Context,
    journal: Journal,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Questions that wait for an answer.")] = None,
    annotator: Asked = None,
    quiet: Quiet = False,
) -> None:
    """Take open questions back, so that others may be asked; an answer that comes later still counts."""
    from raters import _cli_campaign

    _cli_campaign.withdraw(context.params)


TO = "csv: a table to fill in; label-studio, argilla: open questions as JSON, and beside it the interface; votes: all answers."
TEXTS = "Table of what to show for each item: its columns `item` and `text`."


@campaign.command("export")
def campaign_export(
    context: typer.Context,
    journal: Journal,
    to: Annotated[Literal["csv", "label-studio", "argilla", "votes"], typer.Option(help=TO)],
    out: Annotated[Path, typer.Option("--out", help="Where to write it.", metavar="FILE")],
    texts: Annotated[Path | None, typer.Option(help=TEXTS, metavar="FILE")] = None,
    ties: Annotated[bool, typer.Option("--ties", help="Let people say that two are equally good.")] = False,
    annotator: Asked = None,
    quiet: Quiet = False,
) -> None:
    """Write the open questions for people to answer elsewhere, or all answers as a table of votes."""
    from raters import _cli_campaign

    _cli_campaign.export(context.params)


@campaign.command("import")
def campaign_import(
    context: typer.Context,
    journal: Journal,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What the tool exported.")],
    source: Annotated[Literal["csv", "label-studio", "argilla"], typer.Option("--from", help="The tool.")],
    people: People = None,
    correct: Correct = False,
    quiet: Quiet = False,
) -> None:
    """Take answers from the export of Label Studio (JSON) or Argilla (records as JSON)."""
    from raters import _cli_campaign

    _cli_campaign.import_(context.params)


DESIGN = (
    "paper: uniform rewards and competences; separated: easy; crowd: with guessers and adversaries; position-biased; "
    "label-crowd: labels, with spammers."
)
Design = Literal["paper", "separated", "crowd", "position-biased", "label-crowd"]


@app.command()
def simulate(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="The votes: .csv, .tsv, .jsonl or .parquet.", metavar="FILE")],
    design: Annotated[Design, typer.Option(help=DESIGN)] = "crowd",
    items: Annotated[int | None, typer.Option(min=2, help="Number of items.")] = None,
    annotators: Annotated[int | None, typer.Option(min=1, help="Number of annotators.")] = None,
    votes: Annotated[int | None, typer.Option(min=1, help="Number of votes.")] = None,
    labels_per_item: Annotated[int | None, _of_labels("Labels of each item (label-crowd).", min=1)] = None,
    classes: Annotated[int | None, _of_labels("Number of classes (label-crowd).", min=2)] = None,
    features: Annotated[int | None, _of_labels("Number of features of the items (label-crowd).", min=0)] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Write votes or labels drawn from a known truth, and the truth beside them as NAME-truth.json."""
    from raters import _cli_run

    _cli_run.simulate(context.params)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the value is the exit code.

    0: done; 2: bad arguments or bad data, with one line on standard error; 130: interrupted; 141: the reader of standard
    output went away.
    """
    command = typer.main.get_command(app)
    try:
        with command.make_context("raters", list(sys.argv[1:] if arguments is None else arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _stop("interrupted; nothing was written", 130)
    except BrokenPipeError:
        # Python flushes standard output once more on its way out; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except _UsageError as error:
        return _stop(error.format_message().replace("Value error, ", ""), 2)
    except RatersError as error:
        from raters._cli_files import as_options

        return _stop(as_options(str(error)), 2)
    except OSError as error:
        return _stop(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)
    return 0


def _stop(message: str, code: int) -> int:
    print("raters: " + " ".join(message.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
