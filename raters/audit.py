"""Who can be trusted: an audit of every annotator, from posterior draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit

from raters import _label_audit
from raters._check import positive, share, whole
from raters._frame import shorten
from raters._result import check_data, check_model, data_of, draws_of, label_array
from raters.data import Comparisons
from raters.errors import SettingError
from raters.fit import fit
from raters.inference import Backend
from raters.inference._trace import latent_sites
from raters.labels import Labels
from raters.model import Model

# An accuracy averages over so many random pairs, under so many draws at most; that is finer than an interval's third digit.
_PAIRS = 200
_DRAWS = 1000
# How near to knowing nothing is guessing: of an accuracy, and of information in bits.
_MARGIN = 0.05
# What is printed of an audit of labels; its table has more.
_PRINTED = (
    "votes",
    "accuracy",
    "competence",
    "competence_low",
    "competence_high",
    "information",
    "p_spammer",
    "p_adversarial",
    "p_below",
    "bias_class",
    "bias",
    "agreement",
    "verdict",
)


@dataclass(frozen=True)
class Costs:
    """What a decision about an annotator costs, relative to each other.

    Parameters
    ----------
    keep_bad : float
        Keeping an annotator whose competence is below the threshold.
    drop_good : float
        Dropping one whose competence is above it.
    review : float
        Looking into an annotator's votes, whatever comes out.
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
    """What `audit` found.

    Attributes
    ----------
    table : xarray.Dataset
        One entry for each annotator; ``table.to_dataframe()`` prints well.
    rule : str
        How verdicts were chosen, in words.
    confusion : xarray.Dataset or None
        Of labels: ``mean``, ``low`` and ``high`` of P(label | annotator, true class), axes annotator, true_class, label.
    items : xarray.Dataset or None
        Of labels: for each item its most probable class (``label``; of equally probable ones the first), that class's
        ``probability``, the ``entropy`` of its class in bits, and the number of its ``votes``.
    threshold, level, margin : float
        What was asked for; `margin` is ``guess_margin``, or of labels ``spam_bits``.
    min_votes : int
    costs : Costs
    """

    table: xr.Dataset
    rule: str
    confusion: xr.Dataset | None = None
    items: xr.Dataset | None = None
    threshold: float = 0.25
    level: float = 0.9
    margin: float = _MARGIN
    min_votes: int = 5
    costs: Costs = field(default_factory=Costs)

    @property
    def flagged(self) -> list[Any]:
        """Names of the annotators with verdict ``drop``."""
        return self.table["annotator"].values[self.table["verdict"].values == "drop"].tolist()

    @property
    def wrong_drops(self) -> float:
        """Expected share of those flagged who are above the threshold after all; NaN when nobody is flagged."""
        dropped = self.table["verdict"].values == "drop"
        return float(1 - self.table["p_below"].values[dropped].mean()) if dropped.any() else float("nan")

    @property
    def expected_wrong(self) -> float:
        """Expected number of items whose label in `items` is wrong, should labelling stop now; NaN for comparisons.

        It is the model's: where items mislead many annotators at once, models that take errors as independent expect too few.
        """
        return float("nan") if self.items is None else float((1 - self.items["probability"]).sum())

    def __str__(self) -> str:
        frame = self.table.to_dataframe().sort_values("competence")
        lines = [self.rule]
        if self.items is not None:
            frame = frame[[name for name in _PRINTED if name in frame]]
            number, most = self.expected_wrong, self.items.sizes["item"]
            lines += [
                f"If labelling stops now, {number:.1f} of {most} item labels are expected to be wrong ({number / most:.1%})."
            ]
        lines += [f"Expected share of wrong drops: {self.wrong_drops:.1%}." if self.flagged else "Nobody is dropped."]
        return "\n".join([frame.round(3).to_string(), *lines])


