"""Reading and writing of BibTeX entries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# Fields that BibTeX's standard styles require; entries of other kinds are not checked.
_REQUIRED = {
    "article": ("author", "title", "journal", "year"),
    "book": ("author", "title", "publisher", "year"),
    "inproceedings": ("author", "title", "booktitle", "year"),
    "online": ("author", "title", "year", "url"),
    "misc": ("author", "title", "year"),
    "unpublished": ("author", "title", "note"),
}
_HEAD = re.compile(r"@([a-zA-Z]+)\s*\{\s*([^\s,{}]+)\s*,")
# A value in braces (of which only the first is matched), in quotes, or a number.
_FIELD = re.compile(r"\s*([a-zA-Z_-]+)\s*=\s*(?:\{|\"([^\"]*)\"|(\d+))")


class Entry(NamedTuple):
    """BibTeX entry: its kind in lower case, its key, and its fields."""

    kind: str
    key: str
    fields: Mapping[str, str]

    def __str__(self) -> str:
        width = max(map(len, self.fields))
        lines = [f"  {name:<{width}} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def entries(text: str) -> tuple[Entry, ...]:
    """Parse a text of BibTeX entries, such as the `reference` of a model."""
    parsed: list[Entry] = []
    rest = text.strip()
    while rest:
        entry, rest = _entry(rest)
        if entry.key in {other.key for other in parsed}:
            raise ValueError(f"two entries have the key {entry.key}")
        parsed.append(entry)
    return tuple(parsed)


def _entry(text: str) -> tuple[Entry, str]:
    """Parse the first entry, and return it with the text that follows."""
    head = _HEAD.match(text)
    if not head:
        raise ValueError(
            f"expected an entry such as @article{{key, author = {{...}}, ...}}, found {text[:40]!r}"
        )
    kind, key = head[1].lower(), head[2]
    fields: dict[str, str] = {}
    rest = text[head.end() :]
    while field := _FIELD.match(rest):
        name = field[1].lower()
        if name in fields:
            raise ValueError(f"{key} has two fields {name}")
        plain = field[2] if field[2] is not None else field[3]
        end = _closing(rest, field.end(), key, name) if plain is None else field.end() - 1
        fields[name] = " ".join((rest[field.end() : end] if plain is None else plain).split())
        rest = rest[end + 1 :].lstrip()
        if not rest.startswith(","):
            break
        rest = rest[1:]
    rest = rest.lstrip()
    if not rest.startswith("}"):
        raise ValueError(
            f"{key} does not end in a brace after its fields, but in {rest[:40]!r}; commas part"
            " fields"
        )
    rest = rest[1:].lstrip()
    if rest and not rest.startswith("@"):
        raise ValueError(
            f"after {key} comes {rest[:40]!r}; expected another entry or nothing (is there a brace"
            " too many?)"
        )
    entry = Entry(kind, key, fields)
    _check(entry)
    return entry, rest


def _closing(text: str, begin: int, key: str, name: str) -> int:
    """Return the index of the brace that closes the one before `begin`."""
    depth = 1
    for index in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            if re.search(r",\s*[a-zA-Z]+\s*=\s*\{", text[begin:index]):
                break  # The value has run into the next field, whose brace closed it.
            return index
    raise ValueError(f"{key} has a brace in {name} that is not closed")


def _check(entry: Entry) -> None:
    """Check that the entry has the fields that its kind requires."""
    kind, key, fields = entry
    if missing := [name for name in _REQUIRED.get(kind, ()) if not fields.get(name)]:
        raise ValueError(f"{key} has no {' and no '.join(missing)}, which @{kind} needs")
    if not fields:
        raise ValueError(f"{key} has no fields")
