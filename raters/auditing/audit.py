"""Audit of every annotator from posterior draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Shaped

from raters._validation import checked, finite, positive, share, whole
from raters.auditing import precision
from raters.auditing.calibration import Anchor, Calibration, check_calibration
from raters.errors import SettingError
from raters.fitting.draws import check_several
from raters.fitting.fit import fit
from raters.fitting.identity import identity_of
from raters.fitting.result import check_data, check_model, draws_of, program_of
from raters.inference import Backend
from raters.inference.mixing import FEWEST_DRAWS
from raters.judgements.base import Judgements
from raters.judgements.names import names_array, plural, shorten
from raters.kinds import AuditLimits, Quantities, kind_of
from raters.model import Model
from raters.program import Program

# Distance from knowing nothing below which an annotator guesses: of an accuracy, or in bits.
_MARGIN = 0.05


@dataclass(frozen=True)
class Costs:
    """Costs of decisions about an annotator, relative to each other.

    Parameters
    ----------
    keep_bad : float
        Keeping an annotator whose competence is below the threshold.
    drop_good : float
        Dropping one whose competence is above it.
    review : float
        Looking into an annotator's votes, whatever the outcome.
    """

    keep_bad: float = 1.0
    drop_good: float = 1.0
    review: float = 0.2

    def __post_init__(self) -> None:
        positive("keep_bad", self.keep_bad)
        positive("drop_good", self.drop_good)
        positive("review", self.review)


@dataclass(frozen=True)
class Audit:
    """Audit of annotators, from `raters.audit`.

    Attributes
    ----------
    table : xarray.Dataset
        One entry for each annotator, or whoever else judges: the axis `judge`.
        ``table.to_dataframe()`` prints well.
    rule : str
        Rule behind the verdicts, in words.
    tables : mapping of str to xarray.Dataset
        Further tables of the kind of judgement. Of comparisons, where two mirrored worlds are both
        possible: ``"worlds"``, with the ``probability`` of each world, and ``competence``,
        ``competence_low`` and ``competence_high`` in it. Of labels: ``"confusion"``, with ``mean``,
        ``low`` and ``high`` of P(label | annotator, true class), axes annotator, true_class, label;
        and ``"items"``, for each item its most probable class (``label``; of equally probable ones
        the first), that class's ``probability``, the ``entropy`` of its class in bits, and the
        number of its ``judgements``.
    threshold, level, margin : float
        Options of the audit.
    min_judgements : int
    costs : Costs
    judged : str
        Quantity that is compared with the threshold.
    anchor : Anchor or None
        What a calibrated audit stands on; None for the model's own numbers.
    wrong_interval : tuple of (float, float) or None
        Interval of the number of wrong item labels, of a calibrated audit of labels.
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
    anchor: Anchor | None = None
    wrong_interval: tuple[float, float] | None = None
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
        names: list[Any] = self.table[self.judge].values[self._dropped].tolist()
        return names

    @property
    def wrong_drops(self) -> float:
        """Expected share of those flagged who are above the threshold after all; NaN when nobody is
        flagged."""
        dropped = self._dropped
        if not dropped.any():
            return float("nan")
        return float(1 - self.table["p_below"].values[dropped].mean())

    @property
    def _dropped(self) -> Bool[np.ndarray, " judge"]:
        """Verdict of ``drop``, a boolean for each."""
        return np.asarray(self.table["verdict"].values == "drop")

    @property
    def expected_wrong(self) -> float:
        """Expected number of items whose label in `items` is wrong, should labelling stop now; NaN
        for comparisons.

        Without a calibration it is the model's: where items mislead many annotators at once, models
        that take errors as independent expect too few.
        """
        return float("nan") if self.items is None else float((1 - self.items["probability"]).sum())

    def __str__(self) -> str:
        frame = self.table.to_dataframe().sort_values(self.judged)
        ends = {f"{self.judged}_low", f"{self.judged}_high"}
        shown = [name for name in frame if name in ends or not name.endswith(("_low", "_high"))]
        frame, lines = frame[shown], [self.rule]
        if self.items is not None:
            wrong, num_items = self.expected_wrong, self.items.sizes["item"]
            by = ", by this model"
            if self.wrong_interval is not None:
                low, high = self.wrong_interval
                by = (
                    f"; {self.level:.0%} interval {low:.0f} to {high:.0f}, which allows for"
                    " mistakes that the crowd makes together"
                )
            lines += [
                f"If labelling stops now, {wrong:.1f} of {num_items} item labels are expected to be"
                f" wrong ({wrong / num_items:.1%}){by}."
            ]
        lines += [
            (
                f"Expected share of wrong drops: {self.wrong_drops:.1%}."
                if self.flagged
                else "Nobody is dropped."
            )
        ]
        stands = [] if self.anchor is None else [self.anchor.sentence]
        return "\n".join([*stands, frame.round(3).to_string(), *lines])


