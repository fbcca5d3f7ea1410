"""Statistics of agreement as one minus a ratio of disagreements, with intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.sparse import csr_array, diags_array
from scipy.special import stdtrit

from raters.judgements.base import Judgements

PerQuestion = Float[np.ndarray, " question"]
PerClass = Float[np.ndarray, " class"]

# Sums in double precision are 0 or 1 within this.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Answers:
    """Share of each class among an annotator's answers to a question, a cell for each of these."""

    question: Int[np.ndarray, " cell"]
    shares: csr_array
    exchangeable: bool = False

    @classmethod
    def of(cls, data: Judgements) -> Answers:
        """Aggregate the answers of each annotator to each question into shares."""
        annotator, question, label, count = data.tallies(ordered=True)
        asked = np.asarray(question, np.int64) * len(data.judges) + annotator
        asked, label, count = (column[count > 0] for column in (asked, label, count))
        asked, cell = np.unique(asked, return_inverse=True)
        shares = csr_array((count, (cell, label)), (len(asked), len(data.answers())), dtype=float)
        shares.data /= np.repeat(shares.sum(1), np.diff(shares.indptr))
        return cls(asked // len(data.judges), shares, data.exchangeable)

    @property
    def num_raters(self) -> PerQuestion:
        """Number of annotators who answered each question."""
        return np.bincount(self.question).astype(float)

    def of_questions(self, used: Bool[np.ndarray, " question"]) -> Answers:
        """Select some questions, and renumber these."""
        keep = used[self.question]
        question = (np.cumsum(used) - 1)[self.question[keep]]
        return Answers(question, self.shares[keep], self.exchangeable)

    def against_the_rest(self, label: int) -> Answers:
        """Put all classes but one together."""
        share = self.shares[:, [label]].toarray()
        return Answers(self.question, csr_array(np.hstack([1 - share, share])))


@dataclass(frozen=True)
class Ratio:
    """Ratio D / E of the disagreement to that by chance, both functions of means over questions."""

    disagreement: float
    chance: float
    influence: PerQuestion
    largest: float

    @classmethod
    def of(
        cls,
        disagree: PerQuestion,
        weight: PerQuestion,
        chance: float,
        chance_influence: PerQuestion | float = 0.0,
        further: PerQuestion | float = 0.0,
        largest: float | None = None,
    ) -> Ratio:
        """Compute D and the influences from each question's disagreement and weight."""
        mean = float(np.mean(weight * disagree))
        # E is 0, but for rounding, when there is one class.
        chance = chance if chance > _ROUNDING else np.nan
        own = weight * (disagree - mean) + further
        influence = (own - mean / chance * chance_influence) / chance
        return cls(mean, chance, influence, 1 / chance if largest is None else largest)

    @property
    def value(self) -> float:
        """Value of the ratio."""
        return self.disagreement / self.chance

    def interval(self, level: float) -> tuple[float, float]:
        """Return an interval for 1 − D / E; NaN for one question."""
        num_questions = len(self.influence)
        if num_questions == 1 or np.isnan(self.chance):
            return np.nan, np.nan
        unseen = 1 - ((1 - level) / 2) ** (1 / num_questions)
        if self.disagreement < _ROUNDING:
            return 1 - min(unseen / self.chance, self.largest), 1.0
        error = np.sqrt(np.sum(self.influence**2) / (num_questions * (num_questions - 1)))
        spread = np.exp(stdtrit(num_questions - 1, (1 + level) / 2) * error / self.value)
        least = self.value / spread
        if self.value > self.largest - _ROUNDING:
            least = min(least, (1 - unseen) * self.largest)
        return 1 - min(self.value * spread, self.largest), 1 - least


# ---------------------------------------------------------------- classes as names


def _squares(answers: Answers, weight: PerQuestion) -> tuple[float, PerQuestion]:
    """Sum of the squares of the classes' shares, and half of its derivative in each weight."""
    question = answers.question
    of_question = diags_array(1 / answers.num_raters[question]) @ answers.shares
    shares = (weight[question] @ of_question) / len(weight)
    squares = float(np.sum(shares**2))
    return squares, weight * (np.bincount(question, of_question @ shares) - squares)


def _disagreements(answers: Answers) -> PerQuestion:
    """Probability that two different annotators of each question disagree."""
    num_raters, question = answers.num_raters, answers.question
    cells = question, np.arange(len(question))
    together = csr_array((np.ones(len(question)), cells)) @ answers.shares
    self_pairs = np.bincount(question, answers.shares.power(2).sum(1))
    return 1 - (together.power(2).sum(1) - self_pairs) / (num_raters * (num_raters - 1))


def nominal(answers: Answers) -> dict[str, Ratio]:
    """Compute the statistics that take classes as names."""
    num_raters, disagree = answers.num_raters, _disagreements(answers)
    equal, by_answers = np.ones(len(num_raters)), num_raters / num_raters.mean()
    ratios = {"observed_agreement": Ratio.of(disagree, equal, 1.0)}
    if answers.exchangeable:
        # Sides that have no meaning are equally likely by chance.
        of_all, half = Ratio.of(disagree, by_answers, 0.5), Ratio.of(disagree, equal, 0.5)
        return ratios | {"krippendorff_alpha": of_all, "fleiss_kappa": half, "gwet_ac1": half}
    squares, change = _squares(answers, equal)
    pooled, change_of_pooled = _squares(answers, by_answers)
    num_answers = num_raters.sum()
    finite = num_answers / (num_answers - 1)
    with_self = float(answers.shares.power(2).sum()) / num_answers**2
    others = answers.shares.shape[1] - 1 or np.nan
    return ratios | {
        "krippendorff_alpha": Ratio.of(
            disagree, by_answers, 1 - finite * (pooled - with_self), -2 * finite * change_of_pooled
        ),
        "fleiss_kappa": Ratio.of(disagree, equal, 1 - squares, -2 * change),
        "gwet_ac1": Ratio.of(disagree, equal, 1 - (1 - squares) / others, 2 * change / others),
    }


def of_class(answers: Answers) -> tuple[dict[str, Ratio], float]:
    """Compute the statistics of one class against the rest."""
    num_raters = answers.num_raters
    by_answers = num_raters / num_raters.mean()
    of_question = np.bincount(answers.question, answers.shares @ [0.0, 1.0]) / num_raters
    share = float(np.mean(by_answers * of_question))
    ratios = nominal(answers)
    specific = Ratio.of(
        _disagreements(answers),
        by_answers,
        2 * share,
        2 * by_answers * (of_question - share),
        largest=1.0,
    )
    observed = ratios.pop("observed_agreement")
    return {"observed_agreement": observed, "specific_agreement": specific} | ratios, share


# ---------------------------------------------------------------- classes with distances


def scored(answers: Answers, score: PerClass) -> Ratio:
    """Compute Krippendorff's α for classes at the given distances (interval)."""
    used = score[np.unique(answers.shares.indices)]
    width = float(np.ptp(used)) or 1.0
    return _alpha(answers, (score - used.min()) / width, ranks=False)


def ordinal(answers: Answers) -> Ratio:
    """Compute Krippendorff's α for classes of which the order alone is known."""
    share = answers.shares.sum(0) / answers.shares.sum()
    return _alpha(answers, np.cumsum(share) - share / 2, ranks=True)


def _alpha(answers: Answers, score: PerClass, *, ranks: bool) -> Ratio:
    """α with the squared difference of scores; those of ranks depend on the answers."""
    num_raters, question, shares = answers.num_raters, answers.question, answers.shares
    num_answers, by_answers = num_raters.sum(), num_raters / num_raters.mean()
    of_cell = shares @ score
    total, squares, own = (
        np.bincount(question, each) for each in (of_cell, shares @ score**2, of_cell**2)
    )
    pairs = num_raters * (num_raters - 1)
    disagree = 2 * ((num_raters - 1) * squares - total**2 + own) / pairs
    finite = num_answers / (num_answers - 1)
    mean, mean_square = total.sum() / num_answers, squares.sum() / num_answers
    between = (num_answers - 1) * squares.sum() - total.sum() ** 2 + own.sum()
    chance = float(2 * between / (num_answers * (num_answers - 1)))
    spread = squares / num_raters - mean_square - 2 * mean * (total / num_raters - mean)
    chance_influence = 2 * finite * by_answers * spread
    if not ranks:
        return Ratio.of(disagree, by_answers, chance, chance_influence)
    share = shares.sum(0) / num_answers
    # Mean score of the other annotators, summed over the answers of each class.
    others = (total[question] - of_cell) / (num_raters[question] - 1)
    partner = (others @ shares) / num_answers
    through = [4 * (share * score - partner), 4 * finite * share * (score - mean)]
    further, more = (_through_ranks(answers, one, by_answers) for one in through)
    return Ratio.of(disagree, by_answers, chance, chance_influence + more, further)


def _through_ranks(answers: Answers, derivative: PerClass, weight: PerQuestion) -> PerQuestion:
    """Derivative in the weights of the questions, of a function of the mean rank of each class."""
    # A class adds half of its share to its own mean rank, and all of it to those above.
    above = derivative.sum() - np.cumsum(derivative) + derivative / 2
    own = np.bincount(answers.question, answers.shares @ above) / answers.num_raters
    return np.asarray(weight * (own - np.mean(weight * own)))
