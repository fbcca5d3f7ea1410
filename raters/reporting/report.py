"""Report of an audit for readers who do not know the model: a page, Markdown or JSON."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from raters.auditing.audit import Audit, check_audit
from raters.auditing.verdicts import VERDICTS
from raters.errors import SettingError
from raters.errors.validation import checked
from raters.fitting.draws import check_several
from raters.fitting.identity import identity_of
from raters.fitting.result import program_of
from raters.judgements.base import Judgements
from raters.model import Model
from raters.reporting import facts, render
from raters.reporting.page import SCHEMA_VERSION, facts_of, question_roles
from raters.reporting.unjudged import unjudged_facts, why_unjudged

# Parts that every form reads.
_PARTS = (
    *("title", "kind", "judge", "judged", "words", "answer", "worlds", "columns", "annotators"),
    *("sections", "agreement", "convergence", "next", "how", "cite"),
)
_FORMS = (".html", ".md", ".json")


@dataclass(frozen=True, repr=False)
class Report:
    """Report of an audit; each form shows the same facts.

    Attributes
    ----------
    facts : mapping
        Plain values (numbers, text, lists and dictionaries); a number that is not finite is None.

        - ``schema_version``, ``title``;
        - ``kind`` (such as ``"comparisons"``), ``judge`` (axis of those who are audited),
          ``judged`` (quantity that is compared with the threshold), ``words`` (for one and for many
          judgements, and for the judges of whom it is ``lowest``);
        - ``answer``: what the verdicts stand on (``stands_on``), their counts, names, expected
          mistakes and costs, as a ``sentence`` and how ``sure`` it is, the ``headlines`` of
          sections, the known truths that ``would_change`` it, and the reasons why it is
          ``not_final``;
        - ``columns`` and ``annotators``: the audit's table with reasons, those who should go first;
        - ``worlds``: where two mirrored worlds are possible, their probabilities, and None
          elsewhere; each annotator then has ``worlds`` too;
        - ``sections``: parts of the kind by their keys, each with ``title``, ``sentence``,
          ``counts``, ``tables`` (with ``columns`` and ``rows``) and ``matrices``;
        - ``agreement``, ``convergence``, ``next``, ``how`` and ``cite``.
    """

    facts: Mapping[str, Any]

    def __post_init__(self) -> None:
        version = self.facts.get("schema_version") if isinstance(self.facts, Mapping) else None
        if version != SCHEMA_VERSION:
            raise SettingError(
                parameter="facts",
                value=f"{type(self.facts).__name__} with schema_version {version!r}",
                expected=f"it must be the facts of a report, with schema_version {SCHEMA_VERSION}",
                instead="rt.report(model, result, audit)",
            )
        _check_facts(self.facts)

    def to_html(self) -> str:
        """One page that needs nothing else: no script, no font, no picture from elsewhere."""
        return render.html(self.facts)

    def to_markdown(self) -> str:
        """The short form, for a pull request or an issue; names are escaped."""
        return render.markdown(self.facts)

    def to_json(self) -> str:
        """Strict JSON. ``Report(json.loads(text))`` is the report again."""
        return facts.as_json(self.facts)

    def to_text(self, rows: int = 20) -> str:
        """Plain text of some sixty lines for a terminal: the answer, tables of at most `rows` rows,
        limits."""
        return render.text(self.facts, rows)

    @checked
    def as_text(self, path: str | Path) -> str:
        """Return the form that the ending of a path asks for.

        Parameters
        ----------
        path : str or pathlib.Path
            Ending in ``.html``, ``.md`` or ``.json``; nothing is written.

        Returns
        -------
        str

        Raises
        ------
        SettingError
            When the ending is another one.
        """
        return {".html": self.to_html, ".md": self.to_markdown, ".json": self.to_json}[
            check_form(Path(path))
        ]()

    @checked
    def save(self, path: str | Path) -> None:
        """Write the form that the ending of `path` asks for: ``.html``, ``.md`` or ``.json``.

        Parameters
        ----------
        path : str or pathlib.Path
            Ending in ``.html``, ``.md`` or ``.json``.

        Raises
        ------
        SettingError
            When the ending is another one, or the file cannot be written.
        """
        path = Path(path)
        text = self.as_text(path)
        # A disk that is full leaves an older report as it was.
        stage = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            try:
                stage.write_text(text, encoding="utf-8")
                os.replace(stage, path)
            finally:
                stage.unlink(missing_ok=True)
        except OSError as error:
            why = f"{str(path)!r} cannot be written: {error.strerror}"
            raise SettingError(
                f"{why}; name a file in a folder that is there and can be written to"
            ) from error

    def __str__(self) -> str:
        answer = self.facts["answer"]
        lines = [answer["stands_on"], answer["sentence"], *answer["not_final"]]
        lines += [*answer.get("headlines", ()), *answer["sure"]]
        return "\n".join(filter(None, [*lines, answer["would_change"]]))

    def __repr__(self) -> str:
        return f"Report({self.facts['title']!r}: {self.facts['answer']['sentence']!r})"


def _check_facts(facts: Mapping[str, Any]) -> None:
    """`SettingError` for facts that lack a part, or judge in words that no form knows."""
    wrong = ""
    if missing := [name for name in _PARTS if name not in facts]:
        wrong = f"lack {', '.join(missing)}"
    elif not isinstance(people := facts["annotators"], (list, tuple)) or not all(
        isinstance(row, Mapping) and {facts["judge"], "verdict"} <= row.keys() for row in people
    ):
        wrong = f"hold no list of {facts['judge']}s with their verdicts"
    elif not people and facts["judged"]:
        wrong = f"name no {facts['judge']}"
    elif unknown := [row["verdict"] for row in people if row["verdict"] not in VERDICTS]:
        wrong = f"hold the verdict {unknown[0]!r}, and know {', '.join(VERDICTS)}"
    if wrong:
        raise SettingError(
            parameter="facts",
            problem=wrong,
            expected="pass the facts of a report as they were made",
            instead="rt.reporting.Report(json.loads(report.to_json()))",
        )


def check_form(path: Path) -> str:
    """The ending of a report's file."""
    if path.suffix.lower() not in _FORMS:
        raise SettingError(
            f"{str(path)!r} does not say what form the report should have; end it in .html (a"
            f" page), .md (Markdown) or .json, such as {path.stem or 'report'}.html",
            parameter="path",
            value=str(path),
        )
    return path.suffix.lower()


