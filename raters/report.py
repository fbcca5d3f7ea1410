"""A report of an audit that can be read without knowing the model: a page, Markdown or JSON, from the same facts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from raters import _facts, _report_views
from raters._report_facts import facts_of
from raters._result import check_model, data_of
from raters.audit import Audit, check_audit
from raters.errors import SettingError
from raters.model import Model

_FORMS = (".html", ".md", ".json")
# What `suggest` gives, of votes and of labels.
_QUESTIONS = ({"first", "second", "by"}, {"item", "by"})


@dataclass(frozen=True, repr=False)
class Report:
    """What `report` found; each form shows the same facts.

    Attributes
    ----------
    facts : mapping
        Plain values (numbers, text, lists and dictionaries), under these names: ``schema_version``, ``title``, ``kind``
        (comparisons or labels), ``answer``, ``annotators`` (the audit's table, those who should go first), ``items``,
        ``agreement``, ``convergence``, ``next``, ``how`` and ``cite``. What is not a number is None.
    """

    facts: Mapping[str, Any]

    def html(self) -> str:
        """One page that needs nothing else: no script, no font, no picture from elsewhere."""
        return _report_views.html(self.facts)

    def markdown(self) -> str:
        """The short form, for a pull request or an issue; names are escaped."""
        return _report_views.markdown(self.facts)

    def json(self) -> str:
        """Strict JSON. ``Report(json.loads(text))`` is the report again."""
        return _facts.as_json(self.facts)

    def as_text(self, path: str | Path) -> str:
        """The form that the ending of `path` asks for."""
        return {".html": self.html, ".md": self.markdown, ".json": self.json}[check_form(Path(path))]()

    def save(self, path: str | Path) -> None:
        """Write the form that the ending of `path` asks for: ``.html``, ``.md`` or ``.json``.

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
            raise SettingError(f"{why}; name a file in a folder that is there and can be written to") from error

    def __str__(self) -> str:
        return "\n".join([self.facts["answer"]["sentence"], *self.facts["answer"]["sure"]])

    def __repr__(self) -> str:
        return f"Report({self.facts['title']!r}: {self.facts['answer']['sentence']!r})"


def check_form(path: Path) -> str:
    """The ending of a report's file; `SettingError` when there is no form for it."""
    if path.suffix.lower() not in _FORMS:
        raise SettingError(
            f"{str(path)!r} does not say what form the report should have; end it in .html (a page), .md (Markdown) or .json, "
            f"such as {path.stem or 'report'}.html"
        )
    return path.suffix.lower()


def report(
    model: Model,
    result: xr.DataTree,
    found: Audit,
    *,
    questions: xr.Dataset | pd.DataFrame | None = None,
    questions_note: str = "",
    title: str | None = None,
    command: str = "",
) -> Report:
    """Put an audit into words and pictures, for those who decide on it.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    found : Audit
        What ``rt.audit(model, result)`` gave.
    questions : xarray.Dataset or table, optional
        What ``rt.suggest`` gave, to be listed under what to do next.
    questions_note : str
        A sentence about them.
    title : str, optional
    command : str
        The command line that made the audit. The report then says what to do next in commands, and otherwise in Python.

    Returns
    -------
    Report
        With ``html()``, ``markdown()``, ``json()`` and ``save(path)``.

    Raises
    ------
    SettingError
        When `found` is an audit of other annotators than those of `result`; when `questions` are not questions, or `command`
        is no command line.

    See Also
    --------
    audit, suggest

    Notes
    -----
    Expected numbers are the model's: with p = P(competence < threshold), the sum of 1 − p over those with verdict ``drop`` are
    wrong drops, the sum of p over those with verdict ``keep`` are wrongly kept, and the costs are those of the audit.

    The agreement of two annotators is, on average over the questions that both answered, the probability that a random
    answer of the one is that of the other; a tie counts as half an answer for each side. Beside it stands what chance gives:
    ½ of votes, and of labels the sum of the squared shares of the classes among all labels.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> result = rt.fit(model, votes, rt.PGEM(), seed=0, progress=False)
    >>> page = rt.report(model, result, rt.audit(model, result), title="The March campaign")
    >>> page.facts["answer"]["counts"]
    {'drop': 3, 'review': 0, 'keep': 7, 'not enough votes': 0}
    >>> page.save("report.html")                                    # doctest: +SKIP
    """
    check_model(model)
    data = data_of(result)
    check_audit(found, "the third argument")
    if list(map(str, found.table["annotator"].values)) != list(map(str, data.annotators)):
        raise SettingError("this is an audit of other annotators than those of the result; pass rt.audit(model, result)")
    if (fitted := result.attrs.get("model", repr(model))) != repr(model):
        raise SettingError(f"this result was fitted with {fitted}, not {model!r}; pass that model")
    _check_command(command)
    return Report(facts_of(model, result, found, _table(questions), questions_note, title, command))


def _check_command(command: str) -> None:
    """`SettingError` for what no shell would take."""
    if not isinstance(command, str):
        raise SettingError(f"command={command!r} is no text; write command=shlex.join(sys.argv)")
    try:
        shlex.split(command)
    except ValueError as error:
        why = str(error).lower()
        raise SettingError(
            f"command={command!r} is no command line ({why}); quote its words, as command=shlex.join(sys.argv) does"
        ) from error


def _table(questions: Any) -> pd.DataFrame | None:
    """Questions as a table."""
    if questions is None:
        return None
    table = questions.to_dataframe().reset_index(drop=True) if isinstance(questions, xr.Dataset) else questions
    if not isinstance(table, pd.DataFrame) or not any(names <= set(table.columns) for names in _QUESTIONS):
        raise SettingError(
            f"questions= takes what rt.suggest gives, such as questions=rt.suggest(model, result, candidates); it is a "
            f"{type(questions).__name__} without columns such as item and by"
        )
    return table
