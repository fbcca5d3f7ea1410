"""Kinds of judgement as data, and the parts of a report that a kind contributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from raters.errors import SettingError
from raters.errors.validation import check_fields
from raters.judgements.base import Judgements
from raters.judgements.together import Together
from raters.model import Model

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from raters.auditing.audit import Audit
    from raters.auditing.calibration import Calibration
    from raters.checking.discrepancies import Discrepancy
    from raters.program import Program

Form = Literal["name", "text", "whole", "number", "percent", "interval", "range"]

# An optional function.
_MAYBE: Any = Callable | None

# A key names a class of the style sheet.
_KEY = re.compile(r"[a-z][a-z0-9_-]*")


class Words(NamedTuple):
    """Words for one judgement and for several.

    Attributes
    ----------
    one, many : str
        Such as ``"vote"`` and ``"votes"``.
    """

    one: str
    many: str


@dataclass(frozen=True)
class Quantities:
    """Quantities of each judge for an audit.

    Parameters
    ----------
    values : mapping
        Draws of each quantity, shape (draw, judge): the audit gives their means and intervals. The
        one called `judged` is compared with the threshold.
    judged : str
    columns : mapping
        Further columns of the table, shape (judge,), such as probabilities of events.
    tables : mapping
        Further tables, for `raters.auditing.Audit.tables`.
    """

    values: Mapping[str, np.ndarray]
    judged: str
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    tables: Mapping[str, xr.Dataset] = field(default_factory=dict)


class AuditLimits(NamedTuple):
    """Limits that an audit is asked for.

    Attributes
    ----------
    threshold : float
        Value of the judged quantity below which a judge is not wanted.
    level : float
        Posterior probability of intervals.
    margin : float
        Largest distance from the value of guessing that counts as guessing.
    """

    threshold: float
    level: float
    margin: float


@dataclass(frozen=True)
class Column:
    """One column of a table in a report.

    Parameters
    ----------
    name : str
        Key of the value in each row. The forms ``"interval"`` and ``"range"`` also read the keys
        ``f"{name}_low"`` and ``f"{name}_high"``.
    heading : str
    form : str
        ``"name"`` (heading of the row), ``"text"``, ``"whole"``, ``"number"``, ``"percent"``,
        ``"interval"`` (a number drawn with its interval, all rows on one scale), or ``"range"``
        (whole numbers: the two ends, and before them the value where the rows have it).
    meaning : str
        Sentence that explains the column to a reader who does not know the model. ``{margin}`` in
        it stands for the margin of the audit.
    marks : tuple of float
        Values marked on the scale of an interval.
    """

    name: str
    heading: str
    form: Form = "text"
    meaning: str = ""
    marks: tuple[float, ...] = (0.0,)


@dataclass(frozen=True)
class Table:
    """Table of a section of a report.

    Parameters
    ----------
    key : str
        Short name in lower case, such as ``"ranking"``.
    caption : str
    columns : tuple of Column
    rows : sequence of mapping
        Plain values by the names of the columns, those that matter most first.
    heading : str
        Heading above the table, where a section has several.
    num_open : int
        Rows that a page shows at once; the others are folded away.
    both_ends : bool
        True if the last rows matter as much as the first, as in a ranking. A terminal that cannot
        show all rows then shows those of both ends.
    """

    key: str
    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[Mapping[str, Any]]
    heading: str = ""
    num_open: int = 10
    both_ends: bool = False

    def __post_init__(self) -> None:
        _check_key(self.key)


@dataclass(frozen=True)
class Matrix:
    """Small matrix of probabilities, such as one annotator's confusion matrix.

    Parameters
    ----------
    title : str
    rows, columns : tuple of str
    values : array, shape (row, column)
        Probabilities.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True)
class Section:
    """Part of a report that only one kind of judgement has.

    Parameters
    ----------
    key : str
        Short name in lower case, such as ``"items"``: the section's name in the facts of a report.
    title : str
        Heading.
    sentence : str
        Main finding in words.
    counts : mapping of str to int
        Numbers shown in a line below the sentence.
    tables : tuple of Table
    matrices : tuple of Matrix
        Matrices with the same rows and columns, shown side by side.
    facts : mapping
        Further plain values for the facts of a report, by name.
    files : mapping
        Tables and figures that ``raters audit`` writes: from the name of a file to what writes it,
        ``write(path)``.
    limits : tuple of str
        Sentences about what a verdict does not say, for the end of the page.
    headline : str
        Part of `sentence` that the first lines of a page repeat.
    """

    key: str
    title: str
    sentence: str
    counts: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    headline: str = ""

    def __post_init__(self) -> None:
        _check_key(self.key)
        own = {"title", "sentence", "counts", "tables", "matrices"}
        if taken := sorted(own & set(self.facts)):
            raise SettingError(
                parameter="facts",
                value=taken,
                problem="are names of a section's other parts",
                expected="take other names",
            )


