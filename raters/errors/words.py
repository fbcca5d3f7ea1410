"""Words for numbers, by the template ``words.jinja`` of a package."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Any


@cache
def _macros(package: str) -> Any:
    """Macros of a package's template; Jinja is not imported before one is wanted."""
    import jinja2

    text = files(package).joinpath("words.jinja").read_text("utf-8")
    made = jinja2.Environment(undefined=jinja2.StrictUndefined, trim_blocks=True)
    return made.from_string(text).module


def _sentence(package: str, name: str, /, **numbers: Any) -> str:
    return re.sub(r"\s*\n\s*", " ", str(getattr(_macros(package), name)(**numbers))).strip()


def words_of(package: str) -> Callable[..., str]:
    """Return a function of the name of a macro in a package's template, and of its numbers, that
    gives the sentence."""
    return partial(_sentence, package)