@checked
def audit(
    model: Model[Any],
    result: xr.DataTree,
    *,
    threshold: float | None = None,
    level: float = 0.9,
    margin: float = _MARGIN,
    min_judgements: int = 5,
    costs: Costs | None = None,
    calibration: Calibration | None = None,
) -> Audit:
    r"""Audit every annotator from the posterior of a model.

    Parameters
    ----------
    model : Model
        The model that was fitted. Of comparisons, one with competences:
        ``ExtendedBTL(competence="signed")`` can also find adversaries. Of labels, any model that
        tells annotators apart, such as ``DawidSkene()``. Of another kind of judgement, a model that
        the ``quantities`` of its `raters.Kind` can read; without them, one with a parameter of each
        judge.
    result : xarray.DataTree
    threshold : float, optional
        An annotator with a competence below it is "bad": .25 by default, where 0 is a guesser, and
        1 the reference annotator of comparisons, or one who labels every item right. Of another
        kind of judgement, a value of its judged quantity: that of the kind by default.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    margin : float
        Distance from knowing nothing below which an annotator guesses: of comparisons, an accuracy
        within this of ½; of labels, less information on the true class than this, in bits per
        label. A ``first_share`` within this of ½ is no position bias.
    min_judgements : int
        With fewer judgements the verdict is "too few judgements".
    costs : Costs, optional
        Costs of wrong decisions and of reviews.
    calibration : Calibration, optional
        From `raters.calibrate`, of the same fit: the audit then states its quantities, which allow
        for mistakes that the crowd makes together, and its item labels, instead of the model's.

    Returns
    -------
    Audit
        Its ``table`` has, for each annotator:

        - ``judgements``: number of votes, labels or other judgements;
        - ``competence``, ``competence_low``, ``competence_high``: posterior mean and interval;
        - ``accuracy``, ``accuracy_low``, ``accuracy_high``;
        - ``p_adversarial``;
        - ``p_below``: P(competence < `threshold`);
        - ``agreement``: share of the annotator's votes for the item with the higher posterior mean
          reward, or of their labels that are the item's most probable class;
        - ``verdict``: keep, review, drop, too few judgements, or, where the fit holds fewer than
          100 effective draws of the annotator's parameters, too few draws.

        Of comparisons also

        - ``relative``: posterior mean of competence over the crowd's mean absolute competence,
          which no choice of scale changes;
        - ``p_guessing``: P(accuracy within `margin` of ½);

        and where a position bias of each annotator was fitted, as by
        ``ExtendedBTL(position_bias=True)``,

        - ``position_bias``, with ``_low`` and ``_high``: the bias, in logits for the item shown
          first;
        - ``first_share``, with ``_low`` and ``_high``: the probability of choosing the first of two
          equal items;
        - ``p_position_bias``: P(``first_share`` differs from ½ by `margin` or more).

        Of comparisons by annotators with rewards of their own (`HierarchicalBTL`) also, each with
        ``_low`` and ``_high``, ``taste_agreement`` and ``consistency``: correlation of the
        annotator's own rewards with the crowd's, and their spread relative to the crowd's; and
        ``own_accuracy``, the probability of choosing the item that the annotator prefers; and in
        place of ``p_guessing``

        - ``p_careless``: probability that coin flips predict their votes as well as rewards of
          their own, or that ``own_accuracy`` is within `margin` of ½;
        - ``p_different_taste``: probability that neither is so, and that ``taste_agreement`` is
          between −½ and ½; where it is below −½, they are an adversary (``p_adversarial``).

        Of labels also, each with ``_low`` and ``_high``,

        - ``information``: mutual information of true class and label, in bits per label;
        - ``sensitivity`` and ``specificity``, when there are two classes: P(label right | true
          class), of the last of `labels.classes` (the positive class) and of the first;

        and

        - ``p_spammer``: P(information < `margin`);
        - ``bias_class``, ``bias``: the class whose label the annotator gives most in excess of its
          frequency, and that excess.

        ``confusion`` and ``items`` are those of `Audit`.

    Raises
    ------
    SettingError
        When the model has no competences, or takes annotators as alike; when an option is out of
        range; when the kind has no threshold and none is given.

    Notes
    -----
    **Comparisons.** Competence is the site of that name. Accuracy is the probability of choosing
    the better of two random items (of two that were compared, where the comparisons fall into
    components), the mean over pairs of
    :math:`\sigma(\beta_k |r_i - r_j|)`, which no choice of scale changes. ``p_adversarial`` is
    P(competence < 0). With :math:`\gamma_k` added to the logits for the item shown first,
    ``first_share`` is :math:`\sigma(\gamma_k)`, the probability at :math:`r_i = r_j`: ½ without a
    position bias.

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

    Competence is 1 for one who votes as the crowd does, and 0 both for a guesser (consistency 0)
    and for one whose taste is unrelated to the crowd's (taste agreement 0). The
    probability of coin flips is :math:`1 / (1 + e^{g})`, with g the gain in expected log predictive
    density, by WAIC, of own rewards over coin flips (a pseudo-BMA weight). Without ``competence=``
    the model takes all annotators as consistent, and the competence of a guesser with few votes is
    shrunk towards 1: to find guessers, fit ``HierarchicalBTL(competence="signed")``.

    **Labels.** With :math:`p_k` the frequency of class k among K, and :math:`\pi_{kj}` the
    annotator's probability of label j for items of class k (read off the model's program, averaged
    over items of class k where it depends on the item),

    .. math::

        \text{accuracy} = \sum_k p_k \pi_{kk}, \qquad
        \text{competence} = \frac{\frac{1}{K} \sum_k \pi_{kk} - \frac{1}{K}}{1 - \frac{1}{K}}, \\
        \text{information} = \sum_{k, j} p_k \pi_{kj} \log_2 \frac{\pi_{kj}}{q_j}, \qquad
        q_j = \sum_k p_k \pi_{kj}, \qquad \text{bias}_j = q_j - p_j.

    Competence is 1 for one who is always right, 0 for a spammer, whose labels do not depend on the
    class, whatever the class frequencies, and below 0 for an adversary. With two classes it is
    Youden's J, sensitivity + specificity − 1. ``p_adversarial`` is P(competence < 0 and information
    ≥ `margin`): wrong so reliably that the labels are of use. All of it is computed for each of
    up to 400 draws. From n labels, the uncertainty of the draws alone looks like about
    :math:`(K - 1)^2 / (2 n \ln 2)` bits, so with few labels ``p_spammer`` is low for spammers too;
    competence has no such bias.

    **Other kinds.** The table has the quantities of the kind, each with ``_low`` and ``_high``, and
    its further columns; the quantity in `Audit.judged` is compared with `threshold`.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, seed=0, progress=False))
    >>> sorted(str(truth["kind"][name]) for name in audit.flagged)
    ['adversary', 'guesser', 'guesser']

    >>> labels, truth = rt.datasets.label_crowd(num_annotators=10, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> audit = rt.audit(rt.DawidSkene(), result)
    >>> [str(truth["kind"][name]) for name in audit.flagged]
    ['spammer']
    >>> audit.confusion["mean"].dims
    ('annotator', 'true_class', 'label')
    """
    program = program_of(model, result)
    data, kind = program.data, kind_of(program.data)
    costs = Costs() if costs is None else costs
    threshold = kind.threshold if threshold is None else threshold
    check_limits(threshold, level, margin, min_judgements, costs)
    assert threshold is not None
    check_several(result, "an audit says how sure it is")
    limits = AuditLimits(float(threshold), level, float(margin))
    if calibration is None:
        quantities = (kind.quantities or _sites_of_judges)(program, result, limits)
    else:
        check_calibration(calibration, data)
        quantities = calibration.quantities(limits)
    columns: dict[str, np.ndarray] = {"judgements": data.judgements_by(data.judge)}
    for name, draws in quantities.values.items():
        low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
        columns |= {name: draws.mean(0), f"{name}_low": low, f"{name}_high": high}
    columns |= quantities.columns
    columns["p_below"] = (quantities.values[quantities.judged] < threshold).mean(0)
    columns["verdict"] = verdicts(columns["p_below"], costs)
    columns["verdict"][~precision.enough(program, result)] = "too few draws"
    columns["verdict"][columns["judgements"] < min_judgements] = "too few judgements"
    table = xr.Dataset(
        {name: (data.judge, value) for name, value in columns.items()},
        coords={data.judge: names_array(data.judges)},
    )
    rule = _rule(kind.words.many, quantities.judged, threshold, min_judgements, costs)
    return Audit(
        table,
        rule,
        tables=dict(quantities.tables),
        threshold=float(threshold),
        level=level,
        margin=float(margin),
        min_judgements=min_judgements,
        costs=costs,
        judged=quantities.judged,
        anchor=None if calibration is None else calibration.anchor,
        wrong_interval=None if calibration is None else calibration.wrong_interval,
        fit=identity_of(program),
    )


