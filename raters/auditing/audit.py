"""Audit of every annotator from posterior draws."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.auditing.influence import DECIDES
from raters.auditing.influence import influence as influence_of
from raters.auditing.intervals import mean_and_interval, table
from raters.auditing.settling import Settling, settling
from raters.auditing.truth.anchor_check import JudgeComparison, difference
from raters.auditing.truth.calibration import Anchor, Calibration, calibrated, check_crowd
from raters.auditing.verdicts import VERDICTS, Costs, decided, enough, rule
from raters.auditing.words import worded
from raters.errors import DataWarning, SettingError, refuse
from raters.errors.validation import checked, finite, positive, share, whole
from raters.fitting.fit import fit
from raters.fitting.parts import PART_OF, part
from raters.fitting.result import check_data, check_several, draws_of, identity_of, program_of
from raters.inference import Backend
from raters.judgements.base import Judgements
from raters.judgements.display import Tabled, isolated
from raters.judgements.names import plural
from raters.kinds import AuditLimits, Quantities, kind_of
from raters.model import Model
from raters.program import Program, models_of

# Distance from knowing nothing below which an annotator guesses: of an accuracy, or in bits.
_MARGIN = 0.05


def by_verdict(audited: Audit) -> pd.DataFrame:
    """The audit's table: those who should go, then those to look at, each least trusted first."""
    frame = audited.table.to_dataframe().reset_index()
    place = frame["verdict"].map(VERDICTS.index)
    order = np.lexsort((frame[audited.judged], -frame["p_below"], place))
    return frame.iloc[order].reset_index(drop=True)


