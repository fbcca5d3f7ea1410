"""Several kinds of judgement together: a container of each, under common names."""

from __future__ import annotations

import dataclasses
import itertools
import json
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import jax
import numpy as np
from jaxtyping import Int, Num, Shaped

from raters.errors import refuse, refuse_data
from raters.judgements.arguments import Arguments
from raters.judgements.base import Judgements
from raters.judgements.grouped import Grouped
from raters.judgements.names import (
    alike,
    match_names,
    name_text,
    plural,
    shorten,
    warn_of_each,
    warn_of_near,
)
from raters.judgements.rankings import Rankings
from raters.judgements.roles import static
from raters.judgements.stored import PARTS, imported_class, part_of_tree, qualified_name

Groups = dict[str, dict[str, tuple[tuple[str, ...], Shaped[np.ndarray, " ..."]]]]


def _of_each(name: str) -> Callable[..., Any]:
    """Method that does the same with each part."""

    def method(self: Together, *args: Any) -> Together:
        changed = tuple(getattr(part, name)(*args) for part in self.parts)
        return dataclasses.replace(self, parts=changed)

    method.__doc__ = f"As `Judgements.{name}`, of each part."
    return method


def _sum_of(number: str, doc: str) -> property:
    """Property with the sum of a number over the parts."""
    return property(lambda self: sum(getattr(part, number) for part in self.parts), doc=doc)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Together(Judgements):
    """Several kinds of judgement, which inform parameters that they share.

    Build it with `of`, which gives annotators, items and features the same codes in all parts; the
    constructor takes parts that have them.

    Parameters
    ----------
    parts : tuple of Judgements
    part_names : tuple of str
        Name of each part.

    Examples
    --------
    >>> import raters as rt
    >>> votes = rt.Comparisons.from_frame(
    ...     {"winner": ["a", "b"], "loser": ["b", "c"], "who": ["ann", "bob"]},
    ...     winner="winner", loser="loser", annotator="who")
    >>> labels = rt.Labels.from_frame(
    ...     {"item": ["a", "c"], "who": ["bob", "cem"], "says": ["good", "bad"]},
    ...     item="item", annotator="who", label="says")
    >>> both = rt.judgements.Together.of({"votes": votes, "labels": labels})
    >>> both.coords["annotator"], both.part("labels").annotators
    (('ann', 'bob', 'cem'), ('ann', 'bob', 'cem'))
    """

    parts: tuple[Any, ...]
    part_names: tuple[str, ...] = static()

    axes = {}
    names = {}
    answer = "parts"
    row = "judgement"
    divisible = False

    @classmethod
    def of(cls, parts: Mapping[str, Judgements]) -> Self:
        """Put judgements together, with annotators, items and features matched by name.

        Each part then has the annotators of all, and the items of all; those whom it says nothing
        about have no judgements in it. Other names, such as those of features, get one order where
        they are the same in several parts. What differs between the parts is an axis of each, which
        results call ``part.axis``.

        Parameters
        ----------
        parts : mapping of str to Judgements
            Two containers or more by name, such as ``{"votes": votes, "shown": demonstrations}``.

        Raises
        ------
        DataError
            When a part is empty, the same as another one, or shares no name of an annotator, an
            item or a feature with any other.
        SettingError
            When there are fewer than two parts, or a name of a part is no name of Python.

        Warns
        -----
        DataWarning
            When names differ by case or space only.
        """
        check_containers(parts, (Together, Arguments))
        check_twice(parts)
        names, containers = tuple(parts), list(parts.values())
        check_common(names, containers)
        return cls(tuple(aligned(containers)), names)

    # ---------------------------------------------------------------- parts

    def part(self, name: str) -> Any:
        """The judgements of one part.

        Parameters
        ----------
        name : str

        Raises
        ------
        SettingError
            When there is no such part.
        """
        if name not in self.part_names:
            refuse(
                "part", name, "is no part", f"choose one of {', '.join(map(repr, self.part_names))}"
            )
        return self.parts[self.part_names.index(name)]

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """Names along each axis, as results call it."""
        return {
            called: names
            for name, part in self.by_name()
            for axis, names in part.coords.items()
            if (called := axis_name(self, name, axis)) != axis or len(names)
        }

    # ---------------------------------------------------------------- facts

    @classmethod
    def arrays(cls) -> dict[str, tuple[str, ...]]:
        """None: arrays are those of the parts."""
        return {}

    @property
    def count(self) -> None:
        """None: each part has counts of its own."""

    @property
    def has_answers(self) -> bool:
        """True if all outcomes are there."""
        return all(part.has_answers for part in self.parts)

    num_rows = _sum_of("num_rows", "Number of rows of all parts.")

    num_units = _sum_of("num_units", "Number of units of all parts.")

    num_judgements = _sum_of("num_judgements", "Number of judgements, counts included.")

    @property
    def weight(self) -> Any:
        """Counts of all rows, part by part, shape (judgement,)."""
        return np.concatenate([np.asarray(part.weight) for part in self.parts])

    def answers(self) -> Num[np.ndarray, " answer"]:
        """None: each part has answers of its own."""
        return np.zeros(0)

    def judgements_by(self, axis: str) -> Any:
        """Number of judgements of each name of an axis, in all parts that have it."""
        of_parts = [
            part.judgements_by(own)
            for name, part in self.by_name()
            for own in part.coords
            if axis_name(self, name, own) == axis
        ]
        return np.sum(of_parts, axis=0).astype(np.int64)

    def check(self) -> None:
        """Raise unless each part is in order; see `Judgements.check`."""
        for part in self.parts:
            part.check()

    def present(self, name: str) -> Any:
        """A part without those who judge in other parts only."""
        part = self.part(name)
        here = part.judgements_by(part.judge) > 0
        absent = [judge for judge, there in zip(part.judges, here, strict=True) if not there]
        return part.without_judges(absent) if absent and here.any() else part

    def warn(self) -> None:
        """Warn about annotators who judge in no part."""
        for axis in dict.fromkeys(part.judge for part in self.parts):
            if axis in self.coords:
                none = self.judgements_by(axis) == 0
                sentence = f"{axis}(s) judged in no part, and keep their prior"
                warn_of_each({sentence: (tuple(self.coords[axis]), none)})

    # ---------------------------------------------------------------- storing

    def packed(self) -> dict[str, Shaped[np.ndarray, " ..."]]:
        """Copies of the arrays of all parts, by ``part.field``."""
        return {
            f"{name}.{field}": array
            for name, part in self.by_name()
            for field, array in part.packed().items()
        }

    def flags(self) -> dict[str, str]:
        """Names and flags of all parts as text, by ``part.field``, and the class of each part."""
        flags = {
            f"{name}.{field}": text
            for name, part in self.by_name()
            for field, text in part.flags().items()
        }
        return flags | {
            PARTS: json.dumps({name: qualified_name(type(part)) for name, part in self.by_name()})
        }

    def groups(self) -> Groups:
        """Arrays as a result stores them, by group and ``part.name``."""
        groups: Groups = {"observed_data": {}, "constant_data": {}}
        for part, data in self.by_name():
            for group, variables in data.groups().items():
                for name, (axes, array) in variables.items():
                    called = tuple(axis_name(self, part, axis) for axis in axes)
                    groups[group][f"{part}.{name}"] = called, array
        return groups

    @classmethod
    def _within(cls, result: Any) -> Self:
        containers = json.loads(result.attrs[PARTS])
        parts = []
        for name, container in containers.items():
            kind: Any = imported_class(container, (Judgements,))
            parts.append(kind.from_result(part_of_tree(result, name)))
        return cls(tuple(parts), tuple(containers))

    # ---------------------------------------------------------------- part by part

    def __repr__(self) -> str:
        if not isinstance(self.parts, tuple):
            return f"{type(self).__name__}(...)"
        parts = ", ".join(f"{name}={part!r}" for name, part in self.by_name())
        return f"{type(self).__name__}({parts})"

    def by_name(self) -> list[tuple[str, Any]]:
        """Name and judgements of each part."""
        return list(zip(self.part_names, self.parts, strict=True))

    first_unit = _of_each("first_unit")
    unpadded = _of_each("unpadded")
    unanswered = _of_each("unanswered")
    aggregate = _of_each("aggregate")
    without_truth = _of_each("without_truth")
    take = _of_each("take")

    def without_judges(self, names: Iterable[Any]) -> Self:
        """The judgements of everybody else, in every part."""
        gone = tuple(names)
        return dataclasses.replace(
            self, parts=tuple(part.without_judges(gone) for part in self.parts)
        )

    def some_outcomes(self) -> dict[str, Any]:
        """Outcomes that the questions of each part can have, as `answered` takes them."""
        return {name: part.some_outcomes() for name, part in self.by_name()}

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        answered = [part.answered(outcomes[name]) for name, part in self.by_name()]
        return dataclasses.replace(self, parts=tuple(answered))

    def joined(self, more: Self) -> Self:
        """These judgements and further ones, part by part; see `Judgements.joined`."""
        others = dict(more.by_name())
        joined = [part.joined(others[name]) for name, part in self.by_name()]
        return dataclasses.replace(self, parts=tuple(joined))

    # ---------------------------------------------------------------- of one part only

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse: tables, rows, questions and codes are those of one part."""
        refuse(
            "data",
            self,
            "is of several kinds of judgement, which have no rows in common",
            "take one part at a time",
            instead=f"together.part({self.part_names[0]!r})",
        )

    to_frame = rows = padded = questions = recoded = _refuse


def axis_name(data: Any, part: str, axis: str) -> str:
    """Name of a part's axis in results: its own where all parts have the same names along it."""
    if not part:
        return axis
    parts = parts_of(data)
    here = parts.pop(part).coords.get(axis)
    others = [other for one in parts.values() if len(other := one.coords.get(axis, ()))]
    # Rows are numbered in each part.
    differ = isinstance(here, range) or any(tuple(one) != tuple(here or ()) for one in others)
    return f"{part}.{axis}" if here is None or (others and differ) else axis