def audit(
    model: Model,
    result: xr.DataTree,
    *,
    threshold: float = 0.25,
    level: float = 0.9,
    guess_margin: float | None = None,
    spam_bits: float | None = None,
    min_votes: int = 5,
    costs: Costs | None = None,
) -> Audit:
    r"""Judge every annotator from the posterior of a model with competences, or of a model of labels.

    Parameters
    ----------
    model : Model
        The model that was fitted. Of comparisons, ``ExtendedBTL(competence="signed")`` can also find adversaries; of labels,
        any model that tells annotators apart, such as ``DawidSkene()``.
    result : xarray.DataTree
    threshold : float
        An annotator with a competence below it is "bad"; 0 is a guesser. 1 is the reference annotator of comparisons, and one
        who labels every item right.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    guess_margin : float, optional
        Of comparisons: a guesser's accuracy is within this of ½; 0.05 by default.
    spam_bits : float, optional
        Of labels: a spammer's labels hold less information on the true class than this, in bits per label; 0.05 by default.
    min_votes : int
        With fewer votes (or labels) the verdict is "not enough votes".
    costs : Costs, optional
        What wrong decisions and reviews cost.

    Returns
    -------
    Audit
        Its ``table`` has, for each annotator:

        - ``votes``: number of votes, or of labels;
        - ``competence``, ``competence_low``, ``competence_high``: posterior mean and interval;
        - ``accuracy``, ``accuracy_low``, ``accuracy_high``;
        - ``p_adversarial``;
        - ``p_below``: P(competence < `threshold`);
        - ``agreement``: share of the annotator's votes for the item with the higher posterior mean reward, or of their labels
          that are the item's most probable class;
        - ``verdict``: keep, review, drop, or not enough votes.

        Of comparisons also

        - ``relative``: posterior mean of competence over the crowd's mean absolute competence, which no choice of scale
          changes;
        - ``p_guessing``: P(accuracy within `guess_margin` of ½).

        Of labels also, each with ``_low`` and ``_high``,

        - ``information``: mutual information of true class and label, in bits per label;
        - ``sensitivity`` and ``specificity``, when there are two classes: P(label right | true class), of the last of
          `labels.classes` (the positive class) and of the first;

        and

        - ``p_spammer``: P(information < `spam_bits`);
        - ``bias_class``, ``bias``: the class whose label the annotator gives most in excess of its frequency, and that excess.

        ``confusion`` and ``items`` are those of `Audit`.

    Raises
    ------
    SettingError
        When the model has no competences, or takes annotators as alike; when an option is out of range, or belongs to the
        other kind of data.

    Notes
    -----
    **Comparisons.** Competence is the site of that name. Accuracy is the probability of choosing the better of two random
    items (of two that were compared, where the comparisons fall into components), the mean over pairs of
    :math:`\sigma(\beta_k |r_i - r_j|)`, which no choice of scale changes. ``p_adversarial`` is P(competence < 0).

    **Labels.** With :math:`p_k` the frequency of class k among K, and :math:`\pi_{kj}` the annotator's probability of label j
    for items of class k (read off the model's program, averaged over items of class k where it depends on the item),

    .. math::

        \text{accuracy} = \sum_k p_k \pi_{kk}, \qquad
        \text{competence} = \frac{\frac{1}{K} \sum_k \pi_{kk} - \frac{1}{K}}{1 - \frac{1}{K}}, \\
        \text{information} = \sum_{k, j} p_k \pi_{kj} \log_2 \frac{\pi_{kj}}{q_j}, \qquad
        q_j = \sum_k p_k \pi_{kj}, \qquad \text{bias}_j = q_j - p_j.

    Competence is 1 for one who is always right, 0 for a spammer, whose labels do not depend on the class, whatever the class
    frequencies, and below 0 for an adversary. With two classes it is Youden's J, sensitivity + specificity − 1.
    ``p_adversarial`` is P(competence < 0 and information ≥ `spam_bits`): wrong so reliably that the labels are of use. All of
    it is computed for each of up to 400 draws. From n labels, the uncertainty of the draws alone looks like about
    :math:`(K - 1)^2 / (2 n \ln 2)` bits, so with few labels ``p_spammer`` is low for spammers too; competence has no such bias.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> sorted(str(truth["kind"][name]) for name in found.flagged)
    ['adversary', 'guesser', 'guesser']

    >>> labels, truth = rt.datasets.label_crowd(num_annotators=10, seed=0)
    >>> found = rt.audit(rt.DawidSkene(), rt.fit(rt.DawidSkene(), labels, rt.PGEM(), seed=0, progress=False))
    >>> [str(truth["kind"][name]) for name in found.flagged]
    ['spammer']
    >>> found.confusion["mean"].dims
    ('annotator', 'true_class', 'label')
    """
    check_model(model)
    data = data_of(result)
    check_data(data, "what the result was fitted to", model)
    costs = Costs() if costs is None else costs
    _check_options(threshold, level, min_votes, costs)
    if (number := result["posterior"]["chain"].size * result["posterior"]["draw"].size) < 2:
        raise SettingError(
            f"an audit says how sure it is, and this result has {number} draw; fit with PGEM() rather than PGEM(draws=0)"
        )
    confusion, items = None, None
    if isinstance(data, Labels):
        margin = _own("spam_bits", spam_bits, "labels", {"guess_margin": guess_margin})
        positive("spam_bits", margin)
        limits = {"level": level, "threshold": threshold, "spam_bits": margin}
        columns, confusion, items = _label_audit.findings(model, result, data, **limits)
    else:
        margin = _own("guess_margin", guess_margin, "comparisons", {"spam_bits": spam_bits})
        share("guess_margin", margin)
        columns = _comparison_columns(model, result, data, level, threshold, margin)
    columns["verdict"] = _verdicts(columns["p_below"], columns["votes"], min_votes, costs)
    names = label_array(data.annotators)
    table = xr.Dataset({name: ("annotator", value) for name, value in columns.items()}, coords={"annotator": names})
    rule = _rule(threshold, min_votes, costs)
    return Audit(table, rule, confusion, items, float(threshold), level, margin, min_votes, costs)


