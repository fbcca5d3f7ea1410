"""Questions of a campaign and judgements from before it, as its journal stores them."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from raters.errors import refuse, refuse_data
from raters.errors.validation import is_list
from raters.fitting.fit import check_whole
from raters.judgements.base import Judgements
from raters.judgements.names import match_names, name_list, names_from_json, names_to_json, plural


def seed_of(*numbers: int) -> int:
    """Seed that depends on numbers, such as a campaign's seed and number of questions so far."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0])


Codes = Int[np.ndarray, " name"]


def codes_of(names: Any, known: tuple[Any, ...], role: str, parameter: str = "") -> Codes:
    """Codes of one name or of several, ascending; all codes for None."""
    if names is None:
        return np.arange(len(known))
    parameter = parameter or plural(role)
    some = listed(names if is_list(names) else [names], role, parameter)
    codes = match_names(np.arange(len(some)), some, known, role, parameter)
    return np.unique(np.asarray(codes, np.int64))


def listed(names: Any, role: str, parameter: str = "", ordered: bool = False) -> tuple[Any, ...]:
    """A list of names, at least one."""
    some = tuple(name_list(names, parameter or plural(role), ordered=ordered))
    if not some:
        refuse_data(parameter or plural(role), problem="is empty", expected=f"give a {role}")
    return some


def check_askable(data: Judgements | type[Judgements], name: str) -> None:
    """Raise unless the rows of the data are questions by themselves."""
    if data.answer_scale == "choice":
        problem = f"is no pool: raters does not suggest which {plural(data.row)} to offer next"
        refuse(name, problem=problem, expected="read those of two things as comparisons")


def prepared(pool: Any, data: Any | None) -> tuple[Any, Any]:
    """Questions, each once and without outcomes, and earlier judgements or none, of equal names."""
    check_askable(pool, "pool")
    if data is not None and type(data) is not type(pool):
        problem = f"is {type(data).__name__}, and the pool {type(pool).__name__}"
        refuse_data("data", data, problem, "make the pool from these data")
    pool = _plain_names(pool)
    pool.check()
    if not pool.num_rows or (np.asarray(pool.codes(pool.judge)) < 0).any():
        problem = "is empty, or has questions to nobody"
        refuse_data("pool", problem=problem, expected="make it with `Candidates`")
    if data is None:
        return pool.questions(), answers(pool, np.zeros(0, int), np.zeros(0))
    check_whole(data)
    data = _plain_names(data.unpadded())
    _check_alike(pool, data)
    return pool.asked_of(data).questions(), data


def _plain_names(data: Any) -> Any:
    """Return the data with columns and names as a journal gives them back."""
    fields = dict.fromkeys(data.names.values())
    plain = {name: names_from_json(names_to_json(getattr(data, name))) for name in fields}
    return dataclasses.replace(data, **data.packed(), **plain)


def _check_alike(pool: Judgements, data: Judgements) -> None:
    """Raise unless names and flags beside the questions are equal."""
    # The classes of known truths are those of the answers, which are not recoded.
    of_truth = None if pool.known is None else pool.axes[pool.known]
    asked = {pool.names[axis] for axis in pool.question_axes() if axis != of_truth}
    per_unit = {pool.names.get(axes[-1]) for axes in pool.arrays().values() if axes[0] == "unit"}
    for name in set(pool.statics()) - asked - per_unit - {"even"}:
        of_data, of_pool = getattr(data, name), getattr(pool, name)
        if of_data != of_pool:
            problem = f"has the {name} {of_data!r}, and the pool {of_pool!r}"
            refuse_data("data", problem=problem, expected="make the pool from these data")


def answers(pool: Any, rows: Int[np.ndarray, " row"], values: Float[np.ndarray, " row"]) -> Any:
    """Return answers to the questions in some rows of the pool, in any order."""
    nothing = pool.rows(np.zeros(0, int)).unanswered().answered(np.zeros(0))
    return nothing.joined(pool.rows(rows).unanswered().answered(values)) if len(rows) else nothing


def digest(data: Judgements) -> str:
    """Text that tells data from others: the number of rows, and a checksum of the arrays."""
    digest = hashlib.sha256()
    for name, array in sorted(data.packed().items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    rows = f"{data.num_rows} {'rows' if data.has_answers else 'questions'}"
    return f"{rows} ({digest.hexdigest()[:12]})"
