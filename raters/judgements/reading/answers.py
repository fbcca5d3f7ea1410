"""Tables before their judgements are read, and those of the answers to one question of a tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from raters.errors import DataError, refuse_data
from raters.judgements.names import alike, in_order, name_text, shorten, shown

CHOICE, NUMBER, SIDE = "choice", "rating", "pairwise"
# Roles of an answer of each form.
_ROLES = {CHOICE: "label", NUMBER: "rating", SIDE: "outcome"}
_SIDES = ("first", "second", "tie")
# Columns of known truths.
_TRUTH = {CHOICE: "truth", NUMBER: "value"}
# Endings of the names of two fields, of which one is about each side.
_ENDS = (("a", "b"), ("1", "2"), ("first", "second"), ("left", "right"), ("one", "two"))


@dataclass(frozen=True)
class Table:
    """A table, and what is known of it.

    Parameters
    ----------
    frame : pandas.DataFrame
        Of a large file of Parquet, its first rows.
    form : str
        What the table was recognised as, for the person who gave it; empty for a plain one.
    roles : mapping
        Columns and settings of readers by role.
    notes : tuple of str
        What was left out.
    gold : pandas.DataFrame, optional
        Known truths, as `raters.audit` takes them.
    question : str
        Of an export, the question whose answers these are.
    classes : tuple of str
        Of answers with several choices, the classes of which it is asked whether they were chosen.
    path : Path, optional
        File or folder of Parquet to be read row by row.
    """

    frame: pd.DataFrame
    form: str = ""
    roles: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    gold: pd.DataFrame | None = None
    question: str = ""
    classes: tuple[str, ...] = ()
    path: Path | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(map(str, self.frame.columns))


def no_question(control: str | None) -> None:
    """Raise where a question is named, and the table has no several ones."""
    if control is not None:
        expected = "it is for exports with several questions; leave it out"
        refuse_data("control", control, "names nothing in a plain table", expected)


class Answer(NamedTuple):
    """One answer: to which question of the tool, about what, by whom.

    A choice is a list of what was chosen, a pairwise one ``"first"``, ``"second"`` or ``"tie"``;
    answers of other forms, such as spans, are not read.
    """

    control: str
    form: str
    item: Any
    annotator: Any
    value: Any
    data: Mapping[str, Any]
    time: Any = None
    is_truth: bool = False


def part(whole: Any, key: str, kind: type) -> Any:
    """A part of an export, or None; `DataError` when it is of another type."""
    value = whole.get(key) if isinstance(whole, Mapping) else whole
    if not isinstance(whole, Mapping) or (value is not None and not isinstance(value, kind)):
        raise DataError(f"{key!r} in the export is {shown(value)}; expected {kind.__name__}")
    return value


def check_name(value: Any, what: str, *, optional: bool = True) -> None:
    """`DataError` unless a value of an export is a name or a number, or nothing."""
    if not isinstance(value, (str, int, float)) and not (optional and value is None):
        raise DataError(f"{what} is {shown(value)}; expected a name or a number")


def has_keys(content: Any, *keys: str) -> bool:
    """True for a list of objects, of which some have all of these keys."""
    several = isinstance(content, list) and content
    return bool(several) and any(isinstance(one, dict) and {*keys} <= one.keys() for one in content)


def plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some fields that hold one value."""
    one_value = (str, int, float)
    return {str(name): value for name, value in fields.items() if isinstance(value, one_value)}


def chosen(value: Any, where: str) -> list[Any]:
    """Choices as a list without empty names."""
    listed = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(one, (str, int, float, type(None))) for one in listed):
        raise DataError(f"{where} holds the answer {shown(value)}; expected a name, or several")
    return [one for one in listed if one not in (None, "")]


