"""Choices from sets: ``Choices`` holds which alternatives were offered together and which was
chosen, as integer codes with the names beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import Float

from raters.errors.validation import boolean
from raters.judgements.names import encode_names, warn_of_each
from raters.judgements.offered import Offered
from raters.judgements.reading import choice_features
from raters.judgements.reading import choices as reading
from raters.judgements.reading.columns import column_name, one_each, read_columns
from raters.judgements.reading.labels import annotators as annotators_of
from raters.judgements.roles import of_axes, static


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Choices(Offered):
    """Choices of one alternative from a set that was offered.

    One row for each alternative of each set; what was not available has no row. Build it with
    `from_frame` or `from_wide`; the constructor takes codes that are already right.

    Parameters
    ----------
    group : int array, shape (offer,)
        Place of each row's set among `unit_code`; ascending.
    alternative, annotator : int array, shape (offer,)
        Codes of the alternative, and of the chooser, who is the same in all rows of a set.
    chosen : float array, shape (offer,), or None
        How often the alternative was chosen. None when the choices are not known yet, as for
        `raters.simulate`.
    count : float array, shape (offer,), or None
        Choices made from the row's set, the same in all its rows; 0 in a row that only pads. None
        means one from each.
    features : float array, shape (offer, feature), or None
        Features of the alternatives, centred, and scaled by their standard deviation within sets.
    centre, scale : float array, shape (feature,), or None
        What the features were centred and scaled by.
    unit_code : int array, shape (unit,)
        Code of each set, in order. A part of the data has some sets only, and keeps all names.
    chooser_features : float array, shape (unit, chooser_feature), or None
        Features of the chooser of each set, centred and scaled.
    chooser_centre, chooser_scale : float array, shape (chooser_feature,), or None
        What these were centred and scaled by.
    sets, alternatives, annotators, feature_names, chooser_names : tuple
        The names, in code order.
    most : int
        The largest number of rows of a set, or more.
    even : bool
        Whether each set of a part of the data has `most` rows, those that it lacks with a count of
        0, as `padded` makes it.

    Examples
    --------
    >>> import raters as rt
    >>> choices = rt.Choices.from_frame(
    ...     {"trip": [1, 1, 2, 2, 2], "mode": ["car", "bus", "car", "bus", "train"],
    ...      "taken": [1, 0, 0, 0, 1], "price": [9.0, 4.0, 8.0, 3.0, 6.0]},
    ...     set="trip", alternative="mode", chosen="taken", features=["price"])
    >>> choices.num_sets, choices.num_alternatives, choices.feature_names
    (2, 3, ('price',))
    """

    group: Any
    alternative: Any
    annotator: Any
    chosen: Any
    count: Any
    features: Any = of_axes("offer", "feature")
    centre: Any = of_axes("feature")
    scale: Any = of_axes("feature")
    unit_code: Any = of_axes("unit")
    chooser_features: Any = of_axes("unit", "chooser_feature")
    chooser_centre: Any = of_axes("chooser_feature")
    chooser_scale: Any = of_axes("chooser_feature")
    sets: tuple[Any, ...] = static()
    alternatives: tuple[Any, ...] = static()
    annotators: tuple[Any, ...] = static()
    feature_names: tuple[Any, ...] = static(())
    chooser_names: tuple[Any, ...] = static(())
    most: int = static(1, derived=True)
    even: bool = static(False)

    axes: ClassVar[Mapping[str, str]] = {
        "unit_code": "set",
        "alternative": "alternative",
        "annotator": "annotator",
    }
    names: ClassVar[Mapping[str, str]] = {
        "set": "sets",
        "alternative": "alternatives",
        "annotator": "annotators",
        "feature": "feature_names",
        "chooser_feature": "chooser_names",
    }
    answer: ClassVar[str] = "chosen"
    row: ClassVar[str] = "offer"
    unit: ClassVar[str] = "set"
    summed: ClassVar[bool] = True
    together: ClassVar[bool] = True
    success: ClassVar[tuple[str, float] | None] = ("p_chosen", 1.0)

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        set: str,
        alternative: str,
        chosen: str | None = None,
        annotator: str | None = None,
        features: Sequence[str] = (),
        specific: Sequence[str] = (),
        choosers: Sequence[str] = (),
        counted: bool = False,
        alternatives: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
        like: Choices | None = None,
    ) -> Choices:
        """Read choices from a table with one row for each alternative of each set.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        set, alternative : str
            Columns that name the set, which is one choice situation, and what was offered in it.
        chosen : str, optional
            Column with 1 or True for the alternative that was chosen, and 0 or False for the
            others. Without it these are sets to predict the choices from.
        annotator : str, optional
            Column that names the chooser, the same in all rows of a set. Without it all choices are
            by one.
        features : sequence of str, optional
            Columns with features of the alternatives, such as a price.
        specific : sequence of str, optional
            Those of the features that have a coefficient for each alternative, in place of one for
            all.
        choosers : sequence of str, optional
            Columns with features of the chooser or the situation, the same in all rows of a set.
            Each alternative has a coefficient of them.
        counted : bool
            Whether `chosen` holds how often each alternative was chosen from its set.
        alternatives, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        aggregate : bool
            Put equal sets of a chooser together, with a count, where there are no features.
        like : Choices, optional
            Choices that a model was fitted with: alternatives have their codes, and features are
            centred and scaled as theirs were. For new sets, of which there may be one only.

        Returns
        -------
        Choices

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values; a set has one alternative, or one
            of them twice, or no chosen one, or two; a feature is the same for all alternatives of
            every set; what belongs to a chooser differs within a set.

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise; spaces and case
        tell names apart.

        Examples
        --------
        >>> import raters as rt
        >>> table = {"who": ["ann"] * 2 + ["bob"] * 2, "trip": [1, 1, 2, 2],
        ...          "mode": ["car", "bus"] * 2, "taken": [1, 0, 0, 1], "income": [5, 5, 2, 2]}
        >>> choices = rt.Choices.from_frame(table, set="trip", alternative="mode", chosen="taken",
        ...                                 annotator="who", choosers=["income"])
        >>> choices.chooser_names, choices.num_choices
        (('income',), 2)
        """
        boolean("aggregate", aggregate)
        boolean("counted", counted)
        named = {"set": column_name("set", set)}
        named["alternative"] = column_name("alternative", alternative)
        columns = read_columns(frame, part_of=set, **named, chosen=chosen, annotator=annotator)
        (group,), sets = encode_names([columns["set"]], None, "set")
        known = alternatives
        if alternatives is None and like is not None:
            known = like.alternatives
            reading.check_fitted(columns["alternative"], known)
        (what,), names = encode_names([columns["alternative"]], known, "alternative")
        size = len(group)
        who, own = annotators_of(columns.get("annotator"), annotators, size, "chose once")
        if annotator is not None:
            who = one_each(group, columns["annotator"], who, sets)[group]
        times = None
        if chosen is not None:
            times = reading.chosen(columns["chosen"], counted=counted)
        described = choice_features.feature_names(features, "features")
        of_chooser = choice_features.feature_names(choosers, "choosers")
        values = choice_features.feature_columns(frame, described, "features", size, set)
        about = choice_features.feature_columns(frame, of_chooser, "choosers", size, set)
        table = reading.Offers(group, what, who, times, choice_features.matrix(values, size))
        each = choice_features.of_sets(about, group, sets)
        terms = choice_features.Terms(described, specific, of_chooser, like)
        choices = cls._of(table, reading.SetNames(sets, names), own, each, terms, counted)
        return choices.aggregate() if aggregate and not choices.has_features else choices

    @classmethod
    def from_wide(
        cls,
        frame: Any,
        *,
        choice: str | None = None,
        alternatives: Iterable[Any],
        features: Mapping[str, Sequence[str] | Mapping[Any, str]] | None = None,
        specific: Sequence[str] = (),
        available: Mapping[str, str] | None = None,
        annotator: str | None = None,
        choosers: Sequence[str] = (),
        annotators: Iterable[Any] | None = None,
        aggregate: bool = True,
        like: Choices | None = None,
    ) -> Choices:
        """Read choices from a table with one row for each set.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        choice : str, optional
            Column with the alternative that was chosen. Without it these are sets to predict the
            choices from.
        alternatives : iterable
            All alternatives. In Python a mapping from the values in the column to names does, too.
        features : mapping, optional
            From the name of each feature of the alternatives to its columns: one for each
            alternative, in their order, or by alternative, where it is 0 for those left out.
        specific : sequence of str, optional
            Those of the features that have a coefficient for each alternative, in place of one for
            all.
        available : mapping, optional
            From an alternative to the column with 1 where it was offered and 0 where it was not.
            An alternative without one was always offered.
        annotator : str, optional
            Column that names the chooser. Without it all choices are by one.
        choosers : sequence of str, optional
            Columns with features of the chooser or the situation. Each alternative has a
            coefficient of them.
        annotators : iterable, optional
            All names in the order wanted.
        aggregate : bool
            Put equal sets of a chooser together, with a count, where there are no features.
        like : Choices, optional
            Choices that a model was fitted with: alternatives have their codes, and features are
            centred and scaled as theirs were. For new sets, of which there may be one only.

        Returns
        -------
        Choices
            The sets are named by the numbers of their rows, from 0.

        Raises
        ------
        DataError
            When a column is missing or has missing values; a choice is none of the alternatives, or
            of one that was not available; a set has one alternative; a feature is the same for all
            alternatives of every set.

        Examples
        --------
        >>> import raters as rt
        >>> table = {"took": ["car", "bus"], "price.car": [9, 8], "price.bus": [4, 3]}
        >>> choices = rt.Choices.from_wide(
        ...     table, choice="took", alternatives=["car", "bus"],
        ...     features={"price": {"car": "price.car", "bus": "price.bus"}})
        >>> choices.num_sets, choices.chosen.tolist()
        (2, [1.0, 0.0, 0.0, 1.0])
        """
        boolean("aggregate", aggregate)
        values, names = reading.alternative_names(alternatives)
        columns = read_columns(frame, choice=choice, annotator=annotator)
        there = {} if available is None else available
        by_place = reading.columns_by_alternative("available", "available", there, names)
        described = choice_features.wide_names(features, names)
        named = [("available", name) for _, name in by_place]
        named += [("features", name) for own in described.values() for _, name in own]
        rows = reading.rows_of(frame, columns, named)
        offered = reading.availability(frame, by_place, names, rows)
        code = None
        if choice is not None:
            code = reading.choice_codes(columns["choice"], values)
            reading.check_available(offered, code, names)
        wide = choice_features.wide_features(frame, described, offered)
        who, own = annotators_of(columns.get("annotator"), annotators, rows, "chose once")
        group, what = np.nonzero(offered)
        times = None if code is None else (code[group] == what).astype(float)
        table = reading.Offers(group, what, who[group], times, wide[group, what])
        of_chooser = choice_features.feature_names(choosers, "choosers")
        about = choice_features.feature_columns(frame, of_chooser, "choosers", rows)
        each = choice_features.matrix(about, rows)
        sets = reading.SetNames(tuple(range(rows)), tuple(names))
        terms = choice_features.Terms(tuple(described), specific, of_chooser, like)
        choices = cls._of(table, sets, own, each, terms, counted=False)
        return choices.aggregate() if aggregate and not choices.has_features else choices

    @classmethod
    def _of(
        cls,
        table: reading.Offers,
        names: reading.SetNames,
        annotators: tuple[Any, ...],
        of_choosers: Float[np.ndarray, "set chooser_feature"],
        terms: choice_features.Terms,
        counted: bool,
    ) -> Choices:
        """Choices from rows in any order, checked and with their features scaled."""
        table = table.in_order()
        reading.check_sets(table, names, counted=counted)
        features = terms.of_offers(table, names.alternatives)
        columns: dict[str, Any] = {
            "alternative": table.alternative.astype(np.int32),
            "annotator": table.annotator.astype(np.int32),
            "chosen": None,
            "count": None,
            "features": features.pop("features"),
        }
        if table.chosen is not None:
            total = np.bincount(table.group, table.chosen, len(names.sets))[table.group]
            columns["chosen"] = table.chosen.astype(np.float32)
            columns["count"] = None if (total == 1).all() else total.astype(np.float32)
        others = features | terms.of_choosers(of_choosers)
        return cls.of_all(table.group, columns, **names._asdict(), annotators=annotators, **others)

    # ---------------------------------------------------------------- facts

    @property
    def num_sets(self) -> int:
        """Number of sets in this part of the data."""
        return self.num_units

    @property
    def num_alternatives(self) -> int:
        """Number of alternatives, offered or not."""
        return len(self.alternatives)

    @property
    def num_choices(self) -> int:
        """Number of choices, counts included."""
        return self.num_judgements

    def chosen_by_alternative(self) -> Float[np.ndarray, " alternative"]:
        """How often each alternative was chosen; zeros where the choices are not known.

        Returns
        -------
        float array, shape (alternative,)
        """
        size = self.num_alternatives
        if self.chosen is None:
            return np.zeros(size)
        return np.bincount(np.asarray(self.alternative), np.asarray(self.chosen, float), size)

    def answers(self) -> Float[np.ndarray, " answer"]:
        """Not chosen and chosen."""
        return np.array([0.0, 1.0])

    def warn(self) -> None:
        """Warn about what these choices cannot tell: alternatives never offered, never chosen, or
        chosen whenever they were offered."""
        offered, taken = self.judgements_by("alternative"), self.chosen_by_alternative()
        always = (offered > 0) & (taken >= offered)
        sentences = {
            "alternative(s) were never offered": offered == 0,
            "alternative(s) were never chosen, so that the prior alone bounds their constant from"
            " below": (offered > 0) & (taken == 0),
            "alternative(s) were chosen whenever they were offered, so that the prior alone bounds"
            " their constant from above": always,
        }
        warn_of_each({text: (self.alternatives, which) for text, which in sentences.items()})
