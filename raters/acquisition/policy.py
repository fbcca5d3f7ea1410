"""Policies: the target, the score of questions, the batch and the choice of annotators."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from jaxtyping import Float, Int

from raters.acquisition import batches, scores
from raters.acquisition.batches import Batch, Chooser
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions.pool import check_askable
from raters.acquisition.scores import Criterion, PerQuestion, Quantity, competence_site, order_site
from raters.errors import refuse, refuse_data
from raters.errors.validation import instance, is_number, one_of, plain_whole, whole
from raters.judgements.names import check_once, match_names
from raters.models.comparisons.directions import directed, has_directions

Target = Literal[
    "ranking", "reward", "top_k", "truth", "competence", "coefficient", "predictive", "everything"
]

PerAnnotator = Float[np.ndarray, " annotator"]
Pairs = tuple[tuple[Any, float], ...]


# ---------------------------------------------------------------- annotators


@dataclass(frozen=True)
class AnnotatorRule(abc.ABC):
    """Preference among annotators, whatever the question; a frozen dataclass with `preference`.
    It is divided by costs. Competences count by their size: the answer of an adversary is as
    informative as that of a competent annotator."""

    @abc.abstractmethod
    def preference(self, posterior: Posterior) -> PerAnnotator:
        """Preference for each annotator; the one of the highest is asked."""


@dataclass(frozen=True)
class BestMean(AnnotatorRule):
    """Choice of the annotator of the highest posterior mean of competence. It never learns that
    another is better."""

    def preference(self, posterior: Posterior) -> PerAnnotator:
        """Posterior means of the competences."""
        return np.abs(posterior.weight @ _competence(posterior))


def _competence(posterior: Posterior) -> Float[np.ndarray, "draw annotator"]:
    """Competence under each draw: the mean diagonal of a confusion matrix; 0 of guessers."""
    if has_directions(posterior.program):
        return directed(posterior.model, posterior.data, posterior.draws)
    value = np.asarray(posterior.site(competence_site(posterior)))
    if value.ndim == 4:
        return np.asarray(np.trace(value, axis1=2, axis2=3) / value.shape[2])
    return np.asarray(value.reshape(*value.shape[:2], -1).mean(-1))


# ---------------------------------------------------------------- policies


class Chosen(NamedTuple):
    """Chosen rows of the candidates, in order."""

    rows: Int[np.ndarray, " chosen"]
    score: Float[np.ndarray, " chosen"]
    highest: float


@dataclass(frozen=True)
class Policy:
    """Choice of the next questions.

    Parameters
    ----------
    target : str, optional
        ``"ranking"`` (the order of the items; the default for comparisons and rankings),
        ``"reward"`` (their rewards or worths), ``"top_k"`` (which are the `k` best), ``"truth"``
        (the classes of the items; the default for labels), ``"competence"`` (of the annotators),
        ``"coefficient"`` (of the features, such as those of a reward that is demonstrated),
        ``"predictive"`` (the answers to the other questions), or ``"everything"`` (all parameters:
        BALD). Of a set to be ranked, scores are by the information of its first place.
    score : Criterion, optional
        In place of a target: a score such as ``Bald()`` or ``OrderEntropy()``.
    batch : Batch, optional
        By default each pair, or item to label, comes once in a batch (but for
        ``target="competence"``), and reductions of a variance are given the questions chosen
        before.
    annotator : AnnotatorRule, optional
        Such as ``BestMean()``; by default the annotator of the highest score.
    costs : mapping, optional
        Cost of an answer of each annotator, 1 for those it does not name. Scores are then divided
        by costs.
    quota : int or mapping, optional
        Bound of the answers that each annotator may be asked for, counting those that they gave.
    least_share : float
        Least share of all answers that every annotator gets, so that all can be audited; at most
        one divided by the number of annotators.
    k : int
        Number of best items, with ``target="top_k"``.

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
    annotator: AnnotatorRule | None = None
    costs: Any = None
    quota: Any = None
    least_share: float = 0.0
    k: int = 1

    def __post_init__(self) -> None:
        if self.target is not None:
            one_of("target", self.target, get_args(Target))
        for name, kind, such in (
            ("score", Criterion, "rt.acquisition.Entropy()"),
            ("batch", Batch, "rt.acquisition.Top()"),
            ("annotator", AnnotatorRule, "rt.acquisition.BestMean()"),
        ):
            if getattr(self, name) is not None:
                instance(name, getattr(self, name), kind, "an object that says how", such)
        if self.target is not None and self.score is not None:
            refuse("score", self.score, "and `target` both say what is wanted", "give one of them")
        whole("k", self.k)
        if self.k != 1 and self.target != "top_k":
            refuse("k", self.k, "has a meaning with `target` 'top_k' alone", "leave it out")
        object.__setattr__(self, "costs", _pairs("costs", self.costs, positive=True))
        if isinstance(self.quota, Integral) and not isinstance(self.quota, bool):
            plain_whole(self, "quota", least=0)
        else:
            object.__setattr__(self, "quota", _pairs("quota", self.quota, positive=False))
        if not is_number(self.least_share) or not 0 <= self.least_share <= 1:
            refuse("least_share", self.least_share, expected="it must lie between 0 and 1")
        object.__setattr__(self, "least_share", float(self.least_share))

    def criterion(self, posterior: Posterior) -> Criterion:
        """Criterion that scores the questions; by default the posterior decides the target."""
        if self.score is not None:
            return self.score
        data, target = posterior.data, self.target
        if target is None:
            has_order = order_site(posterior) in posterior.draws and (data.pair or not data.listed)
            target = "ranking" if has_order else "everything"
            target = "truth" if posterior.program.has_truth else target
        if target == "ranking":  # Without a list of answers a question is about the order of a set.
            return scores.OrderVariance() if data.listed else scores.VarianceReduction("rank")
        others = {"truth": scores.TruthVariance(), "predictive": scores.Epig()}
        if other := (others | {"everything": scores.Bald()}).get(target):
            return other
        return scores.VarianceReduction(cast(Quantity, target), k=self.k)

    def choose(
        self,
        posterior: Posterior,
        candidates: Any,
        number: int,
        *,
        seed: int,
        asked: Any = None,
        pending: Any = None,
    ) -> Chosen:
        """Choose so many questions, or fewer when no more are left, in the codes of
        ``posterior.data``, beside those that wait for an answer (`pending`), where each annotator
        was asked for so many answers so far."""
        check_askable(candidates, "candidates")
        if not candidates.num_rows:
            refuse_data("candidates", problem="is empty", expected="give a question")
        asked = posterior.data.judgements_by(posterior.data.judge) if asked is None else asked
        chooser, score, questions = self._chooser(posterior, candidates, pending, seed)
        first = len(score) - candidates.num_rows
        if not chooser.open[first:].any():
            # Every pair is among those that wait: a new batch of them begins.
            chooser.open[first:] = True
        chooser.open[:first] = False
        rows = self._take(number, chooser, posterior, questions, np.array(asked, float))
        return Chosen(rows - first, score[rows], float(score[first:].max()))

    def values(
        self, posterior: Posterior, candidates: Any, *, seed: int, pending: Any = None
    ) -> PerQuestion:
        """Score each question by itself, per cost, given that the pending ones are asked."""
        chooser, *_ = self._chooser(posterior, candidates, pending, seed)
        return chooser.values()[-candidates.num_rows :]

    def _chooser(
        self, posterior: Posterior, candidates: Any, pending: Any, seed: int
    ) -> tuple[Chooser, PerQuestion, Any]:
        """Chooser that has taken the pending questions, the scores, and all questions."""
        num_pending = 0 if pending is None else pending.num_rows
        if num_pending:
            candidates = pending.unanswered().joined(candidates.unanswered())
        criterion = self.criterion(posterior)
        score = criterion(posterior, candidates, seed=seed)
        if np.isnan(score).any():
            refuse("score", criterion, "is NaN for some questions", "all draws must be finite")
        price, value = None, score
        if self.costs is not None:
            if (score < 0).any():
                refuse("costs", problem="does not go with scores below 0", expected="leave it out")
            price = self.cost_of(posterior.data.judges)[candidates.codes(candidates.judge)]
            value = np.asarray(score / price)
        batch = self.batch or batches.Unique()
        given_draw = posterior.data.pair and posterior.program.latent is None
        if self.batch is None and given_draw and isinstance(criterion, scores.OfVariance):
            batch = batches.Sequential(once=self.target != "competence")
        rng = np.random.default_rng(seed)
        chooser = batch.chooser(batches.Task(criterion, value, posterior, candidates, rng, price))
        for row in range(num_pending):
            chooser.take(row)
        return chooser, score, candidates

    def _take(
        self, size: int, chooser: Chooser, posterior: Posterior, questions: Any, asked: PerAnnotator
    ) -> Int[np.ndarray, " question"]:
        """Take rows in order within quotas and least shares, with annotators by the rule."""
        names, about = posterior.data.judges, questions.about()
        judge = np.asarray(questions.codes(questions.judge))
        num_judges, quota = len(np.unique(judge)), self.quota_of(names)
        if self.least_share * num_judges > 1:
            expected = f"it must be at most {1 / num_judges:.3g}, as {num_judges} may be asked"
            refuse("least_share", self.least_share, expected=expected)
        preference = None
        if self.annotator is not None:
            preference = self.annotator.preference(posterior) / self.cost_of(names)
        rows: list[int] = []
        for _ in range(size):
            free = asked < quota
            if self.least_share:
                can = np.bincount(judge[chooser.open], minlength=len(asked)) > 0
                short = free & can & (asked < self.least_share * (asked.sum() + 1))
                if short.any():
                    free = short & (asked == asked[short].min())
            allowed = free[judge]
            row = chooser.best(allowed)
            if row < 0:
                break
            if preference is not None:
                same = np.flatnonzero(allowed & chooser.open & (about == about[row]))
                row = int(same[preference[judge[same]].argmax()])
            chooser.take(row)
            asked[judge[row]] += 1
            rows.append(row)
        return np.array(rows, int)

    def check_names(self, annotators: tuple[Any, ...]) -> None:
        """Raise when unknown annotators are named."""
        self.cost_of(annotators)
        self.quota_of(annotators)

    def cost_of(self, annotators: tuple[Any, ...]) -> PerAnnotator:
        """Cost of an answer of each annotator, in code order."""
        return _by_annotator("costs", self.costs or (), annotators, 1.0)

    def quota_of(self, annotators: tuple[Any, ...]) -> PerAnnotator:
        """Bound of the answers of each annotator, infinity for those without a quota."""
        if isinstance(self.quota, int):
            return np.full(len(annotators), float(self.quota))
        return _by_annotator("quota", self.quota or (), annotators, np.inf)