def _check_key(key: str) -> None:
    if not (isinstance(key, str) and _KEY.fullmatch(key)):
        raise SettingError(
            parameter="key",
            value=key,
            expected="it must be lower-case letters, digits, - and _, such as 'items'",
        )


@dataclass(frozen=True)
class AuditContext:
    """Everything that a section of a report can be made from.

    Attributes
    ----------
    program : Program
        The model on the data that were fitted.
    result : xarray.DataTree
    audit : Audit or None
        None for a model that takes all judges as alike.
    level : float
        Posterior probability of intervals.
    dropped : xarray.DataTree or None
        Result of the fit without those that the audit flags, where there is one.
    """

    program: Program[Any]
    result: xr.DataTree
    audit: Audit | None
    level: float
    dropped: xr.DataTree | None = None


@dataclass(frozen=True)
class Reader:
    """Way of reading judgements from a table.

    Parameters
    ----------
    read : callable
        ``read(frame, *, role=column, ...)`` gives the judgements. Its keyword parameters are the
        columns and settings of the command line.
    shapes : tuple of tuple of str
        Roles that a table must have, one tuple for each shape of table; by default the keyword
        parameters that have no default.
    steps : tuple of callable
        What follows: ``step(data, frame, *, ...)`` gives the data again. Keyword parameters that
        `read` has too have its values; the others are further options.
    may_be_empty : tuple of str
        Roles whose columns need not have a value in every row.
    bad_rows : callable, optional
        Rows that are complete and hold no judgement: ``bad_rows(frame, columns)``, with the names
        of the columns by role, gives the reason and those rows as a boolean array.
    part_of : str
        Role that names the judgement that a row is a part of, where a judgement has several rows:
        without one of them it is left out.
    on_request : str
        Of a table that another kind reads with less loss, what this reading costs, as a sentence
        without a full stop: it is read so, and the sentence noted, only where this kind, or a model
        of it, is named.
    """

    read: Callable[..., Judgements]
    shapes: tuple[tuple[str, ...], ...] = ()
    steps: tuple[Callable[..., Any], ...] = ()
    may_be_empty: tuple[str, ...] = ()
    bad_rows: Callable[[Any, Mapping[str, str]], tuple[str, np.ndarray]] | None = None
    part_of: str = ""
    on_request: str = ""

    def __post_init__(self) -> None:
        check_fields(
            self,
            read=Callable,
            shapes=tuple,
            steps=tuple,
            may_be_empty=tuple,
            bad_rows=_MAYBE,
            part_of=str,
            on_request=str,
        )


@dataclass(frozen=True)
class Truths:
    """Known truths of one kind of judgement, and statements about the truth that allow for mistakes
    that a crowd makes together.

    Parameters
    ----------
    calibrate : callable
        For `raters.calibrate` and audits: ``calibrate(program, result, gold, reference, level,
        seed)`` gives a `raters.auditing.Calibration`.
    number : callable
        ``number(data, gold)``, how many truths are known by what a user gives as `gold`;
        `raters.errors.DataError` for truths of other things than the data are about.
    columns : tuple of str
        Columns that a table of known truths may have.
    answer : str
        The one of them that holds the truth, to be filled in.
    classes : callable, optional
        For questions and rules to stop by: ``classes(program, draws, share, chances)`` gives
        calibrated probabilities of the latent class of each unit under each draw, from the model's,
        averaged over the draws with their shares. Without it they are the model's own.
    """

    calibrate: Callable[..., Calibration]
    number: Callable[[Any, Any], int]
    columns: tuple[str, ...]
    answer: str
    classes: Callable[..., np.ndarray] | None = None

    def __post_init__(self) -> None:
        check_fields(self, calibrate=Callable, number=Callable, columns=tuple, classes=_MAYBE)
        if self.answer not in self.columns:
            raise SettingError(
                parameter="answer",
                value=self.answer,
                expected=f"it must be one of the columns ({', '.join(map(str, self.columns))})",
            )


