"""Commands and options. Modules that compute are imported by the command that needs them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from raters.cli.interrupts import ending
from raters.errors import RatersError, one_line

ABOUT = """Bayesian models of human judgement: who can be trusted, what people prefer, and what to
ask next."""
COLUMNS = """\b
Columns are options, and tell what was judged; `raters models` lists them all:
  comparisons  --winner --loser, or --first --second --outcome
  labels       --item --annotator --label
  ratings      --item --rating, or --item --column 'judge_*'
  rankings     --place (several), --ranking --item --rank, or
               --offered --best --worst
  responses    --person --item --correct, graded --response
  choices      --set --alternative --chosen, or --choice --alternatives A,B
Also --annotator --count --feature --ties half --classes A,B."""
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}
_TABLE: dict[str, Any] = {
    "context_settings": _CONTEXT | {"ignore_unknown_options": True},
    "epilog": COLUMNS,
}
_PLAIN: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": _CONTEXT,
}
app = typer.Typer(help=ABOUT, **_PLAIN)
campaign = typer.Typer(**_PLAIN)
app.add_typer(
    campaign, name="campaign", help="Ask people, question by question; no answer is ever lost."
)
# Commands for which compiled functions are kept.
_COMPUTING = ("audit", "campaign", "fit", "rank", "report", "suggest")
# Typer carries its own copy of click; the base class of usage errors is found through it.
UsageError: Any = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)


def _option(*names: str, **settings: Any) -> Any:
    return typer.Option(*names, show_default=False, **settings)


def _several(name: str, metavar: str, text: str) -> Any:
    return _option(name, metavar=metavar, help=f"{text} (several).")


FILE = "Table (.csv, .tsv, .jsonl, .parquet), or RESULT.nc."
Words = Annotated[list[str], typer.Argument(metavar="FILE", help=FILE, show_default=False)]
Texts = list[str] | None
Kind = Annotated[
    str | None, _option("--kind", metavar="KIND", help="Of judgement, or your own MODULE:NAME.")
]
ModelName = Annotated[str | None, _option("--model", metavar="NAME", help="See `raters models`.")]
BackendName = Annotated[
    str | None, _option("--backend", metavar="NAME", help="gibbs, nuts, hmc, em, vi or svi.")
]
SET = "Of model or back-end, see `raters models`"
Settings = Annotated[Texts, _several("--set", "NAME=VALUE", SET)]
BadRows = Annotated[bool, _option("--drop-bad-rows", help="Leave out rows without a judgement.")]
Seed = Annotated[int, _option("--seed", min=0, max=2**31 - 1, help="Of all random numbers (0).")]
Quiet = Annotated[bool, _option("--quiet", "-q", help="No notes and no progress.")]
Force = Annotated[bool, _option("--force", help="Replace files that raters did not write.")]
Rows = Annotated[int, _option("--rows", min=1, help="Most rows of a printed table (20).")]
Level = Annotated[float, _option("--level", help="Probability of the intervals (0.9).")]
Table = Annotated[Path | None, _option("--out", metavar="FILE", help="Also write it as a table.")]
Gold = Annotated[list[Path] | None, _several("--gold", "FILE", "Table of known truths")]
Reference = Annotated[Texts, _several("--reference", "NAME", "Somebody who is right")]
Trust = Annotated[bool, _option("--trust-crowd", help="Take the crowd to be right.")]
Threshold = Annotated[float | None, _option("--threshold", help="Below it a judge is bad (0.25).")]
COST = "keep_bad, drop_good or review"
Cost = Annotated[Texts, _several("--cost", "NAME=NUMBER", COST)]
Drop = Annotated[bool, _option("--drop", help="Fit again without those flagged.")]
With = Annotated[
    str, _option("--with", metavar="A,B", help="More: agreement, check, influence, types.")
]
Batch = Annotated[int, _option("--batch-size", min=1, help="Questions to suggest (10).")]
Judges = Annotated[Texts, _several("--annotator", "NAME", "Only this one")]
Again = Annotated[bool | None, _option("--again/--no-again", help="Put questions again.")]
Size = Annotated[int | None, _option("--size", min=2, help="Items of a set to rank.")]
Top = Annotated[int, _option("--top", min=1, help="With --target top_k: how many (1).")]
TARGET = "ranking, reward, top_k, truth, competence, coefficient, predictive, everything"
Target = Annotated[str | None, _option("--target", metavar="NAME", help=f"One of {TARGET}.")]


@app.callback(invoke_without_command=True)
def raters(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version, or help where no command is given."""
    if version:
        from importlib.metadata import version as version_of

        print(f"raters {version_of('raters')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@campaign.callback(invoke_without_command=True)
def _campaign(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


# ---------------------------------------------------------------- tables and results


@app.command(**_TABLE)
def audit(
    words: Words,
    kind: Kind = None,
    drop_bad_rows: BadRows = False,
    model: ModelName = None,
    backend: BackendName = None,
    settings: Settings = None,
    gold: Gold = None,
    reference: Reference = None,
    trust_crowd: Trust = False,
    threshold: Threshold = None,
    cost: Cost = None,
    drop: Drop = False,
    level: Level = 0.9,
    more: With = "",
    report: Annotated[
        list[Path] | None, _several("--report", "FILE", "Also write .html, .md or .json")
    ] = None,
    out: Annotated[
        Path, _option("--out", metavar="DIR", help="Folder of all files (raters-audit).")
    ] = Path("raters-audit"),
    rows: Rows = 20,
    batch_size: Batch = 10,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Rank or label the items, audit the annotators, and say what to ask next."""
    from raters.cli import audits
    from raters.cli.fitting import Typed

    typed = Typed(words, kind, model, backend, settings or (), drop_bad_rows, seed, quiet)
    asked = audits.Asked(
        gold or (), reference or (), trust_crowd, threshold, level, cost or (), drop, _names(more)
    )
    audits.audit(typed, asked, batch_size, _given("--out", out), report or (), rows, force)


@app.command(**_TABLE)
def report(
    words: Words,
    kind: Kind = None,
    drop_bad_rows: BadRows = False,
    model: ModelName = None,
    backend: BackendName = None,
    settings: Settings = None,
    gold: Gold = None,
    reference: Reference = None,
    trust_crowd: Trust = False,
    level: Level = 0.9,
    more: With = "",
    out: Annotated[
        list[Path] | None, _several("--out", "FILE", "Write .html, .md, .txt or .json")
    ] = None,
    rows: Rows = 20,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Report a table or a saved result: printed, or as a page to hand on."""
    from raters.cli import audits
    from raters.cli.fitting import Typed

    typed = Typed(words, kind, model, backend, settings or (), drop_bad_rows, seed, quiet)
    asked = audits.Asked(gold or (), reference or (), trust_crowd, level=level, more=_names(more))
    audits.report(typed, asked, out or (), rows, force)


@app.command(**_TABLE)
def fit(
    words: Words,
    out: Annotated[Path, _option("--out", metavar="FILE", help="The result, as netCDF.")],
    kind: Kind = None,
    drop_bad_rows: BadRows = False,
    model: ModelName = None,
    backend: BackendName = None,
    settings: Settings = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fit a model and save the result, for other commands or arviz.from_netcdf."""
    from raters.cli import audits
    from raters.cli.fitting import Typed

    typed = Typed(words, kind, model, backend, settings or (), drop_bad_rows, seed, quiet)
    audits.fit(typed, _given("--out", out), force)


@app.command(**_TABLE)
def rank(
    words: Words,
    kind: Kind = None,
    drop_bad_rows: BadRows = False,
    model: ModelName = None,
    backend: BackendName = None,
    settings: Settings = None,
    level: Level = 0.9,
    rows: Rows = 20,
    out: Table = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Rank the items, with intervals, and the probability of being best."""
    from raters.cli import audits
    from raters.cli.fitting import Typed

    typed = Typed(words, kind, model, backend, settings or (), drop_bad_rows, seed, quiet)
    audits.rank(typed, level, rows, out, force)


@app.command(**_TABLE)
def suggest(
    words: Words,
    kind: Kind = None,
    drop_bad_rows: BadRows = False,
    model: ModelName = None,
    backend: BackendName = None,
    settings: Settings = None,
    target: Target = None,
    top: Top = 1,
    only: Annotated[
        Texts, _several("--only", "annotator=NAME", "Only these annotators, or items")
    ] = None,
    again: Again = None,
    size: Size = None,
    batch_size: Batch = 10,
    out: Table = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Say which questions, put to whom, would tell most of what is wanted."""
    from raters.acquisition import Policy
    from raters.cli import commands
    from raters.cli.fitting import Typed

    typed = Typed(words, kind, model, backend, settings or (), drop_bad_rows, seed, quiet)
    policy = Policy(target=target, k=top)  # type: ignore[arg-type]
    commands.suggest(typed, policy, only or (), batch_size, again, size, out, force)


@app.command()
def simulate(
    out: Annotated[Path, _option("--out", metavar="FILE", help="The table.")],
    design: Annotated[
        str, _option("--design", metavar="NAME", help="Of `raters models` (crowd).")
    ] = "crowd",
    settings: Annotated[Texts, _several("--set", "NAME=VALUE", "Of the design")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Write judgements drawn from a known truth, and the truth as NAME-truth.json."""
    from raters.cli import commands

    commands.simulate(_given("--out", out), design, settings or (), seed, quiet, force)


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False)] = None,
) -> None:
    """List kinds, models, back-ends and designs; of NAME its columns or settings."""
    from raters.cli import commands

    commands.list_models(name)


# ---------------------------------------------------------------- campaigns

JournalFile = Annotated[Path, typer.Argument(metavar="CAMPAIGN.db", show_default=False)]
Correct = Annotated[bool, _option("--correct", help="Let an answer replace another.")]


@campaign.command(**_TABLE)
def start(
    words: Annotated[
        Texts,
        typer.Argument(
            metavar="[FILE]",
            help="Earlier judgements; without, --items A,B --annotators A,B.",
            show_default=False,
        ),
    ] = None,
    kind: Kind = None,
    drop_bad_rows: BadRows = False,
    model: ModelName = None,
    backend: BackendName = None,
    settings: Annotated[
        Texts, _several("--set", "NAME=VALUE", "Of model, back-end or policy (quota, least_share)")
    ] = None,
    target: Target = None,
    top: Top = 1,
    cost: Annotated[Texts, _several("--cost", "NAME=NUMBER", "Of an answer (1)")] = None,
    budget: Annotated[float | None, _option("--budget", help="Most that answers cost.")] = None,
    until: Annotated[
        float | None, _option("--until", help="Stop at this expected tau, or share of classes.")
    ] = None,
    again: Again = None,
    size: Size = None,
    batch_size: Batch = 10,
    out: Annotated[
        Path, _option("--out", metavar="CAMPAIGN.db", help="The journal (campaign.db).")
    ] = Path("campaign.db"),
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Start a campaign: who can be asked about what, and what for."""
    from raters.cli import campaign as campaigns
    from raters.cli.fitting import Typed

    typed = Typed(words or (), kind, model, backend, settings or (), drop_bad_rows, seed, quiet)
    plan = campaigns.Plan(target, top, cost or (), budget, until, again, size, batch_size)
    campaigns.start(typed, plan, _given("--out", out))


@campaign.command()
def ask(
    journal: JournalFile,
    number: Annotated[int | None, _option("--number", min=1, help="(a batch)")] = None,
    annotator: Judges = None,
    budget: Annotated[float | None, _option("--budget", help="A new budget.")] = None,
    out: Annotated[
        Path | None, _option("--out", metavar="FILE", help="A table with a column to fill in.")
    ] = None,
    kind: Kind = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Hand out the next questions, printed or as a table that `tell` reads."""
    from raters.cli import campaign as campaigns

    where = campaigns.Journal(journal, kind, quiet)
    campaigns.ask(where, number, annotator or (), budget, out, force)


@campaign.command()
def tell(
    journal: JournalFile,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Table of `ask`, filled in.", show_default=False),
    ] = None,
    question: Annotated[str | None, _option("--id", metavar="ID", help="One question.")] = None,
    answer: Annotated[str | None, _option("--answer", help="The answer to it.")] = None,
    annotator: Judges = None,
    source: Annotated[
        Literal["label-studio", "argilla"] | None,
        _option("--from", help="FILE is the export of this tool."),
    ] = None,
    people: Annotated[Texts, _several("--people", "USER=NAME", "Who is who there")] = None,
    correct: Correct = False,
    kind: Kind = None,
    quiet: Quiet = False,
) -> None:
    """Take answers: of a table, to one --id, or else asking for them one by one."""
    from raters.cli import campaign as campaigns

    where = campaigns.Journal(journal, kind, quiet)
    campaigns.tell(where, file, question, answer, annotator or (), source, people or (), correct)


@campaign.command()
def status(
    journal: JournalFile,
    quick: Annotated[bool, _option("--quick", help="Fit nothing; only count.")] = False,
    kind: Kind = None,
) -> None:
    """Say where a campaign stands: answers, costs, and how sure the order is."""
    from raters.cli import campaign as campaigns

    campaigns.status(campaigns.Journal(journal, kind), quick)


@campaign.command()
def withdraw(
    journal: JournalFile,
    ids: Annotated[Texts, typer.Argument(metavar="[ID]...", show_default=False)] = None,
    annotator: Judges = None,
    kind: Kind = None,
    quiet: Quiet = False,
) -> None:
    """Take open questions back; an answer that comes later still counts."""
    from raters.cli import campaign as campaigns

    campaigns.withdraw(campaigns.Journal(journal, kind, quiet), ids or (), annotator or ())


@campaign.command()
def consider(
    journal: JournalFile,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="Questions that arrive.", show_default=False),
    ] = None,
    question: Annotated[Texts, _several("--question", "COLUMN=NAME", "One question")] = None,
    rate: Annotated[float | None, _option("--rate", help="Share to be asked (0.1).")] = None,
    out: Table = None,
    kind: Kind = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Decide on questions that arrive one after another: ask each, or let it go."""
    from raters.cli import campaign as campaigns

    where = campaigns.Journal(journal, kind, quiet)
    campaigns.consider(where, file, question or (), rate, out, force)


@campaign.command()
def export(
    journal: JournalFile,
    to: Annotated[
        Literal["csv", "label-studio", "argilla", "judgements"],
        _option("--to", help="Open questions in some form, or all judgements."),
    ],
    out: Annotated[Path, _option("--out", metavar="FILE", help="Where to write it.")],
    texts: Annotated[
        Path | None, _option("--texts", metavar="FILE", help="Columns item and text.")
    ] = None,
    ties: Annotated[bool, _option("--ties", help="Let people say that two are equal.")] = False,
    annotator: Judges = None,
    kind: Kind = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Write open questions for people to answer elsewhere, or all judgements."""
    from raters.cli import campaign as campaigns

    where = campaigns.Journal(journal, kind, quiet)
    campaigns.export(where, to, _given("--out", out), texts, ties, annotator or (), force)


# ---------------------------------------------------------------- the program


def _names(text: str) -> list[str]:
    return [name for name in text.replace(" ", "").split(",") if name]


def _given(option: str, path: Path) -> Path:
    """A path that is not empty, which would be the current folder."""
    if path == Path():
        from raters.errors import SettingError

        raise SettingError(f"{option} is empty; name a file or a folder")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the value is the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _ready_streams()
    try:
        with ending():
            if given[:1] and given[0] in _COMPUTING and not {"-h", "--help"} & {*given}:
                keep_compiled()
            code = typer.main.get_command(app).main(given, "raters", standalone_mode=False)
            sys.stdout.flush()
            return int(code or 0)
    except typer.Abort:
        return _stop("interrupted", 130)
    except BrokenPipeError:
        # Python flushes standard output once more on its way out; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UsageError as error:
        return _stop(error.format_message(), 2)
    except RatersError as error:
        return _stop(_worded(error, given), 2)
    except MemoryError:
        return _stop("there is not enough memory for this; give less data, or smaller numbers", 2)
    except OSError as error:
        return _stop(f"{error.filename or 'input or output'}: {error.strerror or error}", 2)


def _worded(error: RatersError, given: Sequence[str]) -> str:
    """The message with the options of the command line in place of parameters."""
    from raters.cli.columns import flags

    by_role = {role: flag for flag, role in flags().items()}
    names = {"k": "--top", "costs": "--cost", "at_least": "--until", "more": "--with"}

    def option(parameter: str) -> str:
        name = parameter.partition(" ")[0]
        if any(word.partition("=")[0] == name for word in given):
            return f"--set {name}"
        if f"--{name}" in given:
            return f"--{name}"
        if not name.isidentifier():  # Of columns that stand for something together.
            return parameter
        return names.get(name) or by_role.get(name) or f"--{name.replace('_', '-')}"

    return error.worded(option)


def _ready_streams() -> None:
    """Let output show what its encoding lacks as code points, and a closed stream be empty."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        elif mode == "w" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _stop(message: str, code: int) -> int:
    from raters.judgements.display import visible

    print(f"raters: {one_line(visible(' '.join(message.split())))}", file=sys.stderr)
    return code


def keep_compiled() -> None:
    """Let JAX keep compiled functions between runs, in the user's cache directory."""
    import jax
    from platformdirs import user_cache_path

    if jax.config.jax_compilation_cache_dir is not None:
        return
    folder = Path(user_cache_path("raters", appauthor=False))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    set_value: Any = jax.config.update
    set_value("jax_compilation_cache_dir", str(folder))
    set_value("jax_persistent_cache_min_compile_time_secs", 0.0)


if __name__ == "__main__":
    sys.exit(main())
