"""A policy: what is wanted, how questions are scored, put together in batches, and given to annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from raters import _frame
from raters._check import one_of, whole
from raters.acquisition.batches import Batch, Sequential, Unique, asked_about
from raters.acquisition.criteria import Bald, Criterion, Epig, OfVariance, OrderVariance, TruthVariance, VarianceReduction
from raters.acquisition.posterior import Posterior, both
from raters.acquisition.whom import Joint, Whom, by_annotator, plain
from raters.errors import DataError, SettingError
from raters.labels import Labels
from raters.predict import latent_of

Target = Literal["ranking", "reward", "top_k", "truth", "competence", "predictive", "everything"]
_TARGETS = ("ranking", "reward", "top_k", "truth", "competence", "predictive", "everything")


class Chosen(NamedTuple):
    """Rows of the candidates, in the order in which they were chosen, their scores, and the highest score of all candidates."""

    rows: np.ndarray
    score: np.ndarray
    highest: float


@dataclass(frozen=True)
class Policy:
    """How the next questions are chosen.

    What is good for one end is bad for another: asking for the *ranking* goes to the annotators who are best already and
    leaves the others unknown; asking for the *competence* spends votes on everybody. Say what the answers are for.

    Parameters
    ----------
    target : str, optional
        ``"ranking"`` (the order of the items; the default for comparisons), ``"reward"`` (their rewards), ``"top_k"`` (which
        are the `k` best), ``"truth"`` (the classes of the items; the default for labels), ``"competence"`` (who can be
        trusted), ``"predictive"`` (the answers to the other questions), or ``"everything"`` (all parameters alike: BALD).
    score : Criterion, optional
        In place of a target: a criterion such as ``Bald()`` or ``OrderEntropy()``.
    batch : Batch, optional
        By default each pair, or item to label, comes once in a batch, and scores that are falls of a variance allow for the
        answers to the questions chosen before: ``Sequential()`` for those, otherwise ``Unique()``. With
        ``target="competence"`` a pair may be put to several annotators: ``Sequential(once=False)``.
    annotator : Whom, optional
        ``Joint()`` by default: whoever scores highest.
    costs : mapping, optional
        What an answer of each annotator costs, 1 where nothing is said. Scores are then divided by costs.
    quota : int or mapping, optional
        The most answers that each annotator may be asked for, counting those that they gave.
    least_share : float
        The share of all answers that every annotator gets at least, so that all can be audited; at most one divided by the
        number of annotators.
    k : int
        With ``target="top_k"``.

    Examples
    --------
    >>> import raters as rt
    >>> policy = rt.Policy(target="competence", costs={"expert": 5.0}, least_share=0.05)
    >>> policy.costs
    (('expert', 5.0),)
    """

    target: Target | None = None
    score: Criterion | None = None
    batch: Batch | None = None
    annotator: Whom | None = None
    costs: Any = None
    quota: Any = None
    least_share: float = 0.0
    k: int = 1

    def __post_init__(self) -> None:
        if self.target is not None:
            one_of("target", self.target, _TARGETS)
        for name, kind, such in (
            ("score", Criterion, "rt.acquisition.Bald()"),
            ("batch", Batch, "rt.acquisition.Unique()"),
            ("annotator", Whom, "rt.acquisition.BestMean()"),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise SettingError(f"{name}={value!r} is not possible; it must be an object such as {such}")
        if self.target is not None and self.score is not None:
            raise SettingError(f"target={self.target!r} and score={self.score!r} both say what is wanted; give one of them")
        whole("k", self.k)
        if self.k != 1 and self.target != "top_k":
            raise SettingError(
                f"k={self.k} belongs to target='top_k', and target={self.target!r} does not read it; leave it out"
            )
        object.__setattr__(self, "costs", _pairs("costs", self.costs, positive=True))
        if isinstance(self.quota, (int, np.integer)) and not isinstance(self.quota, bool):
            whole("quota", int(self.quota), least=0)
            object.__setattr__(self, "quota", int(self.quota))
        else:
            object.__setattr__(self, "quota", _pairs("quota", self.quota, positive=False))
        share = self.least_share
        if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not 0 <= share <= 1:
            raise SettingError(f"least_share={share!r} is not possible; it must lie between 0 and 1, such as 0.02")
        object.__setattr__(self, "least_share", float(share))

    def criterion(self, posterior: Posterior) -> Criterion:
        """What scores the questions."""
        if self.score is not None:
            return self.score
        match self._target(posterior):
            case "truth":
                return TruthVariance()
            case "predictive":
                return Epig()
            case "everything":
                return Bald()
            case "ranking":
                return OrderVariance()
            case target:
                return VarianceReduction(target, k=self.k)  # type: ignore[arg-type]

    def _target(self, posterior: Posterior) -> str:
        if self.target is not None:
            return self.target
        if isinstance(posterior.data, Labels):
            return "truth"
        return "ranking" if "reward" in posterior.draws else "everything"

    def choose(
        self, posterior: Posterior, candidates: Any, number: int, *, seed: int, asked: Any = None, pending: Any = None
    ) -> Chosen:
        """Choose questions.

        Parameters
        ----------
        posterior : Posterior
        candidates : Comparisons or Labels
            Questions in the codes of ``posterior.data``.
        number : int
            How many to choose; there are fewer when no more are left.
        seed : int
        asked : int array, shape (annotator,), optional
            Answers that each annotator was asked for so far; by default those of ``posterior.data``.
        pending : Comparisons or Labels, optional
            Questions that wait for an answer. The batch allows for them as for its own.

        Returns
        -------
        Chosen
        """
        if not len(candidates.annotator):
            raise DataError("there are no candidates to choose from; give at least one question")
        rng = np.random.default_rng(seed)
        names = posterior.data.annotators
        asked = np.array(posterior.data.votes_by_annotator() if asked is None else asked, float)
        waiting = 0 if pending is None else len(pending.annotator)
        if waiting:
            candidates = both(pending, candidates)
        who = np.asarray(candidates.annotator)
        criterion = self.criterion(posterior)
        score = criterion(posterior, candidates, seed=seed)
        if np.isnan(score).any():
            raise SettingError(
                f"{criterion!r} gave {np.isnan(score).sum()} of {len(score)} questions no score; are all draws finite?"
            )
        cost = self.cost_of(names)
        price = None if self.costs is None else cost[who]
        value = score if price is None else self._per_cost(score, price)
        whom = self.annotator or Joint()
        batch = self.batch or self._batch(criterion, posterior)
        chooser = batch.chooser(criterion, value, posterior, candidates, rng)
        chooser.price = price
        about = asked_about(candidates)
        for row in range(waiting):
            chooser.take(row)
        if not (np.arange(len(who)) >= waiting)[chooser.open].any():
            # Every pair is among those that wait: a new batch of them begins.
            chooser.open[waiting:] = True
        chooser.open[:waiting] = False
        limit = self.quota_of(names)
        rows: list[int] = []
        for _ in range(number):
            allowed = self._allowed(who, chooser.open, asked, limit)
            row = chooser.best(allowed)
            if row < 0:
                break
            preference = whom.preference(posterior, rng)
            if preference is not None:
                same = np.flatnonzero(allowed & chooser.open & (about == about[row]))
                row = int(same[(preference / cost)[who[same]].argmax()])
            chooser.take(row)
            asked[who[row]] += 1
            rows.append(row)
        chosen = np.array(rows, int)
        return Chosen(chosen - waiting, score[chosen], float(score[waiting:].max()))

    def _batch(self, criterion: Criterion, posterior: Posterior) -> Batch:
        if isinstance(criterion, OfVariance) and latent_of(posterior.model, posterior.data) is None:
            return Sequential(once=self.target != "competence")
        return Unique()

    def cost_of(self, annotators: tuple[Any, ...]) -> np.ndarray:
        """What an answer of each annotator costs, shape (annotator,)."""
        return by_annotator("costs", self.costs or (), annotators, 1.0)

    def _per_cost(self, score: np.ndarray, cost: np.ndarray) -> np.ndarray:
        if (score < 0).any():
            raise SettingError(f"costs need scores of at least 0, and {self.score!r} gives negative ones; leave the costs out")
        return score / cost

    def quota_of(self, names: tuple[Any, ...]) -> np.ndarray:
        """The most answers that each annotator may be asked for, shape (annotator,)."""
        if self.quota is None:
            return np.full(len(names), np.inf)
        if isinstance(self.quota, int):
            return np.full(len(names), self.quota)
        return by_annotator("quota", self.quota, names, np.inf)

    def _allowed(self, who: np.ndarray, is_open: np.ndarray, asked: np.ndarray, limit: np.ndarray) -> np.ndarray:
        """Rows whose annotator may be asked: below the quota, and, while somebody is short of the least share, only those."""
        free = asked < limit
        if self.least_share:
            there = np.bincount(who, minlength=len(asked)) > 0
            if self.least_share * there.sum() > 1:
                raise SettingError(
                    f"least_share={self.least_share:g} is not possible with {there.sum()} annotators to ask; "
                    f"it must be at most {1 / there.sum():.3g}"
                )
            can = np.bincount(who[is_open], minlength=len(asked)) > 0
            short = free & can & (asked < self.least_share * (asked.sum() + 1))
            if short.any():
                free = short & (asked == asked[short].min())
        return free[who]


def _pairs(what: str, given: Any, positive: bool) -> tuple[tuple[Any, float], ...] | None:
    """A mapping from names to numbers as a tuple of pairs, which can be hashed."""
    if given is None:
        return None
    if not isinstance(given, (Mapping, tuple)):
        also = ", or be one whole number for all" if what == "quota" else ""
        raise SettingError(f"{what}={given!r} is not possible; it must map names to numbers, such as {what}={{'ann': 2}}{also}")
    pairs = tuple((plain(name), number) for name, number in dict(given).items())
    for name, number in pairs:
        right = isinstance(number, (int, float, np.integer, np.floating)) and not isinstance(number, bool)
        if not right or not np.isfinite(number) or number < 0 or (positive and number == 0):
            raise SettingError(
                f"{what} has {number!r} for {name!r}; it must be a number {'above' if positive else 'of at least'} 0"
            )
    return tuple((name, float(number)) for name, number in pairs)


def check_names(policy: Policy, annotators: tuple[Any, ...]) -> None:
    """`DataError` when the policy names annotators that there are none of."""
    for given in (policy.costs, policy.quota if not isinstance(policy.quota, int) else None):
        if given:
            names = tuple(name for name, _ in given)
            _frame.match(np.arange(len(names)), names, annotators, "annotator")
