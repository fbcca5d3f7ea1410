"""The commands ``raters suggest``, ``simulate`` and ``models``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from raters.acquisition import Policy
from raters.cli import outputs, tables
from raters.cli.asking import pool_of, questions
from raters.cli.columns import Shape, flag_of, shapes_of
from raters.cli.console import collected_warnings, note, show
from raters.cli.fitting import Typed, task_of
from raters.cli.settings import backends, chosen, dashed, designs, fields, models, pairs, value_of
from raters.errors import refuse
from raters.kinds import kind_of, registered_kinds
from raters.reporting.facts import as_json

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


def suggest(
    typed: Typed,
    policy: Policy,
    only: Sequence[str],
    batch_size: int,
    again: bool | None,
    size: int | None,
    out: Path | None,
    force: bool,
) -> None:
    """Choose questions under a fit."""
    if out is not None:
        tables.table_format(out)
        outputs.check_writable(out, force=force, inputs=[typed.file])
    names: dict[str, list[str]] = {}
    for text in only:
        for axis, name in pairs([text], "only", "annotator=ann").items():
            names.setdefault(axis, []).append(name)
    with collected_warnings():
        task = task_of(typed)
        pool = pool_of(task.program, names, typed.seed, again=again, size=size)
        result = task.fit(log_likelihood=False)
        table = questions(
            task.program, result, pool, policy, batch_size=batch_size, seed=typed.seed
        )
    if out is not None:
        outputs.write_file(out, partial(tables.write_for_people, table), force=force)
        note([f"wrote {len(table)} question(s) to {out}"], typed.quiet)
    show(table)


# ---------------------------------------------------------------- simulate


def simulate(
    out: Path, design: str, settings: Sequence[str], seed: int, quiet: bool, force: bool
) -> None:
    """Draw judgements from a known truth, and write them with it."""
    tables.table_format(out)
    truth_file = tables.companion(out, "-truth.json")
    for path in (out, truth_file):
        outputs.check_writable(path, force=force)
    generator = chosen("design", design, designs())
    known = inspect.signature(generator, eval_str=True).parameters
    given = {}
    for name, text in pairs(settings, "set").items():
        if name not in known or name == "seed":
            refuse("set", name, f"is no setting of {design}", f"it has {', '.join(known)}")
        given[name] = value_of(text, known[name].annotation)
    data, truth = generator(**given, seed=seed)
    names = {
        name: dict(zip(data.coords[_AXES.get(name, data.judge)], values.tolist(), strict=True))
        for name, values in truth.items()
    }

    def write(folder: Path) -> None:
        tables.write_table(_table(data, seed), folder / out.name)
        text = as_json({"design": design, "seed": seed} | names)
        (folder / truth_file.name).write_text(text, "utf-8")

    outputs.write_folder(out.parent, write, force=force, whole=False)
    many = kind_of(data).words.many
    note([f"wrote {data.num_judgements} {many} to {out}, their truth to {truth_file}"], quiet)


def _table(data: Any, seed: int) -> pd.DataFrame:
    """Judgements one a row: votes in random order, labels with their features before scaling."""
    table = pd.DataFrame(data.to_frame())
    if kind_of(data).name == "comparisons":
        return _votes(data, seed)
    table = table.drop(columns="count", errors="ignore")
    if getattr(data, "feature_names", ()) and kind_of(data).name == "labels":
        raw = (np.asarray(data.features) * data.scale + data.centre)[:, 1:]
        columns = raw[np.asarray(data.item)].T
        table = table.assign(**dict(zip(data.feature_names[1:], columns, strict=True)))
    return table


def _votes(votes: Any, seed: int) -> pd.DataFrame:
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


# ---------------------------------------------------------------- models


def list_models(name: str | None) -> None:
    """List kinds with their columns and models, and back-ends; or one of them in full."""
    kinds = {kind.name: kind for kind in registered_kinds()}
    if name is None:
        for kind in kinds.values():
            print(f"{kind.name}: {', '.join(dashed(one.__name__) for one in kind.models)}")
        print(f"back-ends: {', '.join(backends())}")
        print(f"designs of raters simulate: {', '.join(designs())}")
        print("\nraters models NAME lists columns of a kind, settings of anything else.")
    elif name in kinds:
        print(f"{name}; by default {kinds[name].default!r}")
        for shape in shapes_of([kinds[name]], [kinds[name]]):
            _print_shape(shape)
    else:
        every: Mapping[str, Any] = {**models(), **backends(), **designs()}
        _print_settings(chosen("name", name, every))


def _print_shape(shape: Shape) -> None:
    """Columns and settings of one way of reading a table, those that it needs first."""
    roles, needed = shape.roles, shape.required
    print(f"\n{' '.join(flag_of(name, roles[name]) + ' COLUMN' for name in needed)}")
    others = [flag_of(name, role) for name, role in roles.items() if name not in needed]
    print(f"  also {' '.join(others)}")


def _print_settings(owner: Any) -> None:
    """The first line of its documentation, and each setting with its default."""
    print(f"{owner.__name__}: {(owner.__doc__ or '').strip().splitlines()[0]}")
    for name, (annotation, default) in _settings(owner).items():
        kind = getattr(annotation, "__name__", str(annotation))
        print(f"  --set {name}={default}  ({kind.replace('typing.', '')})")


def _settings(owner: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Annotation and default of each field, or of each parameter of a generator."""
    if isinstance(owner, type):
        default = next((k.default for k in registered_kinds() if type(k.default) is owner), owner)
        return fields(default)
    every = inspect.signature(owner, eval_str=True).parameters.values()
    return {one.name: (one.annotation, one.default) for one in every if one.name != "seed"}