def _check_options(threshold: Any, level: Any, min_votes: Any, costs: Any) -> None:
    """Those that every audit has."""
    if not isinstance(costs, Costs):
        raise SettingError(f"costs={costs!r} is not possible; write costs=rt.Costs(keep_bad=1, drop_good=1, review=0.2)")
    share("level", level)
    whole("min_votes", min_votes, least=0)
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float, np.number)) or not np.isfinite(threshold):
        raise SettingError(f"threshold={threshold!r} is not possible; it must be a finite number such as 0.25")


def _own(name: str, value: float | None, kind: str, foreign: dict[str, Any]) -> float:
    """An option that only this kind of data has, or its default; that of the other kind must be left out."""
    for other, given in foreign.items():
        if given is not None:
            raise SettingError(f"{other}={given!r} has no meaning for an audit of {kind}; leave it out, or give {name}=")
    return _MARGIN if value is None else value


def _comparison_columns(model, result, data: Comparisons, level: float, threshold: float, margin: float) -> dict[str, Any]:
    """What the draws say of every annotator, but for the verdict."""
    if "competence" not in latent_sites(model, data):
        raise SettingError(
            f"{model!r} has no competences to audit; fit ExtendedBTL(), or ExtendedBTL(competence='signed') to find "
            "adversaries too, and pass that model and its result"
        )
    draws, _ = draws_of(model, result)
    competence, reward = draws["competence"], draws["reward"]
    few, _ = draws_of(model, result, _DRAWS)
    # Annotators of a mixture are judged by the rewards of their likeliest type; otherwise there is one.
    of_type = np.zeros(data.num_annotators, int)
    if reward.ndim == 3:
        of_type = result["types"]["responsibility"].argmax("type").values
    reward, some = (part.reshape(*part.shape[:2], -1) for part in (reward, few["reward"]))
    accuracy = _accuracy(few["competence"], some, of_type, data)
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(competence, tails, axis=0)
    accuracy_low, accuracy_high = np.quantile(accuracy, tails, axis=0)
    return {
        "votes": data.votes_by_annotator(),
        "competence": competence.mean(0),
        "competence_low": low,
        "competence_high": high,
        "relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0),
        "accuracy": accuracy.mean(0),
        "accuracy_low": accuracy_low,
        "accuracy_high": accuracy_high,
        "p_guessing": (np.abs(accuracy - 0.5) < margin).mean(0),
        "p_adversarial": (competence < 0).mean(0),
        "p_below": (competence < threshold).mean(0),
        "agreement": _agreement(data, reward.mean(0), of_type),
    }