def check_names(wanted: Sequence[str], names: Sequence[str]) -> None:
    """Raise unless the parts are those of a model."""
    if set(wanted) != set(names):
        problem = f"has the parts {', '.join(map(repr, names))}, and the model"
        problem += f" {', '.join(map(repr, wanted))}"
        expected = "give each part of the data a model of the same name"
        refuse("data", problem=problem, expected=expected)


def parts_of(data: Any) -> dict[str, Any]:
    """Return the judgements of each kind by name; of one kind themselves, by no name."""
    return dict(data.by_name()) if isinstance(data, Together) else {"": data}


def with_parts(data: Any, parts: Mapping[str, Any]) -> Any:
    """Return data with other judgements of each kind."""
    if isinstance(data, Together):
        return dataclasses.replace(data, parts=tuple(parts[name] for name in data.part_names))
    return parts[""]


# ---------------------------------------------------------------- reading


def takes_names(data: Judgements, axis: str, names: tuple[Any, ...]) -> bool:
    """True unless new names on an axis need unknown numbers, such as features of new items."""
    if not (isinstance(data, Grouped) and axis == data.unit):
        return True
    of_units = [name for name, axes in data.arrays().items() if axes[0] == "unit"]
    known = ("unit_code", data.known)
    numbers = [name for name in of_units if name not in known and getattr(data, name) is not None]
    return len(names) == len(data.coords[axis]) or not numbers