def _pairs(what: str, given: Any, positive: bool) -> Pairs | None:
    """Return a mapping from names to numbers as a tuple of pairs, which can be hashed."""
    if given is None:
        return None
    if not isinstance(given, (Mapping, tuple)):
        refuse(what, given, expected="map names to numbers", instead=f"{what}={{'ann': 2}}")
    pairs = []
    for name, value in given.items() if isinstance(given, Mapping) else given:
        if not is_number(value) or value < 0 or (positive and value == 0):
            expected = f"it must be a number {'above' if positive else 'of at least'} 0"
            refuse(what, value, f"is not possible for {name!r}", expected)
        # JSON cannot hold a name of NumPy.
        pairs.append((name.item() if isinstance(name, np.generic) else name, float(value)))
    check_once((name for name, _ in pairs), what)
    return tuple(pairs)


def _by_annotator(what: str, pairs: Pairs, names: tuple[Any, ...], default: float) -> PerAnnotator:
    """Numbers by name in code order."""
    numbers, values = dict(pairs), np.full(len(names), default, float)
    codes = match_names(np.arange(len(numbers)), tuple(numbers), names, "annotator", what)
    values[codes.astype(int)] = list(numbers.values())
    return values


def chooses_at_random(policy: Policy) -> bool:
    """True if questions are chosen at random, so that nothing need be fitted."""
    by_score = (batches.Top, batches.Unique, batches.Power, batches.SpanningTree, type(None))
    at_random = isinstance(policy.score, scores.Random) and policy.annotator is None
    return at_random and isinstance(policy.batch, by_score)