def _accuracy(competence: np.ndarray, reward: np.ndarray, of_type: np.ndarray, data: Comparisons) -> np.ndarray:
    """For each draw and annotator, the mean of σ(β |r_i − r_j|) over random pairs of different items, with the rewards (draw,
    item, type) of the annotator's type; where the comparisons
    fall into components, over random pairs that were compared, because nobody can tell the others apart."""
    rng, data = np.random.default_rng(0), data.unpadded()
    if len(data.components()) == 1 or not data.num_comparisons:
        one = rng.integers(data.num_items, size=_PAIRS)
        other = (one + rng.integers(1, data.num_items, size=_PAIRS)) % data.num_items
    else:
        rows = rng.integers(data.num_comparisons, size=_PAIRS)
        one, other = np.asarray(data.first)[rows], np.asarray(data.second)[rows]
    gap = np.abs(reward[:, one] - reward[:, other])
    columns = zip(competence.T, of_type, strict=True)
    return np.stack([expit(column[:, None] * gap[:, :, kind]).mean(1) for column, kind in columns], axis=1)


def _agreement(data: Comparisons, reward: np.ndarray, of_type: np.ndarray) -> np.ndarray:
    """Share of each annotator's votes that go to the item with the higher mean reward; NaN without votes."""
    count = np.ones(data.num_comparisons) if data.count is None else data.count
    kind = of_type[data.annotator]
    for_better = np.where(reward[data.first, kind] > reward[data.second, kind], data.wins, count - data.wins)
    votes = np.bincount(data.annotator, count, data.num_annotators)
    with np.errstate(invalid="ignore"):
        return np.bincount(data.annotator, for_better, data.num_annotators) / votes


def _verdicts(p_bad: np.ndarray, votes: np.ndarray, min_votes: int, costs: Costs) -> np.ndarray:
    """The action of least expected cost."""
    expected = np.stack([p_bad * costs.keep_bad, np.full(len(p_bad), costs.review), (1 - p_bad) * costs.drop_good])
    verdict = np.array(["keep", "review", "drop"], dtype=object)[np.argmin(expected, axis=0)]
    verdict[votes < min_votes] = "not enough votes"
    return verdict


def _rule(threshold: float, min_votes: int, costs: Costs) -> str:
    return (
        f"Verdict: with fewer than {min_votes} votes, 'not enough votes'; otherwise the least of the expected costs, with "
        f"p = P(competence < {threshold:g}): keep {costs.keep_bad:g}·p, drop {costs.drop_good:g}·(1 − p), "
        f"review {costs.review:g}."
    )


def drop(
    model: Model,
    data: Comparisons | Labels,
    found: Audit,
    backend: Backend | None = None,
    *,
    seed: int,
    progress: bool = True,
) -> xr.DataTree:
    """Leave out the annotators that an audit flagged, and fit again.

    Parameters
    ----------
    model : Model
    data : Comparisons or Labels
        What was audited.
    found : Audit
    backend : Backend, optional
    seed : int
    progress : bool

    Returns
    -------
    xarray.DataTree
        The new fit; the items are the same, the flagged annotators are gone.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> rt.drop(model, votes, found, rt.PGEM(), seed=0, progress=False).posterior.sizes["annotator"]
    7
    """
    check_audit(found, "the third argument")
    check_model(model)
    check_data(data, "the second argument", model)
    flagged = set(map(str, found.flagged))
    if strangers := sorted(flagged - set(map(str, data.annotators))):
        raise SettingError(
            f"the audit flagged {shorten(strangers)}, who are not among these annotators; pass the data that were audited"
        )
    names = [name for name in data.annotators if str(name) in flagged]
    return fit(model, data.without_annotators(names), backend, seed=seed, progress=progress)


def check_audit(found: Any, what: str) -> None:
    """What `audit` returned, not a result."""
    if not isinstance(found, Audit):
        raise SettingError(f"{what} must be an audit, such as rt.audit(model, result); it is a {type(found).__name__}")
