"""The commands on tables of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import raters as rt
from raters import _cli_files, _cli_label_report, _cli_report, _facts, datasets, figures, label_figures
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
from raters._label_audit import item_labels
from raters.errors import DataError, SettingError

_MODELS: dict[str, type[rt.Model]] = {
    "dawid-skene": rt.DawidSkene,
    "one-coin": rt.OneCoin,
    "hierarchical-dawid-skene": rt.HierarchicalDawidSkene,
    "item-difficulty": rt.ItemDifficulty,
    "raykar": rt.Raykar,
    "yan": rt.Yan,
    "pooled": rt.Pooled,
    "majority-vote": rt.MajorityVote,
}
_WITH_FEATURES = (rt.Raykar, rt.Yan)
_ALIKE = (rt.Pooled, rt.MajorityVote)


def audit(options: Options, source: Source, command: str) -> None:
    """Fit, label the items, judge, suggest; write everything, then print it."""
    model, fitting, decision = model_of(options, source.columns), backend(options), costs(options)
    for name in ("drop", "report"):
        if options[name] and isinstance(model, _ALIKE):
            raise SettingError(
                f"--{name} needs annotators told apart, which --model {options['model']} does not; write --model dawid-skene"
            )
    _cli_files.check_writable(options["out"], folder=True)
    with collected_warnings() as cautions:
        labels = read(options, source)
        agreement, silence = _facts.agreement_or_why_not(labels, options["level"])
        result = rt.fit(model, labels, fitting, seed=options["seed"], progress=bars(options))
        items = item_labels(result, labels)
        found, dropped, change = None, None, None
        if not isinstance(model, _ALIKE):
            limits = {name: options[name] for name in ("threshold", "level", "min_votes")}
            found = rt.audit(model, result, **limits, costs=decision)
        if found is not None and options["drop"]:
            dropped = refit(model, labels, found, fitting, options)
        if dropped is not None:
            change = _change(items, item_labels(dropped, rt.Labels.from_result(dropped)))
        asked, remark = _next_questions(model, result, labels, found, options)
    pages = reports(options, model, result, found, asked, remark, command)
    summary = _facts_of(options, model, labels, result) | {
        "items": _facts.items_frame(items),
        "expected_wrong": float((1 - items["probability"]).sum()),
        "audit": None if found is None else _facts.audit_summary(found),
        "agreement": None if agreement is None else agreement.reset_index(names="statistic"),
        "agreement_note": silence,
        "without_flagged": change,
        "suggestions": asked,
        "suggestions_note": remark,
        "warnings": cautions,
    }
    written = _write(options, result, dropped, found, items, summary)
    _print(options, summary, items, found, agreement)
    note(options, " and ".join([f"wrote {', '.join(written)} to {options['out']}", *write_reports(pages)]))


def _print(options: Options, summary: dict[str, Any], items: xr.Dataset, found: rt.Audit | None, agreement) -> None:
    out = _cli_report.Output()
    _cli_label_report.print_items(out, items, summary["data"]["known_truths"], options["rows"])
    if found is None:
        text = f"No audit of annotators: --model {options['model']} takes them all as alike; use --model dawid-skene.\n"
        out.print(text, highlight=False)
    else:
        _cli_label_report.print_audit(out, found, options["level"], options["threshold"], options["rows"])
        if summary["without_flagged"] is not None:
            _cli_label_report.print_change(out, summary["without_flagged"], items.sizes["item"], len(found.flagged))
    _cli_label_report.print_agreement(out, agreement, summary["agreement_note"], options["level"])
    _cli_label_report.print_questions(out, summary["suggestions"], summary["suggestions_note"])


def questions(options: Options, model: rt.Model, result: xr.DataTree, labels: rt.Labels) -> pd.DataFrame:
    """The most informative questions under a saved result."""
    alike = isinstance(model, _ALIKE)
    who = options["annotator"] or ([labels.annotators[0]] if alike else None)
    again = options["again"] or alike
    candidates = rt.Candidates.labels(labels, items=options["item"] or None, annotators=who, again=again, seed=options["seed"])
    settings = {name: options[name] for name in ("batch_size", "draws", "seed")}
    policy = rt.Policy(target=options["target"], k=options["k"])
    found = rt.suggest(model, result, candidates, policy=policy, **settings).to_dataframe().reset_index(drop=True)
    if alike and not options["annotator"]:
        found["by"] = "anyone"
    return found


def simulated(options: Options) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Labels as a table, with features if asked for, and their truth by name."""
    if options["votes"] is not None:
        raise SettingError("--votes has no meaning for --design label-crowd; write --items and --labels-per-item")
    given = {name: options[name] for name in ("labels_per_item",) if options[name] is not None}
    given |= {
        f"num_{name}": options[name] for name in ("items", "annotators", "classes", "features") if options[name] is not None
    }
    labels, truth = datasets.label_crowd(**given, seed=options["seed"])
    table = labels.to_frame().drop(columns="count")
    if labels.features is not None:
        raw = (np.asarray(labels.features) * labels.scale + labels.centre)[:, 1:]
        table = table.assign(**dict(zip(labels.feature_names[1:], raw[np.asarray(labels.item)].T, strict=True)))
    axes = {"true_class": labels.items, "prevalence": labels.classes}
    described = {
        name: dict(zip(axes.get(name, labels.annotators), values.tolist(), strict=True)) for name, values in truth.items()
    }
    return table, described


