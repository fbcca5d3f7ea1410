"""Choices from sets: which alternatives were offered together and which was chosen, as codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from raters.errors import refuse_data
from raters.errors.validation import boolean, is_list
from raters.judgements import names as naming
from raters.judgements.counts import Codes, Features, Numbers, place_within
from raters.judgements.names import Names
from raters.judgements.reading import columns as reading
from raters.judgements.reading import features as feature_reading
from raters.judgements.reading.columns import Column, Columns, read_columns
from raters.judgements.reading.features import OF_CHOOSERS, OF_ITEMS, distinct
from raters.judgements.roles import number_of, of_axes, same_as, static
from raters.judgements.sets import OfferedSets

_SUCH = "specific=['time']"
#: How columns of alternatives are given, by parameter.
EXAMPLES = {
    "features": "features={'price': {'car': 'price.car', 'train': 'price.train'}}",
    "available": "available={'car': 'car_available'}",
}


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Choices(OfferedSets):
    """Choices of one alternative from a set that was offered.

    One row for each set, with a position for each alternative that was offered. Build it with
    `from_frame` or `from_wide`; the constructor takes codes that are already right.

    Parameters
    ----------
    annotator : int array, shape (set,)
        Code of the chooser.
    offered : int array, shape (set, position)
        Codes of the alternatives offered, ascending; −1 where a set has fewer.
    chosen : float array, shape (set, position), or None
        How often each was chosen. None when the choices are not known yet, as for
        `raters.simulate`.
    count : float array, shape (set,), or None
        Choices made from the set; 0 in a row that only pads. None means one from each.
    features : float array, shape (set, position, feature), or None
        Features of the alternatives, centred, and scaled by their standard deviation within sets.
    centre, scale : float array, shape (feature,), or None
        What the features were centred and scaled by.
    chooser_features : float array, shape (set, chooser_feature), or None
        Features of the chooser of each set, centred and scaled.
    chooser_centre, chooser_scale : float array, shape (chooser_feature,), or None
        What these were centred and scaled by.
    sets, alternatives, annotators, feature_names, chooser_names : tuple
        The names, of the sets in their order and of the others by code.

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

    annotator: Any
    offered: Any = of_axes("set", "position")
    chosen: Any = of_axes("set", "position")
    count: Any = None
    features: Any = of_axes("set", "position", "feature", default=None)
    centre: Any = of_axes("feature", default=None)
    scale: Any = of_axes("feature", default=None)
    chooser_features: Any = of_axes("set", "chooser_feature", default=None)
    chooser_centre: Any = of_axes("chooser_feature", default=None)
    chooser_scale: Any = of_axes("chooser_feature", default=None)
    sets: tuple[Any, ...] = static(())
    alternatives: tuple[Any, ...] = static(())
    annotators: tuple[Any, ...] = static(())
    feature_names: tuple[Any, ...] = static(())
    chooser_names: tuple[Any, ...] = static(())

    axes = {"annotator": "annotator", "offered": "alternative"}
    names = {"set": "sets", "alternative": "alternatives", "annotator": "annotators"}
    names |= {"feature": "feature_names", "chooser_feature": "chooser_names"}
    answer = "chosen"
    row = "set"
    answer_scale = "choice"
    standardised = {"features": OF_ITEMS, "choosers": OF_CHOOSERS}

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
        roles = {"set": set, "alternative": alternative}
        listed = {"features": distinct(features, "features")}
        listed |= {"choosers": distinct(choosers, "choosers")}
        others: dict[str, Any] = {"chosen": chosen, "annotator": annotator}
        columns = read_columns(frame, roles, several=listed, part_of=set, **others)
        group, sets = columns.codes("set")
        known = alternatives
        if alternatives is None and like is not None:
            known = like.alternatives
            advice = "fit others as well, with at least one set that offers them"
            reading.place(columns["alternative"], known, "alternatives that were fitted", advice)
        what, names = columns.codes("alternative", known)
        who, people = columns.annotators(annotators, "chose once")
        if annotator is not None:
            who = reading.one_each(group, columns["annotator"], who, sets)[group]
        rows: dict[str, Any] = {"group": group, "alternative": what, "annotator": who}
        rows["features"] = _matrix(columns.lists["features"], columns.rows)
        if chosen is not None:
            rows["chosen"] = _chosen(columns["chosen"], counted=counted)
        of_sets = np.zeros((len(sets), len(listed["choosers"])))
        for feature, column in enumerate(columns.lists["choosers"]):
            of_sets[:, feature] = reading.one_each(
                group, column, reading.read_numbers(column), sets
            )
        order = np.lexsort((what, group))
        rows = {name: column[order] for name, column in rows.items()}
        known_names, how = (sets, names, people), {"aggregate": aggregate, "counted": counted}
        return cls._of(rows, known_names, of_sets, listed, specific, like, **how)

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
        (2, [[1.0, 0.0], [0.0, 1.0]])
        """
        boolean("aggregate", aggregate)
        values, names = _alternative_names(alternatives)
        there = {} if available is None else available
        by_place = _columns_by_alternative("available", "available", there, names)
        described = _wide_names(features, names)
        cells = [name for columns in described.values() for _, name in columns]
        listed: dict[str, Any] = {"choosers": distinct(choosers, "choosers"), "features": cells}
        listed["available"] = [name for _, name in by_place]
        if choice is None and annotator is None and not any(listed.values()):
            listed["frame"] = reading.column_names(frame)[:1]  # whose length is the number of sets
        others: dict[str, Any] = {"choice": choice, "annotator": annotator}
        columns = read_columns(frame, several=listed, empty=("features", "frame"), **others)
        code = None
        if choice is not None:
            advice = "add it, or leave out those rows"
            code = reading.place(columns["choice"], tuple(values), "alternatives", advice)
        offered = _offered(columns, by_place, names, code)
        wide = _wide_features(columns.lists["features"], described, offered)
        who, people = columns.annotators(annotators, "chose once")
        group, what = np.nonzero(offered)
        rows = {"group": group, "alternative": what, "annotator": who[group]}
        rows["features"] = wide[group, what]
        if code is not None:
            rows["chosen"] = (code[group] == what).astype(float)
        of_sets = _matrix(columns.lists["choosers"], columns.rows)
        known_names = tuple(range(columns.rows)), names, people
        listed["features"] = tuple(described)
        return cls._of(rows, known_names, of_sets, listed, specific, like, aggregate=aggregate)

    @classmethod
    def _of(
        cls,
        rows: dict[str, Any],
        names: tuple[Names, Names, Names],
        of_choosers: Features,
        listed: Mapping[str, tuple[str, ...]],
        specific: Sequence[str],
        like: Choices | None,
        *,
        aggregate: bool,
        counted: bool = False,
    ) -> Choices:
        """Choices from rows in order, with their features scaled."""
        _check_sets(rows, *names[:2], counted=counted)
        group, values = rows["group"], rows["features"]
        values, described = _by_alternative(rows, listed["features"], specific, names[1])
        fields = _scaled("features", values, described, like, group)
        fields |= _scaled("choosers", of_choosers, listed["choosers"], like)
        offered = rows["alternative"].astype(np.int32)
        fields |= _in_sets(group, rows | {"features": fields["features"], "offered": offered})
        if (chosen := fields["chosen"]) is not None:
            total = chosen.sum(1)
            fields["count"] = None if (total == 1).all() else total.astype(np.float32)
            fields["chosen"] = chosen.astype(np.float32)
        fields |= dict(zip(("sets", "alternatives", "annotators"), names, strict=True))
        choices = cls(**fields)
        has_features = choices.features is not None or choices.chooser_features is not None
        return choices.aggregate() if aggregate and not has_features else choices

    # ---------------------------------------------------------------- facts

    num_sets = same_as("num_rows", "Number of sets in this part of the data.")
    num_alternatives = number_of("alternatives", "Number of alternatives, offered or not.")
    num_choices = same_as("num_judgements", "Number of choices, counts included.")

    def warn(self) -> None:
        """Warn about what these data cannot tell: alternatives never or always chosen."""
        offered = self.judgements_by("alternative")
        taken = np.bincount(self.offered[self.there], self.chosen[self.there], len(offered))
        prior = "so that the prior alone bounds their constant from"
        sentences = {
            "alternative(s) were never offered": offered == 0,
            f"alternative(s) were never chosen, {prior} below": (offered > 0) & (taken == 0),
            f"alternative(s) were chosen whenever they were offered, {prior} above": (
                (offered > 0) & (taken >= offered)
            ),
        }
        naming.warn_of_each({text: (self.alternatives, which) for text, which in sentences.items()})

    answers = OfferedSets.listed_answers

    def check(self) -> None:
        """Raise unless sets have two alternatives or more, and as many choices as they count."""
        super().check()
        if len(self.sets) != self.num_rows:
            refuse_data("sets", self.sets[:5], "does not name each set", "give one name for each")
        expected = "a set has two alternatives or more, and as many choices of them as it counts"
        self._refuse("offered", (self.there.sum(1) < 2)[:, None], expected)
        if self.chosen is not None:
            chosen = np.asarray(self.chosen)
            wrong = (chosen.sum(1) != np.asarray(self.weight))[:, None]
            self._refuse("chosen", wrong | ((chosen != 0) & ~self.there), expected)

    # ---------------------------------------------------------------- parts

    def per_row(self, times: Any) -> Any:
        """Times of the sets, also from those of the rows of `to_frame`, the same in each set."""
        size = self.there.sum(1)
        if np.shape(times) != (size.sum(),):
            return times
        first = times[np.cumsum(size) - size]
        if (np.repeat(first, size) != times).any():
            problem = "differs between the rows of a set, which is one choice"
            refuse_data("time", problem=problem, expected="give one time for each set")
        return first

    # Parts keep all names, so that they share what is compiled.
    take = OfferedSets.rows  # type: ignore[assignment]

    def rows(self, index: Any) -> Self:
        """The given sets, with their names."""
        places = np.arange(self.num_rows)[index].tolist()
        return replace(super().rows(index), sets=tuple(self.sets[at] for at in places))

    def aggregate(self) -> Self:
        """Equal sets of one chooser as one set with a count, under the name of the first; the
        likelihood does not change but for a constant."""
        order = {name: at for at, name in enumerate(self.sets)}
        cells = super().aggregate()
        return cells.rows(np.argsort([order[name] for name in cells.sets]))

    def single(self) -> Self:
        """One set for each choice, without counts."""
        real = self.unpadded()
        if real.count is None:
            return real
        row, position = np.nonzero(real.chosen)
        number = np.asarray(real.chosen)[row, position].round().astype(np.int64)
        many = np.repeat(np.arange(len(row)), number)
        chosen = position[many, None] == self.listed_answers()
        part = replace(real.rows(row[many]), chosen=chosen.astype(np.float32), count=None)
        return replace(part, sets=tuple(range(len(many))))

    # ---------------------------------------------------------------- tables

    def to_frame(self) -> pd.DataFrame:
        """The choices as a table that `from_frame` reads with ``counted=True``: ``set``,
        ``alternative``, ``annotator``, ``chosen`` where the choices are known, and the features in
        their own units."""
        real = self.unpadded()
        row, position, columns = real.offers()
        if real.chosen is not None:
            columns["chosen"] = np.asarray(real.chosen)[row, position].astype(np.int64)
        for parameter, fields in self.standardised.items():
            if names := getattr(real, fields[3]):
                raw: Any = feature_reading.in_units_of_users(real, fields)[0]
                raw = raw[row, position] if parameter == "features" else raw[row]
                columns |= dict(zip(names, raw.T, strict=True))
        return pd.DataFrame(columns)

    @classmethod
    def _arrays_in(cls, stored: Mapping[str, Any]) -> dict[str, Any]:
        arrays = super()._arrays_in(stored)
        if "alternative_code" not in stored:
            return arrays
        # Results had a row for each alternative of each set.
        rows = arrays | {"offered": stored["alternative_code"]}
        return arrays | _in_sets(stored["set_code"], rows)


# ---------------------------------------------------------------- reading


def _in_sets(group: Codes, rows: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of sets from those with a row for each alternative of each set."""
    sets, first, row = np.unique(group, return_index=True, return_inverse=True)
    position = place_within(group)
    shape = len(sets), int(position.max(initial=0)) + 1
    tables: dict[str, Any] = {}
    for name, nothing in {"offered": -1, "chosen": 0, "features": 0}.items():
        tables[name] = None
        if (column := rows.get(name)) is not None:
            tables[name] = np.full((*shape, *column.shape[1:]), nothing, column.dtype)
            tables[name][row, position] = column
    count = rows["count"][first] if "count" in rows else None
    return tables | {"annotator": rows["annotator"][first].astype(np.int32), "count": count}


