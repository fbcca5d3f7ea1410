"""Words for the numbers of audits, by the template ``words.jinja``."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache(maxsize=1)
def _macros() -> Any:
    """Macros of the template; Jinja is not imported before one is wanted."""
    import jinja2

    text = files("raters.auditing").joinpath("words.jinja").read_text("utf-8")
    made = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
    return made.from_string(text).module


def worded(name: str, /, **numbers: Any) -> str:
    """Sentence of this name."""
    return re.sub(r"\s*\n\s*", " ", str(getattr(_macros(), name)(**numbers))).strip()