@dataclass(frozen=True)
class Kind:
    """One kind of judgement, as data.

    Parameters
    ----------
    data : type
        Container: a subclass of `raters.judgements.Judgements`.
    readers : tuple of Reader
        Ways of reading a table; the command line chooses by the columns given.
    models : tuple of type
    default : Model[Any]
        Model of the command line where none is named.
    words : Words
    questions : callable, optional
        Everything that can be asked, as judgements without outcomes: ``questions(data, **options)``
        with keyword options of its own, such as ``items=None`` (names that questions are restricted
        to, by the field that holds them), ``again``, ``limit`` and ``seed``; `raters.Candidates.of`
        and the command line give those that it has, and restrict the rest themselves. Without it
        each combination of names along the axes of the question that nobody has answered, where
        each axis has one column and there are no numbers; of other questions, those that the data
        ask, put to each judge.
    quantities : callable, optional
        Quantities of an audit: ``quantities(program, result, limits)``. Without it every site that
        has one entry for each judge is a quantity, and the first of them is judged.
    truths : Truths, optional
        Known truths, and statements about the truth. Without it an audit states the model's own
        numbers, and takes no known truths.
    threshold : float, optional
        Value of the judged quantity below which a judge is not worth keeping. Without it an audit
        has to be given one.
    columns : tuple of Column
        Columns of the audit's table that a report shows, with their meaning; one whose name is not
        in the table is left out. Without them, or without the judged quantity among them, that
        quantity comes first, and every other number of the table follows.
    reason : callable, optional
        Reason for a verdict of ``drop`` or ``review`` in a few words, from the judge's row of the
        audit's table: ``reason(row)``. Without it, the probability that the judged quantity is
        below the threshold. Where the table has a column ``p_adversarial``, the probability that a
        judge is wrong more often than chance, a report also asks for the instructions to be
        checked.
    sections : tuple of callable
        Parts that ``raters audit`` prints and a report adds, in this order: ``section(context)``
        gives a `Section`, or None where there is nothing to say.
    discrepancies : tuple of raters.checking.discrepancies.Discrepancy
        Measures of how far judgements are from a model, for `raters.check`. Without them, those
        that make sense for every kind.
    needs : mapping
        Roles without which a model cannot be fitted, by its class, or by the name of its setting.
    implies : mapping
        Settings of readers, and of what makes questions, that follow on the command line from a
        setting of a model unless they are given: ``{"ties": {"ties": "keep"}}``.
    name : str
        Name of the kind, such as ``"comparisons"``: that of the container in lower case unless it
        is given.
    agreement : callable, optional
        Agreement of the judges, for `raters.agreement`: ``agreement(data, level, metric,
        by_class)`` gives a table of statistics. Without it, the statistics of answers that are
        names or sides of pairs.
    by_crowd : bool
        Whether the judged quantity says how closely a judge agrees with the others, so that without
        known truths nobody is dropped for it. Of a kind with `truths` it does.
    lowest : str
        Those of whom the judged quantity is lowest, in words: ``"least trusted"``, or ``"least
        able"``.
    unjudged : str
        Sentence that says why no judge of this kind is right or wrong, in place of an audit; empty
        for kinds whose judges are audited.
    """

    data: type[Judgements]
    readers: tuple[Reader, ...]
    models: tuple[type[Model[Any]], ...]
    default: Model[Any]
    words: Words = Words("judgement", "judgements")
    questions: Callable[..., Judgements] | None = None
    quantities: Callable[[Program[Any], xr.DataTree, AuditLimits], Quantities] | None = None
    truths: Truths | None = None
    threshold: float | None = None
    columns: tuple[Column, ...] = ()
    reason: Callable[[Mapping[str, Any]], str] | None = None
    sections: tuple[Callable[[AuditContext], Section | None], ...] = ()
    discrepancies: tuple[Discrepancy, ...] = ()
    needs: Mapping[type[Model[Any]] | str, tuple[str, ...]] = field(default_factory=dict)
    implies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    name: str = ""
    agreement: Callable[[Any, float, str | None, bool], pd.DataFrame] | None = None
    by_crowd: bool = False
    lowest: str = "least trusted"
    unjudged: str = ""

    def implied(self, model: Model[Any]) -> dict[str, Any]:
        """Settings of readers that follow from those of a model.

        Parameters
        ----------
        model : Model

        Returns
        -------
        dict of str to object
        """
        settings: dict[str, Any] = {}
        for name, own in self.implies.items():
            if getattr(model, name, None) not in (None, False):
                settings |= own
        return settings

    def __post_init__(self) -> None:
        if not (isinstance(self.data, type) and issubclass(self.data, Judgements)):
            raise SettingError(
                parameter="data",
                value=self.data,
                expected="it must be a subclass of raters.judgements.Judgements",
            )
        _check_fields(self.data)
        check_fields(self, readers=tuple, columns=tuple, sections=tuple)
        check_fields(self, needs=Mapping, implies=Mapping)
        check_fields(self, name=str, lowest=str, by_crowd=bool, unjudged=str)
        check_fields(self, discrepancies=tuple)
        check_fields(self, questions=_MAYBE, quantities=_MAYBE, reason=_MAYBE, agreement=_MAYBE)
        check_fields(self, truths=Truths | None, words=Words, threshold=float | None)
        if not (len(self.readers) and all(isinstance(one, Reader) for one in self.readers)):
            raise SettingError(
                parameter="readers",
                value=self.readers,
                expected="give one reader or more",
                instead="readers=(rt.kinds.Reader(MyData.from_frame),)",
            )
        if not isinstance(self.models, tuple):
            raise SettingError(
                parameter="models",
                value=self.models,
                expected="give a tuple of classes",
                instead="models=(MyModel,)",
            )
        if type(self.default) not in self.models:
            raise SettingError(
                parameter="default",
                value=self.default,
                expected=f"put {type(self.default).__name__} in models, too",
            )
        if not self.name:
            object.__setattr__(self, "name", self.data.__name__.lower())


