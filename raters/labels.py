"""Categorical labels: ``Labels`` holds who gave which item which label, as integer codes with the names beside them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from raters import _feature_reading, _frame, _label_reading, _reading
from raters._judgements import Judgements, check_padding, check_result, names_from_json, names_to_json, pad_to, staying
from raters.errors import DataError, DataWarning


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Labels(Judgements):
    """Labels of items by annotators: annotator k said that item i is of class j.

    Build it with `from_frame`; the constructor takes codes that are already right.

    Parameters
    ----------
    group : int array, shape (label,)
        Place of the labelled item among `unit`; ascending.
    annotator, label : int array, shape (label,)
        Codes of the annotator and of the class said. `label` is None when the answers are not known yet, as for
        `raters.simulate`.
    count : float array, shape (label,), or None
        How often the annotator gave this label to this item. None means once each.
    unit : int array, shape (unit,)
        Code of each item, in order. A part of the data has some items only, and keeps all names.
    truth : int array, shape (unit,), or None
        Code of the true class where it is known, −1 elsewhere.
    features : float array, shape (unit, feature), or None
        A column of ones for the intercept, then the features, centred and scaled.
    centre, scale : float array, shape (feature,), or None
        What the features were centred and scaled by.
    record : float array, shape (annotator, true class, label), or None
        An earlier record: how often each annotator gave each label to items of each true class.
    items, annotators, classes, feature_names : tuple
        The names, in code order.
    most : int
        The largest number of rows of an item, or more.
    even : bool
        Whether each item of a part of the data has `most` rows, those that it lacks with a count of 0, as `padded` makes it.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.Labels.from_frame(
    ...     {"text": [1, 1, 2], "who": ["ann", "bob", "ann"], "says": ["spam", "ham", "ham"]},
    ...     item="text", annotator="who", label="says",
    ... )
    >>> labels.num_items, labels.num_annotators, labels.classes
    (2, 2, ('ham', 'spam'))
    """

    group: Any
    annotator: Any
    label: Any
    count: Any
    unit: Any
    truth: Any
    features: Any
    centre: Any
    scale: Any
    record: Any
    items: tuple[Any, ...] = dataclasses.field(metadata={"static": True})
    annotators: tuple[Any, ...] = dataclasses.field(metadata={"static": True})
    classes: tuple[Any, ...] = dataclasses.field(metadata={"static": True})
    feature_names: tuple[Any, ...] = dataclasses.field(default=(), metadata={"static": True})
    most: int = dataclasses.field(default=1, metadata={"static": True})
    even: bool = dataclasses.field(default=False, metadata={"static": True})

    unit_axis: ClassVar[str] = "item"

    # ---------------------------------------------------------------- building

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        item: str,
        annotator: str,
        label: str,
        count: str | None = None,
        truth: str | None = None,
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        repeats: _label_reading.Repeats = "keep",
        aggregate: bool = True,
    ) -> Labels:
        """Read labels from a table with one row for each label that an annotator gave to an item.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
        item, annotator, label : str
            Columns that name the item, who labelled it, and the class said.
        count : str, optional
            Column with the number of equal labels that a row stands for.
        truth : str, optional
            Column with the true class of the row's item, empty where it is unknown. One row of an item is enough.
        classes : iterable, optional
            All classes in the order wanted, also those that nobody said. Without it, all labels and truths, sorted.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        repeats : {"keep", "drop", "error"}
            What to do when an annotator labels an item more than once: count every label, keep the first row (once,
            whatever its count), or refuse the table.
        aggregate : bool
            Put equal (item, annotator, label) rows together into one row with a count.

        Returns
        -------
        Labels

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values (other than `truth`); a label is none of `classes`, or there
            is one class only; an item has two true classes; a count is not a whole number; an annotator repeats a label
            under ``repeats="error"``.

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise (booleans, dates, a mixture); spaces and
        case tell names apart.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame(
        ...     {"page": [7, 7, 9], "who": ["ann", "bob", "ann"], "says": ["ham", "spam", "ham"], "gold": ["ham", None, None]},
        ...     item="page", annotator="who", label="says", truth="gold", classes=["ham", "spam", "phish"],
        ... )
        >>> labels.votes().tolist(), labels.truth.tolist()
        ([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [0, -1])
        """
        _label_reading.check_repeats(repeats)
        columns = _label_reading.columns(frame, count, item=item, annotator=annotator, label=label)
        gold = _label_reading.incomplete(frame, "truth", truth, len(columns["item"]))
        (of,), item_names = _frame.encode([columns["item"]], items, "item")
        who, annotator_names = _label_reading.annotators(columns["annotator"], annotators)
        said, true, class_names = _label_reading.classes(columns["label"], gold, classes)
        known = _label_reading.truth_by_item(of, true, item_names, class_names)
        number = _frame.counts(columns["count"]) if count is not None else None
        names = item_names, annotator_names, class_names
        keep, number = _label_reading.settle_repeats((of, who, said), names, number, repeats)
        codes = of[keep], who[keep], said[keep]
        none = None, None, None
        labels = _whole(*codes, number, known, none, None, items=item_names, annotators=annotator_names, classes=class_names)
        return labels.aggregate() if aggregate else labels

    def with_truth(self, known: Any, *, item: str = "item", truth: str = "truth") -> Labels:
        """The labels with the true classes that are known, in place of those known before.

        Parameters
        ----------
        known : mapping of items to classes, pandas Series with the items as its index, or table
        item, truth : str
            Columns of the table with the item and its true class. A missing class is one that is not known.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"], "says": ["no", "yes", "yes"]},
        ...                               item="i", annotator="who", label="says")
        >>> labels.with_truth({2: "yes"}).truth.tolist()
        [-1, 1]
        """
        found = _label_reading.known_truth(known, item, truth, self.items, self.classes)
        return dataclasses.replace(self, truth=None if found is None else found[np.asarray(self.unit)])

    def with_features(
        self, features: Any, *, names: Sequence[str] | None = None, item: str | None = None, like: Labels | None = None
    ) -> Labels:
        """The labels with features of the items, each centred and scaled to unit variance, behind a column of ones.

        Parameters
        ----------
        features : array, shape (item, feature), or table
            An array has its rows in the order of `items`. A table names its items, and has a row for each.
        names : sequence of str, optional
            Names of the features of an array (``x1``, ``x2``, … without it); of a table, the columns to use (all others
            without it).
        item : str, optional
            Column of the table that names the items.
        like : Labels, optional
            Centre and scale as these labels were, which have the same features. For labels of new items that a fitted model
            is to judge, of which there may be one only.

        Raises
        ------
        DataError
            When rows and items do not match; when a feature is not a number everywhere, or is the same for all items.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"], "says": ["no", "yes", "yes"]},
        ...                               item="i", annotator="who", label="says")
        >>> labels = labels.with_features({"i": [2, 1], "length": [30.0, 10.0]}, item="i")
        >>> labels.feature_names, labels.features.tolist(), labels.centre.tolist()
        (('intercept', 'length'), [[1.0, -1.0], [1.0, 1.0]], [0.0, 20.0])
        """
        if item is None:
            values, chosen = _feature_reading.feature_array(features, names, self.items)
        else:
            values, chosen = _feature_reading.feature_table(features, item, names, self.items)
        if like is None:
            values, centre, scale = _feature_reading.design(values, chosen, self.items, table=item is not None)
        else:
            values, centre, scale = _feature_reading.design_like(values, chosen, self.items, like)
            chosen = like.feature_names[1:]
        values = values[np.asarray(self.unit)]
        return dataclasses.replace(self, features=values, centre=centre, scale=scale, feature_names=("intercept", *chosen))

    def unlabelled(self, features: Any, *, item: str | None = None) -> Labels:
        """New items that nobody has labelled, with their features: what `raters.predict` classifies.

        Annotators, classes and features are those of these labels, and the features are centred and scaled as theirs were.

        Parameters
        ----------
        features : array, shape (item, feature), or table
            In the order of the features of these labels, or a table with columns of their names.
        item : str, optional
            With a table: the column that names the items. Items of an array are numbered from 0.

        Examples
        --------
        >>> import raters as rt
        >>> labels, _ = rt.datasets.label_crowd(80, 5, 3, 2, num_features=3, seed=0)
        >>> result = rt.fit(rt.Raykar(), labels, rt.PGEM(draws=100), seed=0, progress=False)
        >>> new = labels.unlabelled([[0.1, 2.0, -1.0], [1.5, 0.2, 0.3]])
        >>> rt.predict(rt.Raykar(), result, new).mean(("chain", "draw")).dims
        ('item', 'true_class')
        """
        if self.features is None:
            raise DataError("these labels have no features to classify new items by; add them with labels.with_features(...)")
        values, names = _feature_reading.new_items(features, item, self.feature_names[1:])
        design, _, _ = _feature_reading.design_like(values, self.feature_names[1:], names, self)
        none = np.zeros(0, np.int32)
        return dataclasses.replace(
            self,
            group=none,
            annotator=none,
            label=none,
            count=None,
            unit=np.arange(len(names), dtype=np.int32),
            truth=None,
            features=design,
            items=names,
            most=1,
        )

    def with_record(
        self, frame: Any, *, annotator: str = "annotator", truth: str = "truth", label: str = "label", count: str | None = None
    ) -> Labels:
        """The labels with the annotators' earlier record, in place of one given before.

        It enters as pseudo-counts in each annotator's prior: what they said of earlier items whose true class is known.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
            One row for each label of an earlier item. These are other items than those of `items`.
        annotator, truth, label : str
            Columns with who gave the label, the true class of the item, and the class said.
        count : str, optional
            Column with the number of equal labels that a row stands for.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"], "says": ["no", "yes", "yes"]},
        ...                               item="i", annotator="who", label="says")
        >>> past = {"annotator": ["bob", "bob"], "truth": ["no", "yes"], "label": ["no", "no"], "times": [8, 3]}
        >>> labels.with_record(past, count="times").record.tolist()
        [[[0.0, 0.0], [0.0, 0.0]], [[8.0, 0.0], [3.0, 0.0]]]
        """
        columns = _label_reading.columns(frame, count, annotator=annotator, truth=truth, label=label)
        return dataclasses.replace(self, record=_label_reading.record(columns, self.annotators, self.classes))

    # ---------------------------------------------------------------- facts

    @property
    def num_items(self) -> int:
        """Number of items, labelled or not."""
        return len(self.items)

    @property
    def num_annotators(self) -> int:
        """Number of annotators, with labels or without."""
        return len(self.annotators)

    @property
    def num_classes(self) -> int:
        """Number of classes, met in the labels or not."""
        return len(self.classes)

    @property
    def num_features(self) -> int:
        """Number of features, the intercept among them; 0 without features."""
        return len(self.feature_names)

    @property
    def num_rows(self) -> int:
        """Number of rows; see `num_labels` for the labels that they stand for."""
        return self.annotator.shape[0]

    @property
    def num_labels(self) -> int:
        """Number of labels, repeats included."""
        return self.num_rows if self.count is None else int(np.asarray(self.count).sum(dtype=np.float64))

    @property
    def num_units(self) -> int:
        """Number of items in this part of the data."""
        return self.unit.shape[0]

    @property
    def answered(self) -> bool:
        """Whether the labels are there."""
        return self.label is not None

    @property
    def item(self) -> Any:
        """Code of the item of each row, shape (label,)."""
        return self.unit[self.group]

    @property
    def weight(self) -> Any:
        """`count`, or ones, shape (label,)."""
        return jnp.ones(self.num_rows) if self.count is None else self.count

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """The names along each axis: ``item``, ``annotator``, ``true_class``, ``label``, ``feature``."""
        return {
            "item": self.items,
            "annotator": self.annotators,
            "true_class": self.classes,
            "label": self.classes,
            "feature": self.feature_names,
        }

    def votes_by_annotator(self) -> np.ndarray:
        """Number of labels by each annotator, shape (annotator,)."""
        weights = None if self.count is None else np.asarray(self.count)
        return np.bincount(np.asarray(self.annotator), weights, self.num_annotators).astype(np.int64)

    def votes_by_item(self) -> np.ndarray:
        """Number of labels of each item, shape (item,)."""
        return self.votes().sum(1).astype(np.int64)

    def votes(self) -> np.ndarray:
        """How often each item was given each label, shape (item, label)."""
        if self.label is None:
            raise DataError("these labels have no answers to count")
        cell = np.asarray(self.item).astype(np.int64) * self.num_classes + np.asarray(self.label)
        weights = None if self.count is None else np.asarray(self.count)
        size = self.num_items * self.num_classes
        return np.bincount(cell, weights, size).reshape(self.num_items, self.num_classes).astype(float)

    def to_frame(self) -> pd.DataFrame:
        """The labels as a table: ``item``, ``annotator`` and ``label`` by name, and ``count``."""
        codes = {"item": (self.items, self.item), "annotator": (self.annotators, self.annotator)}
        if self.label is not None:
            codes["label"] = self.classes, self.label
        table = {role: pd.Index(names).take(np.asarray(code)) for role, (names, code) in codes.items()}
        count = np.asarray(self.weight).astype(np.int64)
        return pd.DataFrame(table | {"count": count})[count > 0].reset_index(drop=True)

    def warn(self) -> None:
        """Warn about what these data cannot tell: items without labels, annotators without labels, classes never said."""
        total = self.votes()
        names = {
            "item(s) have no label; their class is predicted from the others'": (self.items, total.sum(1)),
            "annotator(s) gave no label and keep their prior": (self.annotators, self.votes_by_annotator()),
            "class(es) were never given as a label": (self.classes, total.sum(0)),
        }
        for sentence, (of, number) in names.items():
            if none := [name for name, count in zip(of, number, strict=True) if not count]:
                warnings.warn(f"{len(none)} {sentence}: {_frame.shorten(none)}", DataWarning, stacklevel=3)

    # ---------------------------------------------------------------- results

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], np.ndarray]]]:
        """What a result stores of the data: by group, the axes and a copy of each array; `from_result` reads it back."""
        row = ("row",)
        constant: dict[str, tuple[tuple[str, ...], Any]] = {
            "item_code": (row, self.item),
            "annotator_code": (row, self.annotator),
            "count": (row, self.count),
            "truth_code": (("item",), self.truth),
            "features": (("item", "feature"), self.features),
            "feature_centre": (("feature",), self.centre),
            "feature_scale": (("feature",), self.scale),
            "record": (("annotator", "true_class", "label"), self.record),
        }
        kept = {name: (axes, np.array(value)) for name, (axes, value) in constant.items() if value is not None}
        return {"observed_data": {"label_code": (row, np.array(self.label))}, "constant_data": kept}

    def flags(self) -> dict[str, Any]:
        """What a result stores of the data as attributes: the names."""
        names = ("items", "annotators", "classes", "feature_names")
        return {name: names_to_json(getattr(self, name)) for name in names} | {"even": int(self.even)}

    @classmethod
    def from_result(cls, result: Any) -> Labels:
        """The data that a result was fitted to."""
        check_result(result)
        constant = result["constant_data"]

        def kept(name: str) -> Any:
            return np.asarray(constant[name].values) if name in constant else None

        names = {name: names_from_json(result.attrs[name]) for name in ("items", "annotators", "classes", "feature_names")}
        label = np.asarray(result["observed_data"]["label_code"].values)
        labels = _whole(
            kept("item_code"),
            kept("annotator_code"),
            label,
            kept("count"),
            kept("truth_code"),
            (kept("features"), kept("feature_centre"), kept("feature_scale")),
            kept("record"),
            **names,
        )
        return labels._evened() if result.attrs.get("even", 0) else labels

    # ---------------------------------------------------------------- parts

    def take(self, units: Any) -> Labels:
        """The given items with their labels (a slice, or an integer index); all names are kept.

        With a traced index, and of `padded` labels, every item comes with the same number of rows, those that it lacks with a
        count of 0, so that shapes do not depend on which items are taken.
        """
        if not isinstance(units, jax.core.Tracer):
            units = np.arange(self.num_units)[units]  # also for places counted from the end
        traced = isinstance(units, jax.core.Tracer) or isinstance(self.group, jax.core.Tracer)
        xp: Any = jnp if traced else np
        group, unit = (xp.asarray(array) for array in (self.group, self.unit))
        units = xp.asarray(units)
        begin = xp.searchsorted(group, units)
        number = xp.searchsorted(group, units, side="right") - begin
        even = traced or self.even
        place = xp.arange(self.most if even else int(number.max(initial=0)))
        rows, there = begin[:, None] + place, place < number[:, None]
        new_group = xp.broadcast_to(xp.arange(len(units), dtype=group.dtype)[:, None], rows.shape)
        count = self.count
        if even:
            rows, new_group = xp.minimum(rows, self.num_rows - 1).ravel(), new_group.ravel()
            count = xp.where(there.ravel(), 1.0 if count is None else xp.asarray(count)[rows], 0.0)
        else:
            rows, new_group = rows[there], new_group[there]
            count = None if count is None else np.asarray(count)[rows]

        def of(column: Any, index: Any) -> Any:
            return None if column is None else xp.asarray(column)[index]

        return dataclasses.replace(
            self,
            group=new_group,
            annotator=of(self.annotator, rows),
            label=of(self.label, rows),
            count=count,
            unit=unit[units],
            truth=of(self.truth, units),
            features=of(self.features, units),
        )

    def chunks(self, size: int) -> Iterator[Labels]:
        """The data in one piece: an item's labels stay together, and pieces of many shapes would each be compiled for."""
        yield self

    def without_annotators(self, names: Iterable[Any]) -> Labels:
        """The labels by everyone else. The items and classes stay; the annotators named are gone.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"], "says": [0, 1, 1]},
        ...                               item="i", annotator="who", label="says")
        >>> labels.without_annotators(["bob"]).annotators
        ('ann',)
        """
        stays = staying(self.annotators, names)
        keep = stays[np.asarray(self.annotator)]
        if not self.votes_by_annotator()[stays].any():
            raise DataError("dropping these annotators would leave no label; keep at least one who gave some")
        code = (np.cumsum(stays) - 1).astype(np.int32)
        return dataclasses.replace(
            self,
            group=np.asarray(self.group)[keep],
            annotator=code[np.asarray(self.annotator)[keep]],
            label=None if self.label is None else np.asarray(self.label)[keep],
            count=None if self.count is None else np.asarray(self.count)[keep],
            record=None if self.record is None else np.asarray(self.record)[stays],
            annotators=tuple(name for name, stay in zip(self.annotators, stays, strict=True) if stay),
        )

    def without_outcomes(self) -> Labels:
        """The questions without the answers, as `raters.simulate` takes them: a row with a count becomes so many rows."""
        rows = np.arange(self.num_rows)
        if self.count is not None:
            rows = np.repeat(rows, np.asarray(self.count).astype(int))
        group, annotator = np.asarray(self.group)[rows], np.asarray(self.annotator)[rows]
        most = int(np.bincount(group, minlength=1).max(initial=1))
        return dataclasses.replace(self, group=group, annotator=annotator, label=None, count=None, most=most, even=False)

    def with_outcomes(self, outcomes: np.ndarray) -> Labels:
        """These questions with the code of a label for each row."""
        return dataclasses.replace(self, label=np.asarray(outcomes, np.int32))

    def padded(self, rows: int) -> Labels:
        """The same labels in so many rows: those added are copies of the last one with a count of 0.

        A fit does not see them. Functions are compiled once for each number of rows, so data that grow, as in a campaign, are
        fitted faster where their number of rows is one of a few, such as the powers of two; `most` becomes one too. The
        result of a fit keeps the rows added; `unpadded` and `aggregate` leave them out.

        Examples
        --------
        >>> import raters as rt
        >>> labels, _ = rt.datasets.label_crowd(20, 5, 3, seed=0)
        >>> labels.padded(64).num_rows, labels.padded(64).num_labels
        (64, 60)
        """
        there = self.num_rows
        check_padding(rows, there)
        if not there and not (self.num_units and self.num_annotators):
            raise DataError("padding without labels needs the names of an item and an annotator")
        real = np.arange(rows) < there

        def more(column: Any) -> Any:
            if column is None:
                return None
            return np.zeros(rows, np.int32) if not there else np.asarray(column)[np.minimum(np.arange(rows), there - 1)]

        count = np.ones(max(there, 1)) if self.count is None else self.count
        found = dataclasses.replace(
            self,
            group=more(self.group),
            annotator=more(self.annotator),
            label=more(self.label),
            count=np.where(real, more(count), 0.0).astype(np.float32),
        )
        return found._evened()

    def _evened(self) -> Labels:
        """With `most` as a power of two that the rows that count keep to."""
        number = np.bincount(np.asarray(self.group)[np.asarray(self.weight) > 0], minlength=1).max()
        return dataclasses.replace(self, most=pad_to(int(number), least=4), even=True)

    def unpadded(self) -> Labels:
        """The labels without rows of count 0."""
        if self.count is None or (not self.even and (np.asarray(self.count) > 0).all()):
            return self
        keep = np.asarray(self.count) > 0
        group, count = np.asarray(self.group)[keep], np.asarray(self.count)[keep]
        return dataclasses.replace(
            self,
            group=group,
            annotator=np.asarray(self.annotator)[keep],
            label=None if self.label is None else np.asarray(self.label)[keep],
            count=None if np.all(count == 1) else count,
            most=int(np.bincount(group, minlength=1).max(initial=1)),
            even=False,
        )

    def aggregate(self) -> Labels:
        """Equal (item, annotator, label) rows as one row with a count, sorted; the likelihood does not change. Rows of count 0
        are left out."""
        if self.unpadded() is not self:
            return self.unpadded().aggregate()
        if self.num_rows == 0:
            return self
        codes = [np.asarray(code) for code in (self.group, self.annotator, self.label) if code is not None]
        sizes = (self.num_units, self.num_annotators, self.num_classes)[: len(codes)]
        single = self.count is None or bool(np.all(np.asarray(self.count) == 1))
        codes, _, count = _reading.cells(codes, sizes, None, None if single else np.asarray(self.count))
        return dataclasses.replace(
            self,
            group=codes[0],
            annotator=codes[1],
            label=codes[2] if len(codes) > 2 else None,
            count=None if np.all(count == 1) else count,
            most=int(np.bincount(codes[0]).max(initial=1)),
        )


def _whole(item, annotator, label, count, truth, features, record, *, items, annotators, classes, feature_names=()) -> Labels:
    """Labels of all items, their rows sorted by item. `features` are the three arrays that belong together."""
    order = np.argsort(item, kind="stable")
    number = np.bincount(item, minlength=len(items))
    values, centre, scale = features
    return Labels(
        group=np.asarray(item, np.int32)[order],
        annotator=np.asarray(annotator, np.int32)[order],
        label=None if label is None else np.asarray(label, np.int32)[order],
        count=None if count is None else np.asarray(count, np.float32)[order],
        unit=np.arange(len(items), dtype=np.int32),
        truth=None if truth is None else np.asarray(truth, np.int32),
        features=values,
        centre=centre,
        scale=scale,
        record=record,
        items=items,
        annotators=annotators,
        classes=classes,
        feature_names=feature_names,
        most=int(number.max(initial=1)),
    )
