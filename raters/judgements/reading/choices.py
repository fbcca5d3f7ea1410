"""Steps of reading choices from sets: what was chosen and offered, and the errors about a set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from raters.errors import refuse_data
from raters.errors.validation import is_list
from raters.judgements.counts import Codes
from raters.judgements.names import (
    Names,
    alike,
    check_once,
    check_ordered,
    name_list,
    name_text,
    shorten,
)
from raters.judgements.reading.columns import Column, one_each, read_numbers, repeated, where
from raters.judgements.reading.features import (
    OF_CHOOSERS,
    OF_ITEMS,
    check_same,
    distinct,
    no_features,
    scaled_as,
)


def listed(**given: Any) -> dict[str, tuple[str, ...]]:
    """Names of columns with features, each once, by parameter."""
    return {name: distinct(some, name, f"{name}=['price']") for name, some in given.items()}


def matrix(columns: Sequence[Column], rows: int) -> Float[np.ndarray, "row feature"]:
    """Numbers in some columns."""
    values = [read_numbers(column) for column in columns]
    return np.stack(values, axis=1) if values else np.zeros((rows, 0))


def of_sets(
    columns: Sequence[Column], group: Codes, sets: Names
) -> Float[np.ndarray, "set feature"]:
    """Numbers that are the same in all rows of a set, one for each set."""
    values = [one_each(group, column, read_numbers(column), sets) for column in columns]
    return np.stack(values, axis=1) if values else np.zeros((len(sets), 0))


def wide_names(features: Any, names: Sequence[Any]) -> dict[str, list[tuple[int, str]]]:
    """Place and column of the alternatives for each feature of a wide table."""
    listed = {} if features is None else features
    if not isinstance(listed, Mapping):
        refuse_data(
            "features",
            features,
            "is no mapping of names to columns",
            "map each feature to its columns",
            instead=EXAMPLES["features"],
        )
    texts = distinct(listed, "features", "features=['price']")
    columns = [
        columns_by_alternative("features", name, given, names) for name, given in listed.items()
    ]
    return dict(zip(texts, columns, strict=True))


def wide_features(
    columns: Iterable[Column],
    features: Mapping[str, Sequence[tuple[int, str]]],
    offered: Bool[np.ndarray, "set alternative"],
) -> Float[np.ndarray, "set alternative feature"]:
    """Features of the alternatives of a wide table, 0 where these are not offered."""
    values = np.zeros((*offered.shape, len(features)))
    cells = iter(columns)
    for feature, by_place in enumerate(features.values()):
        for (place, _), column in zip(by_place, cells, strict=False):
            missing = offered[:, place] & (column.code < 0)
            if missing.any():
                column.refuse(
                    f"is empty in {where(missing)}",
                    "it must hold a number where the alternative was offered",
                )
            numbers = read_numbers(column.only(offered[:, place]))
            values[:, place, feature] = np.where(offered[:, place], numbers, 0.0)
    return values


class Terms(NamedTuple):
    """Features that the utilities depend on."""

    features: tuple[str, ...]
    specific: Sequence[str]
    choosers: tuple[str, ...]
    like: Any = None

    def of_offers(self, table: Offers, alternatives: Names) -> dict[str, Any]:
        """Fields of `Choices` with the features of the alternatives."""
        listed = [name_text(one) for one in name_list(self.specific, "specific", _SUCH)]
        if unknown := [name for name in listed if name not in self.features]:
            these = f"these are {shorten(self.features)}"
            expected = these if self.features else "name it there as well"
            refuse_data("specific", unknown[0], "is none of `features`", expected)
        columns, texts = [], []
        for column, name in zip(table.features.T, self.features, strict=True):
            if name not in listed:
                columns.append(column)
                texts.append(name)
                continue
            for code, other in enumerate(alternatives):  # a column for each alternative
                columns.append(np.where(table.alternative == code, column, 0.0))
                texts.append(f"{name}:{name_text(other)}")
        names, values = tuple(texts), np.stack(columns, axis=1) if columns else table.features
        return self._scaled("features", values, names, lambda: _within(values, table.group, names))

    def of_choosers(self, values: Float[np.ndarray, "set chooser_feature"]) -> dict[str, Any]:
        """Fields of `Choices` with the features of the choosers."""
        return self._scaled(
            "choosers", values, self.choosers, lambda: _across(values, self.choosers)
        )

    def _scaled(
        self,
        parameter: str,
        values: Float[np.ndarray, "row feature"],
        names: tuple[str, ...],
        deviation: Callable[[], Float[np.ndarray, " feature"]],
    ) -> dict[str, Any]:
        """Values, centre, scale and names of features, as fields of `Choices`."""
        fields = OF_ITEMS if parameter == "features" else OF_CHOOSERS
        if not names:
            return no_features(fields)
        if self.like is not None:
            check_same(names, getattr(self.like, fields[3]), parameter, "`like`")
            return scaled_as(self.like, values, fields)
        centre, scale = values.mean(0), deviation()
        return dict(zip(fields, ((values - centre) / scale, centre, scale, names), strict=True))


def _within(
    values: Float[np.ndarray, "offer feature"],
    group: Int[np.ndarray, " offer"],
    names: tuple[str, ...],
) -> Float[np.ndarray, " feature"]:
    """Standard deviation of each feature within sets, since only differences within a set enter a
    choice; an error for one that has none. Rows of a set follow each other."""
    size = np.bincount(group)
    means = np.add.reduceat(values, np.cumsum(size) - size, axis=0) / size[:, None]
    squares: np.ndarray = ((values - means[group]) ** 2).sum(0)
    scale: np.ndarray = np.sqrt(squares / max(len(group) - len(size), 1))
    # Means of equal numbers differ from them in the last digit.
    constant = scale <= 1e-10 * np.abs(values).max(0, initial=0.0)
    if constant.any():
        alike = [name for name, same in zip(names, constant, strict=True) if same]
        refuse_data(
            "features",
            alike[0],
            "is the same for all alternatives of every set, so that no choice depends on it"
            + (f" ({len(alike)} such features)" if len(alike) > 1 else ""),
            "leave it out; a feature of the chooser belongs to `choosers`, where each"
            " alternative has a coefficient of it",
        )
    return scale


def _across(
    values: Float[np.ndarray, "set feature"], names: tuple[str, ...]
) -> Float[np.ndarray, " feature"]:
    """Standard deviation of each feature of the choosers between sets; an error for one that has
    none."""
    constant = values.max(0) == values.min(0)
    if constant.any():
        refuse_data(
            "choosers",
            names[int(np.argmax(constant))],
            "has the same value in all sets",
            "leave it out: the constants of the alternatives have its effect (new sets for"
            " a model that was fitted are read with `like`)",
            instead="like=choices, with those that were fitted",
        )
    scale: np.ndarray = values.std(0)
    return scale


_SUCH = "specific=['time']"
#: How columns of alternatives are given, by parameter.
EXAMPLES = {
    "features": "features={'price': {'car': 'price.car', 'train': 'price.train'}}",
    "available": "available={'car': 'car_available'}",
}


class Offers(NamedTuple):
    """Rows of a table of choices: one for each alternative of each set."""

    group: Int[np.ndarray, " offer"]
    alternative: Int[np.ndarray, " offer"]
    annotator: Int[np.ndarray, " offer"]
    chosen: Float[np.ndarray, " offer"] | None
    features: Float[np.ndarray, "offer feature"]

    def in_order(self) -> Offers:
        """The same rows, sorted by set and alternative."""
        order = np.lexsort((self.alternative, self.group))
        columns: Any = (None if column is None else column[order] for column in self)
        return Offers(*columns)


# ---------------------------------------------------------------- what was chosen


def chosen(column: Column, *, counted: bool) -> Float[np.ndarray, " offer"]:
    """A column of what was chosen: 1 and 0, or how often each alternative was."""
    truth = {"true": 1.0, "false": 0.0}
    values = [truth.get(name_text(value).strip().lower(), value) for value in column.values]
    numbers = read_numbers(Column(column.name, column.role, column.code, values))
    most = np.inf if counted else 1.0
    column.refuse_rows(
        (numbers != np.round(numbers)) | (numbers < 0) | (numbers > most),
        "it must hold 1 for the alternative chosen from a set and 0 for the others, or how often"
        " each was chosen, with `counted`",
        None if counted else "counted=True",
    )
    return numbers


def check_sets(offers: Offers, sets: Names, alternatives: Names, *, counted: bool) -> None:
    """Raise unless each set has two alternatives or more, each once, and what was chosen."""
    group, num_sets = offers.group, len(sets)
    if (twice := repeated(group, offers.alternative)).any():
        row = int(np.argmax(twice))
        refuse_data(
            "alternative",
            alternatives[offers.alternative[row]],
            f"has two rows in set {sets[group[row]]!r} ({int(twice.sum())} such row(s))",
            "keep one row for each alternative of a set; is `set` the column of one choice"
            " situation, and not of a person?",
        )
    size = np.bincount(group, minlength=num_sets)
    problems = {
        "has one alternative, which says nothing": (
            size == 1,
            "leave out such sets, or add the rows of what was offered and not chosen",
        )
    }
    if offers.chosen is not None:
        total = np.bincount(group, offers.chosen, num_sets)
        problems |= {
            "has no alternative that was chosen": (
                total == 0,
                "a set needs one; give a choice of none a row of its own, such as 'none'",
            ),
            "has two alternatives or more that were chosen": (
                (total > 1) & (not counted),
                "one is chosen from a set; give each choice a set of its own, or pass `counted`"
                " where the column holds how often each was chosen",
            ),
        }
    for problem, (wrong, expected) in problems.items():
        if wrong.any():
            name = sets[int(np.argmax(wrong))]
            refuse_data("set", name, f"{problem} ({int(wrong.sum())} such set(s))", expected)


# ---------------------------------------------------------------- wide tables


def alternative_names(given: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Alternatives of a wide table as the column of choices has them, and their names."""
    check_ordered(given, "alternatives")
    names = list(given.values()) if isinstance(given, Mapping) else given
    listed = name_list(names, "alternatives", "alternatives=['train', 'car']")
    values = list(given) if isinstance(given, Mapping) else listed
    for one in (values, listed):
        check_once(one, "alternatives")
    return values, alike([listed])[0]