def _matrix(columns: Sequence[Column], rows: int) -> Features:
    values = [reading.read_numbers(column) for column in columns]
    return np.stack(values, axis=1) if values else np.zeros((rows, 0))


def _wide_names(features: Any, names: Sequence[Any]) -> dict[str, list[tuple[int, str]]]:
    """Place and column of the alternatives for each feature of a wide table."""
    listed = {} if features is None else features
    if not isinstance(listed, Mapping):
        problem, expected = "is no mapping of names to columns", "map each feature to its columns"
        refuse_data("features", features, problem, expected, instead=EXAMPLES["features"])
    texts = distinct(listed, "features")
    columns = [
        _columns_by_alternative("features", name, given, names) for name, given in listed.items()
    ]
    return dict(zip(texts, columns, strict=True))


def _wide_features(
    columns: Iterable[Column],
    features: Mapping[str, Sequence[tuple[int, str]]],
    offered: Bool[np.ndarray, "set alternative"],
) -> Float[np.ndarray, "set alternative feature"]:
    """Features of the alternatives of a wide table, 0 where these are not offered."""
    values, cells = np.zeros((*offered.shape, len(features))), iter(columns)
    for feature, by_place in enumerate(features.values()):
        for at, _ in by_place:
            column = next(cells)
            expected = "it must hold a number where the alternative was offered"
            reading.refuse_where(column, offered[:, at] & (column.code < 0), "is empty", expected)
            numbers = reading.read_numbers(column.only(offered[:, at]))
            values[:, at, feature] = np.where(offered[:, at], numbers, 0.0)
    return values


