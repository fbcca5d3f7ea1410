"""Kinds of judgement as data, and the parts of a report that a kind contributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from raters.errors import refuse
from raters.judgements.base import Judgements
from raters.model import Model

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from raters.auditing.audit import Audit
    from raters.auditing.truth.calibration import Calibration
    from raters.checking.discrepancies import Discrepancy
    from raters.program import Program

__all__ = ["Column", "Kind", "register"]

Form = Literal["name", "text", "whole", "number", "digits", "percent", "interval", "range"]


class Words(NamedTuple):
    """Words for one judgement, for several, and for the judges whose judged quantity is lowest."""

    one: str = "judgement"
    many: str = "judgements"
    lowest: str = "least trusted"


@dataclass(frozen=True)
class Quantities:
    """Quantities of each judge for an audit.

    Parameters
    ----------
    values : mapping
        Draws of each quantity, shape (draw, judge): the audit gives their means and intervals.
    judged : str
        The one of them that is compared with the threshold.
    columns : mapping
        Further columns of the table, shape (judge,), such as probabilities of events.
    tables : mapping
        Further tables, for `raters.auditing.Audit.tables`.
    by_crowd : bool
        Whether the judged quantity says how closely a judge agrees with the others, so that without
        known truths nobody is dropped for it.
    """

    values: Mapping[str, np.ndarray]
    judged: str
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    tables: Mapping[str, xr.Dataset] = field(default_factory=dict)
    by_crowd: bool = False


class AuditLimits(NamedTuple):
    """Least wanted judged quantity, probability of intervals, distance that is guessing."""

    threshold: float
    level: float
    margin: float


@dataclass(frozen=True)
class Column:
    """One column of a table in a report.

    Parameters
    ----------
    name : str
        Key of the value in each row; keys with ``_low`` and ``_high`` behind it are its interval.
    form : str
        ``"name"`` (heading of the row), ``"text"``, ``"whole"``, ``"number"``, ``"digits"`` (three
        significant ones), ``"percent"``, ``"interval"`` (drawn, all rows on one scale) or
        ``"range"`` (whole numbers).
    heading : str
        By default made of the name: ``p_best`` is headed P(best).
    meaning : str
        Sentence that explains the column to a reader who does not know the model.
    marks : tuple of float
        Values marked on the scale of an interval.
    """

    name: str
    form: Form = "number"
    heading: str = ""
    meaning: str = ""
    marks: tuple[float, ...] = (0.0,)


def finding(code: str, **numbers: Any) -> dict[str, Any]:
    """A finding in numbers, whose words are in the template of reports."""
    return {"code": code, **numbers}


@dataclass(frozen=True)
class Section:
    """Part of a report that only one kind of judgement has: findings, and a table.

    Parameters
    ----------
    key : str
        Short name in lower case, such as ``"items"``: the section's name in the facts of a report.
    title : str
        By default made of the key.
    findings : tuple of mapping
        What was found, as numbers by name. ``"code"`` names the words for it in the template of
        reports; a finding of a kind outside of the package has its words as ``"text"``.
    columns : tuple of Column
        Columns of the table that are shown.
    table : pandas.DataFrame, optional
        Rows in the order in which they are read.
    group : str
        Column whose values part the table into several, each under its own heading.
    matrices : tuple of mapping
        Matrices of probabilities, each with ``title``, ``rows``, ``columns`` and ``values``.
    figures : mapping
        Functions of `raters.figures` by name, each with its arguments.
    limits : tuple of mapping
        What a verdict does not say, as findings.
    """

    key: str
    title: str = ""
    findings: tuple[Mapping[str, Any], ...] = ()
    columns: tuple[Column, ...] = ()
    table: pd.DataFrame | None = None
    group: str = ""
    matrices: tuple[Mapping[str, Any], ...] = ()
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    limits: tuple[Mapping[str, Any], ...] = ()

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", self.key.replace("_", " ").capitalize())


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
    may_be_empty : tuple of str
        Roles whose columns need not have a value in every row.
    part_of : str
        Role that names the judgement that a row is a part of.
    on_request : str
        What this reading costs, of a table that another kind reads with less loss.
    """

    read: Callable[..., Judgements]
    shapes: tuple[tuple[str, ...], ...] = ()
    may_be_empty: tuple[str, ...] = ()
    part_of: str = ""
    on_request: str = ""


# Of a field that follows from others unless it is given.
_OF_OTHERS: Any = None


