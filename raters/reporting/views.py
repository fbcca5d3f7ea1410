"""Forms of a report: a page, Markdown and plain text, from its facts alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from raters import inference
from raters.errors import SettingError, refuse
from raters.errors.validation import checked
from raters.judgements.display import ISOLATED, SHORT, WHOLE, display_name, isolated, visible
from raters.judgements.names import dashed
from raters.kinds import Column
from raters.reporting.facts import as_json

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# Rows of a section's table in a page, which would be slow with more.
_ROWS = 500
# A model, a back-end or a verb as one writes it in Python.
_PYTHON = re.compile(
    r"\brt\.(?:(?:models\.)?([A-Z]\w*)\(((?:\w+=[^=(),]+(?:, )?)*)\)|(audit|check)\b)"
)


def report(form: str, facts: Mapping[str, Any], rows: int = _ROWS) -> str:
    """A report as a page (``html``), or shorter as Markdown (``md``) or text (``txt``)."""
    return _rendered(f"report.{form}", _prepared(facts) | {"most": rows, "columns_in_text": 4})


def board(form: str, facts: Mapping[str, Any], rows: int = _ROWS) -> str:
    """A board as a page (``html``, or ``inline.html`` for a notebook), Markdown or text."""
    page = dict(facts) | {
        "say": partial(lines_of, facts),
        "words": _worded(facts, "finding", facts["notes"]),
        "meanings": lines_of(facts, "meanings_of", facts["columns"], []),
        "level": f"{facts['asked']['level']:.0%}",
        "columns": _headed(facts, facts["columns"], facts["rows"]),
        "most": rows,
    }
    return _rendered(f"board.{form}", page)


def _rendered(form: str, page: Mapping[str, Any]) -> str:
    """A page without needless blank lines, and in a terminal without what cannot be seen."""
    text = environment().get_template(f"{form}.jinja").render(page)
    if form.endswith("html"):
        return text.lstrip()
    lines = re.sub(r"\n{3,}", "\n\n", text).strip().split("\n")
    return "\n".join(map(visible, lines) if form.endswith("txt") else lines) + "\n"


def summary(facts: Mapping[str, Any]) -> list[str]:
    """The answer, what it stands on, and what would change it, in lines."""
    page, say = _prepared(facts), partial(lines_of, facts)
    answer = [page["headline"], *say("stands_on"), *say("not_final")]
    return [*answer, *page["sure"], *page["steps"]]


def lines_of(facts: Mapping[str, Any], name: str, *arguments: Any) -> list[str]:
    """Lines of a macro of the template of words."""
    macro = getattr(environment().get_template("words.jinja").module, name)
    lines = str(macro(*arguments, facts)).splitlines()
    lines = [" ".join(line.split()) for line in lines if line.strip()]
    return list(map(as_options, lines)) if facts.get("front") == "command line" else lines


def as_options(text: str) -> str:
    """A text with the options of the command line in place of Python."""

    def option(found: re.Match[str]) -> str:
        name, settings, verb = found.groups()
        if verb:
            return {"audit": "raters audit", "check": "raters audit --with check"}[verb]
        chosen = f"--model {dashed(name)}"
        if name in inference.__all__:
            chosen = f"--backend {name.removeprefix('PG').lower()}"
        given = re.findall(r"[^\s,]+", settings.replace('"', ""))
        return " --set ".join([chosen, *given])

    return _PYTHON.sub(option, text)


def _worded(facts: Mapping[str, Any], group: str, entries: Any) -> list[str]:
    """Words of findings, steps or limits; those of kinds outside of the package are their own."""
    names = ["own" if "text" in one else f"{group}_{one['code']}" for one in entries]
    said = [lines_of(facts, name, one) for name, one in zip(names, entries, strict=True)]
    return [line for lines in said for line in lines]


def _prepared(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts with their words."""
    say, words = partial(lines_of, facts), facts["words"]
    special = {
        "judge": Column(facts["judge"], "name", words["judge"]),
        "verdict": Column("verdict", "text", "verdict"),
        "reason": Column("why", "text", "reason"),
        "count": Column("judgements", "whole", words["many"]),
    }
    columns = _headed(facts, map(vars, special.values()), [])
    sections = {
        key: dict(section)
        | {
            "words": _worded(facts, "finding", section["findings"]),
            "columns": _headed(facts, section["columns"], section["rows"]),
            "groups": _groups(section),
            "meanings": say("meanings_of", section["columns"], section["matrices"]),
        }
        for key, section in facts["sections"].items()
    }
    people = [
        dict(row) | {"why": "".join(say("reason", row["reason"])) if row["reason"] else "–"}
        for row in facts["annotators"]
    ]
    # The first finding is said above.
    first: list[str] = []
    for section in list(sections.values())[:1]:
        first, section["words"] = section["words"][:1], section["words"][1:]
    headline = say("headline") if people else first
    next_columns = _headed(facts, facts["next"]["question_columns"], [])
    page = dict(facts) | {
        "say": say,
        "annotators": people,
        "columns": _headed(facts, facts["columns"], people),
        "sections": sections,
        "headline": headline[0] if headline else "",
        "sure": first * bool(people) + (say("sure") if people else []),
        "steps": _worded(facts, "step", facts["next"]["steps"]),
        "limits": _worded(facts, "limit", facts["limits"]),
        "level": f"{facts['asked']['level']:.0%}",
        "next": dict(facts["next"]) | {"question_columns": next_columns},
    }
    return page | {f"{name}_column": one for name, one in zip(special, columns, strict=True)}


