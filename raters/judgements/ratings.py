"""Ratings: ``Ratings`` holds who put which item on which level of a scale, as integer codes with
the names beside them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax

from raters.errors import DataWarning
from raters.errors.validation import boolean
from raters.judgements.connection import judges_by_part
from raters.judgements.names import encode_names, shorten, warn_of_each
from raters.judgements.on_scale import OnScale
from raters.judgements.reading import ratings as reading
from raters.judgements.reading.columns import column_name, read_columns, read_counts
from raters.judgements.reading.comparisons import annotators as annotator_names_of
from raters.judgements.reading.responses import item_columns
from raters.judgements.roles import static
from raters.judgements.scanned import Scanned

# With so many ratings on one level only, an annotator is warned of.
_SAME = 5


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Ratings(Scanned, OnScale):
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

    axes: ClassVar[Mapping[str, str]] = {
        "item": "item",
        "annotator": "annotator",
        "rating": "level",
    }
    names: ClassVar[Mapping[str, str]] = {
        "item": "items",
        "annotator": "annotators",
        "level": "levels",
    }
    answer: ClassVar[str] = "rating"

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
            it, the different numbers in the column, ascending.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal (item, annotator, rating) rows together into one row with a count.

        Returns
        -------
        Ratings

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; a rating is none of `levels`, or
            no number without them; there are fewer than 2 levels, or more than 20; a count is not a
            whole number.

        Examples
        --------
        >>> import raters as rt
        >>> ratings = rt.Ratings.from_frame(
        ...     {"film": ["Alien", "Brazil"], "critic": ["ann", "ann"], "says": ["good", "poor"]},
        ...     item="film", annotator="critic", rating="says", levels=["poor", "fair", "good"])
        >>> ratings.rating.tolist()
        [2, 0]
        """
        boolean("aggregate", aggregate)
        named = {"item": column_name("item", item), "rating": column_name("rating", rating)}
        columns = read_columns(frame, **named, annotator=annotator, count=count)
        (what,), item_names = encode_names([columns["item"]], items, "item")
        who, annotator_names = annotator_names_of(columns, annotators, len(what))
        level, level_names = reading.scale(columns["rating"], levels)
        number = None if count is None else read_counts(columns["count"])
        data = cls(what, who, level, number, item_names, annotator_names, level_names)
        return data.aggregate() if aggregate else data._slim()

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
            Columns of the annotators, or patterns such as ``judge_*``; in Python all columns but
            that of the items unless given. Cells are empty where an annotator gave no rating.
        levels : iterable, optional
            All levels of the scale, the lowest first: see `from_frame`.
        items : iterable, optional
            All names in the order wanted.

        Returns
        -------
        Ratings
            The annotators are named by their columns, in the order of the table.

        Raises
        ------
        DataError
            When a column is missing, all cells are empty, or a rating is none of `levels`, or no
            number without them.

        Examples
        --------
        >>> import raters as rt
        >>> ratings = rt.Ratings.from_wide(
        ...     {"essay": [1, 2], "gpt": [7, 9], "claude": [8, None]}, item="essay")
        >>> ratings.num_ratings, ratings.annotators
        (3, ('gpt', 'claude'))
        """
        names = item_columns(frame, item, columns)
        of_item = read_columns(frame, item=column_name("item", item))["item"]
        (what,), item_names = encode_names([of_item], items, "item")
        line, who, level, level_names = reading.cells(frame, names, levels)
        data = cls(what[line], who, level, None, item_names, tuple(names), level_names)
        return data.aggregate()

    # ---------------------------------------------------------------- facts

    @property
    def num_annotators(self) -> int:
        """Number of annotators, with ratings or without."""
        return len(self.annotators)

    @property
    def num_ratings(self) -> int:
        """Number of ratings, counts included."""
        return self.num_judgements

    def warn(self) -> None:
        """Warn about what these data cannot tell: items and annotators without a rating, annotators
        who use one level only, and parts of the crowd that share no item."""
        used = self.levels_by("annotator")
        same = (used.sum(1) >= _SAME) & ((used > 0).sum(1) == 1)
        sentences = {
            "item(s) have no rating, and keep their prior": (
                self.items,
                self.judgements_by("item") == 0,
            ),
            "annotator(s) gave no rating, and keep their prior": (
                self.annotators,
                used.sum(1) == 0,
            ),
            "annotator(s) put every item on one level, which tells no item from another": (
                self.annotators,
                same,
            ),
        }
        warn_of_each(sentences)
        if self.levels == (0, 1):
            warnings.warn(
                "all ratings are 0 or 1; where they say whether somebody was right, read them as"
                " responses of persons to items: rt.Responses.from_frame(frame, person=...,"
                " item=..., correct=...)",
                DataWarning,
                stacklevel=3,
            )
        if len(parts := [part for part in judges_by_part(self) if len(part)]) > 1:
            who = "; ".join(shorten([self.annotators[code] for code in part]) for part in parts[:4])
            warnings.warn(
                f"annotators fall into {len(parts)} parts that share no item: {who}. The prior"
                " alone tells how severe one part is beside another, and so where its items stand;"
                " add ratings across",
                DataWarning,
                stacklevel=3,
            )
