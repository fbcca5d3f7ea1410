"""Who can be trusted: an audit of every annotator, from posterior draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from scipy.special import expit

from raters._check import positive, share, whole
from raters._result import check_model, draws_of, label_array
from raters.data import Comparisons
from raters.errors import SettingError
from raters.fit import fit
from raters.inference import Backend
from raters.inference._trace import latent_sites
from raters.model import Model

# An accuracy averages over so many random pairs, under so many draws at most; that is finer than an interval's third digit.
_PAIRS = 200
_DRAWS = 1000


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
    """

    table: xr.Dataset
    rule: str

    @property
    def flagged(self) -> list[Any]:
        """Names of the annotators with verdict ``drop``."""
        return self.table["annotator"].values[self.table["verdict"].values == "drop"].tolist()

    @property
    def wrong_drops(self) -> float:
        """Expected share of those flagged who are above the threshold after all; NaN when nobody is flagged."""
        dropped = self.table["verdict"].values == "drop"
        return float(1 - self.table["p_below"].values[dropped].mean()) if dropped.any() else float("nan")

    def __str__(self) -> str:
        frame = self.table.to_dataframe().sort_values("competence")
        share = f"Expected share of wrong drops: {self.wrong_drops:.1%}." if self.flagged else "Nobody is dropped."
        return f"{frame.round(3).to_string()}\n{self.rule}\n{share}"


def audit(
    model: Model,
    result: xr.DataTree,
    *,
    threshold: float = 0.25,
    level: float = 0.9,
    guess_margin: float = 0.05,
    min_votes: int = 5,
    costs: Costs | None = None,
) -> Audit:
    r"""Judge every annotator from the posterior of a model with competences.

    Parameters
    ----------
    model : Model
        The model that was fitted; ``ExtendedBTL(competence="signed")`` can also find adversaries.
    result : xarray.DataTree
    threshold : float
        An annotator with a competence below it is "bad"; 1 is the reference annotator, 0 a guesser.
    level : float
        Posterior probability of the (equal-tailed) intervals.
    guess_margin : float
        A guesser's accuracy is within this of ½.
    min_votes : int
        With fewer votes the verdict is "not enough votes".
    costs : Costs, optional
        What wrong decisions and reviews cost.

    Returns
    -------
    Audit
        Its ``table`` has, for each annotator:

        - ``votes``: number of votes;
        - ``competence``, ``competence_low``, ``competence_high``: posterior mean and interval;
        - ``relative``: posterior mean of competence over the crowd's mean absolute competence, which no choice of scale
          changes;
        - ``accuracy``, ``accuracy_low``, ``accuracy_high``: probability of choosing the better of two random items
          (of two that were compared, where the comparisons fall into components),
          E over pairs of :math:`\sigma(\beta_k |r_i - r_j|)`, which no choice of scale changes either;
        - ``p_guessing``: P(accuracy within `guess_margin` of ½);
        - ``p_adversarial``: P(competence < 0);
        - ``p_below``: P(competence < `threshold`);
        - ``agreement``: share of the annotator's votes for the item with the higher posterior mean reward;
        - ``verdict``: keep, review, drop, or not enough votes.

    Raises
    ------
    SettingError
        When the model has no competences, or an option is out of range.

    Examples
    --------
    >>> import raters as rt
    >>> votes, truth = rt.datasets.crowd(num_annotators=10, num_votes=3000, seed=0)
    >>> model = rt.ExtendedBTL(competence="signed")
    >>> found = rt.audit(model, rt.fit(model, votes, rt.PGEM(), seed=0, progress=False))
    >>> sorted(str(truth["kind"][name]) for name in found.flagged)
    ['adversary', 'guesser', 'guesser']
    """
    check_model(model)
    data = Comparisons.from_result(result)
    costs = Costs() if costs is None else costs
    if not isinstance(costs, Costs):
        raise SettingError(f"costs={costs!r} is not possible; write costs=rt.Costs(keep_bad=1, drop_good=1, review=0.2)")
    share("level", level)
    share("guess_margin", guess_margin)
    whole("min_votes", min_votes, least=0)
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not np.isfinite(threshold):
        raise SettingError(f"threshold={threshold!r} is not possible; it must be a finite number such as 0.25")
    if "competence" not in latent_sites(model, data):
        raise SettingError(
            f"{model!r} has no competences to audit; fit ExtendedBTL(), or ExtendedBTL(competence='signed') to find "
            "adversaries too, and pass that model and its result"
        )
    draws, _ = draws_of(model, result)
    competence, reward = draws["competence"], draws["reward"]
    few, _ = draws_of(model, result, _DRAWS)
    accuracy = _accuracy(few["competence"], few["reward"], data)
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(competence, tails, axis=0)
    accuracy_low, accuracy_high = np.quantile(accuracy, tails, axis=0)
    p_below = (competence < threshold).mean(0)
    votes = data.votes_by_annotator()
    columns = {
        "votes": votes,
        "competence": competence.mean(0),
        "competence_low": low,
        "competence_high": high,
        "relative": (competence / np.abs(competence).mean(1, keepdims=True)).mean(0),
        "accuracy": accuracy.mean(0),
        "accuracy_low": accuracy_low,
        "accuracy_high": accuracy_high,
        "p_guessing": (np.abs(accuracy - 0.5) < guess_margin).mean(0),
        "p_adversarial": (competence < 0).mean(0),
        "p_below": p_below,
        "agreement": _agreement(data, reward.mean(0)),
        "verdict": _verdicts(p_below, votes, min_votes, costs),
    }
    names = label_array(data.annotators)
    table = xr.Dataset({name: ("annotator", value) for name, value in columns.items()}, coords={"annotator": names})
    return Audit(table, _rule(threshold, min_votes, costs))


def _accuracy(competence: np.ndarray, reward: np.ndarray, data: Comparisons) -> np.ndarray:
    """For each draw and annotator, the mean of σ(β |r_i − r_j|) over random pairs of different items; where the comparisons
    fall into components, over random pairs that were compared, because nobody can tell the others apart."""
    rng = np.random.default_rng(0)
    if len(data.components()) == 1:
        one = rng.integers(data.num_items, size=_PAIRS)
        other = (one + rng.integers(1, data.num_items, size=_PAIRS)) % data.num_items
    else:
        rows = rng.integers(data.num_comparisons, size=_PAIRS)
        one, other = np.asarray(data.first)[rows], np.asarray(data.second)[rows]
    gap = np.abs(reward[:, one] - reward[:, other])
    return np.stack([expit(column[:, None] * gap).mean(1) for column in competence.T], axis=1)


def _agreement(data: Comparisons, reward: np.ndarray) -> np.ndarray:
    """Share of each annotator's votes that go to the item with the higher mean reward; NaN without votes."""
    count = np.ones(data.num_comparisons) if data.count is None else data.count
    for_better = np.where(reward[data.first] > reward[data.second], data.wins, count - data.wins)
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
    data: Comparisons,
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
    data : Comparisons
        The votes that were audited.
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
    if not isinstance(found, Audit):
        raise SettingError(f"the third argument must be an audit, such as rt.audit(model, result); it is {found!r}")
    flagged = set(map(str, found.flagged))
    names = [name for name in data.annotators if str(name) in flagged]
    return fit(model, data.without_annotators(names), backend, seed=seed, progress=progress)
