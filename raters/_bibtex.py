"""BibTeX entries, read strictly: what `raters.cite` prints must go through everybody's tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

# What BibTeX's standard styles cannot do without.
_REQUIRED = {
    "article": ("author", "title", "journal", "year"),
    "book": ("author", "title", "publisher", "year"),
    "inproceedings": ("author", "title", "booktitle", "year"),
    "misc": ("author", "title", "year"),
    "unpublished": ("author", "title", "note"),
}
_HEAD = re.compile(r"@([a-z]+)\{([^\s,{}]+),")
_FIELD = re.compile(r"\s*([a-zA-Z]+)\s*=\s*\{")


class Entry(NamedTuple):
    """One work."""

    kind: str
    key: str
    fields: Mapping[str, str]

    def __str__(self) -> str:
        width = max(map(len, self.fields))
        lines = [f"  {name:<{width}} = {{{value}}}," for name, value in self.fields.items()]
        return "\n".join([f"@{self.kind}{{{self.key},", *lines, "}"])


def entries(text: str) -> tuple[Entry, ...]:
    """The entries of a text that holds nothing else, such as the `reference` of a model.

    Raises
    ------
    ValueError
        Saying what is wrong, and in which entry: another text, braces that do not match, a field that is missing or twice, a
        key that is twice, letters that are not ASCII.

    Examples
    --------
    >>> text = "@misc{me2025, author = {Me}, title = {On {BTL}}, year = {2025}}"
    >>> [(entry.key, entry.fields["title"]) for entry in entries(text)]
    [('me2025', 'On {BTL}')]
    """
    found: list[Entry] = []
    rest = text.strip()
    while rest:
        entry, rest = _entry(rest)
        if entry.key in {other.key for other in found}:
            raise ValueError(f"two entries have the key {entry.key}")
        found.append(entry)
    return tuple(found)


def _entry(text: str) -> tuple[Entry, str]:
    """The entry that the text begins with, and what follows it."""
    head = _HEAD.match(text)
    if not head:
        raise ValueError(f"expected an entry such as @article{{key, author = {{...}}, ...}}, found {text[:40]!r}")
    kind, key = head.groups()
    fields: dict[str, str] = {}
    rest = text[head.end() :]
    while field := _FIELD.match(rest):
        name = field[1].lower()
        if name in fields:
            raise ValueError(f"{key} has two fields {name}")
        end = _closing(rest, field.end(), key, name)
        fields[name] = " ".join(rest[field.end() : end].split())
        rest = rest[end + 1 :].lstrip()
        if not rest.startswith(","):
            break
        rest = rest[1:]
    rest = rest.lstrip()
    if not rest.startswith("}"):
        raise ValueError(f"{key} does not end in a brace after its fields, but in {rest[:40]!r}; commas part fields")
    rest = rest[1:].lstrip()
    if rest and not rest.startswith("@"):
        raise ValueError(f"after {key} comes {rest[:40]!r}; expected another entry or nothing (is there a brace too many?)")
    entry = Entry(kind, key, fields)
    _check(entry)
    return entry, rest


def _closing(text: str, begin: int, key: str, name: str) -> int:
    """Where the brace closes that was opened before `begin`."""
    depth = 1
    for place in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            if re.search(r"=\s*\{", text[begin:place]):
                break  # A later field was swallowed.
            return place
    raise ValueError(f"{key} has a brace in {name} that is not closed")


def _check(entry: Entry) -> None:
    kind, key, fields = entry
    if kind not in _REQUIRED:
        raise ValueError(f"{key} is of kind @{kind}; write one of {', '.join(f'@{known}' for known in _REQUIRED)}")
    if missing := [name for name in _REQUIRED[kind] if not fields.get(name)]:
        raise ValueError(f"{key} has no {' and no '.join(missing)}, which @{kind} needs")
    if not str(entry).isascii():
        letter = next(letter for letter in str(entry) if not letter.isascii())
        raise ValueError(f"{key} has the letter {letter!r}; write it for LaTeX, such as {{\\'o}}")
    if "year" in fields and not re.fullmatch(r"\d{4}", fields["year"]):
        raise ValueError(f"{key} has the year {fields['year']!r}; write four digits")
    if "pages" in fields and not re.fullmatch(r"\d+(--\d+)?", fields["pages"]):
        raise ValueError(f"{key} has the pages {fields['pages']!r}; write first--last")
    if re.search(r"&|;|\bet al", fields["author"]):
        raise ValueError(f"{key} has the authors {fields['author']!r}; write Last, First and Last, First")
