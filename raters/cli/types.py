"""The command ``raters types``: what different people want."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import figures
from raters.cli import console, outputs, tables
from raters.cli.fitting import backend_of, built, collected_warnings
from raters.cli.generated import dashed
from raters.cli.options import ColumnOptions, FitOptions, Force, ModelOptions, option, settings
from raters.cli.reading import Source, read, source_of
from raters.errors import ConvergenceWarning, SettingError, validation
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.kinds import Kind, Words
from raters.reporting import facts

TypeModel = rt.MixtureBTL | rt.models.MixturePlackettLuce
# Models of the command by kind of judgement, where nothing else is asked for.
MODELS: dict[str, TypeModel] = {
    "comparisons": rt.MixtureBTL(num_types=3),
    "rankings": rt.models.MixturePlackettLuce(num_types=3),
}
_SHOWN = 3


@dataclass(frozen=True)
class TypeOptions:
    """Options of the output on types."""

    compare: Annotated[
        str | None,
        option("Model", help="Also compare these numbers of types, by LOO.", metavar="1,2,..."),
    ] = None
    level: Annotated[float, option(None, help="Posterior probability of the intervals.")] = 0.9
    out: Annotated[
        Path, option(None, help="Folder for results, tables and figures.", metavar="DIR")
    ] = Path("raters-types")
    force: Force = False


@dataclass(frozen=True)
class TypesCommand:
    """Everything that was asked of ``raters types``."""

    file: Path
    columns: ColumnOptions
    model: ModelOptions
    fit: FitOptions
    types: TypeOptions


def types(request: TypesCommand) -> None:
    """Fit, compare numbers of types; write everything, then print it."""
    options = request.types
    validation.share("level", options.level)
    sure = ("result.nc", "summary.json")
    with outputs.if_interrupted(outputs.NOTHING), collected_warnings() as cautions:
        source = _source(request)
        words, model = source.kind.words, _model(request, source.kind)
        backend_of(request.fit, model)  # Wrong options are said before the table is read.
        numbers = compared(options.compare, model.num_types)
        outputs.check_writable(options.out, folder=True, force=options.force, names=sure)
        votes = _read(request, source)
        backend = backend_of(request.fit, model, votes)
        result = rt.fit(model, votes, backend, seed=request.fit.seed, progress=request.fit.bars)
        comparison = _compare(request.fit, votes, backend, model, numbers, result)
    items, people = item_table(result, options.level), annotator_table(result, votes, words.many)
    summary = {
        "settings": {"file": request.file}
        | settings(request.columns, request.model, request.fit, options),
        "model": repr(model),
        "data": {
            "items": len(votes.coords["item"]),
            "annotators": len(votes.judges),
            words.many: votes.num_judgements,
        },
        "versions": facts.versions(),
        "fit": facts.fit_facts(result),
        "types": _types(result, items, people, options.level, words.many),
        "mean_probability_of_likeliest_type": float(people["probability"].mean()),
        "comparison": comparison,
        "warnings": cautions,
    }
    written = _write(options, result, items, people, summary)
    with outputs.already(note := f"wrote {', '.join(written)} to {options.out}"):
        _print(request, model, summary, words)
    request.fit.note(note)


# ---------------------------------------------------------------- from options to objects


def compared(text: str | None, num_types: int) -> list[int]:
    """The numbers of types to compare, that of the fit among them; none when no comparison is
    wanted."""
    if text is None:
        return []
    try:
        numbers = {int(part) for part in text.split(",")}
    except ValueError:
        numbers = {0}
    if min(numbers) < 1:
        raise SettingError(
            f"--compare {text} is not possible; write numbers of types, such as --compare 1,2,3,4"
        )
    if len(numbers | {num_types}) == 1:
        raise SettingError(
            f"--compare {text} leaves nothing to compare with; write several, such as --compare"
            " 1,2,3,4"
        )
    return sorted(numbers | {num_types})


def _source(request: TypesCommand) -> Source:
    """The table: two sides with annotators, or rankings."""
    source = source_of(request.file, request.columns)
    if source.kind.name not in MODELS:
        votes = dataclasses.replace(request.columns, kind="comparisons")
        source = source_of(request.file, votes)
    if "annotator" not in source.given and "places" not in source.given:
        raise SettingError(
            "types are types of annotators: name the column that says who gave each"
            f" {source.kind.words.one} with --annotator COLUMN; it has"
            f" {sorted(map(str, source.table.columns))}"
        )
    return source


def _model(request: TypesCommand, kind: Kind) -> TypeModel:
    """The model of types of this kind, with the settings that were given."""
    default = MODELS[kind.name]
    flag = f"--model {dashed(type(default).__name__)}"
    model: TypeModel = built(type(default), default, request.model, flag)
    return model


def _read(request: TypesCommand, source: Source) -> Judgements:
    votes, notes = read(source)
    request.fit.note(*notes)
    return votes


# ---------------------------------------------------------------- what a fit says


def item_table(result: xr.DataTree, level: float) -> pd.DataFrame:
    """Items of each type from the highest reward (of rankings, worth) to the lowest: ``type``,
    ``rank``, ``item``, ``reward`` and its interval."""
    site = "reward" if "reward" in result["posterior"] else "worth"
    reward = (
        result["posterior"][site]
        .stack(sample=("chain", "draw"))
        .transpose("sample", "type", "item")
    )
    low, high = np.quantile(reward.values, ((1 - level) / 2, (1 + level) / 2), axis=0)
    centre, names = reward.values.mean(0), reward["item"].values
    parts = []
    for place, number in enumerate(reward["type"].values.tolist()):
        order = np.argsort(-centre[place], kind="stable")
        part = {
            "type": number,
            "rank": np.arange(1, len(order) + 1),
            "item": names[order],
            site: centre[place, order],
        }
        parts.append(
            pd.DataFrame(
                part | {f"{site}_low": low[place, order], f"{site}_high": high[place, order]}
            )
        )
    return pd.concat(parts, ignore_index=True)


def annotator_table(result: xr.DataTree, votes: Judgements, called: str = "votes") -> pd.DataFrame:
    """Each annotator's number of votes, or judgements called otherwise, likeliest type and the
    probability of each; competence too, where it was learned."""
    chances = result["types"]["responsibility"].transpose("annotator", "type")
    columns: dict[str, Any] = {
        "annotator": chances["annotator"].values,
        called: votes.judgements_by("annotator"),
        "type": chances["type"].values[chances.values.argmax(1)],
        "probability": chances.values.max(1),
    }
    columns |= {
        f"p_type_{number}": chances.sel(type=number).values
        for number in chances["type"].values.tolist()
    }
    if "competence" in result["posterior"]:
        columns["competence"] = result["posterior"]["competence"].mean(("chain", "draw")).values
    return pd.DataFrame(columns)


def _types(
    result: xr.DataTree,
    items: pd.DataFrame,
    people: pd.DataFrame,
    level: float,
    called: str = "votes",
) -> list[dict[str, Any]]:
    """Rows of the printed table of types."""
    weight = (
        result["posterior"]["type_weight"]
        .stack(sample=("chain", "draw"))
        .transpose("type", "sample")
        .values
    )
    low, high = np.quantile(weight, ((1 - level) / 2, (1 + level) / 2), axis=1)
    people = people[people[called] > 0]
    kinds: list[dict[str, Any]] = []
    for place, (number, part) in enumerate(items.groupby("type", sort=True)):
        names = part["item"].tolist()
        kinds.append(
            {
                "type": number,
                "share": float(weight[place].mean()),
                "share_low": float(low[place]),
                "share_high": float(high[place]),
                "annotators": int((people["type"] == number).sum()),
                "top": names[: min(_SHOWN, len(names) // 2 or 1)],
                "bottom": names[::-1][: min(_SHOWN, len(names) // 2)],
            }
        )
    return kinds


def _compare(
    fitting: FitOptions,
    votes: Judgements,
    backend: Backend,
    model: TypeModel,
    numbers: Sequence[int],
    result: xr.DataTree,
) -> pd.DataFrame | None:
    """Numbers of types by LOO on annotators, the best first; None where none are given."""
    if not numbers:
        return None
    fits = {}
    for number in numbers:
        other = dataclasses.replace(model, num_types=number)
        one = result if other == model else _another(fitting, other, votes, backend)
        stored = "log_likelihood" in one.children
        fits[str(number)] = one if stored else rt.log_likelihood(other, one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on Pareto k, which the table says
        table = az.compare(fits, round_to="none")
    shown = table[["elpd", "elpd_diff", "dse", "p", "weight", "diag_elpd"]].reset_index(
        names="num_types"
    )
    renamed = shown.rename(columns={"diag_elpd": "remark"})
    return pd.DataFrame(renamed.assign(num_types=shown["num_types"].astype(int)))


def _another(
    fitting: FitOptions, model: TypeModel, votes: Judgements, backend: Backend
) -> xr.DataTree:
    """A fit with another number of types, whose warnings say so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        result = rt.fit(model, votes, backend, seed=fitting.seed, progress=fitting.bars)
    for caution in caught:
        if issubclass(caution.category, ConvergenceWarning):
            warnings.warn(
                f"with {model.num_types} type(s): {caution.message}",
                ConvergenceWarning,
                stacklevel=2,
            )
    return result