def _by_alternative(
    rows: Mapping[str, Any], names: tuple[str, ...], specific: Any, known: Names
) -> tuple[Features, tuple[str, ...]]:
    """Features of the alternatives, with a column for each alternative where one is `specific`."""
    listed = [naming.name_text(one) for one in naming.name_list(specific, "specific", _SUCH)]
    if unknown := [name for name in listed if name not in names]:
        expected = f"these are {naming.shorten(names)}" if names else "name it there as well"
        refuse_data("specific", unknown[0], "is none of `features`", expected)
    columns: dict[str, Any] = {}
    for column, name in zip(rows["features"].T, names, strict=True):
        if name not in listed:
            columns[name] = column
            continue
        for code, other in enumerate(known):
            of_one = np.where(rows["alternative"] == code, column, 0.0)
            columns[f"{name}:{naming.name_text(other)}"] = of_one
    values = np.stack([*columns.values()], axis=1) if columns else rows["features"]
    return values, tuple(columns)


def _scaled(
    parameter: str, values: Features, names: Names, like: Any, group: Codes | None = None
) -> dict[str, Any]:
    """Values, centre, scale and names of features as fields; those in groups vary within them."""
    fields = Choices.standardised[parameter]
    if not names:
        return feature_reading.no_features(fields)
    if like is not None:
        return feature_reading.scaled_as(like, (values, names), fields, parameter, "`like`")
    if group is None:
        scale, constant = values.std(0), values.max(0) == values.min(0)
        problem = "has the same value in all sets"
        expected = "leave it out: the constants of the alternatives have its effect (new sets for"
        expected += " a model that was fitted are read with `like`)"
        line = "like=choices, with those that were fitted"
    else:
        scale, line = _within(values, group), None
        # Means of equal numbers differ from them in the last digit.
        constant = scale <= 1e-10 * np.abs(values).max(0, initial=0.0)
        problem = "is the same for all alternatives of every set, so that no choice depends on it"
        expected = "leave it out; a feature of the chooser belongs to `choosers`, where each"
        expected += " alternative has a coefficient of it"
    if constant.any():
        if group is not None and (number := int(constant.sum())) > 1:
            problem += f" ({number} such features)"
        refuse_data(parameter, names[int(np.argmax(constant))], problem, expected, instead=line)
    centre = values.mean(0)
    return dict(zip(fields, ((values - centre) / scale, centre, scale, names), strict=True))


