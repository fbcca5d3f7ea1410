"""The command ``raters simulate``: judgements drawn from a known truth."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from raters import datasets
from raters.cli import outputs, tables
from raters.cli.generated import GeneratedOption, Meaning, _spelled, dashed, parameter_docs
from raters.cli.options import note
from raters.errors import SettingError
from raters.judgements.base import Judgements
from raters.kinds import kind_of
from raters.reporting import facts

# Axes of truths that are not of the judges.
_AXES = {
    "reward": "item",
    "worth": "item",
    "difficulty": "item",
    "discrimination": "item",
    "true_class": "item",
    "prevalence": "true_class",
    "coefficient": "feature",
    "constant": "alternative",
}


class Design(NamedTuple):
    """A generator of judgements, the table that its judgements are written as, and what a reader of
    that needs to know."""

    generator: Callable[..., Any]
    table_of: Callable[[Any, int], pd.DataFrame]
    hint: str = ""


def design_options() -> tuple[GeneratedOption, ...]:
    """Options from the parameters of the generators."""
    by_name: dict[str, list[Meaning]] = {}
    for name, (generator, *_) in DESIGNS.items():
        docs = parameter_docs(generator)
        for one in inspect.signature(generator, eval_str=True).parameters.values():
            if one.name != "seed":
                text = docs.get(one.name) or _spelled(one.name)
                meaning = Meaning(name, one.annotation, one.default, text)
                by_name.setdefault(one.name, []).append(meaning)
    return tuple(
        GeneratedOption(
            name, name, f"--{dashed(name.removeprefix('num_'))}", "Design", tuple(every)
        )
        for name, every in by_name.items()
    )


def simulate(
    out: Path, design: str, given: Mapping[str, Any], seed: int, quiet: bool, force: bool
) -> None:
    """Draw judgements and write them with their truth."""
    tables.table_format(out)
    truth_file = tables.companion(out, "-truth.json")
    for path in (out, truth_file):
        outputs.check_writable(path, folder=False, force=force, of=out.name)
    generator, table_of, hint = DESIGNS[design]
    for option in design_options():
        if option.name in given and option.name not in inspect.signature(generator).parameters:
            raise SettingError(
                f"{option.flag} belongs to --design {', '.join(option.owners)}, and this is"
                f" --design {design}; leave it out"
            )
    with outputs.if_interrupted(outputs.NOTHING):
        data, truth = generator(**given, seed=seed)
    kind = kind_of(data)
    table = table_of(data, seed)
    described = {"design": design, "seed": seed} | _named(truth, data)

    def write(folder: Path) -> None:
        tables.write_table(table, folder / out.name)
        facts.write_json(described, folder / truth_file.name)

    outputs.write_folder(out.parent, write, force=force, whole=False, of=out.name)
    text = f"wrote {data.num_judgements} {kind.words.many} to {out} and their truth to {truth_file}"
    note(text + hint, quiet=quiet)


def _named(truth: Mapping[str, np.ndarray], data: Judgements) -> dict[str, Any]:
    """The truth by the names of items, classes and judges."""
    return {
        name: dict(zip(data.coords[_AXES.get(name, data.judge)], values.tolist(), strict=True))
        for name, values in truth.items()
    }


def votes_table(votes: Any, seed: int) -> pd.DataFrame:
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


def label_table(labels: Any, seed: int) -> pd.DataFrame:
    """Labels one a row, with the features of the items as they were before scaling."""
    table = labels.to_frame().drop(columns="count")
    if labels.features is None:
        return pd.DataFrame(table)
    raw = (np.asarray(labels.features) * labels.scale + labels.centre)[:, 1:]
    columns = raw[np.asarray(labels.item)].T
    return pd.DataFrame(table.assign(**dict(zip(labels.feature_names[1:], columns, strict=True))))


def plain_table(data: Any, seed: int) -> pd.DataFrame:
    """Judgements as their container writes them, without the counts, which are 1."""
    return pd.DataFrame(data.to_frame().drop(columns="count", errors="ignore"))


_VOTES: tuple[Callable[..., Any], ...] = (
    datasets.paper,
    datasets.separated,
    datasets.crowd,
    datasets.position_biased,
)
DESIGNS = {dashed(generator.__name__): Design(generator, votes_table) for generator in _VOTES}
DESIGNS["label-crowd"] = Design(datasets.label_crowd, label_table)
DESIGNS["rating-crowd"] = Design(datasets.rating_crowd, plain_table)
DESIGNS["ranking-crowd"] = Design(
    datasets.ranking_crowd, plain_table, '; read them with --unranked "not offered"'
)
DESIGNS["choice-crowd"] = Design(datasets.choice_crowd, plain_table)
DESIGNS["response-crowd"] = Design(datasets.response_crowd, plain_table)