# ---------------------------------------------------------------- output


def _write(
    options: TypeOptions,
    result: xr.DataTree,
    items: pd.DataFrame,
    people: pd.DataFrame,
    summary: dict[str, Any],
) -> list[str]:
    """Everything into the folder, or nothing; gives the names of the files."""

    def write(folder: Path) -> None:
        outputs.to_netcdf(result, folder / "result.nc")
        tables.write_for_people(items, folder / "types.csv")
        tables.write_for_people(people, folder / "annotators.csv")
        figures.profiles(result, level=options.level).savefig(folder / "profiles.png")
        figures.responsibilities(result).savefig(folder / "responsibilities.png")
        facts.write_json(summary, folder / "summary.json")

    with collected_warnings():
        return outputs.write_folder(options.out, write, force=options.force)


def _print(request: TypesCommand, model: TypeModel, summary: dict[str, Any], words: Words) -> None:
    out = console.Output()
    grid = console.new_grid("Types of annotators, largest first")
    grid.add_column("type", justify="right", no_wrap=True)
    grid.add_column("share", justify="right", no_wrap=True)
    grid.add_column(f"{request.types.level:.0%} interval", justify="right", no_wrap=True)
    grid.add_column("annotators", justify="right", no_wrap=True)
    grid.add_column("prefers", overflow="fold", min_width=12)
    grid.add_column("likes least", overflow="fold", min_width=12)
    for row in summary["types"]:
        interval = f"{facts.percent(row['share_low'])}…{facts.percent(row['share_high'])}"
        ends = (", ".join(map(console.shown_name, row[end])) for end in ("top", "bottom"))
        grid.add_row(
            str(row["type"]), facts.percent(row["share"]), interval, str(row["annotators"]), *ends
        )
    out.print(grid)
    out.print()
    sure = summary["mean_probability_of_likeliest_type"]
    if len(summary["types"]) > 1:
        out.print(
            f"Under the model, annotators are of their likeliest type with probability {sure:.2f}"
            " on average; raters check tells whether it fits.",
            highlight=False,
        )
    if request.fit.backend == "em":
        out.print(
            "A first look: the best mode and normal intervals around it; --backend gibbs is exact.",
            highlight=False,
        )
    if summary["comparison"] is not None:
        out.print()
        _print_comparison(out, summary["comparison"], model.num_types, words)


def _print_comparison(out: console.Output, table: pd.DataFrame, fitted: int, words: Words) -> None:
    title = f"How many types: LOO, one annotator with all {words.many} left out at a time"
    grid = console.new_grid(title)
    for heading in ("types", "elpd", "difference", "its error", "weight", "remark"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for row in table.itertuples():
        numbers = (f"{row.elpd:.1f}", f"{row.elpd_diff:.1f}", f"{row.dse:.1f}", f"{row.weight:.2f}")
        grid.add_row(str(row.num_types), *numbers, row.remark)
    out.print(grid)
    # The fewest types that are not clearly worse than the best.
    close = table[table["elpd_diff"].abs() <= 2 * table["dse"].fillna(0)]
    best, fewest = int(table["num_types"].iloc[0]), int(close["num_types"].min())
    out.print()
    text = f"{best} type(s) predict best" + (
        f"; {fewest} are within two errors of it" if fewest < best else ""
    )
    if fitted not in (best, fewest):
        text += (
            f". Above are {fitted}; write --num-types {fewest} for"
            f" {'those' if fewest < best else 'the best'}"
        )
    out.print(text + ".", highlight=False)
