"""True classes, features of items, and earlier records of annotators, beside the labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from raters.errors import refuse_data
from raters.errors.validation import checked, instance
from raters.judgements.grouped import Grouped
from raters.judgements.names import shorten
from raters.judgements.reading import features as feature_reading
from raters.judgements.reading import labels as label_reading
from raters.judgements.reading.columns import column_name, read_columns


class SideInformation(Grouped):
    """True classes and features of items, and earlier records of annotators, as a mixin of
    `Labels`."""

    truth: Any
    features: Any
    centre: Any
    scale: Any
    record: Any
    items: tuple[Any, ...]
    annotators: tuple[Any, ...]
    classes: tuple[Any, ...]
    feature_names: tuple[Any, ...]

    def with_truth(self, known: Any, *, item: str = "item", truth: str = "truth") -> Self:
        """The labels with the true classes that are known, in place of those known before.

        Parameters
        ----------
        known : mapping of items to classes, pandas Series with the items as its index, or table
        item, truth : str
            Columns of the table with the item and its true class. A missing class is one that is
            not known.

        Returns
        -------
        Labels

        Raises
        ------
        DataError
            When an item or a class is not one of these labels'.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"],
        ...                                "says": ["no", "yes", "yes"]},
        ...                               item="i", annotator="who", label="says")
        >>> labels.with_truth({2: "yes"}).truth.tolist()
        [-1, 1]
        """
        codes = label_reading.known_truth(known, item, truth, self.items, self.classes)
        return dataclasses.replace(
            self, truth=None if codes is None else codes[np.asarray(self.unit_code)]
        )

    def with_features(
        self,
        features: Any,
        *,
        names: Sequence[str] | None = None,
        item: str | None = None,
        like: Self | None = None,
    ) -> Self:
        """The labels with features of the items, each centred and scaled to unit variance, behind a
        column of ones.

        Parameters
        ----------
        features : array, shape (item, feature), or table
            An array has its rows in the order of `items`. A table names its items, and has a row
            for each.
        names : sequence of str, optional
            Names of the features of an array (``x1``, ``x2``, … without it); of a table, the
            columns to use (all others without it).
        item : str, optional
            Column of the table that names the items.
        like : Labels, optional
            Centre and scale as these labels were, which have the same features. For labels of new
            items that a fitted model is to judge, of which there may be one only.

        Returns
        -------
        Labels

        Raises
        ------
        DataError
            When rows and items do not match; when a feature is not a number everywhere, or is the
            same for all items.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"],
        ...                                "says": ["no", "yes", "yes"]},
        ...                               item="i", annotator="who", label="says")
        >>> labels = labels.with_features({"i": [2, 1], "length": [30.0, 10.0]}, item="i")
        >>> labels.feature_names, labels.features.tolist(), labels.centre.tolist()
        (('intercept', 'length'), [[1.0, -1.0], [1.0, 1.0]], [0.0, 20.0])
        """
        if item is None:
            values, chosen = feature_reading.feature_array(features, names, self.items)
        else:
            values, chosen = feature_reading.feature_table(features, item, names, self.items)
        if like is None:
            values, centre, scale = feature_reading.design(values, chosen, self.items)
        else:
            instance("like", like, type(self), "labels with features", "like=fitted_labels")
            values, centre, scale = feature_reading.design_like(values, chosen, self.items, like)
            chosen = like.feature_names[1:]
        values = values[np.asarray(self.unit_code)]
        return dataclasses.replace(
            self, features=values, centre=centre, scale=scale, feature_names=("intercept", *chosen)
        )

    def unlabelled(self, features: Any, *, item: str | None = None) -> Self:
        """New items that nobody has labelled, with their features: what `raters.predict`
        classifies.

        Annotators, classes and features are those of these labels, and the features are centred and
        scaled as theirs were.

        Parameters
        ----------
        features : array, shape (item, feature), or table
            In the order of the features of these labels, or a table with columns of their names.
        item : str, optional
            With a table: the column that names the items. Items of an array are numbered from 0.

        Returns
        -------
        Labels
            Without rows; ``num_items`` new items.

        Raises
        ------
        DataError
            When these labels have no features, or the new features are not those of these labels.

        Examples
        --------
        >>> import raters as rt
        >>> labels, _ = rt.datasets.label_crowd(80, 5, 3, 2, num_features=3, seed=0)
        >>> result = rt.fit(rt.Raykar(), labels, rt.PGEM(draws=0), seed=0, progress=False)
        >>> new = labels.unlabelled([[0.1, 2.0, -1.0], [1.5, 0.2, 0.3]])
        >>> rt.predict(rt.Raykar(), result, new).mean(("chain", "draw")).dims
        ('item', 'true_class')
        """
        if self.features is None:
            refuse_data(
                "features",
                problem="of these labels are missing",
                expected="add features to the labels first",
            )
        values, names = feature_reading.new_items(features, item, self.feature_names[1:])
        design, _, _ = feature_reading.design_like(values, self.feature_names[1:], names, self)
        none = np.zeros(0, np.int32)
        return dataclasses.replace(
            self,
            group=none,
            annotator=none,
            label=none,
            count=None,
            unit_code=np.arange(len(names), dtype=np.int32),
            truth=None,
            features=design,
            items=names,
            most=1,
        )

    def with_record(
        self,
        frame: Any,
        *,
        annotator: str = "annotator",
        truth: str = "truth",
        label: str = "label",
        count: str | None = None,
    ) -> Self:
        """The labels with the annotators' earlier record, in place of one given before.

        It enters as pseudo-counts in each annotator's prior: what they said of earlier items whose
        true class is known.

        Parameters
        ----------
        frame : pandas, polars or pyarrow table, or mapping of arrays
            One row for each label of an earlier item. These are other items than those of `items`.
        annotator, truth, label : str
            Columns with who gave the label, the true class of the item, and the class said.
        count : str, optional
            Column with the number of equal labels that a row stands for.

        Returns
        -------
        Labels

        Raises
        ------
        DataError
            When a class is not one of these labels', or a count is not a whole number of at least
            0.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame({"i": [1, 1, 2], "who": ["ann", "bob", "ann"],
        ...                                "says": ["no", "yes", "yes"]},
        ...                               item="i", annotator="who", label="says")
        >>> past = {"annotator": ["bob", "bob"], "truth": ["no", "yes"], "label": ["no", "no"],
        ...         "times": [8, 3]}
        >>> labels.with_record(past, count="times").record.tolist()
        [[[0.0, 0.0], [0.0, 0.0]], [[8.0, 0.0], [3.0, 0.0]]]
        """
        roles = {"annotator": annotator, "truth": truth, "label": label}
        named = {role: column_name(role, name) for role, name in roles.items()}
        columns = read_columns(frame, **named, count=count)
        return dataclasses.replace(
            self, record=label_reading.record(columns, self.annotators, self.classes)
        )

    @checked
    def features_of(self, like: Self) -> Self:
        """With features centred and scaled as those of other labels, and with their record."""
        labels = dataclasses.replace(self, record=like.record)
        if like.features is None:
            return labels.without_features()
        if self.feature_names != like.feature_names:
            refuse_data(
                "features",
                problem=f"({shorten(self.feature_names[1:])}) differ from those of the fit"
                f" ({shorten(like.feature_names[1:])})",
                expected="give the same ones, in the same order",
            )
        raw = np.asarray(self.features) * np.asarray(self.scale) + np.asarray(self.centre)
        scaled = (raw - np.asarray(like.centre)) / np.asarray(like.scale)
        return dataclasses.replace(labels, features=scaled, centre=like.centre, scale=like.scale)

    def without_features(self) -> Self:
        """Without features."""
        return dataclasses.replace(self, features=None, centre=None, scale=None, feature_names=())
