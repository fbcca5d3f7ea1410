"""The command ``raters campaign start``: model, pool, policy and rule from options."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import raters as rt
from raters.acquisition import ExpectedAccuracy, ExpectedTau, Policy, Random
from raters.acquisition.policy.policy import Target
from raters.acquisition.questions.arguments import check_askable
from raters.cli import campaign_files as files
from raters.cli import outputs, tables
from raters.cli.asking import candidates, own_names
from raters.cli.fitting import (
    backend_of,
    check_needs,
    collected_warnings,
    model_of,
    source_and_model,
)
from raters.cli.generated import keywords, shape_of
from raters.cli.kinds import kind_asked
from raters.cli.options import ColumnOptions, FitOptions, ModelOptions, option
from raters.cli.reading import read
from raters.errors import DataError, SettingError
from raters.judgements.base import Judgements
from raters.judgements.names import check_once, name_text, plural
from raters.kinds import Kind, kind_of, registered_kinds
from raters.model import Model
from raters.program import Program

_PANEL = "Campaign"
WANTED = "Aim of the answers. (default: the ranking, or the true classes)"
COST = "Cost of an answer by this annotator (1 for the others); may be given again."
UNTIL = (
    "Stop when the order is expected to have this tau with the true one; of classes, when this"
    " share is expected to be right."
)
AGAIN = "Put questions again to who answered them. (default: yes, but no for labels and rankings)"


@dataclass(frozen=True)
class CampaignOptions:
    """Options of a campaign: target, costs, stopping rule."""

    # A union of two Literals is more than Typer reads; a Literal of a Literal is one.
    target: Annotated[Literal[Target, "random"] | None, option(_PANEL, help=WANTED)] = None
    k: Annotated[int, option(_PANEL, "--top", min=1, help="With --target top_k: how many.")] = 1
    cost: Annotated[
        list[str] | None, option(_PANEL, "--cost", help=COST, metavar="NAME=NUMBER")
    ] = None
    quota: Annotated[
        int | None, option(_PANEL, min=1, help="Most questions for one annotator.")
    ] = None
    least_share: Annotated[
        float, option(_PANEL, help="Share of all questions that every annotator gets at least.")
    ] = 0.0
    budget: Annotated[float | None, option(_PANEL, help="Most that all answers may cost.")] = None
    until: Annotated[float | None, option(_PANEL, help=UNTIL)] = None
    again: Annotated[bool | None, option(_PANEL, "--again/--no-again", help=AGAIN)] = None
    size: Annotated[
        int | None, option(_PANEL, "--size", min=2, help="Of rankings: items of a set.")
    ] = None
    batch_size: Annotated[
        int, option(_PANEL, "--batch-size", min=1, help="Questions at a time.")
    ] = 10


@dataclass(frozen=True)
class StartCommand:
    """Everything that was asked of ``raters campaign start``."""

    file: Path | None
    columns: ColumnOptions
    model: ModelOptions
    fit: FitOptions
    campaign: CampaignOptions
    out: Path


@dataclass(frozen=True)
class _Parts:
    """Model, questions and earlier judgements."""

    model: Model[Any]
    pool: Judgements
    data: Judgements | None


def start(request: StartCommand) -> None:
    """Read what there is, and write the journal."""
    out, options = request.out, request.campaign
    if out.exists() and not out.is_dir():
        raise SettingError(
            f"--out {str(out)!r} is there already; name another file, or go on with raters campaign"
            f" ask {out}"
        )
    outputs.check_writable(out, folder=False)
    policy = _policy(options)
    quick = request.fit.backend is None and not request.fit.given
    interrupted = f"either all of {str(out)!r} was written or nothing"
    with outputs.if_interrupted(interrupted), collected_warnings():
        parts = _from_names(request) if request.file is None else _from_table(request, request.file)
        campaign = rt.Campaign(
            out,
            parts.model,
            parts.pool,
            data=parts.data,
            backend=None if quick else backend_of(request.fit, parts.model, parts.pool),
            policy=policy,
            stop=_rule(options, parts),
            batch_size=options.batch_size,
            budget=options.budget,
            again=options.again,
            seed=request.fit.seed,
        )
    pool = campaign.pool
    axes = [axis for axis in pool.question_axes() if axis in pool.names]
    sizes = [f"{len(pool.coords[axis]):,} {plural(axis)}" for axis in axes]
    size = ", ".join([f"{pool.num_rows:,} questions", *sizes])
    ask = files.command("ask", out, request.columns.kind)
    request.fit.note(f"wrote {out} ({size}; {parts.model!r}); ask with: {ask}")


# ---------------------------------------------------------------- names


def _name_fields(kinds: Iterable[Kind]) -> set[str]:
    """Fields of names that questions are made of, such as ``items``."""
    return {kind.data.names[axis] for kind in kinds for axis in kind.data.question_axes()}


def _with_new(known: Iterable[Any], given: Iterable[Any]) -> list[Any]:
    """The names there are, and the new ones after them."""
    known = list(known)
    texts = {name_text(name) for name in known}
    return known + [name for name in given if name_text(name) not in texts]


def _from_table(request: StartCommand, file: Path) -> _Parts:
    """Model, pool and earlier judgements from a table; names given beside it are added to those in
    it."""
    fields = _name_fields(registered_kinds())
    wanted = {
        name: tables.names_in(text)
        for name, text in request.columns.given.items()
        if name in fields
    }
    rest = {name: value for name, value in request.columns.given.items() if name not in fields}
    columns = dataclasses.replace(request.columns, given=rest)
    source, model = source_and_model(file, columns, request.model)
    data, notes = read(source)
    request.fit.note(*notes)
    names = {field: _with_new(getattr(data, field), given) for field, given in wanted.items()}
    if any(names[field] != list(getattr(data, field)) for field in names):
        data = read(source, **names).data
    axes = {field: axis for axis, field in data.names.items() if axis in data.question_axes()}
    about = {axes[field]: own_names(given, getattr(data, field)) for field, given in wanted.items()}
    questions = kind_of(data).questions
    again = request.campaign.again if questions is None or "again" in keywords(questions) else None
    wanted_size, seed = request.campaign.size, request.fit.seed
    return _Parts(model, candidates(data, about, again=again, size=wanted_size, seed=seed), data)


def _from_names(request: StartCommand) -> _Parts:
    """Model and pool of a campaign that starts from nothing."""
    columns, options = request.columns, request.campaign
    kind, needed = _kind_of_names(columns)
    model = model_of(request.model, kind, f"a campaign of {kind.name}")
    for name in columns.given:
        if name not in needed:
            raise SettingError(
                f"{columns.flag(name)} is about FILE, and there is no FILE; leave it out"
            )
    check_needs(model, kind, columns)
    names = {name: tables.names_in(columns.given[name]) for name in needed if name in columns.given}
    for name in needed:
        if not names.get(name):
            every = " ".join(f"{columns.flag(one)} A,B,..." for one in needed)
            raise SettingError(
                f"without FILE, say what to ask about and whom: {every}; {columns.flag(name)} is"
                " missing"
            )
    assert kind.questions is not None
    given, accepted = dict[str, Any](names), keywords(kind.questions)
    if "again" in accepted:
        given["again"] = bool(options.again)
    if options.size is not None and "size" in accepted:
        given["size"] = options.size
    given |= {name: one for name, one in kind.implied(model).items() if name in accepted}
    return _Parts(model, kind.questions(**given, seed=request.fit.seed), None)


def _kind_of_names(columns: ColumnOptions) -> tuple[Kind, list[str]]:
    """The kind whose questions can be made of the names given, and the names that it needs."""
    own = kind_asked(columns.kind)
    if own is not None:
        check_askable(own.data, "kind")
    needs: list[tuple[Kind, list[str]]] = []
    for kind in registered_kinds() if own is None else (own,):
        if kind.questions is not None:
            accepted = keywords(kind.questions)
            listed = [
                name
                for name, one in accepted.items()
                if shape_of(one.annotation).metavar == "A,B,..."
            ]
            if listed:  # Of demonstrations, names of states give no process.
                needs.append((kind, listed))
    every = {name for _, listed in needs for name in listed}
    given = every & set(columns.given)
    possible = [(kind, listed) for kind, listed in needs if given <= set(listed)]
    if not possible:
        kind_name = "this kind" if own is None else f"a campaign of {own.name}"
        raise SettingError(f"without judgements to begin with, {kind_name} needs FILE")
    return min(possible, key=lambda one: len(one[1]))


# ---------------------------------------------------------------- policy and rule


def _rule(options: CampaignOptions, parts: _Parts) -> Any:
    """Rule of stopping: by the classes of the items, or by their order."""
    if options.until is None:
        return None
    has_truth = Program(parts.model, parts.pool).has_truth
    return (ExpectedAccuracy if has_truth else ExpectedTau)(options.until)


def _policy(options: CampaignOptions) -> Policy:
    costs = {name: _number(text, name) for name, text in pairs(options.cost, "cost", "NAME=NUMBER")}
    settings: dict[str, Any] = {
        "costs": costs or None,
        "quota": options.quota,
        "least_share": options.least_share,
    }
    if options.target == "random":
        return Policy(score=Random(), **settings)
    return Policy(target=options.target, k=options.k, **settings)


def pairs(given: Iterable[str] | None, name: str, form: str) -> list[tuple[str, str]]:
    """Names and values of an option such as ``--cost ann=2.5``."""
    named = []
    for text in given or []:
        key, sign, value = text.rpartition("=")
        if not (sign and key.strip() and value.strip()):
            raise SettingError(f"--{name} {text} cannot be read; write --{name} {form}")
        named.append((key.strip(), value.strip()))
    check_once((key for key, _ in named), name)
    return named


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise DataError(f"--cost {name}={text} is no number; write --cost {name}=2.5") from error
