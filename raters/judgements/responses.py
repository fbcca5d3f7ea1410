"""Item responses: who answered which item right, as integer codes with the names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from raters.judgements.answers import Answers
from raters.judgements.roles import number_of, same_as, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Responses(Answers):
    """Responses of persons to items, each right or wrong.

    A person is whoever answers: a pupil, a respondent, a language model. What a person was not
    asked has no row. Build it with `from_frame` or `from_wide`; the constructor takes codes that
    are already right.

    Parameters
    ----------
    person, item : int array, shape (response,)
        Codes of who answered, and of what was asked.
    correct : float array, shape (response,), or None
        Right responses: between 0 and `count`. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (response,), or None
        Responses in the row: how often the person answered this item. None means one in each.
    persons, items : tuple
        The names, in code order.

    Examples
    --------
    >>> import raters as rt
    >>> responses = rt.Responses.from_frame(
    ...     {"who": ["ann", "ann", "bob"], "question": [1, 2, 1], "right": [1, 0, 1]},
    ...     person="who", item="question", correct="right")
    >>> responses.num_persons, responses.num_items, responses.num_responses
    (2, 2, 3)
    """

    person: Any
    item: Any
    correct: Any
    count: Any
    persons: tuple[Any, ...] = static()
    items: tuple[Any, ...] = static()

    axes = {"person": "person", "item": "item"}
    names = {"person": "persons", "item": "items"}
    answer = "correct"
    row = "response"
    judge = "person"
    answer_scale = "binary"
    success = ("p_correct", 1.0)
    table_words = {1.0: 1, 0.0: 0}

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        person: str,
        item: str,
        correct: str,
        count: str | None = None,
        persons: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Responses:
        """Read responses from a table with one row for each.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person, item : str
            Columns that name who answered, and what was asked.
        correct : str
            Column with 1 or True for a right response, and 0 or False for a wrong one.
        count : str, optional
            Column with the number of equal responses that a row stands for.
        persons, items : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (person, item) rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; a response is neither right nor
            wrong; a count is not a whole number.

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise; spaces and case
        tell names apart.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.Responses.from_frame(
        ...     {"who": ["ann", "bob"], "question": ["q1", "q1"], "right": [True, False]},
        ...     person="who", item="question", correct="right")
        >>> responses.correct.tolist()
        [1.0, 0.0]
        """
        roles = {"person": person, "item": item, "correct": correct, "count": count}
        return cls._from_frame(frame, roles, {"person": persons, "item": items}, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        person: str,
        columns: Sequence[str] | None = None,
        persons: Iterable[Any] | None = None,
    ) -> Responses:
        """Read responses from a table with one row for each person and one column for each item.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        person : str
            Column that names who answered, such as the models of a benchmark.
        columns : sequence of str, optional
            Columns of the items, or patterns such as ``item*``; in Python all columns but that of
            the persons unless given. They hold 1 or True for a right response, 0 or False for a
            wrong one, and are empty where the person was not asked.
        persons : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Responses
            The items are named by their columns, in the order of the table.

        Raises
        ------
        DataError
            When a column is missing, a cell holds anything else, or all cells are empty.

        Examples
        --------
        >>> import raters as rt
        >>> responses = rt.Responses.from_wide(
        ...     {"model": ["small", "large"], "q1": [0, 1], "q2": [1, None]}, person="model")
        >>> responses.num_responses, responses.items
        (3, ('q1', 'q2'))
        """
        return cls._from_wide(frame, "person", person, columns, {"person": persons})

    # ---------------------------------------------------------------- facts

    num_persons = number_of("persons", "Number of persons, with responses or without.")
    num_responses = same_as("num_judgements", "Number of responses, counts included.")

    # ---------------------------------------------------------------- questions

    def answer_words(self, row: int) -> dict[str, float]:
        """Words for the outcomes of one question."""
        self._place(row)
        return {"0": 0.0, "false": 0.0, "wrong": 0.0, "1": 1.0, "true": 1.0, "right": 1.0}
