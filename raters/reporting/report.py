"""Report of an audit for readers who do not know the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from raters.auditing.audit import Audit
from raters.errors import refuse
from raters.errors.validation import checked
from raters.fitting.result import check_several, identity_of, program_of
from raters.judgements.base import Judgements
from raters.kinds import AuditContext
from raters.model import Model
from raters.program import Program
from raters.reporting import facts, views
from raters.reporting.files import files_of

# Probability of the intervals, where no audit says another one.
_LEVEL = 0.9
# Parts that every form reads.
_PARTS = (
    *("title", "kind", "judge", "judged", "words", "asked", "answer", "worlds", "columns"),
    *("annotators", "sections", "agreement", "convergence", "next", "limits", "how", "cite"),
)


@dataclass(frozen=True, repr=False)
class Report(views.Page):
    """Report of an audit; each form shows the same facts.

    Attributes
    ----------
    facts : mapping
        Plain values (numbers, text, lists and dictionaries); a number that is not finite is None.
        What is said in words is a ``code`` with numbers.

        - ``schema_version``, ``title``, ``kind``, ``judge``, ``judged`` and ``words``;
        - ``asked``: the data, the model, and the limits of the audit;
        - ``answer``: what the verdicts stand on, their counts, names, expected mistakes and costs,
          and whether it can be ``relied_on``;
        - ``columns`` and ``annotators``: the audit's table with reasons, those who should go first;
        - ``worlds``: where two mirrored worlds are possible, their probabilities;
        - ``sections``: parts of the kind by their keys, each with ``title``, ``findings``,
          ``columns``, ``rows`` and ``matrices``;
        - ``agreement``, ``convergence``, ``next``, ``limits``, ``how`` and ``cite``.
    files : mapping
        Tables (CSV) and figures (PNG) by name, each with what writes it, ``write(path)``; empty for
        a report made of its facts alone.
    """

    facts: Mapping[str, Any]
    files: Mapping[str, Callable[[Path], object]] = field(default_factory=dict, compare=False)

    view = staticmethod(views.report)

    def __post_init__(self) -> None:
        version = self.facts.get("schema_version") if isinstance(self.facts, Mapping) else None
        if version != facts.SCHEMA_VERSION or not set(_PARTS) <= set(self.facts):
            problem = f"are not those of a report of version {facts.SCHEMA_VERSION}"
            expected = "pass the facts of a report as they were made"
            refuse("facts", problem=problem, expected=expected, instead="rt.report(model, result)")

    def __str__(self) -> str:
        return "\n".join(views.summary(self.facts))

    def __repr__(self) -> str:
        return f"Report({self.facts['title']!r}: {views.summary(self.facts)[0]!r})"


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
) -> Report:
    """Report an audit in words and pictures, for those who decide on it.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    audit : Audit, optional
        From ``rt.audit(model, result)``. Where nobody is judged, as in choices, or by a model that
        treats all judges alike, such as `BTL`, there is none.
    dropped : xarray.DataTree, optional
        From ``rt.auditing.drop``: the report then says what changes without those flagged.
    questions : xarray.Dataset or pandas.DataFrame, optional
        From ``rt.suggest``, to be listed under what to do next.
    questions_note : str
        A sentence about them.
    title : str, optional

    Returns
    -------
    Report
        With ``to_html()``, ``to_markdown()``, ``to_text()``, ``to_json()`` and ``save(path)``.

    Raises
    ------
    SettingError
        When `audit` is of another fit than `result`; when `result` has a single draw, or was fitted
        with another model; when `questions` are not questions.

    See Also
    --------
    audit, suggest

    Notes
    -----
    Expected numbers are the model's: with p = P(competence < threshold), the sum of 1 − p over
    those with verdict ``drop`` are wrong drops, the sum of p over those with verdict ``keep`` are
    wrongly kept, and the costs are those of the audit.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> result = rt.fit(model, votes, seed=0, progress=False)
    >>> audit = rt.audit(model, result, reference="crowd")
    >>> page = rt.report(model, result, audit, title="The March campaign")
    >>> counts = page.facts["answer"]["counts"]
    >>> counts["drop"], counts["review"], counts["keep"]
    (3, 0, 7)
    >>> page.save("report.html")                                    # doctest: +SKIP
    """
    program = program_of(model, result)
    unjudged = audit is None and bool(facts.why_unjudged(program))
    if unjudged and dropped is not None:
        problem = "is a fit without those flagged, and nobody is judged here"
        refuse("dropped", problem=problem, expected="leave it out, or pass an audit")
    if not unjudged and (audit is None or audit.fit not in ("", identity_of(program))):
        other = "is of another fit than `result`: of another model, or of other judgements"
        problem, instead = "is missing", "rt.report(model, result, rt.audit(model, result))"
        problem = problem if audit is None else other
        refuse("audit", problem=problem, expected="pass that of this result", instead=instead)
    check_several(result, "a report says how sure it is")
    table = _table(questions, program.data)
    whole = Program(program.model, program.data.unpadded())
    level = _LEVEL if audit is None else audit.level
    context = AuditContext(whole, result, audit, level, dropped)
    sections = facts.sections_of(context)
    page = facts.facts_of(context, sections, table, questions_note, title)
    return Report(page, files_of(context, sections))


def _table(questions: xr.Dataset | pd.DataFrame | None, data: Judgements) -> pd.DataFrame | None:
    if questions is None:
        return None
    roles = facts.question_roles(data)
    if not set(roles) <= {str(name) for name in questions}:
        expected = f"it must have the columns {', '.join(roles)}"
        instead = "questions=rt.suggest(model, result, candidates)"
        refuse("questions", questions, expected=expected, instead=instead)
    if isinstance(questions, xr.Dataset):
        return questions.to_dataframe().reset_index(drop=True)
    return questions