def _headed(facts: Mapping[str, Any], columns: Any, rows: Any) -> list[dict[str, Any]]:
    """Columns with their headings, and the scales of those that are drawn."""
    keys = rows[0] if rows else {}
    every = [world for row in rows for world in row.get("worlds", [row])]
    headed = []
    for column in columns:
        name, marks = column["name"], list(column.get("marks", ()))
        if name == facts["judged"] and "verdict" in keys:
            marks.append(facts["asked"]["threshold"])
        is_drawn = column["form"] == "interval" and rows
        more = {"heading": lines_of(facts, "heading", column)[0], "ends": f"{name}_low" in keys}
        more |= {"scale": scale_of(every, name, *marks) if is_drawn else None}
        headed.append({**column, **more, "marks": sorted(set(marks))})
    return headed


def _groups(section: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of a section under their headings."""
    rows, name = section["rows"], section["group"]
    if not name:
        return [{"heading": "", "rows": rows}] if rows else []
    return [
        {
            "heading": f"{name}: {isolated(value)}".replace("_", " "),
            "rows": [row for row in rows if row[name] == value],
        }
        for value in dict.fromkeys(row[name] for row in rows)
    ]


# ---------------------------------------------------------------- numbers and cells


class Scale(NamedTuple):
    """Linear scale from numbers to positions, in per cent of its width."""

    low: float
    high: float

    def at(self, value: float) -> str:
        """Position of a number, at most the ends of the scale."""
        return f"{np.interp(value, self, (0, 100)):.1f}%"

    def wide(self, low: float, high: float) -> str:
        """Width of an interval."""
        return f"{np.ptp(np.interp((low, high), self, (0, 100))):.1f}%"


def scale_of(rows: list[Mapping[str, Any]], name: str, *also: float) -> Scale:
    """Scale that contains the intervals of all rows, and the numbers `also`."""
    low = min([row[f"{name}_low"] for row in rows] + list(also))
    high = max([row[f"{name}_high"] for row in rows] + list(also))
    margin = 0.03 * (high - low or 1.0)
    return Scale(low - margin, high + margin)


def percent(share: float | None) -> str:
    """A probability as people read it: never 0 % or 100 % but where it is."""
    if share is None or share != share:
        return "–"
    if share in (0.0, 1.0) or 0.005 <= share < 0.995:
        return f"{share:.0%}"
    return "<1%" if share < 0.5 else ">99%"


def number(value: float | None, digits: int = 2, form: str = "") -> str:
    """A number with a true minus sign, or a dash for None."""
    return "–" if value is None else format(value, form or f".{digits}f").replace("-", "−")


def about(value: float) -> str:
    """An expected number with about two significant digits."""
    return f"{value:,.0f}" if value >= 20 else f"{value:.1f}" if value >= 0.95 else f"{value:.2f}"


# Of numbers that are neither probabilities nor shown with two digits.
_NUMBERS = {"whole": ",.0f", "range": ",.0f", "digits": ".3g"}


def cell(column: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """A cell of a table, with its interval where it has one; in each of several worlds."""
    name, form = column["name"], column["form"]
    if form in ("name", "text"):
        return isolated(row[name])
    shown: Any = percent
    if form != "percent":
        shown = partial(number, digits=column.get("digits", 2), form=_NUMBERS.get(form, ""))
    worlds = [row]
    if form == "interval":
        worlds = row.get("worlds", worlds)
    cells = []
    for world in worlds:
        low, high = (world.get(f"{name}_{end}") for end in ("low", "high"))
        interval = "" if low is None else f" [{shown(low)},\u00a0{shown(high)}]"
        cells.append(f"{shown(world[name])}{interval}")
    return " or ".join(cells)


def grid(rows: list[Mapping[str, Any]], columns: list[Mapping[str, Any]]) -> str:
    """Rows of a table, aligned under their headings."""
    lines = [[str(column["heading"]) for column in columns]]
    for row in rows:
        cells = [cell(column, row) for column in columns]
        named = [column["form"] in ("name", "text") for column in columns]
        lines.append([display_name(c, 32) if n else c for c, n in zip(cells, named, strict=True)])
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    left = ["<" if column["form"] in ("name", "text") else ">" for column in columns]
    form = "  ".join(f"{{:{side}{width}}}" for side, width in zip(left, widths, strict=True))
    return "\n".join(form.format(*line).rstrip() for line in lines)


def names(values: list[Any], most: int = 5) -> str:
    """The first of some names, and how many there are."""
    more = f", … ({len(values):,} in all)" if len(values) > most else ""
    return ", ".join(map(isolated, values[:most])) + more


# ---------------------------------------------------------------- templates


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates; Jinja is not imported before one is wanted."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("raters.reporting"),
        bytecode_cache=jinja2.FileSystemBytecodeCache(),
        autoescape=lambda name: str(name).endswith(".html.jinja"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=jinja2.pass_eval_context(_finalize),
    )
    made.filters |= {"percent": percent, "number": number, "about": about, "names": names}
    made.filters |= {"cell": cell, "grid": grid, "prose": prose, "line": visible}
    made.filters |= {"whole": "{:,.0f}".format, "isolated": isolated}
    made.filters |= {"md": escape_markdown, "code": in_backticks, "name": name_in_html}
    return made


def _finalize(context: Any, value: Any) -> Any:
    """Let nothing invisible into a page, wherever it stands."""
    return visible(value) if context.autoescape and type(value) is str else value


def name_in_html(name: Any, most: int = SHORT) -> Markup:
    """A name apart from the text around it, with the whole of a long one in its title."""
    from markupsafe import Markup

    shown, whole = display_name(name, most), display_name(name, WHOLE)
    title = Markup(' title="{}"').format(whole) if whole != shown else Markup()
    return Markup("<bdi{}>{}</bdi>").format(title, shown)


def prose(text: str) -> Markup:
    """A text with the names in it apart from the rest."""
    from markupsafe import Markup

    pieces = enumerate(ISOLATED.split(visible(text)))
    return Markup().join(
        Markup("<bdi>{}</bdi>").format(piece) if place % 2 else piece for place, piece in pieces
    )


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
    """A line of code, between more backticks than it contains."""
    line = " ".join(visible(str(text)).split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


# ---------------------------------------------------------------- facts with their forms

# Method that makes the form of a file, by its ending.
FORMS = {".html": "to_html", ".md": "to_markdown", ".txt": "to_text", ".json": "to_json"}


class Page:
    """Facts, and the forms that show them."""

    facts: Mapping[str, Any]
    #: ``view(form, facts)`` writes the facts as ``html``, ``md`` or ``txt``.
    view: ClassVar[Callable[..., str]]

    def _shown(self) -> Mapping[str, Any]:
        return self.facts

    def to_html(self) -> str:
        """One page that needs nothing else: no script, no font, no picture from elsewhere."""
        return self.view("html", self._shown())

    def to_markdown(self) -> str:
        """The short form, for a pull request or an issue; names are escaped."""
        return self.view("md", self._shown())

    def to_text(self, rows: int = 20) -> str:
        """Plain text of some sixty lines for a terminal, with tables of at most so many rows."""
        return self.view("txt", self._shown(), rows)

    def to_json(self) -> str:
        """Strict JSON. ``Report(json.loads(text))`` is the report again."""
        return as_json(self.facts)

    @checked
    def as_text(self, path: str | Path) -> str:
        """The form that the ending of a path asks for: ``.html``, ``.md``, ``.txt`` or ``.json``;
        nothing is written."""
        return getattr(self, FORMS[check_form(Path(path))])()

    @checked
    def save(self, path: str | Path) -> None:
        """Write the form that the ending of `path` asks for.

        Parameters
        ----------
        path : str or pathlib.Path
            Ending in ``.html``, ``.md``, ``.txt`` or ``.json``.

        Raises
        ------
        SettingError
            When the ending is another one, or the file cannot be written.
        """
        path = Path(path)
        text = self.as_text(path)
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            why = f"{str(path)!r} cannot be written: {error.strerror}"
            raise SettingError(f"{why}; name a file in a folder that can be written to") from error


def check_form(path: Path) -> str:
    """The ending of a report's file."""
    if path.suffix.lower() not in FORMS:
        expected = f"end it in {', '.join(FORMS)}, such as {path.stem or 'report'}.html"
        refuse("path", str(path), "does not say what form the report should have", expected)
    return path.suffix.lower()