def _check_fields(data: type[Judgements]) -> None:
    """Raise unless a container has the fields that its declarations name, and counts."""
    lacking = [name for name in ("axes", "names", "answer", "row") if not hasattr(data, name)]
    if not lacking:
        wanted = dict.fromkeys((*data.axes, data.answer, "count", *data.names.values()))
        lacking = [name for name in wanted if name not in getattr(data, "__dataclass_fields__", ())]
    if lacking:
        expected = (
            "a frozen dataclass of judgements declares axes, names, answer and row, and has a field"
            " for each column, for each axis' names, and for counts"
        )
        problem = f"lacks {', '.join(lacking)}"
        raise SettingError(parameter="data", value=data, problem=problem, expected=expected)


_KINDS: dict[str, Kind] = {}


def _registry() -> dict[str, Kind]:
    """Kinds by name, those of the package first."""
    import_module("raters.families")  # Registers them; imports this module.
    return _KINDS


def register(kind: Kind) -> Kind:
    """Make a kind of judgement known to every verb; a later kind of the same container replaces it.

    Parameters
    ----------
    kind : Kind

    Returns
    -------
    Kind
        The same, so that ``KIND = rt.kinds.register(rt.kinds.Kind(...))`` reads well.

    Raises
    ------
    SettingError
        When it is not a `Kind`, or another container has its name.
    """
    if not isinstance(kind, Kind):
        raise SettingError(
            parameter="kind",
            value=kind,
            expected="it must be a raters.kinds.Kind",
            instead="rt.kinds.register(rt.kinds.Kind(data=..., readers=..., ...))",
        )
    known = _registry().get(kind.name, kind).data
    if (known.__module__, known.__qualname__) != (kind.data.__module__, kind.data.__qualname__):
        raise SettingError(
            parameter="name",
            value=kind.name,
            problem=f"is the name of the kind of {known.__module__}.{known.__qualname__}",
            expected="give this kind another name",
            instead="rt.kinds.Kind(name='my_kind', ...)",
        )
    _registry()[kind.name] = kind
    return kind


def registered_kinds() -> tuple[Kind, ...]:
    """All registered kinds."""
    return tuple(_registry().values())


def found_kind(data: Any) -> Kind | None:
    """The kind of a container, or of its class; None for one that is not registered.

    Parameters
    ----------
    data : Judgements or type
        Of a class that is not registered itself, its nearest base counts.

    Returns
    -------
    Kind or None
    """
    container = data if isinstance(data, type) else type(data)
    for base in container.__mro__:  # a kind of a subclass comes before that of its base
        for kind in _registry().values():
            if kind.data is base:
                return kind
    return None


def kind_of(data: Judgements | type[Judgements]) -> Kind:
    """The kind of a container, or of its class.

    Parameters
    ----------
    data : Judgements or type
        Of a class that is not registered itself, its nearest base counts.

    Returns
    -------
    Kind

    Raises
    ------
    SettingError
        When the kind is not registered.
    """
    if (kind := found_kind(data)) is not None:
        return kind
    container = data if isinstance(data, type) else type(data)
    if issubclass(container, Together):
        raise SettingError(
            parameter="data",
            value=data,
            problem="is several kinds of judgement, and this is asked of one kind at a time",
            expected="take one part",
            instead="together.part('votes')",
        )
    known = ", ".join(kind.data.__name__ for kind in _registry().values())
    raise SettingError(
        parameter="data",
        value=data,
        problem=f"is of {container.__name__}, no registered kind of judgement (there are {known})",
        expected="register its kind first",
        instead=f"rt.kinds.register(rt.kinds.Kind(data={container.__name__}, readers=..., models=...,"
        " default=...))",
    )


def kind_named(name: str) -> Kind:
    """The registered kind of this name.

    Parameters
    ----------
    name : str
        Such as ``"comparisons"``.

    Returns
    -------
    Kind

    Raises
    ------
    SettingError
        When no kind of this name is registered.
    """
    if name not in _registry():
        own = "a kind of your own is MODULE:NAME on the command line"
        expected = f"choose one of {', '.join(map(repr, _registry()))}; {own}"
        raise SettingError(parameter="kind", value=name, expected=expected)
    return _registry()[name]
