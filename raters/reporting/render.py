"""HTML page and Markdown of a report, from its facts alone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from raters.auditing.verdicts import VERDICTS
from raters.judgements.display import WHOLE, display_name, visible
from raters.reporting.facts import percent, plural_noun

if TYPE_CHECKING:
    from jinja2 import Template

# Up to so many judges are shown at once; of more, only the first, and the others folded away.
_OPEN, _FIRST = 30, 10
# Counts of a section that are shown; of more, the largest.
_COUNTS = 12
# Rows of a section's table at most: in a page, and in Markdown; judges in Markdown.
_ROWS, _ROWS_IN_MARKDOWN, _IN_MARKDOWN = 500, 10, 50
# Up to so many judges, numbers fit into the cells of the matrix.
NUMBERED = 12
# Letters of a name beside a matrix.
_SHORT = 32
# Cells with fewer common questions are pale.
FEW = 5


class Scale(NamedTuple):
    """Linear scale from numbers to positions, in per cent of its width."""

    low: float
    high: float

    def at(self, value: float) -> str:
        """Return the position of a number, at most the ends of the scale."""
        inside = min(max(value, self.low), self.high)
        return f"{100 * (inside - self.low) / (self.high - self.low):.1f}%"

    def wide(self, low: float, high: float) -> str:
        """Return the width of an interval."""
        return f"{float(self.at(high)[:-1]) - float(self.at(low)[:-1]):.1f}%"


def scale_of(rows: list[Mapping[str, Any]], name: str, *also: float) -> Scale:
    """Return a scale that contains the intervals of all rows, and the numbers `also`."""
    low = min([row[f"{name}_low"] for row in rows] + list(also))
    high = max([row[f"{name}_high"] for row in rows] + list(also))
    margin = 0.03 * (high - low or 1.0)
    return Scale(low - margin, high + margin)


def html(facts: Mapping[str, Any]) -> str:
    """Render the report as an HTML page."""
    return _template("report.html.jinja").render(_prepared(facts)).lstrip()


def markdown(facts: Mapping[str, Any]) -> str:
    """Render the report as Markdown, which is shorter."""
    text = _template("report.md.jinja").render(_prepared(facts))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def text(facts: Mapping[str, Any], rows: int) -> str:
    """Render the report as plain text."""
    prepared = _prepared(facts) | {"rows_in_text": rows}
    text = _template("report.txt.jinja").render(prepared)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _template(name: str) -> Template:
    """Load a template; Jinja is not imported before one is wanted."""
    from raters.reporting.environment import environment

    return environment().get_template(name)


def _prepared(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the facts what the templates need for their layout."""
    annotators = facts["annotators"]
    first = annotators if len(annotators) <= _OPEN else annotators[:_FIRST]
    folded = {
        verdict: [row for row in annotators[len(first) :] if row["verdict"] == verdict]
        for verdict in VERDICTS
    }
    return (
        dict(facts)
        | _of_judged(facts)
        | {
            "first": first,
            "folded": {verdict: rows for verdict, rows in folded.items() if rows},
            "judges": plural_noun(facts["judge"]),
            "columns": _with_ends(facts["columns"], annotators),
            "sections": {
                key: dict(section)
                | {
                    "tables": [
                        _laid_out(table, key, place)
                        for place, table in enumerate(section["tables"])
                    ],
                    "counts": _largest(section["counts"]),
                }
                for key, section in facts["sections"].items()
            },
            "whole_names": _whole_names(facts),
            "verdicts": VERDICTS,
            "in_markdown": _IN_MARKDOWN,
            "rows_most": _ROWS,
            "rows_in_markdown": _ROWS_IN_MARKDOWN,
            "numbered": NUMBERED,
            "short": _SHORT,
            "few": FEW,
        }
    )