def table_of(
    tool: str, answers: Sequence[Answer], left: Mapping[str, int], control: str | None
) -> Table:
    """The answers to one question of a tool as a table."""
    forms = _forms(tool, answers)
    name, one_class = _control(tool, forms, answers, control)
    form, gone = forms[name], Counter(left)
    own = _named([answer for answer in answers if answer.control == name], gone)
    classes: list[str] = []
    if form == CHOICE:
        classes = _classes(name, own, one_class)
        none_chosen = sum(not answer.value for answer in own)
        gone["that chose none, read as no" if classes else "without an answer"] += none_chosen
        if classes:
            own = _yes_or_no(own, classes, one_class)
        else:
            own = [answer._replace(value=answer.value[0]) for answer in own if answer.value]
    named = [answer for answer in own if not answer.is_truth]
    if not named:
        others = ", ".join(f"{number} {why}" for why, number in gone.items() if number)
        problem = f"{tool} has no answer to {name!r} that is no ground truth ({others or 'none'})"
        raise DataError(f"{problem}; export the annotations of those who are to be judged")
    if form == CHOICE and _are_sides(named):
        form, own = SIDE, [answer._replace(form=SIDE) for answer in own]
        named = [answer for answer in own if not answer.is_truth]
    rows = [_row(answer) for answer in named]
    frame = pd.DataFrame(rows, dtype=object)
    roles: dict[str, Any] = {role: role for role in ("item", "annotator", _ROLES[form])}
    if classes:
        roles["classes"] = ["no", "yes"]
    if classes and not one_class:  # Classes differ in how often they are true.
        roles["features"] = [f"{name}={one}" for one in classes]
        which = np.tile(np.eye(len(classes), dtype=int), (len(frame) // len(classes), 1))
        frame[roles["features"]] = which
    if form == SIDE:
        roles = _side_roles(frame) | {"annotator": "annotator", "outcome": "outcome"}
    elif "item_name" in frame:  # of a question that raters wrote
        roles["item"] = "item_name"
    gold = _gold(form, [answer for answer in own if answer.is_truth], roles, frame, gone)
    if gold is not None and form == CHOICE and not classes:
        groups = alike([frame["label"].unique().tolist(), gold["truth"].unique().tolist()])
        if not {*groups[1]} <= {*groups[0]}:
            roles["classes"] = list(in_order(groups))
    about = f"{tool}, question {name!r} ({form})"
    if classes:
        about += f", {one_class!r} or not" if one_class else f", each of {len(classes)} or not"
    unread = [f"{other!r} ({forms[other]})" for other in forms if other != name]
    notes = [f"{number:,} {why}" for why, number in gone.items() if number]
    notes += [f"not read: {shorten(unread)}"] * bool(unread)
    return Table(frame, about, roles, tuple(notes), gold, name, tuple(classes))


def _forms(tool: str, answers: Iterable[Answer]) -> dict[str, str]:
    """The form of the answers to each question."""
    forms: dict[str, str] = {}
    for answer in answers:
        if forms.setdefault(answer.control, answer.form) != answer.form:
            both = f"{forms[answer.control]} and {answer.form}"
            problem = f"{tool} has answers of two kinds to {answer.control!r} ({both})"
            raise DataError(f"{problem}, as those of two projects; give one project at a time")
    return forms


def _control(
    tool: str, forms: Mapping[str, str], answers: Iterable[Answer], asked: str | None
) -> tuple[str, str]:
    """The question that is read, and the one class of which it is asked whether it was chosen."""
    numbers = Counter(answer.control for answer in answers)
    listed = ", ".join(f"{name!r} ({forms[name]}, {numbers[name]:,} answers)" for name in forms)
    readable = [name for name in forms if forms[name] in _ROLES]
    if asked is not None:
        name, _, one_class = asked.partition("=") if asked not in forms else (asked, "", "")
        if name not in readable or (one_class and forms[name] != CHOICE):
            expected = f"questions of this export are {listed or 'none'}; choices, ratings and"
            expected += " pairwise answers are read"
            refuse_data("control", asked, "is no question that can be read", expected)
        return name, one_class
    if not readable:
        problem = f"is an export of {tool} with {listed or 'no answer'}"
        expected = "choices, ratings and pairwise answers are read; spans, boxes and texts are not"
        refuse_data("table", problem=problem, expected=expected)
    if len(readable) > 1:
        problem, such = f"is not given, and {tool} has {listed}", f"control={readable[0]!r}"
        refuse_data("control", problem=problem, expected="name one of them", instead=such)
    return readable[0], ""


def _classes(name: str, answers: Sequence[Answer], one_class: str) -> list[str]:
    """Classes of which it is asked whether they were chosen; none where each answer is one."""
    known = list(dict.fromkeys(name_text(one) for answer in answers for one in answer.value))
    if one_class:
        if one_class not in known:
            problem, expected = "names a class that nobody chose", f"choose one of {shorten(known)}"
            refuse_data("control", f"{name}={one_class}", problem, expected)
        return [one_class]
    return known if any(len({*map(name_text, one.value)}) > 1 for one in answers) else []


def _yes_or_no(answers: Sequence[Answer], classes: Sequence[str], one_class: str) -> list[Answer]:
    """Answers of yes or no for each class; of several classes, each of an item is an item."""
    each = []
    for answer in answers:
        said = {*map(name_text, answer.value)}
        for one in classes:
            item = answer.item if one_class else f"{name_text(answer.item)}={one}"
            data, value = answer.data if one_class else {}, "yes" if one in said else "no"
            each.append(answer._replace(value=value, item=item, data=data))
    return each


def _are_sides(answers: Iterable[Answer]) -> bool:
    """True for choices between the two sides of a question that raters wrote."""
    names = {"first_name", "second_name"}
    return all(names <= one.data.keys() and one.value in _SIDES for one in answers)


def _named(answers: list[Answer], gone: Counter[str]) -> list[Answer]:
    """Answers of which each has an annotator: those of nobody named are of different people."""
    nobody = [place for place, one in enumerate(answers) if one.annotator in (None, "")]
    gone["by nobody named (each counts as another person's)"] += len(nobody)
    for place in nobody:
        answers[place] = answers[place]._replace(annotator=f"unnamed {place + 1}")
    return answers


def _row(answer: Answer) -> dict[str, Any]:
    """An answer as a row; further fields give way to the roles."""
    row = {"item": answer.item, "annotator": answer.annotator, _ROLES[answer.form]: answer.value}
    row |= {} if answer.time is None else {"time": answer.time}
    taken = {*row, *_ROLES.values()}
    return row | {f"data.{n}" if n in taken else n: v for n, v in answer.data.items()}


def _side_roles(frame: pd.DataFrame) -> dict[str, Any]:
    """The two columns that name what was compared, where only two can be those."""
    names = [name for name in frame.columns if frame[name].notna().all()]
    pairs = [("first_name", "second_name")]  # of questions that raters wrote
    for name in names:
        for one, two in _ENDS:
            if name.endswith(one) or name.startswith(one):
                pairs.append((name, name.removesuffix(one) + two))
                pairs.append((name, two + name.removeprefix(one)))
    pairs = [pair for pair in dict.fromkeys(pairs) if {*pair} <= {*names} and pair[0] != pair[1]]
    of_models = [pair for pair in pairs if pair[0] == "first_name" or "model" in pair[0].lower()]
    pairs = of_models or pairs
    ties = {"ties": "half"} if (frame["outcome"] == "tie").any() else {}
    sides = dict(zip(("first", "second"), pairs[0], strict=True)) if len(pairs) == 1 else {}
    return sides | ties | {"outcomes": {side: side for side in _SIDES}}


def _gold(
    form: str,
    truths: Sequence[Answer],
    roles: Mapping[str, Any],
    frame: pd.DataFrame,
    gone: Counter[str],
) -> pd.DataFrame | None:
    """Ground truths as an audit takes them."""
    rows = [_row(answer) for answer in truths]
    if form == SIDE:
        sides = {"first": "second", "second": "first"}
        if not {*sides} <= {*roles}:
            gone["ground truth(s) about sides that have no names"] += len(rows)
            return None
        rows = [row for row in rows if row["outcome"] in sides]
        pairs = [(row[roles[row["outcome"]]], row[roles[sides[row["outcome"]]]]) for row in rows]
        gold = pd.DataFrame(pairs, columns=["winner", "loser"], dtype=object)
        return gold if len(gold) else None
    item, judged = roles["item"], set(map(name_text, frame[roles["item"]]))
    known: dict[Any, Any] = {}
    for row in rows:
        if name_text(row[item]) not in judged:
            gone["ground truth(s) of items that nobody else answered"] += 1
        elif known.setdefault(row[item], row[_ROLES[form]]) != row[_ROLES[form]]:
            both = f"{known[row[item]]!r} and {row[_ROLES[form]]!r}"
            raise DataError(f"item {row[item]!r} has two ground truths, {both}; keep one")
    columns = ["item", _TRUTH[form]]
    return pd.DataFrame(known.items(), columns=columns, dtype=object) if known else None
