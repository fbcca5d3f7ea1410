"""Questions to ask next, of any kind of judgement."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

import raters as rt
from raters.acquisition import Candidates, Policy
from raters.errors import DataError, refuse
from raters.judgements.base import Judgements
from raters.judgements.names import name_text
from raters.kinds import kind_of
from raters.program import Program


def own_names(names: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """Names as the data have them, as a number or as text; unknown ones as they are."""
    by_text = {name_text(name): name for name in known}
    return [by_text.get(name_text(name), name) for name in names]


def candidates(
    data: Judgements, names: Mapping[str, Sequence[Any]], seed: int, **options: Any
) -> Judgements:
    """Everything that can be asked about the given names, by their axes."""
    kind, known = kind_of(data), _options(data)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in known:
            refuse(name, given[name], f"has no meaning for {kind.words.many}", "leave it out")
    about = {data.names[axis]: own_names(some, data.coords[axis]) for axis, some in names.items()}
    pool: Judgements = Candidates.of(
        data, **given, **({"seed": seed} if "seed" in known else {}), **about
    )
    if not pool.num_rows:
        raise DataError("there is no such question that is not answered yet")
    return pool


def _options(data: Judgements) -> Iterable[str]:
    """Options of the function that lists the questions of a kind."""
    every = kind_of(data).questions
    return inspect.signature(every).parameters if every else ("again", "seed")


def pool_of(
    program: Program[Any], names: Mapping[str, Sequence[Any]], seed: int, **options: Any
) -> Judgements:
    """Questions to choose from; where judges are alike, one of them stands for anyone."""
    data, judge = program.data, program.data.judge
    for axis in names:
        if axis not in data.question_axes():
            axes = ", ".join(data.question_axes())
            refuse("only", axis, "is no part of a question", f"choose one of {axes}")
    if _judges_alike(program) and judge not in names:
        names = {**names, judge: [data.judges[0]]}
        options["again"] = True if "again" in _options(data) else options.get("again")
    return candidates(data, names, seed, **options)


def _judges_alike(program: Program[Any]) -> bool:
    """True if it does not matter who is asked."""
    return program.data.judge not in (*program.axes, program.unit)


def questions(
    program: Program[Any],
    result: xr.DataTree,
    pool: Judgements,
    policy: Policy,
    *,
    batch_size: int,
    seed: int,
) -> pd.DataFrame:
    """The most informative questions of a pool under a fit."""
    chosen = rt.suggest(
        program.model, result, pool, policy=policy, batch_size=batch_size, seed=seed
    )
    table = chosen.to_dataframe().reset_index(drop=True)
    return table.assign(by="anyone") if _judges_alike(program) else table


def next_questions(
    program: Program[Any], result: xr.DataTree, flagged: Sequence[Any], batch_size: int, seed: int
) -> tuple[pd.DataFrame | None, str]:
    """The next questions, none of them to a judge who is to be dropped, or why there are none."""
    data, out = program.data, set(map(str, flagged))
    who = [name for name in data.judges if str(name) not in out]
    if not who or data.together:
        return None, "" if who else "Everybody is flagged: there is nobody to ask."
    try:
        pool = pool_of(program, {data.judge: who} if out else {}, seed)
    except DataError:
        return None, "Everybody who stays has answered every question."
    policy = Policy(target="everything")
    return questions(program, result, pool, policy, batch_size=batch_size, seed=seed), ""
