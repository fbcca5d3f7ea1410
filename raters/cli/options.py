"""Typed options: what the commands take, built once from what was parsed."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from raters.auditing.verdicts import Costs
from raters.cli.generated import (
    GeneratedOption,
    backend_names,
    backend_options,
    column_options,
    dashed,
    model_names,
    model_options,
)
from raters.errors import RatersError, typed
from raters.inference import Backend
from raters.judgements.display import visible
from raters.judgements.names import plural
from raters.kinds import Kind
from raters.model import Model

# Options that every command may have; what is generated keeps clear of them.
_TAKEN = ("batch_size", "seed", "quiet", "progress", "rows", "out", "report", "kind", "again", "k")


def option(panel: str | None, *names: str, **settings: Any) -> Any:
    """An option of Typer in a panel of the help."""
    return typer.Option(*names, rich_help_panel=panel, **settings)


KIND = (
    "Kind of judgement: comparisons, labels, responses, choices, or MODULE:NAME of your own"
    " raters.kinds.Kind. (default: told by the columns)"
)
KindName = Annotated[str | None, option("Columns", "--kind", help=KIND, metavar="KIND")]
SeedOption = Annotated[
    int, option("Fit", min=0, max=2**31 - 1, help="The same seed gives the same result.")
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="No progress bars and no notes on standard error.")
]
BAD_ROWS = "Leave out rows that hold no judgement, such as those with a missing value."


@dataclass(frozen=True)
class ColumnOptions:
    """Columns to read, and how to read them."""

    kind: KindName = None
    drop_bad_rows: Annotated[bool, option("Columns", "--drop-bad-rows", help=BAD_ROWS)] = False
    given: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[GeneratedOption, ...] = field(default=(), repr=False)

    def flag(self, name: str) -> str:
        """The option of a parameter."""
        return next((one.flag for one in self.options if one.name == name), f"--{dashed(name)}")

    def owners(self, name: str) -> tuple[str, ...]:
        """Kinds that have a parameter."""
        return next((one.owners for one in self.options if one.name == name), ())


@dataclass(frozen=True)
class ModelOptions:
    """Model and its settings."""

    model: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[GeneratedOption, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class FitOptions:
    """Back-end, its settings, and how to run it."""

    backend: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[GeneratedOption, ...] = field(default=(), repr=False)
    seed: SeedOption = 0
    quiet: QuietOption = False
    progress: Annotated[
        bool,
        typer.Option("--progress/--no-progress", help="Progress bars (only ever on a terminal)."),
    ] = True

    @property
    def bars(self) -> bool:
        """True if progress bars are shown: on a terminal only; in a log they are noise."""
        return self.progress and not self.quiet and sys.stderr.isatty()

    def note(self, *lines: str) -> None:
        """Print lines for the person on standard error, unless ``--quiet``."""
        note(*lines, quiet=self.quiet)


GOLD = (
    "Table of known truths, of questions that were drawn at random: of labels with columns item and"
    " truth, of comparisons, rankings and ratings winner and loser, or item and value; empty"
    " truths are left out. May be given again."
)
REFERENCE = "Somebody who is taken to be right; may be given again."
TRUST_CROWD = (
    "Take the crowd to be right: verdicts then rest on agreement with all others, and the numbers"
    " are the model's own."
)
THRESHOLD = (
    "A judge whose competence is below it is bad; 1 is a reliable one, 0 one who guesses. (default:"
    " 0.25)"
)
INFLUENCE = "Find out what would change without each judge; some seconds more."
MARGIN = "How near to knowing nothing is guessing: of an accuracy, or of information in bits."


@dataclass(frozen=True)
class GoldOption:
    """Known truths of one kind of judgement."""

    gold: Annotated[list[Path] | None, option("Audit", "--gold", help=GOLD, metavar="FILE")] = None


@dataclass(frozen=True)
class VerdictOptions:
    """Trusted annotators, and limits and costs of verdicts."""

    reference: Annotated[
        list[str] | None, option("Audit", "--reference", help=REFERENCE, metavar="NAME")
    ] = None
    trust_crowd: Annotated[bool, option("Audit", "--trust-crowd", help=TRUST_CROWD)] = False
    level: Annotated[float, option("Audit", help="Posterior probability of the intervals.")] = 0.9
    margin: Annotated[float, option("Audit", help=MARGIN)] = 0.05
    min_judgements: Annotated[
        int, option("Audit", min=0, help="With fewer judgements nobody is judged.")
    ] = 5
    cost_keep_bad: Annotated[float, option("Audit", help="Cost of keeping a bad judge.")] = 1.0
    cost_drop_good: Annotated[float, option("Audit", help="Cost of dropping a good one.")] = 1.0
    cost_review: Annotated[
        float, option("Audit", help="Cost of looking into somebody's judgements.")
    ] = 0.2

    @property
    def limits(self) -> dict[str, Any]:
        """Keyword arguments of `raters.audit`."""
        return {
            "level": self.level,
            "margin": self.margin,
            "min_judgements": self.min_judgements,
            "costs": Costs(self.cost_keep_bad, self.cost_drop_good, self.cost_review),
        }


@dataclass(frozen=True)
class AuditOptions(VerdictOptions, GoldOption):
    """Options of an audit of one kind of judgement, and what to do about it."""

    threshold: Annotated[float | None, option("Audit", help=THRESHOLD)] = None
    influence: Annotated[bool, option("Audit", "--influence", help=INFLUENCE)] = False
    drop: Annotated[
        bool, option("Audit", "--drop", help="Fit again without the flagged; report what changes.")
    ] = False
    batch_size: Annotated[int, typer.Option(min=1, help="Questions to suggest.")] = 10


Rows = Annotated[
    int, typer.Option(min=2, help="Most rows of a printed table; of more, both ends are shown.")
]
REPORT = (
    "Also a report to hand on: .html (a page), .md (for a pull request) or .json; may be given"
    " again."
)


Force = Annotated[
    bool, typer.Option("--force", help="Replace files that raters did not write, or that changed.")
]


@dataclass(frozen=True)
class OutputOptions:
    """Folder to write to, and how much to print."""

    out: Annotated[
        Path,
        typer.Option(help="Folder for result.nc, summary.json, tables and figures.", metavar="DIR"),
    ] = Path("raters-audit")
    rows: Rows = 20
    report: Annotated[
        list[Path] | None, option("Audit", "--report", help=REPORT, metavar="FILE")
    ] = None
    force: Force = False


@dataclass(frozen=True)
class GeneratedOptions:
    """Options that follow from kinds, models and back-ends."""

    columns: tuple[GeneratedOption, ...] = ()
    model: tuple[GeneratedOption, ...] = ()
    backend: tuple[GeneratedOption, ...] = ()
    models: tuple[str, ...] = ()
    backend_default: str | None = None

    @classmethod
    def of(
        cls, kinds: tuple[Kind, ...], only: Iterable[Model[Any]] = (), backend: str | None = None
    ) -> GeneratedOptions:
        """Options of these kinds, and of all their models or of one for each kind."""
        models: dict[str, Any] = {}
        for name, model in model_names(kinds).items():
            default = next((kind.default for kind in kinds if type(kind.default) is model), None)
            models[name] = default or model
        if only:
            models = {dashed(type(model).__name__): model for model in only}
        columns = column_options(kinds, _TAKEN)
        taken = {*_TAKEN, *(one.key for one in columns)}
        fields = model_options(models, taken)
        return cls(
            columns,
            fields,
            backend_options(taken | {one.key for one in fields}),
            () if only else tuple(models),
            backend,
        )

    def parameters(self, options: type) -> list[inspect.Parameter]:
        """Generated parameters of a class of options."""
        if options is ColumnOptions:
            return [one.parameter() for one in self.columns]
        if options is ModelOptions:
            text = "Model. (default: that of the kind)"
            chosen = [_choice("model", self.models, None, "Model", text)] if self.models else []
            return chosen + [one.parameter() for one in self.model]
        if options is FitOptions:
            names, text = tuple(backend_names()), "gibbs and nuts are exact."
            if self.backend_default is None:
                text += " (default: gibbs, or nuts for a model without conjugate blocks)"
            chosen = [_choice("backend", names, self.backend_default, "Fit", text)]
            return chosen + [one.parameter() for one in self.backend]
        return []

    def flags(self, parsed: Mapping[str, Any]) -> dict[str, str]:
        """Flags of what was given, by parameters; these may have another name among the options."""
        every = (*self.columns, *self.model, *self.backend)
        return {one.name: one.flag for one in every if parsed.get(one.key) not in (None, [])}

    def fields(self, options: type, parsed: Mapping[str, Any]) -> dict[str, Any]:
        """Generated fields of a class of options, from what was parsed."""
        every = {ColumnOptions: self.columns, ModelOptions: self.model, FitOptions: self.backend}
        if options not in every:
            return {}
        values = {one.name: one.value(parsed) for one in every[options]}
        given = {name: value for name, value in values.items() if value is not None}
        fields: dict[str, Any] = {"given": given, "options": every[options]}
        chosen = {ModelOptions: "model", FitOptions: "backend"}.get(options)
        return fields | ({chosen: parsed[chosen]} if chosen and chosen in parsed else {})


def _choice(
    name: str, choices: tuple[str, ...], default: str | None, panel: str, text: str
) -> inspect.Parameter:
    wanted: Any = str
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[
            wanted | None if default is None else wanted,
            option(
                panel,
                f"--{name}",
                help=text,
                parser=partial(_chosen, choices=choices),
                metavar=f"[{'|'.join(choices)}]",
            ),
        ],
    )


def _chosen(text: str, choices: tuple[str, ...]) -> str:
    """A name among some, also as that of a class in Python: PGEM and DawidSkene."""
    named = {name.replace("-", ""): name for name in choices}
    loose = re.sub("[-_ ]", "", text).lower()
    for spelling in (loose, loose.removeprefix("pg")):
        if spelling in named:
            return named[spelling]
    raise typer.BadParameter(f"{text!r} is not one of {', '.join(map(repr, choices))}.")


# ---------------------------------------------------------------- commands

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def with_options(
    command: Callable[..., None],
    generated: GeneratedOptions | None,
    further: Iterable[inspect.Parameter] = (),
) -> Callable[..., None]:
    """The command as Typer takes it."""
    further = list(further)
    own = inspect.signature(command, eval_str=True).parameters
    classes: dict[str, Any] = {
        name: one.annotation
        for name, one in own.items()
        if dataclasses.is_dataclass(one.annotation)
    }
    generated = generated or GeneratedOptions()
    fields = {name: _written_fields(options) for name, options in classes.items()}
    parameters: dict[str, inspect.Parameter] = {}
    for name, one in own.items():
        if name in classes:
            parameters |= {part.name: part for part in generated.parameters(classes[name])}
            parameters |= fields[name]
        elif name == "given":
            parameters |= {one.name: one for one in further}
        else:
            parameters[name] = one
    parameters["context"] = inspect.Parameter("context", _KEYWORD, annotation=typer.Context)

    def run(**parsed: Any) -> None:
        given = {name: value for name, value in parsed.items() if name in own}
        if "given" in own:
            given["given"] = {one.name: parsed[one.name] for one in further}
        for name, options in classes.items():
            written = {key: parsed[key] for key in fields[name] if key in parsed}
            given[name] = options(**written, **generated.fields(options, parsed))
        try:
            command(**given)
        except RatersError as error:
            flags = {one.name: one.opts[0] for one in parsed["context"].command.params}
            raise type(error)(worded(error, flags | generated.flags(parsed))) from error

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [one.replace(kind=_KEYWORD) for one in parameters.values()]
    )
    return run


def _written_fields(options: type) -> dict[str, inspect.Parameter]:
    """Fields of a class of options that say how they are written."""
    every = inspect.signature(options).parameters
    hints = get_type_hints(options, include_extras=True)  # In the modules of all base classes.
    return {
        name: one.replace(annotation=hints[name])
        for name, one in every.items()
        if hasattr(hints[name], "__metadata__")
    }


def settings(*options: Any) -> dict[str, Any]:
    """All options as one dictionary, for the summary of a command."""
    summary: dict[str, Any] = {}
    for part in options:
        for one in dataclasses.fields(part):
            value = getattr(part, one.name)
            if one.name == "given":
                summary |= value
            elif one.name != "options":
                summary[one.name] = value
    return summary


_RENAMED = {
    "keep_bad": "cost_keep_bad",
    "drop_good": "cost_drop_good",
    "review": "cost_review",
    "costs": "cost",
    "at_least": "until",
    "stop": "until",
    "correct": "correct",
}


def worded(error: RatersError, flags: Mapping[str, str]) -> str:
    """An error in the words of a command, whose options are `flags` by the names of parameters."""

    def flag(parameter: str) -> str:
        first = parameter.partition(" ")[0]
        names = (_RENAMED.get(first, first), plural(first))
        return next((flags[name] for name in names if name in flags), parameter.replace("_", " "))

    return error.worded(flag, _typed)


def _typed(value: Any) -> str:
    """A value as an option has it; of models and back-ends the names."""
    return dashed(type(value).__name__) if isinstance(value, (Model, Backend)) else typed(value)


def note(*lines: str, quiet: bool) -> None:
    """Print lines for the person on standard error, unless they are not wanted."""
    for line in () if quiet else lines:
        print(f"raters: {visible(line).replace('\n', ' ')}", file=sys.stderr)
