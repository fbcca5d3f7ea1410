"""Graded responses: who answered which item on which level of a scale, as integer codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from raters.judgements.answers import OnScale
from raters.judgements.roles import number_of, same_as, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GradedResponses(OnScale):
    """Responses of persons to items on one ordered scale, such as a questionnaire's "no",
    "perhaps", "yes", or marks from 0 to 5.

    Responses that are right or wrong are `Responses`. Build it with `from_frame` or `from_wide`;
    the constructor takes codes that are already right.

    Parameters
    ----------
    person, item : int array, shape (row,)
        Codes of who answered, and of what was asked.
    response : int array, shape (row,), or None
        Level of each row, 0 for the lowest. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (row,), or None
        Number of equal responses that a row stands for. None means one in each.
    persons, items : tuple
        The names, in code order.
    levels : tuple
        The levels, the lowest first.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.GradedResponses.from_wide(
    ...     {"who": ["ann", "bob"], "calm": ["no", "yes"], "kind": ["perhaps", "yes"]},
    ...     person="who", levels=["no", "perhaps", "yes"])
    >>> responses.num_persons, responses.num_items, responses.num_levels
    (2, 2, 3)
    """

    person: Any
    item: Any
    response: Any
    count: Any
    persons: tuple[Any, ...] = static()
    items: tuple[Any, ...] = static()
    levels: tuple[Any, ...] = static()

    axes = {"person": "person", "item": "item", "response": "level"}
    names = {"person": "persons", "item": "items", "level": "levels"}
    answer = "response"
    judge = "person"

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        person: str,
        item: str,
        response: str,
        count: str | None = None,
        levels: Iterable[Any] | None = None,
        persons: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> GradedResponses:
        """Read graded responses from a table with one row for each.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person, item : str
            Columns that name who answered, and what was asked.
        response : str
            Column with the level of each response.
        count : str, optional
            Column with the number of equal responses that a row stands for.
        levels : iterable, optional
            All levels of the scale, the lowest first; needed where responses are no numbers.
            Without it, the different numbers in the column, ascending.
        persons, items : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (person, item, response) rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; a response is none of `levels`,
            or no number without them; there are fewer than 2 levels, or more than 20; a count is
            not a whole number.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.GradedResponses.from_frame(
        ...     {"who": ["ann", "bob"], "task": ["essay", "essay"], "mark": [3, 5]},
        ...     person="who", item="task", response="mark", levels=range(6))
        >>> responses.response.tolist()
        [3, 5]
        """
        roles = {"person": person, "item": item, "response": response, "count": count}
        known = {"person": persons, "item": items, "level": levels}
        return cls._from_frame(frame, roles, known, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        person: str,
        columns: Sequence[str] | None = None,
        levels: Iterable[Any] | None = None,
        persons: Iterable[Any] | None = None,
    ) -> GradedResponses:
        """Read graded responses from a table with one row for each person and one column for each
        item.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person : str
            Column that names who answered.
        columns : sequence of str, optional
            Columns of the items, or patterns such as ``item*``; in Python all columns but that of
            the persons unless given. Cells are empty where the person was not asked.
        levels : iterable, optional
            All levels of the scale, the lowest first: see `from_frame`.
        persons : iterable, optional
            All names in the order wanted.

        Returns
        -------
        GradedResponses
            The items are named by their columns, in the order of the table.

        Raises
        ------
        DataError
            When a column is missing, all cells are empty, or a response is none of `levels`, or no
            number without them.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.GradedResponses.from_wide(
        ...     {"pupil": ["ann", "bob"], "essay": [3, 5], "oral": [4, None]}, person="pupil")
        >>> responses.num_responses, responses.levels
        (3, (3, 4, 5))
        """
        known = {"person": persons, "level": levels}
        return cls._from_wide(frame, "person", person, columns, known)

    num_persons = number_of("persons", "Number of persons, with responses or without.")
    num_responses = same_as("num_judgements", "Number of responses, counts included.")
