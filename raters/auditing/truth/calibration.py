"""Statements about the truth that allow for mistakes that a crowd makes together."""

from __future__ import annotations

import abc
import warnings
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Bool, Float, Int, Num

from raters.auditing.intervals import table
from raters.auditing.truth.anchor_check import JudgeComparison, anytime, check_table, leads
from raters.auditing.truth.annotator_accuracy import Accuracies, draw_accuracies
from raters.auditing.truth.statements import Statements, by_annotator
from raters.auditing.words import worded
from raters.errors import PACKAGE, DataError, DataWarning, refuse
from raters.errors.validation import checked, share
from raters.fitting.result import check_several, program_of
from raters.judgements.base import Judgements
from raters.judgements.names import name_text, names_array, plural, shorten
from raters.kinds import AuditLimits, Quantities, kind_of
from raters.model import Model
from raters.program import Program

# From this share of contradictions on, names that are exchanged are likelier than mistakes.
_REVERSED = 0.8
# In place of names of those who are right.
CROWD = "crowd"
# Known truths from which on they tell whether the crowd is right: were it right on each of so many,
# it would be wrong on less than a fifth of all, with probability .9.
ENOUGH = 10
# Draws of the truth, so that all of them together stay below this many numbers.
_NUMBERS, _FEWEST, _MOST = 200_000_000, 200, 1000


@dataclass(frozen=True)
class Anchor:
    """Source of the truth that statements rest on.

    Attributes
    ----------
    known : int
        Number of known truths, of which `by_trusted` are what those `trusted` say, and no more.
    recorded, crowd, model : bool
        True if an earlier record is known; if the crowd is taken to be right; for a kind without a
        calibration, whose model may judge by agreement or truth.
    judges : str
        Word for those who judge.
    doubts : tuple of str
        Reasons to doubt that the known truths are true, or a random sample.
    takes_truths : bool
        True for a kind of judgement of which truths can be given.
    parts : tuple of (str, Anchor)
        Of several kinds of judgement, that of each part by its name.
    """

    known: int = 0
    trusted: tuple[Any, ...] = ()
    recorded: bool = False
    crowd: bool = False
    model: bool = False
    judges: str = "annotators"
    by_trusted: int = 0
    doubts: tuple[str, ...] = ()
    takes_truths: bool = True
    parts: tuple[tuple[str, Anchor], ...] = ()

    @property
    def is_missing(self) -> bool:
        """True if little but the agreement of the crowd tells who is right."""
        return self.known < ENOUGH and not (self.recorded or self.crowd or self.model)

    @property
    def sentence(self) -> str:
        """The source, in one sentence; of several kinds that differ, in one for each part."""
        if len({one.sentence for _, one in self.parts}) > 1:
            return " ".join(f"{name}: {one.sentence}" for name, one in self.parts)
        return worded("anchor", a=self, trusted=shorten(self.trusted), enough=ENOUGH)


class Given(NamedTuple):
    """A fit, and what is known beside it."""

    program: Program[Any]
    result: xr.DataTree
    gold: Any
    trusted: Int[np.ndarray, " trusted"]
    level: float
    rng: np.random.Generator


class Drawn(NamedTuple):
    """Draws of the truth, and statements beside it: numbers of truths that are known, and those of
    them only by trusted annotators; whether the crowd contradicts each of gold; another doubt."""

    truth: Num[np.ndarray, "draw item"]
    statements: Statements
    known: int
    by_trusted: int
    contradicted: Bool[np.ndarray, " known"]
    doubt: str
    #: Further attributes of the calibration.
    others: dict[str, Any]


