"""Sections of a report: those of the kind, and one for every kind."""

from __future__ import annotations

import numpy as np

from raters.auditing.audit import audit
from raters.errors import SettingError
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, Section, kind_of
from raters.reporting.facts import plural_noun
from raters.reporting.sentences import about, joined

_KEY = "without_flagged"
_MOST = 5


def sections_of(context: AuditContext) -> tuple[Section, ...]:
    """Sections that the kind of the data contributes to a report, and the change without those
    flagged where it has none of its own."""
    kind = kind_of(context.program.data)
    sections = tuple(one for make in kind.sections if (one := make(context)) is not None)
    keys = [section.key for section in sections]
    if twice := sorted({key for key in keys if keys.count(key) > 1}):
        raise SettingError(
            parameter="sections",
            value=twice,
            problem="are keys of several sections",
            expected="give each section a key of its own",
        )
    if _KEY not in keys and (own := change(context)) is not None:
        sections += (own,)
    return sections


def change(context: AuditContext) -> Section | None:
    """Change of the judged quantity of those who stay when those flagged are left out."""
    before = context.audit
    if context.dropped is None or before is None:
        return None
    after = audit(
        context.program.model,
        context.dropped,
        threshold=before.threshold,
        level=before.level,
        margin=before.margin,
        min_judgements=before.min_judgements,
        costs=before.costs,
    )
    words, judges = kind_of(context.program.data).words, after.table[before.judge].values
    old = before.table[before.judged].sel({before.judge: judges}).values
    new = after.table[before.judged].values
    order = np.argsort(-np.abs(new - old), kind="stable")[:_MOST]
    moves = [
        {before.judge: judges[place], "before": float(old[place]), "after": float(new[place])}
        for place in order.tolist()
    ]
    left, every = (int(one.table["judgements"].sum()) for one in (after, before))
    shown = [
        f"{isolated(move[before.judge])} ({about(move['before'])} → {about(move['after'])})"
        for move in moves
    ]
    return Section(
        key=_KEY,
        title="Without those flagged",
        sentence=(
            f"Without {counted(len(before.flagged), before.judge, plural_noun(before.judge))}"
            f" flagged, {left:,} of {counted(every, *words)} are left. The mean {before.judged} of"
            f" those who stay changes most for {joined(shown)}."
        ),
        facts={"judgements_left": left, "moves": moves},
    )
