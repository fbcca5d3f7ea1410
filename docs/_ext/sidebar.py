"""Side bar of a page: the pages of its own part of the reference, not of all parts.

The theme draws the whole tree of pages on every page, which is most of the time of a build with a
page for each public name.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def _collapse(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _tree: Any
) -> None:
    """Give the theme a table of contents that leaves out what the page does not lie in."""
    if "toctree" not in context:
        return
    drawn = context["toctree"]
    context["toctree"] = lambda **settings: drawn(**settings | {"collapse": True})


def setup(app: Sphinx) -> dict[str, Any]:
    """Run before the theme asks for the tree, which it does at the priority 500."""
    app.connect("html-page-context", _collapse, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