@dataclass(frozen=True)
class Calibration(abc.ABC):
    """Statements about the truth, from `raters.calibrate`.

    Attributes
    ----------
    truth : xarray.DataArray
        Draws of the truth of each item: the code of its class, or its reward or worth.
    items : xarray.Dataset
        Statements about each item.
    annotators : xarray.Dataset
        For each annotator ``accuracy`` (the share of the answers given that are right) and
        ``ability`` (the probability that a further one is), each with ``_low`` and ``_high``.
    unknowns : xarray.Dataset
        Draws of the unknowns of the crowd.
    anchor : Anchor
    level : float
        Probability of the intervals.
    accuracies : Accuracies
        Draws of ``accuracy`` and ``ability``.
    known_answers : pandas.DataFrame
        Answers to questions of known truth: codes ``annotator`` and ``question``, the number of
        ``answers``, as how many independent ones they count (``number``), and the ``right`` ones.
    """

    truth: xr.DataArray
    items: xr.Dataset
    annotators: xr.Dataset
    unknowns: xr.Dataset
    anchor: Anchor
    level: float
    accuracies: Accuracies
    known_answers: pd.DataFrame

    #: Word for truths that are known, and column of a table of them that holds the truth.
    known_truths: ClassVar[str]
    answer: ClassVar[str]
    #: Calibrated probabilities of the latent class of each unit under each draw,
    #: ``class_probs(program, draws, share, chances)``; None where they are the model's own.
    class_probs: ClassVar[Callable[..., np.ndarray] | None] = None

    @property
    def wrong_interval(self) -> tuple[float, float] | None:
        """Interval of the number of items with a wrong label; None where items have none."""
        return None

    @property
    def anchor_check(self) -> xr.Dataset | None:
        """Statements beside what known truths alone say of them; None without known truths."""
        if not self.anchor.known:
            return None
        names = [f"accuracy of {name}" for name in self.annotators["annotator"].values.tolist()]
        columns = ("accuracy", "accuracy_low", "accuracy_high")
        return self._checked(names, np.stack([self.annotators[name].values for name in columns], 1))

    def _checked(self, names: list[str], stated: Float[np.ndarray, "name 3"]) -> xr.Dataset:
        """Accuracies of some names as stated, and further statements, beside known truths."""
        # Pairs of one ranking are no independent coins, but have the variance of as many as they
        # count as; confidence sequences of them hold too, by benchmarks/gold_sequential.py.
        right, number = by_annotator(self.known_answers, len(names))
        return check_table(names, right, number, self.level, stated)

    @property
    def known_questions(self) -> Int[np.ndarray, " question"]:
        """Codes of the questions whose truth is known, as of `Judgements.about`."""
        return np.asarray(np.unique(self.known_answers["question"]))

    def compare(self, one: Any, other: Any) -> JudgeComparison:
        """Compare two annotators; see `Audit.compare`."""
        names = self.annotators["annotator"].values
        codes = codes_of(one, other, names, "annotators", self.anchor.trusted)
        first, second = self.accuracies.ability.T[codes]
        ahead, behind = leads(self.known_answers, *codes)
        low, high = anytime(np.array([ahead]), np.array([ahead + behind]), self.level)[0].tolist()
        p_better, decided = float((first > second).mean()), low > 0.5 or high < 0.5
        return JudgeComparison(p_better, ahead + behind, low, high, decided)

    @abc.abstractmethod
    def quantities(self, limits: AuditLimits) -> Quantities:
        """Quantities of each annotator for an audit."""

    @classmethod
    @abc.abstractmethod
    def number(cls, data: Any, gold: Any) -> int:
        """Number of truths that are known by what a user gives as `gold`."""

    @classmethod
    @abc.abstractmethod
    def draw(cls, given: Given) -> Drawn:
        """Draw the truth; raise unless the model can be calibrated."""


@checked
def calibrate(
    model: Model[Any],
    result: xr.DataTree,
    gold: Any = None,
    *,
    reference: Sequence[Any] = (),
    level: float = 0.9,
    seed: int = 0,
) -> Calibration:
    r"""State what is true, allowing for mistakes that a crowd makes together.

    A posterior is exact under its model, and the crowd is not the model: labels of one item repeat
    each other's mistakes, and the agreement of a crowd with itself does not tell how often it is
    wrong. This layer after the fit puts a distribution, learned from public crowds whose truth is
    known, on what the crowd does not tell, and updates it by all that is known of this one.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    gold : mapping, pandas.Series, pandas.DataFrame or sequence of pairs, optional
        Known truths of questions that were drawn at random, beside those that were known to the
        fit. Of labels, true classes of items, as `raters.Labels.with_truth` takes them. Of
        comparisons, rankings and ratings, pairs (better, worse); or a table with columns winner and
        loser, or first, second and winner, or item and value; or the value of each of some items,
        the higher the better.
    reference : sequence, optional
        Annotators who are taken to be right: what most of them say of an item is its true class,
        and what most of them say of a pair is its true order.
    level : float
        Probability of the intervals.
    seed : int

    Returns
    -------
    Calibration
        Of labels with ``items`` (``label``, ``probability`` and ``probability_by_model``),
        ``class_probability``, ``expected_wrong`` and ``wrong_interval``. Of the others with
        ``items`` (true ``reward`` and ``rank``, with intervals, and ``reward_by_model``) and
        ``p_above(one, other)``.

    Raises
    ------
    SettingError
        When the kind of judgement has no calibration; when the model cannot have one; when
        `reference` names somebody else.
    DataError
        When `gold` has other items or classes than the data, or contradicts what was known.

    Notes
    -----
    The equations are those of `true_classes`, `true_orders` and `annotator_accuracy` in
    `raters.auditing.truth`. The pairs of a ranking, and those of all ratings by an annotator, count
    as fewer independent ones, as `raters.auditing.truth.statements` has it; the prior of the errors
    that a crowd shares is that of comparisons. What is known must be drawn at random: items that
    were chosen because they are in doubt make the crowd look worse than it is. Without known truths
    intervals are wide, for the number of wrong labels up to two or three times of what is expected
    and far below it, because little that can be seen of a crowd narrows them.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(200, 12, 5, 2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, seed=0, progress=False)
    >>> gold = dict(zip(labels.items[:40], truth["true_class"][:40]))
    >>> found = rt.calibrate(rt.DawidSkene(), result, gold)
    >>> low, high = found.wrong_interval
    >>> wrong = (found.items["label"].values != truth["true_class"]).sum()
    >>> bool(low <= wrong <= high)
    True
    """
    share("level", level)
    program = program_of(model, result)
    check_several(result, "a calibration states probabilities")
    return calibrated(program, result, gold, reference, level, seed)


