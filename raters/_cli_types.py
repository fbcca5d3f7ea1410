"""The command ``raters types``: what different people want."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import arviz as az
import numpy as np
import pandas as pd
import xarray as xr
from rich.markup import escape

import raters as rt
from raters import _check, _cli_files, _cli_report, _facts, type_figures
from raters._cli_common import Options, Source, backend, bars, collected_warnings, note, note_source, remove_stale
from raters.errors import ConvergenceWarning, DataError, RatersError, SettingError

_SETTINGS = ("num_types", "competence", "reward_scale", "type_prior", "concentration")
# Roles of columns that only comparisons of two sides have.
_OF_SIDES = ("winner", "loser", "first", "second", "outcome", "item", "rating", "count", "ties")
_SHOWN = 3


def types(options: Options) -> None:
    """Fit, compare numbers of types; write everything, then print it."""
    _check.share("level", options["level"])
    model, fitting, numbers = _in_options(lambda: model_of(options)), backend(options), compared(options)
    source = _source(options)
    _cli_files.check_writable(options["out"], folder=True)
    with collected_warnings() as cautions:
        votes = _read(options, source)
        result = _in_options(lambda: rt.fit(model, votes, fitting, seed=options["seed"], progress=bars(options)))
        comparison = _compare(options, votes, fitting, numbers, result) if numbers else None
    items, people = item_table(result, options["level"]), annotator_table(result, votes)
    summary = {
        "settings": dict(options),
        "model": repr(model),
        "data": {"items": votes.num_items, "annotators": votes.num_annotators, "votes": votes.num_votes},
        "versions": _facts.versions(),
        "fit": _facts.fit_facts(result),
        "types": _types(result, items, people, options["level"]),
        "mean_probability_of_likeliest_type": float(people["probability"].mean()),
        "comparison": comparison,
        "warnings": cautions,
    }
    written = _write(options, result, items, people, summary)
    _print(options, summary)
    note(options, f"wrote {', '.join(written)} to {options['out']}")


# ---------------------------------------------------------------- from options to objects


def model_of(options: Options, num_types: int | None = None) -> rt.MixtureBTL:
    """The model that the options describe, with another number of types if wanted."""
    settings: dict[str, Any] = {name: options[name] for name in _SETTINGS}
    return rt.MixtureBTL(**settings | ({} if num_types is None else {"num_types": num_types}))


def compared(options: Options) -> list[int]:
    """The numbers of types to compare, that of the fit among them; none when no comparison is wanted."""
    text = options["compare"]
    if text is None:
        return []
    try:
        numbers = {int(part) for part in text.split(",")}
    except ValueError:
        numbers = {0}
    if min(numbers) < 1:
        raise SettingError(f"--compare {text} is not possible; write numbers of types, such as --compare 1,2,3,4")
    if len(numbers | {options["num_types"]}) == 1:
        raise SettingError(f"--compare {text} leaves nothing to compare with; write several, such as --compare 1,2,3,4")
    return sorted(numbers | {options["num_types"]})


def _source(options: Options) -> Source:
    """The table, and which column plays which role: two sides, or (with --place) rankings."""
    places = options["place"] or []
    if places:
        if other := [name for name in _OF_SIDES if options[name] is not None]:
            raise SettingError(f"--place reads rankings, and --{other[0]} belongs to comparisons of two items; leave one out")
        if len(places) == 1:
            raise SettingError(
                "--place is given once for each place of a ranking, in order, such as --place first --place second"
            )
        return Source(_cli_files.read_table(options["file"]), _cli_files.Columns(annotator=options["annotator"]), False)
    roles = {name: options.get(name) for name in _cli_files.Columns.__annotations__}
    columns = _cli_files.Columns(**roles)
    columns.check()
    table = _cli_files.read_table(options["file"])
    if guessed := not columns.has_sides:
        columns = columns.guessed(list(map(str, table.columns)))
    if columns.label is not None:
        raise DataError(
            "this is a table of labels, and types are found from comparisons: name their columns with --winner and --loser, "
            "or those of rankings with --place"
        )
    if columns.annotator is None:
        raise SettingError(
            "types are types of annotators: name the column that says who voted with --annotator COLUMN; it has "
            f"{sorted(map(str, table.columns))}"
        )
    return Source(table, columns, guessed)


def _read(options: Options, source: Source) -> rt.Comparisons:
    places = options["place"] or []
    if not places:
        votes, left_out = _cli_files.read_votes(source.table, source.columns, options["ties"], options["drop_bad_rows"])
    else:
        table, left_out = _cli_files._usable_rows(source.table, source.columns, options["drop_bad_rows"])
        # Places without a gap were read as numbers, and those with one as text; names are text in all or in none.
        known = [name for name in places if name in table]
        if any(table[name].dtype.kind not in "iu" for name in known):
            table = table.assign(**{name: table[name].where(table[name].isna(), table[name].astype(str)) for name in known})
        votes = _in_options(lambda: rt.Comparisons.from_rankings(table, places=places, annotator=source.columns.annotator))
        note(
            options,
            f"each ranking is read as comparisons of {len(places)} places, which are not independent: intervals are too narrow",
        )
    note_source(options, source, left_out)
    return votes


def _in_options(action) -> Any:
    """What the action gives; places in its errors are named as options."""
    try:
        return action()
    except RatersError as error:
        text = re.sub(r"\bplaces=\[[^\]]*\]", "--place first --place second", str(error))
        text = re.sub(r"\bplace \d+=(?:'([^']*)')?", lambda found: f"--place {found[1] or ''}".rstrip(), text)
        text = text.replace("places=", "--place")
        raise type(error)(text) from error


# ---------------------------------------------------------------- what a fit says


def item_table(result: xr.DataTree, level: float) -> pd.DataFrame:
    """Items of each type from the highest reward to the lowest: ``type``, ``rank``, ``item``, ``reward`` and its interval."""
    reward = result["posterior"]["reward"].stack(sample=("chain", "draw")).transpose("sample", "type", "item")
    low, high = np.quantile(reward.values, ((1 - level) / 2, (1 + level) / 2), axis=0)
    centre, names = reward.values.mean(0), reward["item"].values
    parts = []
    for place, number in enumerate(reward["type"].values.tolist()):
        order = np.argsort(-centre[place], kind="stable")
        part = {"type": number, "rank": np.arange(1, len(order) + 1), "item": names[order], "reward": centre[place, order]}
        parts.append(pd.DataFrame(part | {"reward_low": low[place, order], "reward_high": high[place, order]}))
    return pd.concat(parts, ignore_index=True)


def annotator_table(result: xr.DataTree, votes: rt.Comparisons) -> pd.DataFrame:
    """Each annotator's votes, likeliest type and the probability of each; competence too, where it was learned."""
    chances = result["types"]["responsibility"].transpose("annotator", "type")
    columns: dict[str, Any] = {
        "annotator": chances["annotator"].values,
        "votes": votes.votes_by_annotator(),
        "type": chances["type"].values[chances.values.argmax(1)],
        "probability": chances.values.max(1),
    }
    columns |= {f"p_type_{number}": chances.sel(type=number).values for number in chances["type"].values.tolist()}
    if "competence" in result["posterior"]:
        columns["competence"] = result["posterior"]["competence"].mean(("chain", "draw")).values
    return pd.DataFrame(columns)


