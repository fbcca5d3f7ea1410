"""Facts in the forms of a page, Markdown, plain text and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from raters.errors import SettingError, refuse
from raters.errors.validation import checked
from raters.reporting.facts import as_json

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
