"""Jinja environment of the templates of a report, and its filters for names and text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, pass_context, pass_eval_context
from jinja2.nodes import EvalContext
from jinja2.runtime import Context
from markupsafe import Markup

from raters.judgements.display import ISOLATED, SHORT, WHOLE, display_name, isolated, visible
from raters.judgements.names import counted
from raters.reporting.render import (
    escape_markdown,
    in_backticks,
    number_or_dash,
    percent_or_dash,
    shade,
)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Load the templates, once."""
    made = Environment(
        loader=PackageLoader("raters.reporting"),
        autoescape=lambda name: str(name).endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters |= {
        "percent": percent_or_dash,
        "number": number_or_dash,
        "md": escape_markdown,
        "code": in_backticks,
    }
    made.filters |= {"counted": counted, "shade": shade, "isolated": isolated}
    made.filters["md_name"] = lambda name: escape_markdown(isolated(name))
    made.filters["grid"] = grid
    made.filters |= {"name": name_in_html, "prose": _prose}
    return made


@pass_eval_context
def _finalize(context: EvalContext, value: Any) -> Any:
    """Let nothing invisible into a page, wherever it stands."""
    return visible(value) if context.autoescape and type(value) is str else value


def name_in_html(name: Any, most: int = SHORT) -> Markup:
    """Return a name apart from the text around it, with the whole of a long one in its title."""
    return _apart(display_name(name, most), display_name(name, WHOLE))


def _apart(shown: str, whole: str) -> Markup:
    title = Markup(' title="{}"').format(whole) if whole != shown else Markup()
    return Markup("<bdi{}>{}</bdi>").format(title, shown)


@pass_context
def _prose(context: Context, text: str) -> Markup:
    """Return a text with the names in it apart from the rest."""
    pieces = ISOLATED.split(visible(text))
    whole = context["whole_names"]
    return Markup().join(
        _apart(piece, whole.get(piece, piece)) if place % 2 else piece
        for place, piece in enumerate(pieces)
    )


def grid(rows: list[dict[str, Any]], columns: list[dict[str, Any]]) -> str:
    """Align rows of a table under their headings."""
    headings = [str(column["heading"]) for column in columns]
    lines = [headings, *([_cell(column, row) for column in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    names = [column["form"] in ("name", "text") for column in columns]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if is_name else cell.rjust(width)
            for cell, width, is_name in zip(line, widths, names, strict=True)
        ).rstrip()
        for line in lines
    )


def _cell(column: dict[str, Any], row: dict[str, Any]) -> str:
    """One cell of a table as text, with its interval where it has one."""
    name, form = column["name"], column["form"]
    if form in ("name", "text"):
        return display_name(row[name], 32)
    forms: dict[str, Callable[[float], str]] = {
        "percent": percent_or_dash,
        "whole": "{:,.0f}".format,
        "range": "{:g}".format,
    }
    shown = forms.get(form, number_or_dash)
    text = shown(row[name]) if name in row else ""
    low, high = (row.get(f"{name}_{end}") for end in ("low", "high"))
    if low is not None and high is not None:
        text = f"{text} [{shown(low)}, {shown(high)}]".strip()
    return text
