"""One verdict on each annotator from audits of several kinds of judgement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from raters.auditing.intervals import table
from raters.auditing.verdicts import Costs, decided, rule
from raters.errors import refuse
from raters.judgements.names import plural
from raters.kinds import kind_of
from raters.program import Program

if TYPE_CHECKING:
    from raters.auditing.audit import Audit
    from raters.auditing.truth.calibration import Anchor

# Columns that the table of all has as a mean over the parts, and for each part.
_REPEATED = ("p_adversarial", "p_below")


def judged_parts(program: Program[Any]) -> tuple[str, ...]:
    """Parts whose model tells judges apart, of kinds in which somebody can be right or wrong."""
    judges = {program.axis_name(name, one.data.judge) for name, one in program.parts.items()}
    if len(judges) > 1:
        listed = " and ".join(sorted(plural(axis) for axis in judges))
        problem = f"is of judgements by {listed}, which have no verdict in common"
        instead = "rt.audit(*rt.fitting.part(model, result, 'votes'))"
        refuse("model", program.model, problem, "audit each part by itself", instead=instead)
    telling = tuple(
        name
        for name, one in program.parts.items()
        if not kind_of(one.data).unjudged
        and any(one.data.judge in site.dims for site in one.sites.values())
    )
    if not telling:
        problem = "takes all annotators as alike in every part, so there is nobody to tell apart"
        expected = "give a part a model with parameters of annotators"
        refuse("model", program.model, problem, expected, instead="rt.models.LinearExtendedBTL()")
    return telling


def joint_anchor(anchors: Mapping[str, Anchor]) -> Anchor:
    """Anchor of an audit of several kinds, which is missing where that of any part is."""
    first = next((one for one in anchors.values() if one.is_missing), next(iter(anchors.values())))
    doubts = [f"{name}: {doubt}" for name, one in anchors.items() for doubt in one.doubts]
    return dataclasses.replace(first, doubts=tuple(doubts), parts=tuple(anchors.items()))


def combined(
    program: Program[Any], audits: Mapping[str, Audit], costs: Costs, least: int
) -> tuple[xr.Dataset, str]:
    """Table with one verdict on each judge, and the rule behind it."""
    number = np.stack([one.table["judgements"].values for one in audits.values()])
    total = number.sum(0)
    share = number / np.maximum(total, 1)
    columns: dict[str, np.ndarray] = {"judgements": total}
    for name in _REPEATED:
        if all(name in one.table for one in audits.values()):
            values = np.stack([one.table[name].values for one in audits.values()])
            # Of those without judgements of a kind nothing is asked about it.
            columns[name] = np.where(number > 0, share * values, 0.0).sum(0)
    columns["p_above"] = 1 - columns["p_below"]
    may_drop, enough, alone = number == 0, number == 0, True
    for row, (name, one) in enumerate(audits.items()):
        shown = (one.judged, f"{one.judged}_low", f"{one.judged}_high", *_REPEATED)
        columns[f"{name}.judgements"] = number[row]
        columns |= {f"{name}.{key}": one.table[key].values for key in shown if key in one.table}
        may_drop[row] |= not one.anchor.is_missing
        if "gives_one_answer" in one.table:
            may_drop[row] |= one.table["gives_one_answer"].values.astype(bool)
        enough[row] |= one.table["verdict"].values != "too few draws"
        known = one.anchor.known or program.parts[name].data.tells_judges_apart()
        alone &= one.anchor.is_missing and not known
    columns["verdict"] = decided(
        columns, costs, may_drop.all(0), least, alone=alone, enough=enough.all(0)
    )
    judge = next(iter(audits.values())).judge
    names = next(iter(program.parts.values())).data.judges
    parts = [f"P({name}.{one.judged} < {one.threshold:g})" for name, one in audits.items()]
    mean = f"the mean of {' and '.join(parts)}, by the shares of the annotator's judgements"
    anchored = all(not one.anchor.is_missing for one in audits.values())
    text = rule("judgements", mean, least, costs, anchored=anchored)
    if others := [name for name in program.parts if name not in audits]:
        text += f" Without {' and '.join(others)}, where nobody can be told apart."
    return table(judge, names, columns), text