@dataclass(frozen=True, repr=False)
class Audit(Tabled):
    """Audit of annotators, from `raters.audit`.

    Attributes
    ----------
    table : xarray.Dataset
        One entry for each annotator, or whoever else judges: the axis `judge`.
    rule : str
        Rule behind the verdicts, in words.
    tables : mapping of str to xarray.Dataset
        Further tables of the kind of judgement. Of comparisons, where two mirrored worlds are both
        possible: ``"worlds"``, with the ``probability`` of each and ``competence`` in it. Of
        labels: ``"confusion"``, with ``mean``, ``low`` and ``high`` of P(label | annotator, true
        class), and ``"items"``, for each item its most probable class (``label``), that class's
        ``probability``, its ``entropy`` in bits, and the number of ``judgements``. Of item
        responses and ratings: ``"item_parameters"``.
    threshold, level, margin, min_judgements, costs
        Options of the audit.
    judged : str
        Quantity that is compared with the threshold.
    anchor : Anchor
        What tells who is right.
    calibration : Calibration or None
        Statements about the truth that the numbers are from; None where they are the model's own.
    settling : Settling or None
        Known truths that would settle the verdicts that are open; None without open verdicts, and
        without a calibration.
    fit : str
        Digest of the model and the data that were audited; empty for an audit made by hand.
    """

    table: xr.Dataset
    rule: str
    tables: Mapping[str, xr.Dataset] = field(default_factory=dict)
    threshold: float = 0.25
    level: float = 0.9
    margin: float = _MARGIN
    min_judgements: int = 5
    costs: Costs = field(default_factory=Costs)
    judged: str = "competence"
    anchor: Anchor = field(default_factory=Anchor)
    calibration: Calibration | None = None
    settling: Settling | None = None
    fit: str = ""

    @property
    def confusion(self) -> xr.Dataset | None:
        """Confusion matrices of `tables`; None for kinds of judgement without."""
        return self.tables.get("confusion")

    @property
    def items(self) -> xr.Dataset | None:
        """Labels of the items, of `tables`; None for kinds of judgement without."""
        return self.tables.get("items")

    @property
    def judge(self) -> str:
        """Axis of those who are judged."""
        return str(next(iter(self.table.dims)))

    @property
    def flagged(self) -> list[Any]:
        """Names of the annotators with verdict ``drop``."""
        return self._dropped[self.judge].values.tolist()

    @property
    def wrong_drops(self) -> float:
        """Expected share of those flagged who are above the threshold; NaN when nobody is."""
        p_below = self._dropped["p_below"].values
        return float(1 - p_below.mean()) if len(p_below) else float("nan")

    @property
    def _dropped(self) -> xr.Dataset:
        return self.table.isel({self.judge: self.table["verdict"].values == "drop"})

    @property
    def wrong_interval(self) -> tuple[float, float] | None:
        """Interval of the number of wrong labels in `items`; None without a calibration."""
        return None if self.calibration is None else self.calibration.wrong_interval

    @property
    def anchor_check(self) -> xr.Dataset | None:
        """For each statement the interval that is stated, and those of the known truths alone:
        ``gold`` (Jeffreys) and of labels ``prediction_powered`` (PPI++), with ``differs`` where
        they do not meet it, and ``anytime``, which holds however often one looks while known truths
        come in; None without known truths."""
        return None if self.calibration is None else self.calibration.anchor_check

    @property
    def expected_wrong(self) -> float:
        """Expected number of wrong labels in `items`; NaN for comparisons."""
        return float("nan") if self.items is None else float((1 - self.items["probability"]).sum())

    @property
    def influential(self) -> dict[str, Any] | None:
        """Judge on whom most conclusions hang: ``name``, ``share`` of the ``conclusions`` that
        would change without them, ``deciding`` (number of those without whom a tenth or more
        would), and of how many it is ``unknown``; None where `influence` was not asked for."""
        if "influence" not in self.table:
            return None
        change = self.table["influence"].to_series()[self.table["judgements"].values > 0]
        if not change.notna().any():
            return None
        return {
            "name": change.idxmax(),
            "share": float(change.max()),
            "conclusions": "order of pairs of items" if self.items is None else "item labels",
            "deciding": int((change >= DECIDES).sum()),
            "unknown": int(change.isna().sum()),
            "of": len(change),
        }

    def compare(self, one: Any, other: Any) -> JudgeComparison:
        """Compare two judges by the posterior, and on the known truths that both answered.

        The confidence sequence holds with probability `level`, however often one looks while known
        truths, drawn at random, come in.

        Raises
        ------
        SettingError
            When the audit takes the crowd to be right, or is of several kinds of judgement.
        DataError
            When one of the two did not judge, or both are the same.
        """
        if self.calibration is None:
            expected = "audit one kind of judgement with gold, or with annotators as reference"
            refuse("audit", problem="has no calibration to compare judges by", expected=expected)
        return self.calibration.compare(one, other)

    def __repr__(self) -> str:
        number = by_verdict(self)["verdict"].value_counts(sort=False)
        who = plural(self.judge).replace("_", " ")
        verdicts = ", ".join(f"{one} {verdict}" for verdict, one in number.items())
        return f"Audit of {number.sum()} {who}: {verdicts}"

    def _head(self) -> pd.DataFrame:
        return by_verdict(self).head(8)

    def __str__(self) -> str:
        frame = self.table.to_dataframe().sort_values(self.judged)
        ends = {f"{self.judged}_low", f"{self.judged}_high"}
        shown = [name for name in frame if name in ends or not name.endswith(("_low", "_high"))]
        lines = [self.anchor.sentence, *(f"In doubt: {doubt}." for doubt in self.anchor.doubts)]
        lines += [frame[shown].round(3).to_string(), self.rule]
        if self.items is not None:
            lines.append(worded("wrong_labels", a=self))
        if self.flagged:
            lines.append(f"Expected share of wrong drops: {self.wrong_drops:.1%}.")
        checked = self.anchor_check
        if checked is not None and (apart := difference(checked)):
            lines.append(f"Note: {apart}.")
        return "\n".join(lines)


