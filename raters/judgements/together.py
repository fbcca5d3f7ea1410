"""Several kinds of judgement together: a container of each, under common names."""

from __future__ import annotations

import itertools
import json
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Num, Shaped

from raters.errors import refuse, refuse_data
from raters.judgements.arguments import Arguments
from raters.judgements.base import Judgements
from raters.judgements.names import alike, name_text, plural, shorten, warn_of_each, warn_of_near
from raters.judgements.roles import static
from raters.judgements.stored import PARTS, imported_class, qualified_name


def _of_each(name: str) -> Callable[..., Any]:
    """Method that does the same with each part."""

    def method(self: Together, *args: Any) -> Together:
        changed = [getattr(part, name)(*args) for part in self.parts]
        return replace(self, parts=tuple(changed))

    method.__doc__ = f"As `Judgements.{name}`, of each part."
    return method


def _sum_of(number: str, doc: str) -> property:
    """Property with the sum of a number over the parts."""
    return property(lambda self: sum(getattr(part, number) for part in self.parts), doc=doc)


def _by_field(name: str) -> Callable[..., Any]:
    """Method with what the same method of each part gives by field, by ``part.field``."""

    def method(self: Together) -> dict[str, Any]:
        return {
            f"{part}.{field}": one
            for part, data in self.by_name()
            for field, one in getattr(data, name)().items()
        }

    method.__doc__ = f"As `Judgements.{name}`, of all parts by ``part.field``."
    return method


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
        _check_parts(parts)
        return cls(tuple(_aligned(list(parts.values()))), tuple(parts))

    # ---------------------------------------------------------------- parts

    def by_name(self) -> list[tuple[str, Any]]:
        """Name and judgements of each part."""
        return list(zip(self.part_names, self.parts, strict=True))

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
            known = ", ".join(map(repr, self.part_names))
            refuse("part", name, "is no part", f"choose one of {known}")
        return self.parts[self.part_names.index(name)]

    def present(self, name: str) -> Any:
        """A part without those who judge in other parts only."""
        part = self.part(name)
        here = part.judgements_by(part.judge) > 0
        absent = [judge for judge, there in zip(part.judges, here, strict=True) if not there]
        return part.without_judges(absent) if absent and here.any() else part

    def __repr__(self) -> str:
        if not isinstance(self.parts, tuple):
            return f"{type(self).__name__}(...)"
        parts = ", ".join(f"{name}={part!r}" for name, part in self.by_name())
        return f"{type(self).__name__}({parts})"

    def _head(self) -> pd.DataFrame:
        parts = [(name, repr(part)) for name, part in self.by_name()]
        return pd.DataFrame(parts, columns=["part", "judgements"])

    first_unit = _of_each("first_unit")
    unpadded = _of_each("unpadded")
    unanswered = _of_each("unanswered")
    aggregate = _of_each("aggregate")
    without_truth = _of_each("without_truth")
    take = _of_each("take")
    _without = _of_each("without_judges")

    def without_judges(self, names: Iterable[Any]) -> Self:
        """The judgements of everybody else, in every part."""
        return self._without(tuple(names))

    def answered(self, outcomes: Any) -> Self:
        """These questions with outcomes."""
        return replace(
            self, parts=tuple(part.answered(outcomes[name]) for name, part in self.by_name())
        )

    def joined(self, more: Self) -> Self:
        """These judgements and further ones, part by part; see `Judgements.joined`."""
        return replace(
            self, parts=tuple(part.joined(more.part(name)) for name, part in self.by_name())
        )

    # ---------------------------------------------------------------- facts

    num_rows = _sum_of("num_rows", "Number of rows of all parts.")
    num_units = _sum_of("num_units", "Number of units of all parts.")
    num_judgements = _sum_of("num_judgements", "Number of judgements, counts included.")

    @property
    def coords(self) -> dict[str, Sequence[Any]]:
        """Names along each axis, as results call it."""
        return {
            called: names
            for name, part in self.by_name()
            for axis, names in part.coords.items()
            if (called := axis_name(self, name, axis)) != axis or len(names)
        }

    @classmethod
    def arrays(cls) -> dict[str, tuple[str, ...]]:
        """None: arrays are those of the parts."""
        return {}

    @property
    def count(self) -> None:
        """None: each part has counts of its own."""

    @property
    def weight(self) -> Any:
        """Counts of all rows, part by part, shape (judgement,)."""
        return np.concatenate([np.asarray(part.weight) for part in self.parts])

    @property
    def has_answers(self) -> bool:
        """True if all outcomes are there."""
        return all(part.has_answers for part in self.parts)

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

    def warn(self) -> None:
        """Warn about annotators who judge in no part."""
        for axis in dict.fromkeys(part.judge for part in self.parts):
            if axis in self.coords:
                none = self.judgements_by(axis) == 0
                sentence = f"{axis}(s) judged in no part, and keep their prior"
                warn_of_each({sentence: (tuple(self.coords[axis]), none)})

    # ---------------------------------------------------------------- storing

    packed = _by_field("packed")
    _flags = _by_field("flags")

    def flags(self) -> dict[str, str]:
        """Names and flags of all parts as text, by ``part.field``, and the class of each part."""
        containers = {name: qualified_name(type(part)) for name, part in self.by_name()}
        return self._flags() | {PARTS: json.dumps(containers)}

    def groups(self) -> dict[str, dict[str, tuple[tuple[str, ...], Shaped[np.ndarray, " ..."]]]]:
        """Arrays as a result stores them, by group and ``part.name``."""
        groups: dict[str, Any] = {"observed_data": {}, "constant_data": {}}
        for part, data in self.by_name():
            for group, variables in data.groups().items():
                for name, (axes, array) in variables.items():
                    called = tuple(axis_name(self, part, axis) for axis in axes)
                    groups[group][f"{part}.{name}"] = called, array
        return groups

    @classmethod
    def _within(cls, stored: Mapping[str, Any], attrs: Mapping[str, Any]) -> Self:
        parts, containers = [], json.loads(attrs[PARTS])
        for name, container in containers.items():
            kind: Any = imported_class(container, (Judgements,))
            parts.append(kind._within(_of_part(stored, name), _of_part(attrs, name)))
        return cls(tuple(parts), tuple(containers))

    # ---------------------------------------------------------------- of one part only

    def _refuse(self, *args: Any, **options: Any) -> NoReturn:
        """Refuse: tables, rows, questions and codes are those of one part."""
        problem = "is of several kinds of judgement, which have no rows in common"
        line = f"together.part({self.part_names[0]!r})"
        refuse("data", self, problem, "take one part at a time", instead=line)

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
        return replace(data, parts=tuple(parts[name] for name in data.part_names))
    return parts[""]