def _types(result: xr.DataTree, items: pd.DataFrame, people: pd.DataFrame, level: float) -> list[dict[str, Any]]:
    """What the printed table says of each type."""
    weight = result["posterior"]["type_weight"].stack(sample=("chain", "draw")).transpose("type", "sample").values
    low, high = np.quantile(weight, ((1 - level) / 2, (1 + level) / 2), axis=1)
    voted = people[people["votes"] > 0]
    found = []
    for place, (number, part) in enumerate(items.groupby("type", sort=True)):
        names = part["item"].tolist()
        found.append(
            {
                "type": number,
                "share": float(weight[place].mean()),
                "share_low": float(low[place]),
                "share_high": float(high[place]),
                "annotators": int((voted["type"] == number).sum()),
                "top": names[: min(_SHOWN, len(names) // 2 or 1)],
                "bottom": names[::-1][: min(_SHOWN, len(names) // 2)],
            }
        )
    return found


def _compare(
    options: Options, votes: rt.Comparisons, fitting: Any, numbers: Sequence[int], result: xr.DataTree
) -> pd.DataFrame:
    """Numbers of types by LOO on annotators, the best first."""
    fits = {}
    for number in numbers:
        model = model_of(options, number)
        one = (
            result
            if number == options["num_types"]
            else _in_options(lambda model=model: _another(options, model, votes, fitting))
        )
        fits[str(number)] = one if "log_likelihood" in one.children else rt.log_likelihood(model, one)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # on Pareto k, which the table says
        table = az.compare(fits, round_to="none")
    shown = table[["elpd", "elpd_diff", "dse", "p", "weight", "diag_elpd"]].reset_index(names="num_types")
    return shown.rename(columns={"diag_elpd": "remark"}).assign(num_types=shown["num_types"].astype(int))


def _another(options: Options, model: rt.MixtureBTL, votes: rt.Comparisons, fitting: Any) -> xr.DataTree:
    """A fit with another number of types, whose doubts say so."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ConvergenceWarning)
        result = rt.fit(model, votes, fitting, seed=options["seed"], progress=bars(options))
    for caution in said:
        if issubclass(caution.category, ConvergenceWarning):
            warnings.warn(f"with {model.num_types} type(s): {caution.message}", ConvergenceWarning, stacklevel=2)
    return result


# ---------------------------------------------------------------- output


def _write(options: Options, result: xr.DataTree, items: pd.DataFrame, people: pd.DataFrame, summary: Any) -> list[str]:
    """Everything into the folder, or nothing; gives the names of the files."""
    with _cli_files.staged(options["out"]) as folder, collected_warnings():
        result.to_netcdf(folder / "result.nc")
        _cli_files.write_table(items, folder / "types.csv")
        _cli_files.write_table(people, folder / "annotators.csv")
        type_figures.profiles(result, level=options["level"]).savefig(folder / "profiles.png")
        type_figures.responsibilities(result).savefig(folder / "responsibilities.png")
        _facts.write_json(summary, folder / "summary.json")
        written = sorted(file.name for file in folder.iterdir())
    remove_stale(options["out"], written)
    return written


def _print(options: Options, summary: dict[str, Any]) -> None:
    out = _cli_report.Output()
    grid = _cli_report.new_grid("Types of annotators, largest first")
    grid.add_column("type", justify="right", no_wrap=True)
    grid.add_column("share", justify="right", no_wrap=True)
    grid.add_column(f"{options['level']:.0%} interval", justify="right", no_wrap=True)
    grid.add_column("annotators", justify="right", no_wrap=True)
    grid.add_column("prefers", overflow="fold", min_width=12)
    grid.add_column("likes least", overflow="fold", min_width=12)
    for row in summary["types"]:
        interval = f"{_facts.percent(row['share_low'])}…{_facts.percent(row['share_high'])}"
        ends = (escape(", ".join(map(str, row[end]))) for end in ("top", "bottom"))
        grid.add_row(str(row["type"]), _facts.percent(row["share"]), interval, str(row["annotators"]), *ends)
    out.print(grid)
    out.print()
    sure = summary["mean_probability_of_likeliest_type"]
    if len(summary["types"]) > 1:
        out.print(f"Annotators are of their likeliest type with probability {sure:.2f} on average.", highlight=False)
    if options["backend"] == "em":
        out.print("A first look: the best mode and normal intervals around it; --backend gibbs is exact.", highlight=False)
    if summary["comparison"] is not None:
        out.print()
        _print_comparison(out, summary["comparison"], options["num_types"])


def _print_comparison(out: _cli_report.Output, table: pd.DataFrame, fitted: int) -> None:
    grid = _cli_report.new_grid("How many types: LOO, one annotator with all votes left out at a time")
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
    text = f"{best} type(s) predict best" + (f"; {fewest} are within two errors of it" if fewest < best else "")
    if fitted not in (best, fewest):
        text += f". Above are {fitted}; write --num-types {fewest} for {'those' if fewest < best else 'the best'}"
    out.print(text + ".", highlight=False)
