"""The commands on tables of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import _cli_files, _cli_report, _facts, datasets, figures
from raters._cli_common import (
    Options,
    Source,
    backend,
    bars,
    collected_warnings,
    costs,
    note,
    note_source,
    refit,
    remove_stale,
    reports,
    write_reports,
)
from raters.errors import SettingError

DESIGNS: dict[str, Any] = {
    "paper": datasets.paper,
    "separated": datasets.separated,
    "crowd": datasets.crowd,
    "position-biased": datasets.position_biased,
}


def audit(options: Options, source: Source, command: str) -> None:
    """Fit, judge, suggest; write everything, then print it."""
    model, fitting, decision = model_of(options, source.columns), backend(options), costs(options)
    for name in ("drop", "report"):
        if options[name] and isinstance(model, rt.BTL):
            raise SettingError(f"--{name} needs competences, which --model btl has not; write --model extended-btl")
    _cli_files.check_writable(options["out"], folder=True)
    with collected_warnings() as cautions:
        votes = read(options, source)
        result = rt.fit(model, votes, fitting, seed=options["seed"], progress=bars(options))
        ranking = _facts.ranking(result["posterior"]["reward"], options["level"])
        found, dropped, change = None, None, None
        if isinstance(model, rt.ExtendedBTL):
            limits = {name: options[name] for name in ("threshold", "level", "min_votes")}
            found = rt.audit(model, result, **limits, costs=decision)
        if found is not None and options["drop"]:
            dropped = refit(model, votes, found, fitting, options)
        if dropped is not None:
            after = _facts.ranking(dropped["posterior"]["reward"], options["level"])
            change = _cli_report.ranking_change(ranking, after)
        asked, remark = _next_questions(model, result, votes, found, options)
    pages = reports(options, model, result, found, asked, remark, command)
    summary = {
        "settings": dict(options),
        "model": repr(model),
        "data": _facts.data_facts(votes),
        "versions": _facts.versions(),
        "fit": _facts.fit_facts(result),
        "ranking": ranking,
        "audit": None if found is None else _facts.audit_summary(found),
        "without_flagged": change,
        "suggestions": asked,
        "suggestions_note": remark,
        "warnings": cautions,
    }
    written = _write_audit(options, result, dropped, found, summary)
    _print(options, summary, found)
    note(options, " and ".join([f"wrote {', '.join(written)} to {options['out']}", *write_reports(pages)]))


def _print(options: Options, summary: dict[str, Any], found: rt.Audit | None) -> None:
    out, ranking = _cli_report.Output(), summary["ranking"]
    _cli_report.print_ranking(out, ranking, options["level"], options["rows"])
    if found is None:
        out.print("No audit of annotators: --model btl takes them all as alike; use --model extended-btl.\n", highlight=False)
    else:
        _cli_report.print_audit(out, found, options["level"], options["threshold"], options["rows"])
        if summary["without_flagged"] is not None:
            _cli_report.print_change(out, summary["without_flagged"], len(ranking), len(found.flagged))
    _cli_report.print_questions(out, summary["suggestions"], summary["suggestions_note"])


def questions(options: Options, model: rt.Model, result: xr.DataTree, votes: rt.Comparisons) -> pd.DataFrame:
    """The most informative questions under a saved result."""
    if options["again"]:
        raise SettingError("--again belongs to results of labels; a pair of items may always be compared again: leave it out")
    who = options["annotator"] or None
    if isinstance(model, rt.BTL) and who is None:
        who = [votes.annotators[0]]
    candidates = rt.Candidates.pairs(votes, items=options["item"] or None, annotators=who, seed=options["seed"])
    settings = {name: options[name] for name in ("batch_size", "draws", "seed")}
    policy = rt.Policy(target=options["target"], k=options["k"])
    chosen = rt.suggest(model, result, candidates, policy=policy, **settings).to_dataframe().reset_index(drop=True)
    if isinstance(model, rt.BTL) and not options["annotator"]:
        chosen["by"] = "anyone"
    return chosen


def simulated(options: Options) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Votes as a table, and their truth by name."""
    for name in ("labels_per_item", "classes", "features"):
        if options[name] is not None:
            raise SettingError(f"--{name.replace('_', '-')} belongs to --design label-crowd; leave it out")
    sizes = {f"num_{name}": options[name] for name in ("items", "annotators", "votes") if options[name] is not None}
    votes, truth = DESIGNS[options["design"]](**sizes, seed=options["seed"])
    by_axis = {"reward": votes.items}
    described = {
        name: dict(zip(by_axis.get(name, votes.annotators), values.tolist(), strict=True)) for name, values in truth.items()
    }
    return _one_vote_a_row(votes, options["seed"]), described


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


def model_of(options: Options, columns: _cli_files.Columns) -> rt.Model:
    """The model that the options describe."""
    if options["position_bias"] and columns.first is None:
        raise SettingError("--position-bias needs to know what was shown first: use --first, --second and --outcome")
    settings = {name: options[name] for name in ("reward_scale", "position_bias")}
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


def read(options: Options, source: Source, **names: Sequence[Any]) -> rt.Comparisons:
    """The votes in the table, with these `names` if they are given; what was read is said on standard error."""
    votes, left_out = _cli_files.read_votes(source.table, source.columns, options["ties"], options["drop_bad_rows"], **names)
    note_source(options, source, left_out)
    return votes


# ---------------------------------------------------------------- parts of the audit


def _next_questions(model, result, votes, found, options: Options) -> tuple[pd.DataFrame, str]:
    """The next questions, none of them to an annotator who is to be dropped."""
    alike = isinstance(model, rt.BTL)
    flagged = set(map(str, found.flagged)) if found is not None else set()
    who = [votes.annotators[0]] if alike else [name for name in votes.annotators if str(name) not in flagged]
    if not who:
        return pd.DataFrame(
            columns=["first", "second", "by", "score", "p_win"]
        ), "Everybody is flagged: there is nobody to ask."
    candidates = rt.Candidates.pairs(votes, annotators=who, seed=options["seed"])
    chosen = rt.suggest(model, result, candidates, target="everything", batch_size=options["batch_size"], seed=options["seed"])
    questions = chosen.to_dataframe().reset_index(drop=True)
    if alike:
        questions["by"] = "anyone"
    possible = votes.num_items * (votes.num_items - 1) // 2 * len(who)
    notes = [f"Chosen from a random {candidates.num_comparisons:,} of {possible:,} questions."] * (
        candidates.num_comparisons < possible
    )
    notes += [f"Nobody flagged is asked ({len(flagged)} left out)."] * bool(flagged)
    return questions, " ".join(notes)


def _write_audit(options: Options, result, dropped, found, summary: dict[str, Any]) -> list[str]:
    """Everything into the folder, or nothing; gives the names of the files."""
    with _cli_files.staged(options["out"]) as folder, collected_warnings():
        result.to_netcdf(folder / "result.nc")
        if dropped is not None:
            dropped.to_netcdf(folder / "result-dropped.nc")
        figures.rewards(result, level=options["level"]).savefig(folder / "rewards.png")
        if found is not None:
            figures.competences(found).savefig(folder / "competences.png")
            figures.auditor(found).savefig(folder / "auditor.png")
        _facts.write_json(summary, folder / "summary.json")
        written = sorted(file.name for file in folder.iterdir())
    remove_stale(options["out"], written)
    return written
