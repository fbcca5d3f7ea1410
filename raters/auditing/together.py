"""One verdict on each annotator from audits of several kinds of judgement."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int, Shaped

from raters.auditing.verdicts import Costs, unanchored, verdicts
from raters.errors import SettingError
from raters.inference.mixing import FEWEST_DRAWS
from raters.judgements.display import isolated
from raters.judgements.names import names_array, plural, shorten
from raters.judgements.together import Together
from raters.kinds import kind_of
from raters.program import Program

if TYPE_CHECKING:
    from raters.auditing.audit import Audit
    from raters.auditing.calibration import Anchor

# Columns of the audit of a part that the table of all repeats, beside the judged quantity.
_REPEATED = ("p_adversarial", "p_below")
# Least probability of being below the threshold of one kind for which an annotator who is kept is
# named.
_SURE = 0.9


class Verdicts(NamedTuple):
    """Verdicts on those who judge in several kinds."""

    table: xr.Dataset
    rule: str
    tables: Mapping[str, xr.Dataset]


def judged_parts(program: Program[Any]) -> tuple[str, ...]:
    """Parts whose model tells judges apart, of kinds in which somebody can be right or wrong."""
    data: Together = program.data
    judges = {data.axis_name(name, one.data.judge) for name, one in program.parts.items()}
    if len(judges) > 1:
        listed = " and ".join(sorted(plural(axis) for axis in judges))
        raise SettingError(
            parameter="model",
            value=program.model,
            problem=f"is of judgements by {listed}, which have no verdict in common",
            expected="audit each part by itself",
            instead="rt.audit(*rt.fitting.part(model, result, 'votes'))",
        )
    telling = tuple(
        name
        for name, one in program.parts.items()
        if not kind_of(one.data).unjudged
        and any(one.data.judge in site.dims for site in one.sites.values())
    )
    if not telling:
        raise SettingError(
            parameter="model",
            value=program.model,
            problem="takes all annotators as alike in every part, so there is nobody to tell apart",
            expected="give a part a model with parameters of annotators",
            instead="rt.models.LinearExtendedBTL()",
        )
    return telling


def joint_anchor(anchors: Mapping[str, Anchor]) -> Anchor:
    """Anchor of an audit of several kinds, which is missing where that of any part is."""
    first = next((one for one in anchors.values() if one.is_missing), next(iter(anchors.values())))
    doubts = [f"{name}: {doubt}" for name, one in anchors.items() for doubt in one.doubts]
    return dataclasses.replace(first, doubts=tuple(doubts), parts=tuple(anchors.items()))


def combined(
    program: Program[Any], audits: Mapping[str, Audit], costs: Costs, min_judgements: int
) -> Verdicts:
    """One verdict on each judge."""
    number = np.stack([one.table["judgements"].values for one in audits.values()])
    columns = _columns(audits, number)
    enough = [_enough(one) for one in audits.values()]
    may_drop = [_may_drop(one) for one in audits.values()]
    here = number > 0
    columns["verdict"] = verdicts(columns["p_below"], costs, (np.stack(may_drop) | ~here).all(0))
    alone = [
        one.anchor.is_missing
        and not (one.anchor.known or program.parts[name].data.tells_judges_apart())
        for name, one in audits.items()
    ]
    if all(alone):  # The prior alone would keep them.
        columns["verdict"][:] = "review"
    columns["verdict"][~(np.stack(enough) | ~here).all(0)] = "too few draws"
    columns["verdict"][columns["judgements"] < min_judgements] = "too few judgements"
    judge = next(iter(audits.values())).judge
    names = names_array(next(iter(program.parts.values())).data.judges)
    table = xr.Dataset({name: (judge, one) for name, one in columns.items()}, {judge: names})
    tables = {
        key: one
        for name, own in audits.items()
        for key, one in (
            (name, own.table),
            *((f"{name}.{key}", t) for key, t in own.tables.items()),
        )
    }
    rule = _rule(program, audits, costs, min_judgements)
    return Verdicts(table, rule + _kept_all_the_same(table, audits, number), tables)


def _kept_all_the_same(
    table: xr.Dataset, audits: Mapping[str, Audit], number: Int[np.ndarray, "part judge"]
) -> str:
    """Sentence that names annotators who are kept, but are below the threshold of one kind."""
    kept = table["verdict"].values == "keep"
    names = next(iter(table.coords.values())).values
    found = [
        f"{isolated(names[judge])} in {part}"
        for own, (part, one) in zip(number, audits.items(), strict=True)
        for judge in np.flatnonzero(kept & (own > 0) & (one.table["p_below"].values >= _SURE))
    ]
    if not found:
        return ""
    return (
        " Kept over all kinds, but below the threshold of one with a probability of at least"
        f" {_SURE:g}: {shorten(found)}."
    )


def _columns(
    audits: Mapping[str, Audit], number: Int[np.ndarray, "part judge"]
) -> dict[str, Shaped[np.ndarray, " judge"]]:
    """Columns of the table but the verdicts."""
    total = number.sum(0)
    share = number / np.maximum(total, 1)
    columns: dict[str, np.ndarray] = {"judgements": total}
    columns["p_below"] = _mean(share, [one.table["p_below"].values for one in audits.values()])
    columns["p_above"] = 1 - columns["p_below"]
    if all("p_adversarial" in one.table for one in audits.values()):
        adversarial = [one.table["p_adversarial"].values for one in audits.values()]
        columns["p_adversarial"] = _mean(share, adversarial)
    for own, (name, one) in zip(number, audits.items(), strict=True):
        columns[f"{name}.judgements"] = own
        shown = (one.judged, f"{one.judged}_low", f"{one.judged}_high", *_REPEATED)
        columns |= {f"{name}.{key}": one.table[key].values for key in shown if key in one.table}
    return columns


def _mean(
    share: Float[np.ndarray, "part judge"], values: list[Float[np.ndarray, " judge"]]
) -> Float[np.ndarray, " judge"]:
    """Mean over the parts in which each has judgements; 0 without any."""
    mean: np.ndarray = np.where(share > 0, share * np.stack(values), 0.0).sum(0)
    return mean


def _may_drop(audit: Audit) -> Bool[np.ndarray, " judge"]:
    """True for those of whom there is more to be said than disagreement with the crowd."""
    anchored = np.full(audit.table.sizes[audit.judge], not audit.anchor.is_missing)
    if "gives_one_answer" in audit.table:
        anchored = anchored | audit.table["gives_one_answer"].values.astype(bool)
    return anchored


def _enough(audit: Audit) -> Bool[np.ndarray, " judge"]:
    """True for those of whom a part has draws enough."""
    return np.asarray(audit.table["verdict"].values != "too few draws")


def _rule(
    program: Program[Any], audits: Mapping[str, Audit], costs: Costs, min_judgements: int
) -> str:
    """The rule in words."""
    words = {name: kind_of(program.parts[name].data).words.many for name in audits}
    parts = " and ".join(
        f"P({name}.{one.judged} < {one.threshold:g}) of {words[name]}"
        for name, one in audits.items()
    )
    others = {
        name: "nobody is right or wrong"
        if kind_of(one.data).unjudged
        else "the model takes all annotators as alike"
        for name, one in program.parts.items()
        if name not in audits
    }
    left_out = "".join(f" Without {name}, where {why}." for name, why in others.items())
    anchored = all(not one.anchor.is_missing for one in audits.values())
    return (
        f"Verdict: with fewer than {min_judgements} judgements, 'too few judgements'; with fewer"
        f" than {FEWEST_DRAWS} effective draws, 'too few draws'; otherwise the least of the"
        f" expected costs, with p the mean of {parts}, by the shares of the annotator's judgements:"
        f" keep {costs.keep_bad:g}·p, drop {costs.drop_good:g}·(1 − p), review {costs.review:g}."
        f"{'' if anchored else unanchored()}{left_out}"
    )