@checked
def audit(
    model: Model[Any],
    result: xr.DataTree,
    gold: Any = None,
    *,
    reference: Sequence[Any] | str = (),
    threshold: float | None = None,
    level: float = 0.9,
    margin: float = _MARGIN,
    min_judgements: int = 5,
    costs: Costs | None = None,
    influence: bool = False,
    seed: int = 0,
) -> Audit:
    r"""Audit every annotator from the posterior of a model, and from what is known of the truth.

    An audit stands on known truths, on trusted annotators, or only on the crowd. With one of the
    first two, verdicts are about being right. Without them nobody is dropped for disagreement:
    those whom it would drop have the verdict "differs from the crowd".

    Parameters
    ----------
    model : Model
        The model that was fitted, one with parameters of each judge.
        ``ExtendedBTL(competence="signed")`` can also find adversaries.
    result : xarray.DataTree
    gold : mapping, pandas.Series or pandas.DataFrame, optional
        Known truths, as `raters.calibrate` takes them: true classes of items that were drawn at
        random. Truths that were known to the fit count too. Of several kinds of judgement
        (`raters.models.JointModel`), a mapping from parts to the known truths of each.
    reference : sequence, or "crowd"
        Annotators who are taken to be right. With ``"crowd"`` the crowd is: the numbers are then
        the model's own, without allowance for mistakes that the crowd makes together.
    threshold : float, optional
        An annotator with a competence below it is "bad": .25 by default, where 0 is a guesser, and
        1 the reference annotator of comparisons, or one who labels every item right. Of another
        kind of judgement, a value of its judged quantity: that of the kind by default.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    margin : float
        Distance from knowing nothing below which an annotator guesses: of an accuracy or a
        ``first_share`` from ½, or information on the true class in bits per label.
    min_judgements : int
        With fewer judgements the verdict is "too few judgements".
    costs : Costs, optional
        Costs of wrong decisions and of reviews.
    influence : bool
        Whether to find out what would change without each annotator; some seconds more.
    seed : int
        Seed of the calibration.

    Returns
    -------
    Audit
        Its ``table`` has for each annotator, where the model has them and each quantity with
        ``_low`` and ``_high``:

        - ``judgements``, ``competence``, ``accuracy``, and ``p_below``: P(competence <
          `threshold`);
        - ``agreement``: share of the annotator's votes for the item with the higher posterior mean
          reward, or of their labels that are the item's most probable class;
        - ``gives_one_answer``: True if all their answers are the same class or side, and fewer than
          one of a thousand would by chance;
        - ``verdict``: keep, review, drop, too few judgements, or, with fewer than 100 effective
          draws, too few draws; without known truths and trusted annotators, "differs from the
          crowd" in place of drop, but for those with ``gives_one_answer``;
        - ``influence``, if asked for: share of the conclusions that would change without the
          annotator (order of each pair of items, most probable class of each item; see
          `raters.auditing.influence`), NaN where it is not known;
        - of comparisons ``relative`` (competence over the crowd's mean absolute competence),
          ``p_guessing`` and ``p_adversarial``; with a position bias of each, ``position_bias`` (in
          logits for the item shown first), ``first_share`` (the probability of choosing the first
          of two equal items) and ``p_position_bias`` (that it differs from ½ by `margin` or more);
        - of comparisons by annotators with rewards of their own, ``taste_agreement``,
          ``consistency`` and ``own_accuracy``, and in place of ``p_guessing`` ``p_careless`` (coin
          flips predict the votes as well, or ``own_accuracy`` is within `margin` of ½) and
          ``p_different_taste`` (neither is so, and ``taste_agreement`` is between −½ and ½);
        - of labels ``information`` in bits per label, ``sensitivity`` and ``specificity`` of two
          classes, ``p_spammer`` (information below `margin`), ``p_adversarial``, ``bias_class`` and
          ``bias`` (the class given most in excess of its frequency); of a model with types of
          annotators, ``p_spammer`` and ``p_adversarial`` are probabilities of a type.

    Notes
    -----
    **Comparisons.** Accuracy is the probability of choosing the better of two random items (of two
    that were compared, where the comparisons fall into components), the mean over pairs of
    :math:`\sigma(\beta_k |r_i - r_j|)`, which no choice of scale changes.

    **Comparisons by annotators with rewards of their own.** With Δr for the difference of the
    crowd's rewards between two items, Δu for that of the annotator's own,
    :math:`u_{ki} = \beta_k (r_i + d_{ki})`, and sums over the pairs that the annotator compared,

    .. math::

        \text{competence} = \frac{\sum \Delta u \, \Delta r}{\sum (\Delta r)^2}, \qquad
        \text{consistency} = \sqrt{\frac{\sum (\Delta u)^2}{\sum (\Delta r)^2}}, \qquad
        \text{taste agreement} = \frac{\text{competence}}{\text{consistency}}, \\
        \text{accuracy} = \operatorname{mean} \sigma(\Delta u \operatorname{sign} \Delta r),
        \qquad
        \text{own accuracy} = \operatorname{mean} \sigma(|\Delta u|).

    The probability of coin flips is :math:`1 / (1 + e^{g})`, with g the gain in expected log
    predictive density, by WAIC, of own rewards over coin flips. To find guessers, fit
    ``HierarchicalBTL(competence="signed")``.

    **Labels.** All quantities are those of `raters.calibrate`, unless the crowd is taken to be
    right. With :math:`p_k` the frequency of class k among K, and :math:`\pi_{kj}` the annotator's
    probability of label j for items of class k,

    .. math::

        \text{accuracy} = \sum_k p_k \pi_{kk}, \qquad
        \text{competence} = \frac{\frac{1}{K} \sum_k \pi_{kk} - \frac{1}{K}}{1 - \frac{1}{K}}, \\
        \text{information} = \sum_{k, j} p_k \pi_{kj} \log_2 \frac{\pi_{kj}}{q_j}, \qquad
        q_j = \sum_k p_k \pi_{kj}, \qquad \text{bias}_j = q_j - p_j.

    Where the crowd is not taken to be right, accuracy is the share of the labels given that are
    right. ``p_adversarial`` is P(competence < 0 and information ≥ `margin`). From n labels, the
    uncertainty of the draws alone looks like about :math:`(K - 1)^2 / (2 n \ln 2)` bits, so with
    few labels ``p_spammer`` is low for spammers too.

    **Several kinds.** Each annotator has one verdict, by ``p_above``: the probability that one of
    their judgements, taken at random, is of a kind in which they reach the threshold. `tables` has
    the whole audit of each part by its name.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> result = rt.fit(model, votes, seed=0, progress=False)
    >>> audit = rt.audit(model, result, reference="crowd")
    >>> sorted(str(truth["kind"][name]) for name in audit.flagged)
    ['adversary', 'guesser', 'guesser']

    >>> labels, truth = rt.datasets.label_crowd(num_annotators=10, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> gold = dict(zip(labels.items[:40], truth["true_class"][:40]))
    >>> audit = rt.audit(rt.DawidSkene(), result, gold)
    >>> [str(truth["kind"][name]) for name in audit.flagged]
    ['spammer']
    >>> rt.audit(rt.DawidSkene(), result).flagged  # the crowd alone does not tell who is right
    []
    """
    is_joint = "" not in models_of(model)
    if influence and (is_joint or PART_OF in result.attrs):
        problem = "is read off fits of one kind of judgement, and this one is of several"
        refuse("influence", influence, problem, "leave it out, or fit the part by itself")
    costs = Costs() if costs is None else costs
    settings: dict[str, Any] = {"level": level, "costs": costs, "margin": margin}
    if is_joint:
        options = settings | {"threshold": threshold, "reference": reference, "seed": seed}
        return _of_several_kinds(model, result, gold, min_judgements, options)
    program = program_of(model, result)
    data, kind = program.data, kind_of(program.data)
    if kind.unjudged:
        raise SettingError(f"there is no audit of {kind.words.many}. {kind.unjudged}")
    threshold = kind.threshold if threshold is None else threshold
    check_limits(threshold, level, margin, min_judgements)
    assert threshold is not None
    check_several(result, "an audit says how sure it is")
    limits = AuditLimits(float(threshold), level, float(margin))
    anchor, quantities, calibration = _measured(program, result, gold, reference, limits, seed)
    columns: dict[str, np.ndarray] = {"judgements": data.judgements_by(data.judge)}
    for name, draws in quantities.values.items():
        columns |= mean_and_interval(name, draws, limits.level)
    is_bad = quantities.values[quantities.judged] < limits.threshold
    columns |= {**quantities.columns, "p_below": is_bad.mean(0)}
    if influence and (change := influence_of(program, result, seed)) is not None:
        columns["influence"] = change.change
    anchored = np.full(len(data.judges), not anchor.is_missing)
    columns["verdict"] = decided(
        columns,
        costs,
        anchored | quantities.columns.get("gives_one_answer", anchored),
        min_judgements,
        alone=anchor.is_missing and not (anchor.known or data.tells_judges_apart()),
        enough=enough(program, result),
    )
    p_bad = f"P({quantities.judged} < {threshold:g})"
    wanted = None
    # Known truths would move a calibration; orders are not true or false as a whole.
    if calibration is not None and data.listed:
        chances = quantities.values["accuracy"], is_bad, costs, seed, calibration.known_questions
        wanted = settling(data.unpadded(), columns["verdict"], *chances)
    made = Audit(
        table(data.judge, data.judges, columns),
        rule(kind.words.many, p_bad, min_judgements, costs, anchored=not anchor.is_missing),
        tables=dict(quantities.tables),
        threshold=limits.threshold,
        min_judgements=min_judgements,
        judged=quantities.judged,
        anchor=anchor,
        calibration=calibration,
        settling=wanted,
        fit=identity_of(program),
        **settings | {"margin": limits.margin},
    )
    if influence and (most := made.influential) is not None and most["deciding"]:
        warnings.warn(
            f"so much hangs on one: without {isolated(most['name'])}, {most['share']:.0%} of the"
            f" {most['conclusions']} would change",
            DataWarning,
            stacklevel=3,
        )
    return made