def _sites_of_judges(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Every site with one entry for each judge; the first of them is judged."""
    judge = program.data.judge
    names = [name for name, site in program.sites.items() if site.dims == (judge,)]
    if not names:
        raise SettingError(
            parameter="model",
            value=program.model,
            problem=f"takes every {judge} as alike, so there is nobody to tell apart",
            expected=f"fit a model with parameters of {plural(judge)}",
        )
    draws, _ = draws_of(program, result)
    return Quantities({name: draws[name] for name in names}, judged=names[0])


def check_limits(threshold: Any, level: Any, margin: Any, min_judgements: Any, costs: Any) -> None:
    """Raise unless the options of an audit are possible."""
    if not isinstance(costs, Costs):
        raise SettingError(
            parameter="costs",
            value=costs,
            expected="it must hold the costs of the verdicts",
            instead="costs=rt.Costs(keep_bad=1, drop_good=1, review=0.2)",
        )
    share("level", level)
    positive("margin", margin)
    whole("min_judgements", min_judgements, least=0)
    if threshold is None:
        raise SettingError(
            parameter="threshold",
            value=threshold,
            problem="is missing",
            expected="say below which value of the judged quantity nobody is worth keeping, or give"
            " the kind a threshold",
        )
    finite("threshold", threshold, 0.25)


def verdicts(p_bad: Float[np.ndarray, " judge"], costs: Costs) -> Shaped[np.ndarray, " judge"]:
    """The action of least expected cost.

    Parameters
    ----------
    p_bad : array, shape (judge,)
        Probability that each is below the threshold.
    costs : Costs

    Returns
    -------
    array, shape (judge,)
        ``keep``, ``review`` or ``drop``.
    """
    expected = np.stack(
        [p_bad * costs.keep_bad, np.full(len(p_bad), costs.review), (1 - p_bad) * costs.drop_good]
    )
    return np.array(["keep", "review", "drop"], dtype=object)[np.argmin(expected, axis=0)]


def _rule(many: str, judged: str, threshold: float, least: int, costs: Costs) -> str:
    """The rule in words; `many` is the word for judgements."""
    return (
        f"Verdict: with fewer than {least} {many}, 'too few judgements'; with fewer than"
        f" {FEWEST_DRAWS} effective draws, 'too few draws'; otherwise the least of the"
        f" expected costs, with p = P({judged} < {threshold:g}): keep {costs.keep_bad:g}·p,"
        f" drop {costs.drop_good:g}·(1 − p), review {costs.review:g}."
    )


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

    Returns
    -------
    xarray.DataTree
        The new fit; the items are the same, the flagged annotators are gone.

    Raises
    ------
    SettingError
        When the audit flagged annotators who are not in `data`.
    DataError
        When nobody would be left.
    BackendError
        When the back-end cannot run the model on the judgements that are left.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> audit = rt.audit(model, rt.fit(model, votes, seed=0, progress=False))
    >>> without = rt.drop(model, votes, audit, seed=0, progress=False)
    >>> without.posterior.sizes["annotator"]
    7
    """
    check_audit(audit, "the third argument")
    check_model(model)
    check_data(data, "data", model)
    flagged = set(map(str, audit.flagged))
    if unknown := sorted(flagged - set(map(str, data.judges))):
        raise SettingError(
            parameter="data",
            value=data,
            problem=f"has no {plural(data.judge)} {shorten(unknown)}, whom the audit flagged",
            expected="pass the data that were audited",
        )
    names = [name for name in data.judges if str(name) in flagged]
    return fit(model, data.without_judges(names), backend, seed=seed, progress=progress)


def check_audit(audit: Any, what: str) -> None:
    """Raise unless this is an audit.

    Parameters
    ----------
    audit : object
        Value to check.
    what : str
        Name of the value in messages.

    Raises
    ------
    SettingError
        When it is none.
    """
    if not isinstance(audit, Audit):
        raise SettingError(
            f"{what} must be an audit, such as rt.audit(model, result); it is a"
            f" {type(audit).__name__}",
            parameter="audit",
            value=audit,
            expected="it must be an audit",
        )