def _within(values: Features, group: Codes) -> Numbers:
    """Standard deviation of features within sets, of which the rows are adjacent."""
    size = np.bincount(group)
    means = np.add.reduceat(values, np.cumsum(size) - size, axis=0) / size[:, None]
    squares: np.ndarray = ((values - means[group]) ** 2).sum(0)
    return np.asarray(np.sqrt(squares / max(len(group) - len(size), 1)))


# ---------------------------------------------------------------- what was chosen


def _chosen(column: Column, *, counted: bool) -> Float[np.ndarray, " offer"]:
    """A column of what was chosen: 1 and 0, or how often each alternative was."""
    truth = {"true": 1.0, "false": 0.0}
    values = [truth.get(naming.name_text(value).strip().lower(), value) for value in column.values]
    numbers = reading.read_numbers(Column(column.name, column.role, column.code, values))
    most = np.inf if counted else 1.0
    column.refuse_rows(
        (numbers != np.round(numbers)) | (numbers < 0) | (numbers > most),
        "it must hold 1 for the alternative chosen from a set and 0 for the others, or how often"
        " each was chosen, with `counted`",
        None if counted else "counted=True",
    )
    return numbers


def _check_sets(
    rows: Mapping[str, Any], sets: Names, alternatives: Names, *, counted: bool
) -> None:
    """Raise unless each set has two alternatives or more, each once, and what was chosen."""
    group, what, num_sets = rows["group"], rows["alternative"], len(sets)
    if (twice := reading.repeated(group, what)).any():
        row = int(np.argmax(twice))
        problem = f"has two rows in set {sets[group[row]]!r} ({int(twice.sum())} such row(s))"
        expected = "keep one row for each alternative of a set; is `set` the column of one choice"
        expected += " situation, and not of a person?"
        refuse_data("alternative", alternatives[what[row]], problem, expected)
    size = np.bincount(group, minlength=num_sets)
    advice = "leave out such sets, or add the rows of what was offered and not chosen"
    problems = {"offers fewer than two alternatives, which says nothing": (size < 2, advice)}
    if "chosen" in rows:
        total = np.bincount(group, rows["chosen"], num_sets)
        advice = "a set needs one; give a choice of none a row of its own, such as 'none'"
        problems["has no alternative that was chosen"] = total == 0, advice
        advice = "give each choice a set of its own, or pass `counted` where the column holds how"
        advice += " often each was chosen"
        several = (total > 1) & (not counted)
        problems["has two alternatives or more that were chosen"] = several, advice
    for problem, (wrong, expected) in problems.items():
        if wrong.any():
            name = sets[int(np.argmax(wrong))]
            refuse_data("set", name, f"{problem} ({int(wrong.sum())} such set(s))", expected)