def _measured(
    program: Program[Any],
    result: xr.DataTree,
    gold: Any,
    reference: Sequence[Any] | str,
    limits: AuditLimits,
    seed: int,
) -> tuple[Anchor, Quantities, Calibration | None]:
    """Source of the truth, quantities of each judge by it, and the calibration behind them."""
    data, kind = program.data, kind_of(program.data)
    crowd_is_right = isinstance(reference, str)
    if isinstance(reference, str):
        check_crowd(reference, gold)
    elif gold is not None or len(reference) or (data.known is not None and kind.truths is not None):
        calibration = calibrated(program, result, gold, reference, limits.level, seed)
        return calibration.anchor, calibration.quantities(limits), calibration
    # What judgements without true classes say is what the crowd prefers.
    quantities = (kind.quantities or _sites_of_judges)(program, result, limits)
    anchor = Anchor(
        data.num_known,
        crowd=crowd_is_right,
        model=kind.truths is None and not quantities.by_crowd,
        judges=plural(data.judge).replace("_", " "),
        takes_truths=kind.truths is not None,
    )
    return anchor, quantities, None


def _of_several_kinds(
    model: Model[Any], result: xr.DataTree, gold: Any, min_judgements: int, options: dict[str, Any]
) -> Audit:
    """Audit of those who judge in several kinds: one verdict each."""
    program = program_of(model, result, several=True)
    whole("min_judgements", min_judgements, least=0)
    names = judged_parts(program)
    gold = {} if gold is None else gold
    if not isinstance(gold, Mapping) or (unknown := [name for name in gold if name not in names]):
        wrong = gold if not isinstance(gold, Mapping) else unknown[0]
        expected = f"give the known truths of each of {', '.join(map(repr, names))} by its name"
        instead = f"gold={{{names[0]!r}: ...}}"
        problem = "is no part of the judgements that is audited"
        refuse("gold", wrong, problem, expected, instead=instead)
    audits = {
        name: audit(*part(model, result, name), gold.get(name), min_judgements=0, **options)
        for name in names
    }
    verdicts, how = combined(program, audits, options["costs"], min_judgements)
    tables = {name: one.table for name, one in audits.items()}
    for name, one in audits.items():
        tables |= {f"{name}.{key}": of_part for key, of_part in one.tables.items()}
    return Audit(
        verdicts,
        how,
        tables=tables,
        threshold=0.5 if options["threshold"] is None else float(options["threshold"]),
        margin=float(options["margin"]),
        min_judgements=min_judgements,
        judged="p_above",
        anchor=joint_anchor({name: one.anchor for name, one in audits.items()}),
        fit=identity_of(program),
        **{name: options[name] for name in ("level", "costs")},
    )


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
    total, below = number.sum(0), np.stack([one.table["p_below"].values for one in audits.values()])
    # Of those without judgements of a kind nothing is asked about it.
    p_below = np.where(number > 0, number / np.maximum(total, 1) * below, 0.0).sum(0)
    columns = {"judgements": total, "p_below": p_below, "p_above": 1 - p_below}
    (may_drop, enough), alone = np.ones((2, len(total)), bool), True
    for none, (name, one) in zip(number == 0, audits.items(), strict=True):
        gives_one_answer = np.asarray(one.table.get("gives_one_answer", False), bool)
        may_drop &= none | gives_one_answer | (not one.anchor.is_missing)
        enough &= none | (one.table["verdict"].values != "too few draws")
        known = one.anchor.known or program.parts[name].data.tells_judges_apart()
        alone &= one.anchor.is_missing and not known
    columns["verdict"] = decided(columns, costs, may_drop, least, alone=alone, enough=enough)
    judge = next(iter(audits.values())).judge
    names = next(iter(program.parts.values())).data.judges
    parts = [f"P({name}.{one.judged} < {one.threshold:g})" for name, one in audits.items()]
    mean = f"the mean of {' and '.join(parts)}, by the shares of the annotator's judgements"
    anchored = all(not one.anchor.is_missing for one in audits.values())
    text = rule("judgements", mean, least, costs, anchored=anchored)
    if others := [name for name in program.parts if name not in audits]:
        text += f" Without {' and '.join(others)}, where nobody can be told apart."
    return table(judge, names, columns), text