def with_names(data: Any, axis: str, names: tuple[Any, ...]) -> Any:
    """The same judgements in the codes of other names."""
    present = tuple(data.coords[axis])
    if present == tuple(names):
        return data
    place = match_names(np.arange(len(present)), present, names, axis)
    along = (axis, f"next_{axis}")  # next states are states
    changes: dict[str, Any] = {data.names[axis]: tuple(names)}
    grouped = isinstance(data, Grouped) and axis == data.unit
    for name, axes in data.arrays().items():
        column = getattr(data, name)
        if column is None:
            continue
        values = np.asarray(column)
        if grouped and axes[0] == "unit":
            values = _moved(values, place[np.asarray(data.unit_code)], len(names), name, data)
        if data.axes.get(name) == axis:
            values = np.where(values >= 0, place[values], values).astype(values.dtype)
        for dim in (dim for dim, of in enumerate(axes) if of in along):
            spread = _moved(np.moveaxis(values, dim, 0), place, len(names), name, data)
            values = np.moveaxis(spread, 0, dim)
        changes[name] = values
    if grouped:
        changes["unit_code"] = np.arange(len(names), dtype=np.int32)
        group = place[np.asarray(data.unit_code)][np.asarray(data.group)].astype(np.int32)
        order = np.argsort(group, kind="stable")
        changes["group"] = group
        rows = [name for name, axes in data.arrays().items() if axes[0] == data.row]
        changes |= {name: changes[name][order] for name in rows if name in changes}
    renamed = dataclasses.replace(data, **changes)
    # The items of a ranking ascend by their codes.
    return renamed.canonical() if isinstance(renamed, Rankings) else renamed


