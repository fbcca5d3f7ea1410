"""The page and the Markdown of a report, from its facts alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from raters import _facts
from raters._report_facts import VERDICTS
from raters._report_words import counted

if TYPE_CHECKING:
    from jinja2 import Environment

# Annotators in one list; of more, those who can stay are folded away.
_OPEN = 30
# Rows of a ranking, and of a list of doubtful items, that are open, and at most; in Markdown.
_ITEMS_OPEN, _DOUBTFUL_OPEN, _ITEMS, _IN_MARKDOWN = 20, 10, 500, 50
# From so many annotators in the matrix, its cells are too small for numbers.
NUMBERED = 12
# With fewer questions in common a cell is pale.
FEW = 5


class Scale(NamedTuple):
    """From numbers to places on a common scale, in per cent of its width."""

    low: float
    high: float

    def at(self, value: float) -> str:
        """Where a number stands."""
        return f"{100 * (min(max(value, self.low), self.high) - self.low) / (self.high - self.low):.1f}%"

    def wide(self, low: float, high: float) -> str:
        """How wide an interval is."""
        return f"{float(self.at(high)[:-1]) - float(self.at(low)[:-1]):.1f}%"


def scale_of(rows: list[Mapping[str, Any]], name: str, *also: float) -> Scale:
    """A scale that holds all intervals, and some numbers besides."""
    low = min([row[f"{name}_low"] for row in rows] + list(also))
    high = max([row[f"{name}_high"] for row in rows] + list(also))
    margin = 0.03 * (high - low or 1.0)
    return Scale(low - margin, high + margin)


def html(facts: Mapping[str, Any]) -> str:
    """The page."""
    return _environment().get_template("report.html.jinja").render(_prepared(facts)).lstrip()


def markdown(facts: Mapping[str, Any]) -> str:
    """The short form."""
    text = _environment().get_template("report.md.jinja").render(_prepared(facts))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _prepared(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts, with what a page needs to lay them out."""
    people = facts["annotators"]
    of_labels, audit = facts["kind"] == "labels", facts["how"]
    groups = {verdict: [row for row in people if row["verdict"] == verdict] for verdict in VERDICTS}
    words = ("label", "labels") if of_labels else ("vote", "votes")
    return dict(facts) | {
        "of_labels": of_labels,
        "word": words,
        "idle": ("p_spammer", "P(spam)") if of_labels else ("p_guessing", "P(guess)"),
        "first": people if len(people) <= _OPEN else groups["drop"] + groups["review"],
        "folded": {} if len(people) <= _OPEN else {verdict: groups[verdict] for verdict in VERDICTS[2:] if groups[verdict]},
        "competence": scale_of(people, "competence", 0.0, 1.0, audit["threshold"]),
        "rewards": [] if of_labels else [scale_of(kind["ranking"], "reward", 0.0) for kind in facts["items"]["rankings"]],
        "verdicts": VERDICTS,
        "in_markdown": _IN_MARKDOWN,
        "items_open": _DOUBTFUL_OPEN if of_labels else _ITEMS_OPEN,
        "items_most": _ITEMS,
        "numbered": NUMBERED,
        "few": FEW,
    }


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("raters"),
        autoescape=lambda name: str(name).endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"percent": _percent, "number": _number, "md": escape_markdown, "code": _in_backticks}
    found.filters |= {"counted": counted, "shade": shade}
    return found


def shade(share: float, by_chance: float) -> tuple[str, str]:
    """The colour of a cell of the matrix, and how much of it: none at chance, most where two always or never agree."""
    below = share < by_chance
    most = by_chance if below else 1 - by_chance
    return ("low" if below else "high"), f"{0.8 * abs(share - by_chance) / most if most > 0 else 0.0:.2f}"


def _percent(share: float | None) -> str:
    return "–" if share is None else _facts.percent(share)


def _number(value: float | None, digits: int = 2) -> str:
    """With a true minus sign, so that a range of two reads as one."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


_MEANS_SOMETHING = "\\`*_{}[]<>|~#$"
# What GitHub turns into mentions, references and links wherever it stands; a word joiner is not seen, and parts it.
_SPECIAL = re.compile(r"@|#(?=\w)|:(?=//)|www(?=\.)|\bgh-(?=\d)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


def escape_markdown(text: Any) -> str:
    """Text that Markdown, and GitHub's, leaves as it is, also in a cell of a table."""
    plain = " ".join(str(text).split()).replace("&", "&amp;")
    parted = _SPECIAL.sub(lambda found: found[0] + _WORD_JOINER, plain)
    escaped = "".join(f"\\{letter}" if letter in _MEANS_SOMETHING else letter for letter in parted)
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")


def _in_backticks(text: Any) -> str:
    """A line of code, in more backticks than it holds."""
    line, fence = " ".join(str(text).split()), "`"
    while fence in line:
        fence += "`"
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