def _sites_of_judges(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Every site with one entry for each judge; the first of them is judged."""
    judge = program.data.judge
    names = [name for name, site in program.sites.items() if site.dims == (judge,)]
    if not names:
        problem = f"takes every {judge} as alike, so there is nobody to tell apart"
        expected = f"fit a model with parameters of {plural(judge)}"
        refuse("model", program.model, problem, expected)
    draws, _ = draws_of(program, result)
    return Quantities({name: draws[name] for name in names}, judged=names[0])


def check_limits(threshold: Any, level: Any, margin: Any, min_judgements: Any) -> None:
    """Raise unless the options of an audit are possible."""
    share("level", level)
    positive("margin", margin)
    whole("min_judgements", min_judgements, least=0)
    if threshold is None:
        expected = (
            "say below which value of the judged quantity nobody is worth keeping, or give"
            " the kind a threshold"
        )
        refuse("threshold", threshold, "is missing", expected)
    finite("threshold", threshold, 0.25)


# ---------------------------------------------------------------- without those flagged


@checked
def drop(
    model: Model[Any],
    data: Judgements,
    audit: Audit,
    backend: Backend | None = None,
    *,
    seed: int,
    progress: bool = True,
) -> xr.DataTree:
    """Fit again without the annotators that an audit flagged.

    Parameters
    ----------
    model : Model
    data : Judgements
        The judgements that were audited.
    audit : Audit
    backend : Backend, optional
    seed : int
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    xarray.DataTree
        The new fit; the items are the same, the flagged annotators are gone.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, seed=0, progress=False), reference="crowd")
    >>> rt.auditing.drop(model, votes, audit, seed=0, progress=False).posterior.sizes["annotator"]
    7
    """
    check_data(data, "data", model)
    return fit(model, data.without_judges(audit.flagged), backend, seed=seed, progress=progress)
