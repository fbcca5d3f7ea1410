"""Sets from which one alternative is chosen, and what follows from that for rows that are answered
together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import refuse_data
from raters.errors.validation import checked
from raters.judgements.counts import exact, ranks
from raters.judgements.grouped import Grouped
from raters.judgements.names import names_array, shorten, staying


class Offered(Grouped):
    """Parts, counts and features of sets that alternatives are chosen from, as a mixin of
    `Choices`."""

    alternative: Any
    annotator: Any
    chosen: Any
    features: Any
    centre: Any
    scale: Any
    chooser_features: Any
    chooser_centre: Any
    chooser_scale: Any
    sets: tuple[Any, ...]
    alternatives: tuple[Any, ...]
    annotators: tuple[Any, ...]
    feature_names: tuple[Any, ...]
    chooser_names: tuple[Any, ...]

    # ---------------------------------------------------------------- counts

    @property
    def set_counts(self) -> Float[np.ndarray, " set"]:
        """Number of choices made from each set, shape (set,)."""
        count = np.zeros(self.num_units)
        np.maximum.at(count, np.asarray(self.group), np.asarray(self.weight, float))
        return count

    @property
    def num_judgements(self) -> int:
        """Number of choices, counts included."""
        return int(self.set_counts.sum())

    def judgements_by(self, axis: str) -> Int[np.ndarray, " axis"]:
        """Number of choices of each name of an axis: those made from a set or by a chooser, or in
        which an alternative was offered."""
        if axis not in ("set", "annotator"):
            return super().judgements_by(axis)
        codes, size = self.unit_codes(axis), len(self.coords[axis])
        return np.bincount(codes, self.set_counts, size).astype(np.int64)

    def unit_codes(self, axis: str) -> Int[np.ndarray, " set"]:
        """Codes of each set along an axis whose codes are the same in all its rows.

        Parameters
        ----------
        axis : {"set", "annotator"}

        Returns
        -------
        int array, shape (set,)
        """
        if axis == self.unit:
            return np.asarray(self.unit_code)
        codes = np.zeros(self.num_units, np.int32)
        codes[np.asarray(self.group)] = np.asarray(self.codes(axis))
        return codes

    def check(self) -> None:
        """Raise unless each set has two alternatives or more, one chooser and one count, and as
        many choices as are counted; see `Grouped.check`."""
        super().check()
        group, real = np.asarray(self.group), np.asarray(self.weight, float) > 0
        size = np.bincount(group[real], minlength=self.num_units)
        number, who = self.set_counts, self.unit_codes("annotator")
        key = group[real] * max(len(self.alternatives), 1) + np.asarray(self.alternative)[real]
        wrong = {
            "alternative": np.bincount(group[real][_repeated(key)], minlength=self.num_units) > 0,
            "count": np.bincount(
                group, real & (np.asarray(self.weight, float) != number[group]), self.num_units
            )
            > 0,
            "annotator": np.bincount(
                group, np.asarray(self.annotator) != who[group], self.num_units
            )
            > 0,
            "group": (size < 2) & (number > 0),
        }
        if self.chosen is not None:
            taken = np.bincount(group, np.asarray(self.chosen, float), self.num_units)
            wrong["chosen"] = taken != number
        expected = {
            "alternative": "name each alternative of a set once",
            "count": "it must be the same in all rows of a set, but 0 in those that only pad",
            "annotator": "it must be the same in all rows of a set",
            "group": "each set must have two rows or more",
            "chosen": "it must add up to the number of choices made from the set",
        }
        for name, sets in wrong.items():
            if sets.any():
                place = int(np.flatnonzero(sets)[0])
                refuse_data(
                    name,
                    self.sets[int(self.unit_code[place])],
                    f"is wrong in this set ({int(sets.sum())} such set(s))",
                    expected[name],
                    instead="rt.Choices.from_frame(table, ...), which names the problem",
                )

    # ---------------------------------------------------------------- parts

    def unanswered(self) -> Self:
        """The sets without what was chosen, as `raters.simulate` takes them; counts stay."""
        return dataclasses.replace(self, **{self.answer: None})

    def rows(self, index: Any) -> Self:
        """The given rows in their order; all sets stay. See `Grouped.rows`."""
        part = super().rows(index)
        sizes = np.bincount(np.asarray(part.group), minlength=1)
        return dataclasses.replace(part, most=int(sizes.max(initial=1)))

    def some_outcomes(self) -> Float[np.ndarray, " offer"]:
        """Outcomes that these sets can have: all choices are of the first alternative."""
        group = np.asarray(self.group)
        first = np.append(True, group[1:] != group[:-1])
        return np.where(first, np.asarray(self.weight, float), 0.0)

    def canonical(self) -> Self:
        """The rows of each set in the order of their alternatives."""
        order = np.lexsort((np.asarray(self.alternative), np.asarray(self.group)))
        return self if (order == np.arange(len(order))).all() else self.rows(order)

    def same_question(self) -> Int[np.ndarray, " row"]:
        """Number of each row that equal alternatives of equal sets share, whoever chooses."""
        own = self.canonical()._set_keys()
        return ranks([own[np.asarray(self.group)], np.asarray(self.alternative)])

    def _set_keys(self) -> Int[np.ndarray, " set"]:
        """Number of each set that equal ones share: the same alternatives with the same
        features."""
        group, own = np.asarray(self.group), [np.asarray(self.alternative)]
        own += [] if self.features is None else [np.asarray(self.features)]
        size = np.bincount(group, minlength=self.num_units)
        place = np.arange(len(group)) - np.repeat(np.cumsum(size) - size, size)
        table = np.full((self.num_units, int(size.max(initial=1))), -1)
        table[group, place] = ranks(own)
        choosers = [] if self.chooser_features is None else [np.asarray(self.chooser_features)]
        return ranks([table, *choosers])

    def aggregate(self) -> Self:
        """Equal sets of one chooser as one set with a count, under the name of the first; the
        likelihood does not change but for a constant."""
        real = self.unpadded().canonical()
        if real.num_rows == 0:
            return real
        key = ranks([real._set_keys(), real.unit_codes("annotator")])
        _, first, place = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return real._merged(first[order], rank[place.ravel()])

    def _merged(self, first: Int[np.ndarray, " new"], place: Int[np.ndarray, " set"]) -> Self:
        """The sets `first`, each with all choices from the sets that have its `place`."""
        group = np.asarray(self.group)
        cells = self._only(first)
        size, begin = np.bincount(group), np.searchsorted(group, np.arange(self.num_units))
        start = np.searchsorted(np.asarray(cells.group), np.arange(len(first)))
        row = start[place[group]] + np.arange(len(group)) - np.repeat(begin, size)
        sums = {
            name: exact(np.bincount(row, np.asarray(column, float), cells.num_rows))
            for name, column in (("count", self.weight), (self.answer, self.chosen))
            if column is not None
        }
        return dataclasses.replace(cells, **sums)._slim()

    def questions(self) -> Self:
        """Each set once for each chooser, without what was chosen and without counts."""
        return dataclasses.replace(self.unanswered().aggregate(), count=None)

    def single(self) -> Self:
        """One set for each choice, without counts."""
        real = self.unpadded()
        if real.count is None:
            return real
        number = real.set_counts.round().astype(np.int64)
        units = np.repeat(np.arange(real.num_units), number)
        many = real._only(units)
        # The nth choice from a set is of the alternative within which n falls.
        nth = np.arange(len(units)) - np.repeat(np.cumsum(number) - number, number)
        chosen = np.asarray(many.chosen, float)
        before = np.cumsum(chosen) - chosen
        group = np.asarray(many.group)
        begin = before[np.searchsorted(group, np.arange(len(units)))]
        below = before - begin[group]
        taken = (below <= nth[group]) & (nth[group] < below + chosen)
        names = tuple(range(len(units)))
        return dataclasses.replace(many, chosen=taken.astype(np.float32), count=None, sets=names)

    def _only(self, units: Any) -> Self:
        """The given sets under new codes, with their names alone."""
        part = self.take(units)
        names = tuple(self.sets[code] for code in np.asarray(part.unit_code))
        codes = np.arange(len(names), dtype=np.int32)
        return dataclasses.replace(part, unit_code=codes, sets=names)

    def without_judges(self, names: Iterable[Any]) -> Self:
        """The choices of everybody else, from their sets."""
        stays = staying(self.annotators, names, self.judge)
        units = np.flatnonzero(stays[self.unit_codes("annotator")])
        if not len(units):
            refuse_data(
                "names",
                problem="holds all annotators who chose, so none would be left",
                expected="keep at least one who chose",
            )
        part, code = self._only(units), (np.cumsum(stays) - 1).astype(np.int32)
        kept = tuple(name for name, stay in zip(self.annotators, stays, strict=True) if stay)
        who = code[np.asarray(part.annotator)]
        return dataclasses.replace(part, annotator=who, annotators=kept)

    # ---------------------------------------------------------------- features

    @property
    def has_features(self) -> bool:
        """True if there are features of the alternatives or of the choosers."""
        return self.features is not None or self.chooser_features is not None

    @checked
    def features_of(self, like: Self) -> Self:
        """With features centred and scaled as those of other choices."""
        changes: dict[str, Any] = {}
        for names, values, centre, scale in _FEATURES:
            own, known = getattr(self, names), getattr(like, names)
            if not known:
                changes |= {names: (), values: None, centre: None, scale: None}
                continue
            if own != known:  # Their order is that of the coefficients.
                refuse_data(
                    "features" if names == "feature_names" else "choosers",
                    list(own),
                    f"differ from those of the fit ({shorten(known)})",
                    "give the same ones, in the same order",
                )
            raw = self._raw(values, centre, scale)
            known_centre, known_scale = getattr(like, centre), getattr(like, scale)
            scaled = (raw - np.asarray(known_centre)) / np.asarray(known_scale)
            changes |= {values: scaled, centre: known_centre, scale: known_scale}
        return dataclasses.replace(self, **changes)

    def _raw(self, values: str, centre: str, scale: str) -> Float[np.ndarray, "row feature"]:
        """Features in the user's units."""
        raw: np.ndarray = np.asarray(getattr(self, values)) * np.asarray(getattr(self, scale))
        return raw + np.asarray(getattr(self, centre))

    def without_features(self) -> Self:
        """Without features of alternatives and choosers."""
        none: dict[str, Any] = {}
        for names, *columns in _FEATURES:
            none |= {names: ()} | dict.fromkeys(columns)
        return dataclasses.replace(self, **none)

    # ---------------------------------------------------------------- tables

    def to_frame(self) -> pd.DataFrame:
        """The choices as a table that `from_frame` reads with ``counted=True``: ``set``,
        ``alternative``, ``annotator``, ``chosen`` where the choices are known, and the features in
        their own units."""
        real = self.unpadded()
        group = np.asarray(real.group)
        columns: dict[str, Any] = {
            "set": names_array(real.sets)[np.asarray(real.unit_code)[group]],
            "alternative": names_array(real.alternatives)[np.asarray(real.alternative)],
            "annotator": names_array(real.annotators)[np.asarray(real.annotator)],
        }
        if real.chosen is not None:
            columns["chosen"] = np.asarray(real.chosen).astype(np.int64)
        for names, values, centre, scale in _FEATURES:
            if own := getattr(real, names):
                raw = real._raw(values, centre, scale)
                raw = raw if values == "features" else raw[group]
                columns |= {name: raw[:, place] for place, name in enumerate(own)}
        return pd.DataFrame(columns)


# Names, values, centre and scale of features: of alternatives, and of choosers.
_FEATURES = (
    ("feature_names", "features", "centre", "scale"),
    ("chooser_names", "chooser_features", "chooser_centre", "chooser_scale"),
)


def _repeated(key: Int[np.ndarray, " row"]) -> Int[np.ndarray, " repeated"]:
    """Rows whose key an earlier row has."""
    order = np.argsort(key, kind="stable")
    return np.asarray(order[1:][np.diff(key[order]) == 0])