def availability(
    columns: Sequence[Column], places: Sequence[int], shape: tuple[int, int]
) -> Bool[np.ndarray, "set alternative"]:
    """Mask of what was offered in each row of a wide table."""
    offered = np.ones(shape, bool)
    for place, column in zip(places, columns, strict=True):
        numbers = read_numbers(column)
        column.refuse_rows(
            ~np.isin(numbers, (0, 1)),
            "it must hold 1 where the alternative was offered and 0 where it was not",
        )
        offered[:, place] = numbers == 1
    return offered


def check_available(
    offered: Bool[np.ndarray, "set alternative"],
    code: Int[np.ndarray, " set"],
    names: Sequence[Any],
) -> None:
    """Raise when something was chosen that was not offered."""
    wrong = ~offered[np.arange(len(code)), code]
    if wrong.any():
        refuse_data(
            "available",
            names[code[np.argmax(wrong)]],
            f"excludes what was chosen in {where(wrong)}",
            "what was chosen was offered: correct the column, or leave out those rows",
        )


def columns_by_alternative(
    parameter: str, name: Any, columns: Any, names: Sequence[Any]
) -> list[tuple[int, str]]:
    """Place and column of the alternatives, as they are given for a feature or for what was
    offered."""
    place = {name_text(one): code for code, one in enumerate(names)}
    if isinstance(columns, Mapping):
        if unknown := [one for one in columns if name_text(one) not in place]:
            refuse_data(
                parameter,
                unknown[0],
                f"has a column of {name!r}, and is not among the alternatives",
                f"these are {shorten(names)}",
            )
        return [(place[name_text(one)], column) for one, column in columns.items()]
    if not is_list(columns) or len(columns) != len(names):
        refuse_data(
            parameter,
            name,
            f"does not have one column for each of the {len(names)} alternatives",
            f"give {len(names)} columns in their order, or name those that have one",
            instead=EXAMPLES[parameter],
        )
    return list(enumerate(columns))