def calibrated(
    program: Program[Any], result: Any, gold: Any, reference: Sequence[Any], level: float, seed: int
) -> Calibration:
    """Calibration of a fit; see `calibrate`."""
    kind, data = kind_of(program.data), program.data.unpadded()
    truths = kind.truths
    if truths is None:
        expected = (
            "calibrate a fit of labels, comparisons, rankings or ratings, and audit others"
            " without gold and reference"
        )
        problem = f"holds {kind.words.many}, which have no calibration"
        refuse("result", program.data, problem, expected)
    empty = isinstance(gold, Sized) and not len(gold)
    if gold is not None and (empty or not truths.number(program.data, gold)):
        expected = (
            "give truths of questions that were answered, and of an order values that"
            " differ, or leave it out"
        )
        refuse("gold", problem="holds no known truth", expected=expected, error=DataError)
    trusted, rng = trusted_codes(data, reference), np.random.default_rng(seed)
    drawn = truths.draw(Given(program, result, gold, trusted, level, rng))
    doubt = contradiction(drawn.contradicted, truths.known_truths) or drawn.doubt
    if doubt:
        warnings.warn(doubt, DataWarning, skip_file_prefixes=PACKAGE)
    doubts, recorded = (doubt,) * bool(doubt), drawn.statements.record is not None
    named = tuple(reference)
    accuracies = draw_accuracies(drawn.statements.marks(drawn.truth, data.num_annotators), seed)
    draws = {"accuracy": accuracies.own, "ability": accuracies.ability}
    return truths(
        truth=xr.DataArray(drawn.truth, {"item": names_array(data.items)}, ("draw", "item")),
        annotators=table("annotator", data.annotators, {}, draws, level),
        anchor=Anchor(drawn.known, named, recorded, by_trusted=drawn.by_trusted, doubts=doubts),
        level=level,
        accuracies=accuracies,
        known_answers=drawn.statements.known_answers(),
        **drawn.others,
    )


def check_crowd(reference: str, gold: Any) -> None:
    """Raise unless the crowd is taken to be right, and nothing contradicts that."""
    if reference != CROWD:
        expected = f"give a list of names, or {CROWD!r}"
        instead = f"reference=[{reference!r}]"
        refuse("reference", reference, "is one text", expected, instead=instead)
    if gold is not None:
        problem = "takes the crowd to be right, and gold tells where it is not"
        refuse("reference", reference, problem, "leave one of the two out")


def codes_of(
    one: Any, other: Any, names: Iterable[Any], those: str, unjudged: Sequence[Any] = ()
) -> list[int]:
    """Codes of two names that are not among those unjudged."""
    codes = {name_text(name): code for code, name in enumerate(names)}
    for name in unjudged:
        codes.pop(name_text(name))
    for parameter, name in (("one", one), ("other", other)):
        if name_text(name) not in codes:
            expected = f"name one that was judged ({shorten(codes)})"
            refuse(parameter, name, f"is none of the {those}", expected, error=DataError)
    if name_text(one) == name_text(other):
        refuse("other", other, "is `one` as well", f"name two {those}", error=DataError)
    return [codes[name_text(name)] for name in (one, other)]


def number_of_draws(num_items: int, num_classes: int) -> int:
    """Number of draws of the truth that stay in memory."""
    return int(np.clip(_NUMBERS // max(num_items * num_classes, 1), _FEWEST, _MOST))


def trusted_codes(data: Judgements, reference: Sequence[Any]) -> Int[np.ndarray, " trusted"]:
    """Codes of the annotators who are taken to be right."""
    trusted = np.array(judge_codes(data, reference, "reference"), int)
    others = np.delete(data.judgements_by(data.judge), trusted)
    if len(trusted) and not others.any():
        problem = f"names all {plural(data.judge)}, so that nobody is left to be measured"
        refuse("reference", shorten(reference), problem, "name those who are known to be right")
    return trusted


def judge_codes(data: Judgements, names: Sequence[Any], parameter: str) -> list[int]:
    """Codes of some judges, given by name."""
    codes = {name_text(name): place for place, name in enumerate(data.judges)}
    if unknown := [name for name in names if name_text(name) not in codes]:
        problem = f"is not among the {plural(data.judge)} ({shorten(data.judges)})"
        expected = f"name {plural(data.judge)} of the data that were fitted"
        refuse(parameter, shorten(unknown), problem, expected)
    return [codes[name_text(name)] for name in names]


def contradiction(is_wrong: Bool[np.ndarray, " known"], what: str) -> str:
    """Doubt in known truths most of which are not what the crowd's answers point to."""
    wrong, known = int(is_wrong.sum()), len(is_wrong)
    if wrong < 2 or 2 * wrong <= known:
        return ""
    turned, enough = wrong > _REVERSED * known, known >= ENOUGH
    numbers = {"wrong": wrong, "known": known, "what": what, "reversed": turned, "enough": enough}
    return worded("contradiction", **numbers)
