"""Policies: the target, the score of questions, the batch and the choice of annotators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from raters.acquisition.policy.annotator_rules import AnnotatorRule, Joint, by_annotator, plain
from raters.acquisition.policy.batches import Batch, Sequential, Unique
from raters.acquisition.policy.choosers import Chooser
from raters.acquisition.questions.arguments import check_askable
from raters.acquisition.scoring.criteria import Bald, Criterion, Epig, order_site
from raters.acquisition.scoring.order_criteria import OrderVariance
from raters.acquisition.scoring.posterior import Posterior
from raters.acquisition.scoring.variance_criteria import (
    OfVariance,
    Quantity,
    TruthVariance,
    VarianceReduction,
)
from raters.errors import DataError, SettingError
from raters.errors.validation import checked, instance, numbers, one_of, whole
from raters.judgements.names import check_once, match_names

Target = Literal[
    "ranking", "reward", "top_k", "truth", "competence", "coefficient", "predictive", "everything"
]
_TARGETS = get_args(Target)


class Chosen(NamedTuple):
    """Chosen rows of the candidates, in order."""

    rows: Int[np.ndarray, " chosen"]
    score: Float[np.ndarray, " chosen"]
    highest: float


@dataclass(frozen=True)
class Policy:
    """Choice of the next questions.

    What serves one purpose harms another: asking for the *ranking* goes to the annotators who are
    best already and leaves the others unknown; asking for the *competence* spends votes on
    everybody. State what the answers are for.

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
        In place of a target: a criterion such as ``Bald()`` or ``OrderEntropy()``.
    batch : Batch, optional
        By default each pair, or item to label, comes once in a batch, and scores that are
        reductions of a variance are conditional on the questions chosen before: ``Sequential()``
        for those, otherwise ``Unique()``. With ``target="competence"`` a pair may be put to several
        annotators: ``Sequential(once=False)``.
    annotator : AnnotatorRule, optional
        ``Joint()`` by default: the annotator of the highest score.
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

    Raises
    ------
    SettingError
        When a value is not possible, or two of them contradict each other.

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
            one_of("target", self.target, _TARGETS)
        for name, kind, such in (
            ("score", Criterion, "rt.acquisition.Bald()"),
            ("batch", Batch, "rt.acquisition.Unique()"),
            ("annotator", AnnotatorRule, "rt.acquisition.BestMean()"),
        ):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise SettingError(
                    parameter=name,
                    value=value,
                    expected="it must be an object that says how, or left out",
                    instead=f"{name}={such}",
                )
        if self.target is not None and self.score is not None:
            raise SettingError(
                parameter="score",
                value=self.score,
                problem=f"and `target` {self.target!r} both say what is wanted",
                expected="give one of them",
            )
        whole("k", self.k)
        if self.k != 1 and self.target != "top_k":
            raise SettingError(
                parameter="k",
                value=self.k,
                problem="has a meaning with `target` 'top_k' alone",
                expected="leave it out",
            )
        object.__setattr__(self, "costs", _pairs("costs", self.costs, positive=True))
        if isinstance(self.quota, (int, np.integer)) and not isinstance(self.quota, bool):
            whole("quota", int(self.quota), least=0)
            object.__setattr__(self, "quota", int(self.quota))
        else:
            object.__setattr__(self, "quota", _pairs("quota", self.quota, positive=False))
        share = self.least_share
        if (
            isinstance(share, bool)
            or not isinstance(share, (int, float, np.number))
            or not 0 <= share <= 1
        ):
            raise SettingError(
                parameter="least_share",
                value=share,
                expected="it must lie between 0 and 1, such as 0.02",
            )
        object.__setattr__(self, "least_share", float(share))

    def criterion(self, posterior: Posterior) -> Criterion:
        """Criterion that scores the questions.

        Parameters
        ----------
        posterior : Posterior
            Decides the target where none is given.

        Returns
        -------
        Criterion
        """
        if self.score is not None:
            return self.score
        match self._target(posterior):
            case "truth":
                return TruthVariance()
            case "predictive":
                return Epig()
            case "everything":
                return Bald()
            case "ranking" if posterior.data.listed:
                return OrderVariance()
            case "ranking":  # A question is about the order of a set.
                return VarianceReduction("rank")
            case target:
                return VarianceReduction(cast(Quantity, target), k=self.k)

    def _target(self, posterior: Posterior) -> str:
        if self.target is not None:
            return self.target
        if posterior.has_truth:
            return "truth"
        of_order = posterior.data.pair or not posterior.data.listed
        has_order = order_site(posterior) in posterior.draws
        return "ranking" if has_order and of_order else "everything"

    @checked
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
        """Choose questions.

        Parameters
        ----------
        posterior : Posterior
        candidates : Judgements
            Questions in the codes of ``posterior.data``.
        number : int
            Number of questions to choose; fewer are chosen when no more are left.
        seed : int
        asked : int array, shape (annotator,), optional
            Number of answers that each annotator was asked for so far; by default those of
            ``posterior.data``.
        pending : Judgements, optional
            Questions that wait for an answer. The batch takes account of them as of its own.

        Returns
        -------
        Chosen

        Raises
        ------
        DataError
            When there are no candidates.
        SettingError
            When the policy has no meaning for the model or the questions.
        """
        kind, such = posterior.model.data_type, "rt.Candidates.of(data)"
        for name, questions in (("candidates", candidates), ("pending", pending)):
            if name == "candidates" or questions is not None:
                instance(name, questions, kind, "questions in the codes of the draws", such)
                check_askable(questions, name)
        whole("number", number, least=0)
        if not candidates.num_rows:
            raise DataError(
                parameter="candidates", problem="holds no question", expected="give at least one"
            )
        rng = np.random.default_rng(seed)
        data = posterior.data
        asked = data.judgements_by(data.judge) if asked is None else numbers("asked", asked)
        if np.shape(asked) != (len(data.judges),):
            raise SettingError(
                parameter="asked",
                problem=f"has shape {np.shape(asked)}, and there are {len(data.judges)} judges",
                expected="give a number for each",
            )
        asked = np.array(asked, float)
        num_pending = 0 if pending is None else pending.num_rows
        candidates = _joined(pending, candidates)
        chooser, score = self._chooser(posterior, candidates, rng, seed)
        for row in range(num_pending):
            chooser.take(row)
        if not chooser.open[num_pending:].any():
            # Every pair is among those that wait: a new batch of them begins.
            chooser.open[num_pending:] = True
        chooser.open[:num_pending] = False
        judge = np.asarray(candidates.codes(candidates.judge))
        rows = self._take(number, chooser, posterior, judge, candidates.about(), asked, rng)
        return Chosen(rows - num_pending, score[rows], float(score[num_pending:].max()))

    def values(
        self, posterior: Posterior, candidates: Any, *, seed: int, pending: Any = None
    ) -> Float[np.ndarray, " question"]:
        """Score each question by itself, per cost, given that the pending ones are asked.

        Parameters
        ----------
        posterior, candidates, seed, pending
            As for `choose`.

        Returns
        -------
        array, shape (question,)

        Raises
        ------
        SettingError
            When the policy has no meaning for the model or the questions.
        """
        num_pending = 0 if pending is None else pending.num_rows
        questions = _joined(pending, candidates)
        chooser, _ = self._chooser(posterior, questions, np.random.default_rng(seed), seed)
        for row in range(num_pending):
            chooser.take(row)
        return chooser.values()[num_pending:]

    def _chooser(
        self, posterior: Posterior, candidates: Any, rng: np.random.Generator, seed: int
    ) -> tuple[Chooser, Float[np.ndarray, " question"]]:
        """Chooser among the questions, and their scores by the criterion."""
        judge = np.asarray(candidates.codes(candidates.judge))
        criterion = self.criterion(posterior)
        score = criterion(posterior, candidates, seed=seed)
        if np.isnan(score).any():
            raise SettingError(
                parameter="score",
                value=criterion,
                problem=f"gives {np.isnan(score).sum()} of {len(score)} questions no number",
                expected="all draws must be finite",
            )
        price = None if self.costs is None else self.cost_of(posterior.data.judges)[judge]
        value = score if price is None else self._per_cost(score, price)
        batch = self.batch or self._batch(criterion, posterior)
        chooser = batch.chooser(criterion, value, posterior, candidates, rng)
        chooser.price = price
        return chooser, score

    def _take(
        self,
        size: int,
        chooser: Chooser,
        posterior: Posterior,
        judge: Int[np.ndarray, " question"],
        about: Int[np.ndarray, " question"],
        asked: Float[np.ndarray, " annotator"],
        rng: np.random.Generator,
    ) -> Int[np.ndarray, " chosen"]:
        """Take one row after another, with the annotator by the annotator rule, shape (chosen,)."""
        rule = self.annotator or Joint()
        names = posterior.data.judges
        cost, quota = self.cost_of(names), self.quota_of(names)
        rows: list[int] = []
        for _ in range(size):
            allowed = self._allowed(judge, chooser.open, asked, quota)
            row = chooser.best(allowed)
            if row < 0:
                break
            preference = rule.preference(posterior, rng)
            if preference is not None:
                same = np.flatnonzero(allowed & chooser.open & (about == about[row]))
                row = int(same[(preference / cost)[judge[same]].argmax()])
            chooser.take(row)
            asked[judge[row]] += 1
            rows.append(row)
        return np.array(rows, int)

    def _batch(self, criterion: Criterion, posterior: Posterior) -> Batch:
        """Batch rule where none is given."""
        if (
            isinstance(criterion, OfVariance)
            and posterior.program.latent is None
            and posterior.data.pair
        ):
            return Sequential(once=self.target != "competence")
        return Unique()

    @checked
    def cost_of(self, annotators: tuple[Any, ...]) -> Float[np.ndarray, " annotator"]:
        """Cost of an answer of each annotator.

        Parameters
        ----------
        annotators : tuple
            Names of all annotators, in code order.

        Returns
        -------
        float array, shape (annotator,)
            1 for those without a cost.

        Raises
        ------
        DataError
            When a cost is that of an unknown annotator.
        """
        return by_annotator("costs", self.costs or (), annotators, 1.0)

    def _per_cost(
        self, score: Float[np.ndarray, " question"], cost: Float[np.ndarray, " question"]
    ) -> Float[np.ndarray, " question"]:
        if (score < 0).any():
            raise SettingError(
                parameter="costs",
                problem=f"needs scores of at least 0, and {self.score!r} gives negative ones",
                expected="leave it out",
            )
        return np.asarray(score / cost)

    @checked
    def quota_of(self, names: tuple[Any, ...]) -> Num[np.ndarray, " annotator"]:
        """Bound of the answers that each annotator may be asked for.

        Parameters
        ----------
        names : tuple
            Names of all annotators, in code order.

        Returns
        -------
        array, shape (annotator,)
            Infinity for those without a quota.

        Raises
        ------
        DataError
            When a quota is that of an unknown annotator.
        """
        if self.quota is None:
            return np.full(len(names), np.inf)
        if isinstance(self.quota, int):
            return np.full(len(names), self.quota)
        return by_annotator("quota", self.quota, names, np.inf)

    def _allowed(
        self,
        judge: Int[np.ndarray, " question"],
        is_open: Bool[np.ndarray, " question"],
        asked: Float[np.ndarray, " annotator"],
        quota: Num[np.ndarray, " annotator"],
    ) -> Bool[np.ndarray, " question"]:
        """True for the rows whose annotator may be asked: below the quota, and, while somebody is
        short of the least share, only those."""
        free = asked < quota
        if self.least_share:
            num_judges = int((np.bincount(judge, minlength=len(asked)) > 0).sum())
            if self.least_share * num_judges > 1:
                raise SettingError(
                    parameter="least_share",
                    value=self.least_share,
                    problem=f"is not possible with {num_judges} annotators to ask",
                    expected=f"it must be at most {1 / num_judges:.3g}",
                )
            can = np.bincount(judge[is_open], minlength=len(asked)) > 0
            short = free & can & (asked < self.least_share * (asked.sum() + 1))
            if short.any():
                free = short & (asked == asked[short].min())
        return np.asarray(free[judge])


