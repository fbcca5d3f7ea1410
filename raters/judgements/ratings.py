"""Ratings: who put which item on which level of a scale, as integer codes with the names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax

from raters.judgements.answers import OnScale
from raters.judgements.connection import judges_by_part, warn_of_parts
from raters.judgements.names import warn_data, warn_of_each
from raters.judgements.roles import same_as, static

# With so many ratings on one level only, an annotator is warned of.
_SAME = 5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ratings(OnScale):
    """Ratings of items by annotators on one ordered scale, such as the scores of LLM judges.

    Build it with `from_frame` or `from_wide`; the constructor takes codes that are already right.

    Parameters
    ----------
    item, annotator : int array, shape (row,)
        Codes of what was rated, and of who rated.
    rating : int array, shape (row,), or None
        Level of each row, 0 for the lowest. None when the outcomes are not known yet, as for
        `raters.simulate`.
    count : float array, shape (row,), or None
        Number of equal ratings that a row stands for. None means one in each.
    items, annotators : tuple
        The names, in code order.
    levels : tuple
        The levels, the lowest first.

    Examples
    --------
    >>> import raters as rt
    >>> ratings = rt.Ratings.from_frame(
    ...     {"essay": ["a", "a", "b"], "judge": ["ann", "bob", "ann"], "score": [4, 5, 3]},
    ...     item="essay", annotator="judge", rating="score")
    >>> ratings.num_items, ratings.num_annotators, ratings.levels
    (2, 2, (3, 4, 5))
    """

    item: Any
    annotator: Any
    rating: Any
    count: Any
    items: tuple[Any, ...] = static()
    annotators: tuple[Any, ...] = static()
    levels: tuple[Any, ...] = static()

    axes = {"item": "item", "annotator": "annotator", "rating": "level"}
    names = {"item": "items", "annotator": "annotators", "level": "levels"}
    answer = "rating"
    most_levels = 201

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str,
        rating: str,
        annotator: str | None = None,
        count: str | None = None,
        levels: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
    ) -> Ratings:
        """Read ratings from a table with one row for each.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item, rating : str
            Columns with the item and its rating; higher is better.
        annotator : str, optional
            Column that names who rated. Without it all ratings count as one annotator's.
        count : str, optional
            Column with the number of equal ratings that a row stands for.
        levels : iterable, optional
            All levels of the scale, the lowest first; needed where ratings are no numbers. Without
            it, the different numbers in the column, ascending; where those are more than 20, as on
            a scale to 100, all of an evenly spaced scale, for `raters.models.FineScale`.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing or has missing values; a rating is none of `levels`, or no
            number without them; there are fewer than 2 levels, or more than 201.

        Examples
        --------
        >>> import raters as rt
        >>> ratings = rt.Ratings.from_frame(
        ...     {"film": ["Alien", "Brazil"], "critic": ["ann", "ann"], "says": ["good", "poor"]},
        ...     item="film", annotator="critic", rating="says", levels=["poor", "fair", "good"])
        >>> ratings.rating.tolist()
        [2, 0]
        """
        roles = {"item": item, "rating": rating, "annotator": annotator, "count": count}
        known = {"item": items, "annotator": annotators, "level": levels}
        return cls._from_frame(frame, roles, known, aggregate)

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        item: str,
        columns: Sequence[str] | None = None,
        levels: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
    ) -> Ratings:
        """Read ratings from a table with one row for each item and one column for each annotator.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item : str
            Column that names what was rated.
        columns : sequence of str, optional
            Columns of the annotators, or patterns such as ``judge_*``; by default all but that of
            the items. Cells are empty where an annotator gave no rating.
        levels : iterable, optional
            All levels of the scale, the lowest first: see `from_frame`.
        items : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Ratings
            The annotators are named by their columns, in the order of the table.

        Examples
        --------
        >>> import raters as rt
        >>> ratings = rt.Ratings.from_wide(
        ...     {"essay": ["a", "b"], "ann": [4, 3], "bob": [5, None]}, item="essay")
        >>> ratings.num_ratings, ratings.annotators
        (3, ('ann', 'bob'))
        """
        return cls._from_wide(frame, "item", item, columns, {"item": items, "level": levels})

    # ---------------------------------------------------------------- facts

    num_ratings = same_as("num_judgements", "Number of ratings, counts included.")

    def warn(self) -> None:
        """Warn about what these data cannot tell: names unrated, one level only, parts."""
        used = self.answers_by("annotator")
        same = (used.sum(1) >= _SAME) & ((used > 0).sum(1) == 1)
        sentence = "annotator(s) put every item on one level, which tells no item from another"
        warn_of_each(self._unused() | {sentence: (self.annotators, same)})
        if self.levels == (0, 1):
            warn_data(
                "all ratings are 0 or 1; where they say whether somebody was right, read them as"
                " responses of persons to items: rt.Responses.from_frame(frame, person=...,"
                " item=..., correct=...)"
            )
        parts = [part for part in judges_by_part(self) if len(part)]
        severe = "The prior alone tells how severe one part is beside another, and so where its"
        warn_of_parts(self, parts, f"{severe} items stand; add ratings across")