@dataclass(frozen=True)
class Kind:
    """One kind of judgement, as data.

    Parameters
    ----------
    data : type
        Container: a subclass of `raters.judgements.Judgements`.
    models : tuple of type
    readers : tuple of Reader, optional
        Ways of reading a table; the command line chooses by the columns given. By default
        ``from_frame`` of the container.
    default : Model, optional
        Model of the command line where none is named, by default the first one as it stands.
    alone : Model, optional
        The same where all judgements are by one judge, without competences.
    words : Words
    name : str
        That of the container in lower case unless it is given.
    questions : callable, optional
        Everything that can be asked: ``questions(data, **options)`` gives judgements without
        outcomes. Without it, each combination of names that nobody has answered.
    quantities : callable, optional
        Quantities of an audit: ``quantities(program, result, limits)``. Without it every site that
        has one entry for each judge is a quantity, and the first of them is judged.
    threshold : float, optional
        Value of the judged quantity below which a judge is not worth keeping. Without it an audit
        has to be given one.
    unjudged : str
        Sentence that says why no judge of this kind is right or wrong, in place of an audit.
    truths : type, optional
        Subclass of `raters.auditing.Calibration`, for `raters.calibrate` and audits. Without it an
        audit states the model's own numbers, and takes no known truths.
    columns : tuple of Column
        Columns of the audit's table that a report shows. Without them, every number of the table.
    sections : tuple of callable
        Parts of a report, in this order: ``section(context)`` gives a `Section` or None.
    discrepancies : tuple of raters.checking.discrepancies.Discrepancy
        Measures for `raters.check`. Without them, those that make sense for every kind.
    needs : mapping
        Roles without which a model cannot be fitted, by its class, or by the name of its setting.
    implies : mapping
        Settings of readers that follow from a setting of a model: ``{"ties": {"ties": "keep"}}``.
    """

    data: type[Judgements]
    models: tuple[type[Model[Any]], ...]
    readers: tuple[Reader, ...] = _OF_OTHERS
    default: Model[Any] = _OF_OTHERS
    alone: Model[Any] | None = None
    words: Words = field(default=Words())
    name: str = ""
    questions: Callable[..., Judgements] | None = None
    quantities: Callable[[Program[Any], xr.DataTree, AuditLimits], Quantities] | None = None
    threshold: float | None = None
    unjudged: str = ""
    truths: type[Calibration] | None = None
    columns: tuple[Column, ...] = ()
    sections: tuple[Callable[[AuditContext], Section | None], ...] = ()
    discrepancies: tuple[Discrepancy, ...] = ()
    needs: Mapping[type[Model[Any]] | str, tuple[str, ...]] = field(default_factory=dict)
    implies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def implied(self, model: Model[Any]) -> dict[str, Any]:
        """Settings of readers that follow from those of a model."""
        settings: dict[str, Any] = {}
        for name, implied in self.implies.items():
            if getattr(model, name, None) not in (None, False):
                settings |= implied
        return settings

    def __post_init__(self) -> None:
        if not (isinstance(self.data, type) and issubclass(self.data, Judgements)):
            expected = "it must be a subclass of raters.judgements.Judgements"
            refuse("data", self.data, expected=expected)
        if self.readers is None and hasattr(self.data, "from_frame"):
            object.__setattr__(self, "readers", (Reader(self.data.from_frame),))
        if self.default is None and isinstance(self.models, tuple) and self.models:
            object.__setattr__(self, "default", self.models[0]())
        readers = self.readers if isinstance(self.readers, tuple) else ()
        if not readers or not all(isinstance(reader, Reader) for reader in readers):
            instead = "readers=(rt.kinds.Reader(MyData.from_frame),)"
            refuse("readers", self.readers, expected="give a tuple of readers", instead=instead)
        if not isinstance(self.models, tuple) or type(self.default) not in self.models:
            expected = f"it must be a tuple of classes, and hold {type(self.default).__name__}"
            refuse("models", self.models, expected=expected, instead="models=(MyModel,)")
        if not self.name:
            object.__setattr__(self, "name", self.data.__name__.lower())


_KINDS: dict[str, Kind] = {}
# Modules with the kinds that raters comes with; they import this one.
_MODULES = "choices comparisons demonstrations labels rankings ratings responses"


def _registry() -> dict[str, Kind]:
    """Kinds by name, those that raters comes with in front."""
    if not _KINDS:
        modules = [import_module(f"raters.kinds.{name}") for name in _MODULES.split()]
        values = chain.from_iterable(vars(module).values() for module in modules)
        _KINDS.update({one.name: one for one in values if isinstance(one, Kind)})
    return _KINDS


def register(kind: Kind) -> Kind:
    """Make a kind known to every verb; a later kind of the same container replaces it."""
    if not isinstance(kind, Kind):
        instead = "rt.kinds.register(rt.kinds.Kind(data=..., readers=..., ...))"
        refuse("kind", kind, expected="it must be a raters.kinds.Kind", instead=instead)
    known = _registry().get(kind.name, kind).data
    if (known.__module__, known.__qualname__) != (kind.data.__module__, kind.data.__qualname__):
        problem = f"is the name of the kind of {known.__module__}.{known.__qualname__}"
        instead = "rt.kinds.Kind(name='my_kind', ...)"
        refuse("name", kind.name, problem, "give this kind another name", instead=instead)
    _registry()[kind.name] = kind
    return kind


def registered_kinds() -> tuple[Kind, ...]:
    """All registered kinds."""
    return tuple(_registry().values())


def kind_of(data: Judgements | type[Judgements]) -> Kind:
    """The kind of a container, or of its class: that of a subclass before that of its base."""
    container: type[Any] = data if isinstance(data, type) else type(data)
    kinds = {kind.data: kind for kind in reversed(_registry().values())}
    base = next((base for base in container.__mro__ if base in kinds), None)
    if base is None:
        problem = f"is of {container.__name__}, no registered kind of judgement"
        expected = "register its kind, or take one part of several kinds: together.part('votes')"
        instead = "rt.kinds.register(rt.kinds.Kind(data=..., ...))"
        refuse("data", data, problem, expected, instead=instead)
    return kinds[base]


def kind_named(name: str) -> Kind:
    """The registered kind of this name."""
    if name not in _registry():
        refuse("kind", name, expected=f"choose one of {', '.join(map(repr, _registry()))}")
    return _registry()[name]