def _joined(pending: Any, candidates: Any) -> Any:
    """The questions that wait for an answer, if there are any, and then the candidates."""
    if pending is None or not pending.num_rows:
        return candidates
    return pending.unanswered().joined(candidates.unanswered())


def _pairs(what: str, given: Any, positive: bool) -> tuple[tuple[Any, float], ...] | None:
    """Return a mapping from names to numbers as a tuple of pairs, which can be hashed."""
    if given is None:
        return None
    if not isinstance(given, (Mapping, tuple)):
        also = ", or be one whole number for all" if what == "quota" else ""
        raise SettingError(
            parameter=what,
            value=given,
            expected=f"it must map names to numbers{also}",
            instead=f"{what}={{'ann': 2}}",
        )
    entries = given.items() if isinstance(given, Mapping) else given
    pairs = tuple((plain(name), value) for name, value in entries)
    check_once((name for name, _ in pairs), what)
    for name, value in pairs:
        real = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
            value, bool
        )
        if not real or not np.isfinite(value) or value < 0 or (positive and value == 0):
            raise SettingError(
                parameter=what,
                value=value,
                problem=f"is not possible for {name!r}",
                expected=f"it must be a number {'above' if positive else 'of at least'} 0",
            )
    return tuple((name, float(value)) for name, value in pairs)


def check_names(policy: Policy, annotators: tuple[Any, ...]) -> None:
    """Raise when a policy names unknown annotators."""
    for what in ("costs", "quota"):
        given = getattr(policy, what)
        if given and not isinstance(given, int):
            names = tuple(name for name, _ in given)
            match_names(np.arange(len(names)), names, annotators, "annotator", what)
