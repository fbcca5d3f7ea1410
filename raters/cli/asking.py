"""Questions to ask next, of any kind of judgement."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import xarray as xr

import raters as rt
from raters.acquisition import Candidates, Policy
from raters.errors import DataError
from raters.judgements.base import Judgements
from raters.judgements.names import name_text
from raters.kinds import kind_of
from raters.program import Program


def known_names(names: Iterable[Any], known: Iterable[Any]) -> list[Any]:
    """Names as the data have them, as a number or as text; unknown ones as they are."""
    by_text = {name_text(name): name for name in known}
    return [by_text.get(name_text(name), name) for name in names]


def pool_options(given: Namespace) -> dict[str, Any]:
    """Options of the questions that were given."""
    options = {"size": given.size, "again": given.again or None}
    return {name: value for name, value in options.items() if value is not None}


def pool_of(program: Program[Any], judges: Sequence[Any] = (), **options: Any) -> Judgements:
    """Questions to these judges, or to all; where judges are alike, one stands for anyone."""
    data = program.data
    if _judges_alike(program):
        judges = judges or data.judges[:1]
        every = kind_of(data).questions
        if every is None or "again" in inspect.signature(every).parameters:
            options["again"] = True
    if judges:
        options[data.names[data.judge]] = list(judges)
    pool: Judgements = Candidates.of(data, **options)
    return pool


def _judges_alike(program: Program[Any]) -> bool:
    """True if it does not matter who is asked."""
    return program.data.judge not in (*program.axes, program.unit)


def questions(
    program: Program[Any], result: xr.DataTree, pool: Judgements, policy: Policy, **options: Any
) -> pd.DataFrame:
    """The most informative questions of a pool under a fit."""
    chosen = rt.suggest(program.model, result, pool, policy=policy, **options)
    table = chosen.to_dataframe().reset_index(drop=True)
    return table.assign(by="anyone") if _judges_alike(program) else table


def next_questions(
    program: Program[Any], result: xr.DataTree, flagged: Sequence[Any], seed: int
) -> tuple[pd.DataFrame | None, str]:
    """The next questions, none of them to a judge who is to be dropped, or why there are none."""
    data, out = program.data, set(map(str, flagged))
    who = [name for name in data.judges if str(name) not in out]
    if not who or data.together:
        return None, "" if who else "Everybody is flagged: there is nobody to ask."
    try:
        pool = pool_of(program, who if out else ())
    except DataError:
        return None, "Everybody who stays has answered every question."
    return questions(program, result, pool, Policy(target="everything"), seed=seed), ""