# ---------------------------------------------------------------- from options to objects


def model_of(options: Options, columns: _cli_files.Columns) -> rt.Model:
    """The model that the options describe."""
    kind, features = _MODELS[options["model"]], options["feature"]
    if issubclass(kind, _WITH_FEATURES) and not features:
        raise SettingError(f"--model {options['model']} learns from features of the items; name their columns with --feature")
    if features and not issubclass(kind, _WITH_FEATURES):
        raise SettingError(f"--feature is of no use to --model {options['model']}; write --model raykar or --model yan")
    return kind()


def read(options: Options, source: Source, **names: Sequence[Any]) -> rt.Labels:
    """The labels in the table, with these `names` if they are given; what was read is said on standard error."""
    settings = {name: options[name] for name in ("truth", "classes", "repeats", "drop_bad_rows")} | names
    labels, left_out = _cli_files.read_labels(source.table, source.columns, features=options["feature"], **settings)
    note_source(options, source, left_out)
    return labels


# ---------------------------------------------------------------- parts of the audit


def _next_questions(model, result, labels: rt.Labels, found, options: Options) -> tuple[pd.DataFrame, str]:
    """The next questions, none of them to an annotator who is to be dropped."""
    nothing = pd.DataFrame(columns=["item", "by", "score", "label", "p_label"])
    flagged = set(map(str, found.flagged)) if found is not None else set()
    who = [name for name in labels.annotators if str(name) not in flagged]
    if not who:
        return nothing, "Everybody is flagged: there is nobody to ask."
    settings = {
        "annotator": who if flagged else None,
        "item": None,
        "again": False,
        "draws": 200,
        "target": "everything",
        "k": 1,
    }
    try:
        chosen = questions(dict(options) | settings, model, result, labels)
    except DataError:
        return nothing, "Every annotator (but those flagged) has labelled every item: there is nothing new to ask."
    return chosen, f"Nobody flagged is asked ({len(flagged)} left out)." if flagged else ""


def _facts_of(options: Options, model: rt.Model, labels: rt.Labels, result: xr.DataTree) -> dict[str, Any]:
    """What a summary says of the fit."""
    return {
        "settings": dict(options),
        "model": repr(model),
        "data": _facts.data_facts(labels),
        "versions": _facts.versions(),
        "fit": _facts.fit_facts(result),
    }


def _change(before: xr.Dataset, after: xr.Dataset) -> dict[str, Any]:
    """The items whose label is another one without the flagged annotators."""
    moved = np.flatnonzero(before["label"].values != after["label"].values)
    names, old, new = (
        values[moved].tolist() for values in (before["item"].values, before["label"].values, after["label"].values)
    )
    moves = [dict(zip(("item", "label", "new_label"), row, strict=True)) for row in zip(names, old, new, strict=True)]
    return {"changed": len(moved), "expected_wrong": float((1 - after["probability"]).sum()), "items": moves}


def _write(options: Options, result, dropped, found, items: xr.Dataset, summary: dict[str, Any]) -> list[str]:
    """Everything into the folder, or nothing; gives the names of the files."""
    with _cli_files.staged(options["out"]) as folder, collected_warnings():
        result.to_netcdf(folder / "result.nc")
        if dropped is not None:
            dropped.to_netcdf(folder / "result-dropped.nc")
        _cli_files.write_table(summary["items"], folder / "items.csv")
        label_figures.certainty(items).savefig(folder / "certainty.png")
        if found is not None:
            _cli_files.write_table(found.confusion.to_dataframe().reset_index(), folder / "confusion.csv")
            label_figures.confusions(found).savefig(folder / "confusions.png")
            figures.competences(found).savefig(folder / "competences.png")
            figures.auditor(found).savefig(folder / "auditor.png")
        _facts.write_json(summary, folder / "summary.json")
        written = sorted(file.name for file in folder.iterdir())
    remove_stale(options["out"], written, also=["confusion.csv"])
    return written