@checked
def report(
    model: Model[Any],
    result: xr.DataTree,
    audit: Audit | None = None,
    *,
    dropped: xr.DataTree | None = None,
    questions: xr.Dataset | pd.DataFrame | None = None,
    questions_note: str = "",
    title: str | None = None,
    command: str = "",
) -> Report:
    """Report an audit in words and pictures, for those who decide on it.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    audit : Audit, optional
        From ``rt.audit(model, result)``. Where nobody is judged, as in choices, or by a model that
        treats all judges alike, such as `BTL`, there is none, and the report has the sections of
        the kind.
    dropped : xarray.DataTree, optional
        From ``rt.auditing.drop``: the report then says what changes without those flagged.
    questions : xarray.Dataset or pandas.DataFrame, optional
        From ``rt.suggest``, to be listed under what to do next.
    questions_note : str
        A sentence about them.
    title : str, optional
    command : str
        The command line that made the audit. The report then says what to do next in commands, and
        otherwise in Python.

    Returns
    -------
    Report
        With ``to_html()``, ``to_markdown()``, ``to_text()``, ``to_json()`` and
        ``save(path)``.

    Raises
    ------
    SettingError
        When `audit` is of another fit than `result`; when `result` has a single draw, or was fitted
        with another model; when `questions` are not questions, or `command` is no command line.

    See Also
    --------
    audit, suggest

    Notes
    -----
    Expected numbers are the model's: with p = P(competence < threshold), the sum of 1 − p over
    those with verdict ``drop`` are wrong drops, the sum of p over those with verdict ``keep`` are
    wrongly kept, and the costs are those of the audit.

    The agreement of two annotators is, on average over the questions that both answered, the
    probability that a random answer of the one is that of the other; a tie counts as half an answer
    for each side. Beside it stands agreement by chance: ½ where questions compare two things,
    otherwise the sum of the squared shares of the answers among all answers.

    The report of any kind of judgement has the audit's table, expected mistakes and costs,
    convergence, agreement, next steps, facts of the data and citations. `raters.kinds.Kind` adds
    ``columns``, ``reason`` and ``sections``.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> result = rt.fit(model, votes, rt.PGEM(), seed=0, progress=False)
    >>> audit = rt.audit(model, result, reference="crowd")
    >>> page = rt.report(model, result, audit, title="The March campaign")
    >>> counts = page.facts["answer"]["counts"]
    >>> counts["drop"], counts["review"], counts["keep"]
    (3, 0, 7)
    >>> page.save("report.html")                                    # doctest: +SKIP
    """
    program = program_of(model, result)
    data = program.data
    if audit is None and why_unjudged(program):
        if dropped is not None:
            raise SettingError(
                parameter="dropped",
                problem="is a fit without those flagged, and nobody is judged here",
                expected="leave it out, or pass an audit",
            )
        check_several(result, "a report says how sure it is")
        _check_command(command)
        table = _table(questions, data)
        return Report(unjudged_facts(program, result, table, questions_note, title, command))
    check_audit(audit, "the third argument")
    assert audit is not None
    if audit.judge != data.judge or list(map(str, audit.table[data.judge].values)) != list(
        map(str, data.judges)
    ):
        raise SettingError(
            f"this is an audit of other {facts.plural_noun(data.judge)} than those of the result;"
            " pass rt.audit(model, result)",
            parameter="audit",
            value=audit,
            problem=f"is of other {facts.plural_noun(data.judge)} than those of the result",
            expected="pass the audit of this result",
        )
    if audit.fit and audit.fit != identity_of(program):
        raise SettingError(
            parameter="audit",
            problem="is of another fit than `result`: of another model, or of other judgements",
            expected="pass the audit of this result",
            instead="rt.report(model, result, rt.audit(model, result))",
        )
    check_several(result, "a report says how sure it is")
    _check_command(command)
    table = _table(questions, data)
    return Report(facts_of(program, result, audit, dropped, table, questions_note, title, command))


def _check_command(command: str) -> None:
    """`SettingError` unless this is a command line."""
    try:
        shlex.split(command)
    except ValueError as error:
        raise SettingError(
            parameter="command",
            value=command,
            problem=f"is no command line ({str(error).lower()})",
            expected="quote its words",
            instead="command=shlex.join(sys.argv)",
        ) from error


def _table(questions: xr.Dataset | pd.DataFrame | None, data: Judgements) -> pd.DataFrame | None:
    """Questions as a table."""
    if questions is None:
        return None
    roles = question_roles(data)
    if not set(roles) <= {str(name) for name in questions}:
        raise SettingError(
            parameter="questions",
            value=questions,
            expected=f"it must have the columns {', '.join(roles)}",
            instead="questions=rt.suggest(model, result, candidates)",
        )
    if isinstance(questions, xr.Dataset):
        return questions.to_dataframe().reset_index(drop=True)
    return questions