def _of_judged(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Scale of the judged quantity; nothing where nobody is judged."""
    if not facts["annotators"]:
        return {}
    judged, threshold = facts["columns"][0], facts["how"]["threshold"]
    drawn = [world for row in facts["annotators"] for world in row.get("worlds", [row])]
    return {
        "scale": scale_of(drawn, judged["name"], *judged["marks"], threshold),
        # Places on the axis, in the upper row of numbers or the lower.
        "marks": [(mark, 0) for mark in judged["marks"] if mark != threshold] + [(threshold, 1)],
    }


def _with_ends(
    columns: list[Mapping[str, Any]], rows: list[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Add to each column whether its values have an interval."""
    keys = rows[0] if rows else {}
    return [dict(column) | {"ends": f"{column['name']}_low" in keys} for column in columns]


def _largest(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the largest counts, and the sum of the others."""
    if len(counts) <= _COUNTS:
        return dict(counts)
    names = sorted(counts, key=lambda name: -counts[name])
    others = f"{len(names) - _COUNTS:,} others"
    return {name: counts[name] for name in names[:_COUNTS]} | {
        others: sum(counts[name] for name in names[_COUNTS:])
    }


def _whole_names(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the whole names of those that are cut, by what a sentence shows of them."""
    tables = [table for section in facts["sections"].values() for table in section["tables"]]
    columns = [(facts["annotators"], facts["judge"])] + [
        (table["rows"][:_ROWS] + table["rows"][-1:], column["name"])
        for table in tables
        for column in table["columns"]
        if column["form"] in ("name", "text")
    ]
    names = {str(row[name]) for rows, name in columns for row in rows}
    pairs = ((display_name(name), display_name(name, WHOLE)) for name in names)
    return {shown: whole for shown, whole in pairs if shown != whole}


def _laid_out(table: Mapping[str, Any], section: str, place: int) -> dict[str, Any]:
    """Add to a table the scales of its intervals, and an id for the lines behind them."""
    drawn = [column for column in table["columns"] if column["form"] == "interval"]
    scales = {
        column["name"]: scale_of(table["rows"], column["name"], *column["marks"])
        for column in drawn
        if table["rows"]
    }
    marks = {column["name"]: [(mark, 0) for mark in column["marks"]] for column in drawn}
    lines = f"lines-{section}-{place}"
    columns = _with_ends(table["columns"], table["rows"])
    return dict(table) | {"scales": scales, "marks": marks, "lines": lines, "columns": columns}


def shade(share: float, by_chance: float) -> tuple[str, str]:
    """Return colour and opacity of a cell of the matrix; the opacity is 0 at chance agreement."""
    below = share < by_chance
    largest = by_chance if below else 1 - by_chance
    opacity = 0.8 * abs(share - by_chance) / largest if largest > 0 else 0.0
    return "low" if below else "high", f"{opacity:.2f}"


def percent_or_dash(share: float | None) -> str:
    """Format a share in per cent, or a dash for None."""
    return "–" if share is None else percent(share)


def number_or_dash(value: float | None, digits: int = 2) -> str:
    """Format a number with a true minus sign, or a dash for None."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "−")


_SYNTAX = "\\`*_{}[]<>|~#$"
# GitHub turns these into mentions, references and links; an invisible word joiner after them
# prevents it.
_AUTOLINK = re.compile(r"@|#(?=\w)|:(?=//)|www(?=\.)|\bgh-(?=\d)", re.IGNORECASE)
_WORD_JOINER = "\u2060"


def escape_markdown(text: Any) -> str:
    """Escape a text for Markdown and GitHub, also in a cell of a table."""
    plain = " ".join(visible(str(text)).split()).replace("&", "&amp;")
    unlinked = _AUTOLINK.sub(lambda match: match[0] + _WORD_JOINER, plain)
    escaped = "".join(f"\\{letter}" if letter in _SYNTAX else letter for letter in unlinked)
    return escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")


def in_backticks(text: Any) -> str:
    """Format a line of code, between more backticks than it contains."""
    line, fence = " ".join(visible(str(text)).split()), "`"
    while fence in line:
        fence += "`"
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"
