"""The commands ``raters suggest``, ``simulate`` and ``models``."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from raters.acquisition import Policy
from raters.cli import outputs, tables
from raters.cli.asking import pool_of, pool_options, questions
from raters.cli.columns import flag_of, shapes_of
from raters.cli.console import collected_warnings, note, show
from raters.cli.fitting import settings_of, task_of
from raters.cli.settings import backends, chosen, dashed, designs, fields, value_of
from raters.cli.settings import models as models_by_name
from raters.errors import refuse
from raters.kinds import kind_of, registered_kinds
from raters.reporting.facts import as_json


def suggest(given: Namespace) -> None:
    """Choose questions under a fit."""
    outputs.check_table(given)
    with collected_warnings():
        task, (policy,) = task_of(given, Policy())
        pool = pool_of(task.program, **pool_options(given))
        result = task.fit(log_likelihood=False)
        options = {"batch_size": given.batch_size, "seed": given.seed}
        table = questions(task.program, result, pool, policy, **options)
    outputs.write_table(table, given)
    show(table)


# ---------------------------------------------------------------- simulate


def simulate(given: Namespace) -> None:
    """Draw judgements from a known truth, and write them with it."""
    out, seed = given.out, given.seed
    truth_file = tables.companion(out, "-truth.json")
    for path in (out, truth_file):
        outputs.check_writable(path, given)
    tables.table_format(out)
    generator = chosen("design", given.design, designs())
    known = inspect.signature(generator, eval_str=True).parameters
    settings = {}
    for name, text in settings_of(given).items():
        if name not in known or name == "seed":
            refuse("set", name, f"is no setting of {given.design}", f"it has {', '.join(known)}")
        settings[name] = value_of(text, known[name].annotation)
    data, truth = generator(**settings, seed=seed)
    names = {axis: list(names) for axis, names in data.coords.items()}
    text = as_json({"design": given.design, "seed": seed, "names": names, "truth": truth})
    files: dict[str, Callable[[Path], object]] = {
        out.name: partial(tables.write_table, _table(data)),
        truth_file.name: lambda path: path.write_text(text, "utf-8"),
    }
    outputs.write_folder(out.parent, files, given.force)
    many = kind_of(data).words.many
    note([f"wrote {data.num_judgements} {many} to {out}, their truth to {truth_file}"], given.quiet)


def _table(data: Any) -> pd.DataFrame:
    """Judgements one a row, labels with their features before scaling."""
    table = pd.DataFrame(data.to_frame())
    if getattr(data, "feature_names", ()) and kind_of(data).name == "labels":
        raw = (np.asarray(data.features) * data.scale + data.centre)[:, 1:]
        columns = raw[np.asarray(data.item)].T
        table = table.assign(**dict(zip(data.feature_names[1:], columns, strict=True)))
    return table


# ---------------------------------------------------------------- models


def models(given: Namespace) -> None:
    """List kinds with their columns and models, and back-ends; or one of them in full."""
    name, kinds = given.name, {kind.name: kind for kind in registered_kinds()}
    if name is None:
        for kind in kinds.values():
            print(f"{kind.name}: {', '.join(dashed(one.__name__) for one in kind.models)}")
        print(f"back-ends: {', '.join(backends())}")
        print(f"designs of raters simulate: {', '.join(designs())}")
        print("\nraters models NAME lists columns of a kind, settings of anything else.")
    elif name in kinds:
        print(f"{name}; by default {kinds[name].default!r}")
        for shape in shapes_of([kinds[name]], [kinds[name]]):
            roles = shape.roles
            others = [flag_of(one, roles[one]) for one in roles if one not in shape.required]
            print(f"\n{shape.options}\n  also {' '.join(others)}")
    else:
        every: Mapping[str, Any] = {**models_by_name(), **backends(), **designs()}
        owner = chosen("name", name, every)
        print(f"{owner.__name__}: {(owner.__doc__ or '').strip().splitlines()[0]}")
        for one, (annotation, default) in _settings(owner).items():
            kind_name = getattr(annotation, "__name__", str(annotation)).replace("typing.", "")
            print(f"  --set {one}={default}  ({kind_name})")


def _settings(owner: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    """Annotation and default of each field, or of each parameter of a generator."""
    if isinstance(owner, type):
        default = next((k.default for k in registered_kinds() if type(k.default) is owner), owner)
        return fields(default)
    every = inspect.signature(owner, eval_str=True).parameters.values()
    return {one.name: (one.annotation, one.default) for one in every if one.name != "seed"}
