"""Categorical labels: who gave which item which label, as integer codes with the names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from raters.errors import DataError, refuse_data
from raters.errors.validation import boolean, checked, is_list, one_of
from raters.judgements import names as naming
from raters.judgements import row_columns
from raters.judgements.answers import Answers
from raters.judgements.connection import judges_by_part, warn_of_parts
from raters.judgements.counts import Codes
from raters.judgements.grouped import Grouped
from raters.judgements.names import Names
from raters.judgements.reading import columns as reading
from raters.judgements.reading import features as feature_reading
from raters.judgements.reading.columns import Column, read_columns
from raters.judgements.roles import number_of, of_axes, same_as, static

Repeats = Literal["keep", "drop", "error"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Labels(Grouped, Answers):
    """Labels of items by annotators: annotator k said that item i is of class j.

    Build it with `from_frame`; the constructor takes codes that are already right.

    Parameters
    ----------
    group : int array, shape (label,)
        Place of the labelled item among `unit_code`; ascending.
    annotator, label : int array, shape (label,)
        Codes of the annotator and of the class said. `label` is None when the answers are not known
        yet, as for `raters.simulate`.
    count : float array, shape (label,), or None
        How often the annotator gave this label to this item. None means once each.
    unit_code : int array, shape (unit,)
        Code of each item, in order. A part of the data has some items only, and keeps all names.
    truth : int array, shape (unit,), or None
        Code of the true class where it is known, −1 elsewhere.
    features : float array, shape (unit, feature), or None
        A column of ones for the intercept, then the features, centred and scaled.
    centre, scale : float array, shape (feature,), or None
        What the features were centred and scaled by.
    record : float array, shape (annotator, true class, label), or None
        An earlier record: how often each annotator gave each label to items of each true class.
    items, annotators, classes, feature_names, families : tuple
        The names, in code order.
    most : int
        The largest number of rows of an item, or more.
    even : bool
        Whether each item of a part of the data has `most` rows, those that it lacks with a count of
        0, as `padded` makes it.
    family : int array, shape (annotator,), or None
        Code of each annotator's family, −1 for none: annotators that share a base model, an
        instruction or a desk, and so may make the same mistakes.
    columns : float array, shape (label, column), or None
        Other columns of the rows, such as times; of text, codes of its levels.
    column_names, column_sizes, column_levels : tuple
        Names of these columns, the number of levels of each (0 of numbers), and all levels.

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
    unit_code: Any = of_axes("unit")
    truth: Any = of_axes("unit")
    features: Any = of_axes("unit", "feature")
    centre: Any = of_axes("feature")
    scale: Any = of_axes("feature")
    record: Any = of_axes("annotator", "true_class", "label")
    items: tuple[Any, ...] = static()
    annotators: tuple[Any, ...] = static()
    classes: tuple[Any, ...] = static()
    feature_names: tuple[Any, ...] = static(())
    most: int = static(1, derived=True)
    even: bool = static(False)
    family: Any = of_axes("annotator", default=None)
    families: tuple[Any, ...] = static(())
    columns: Any = of_axes("row", "column", default=None)
    column_names: tuple[str, ...] = static(())
    column_sizes: tuple[int, ...] = static(())
    column_levels: tuple[Any, ...] = static(())

    axes = {
        "unit_code": "item",
        "annotator": "annotator",
        "label": "label",
        "truth": "true_class",
        "family": "family",
    }
    names = {
        "item": "items",
        "annotator": "annotators",
        "true_class": "classes",
        "label": "classes",
        "feature": "feature_names",
        "family": "families",
        "column": "column_names",
    }
    answer = "label"
    known = "truth"
    row = "row"
    unit = "item"
    standardised = {"features": feature_reading.OF_ITEMS}

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
        family: str | None = None,
        features: Sequence[str] = (),
        columns: Sequence[str] | Mapping[str, str] | None = None,
        classes: Iterable[Any] | None = None,
        items: Iterable[Any] | None = None,
        annotators: Iterable[Any] | None = None,
        repeats: Repeats = "keep",
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
            Column with the true class of the row's item, empty where it is unknown. One row of an
            item is enough.
        family : str, optional
            Column with the family of the row's annotator, such as the base model of an LLM judge,
            empty for an annotator without one. One row of an annotator is enough.
        features : sequence of str
            Columns with features of the row's item, the same in all of its rows; see
            `with_features`.
        columns : sequence of str, or mapping, optional
            Further columns, such as the time of a label or the order in which two answers were
            shown, for `raters.judges`; a mapping from such a name to the column.
        classes : iterable, optional
            All classes in the order wanted, also those that nobody said. Without it, all labels and
            truths, sorted.
        items, annotators : iterable, optional
            All names in the order wanted, also of those that the table does not mention.
        repeats : {"keep", "drop", "error"}
            What to do when an annotator labels an item more than once: count every label, keep the
            first row (once, whatever its count), or refuse the table.
        aggregate : bool
            Put equal (item, annotator, label) rows together into one row with a count.

        Raises
        ------
        DataError
            When a column is missing, empty or has missing values (other than `truth` and
            `family`); a label is none of `classes`, or there is one class only; an item has two
            true classes, or an annotator two families; a count is not a whole number; an annotator
            repeats a label under ``repeats="error"``.

        Notes
        -----
        Names are whole numbers when all names in a role are, and text otherwise (booleans, dates, a
        mixture); spaces and case tell names apart.

        Examples
        --------
        >>> import raters as rt
        >>> labels = rt.Labels.from_frame(
        ...     {"page": [7, 7, 9], "who": ["ann", "bob", "ann"], "says": ["ham", "spam", "ham"],
        ...      "gold": ["ham", None, None]},
        ...     item="page", annotator="who", label="says", truth="gold",
        ...     classes=["ham", "spam", "phish"],
        ... )
        >>> labels.votes().tolist(), labels.truth.tolist()
        ([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [0, -1])
        """
        one_of("repeats", repeats, get_args(Repeats))
        boolean("aggregate", aggregate)
        roles = {"item": item, "annotator": annotator, "label": label}
        others: dict[str, Any] = {"count": count, "truth": truth, "family": family}
        more, further = row_columns.named(columns)
        described = feature_reading.distinct(features, "features")
        several = {"columns": further, "features": described}
        table = read_columns(frame, roles, several=several, empty=("truth", "family"), **others)
        gold = table.get("truth")
        gold = gold if gold is not None and gold.values else None
        of, item_names = table.codes("item", items)
        who, annotator_names = table.annotators(annotators, "gave one label")
        given, true, class_names = _classes(table["label"], gold, classes)
        known = None
        if gold is not None and true is not None:
            known = reading.one_each(of, gold, true, item_names).astype(np.int32)
        of_annotator, family_names = table.codes("family")
        if family_names:
            family_codes = reading.one_each(who, table["family"], of_annotator, annotator_names)
            of_annotator = family_codes.astype(np.int32)
        number, keep = table.counts(), np.ones(len(of), bool)
        if repeats != "keep":
            again = reading.repeated(of, who)
            if repeats == "error":
                wrong = again | (np.asarray(0 if number is None else number) > 1)
                row = int(np.argmax(wrong))
                problem = f"does not allow that annotator {annotator_names[who[row]]!r} labels item"
                problem += f" {item_names[of[row]]!r} more than once,"
                expected = "'keep' counts every label, 'drop' keeps the first"
                reading.refuse_where("repeats", wrong, problem, expected)
            number, keep = None, ~again
        fields = row_columns.fields([one.rows(keep) for one in table.lists["columns"]], more)
        number = None if number is None or np.all(number == 1) else number
        rows = {"annotator": who[keep], "label": given[keep], "count": number}
        labels = cls.of_all(
            of[keep],
            rows | {"columns": fields.pop("columns")},
            truth=known,
            **dict.fromkeys(("features", "centre", "scale", "record")),
            items=item_names,
            annotators=annotator_names,
            classes=class_names,
            family=of_annotator if family_names else None,
            families=family_names,
            **fields,
        )
        if described:
            values = np.full((len(item_names), len(described)), np.nan)
            for at, column in enumerate(table.lists["features"]):
                numbers = reading.one_each(of, column, reading.read_numbers(column), item_names)
                values[np.unique(of), at] = numbers[np.unique(of)]
            labels = labels.with_features(values, names=described)
        return labels.aggregate() if aggregate else labels

    # ---------------------------------------------------------------- facts

    num_classes = number_of("classes", "Number of classes, met in the labels or not.")

    num_features = number_of("feature_names", "Number of features, the intercept among them.")

    num_families = number_of("families", "Number of families of annotators, where any are known.")

    num_labels = same_as("num_judgements", "Number of labels, repeats included.")

    @property
    def item(self) -> Any:
        """Code of the item of each row, shape (label,)."""
        return self.codes("item")

    def votes(self) -> Float[np.ndarray, "item label"]:
        """Number of times that each item was given each label."""
        if self.label is None:
            raise DataError("these labels have no answers to count")
        return self._answer_counts(self.item, self.num_items)

    def vote_shares(self) -> Float[np.ndarray, "unit class"]:
        """Return the share of each class among an item's labels."""
        votes = self._answer_counts(self.group, self.num_units)
        shares: np.ndarray = np.where(votes.sum(1, keepdims=True) > 0, votes, 1.0)
        shares /= shares.sum(1, keepdims=True)
        if self.truth is not None:
            known = np.asarray(self.truth) >= 0
            shares[known] = np.eye(self.num_classes)[np.asarray(self.truth)[known]]
        return shares

    def to_frame(self) -> pd.DataFrame:
        """The labels as a table: ``item``, ``annotator`` and ``label`` by name, and ``count``."""
        real = self.rows(np.asarray(self.weight) > 0)
        table = super(Labels, real).to_frame()
        if self.family is not None:
            table["family"] = _named(self.families, np.asarray(real.codes("family")))
        for name in self.column_names:
            table[name] = row_columns.written(real, name)
        if self.truth is not None:
            table["truth"] = _named(self.classes, np.asarray(self.truth)[np.asarray(real.group)])
        return table

    def warn(self) -> None:
        """Warn about what these data cannot tell: names without labels, classes unsaid."""
        total = self.votes()
        silent = self.judgements_by("annotator") == 0
        without = "item(s) have no label; their class is predicted from the others'"
        sentences = {
            without: (self.items, total.sum(1) == 0),
            "annotator(s) gave no label and keep their prior": (self.annotators, silent),
            "class(es) were never given as a label": (self.classes, total.sum(0) == 0),
        }
        naming.warn_of_each(sentences)
        parts = [part for part in judges_by_part(self) if len(part) > 1]
        real = np.asarray(self.weight) > 0
        pairs = pd.DataFrame({"of": self.group, "by": self.annotator})[real].drop_duplicates()
        is_comparable = self.num_known or pairs["of"].duplicated().any()
        if self.num_labels and not is_comparable:
            naming.warn_data(
                "no item has labels by two annotators, and no true class is known, so that nothing"
                " tells right labels from wrong ones: who is right is said by the prior alone"
            )
        else:
            alone = "Who is right in one of them rests on that part alone; add labels across, or"
            warn_of_parts(self, parts, f"{alone} true classes in each")

    # ---------------------------------------------------------------- side information

    def with_truth(self, known: Any, *, item: str = "item", truth: str = "truth") -> Self:
        """The labels with the true classes that are known, in place of those known before.

        Parameters
        ----------
        known : mapping of items to classes, pandas Series with the items as its index, or table
        item, truth : str
            Columns of the table with the item and its true class. A missing class is one that is
            not known.

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
        codes = known_truth(known, item, truth, self.items, self.classes)
        return replace(self, truth=None if codes is None else codes[np.asarray(self.unit_code)])

    def with_features(
        self, features: Any, *, names: Sequence[str] | None = None, item: str | None = None
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
        values, chosen = feature_reading.features_of(features, item, names, self.items)
        fields = feature_reading.design(values, chosen, self.items)
        fields["features"] = fields["features"][np.asarray(self.unit_code)]
        return replace(self, **fields)

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
            expected = "add features to the labels first"
            refuse_data("features", problem="of these labels are missing", expected=expected)
        items: Names = tuple(range(len(features) if is_list(features) else 0))
        if item is not None:
            _, items = read_columns(features, {"item": item}).codes("item")
        chosen = self.feature_names[1:]
        values = feature_reading.features_of(features, item, chosen, items)[0].astype(np.float64)
        feature_reading.check_finite(values, chosen, items)
        raw = np.insert(values, 0, 1.0, axis=1)
        scaled = (raw - np.asarray(self.centre)) / np.asarray(self.scale)
        fields: dict[str, Any] = {"features": scaled.astype(np.asarray(self.features).dtype)}
        fields |= {"items": items, "unit_code": np.arange(len(items), dtype=np.int32)}
        return replace(self.rows(slice(0)), **fields, count=None, truth=None, most=1)

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
        columns = read_columns(frame, roles, count=count)
        advice = "leave these rows out, or name all of them when labels are read"
        who = reading.place(columns["annotator"], self.annotators, "annotators", advice)
        both = columns["truth"], columns["label"]
        given = [reading.place(column, self.classes, "classes", advice) for column in both]
        counts, size = columns.counts(), self.num_classes
        record = np.zeros((self.num_annotators, size, size))
        np.add.at(record, (who, *given), 1.0 if counts is None else counts)
        return replace(self, record=record)

    @checked
    def features_of(self, like: Self) -> Self:
        """With features centred and scaled as those of other labels, and with their record."""
        return replace(super().features_of(like), record=like.record)


def _named(names: tuple[Any, ...], codes: Codes) -> pd.Series:
    """Names behind codes, None for −1."""
    # Of objects: beside an empty cell pandas would make floats of whole numbers.
    return pd.Series([names[code] if code >= 0 else None for code in codes], dtype=object)


# ---------------------------------------------------------------- reading


def _classes(
    label: Column, truth: Column | None, known: Iterable[Any] | None
) -> tuple[Codes, Codes | None, Names]:
    """Codes of the labels and of the truths, and the names of all classes, two or more."""
    groups = [label.values] + ([] if truth is None else [truth.values])
    if known is None:
        _check_truths(*naming.alike(groups))
        names = naming.in_order(naming.alike(groups))
        if len(names) > max(50, len(label) / 2):
            problem = f"holds {len(names):,} different labels in {len(label):,} rows"
            problem += f" ({naming.shorten(names, 3)})"
            label.refuse(problem, "give a column of classes, or name all classes")
    else:
        listed = naming.name_list(known, "classes", "classes=['no', 'yes']", ordered=True)
        names = tuple(naming.alike([*groups, listed])[-1])
    if len(names) < 2:
        problem = f"are one only: {', '.join(map(repr, names)) or 'none'}"
        expected = "a label is a choice between two or more; name all classes, also those that"
        refuse_data("classes", problem=problem, expected=f"{expected} nobody said")
    naming.check_once(names, "classes")
    naming.warn_of_near(names, "classes", as_numbers=True)
    advice = "correct it, or name it in `classes` as well"
    codes = reading.place(label, names, "classes", advice)
    true = None if truth is None else reading.place(truth, names, "classes", advice)
    return codes, true, names


def _check_truths(labels: Sequence[Any], truths: Sequence[Any] = ()) -> None:
    """Raise for a true class that nobody said, and that differs by its spelling from a label."""
    by_meaning = {naming.meaning(naming.name_text(name)): name for name in labels}
    for name in set(truths) - set(labels):
        if (meant := by_meaning.get(naming.meaning(naming.name_text(name)))) is not None:
            near = naming.ascii_shown(naming.name_text(meant))
            problem = f"is no label, and is spelled nearly as {near}"
            expected = "spell them alike; if they are two classes, name all classes"
            line = f"classes=[{name!r}, {meant!r}, ...]"
            refuse_data("truth", name, problem, expected, instead=line)


def known_truth(
    table: Any, item: str, truth: str, items: Names, classes: Names
) -> Int[np.ndarray, " item"] | None:
    """True class of each item, −1 if unknown, from a table of two columns or a mapping."""
    if isinstance(table, pd.Series) or (
        isinstance(table, Mapping) and not any(map(reading.is_column, table.values()))
    ):
        pairs = list(table.items())
        table = {name: [pair[end] for pair in pairs] for end, name in enumerate((item, truth))}
    elif not (isinstance(table, Mapping) or hasattr(table, "columns") or hasattr(table, "schema")):
        # The parameter is called otherwise where the truths are those of an audit.
        expected = f"give a mapping of items to classes, or a table with columns {item} and {truth}"
        line = "{'page 1': 'spam'}"
        refuse_data("known", table, "is no set of known classes", expected, instead=line)
    columns = read_columns(table, {"item": item, "truth": truth}, empty=("truth",))
    gold = columns["truth"]
    if not gold.values:
        return None
    named = columns["item"].only(gold.code >= 0)
    advice = "leave them out, or name all items when labels are read"
    code = reading.place(named, items, "items", advice)
    true = reading.place(gold, classes, "classes", "name all classes when labels are read")
    return reading.one_each(code, gold, true, items)