def _moved(
    values: np.ndarray, place: Int[np.ndarray, " name"], size: int, name: str, data: Judgements
) -> np.ndarray:
    """Entries at their new places along the first axis; elsewhere none: code −1, or 0."""
    filled: np.ndarray = np.full(
        (size, *values.shape[1:]), -1 if name in data.axes else 0, values.dtype
    )
    filled[place] = values
    return filled


def _named(part: Judgements) -> tuple[str, ...]:
    """Axes of a part that have names of their own; true classes are labels."""
    return tuple({field: axis for axis, field in part.names.items()}.values())


def _is_open(axis: str, parts: Sequence[Judgements]) -> bool:
    """True for an axis whose names one part may have and others lack: judges, and items."""
    return axis == "item" or axis in {part.judge for part in parts}


def aligned(parts: Sequence[Any]) -> list[Any]:
    """Parts with the same names along an axis, in the same order, where they can have them."""
    changed = list(parts)
    for axis in dict.fromkeys(axis for part in parts for axis in _named(part)):
        changed = _aligned_along(axis, changed)
    return changed


def _aligned_along(axis: str, parts: list[Any]) -> list[Any]:
    """Parts with the same names along one axis."""
    having = [part for part in parts if len(part.coords.get(axis, ()))]
    if len(having) < 2:
        return parts
    lists = alike([tuple(part.coords[axis]) for part in having])
    names = tuple(dict.fromkeys(itertools.chain(*lists)))
    if _is_open(axis, parts):
        warn_of_near(names, plural(axis))
        possible = all(takes_names(part, axis, names) for part in having)
    else:
        possible = all(set(one) == set(names) for one in lists)
    if not possible:
        return parts
    return [
        with_names(part, axis, names) if len(part.coords.get(axis, ())) else part for part in parts
    ]


# ---------------------------------------------------------------------- refusals


def check_containers(parts: Any, but: tuple[type, ...]) -> None:
    """Raise unless these are two or more containers, each with judgements, by name."""
    if not isinstance(parts, Mapping) or len(parts) < 2:
        refuse(
            "parts",
            parts,
            "is no mapping of two parts or more",
            "give each kind of judgement a name",
            instead="rt.judgements.Together.of({'votes': votes, 'shown': demonstrations})",
        )
    for name, part in parts.items():
        check_part_name("parts", name)
        single = isinstance(part, Judgements) and not isinstance(part, but)
        if not single or not part.num_judgements:
            refuse(
                name,
                part,
                "is no container of one kind of judgement, or has no judgements",
                "read a table first",
                instead="rt.Comparisons.from_frame(table, ...)",
            )


def check_part_name(parameter: str, name: Any) -> None:
    """Raise unless this can be the name of a part, which sites and axes have before a dot."""
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        refuse(
            parameter,
            name,
            "is no name of a part",
            "a name of a part must be letters, digits and _, such as 'votes'",
        )


def check_twice(parts: Mapping[str, Any]) -> None:
    """Raise where two parts are the same judgements, which would count twice."""
    for (one, left), (other, right) in itertools.combinations(parts.items(), 2):
        same = type(left) is type(right) and left.flags() == right.flags()
        arrays = jax.tree.leaves(left), jax.tree.leaves(right)
        if same and len(arrays[0]) == len(arrays[1]) and all(map(np.array_equal, *arrays)):
            problem = f"holds the same judgements as {one!r}"
            refuse_data(other, problem=problem, expected="give each judgement once")


def check_common(names: Sequence[str], parts: Sequence[Any]) -> None:
    """Raise where a part has no annotator, item or feature in common with any other."""
    known = [_texts(part, parts) for part in parts]
    for place, name in enumerate(names):
        others = set().union(*(texts for other, texts in enumerate(known) if other != place))
        if not known[place] & others:
            refuse_data(
                name,
                problem="shares no annotator, item or feature with the other parts: it has"
                f" {shorten(sorted(text for _, text in known[place]))}, and they have"
                f" {shorten(sorted(text for _, text in others))}",
                expected="spell the names alike in all parts, or fit it by itself",
            )


def _texts(part: Any, parts: Sequence[Any]) -> set[tuple[str, str]]:
    """Axes and names, as text, of those who judge, of items, and of features."""
    return {
        (axis, name_text(name))
        for axis in _named(part)
        if axis == "feature" or _is_open(axis, parts)
        for name in part.coords[axis]
        if name != "intercept"
    }