def _of_part(named: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Arrays and flags of one kind in a result of several."""
    start = f"{part}."
    return {name.removeprefix(start): one for name, one in named.items() if name.startswith(start)}


# ---------------------------------------------------------------- common names


def _open(parts: Sequence[Judgements]) -> set[str]:
    """Axes whose names one part may have and others lack: judges, and items."""
    return {"item", *(part.judge for part in parts)}


def _aligned(parts: list[Any]) -> list[Any]:
    """Parts with the same names along an axis, in the same order, where they can have them."""
    for axis in dict.fromkeys(axis for part in parts for axis in part.named_axes()):
        having = [part for part in parts if len(part.coords.get(axis, ()))]
        if len(having) < 2:
            continue
        lists = alike([tuple(part.coords[axis]) for part in having])
        names = tuple(dict.fromkeys(itertools.chain(*lists)))
        if axis in _open(parts):
            warn_of_near(names, plural(axis))
            possible = all(part._takes_names(axis, names) for part in having)
        else:
            possible = all(set(one) == set(names) for one in lists)
        if possible:
            moved = [part.with_names(axis, names) for part in having]
            parts = [moved.pop(0) if len(part.coords.get(axis, ())) else part for part in parts]
    return parts


def _check_parts(parts: Any) -> None:
    """Raise unless these are two or more containers by name, which have names in common."""
    if not isinstance(parts, Mapping) or len(parts) < 2:
        problem, expected = "is no mapping of two parts or more", "give each kind a name"
        line = "rt.judgements.Together.of({'votes': votes, 'shown': demonstrations})"
        refuse("parts", parts, problem, expected, instead=line)
    for name, part in parts.items():
        check_part_name("parts", name)
        single = isinstance(part, Judgements) and not isinstance(part, (Together, Arguments))
        if not single or not part.num_judgements:
            problem = "is no container of one kind of judgement, or has no judgements"
            line = "rt.Comparisons.from_frame(table, ...)"
            refuse(name, part, problem, "read a table first", instead=line)
    for (one, left), (other, right) in itertools.combinations(parts.items(), 2):
        form: Any = jax.tree.structure(left)
        same = form == jax.tree.structure(right)
        if same and all(map(np.array_equal, jax.tree.leaves(left), jax.tree.leaves(right))):
            problem = f"holds the same judgements as {one!r}"
            refuse_data(other, problem=problem, expected="give each judgement once")
    shared = _open(list(parts.values())) | {"feature"}
    known = {
        name: {
            (axis, name_text(one))
            for axis in shared.intersection(part.named_axes())
            for one in part.coords[axis]
            if one != "intercept"
        }
        for name, part in parts.items()
    }
    for name, texts in known.items():
        others = set().union(*(known[other] for other in known if other != name))
        if not texts & others:
            problem = "shares no annotator, item or feature with the other parts: it has"
            problem += f" {shorten(sorted(text for _, text in texts))}, and they have"
            problem += f" {shorten(sorted(text for _, text in others))}"
            expected = "spell the names alike in all parts, or fit it by itself"
            refuse_data(name, problem=problem, expected=expected)


def check_part_name(parameter: str, name: Any) -> None:
    """Raise unless this can be the name of a part, which sites and axes have before a dot."""
    if not (isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)):
        expected = "a name of a part must be letters, digits and _, such as 'votes'"
        refuse(parameter, name, "is no name of a part", expected)
