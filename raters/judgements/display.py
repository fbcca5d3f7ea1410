"""Names for people: long ones are cut, invisible characters shown, other directions kept apart."""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import accumulate
from typing import Any

# Letters of a name in a table or a sentence, and where the whole name is wanted.
SHORT, WHOLE = 80, 2000
# First strong isolate and its end: what ``<bdi>`` is to HTML, for plain text.
_ISOLATE, _END = "\u2068", "\u2069"
ISOLATED = re.compile(f"{_ISOLATE}([^{_ISOLATE}{_END}]*){_END}")
# Printable by their category, and blank.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\uffa0\U000e0100-\U000e01ef]"
)
_VARIANT = re.compile("[\ufe00-\ufe0f]")
# Marks on one letter; of more, they would cover the lines around it.
_MARKS = 4
_JOINERS = "\u200c\u200d"
_SIGNS = {"\n": "↵", "\r\n": "↵", "\t": "⇥"}
_LETTERS = re.compile(r"\r\n|.", re.DOTALL)


class Tabled:
    """Base of what notebooks show as a table: its ``repr`` above the first rows."""

    def _head(self) -> Any:
        """The first rows, as a data frame."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        table = self._head().map(lambda cell: display_name(cell) if isinstance(cell, str) else cell)
        shown = table.to_html(index=False, float_format="{:.3g}".format)
        return f"<p>{html.escape(visible(repr(self)))}</p>\n{shown}"


def visible(text: str) -> str:
    """Text in which whatever cannot be seen is written as its code point, as in ``[U+202E]``."""
    if text.isascii() and text.isprintable():
        return text
    pieces = ISOLATED.split(text)
    seen = ["".join(_seen(piece)) for piece in pieces]
    seen[1::2] = [f"{_ISOLATE}{piece}{_END}" for piece in seen[1::2]]
    return "".join(seen)


def display_name(name: Any, most: int = SHORT) -> str:
    """A name on one line: invisible characters and outer spaces shown, a long one cut inside."""
    text = str(name)
    if len(text) <= most and text.isascii() and text.isprintable() and text.strip(" ") == text:
        return text or "(empty)"
    letters = _letters(text if len(text) <= 2 * most else text[:most] + text[-most:])
    if sum(map(len, letters)) <= most:
        return "".join(letters)
    head = _fitting(letters, 2 * (most - 1) // 3)
    tail = _fitting(letters[::-1], most - 1 - len("".join(head)))[::-1]
    while tail and unicodedata.combining(tail[0][0]):  # has lost its letter
        tail = tail[1:]
    return f"{''.join(head)}…{''.join(tail)}"


def isolated(name: Any) -> str:
    """A name for a sentence, isolated where it has right-to-left letters or is altered."""
    shown = display_name(name)
    if shown.isascii() and shown == str(name):
        return shown
    turned = any(unicodedata.bidirectional(letter) in ("R", "AL", "AN") for letter in shown)
    return f"{_ISOLATE}{shown}{_END}" if turned or shown != str(name) else shown


def _letters(text: str) -> list[str]:
    """The characters of a name as they are shown; spaces too, at its ends."""
    pairs = zip(_LETTERS.findall(text), _seen(text), strict=True)
    letters = [_SIGNS.get(letter, seen) for letter, seen in pairs]
    inside = [place for place, letter in enumerate(letters) if not letter.isspace()]
    first, last = (inside[0], inside[-1]) if inside else (len(letters), -1)
    for place, letter in enumerate(letters):
        if not first <= place <= last:
            letters[place] = "␣" if letter == " " else _code_point(letter)
    return letters


def _fitting(letters: list[str], room: int) -> list[str]:
    """As many of the first letters as there is room for."""
    ends = accumulate(map(len, letters))
    return [letter for letter, end in zip(letters, ends, strict=True) if end <= room]


def _seen(text: str) -> list[str]:
    """Each character, or its code point where it cannot be seen; line feed and return are one."""
    letters: list[str] = _LETTERS.findall(text)
    around = ["", *letters, ""]
    seen, marks, based = [], 0, False
    for place, letter in enumerate(letters):
        marks = marks + 1 if unicodedata.combining(letter[0]) else 0
        mark = unicodedata.category(letter[0]).startswith("M")
        clear = marks <= _MARKS and _can_be_seen(*around[place : place + 3])
        clear = clear and (based or not mark)  # Without a letter it would be drawn on another text.
        seen.append(letter if clear else _code_point(letter))
        based = (clear and letter not in _SIGNS) or (based and mark)
    return seen


def _can_be_seen(before: str, letter: str, after: str) -> bool:
    if letter in ("\n", "\r\n", "\t"):
        return True
    if letter in _JOINERS:
        return not before.isascii() and not after.isascii() and (before + after).isprintable()
    if _VARIANT.match(letter):
        return before.isprintable() and not before.isspace() and before not in ("", letter)
    space = unicodedata.category(letter) == "Zs"
    return (letter.isprintable() or space) and not _BLANK.match(letter)


def _code_point(letter: str) -> str:
    return f"[U+{ord(letter):04X}]"
