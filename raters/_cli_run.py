"""What each command of the command line does, once its arguments are parsed."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import _check, _cli_files, _cli_report, datasets, figures
from raters.errors import ConvergenceWarning, DataError, DataWarning, SettingError
from raters.inference import Backend
from raters.models import from_repr

Options = Mapping[str, Any]
_BACKENDS: dict[str, type[Backend]] = {"gibbs": rt.PGGibbs, "nuts": rt.NUTS, "svi": rt.SVI, "em": rt.PGEM}
_DESIGNS = {
    "paper": datasets.paper,
    "separated": datasets.separated,
    "crowd": datasets.crowd,
    "position-biased": datasets.position_biased,
}
# What an audit may write besides result.nc and summary.json; what this one does not write must not lie there from another.
_SOMETIMES = ("result-dropped.nc", "rewards.png", "competences.png", "auditor.png")


def audit(options: Options) -> None:
    """Fit, judge, suggest; write everything, then print it."""
    model, backend, costs = _model(options), _backend(options), _costs(options)
    if options["drop"] and isinstance(model, rt.BTL):
        raise SettingError("--drop needs competences, which --model btl has not; write --model extended-btl")
    _cli_files.check_writable(options["out"], folder=True)
    with _collected_warnings() as cautions:
        votes = _votes(options)
        result = rt.fit(model, votes, backend, seed=options["seed"], progress=_bars(options))
        ranking = _cli_report.ranking(result, options["level"])
        found, dropped, change = None, None, None
        if isinstance(model, rt.ExtendedBTL):
            limits = {name: options[name] for name in ("threshold", "level", "min_votes")}
            found = rt.audit(model, result, **limits, costs=costs)
        if found is not None and options["drop"]:
            dropped = _refit(model, votes, found, backend, options)
        if dropped is not None:
            after = _cli_report.ranking(dropped, options["level"])
            change = _cli_report.ranking_change(ranking, after)
        questions, note = _questions(model, result, votes, found, options)
    summary = {
        "settings": dict(options),
        "model": repr(model),
        "data": _facts_of(votes),
        "versions": _cli_report.versions(),
        "fit": _cli_report.fit_facts(result),
        "ranking": ranking,
        "audit": None if found is None else _audit_summary(found),
        "without_flagged": change,
        "suggestions": questions,
        "suggestions_note": note,
        "warnings": cautions,
    }
    written = _write_audit(options, result, dropped, found, summary)
    out = _cli_report.Output()
    _cli_report.print_ranking(out, ranking, options["level"], options["rows"])
    if found is None:
        out.print("No audit of annotators: --model btl takes them all as alike; use --model extended-btl.\n", highlight=False)
    else:
        _cli_report.print_audit(out, found, options["level"], options["threshold"], options["rows"])
    if change is not None and found is not None:
        _cli_report.print_change(out, change, len(ranking), len(found.flagged))
    _cli_report.print_questions(out, questions, note)
    _note(options, f"wrote {', '.join(written)} to {options['out']}")


def fit(options: Options) -> None:
    """Fit and save."""
    model, backend = _model(options), _backend(options)
    _cli_files.check_writable(options["out"], folder=False)
    with _collected_warnings():
        result = rt.fit(model, _votes(options), backend, seed=options["seed"], progress=_bars(options))
    with _cli_files.replacing(options["out"]) as path:
        result.to_netcdf(path)
    _note(options, f"wrote {options['out']} ({result.attrs['model']}, {result.attrs['seconds']:.1f} s)")


def suggest(options: Options) -> None:
    """Score questions under a saved result."""
    if options["out"] is not None:
        _cli_files.check_writable(options["out"], folder=False)
        _cli_files.table_format(options["out"])
    result = _read_result(options["result"])
    model = from_repr(result.attrs["model"])
    votes = rt.Comparisons.from_result(result)
    who = options["annotator"] or None
    if isinstance(model, rt.BTL) and who is None:
        who = [votes.annotators[0]]
    candidates = rt.Candidates.pairs(votes, items=options["item"] or None, annotators=who, seed=options["seed"])
    settings = {name: options[name] for name in ("batch_size", "draws", "seed")}
    questions = rt.suggest(model, result, candidates, **settings).to_dataframe().reset_index(drop=True)
    if isinstance(model, rt.BTL) and not options["annotator"]:
        questions["by"] = "anyone"
    if options["out"] is not None:
        with _cli_files.replacing(options["out"]) as path:
            _cli_files.write_table(questions, path)
    _cli_report.print_questions(_cli_report.Output(), questions, "")


def simulate(options: Options) -> None:
    """Draw votes and write them with their truth."""
    out: Path = options["out"]
    _cli_files.table_format(out)
    _cli_files.check_writable(out, folder=False)
    sizes = {f"num_{name}": options[name] for name in ("items", "annotators", "votes") if options[name] is not None}
    votes, truth = _DESIGNS[options["design"]](**sizes, seed=options["seed"])
    truth_file = out.with_name(out.name.split(".")[0] + "-truth.json")
    by_axis = {"reward": votes.items}
    described = {
        name: dict(zip(by_axis.get(name, votes.annotators), values.tolist(), strict=True)) for name, values in truth.items()
    }
    with _cli_files.staged(out.parent) as folder:
        _cli_files.write_table(_one_vote_a_row(votes, options["seed"]), folder / out.name)
        _cli_report.write_json({"design": options["design"], "seed": options["seed"]} | described, folder / truth_file.name)
    _note(options, f"wrote {votes.num_votes} votes to {out} and their truth to {truth_file}")


def _one_vote_a_row(votes: rt.Comparisons, seed: int) -> pd.DataFrame:
    """Aggregated votes spread out again, in random order."""
    count = np.ones(votes.num_comparisons) if votes.count is None else votes.count
    times = np.concatenate([votes.wins, count - votes.wins]).astype(int)
    won = np.repeat([True, False], votes.num_comparisons).repeat(times)
    row = np.tile(np.arange(votes.num_comparisons), 2).repeat(times)
    mixed = np.random.default_rng(seed).permutation(len(row))
    won, row = won[mixed], row[mixed]
    items, who = np.asarray(votes.items), np.asarray(votes.annotators)
    first, second = items[votes.first[row]], items[votes.second[row]]
    if votes.ordered:
        sides = {"first": first, "second": second, "outcome": np.where(won, "first", "second")}
    else:
        sides = {"winner": np.where(won, first, second), "loser": np.where(won, second, first)}
    return pd.DataFrame({"annotator": who[votes.annotator[row]]} | sides)


# ---------------------------------------------------------------- from options to objects


def _model(options: Options) -> rt.Model:
    settings = {name: options[name] for name in ("reward_scale", "position_bias")}
    if (columns := _columns(options)).has_sides:
        _must_be_ordered(options, columns)
    if options["model"] == "btl":
        if options["competence_spread"] is not None:
            raise SettingError("--competence-spread belongs to --model extended-btl; --model btl has no competences")
        return rt.BTL(**settings)
    return rt.ExtendedBTL(**settings, competence=options["competence"], competence_spread=_spread(options["competence_spread"]))


def _spread(text: str | None) -> Any:
    """The spread as the model takes it: a number, or a word."""
    if text is None:
        return "auto"
    try:
        return float(text)
    except ValueError:
        if text != "learned":
            raise SettingError(f"competence_spread={text!r} is not possible; write a number above 0, or 'learned'") from None
        return text


def _backend(options: Options) -> Backend:
    kind = _BACKENDS[options["backend"]]
    given = {name: options[name] for name in ("draws", "warmup", "chains") if options[name] is not None}
    for name in given:
        if not hasattr(kind, name):
            raise SettingError(f"--{name} has no meaning for --backend {options['backend']}; leave it out")
    return kind(**given)


def _costs(options: Options) -> rt.Costs:
    _check.share("level", options["level"])
    if not math.isfinite(options["threshold"]):
        raise SettingError(f"threshold={options['threshold']!r} is not possible; it must be a finite number such as 0.25")
    return rt.Costs(options["cost_keep_bad"], options["cost_drop_good"], options["cost_review"])


def _columns(options: Options) -> _cli_files.Columns:
    columns = _cli_files.Columns(**{name: options[name] for name in _cli_files.Columns.__annotations__})
    columns.check()
    return columns


def _votes(options: Options) -> rt.Comparisons:
    columns = _columns(options)
    table = _cli_files.read_table(options["file"])
    guessed = not columns.has_sides
    if guessed:
        columns = columns.guessed(list(map(str, table.columns)))
        _must_be_ordered(options, columns)
    votes, left_out = _cli_files.read_votes(table, columns, options["ties"], options["drop_bad_rows"])
    # Said once the table is read: an error stands alone.
    if guessed:
        read = " ".join(f"--{role} {name}" for role, name in columns.given().items())
        _note(options, f"no columns were named; reading {read}")
    if left_out:
        _note(options, f"left out {left_out} of {len(table)} rows, with a missing value or an item compared with itself")
    return votes


def _must_be_ordered(options: Options, columns: _cli_files.Columns) -> None:
    if options["position_bias"] and columns.first is None:
        raise SettingError("--position-bias needs to know what was shown first: use --first, --second and --outcome")


def _read_result(path: Path) -> xr.DataTree:
    _cli_files.must_be_file(path)
    try:
        result = xr.open_datatree(path).load()
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{str(path)!r} is not a netCDF file that can be read; give what raters fit wrote") from error
    result.close()
    if "model" not in result.attrs or "posterior" not in result.children or "constant_data" not in result.children:
        raise DataError(f"{str(path)!r} is a netCDF file, but no result of raters; give what raters fit wrote")
    return result


# ---------------------------------------------------------------- parts of the audit


def _refit(model: rt.Model, votes: rt.Comparisons, found: rt.Audit, backend: Backend, options: Options) -> xr.DataTree | None:
    if not found.flagged:
        _note(options, "nobody is flagged, so there is nothing to drop")
        return None
    try:
        return rt.drop(model, votes, found, backend, seed=options["seed"], progress=_bars(options))
    except DataError as error:
        warnings.warn(f"no second fit: {error}", DataWarning, stacklevel=2)
        return None


def _questions(model, result, votes, found, options: Options) -> tuple[pd.DataFrame, str]:
    """The next questions, none of them to an annotator who is to be dropped."""
    alike = isinstance(model, rt.BTL)
    flagged = set(map(str, found.flagged)) if found is not None else set()
    who = [votes.annotators[0]] if alike else [name for name in votes.annotators if str(name) not in flagged]
    if not who:
        return pd.DataFrame(
            columns=["first", "second", "by", "score", "p_win"]
        ), "Everybody is flagged: there is nobody to ask."
    candidates = rt.Candidates.pairs(votes, annotators=who, seed=options["seed"])
    chosen = rt.suggest(model, result, candidates, batch_size=options["batch_size"], seed=options["seed"])
    questions = chosen.to_dataframe().reset_index(drop=True)
    if alike:
        questions["by"] = "anyone"
    possible = votes.num_items * (votes.num_items - 1) // 2 * len(who)
    notes = [f"Chosen from a random {candidates.num_comparisons:,} of {possible:,} questions."] * (
        candidates.num_comparisons < possible
    )
    notes += [f"Nobody flagged is asked ({len(flagged)} left out)."] * bool(flagged)
    return questions, " ".join(notes)


def _facts_of(votes: rt.Comparisons) -> dict[str, int]:
    return {"items": votes.num_items, "annotators": votes.num_annotators, "votes": votes.num_votes}


def _audit_summary(found: rt.Audit) -> dict[str, Any]:
    frame = _cli_report.audit_frame(found)
    return {
        "rule": found.rule,
        "flagged": found.flagged,
        "expected_share_of_wrong_drops": found.wrong_drops,
        "annotators": frame,
    }


def _write_audit(options: Options, result, dropped, found, summary: dict[str, Any]) -> list[str]:
    """Everything into the folder, or nothing; gives the names of the files."""
    shown = {"level": options["level"]}
    with _cli_files.staged(options["out"]) as folder:
        result.to_netcdf(folder / "result.nc")
        if dropped is not None:
            dropped.to_netcdf(folder / "result-dropped.nc")
        figures.rewards(result, **shown).savefig(folder / "rewards.png")
        if found is not None:
            figures.competences(found, threshold=options["threshold"], **shown).savefig(folder / "competences.png")
            figures.auditor(found, threshold=options["threshold"]).savefig(folder / "auditor.png")
        _cli_report.write_json(summary, folder / "summary.json")
        written = sorted(file.name for file in folder.iterdir())
    for name in set(_SOMETIMES) - set(written):
        (options["out"] / name).unlink(missing_ok=True)
    return written


# ---------------------------------------------------------------- standard error


@contextmanager
def _collected_warnings() -> Iterator[list[str]]:
    """Warnings as one line each on standard error, and as a list; each only once."""
    seen: list[str] = []

    def show(message, *_args, **_settings) -> None:
        text = _cli_files.as_options(str(message))
        if text not in seen:
            seen.append(text)
            print(f"raters: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        for category in (DataWarning, ConvergenceWarning):
            warnings.filterwarnings("always", category=category)
        warnings.showwarning = show
        yield seen


def _note(options: Options, text: str) -> None:
    if not options["quiet"]:
        print(f"raters: {text}", file=sys.stderr)


def _bars(options: Options) -> bool:
    """Progress bars belong on a terminal: in a log they are noise."""
    return options["progress"] and not options["quiet"] and sys.stderr.isatty()
