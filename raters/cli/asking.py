"""Questions to ask next, of any kind of judgement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

import raters as rt
from raters.acquisition import Candidates, Policy
from raters.cli.generated import keywords
from raters.errors import DataError, SettingError
from raters.judgements.base import Judgements
from raters.judgements.names import name_text
from raters.kinds import kind_of
from raters.model import Model
from raters.program import Program

# Candidates of so many rows are a sample, as `raters.Candidates` makes them.
_SAMPLE = 1_000_000


def judges_apart(program: Program[Any]) -> bool:
    """True if it matters who is asked: some parameter, or the latent class, is each judge's own."""
    judge = program.data.judge
    return judge in program.axes or program.unit == judge


def question_options(data: Judgements | type[Judgements]) -> dict[str, Any]:
    """Keyword parameters of the function that lists the questions of a kind."""
    questions = kind_of(data).questions
    return dict(keywords(questions)) if questions else {"again": None, "limit": None, "seed": None}


def candidates(
    data: Judgements,
    names: Mapping[str, Sequence[Any]],
    *,
    again: bool | None = None,
    size: int | None = None,
    seed: int = 0,
) -> Judgements:
    """Everything that can be asked, about the given names only."""
    accepted = question_options(data)
    given: dict[str, Any] = {} if again is None else {"again": again}
    if again is not None and "again" not in accepted:
        words = kind_of(data).words.many
        raise SettingError(
            f"--again has no meaning for {words}, which may always be asked for again; leave it out"
        )
    if size is not None and "size" not in accepted:
        words = kind_of(data).words.many
        raise SettingError(f"--size is for rankings, and these are {words}; leave it out")
    if size is not None:
        given["size"] = size
    if "seed" in accepted:
        given["seed"] = seed
    about = {data.names[axis]: list(some) for axis, some in names.items()}
    pool: Judgements = Candidates.of(data, **given, **about)
    if not pool.num_rows:
        raise DataError("there is no such question that is not answered yet")
    return pool


def own_names(names: Sequence[Any], known: Sequence[Any]) -> list[Any]:
    """Names as the data have them, as a number or as text; unknown ones as they are."""
    by_text = {name_text(name): name for name in known}
    return [by_text.get(name_text(name), name) for name in names]


def suggested(
    model: Model[Any], result: xr.DataTree, pool: Judgements, policy: Policy, **settings: Any
) -> pd.DataFrame:
    """The most informative questions, one a row."""
    chosen = rt.suggest(model, result, pool, policy=policy, **settings)
    return chosen.to_dataframe().reset_index(drop=True)


def questions(
    program: Program[Any],
    result: xr.DataTree,
    names: Mapping[str, Sequence[Any]],
    policy: Policy,
    *,
    again: bool | None = None,
    size: int | None = None,
    **settings: Any,
) -> pd.DataFrame:
    """The most informative questions under a fit; where judges are alike they are for anyone."""
    data, names = program.data, dict(names)
    anyone = not judges_apart(program) and data.judge not in names
    if anyone:
        names[data.judge] = [data.judges[0]]
        again = True if "again" in question_options(data) else again
    pool = candidates(data, names, again=again, size=size, seed=settings["seed"])
    table = suggested(program.model, result, pool, policy, **settings)
    table.attrs["candidates"] = pool.num_rows
    if anyone:
        table["by"] = "anyone"
    return table


def next_questions(
    program: Program[Any], result: xr.DataTree, flagged: Sequence[Any], batch_size: int, seed: int
) -> tuple[pd.DataFrame, str]:
    """The next questions, none of them to a judge who is to be dropped, and a note on them."""
    data, out = program.data, set(map(str, flagged))
    who = [name for name in data.judges if str(name) not in out]
    nothing = pd.DataFrame(columns=[*data.question_names(), "score"])
    if not who:
        return nothing, "Everybody is flagged: there is nobody to ask."
    if data.together:
        return nothing, f"What to ask next is not suggested for {kind_of(data).words.many}."
    try:
        table = questions(
            program,
            result,
            {data.judge: who} if out else {},
            Policy(target="everything"),
            batch_size=batch_size,
            seed=seed,
        )
    except DataError:
        return nothing, (
            "Everybody (but those flagged) has answered every question: there is nothing new to"
            " ask."
        )
    notes = [f"Chosen from a random {_SAMPLE:,} of all questions."] * (
        table.attrs["candidates"] == _SAMPLE
    )
    notes += [f"Nobody flagged is asked ({len(out)} left out)."] * bool(out)
    return table, " ".join(notes)