# ---------------------------------------------------------------- wide tables


def _alternative_names(given: Iterable[Any]) -> tuple[list[Any], Names]:
    """Alternatives of a wide table as the column of choices has them, and their names."""
    names = list(given.values()) if isinstance(given, Mapping) else given
    listed = naming.name_list(names, "alternatives", "alternatives=['train', 'car']", ordered=True)
    values = list(given) if isinstance(given, Mapping) else listed
    for one in (values, listed):
        naming.check_once(one, "alternatives")
    return values, tuple(naming.alike([listed])[0])


def _offered(
    columns: Columns, by_place: Sequence[tuple[int, str]], names: Names, code: Codes | None
) -> Bool[np.ndarray, "set alternative"]:
    """Mask of what was offered in each row of a wide table, what was chosen included."""
    offered = np.ones((columns.rows, len(names)), bool)
    for (at, _), column in zip(by_place, columns.lists["available"], strict=True):
        numbers = reading.read_numbers(column)
        column.refuse_rows(
            ~np.isin(numbers, (0, 1)),
            "it must hold 1 where the alternative was offered and 0 where it was not",
        )
        offered[:, at] = numbers == 1
    if code is not None and (wrong := ~offered[np.arange(len(code)), code]).any():
        problem = f"excludes what was chosen in {reading.where(wrong)}"
        expected = "what was chosen was offered: correct the column, or leave out those rows"
        refuse_data("available", names[code[np.argmax(wrong)]], problem, expected)
    return offered


def _columns_by_alternative(
    parameter: str, name: Any, columns: Any, names: Sequence[Any]
) -> list[tuple[int, str]]:
    """Places and columns of the alternatives, as given for a feature or for what was offered."""
    known = {naming.name_text(one): code for code, one in enumerate(names)}
    if isinstance(columns, Mapping):
        if unknown := [one for one in columns if naming.name_text(one) not in known]:
            problem = f"has a column of {name!r}, and is not among the alternatives"
            refuse_data(parameter, unknown[0], problem, f"these are {naming.shorten(names)}")
        return [(known[naming.name_text(one)], column) for one, column in columns.items()]
    unordered = isinstance(columns, (set, frozenset))
    if unordered or not is_list(columns) or len(columns) != len(names):
        problem = f"does not have one column for each of the {len(names)} alternatives"
        expected = f"give {len(names)} columns in their order, or name those that have one"
        refuse_data(parameter, name, problem, expected, instead=EXAMPLES[parameter])
    return list(enumerate(columns))
