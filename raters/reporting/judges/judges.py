"""Board of judges: how right, how consistent and how biased each is, beside people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float

from raters.auditing.intervals import mean_and_interval
from raters.auditing.truth.anchor_check import jeffreys
from raters.auditing.truth.calibration import calibrate, judge_codes
from raters.checking.dependence import Dependence, NothingShared, dependence
from raters.errors import refuse
from raters.errors.validation import checked, finite, share
from raters.fitting.result import data_of, model_of
from raters.judgements import row_columns
from raters.judgements.base import Judgements
from raters.judgements.comparisons import Comparisons
from raters.judgements.labels import Labels
from raters.judgements.names import plural, shorten
from raters.kinds import AuditContext, finding
from raters.program import Program
from raters.reporting.board import Board
from raters.reporting.judges.cheapest_panel import Panel, cheapest_panel
from raters.reporting.judges.drift import drifts
from raters.reporting.judges.verdicts import Verdicts, times, verdicts_of

# Draws of the truth, and the fewest questions that a bias is measured on.
_DRAWS, _FEWEST = 400, 10
# P value of drift below which it is noted.
_DRIFT = 0.05


@dataclass(frozen=True, repr=False)
class Judges(Board):
    """Board of judges, from `raters.judges`.

    Attributes
    ----------
    table : pandas.DataFrame
        One row for each judge, the most accurate first; see `raters.judges`.
    notes, facts
        As of a `Leaderboard`.
    people : pandas.DataFrame
        The same columns of the people, where there are some.
    shared : Dependence or None
        Shared mistakes of the judges; None where they do not show.
    panel : Panel or None
        The cheapest panel; None where judges have too few questions in common.
    """

    people: pd.DataFrame
    shared: Dependence | None
    panel: Panel | None

    @property
    def truth(self) -> str:
        """What accuracies stand on, in one sentence."""
        return str(self.facts["answer"]["stands_on"])

    def shown(self) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
        rows = self.to_frame()
        if "most_alike" in rows:
            rows["most_alike"] = rows["most_alike"].fillna("–")
        return rows, [one | {"digits": 2} for one in self._columns(rows)]


@checked
def judges(
    result: xr.DataTree,
    *,
    people: Sequence[Any] = (),
    gold: Any = None,
    question: str = "",
    swapped: str = "",
    lengths: tuple[str, str] | None = None,
    time: str = "",
    cost: Mapping[Any, float] | None = None,
    target: float = 0.9,
    level: float = 0.9,
    seed: int = 0,
) -> Judges:
    r"""Compare judges, such as language models, with the truth, with people and with one another.

    Parameters
    ----------
    result : xarray.DataTree
        A fit of labels, where each question has a right answer of its own, or of comparisons, whose
        items are ranked by all answers; of a model with parameters of each annotator.
    people : sequence
        Names of the annotators who are people; all others are judges. Without `gold` they are taken
        to be right, as by ``rt.audit(reference=people)``.
    gold : mapping, pandas.Series or pandas.DataFrame, optional
        Known truths, as `raters.audit` takes them.
    question : str, optional
        Of comparisons of systems: the column that says on which question they were compared.
    swapped : str, optional
        Of labels that say which of two answers is the better: the column that is 1 where the answer
        of the second class was shown first, and else 0. Comparisons know what was shown first.
    lengths : pair of str, optional
        The columns with the lengths of the two answers: of the first and the second item of
        comparisons, or of the answers that the two classes of labels stand for, in their order.
    time : str, optional
        The column of the time of a verdict: numbers, or dates of ISO 8601.
    cost : mapping, optional
        Price of one verdict by each judge; 1 each by default.
    target : float
        Accuracy asked of the cheapest panel.
    level : float
        Probability of the intervals.
    seed : int

    Returns
    -------
    Judges
        Its ``table`` has for each judge, each quantity with ``_low`` and ``_high`` but for single
        probabilities:

        - ``verdicts``, and ``accuracy``: the probability that a further one is right;
        - ``consistency``: the probability of the same verdict on a question shown in both orders
          (of comparisons where `question` is given);
        - ``position_bias`` and ``length_bias``: how much more often what was shown first, and the
          longer answer, is chosen than it is right;
        - ``agreement`` with people on the same questions; ``people_agreement``, that of two people
          on those of them that two people answered; ``p_below_people``, the probability that on
          these the judge agrees less with people than people with one another;
        - ``cost_per_right``: cost over accuracy, where costs are given;
        - ``most_alike``: the judge with whose mistakes the judge's are most correlated, and the
          ``correlation``;
        - ``drift_p``: p value of a change along time, adjusted for the number of judges; at most
          that share of the changes found is false; ``drift_time``, when it is likeliest, with
          ``accuracy_before`` and ``accuracy_after``.

    Raises
    ------
    SettingError
        When `people` are not annotators of the fit, or all of them; for a model without parameters
        of each annotator.
    DataError
        When a column is missing.

    Notes
    -----
    A share s of n questions has the interval of :math:`\mathrm{Beta}(½ + ns, ½ + n(1 - s))`. A bias
    is the share of questions on which a side is chosen and wrong, less that on which it is right
    and not chosen: a draw of a Dirichlet distribution, with ½ added to each, for each draw of the
    truth.
    The equations of drift are in `raters.reporting.judges.drift`, those of shared mistakes in
    `raters.checking.dependence`.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(200, 6, 6, 2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, rt.PGEM(), seed=0, progress=False)
    >>> board = rt.judges(result, gold=dict(zip(labels.items[:60], truth["true_class"][:60])))
    >>> bool(board.table["accuracy"].between(0, 1).all())
    True
    """
    share("level", level)
    share("target", target)
    data, model = data_of(result), model_of(result)
    if not isinstance(data, Labels | Comparisons):
        expected = "fit labels of questions, or comparisons"
        refuse("result", data, "holds no verdicts that can be compared", expected)
    if lengths is not None and len(lengths) != 2:
        refuse("lengths", lengths, "are not two columns", "name the columns of both answers")
    # Each part has random numbers of its own, so that no option changes another's result.
    rngs = [np.random.default_rng((seed, part)) for part in range(4)]
    people = tuple(dict.fromkeys(people))
    trusted, others, price = people_and_prices(data, people, cost or {})
    reference = () if gold is not None else people
    found = calibrate(model, result, gold, reference=reference, level=level, seed=seed)
    verdicts = verdicts_of(data, found, question, swapped, lengths or (), time)
    # The probability that a further verdict is right.
    ability = {end: found.annotators[f"ability{end}"].values for end in ("", "_low", "_high")}
    columns = {f"accuracy{end}": values for end, values in ability.items()}
    number = data.judgements_by(data.judge).astype(int)
    table = pd.DataFrame({"verdicts": number} | columns)
    if cost:
        table["cost_per_right"] = price / table["accuracy"].clip(lower=1e-9)
    parts = [_biases(verdicts, level, rngs[0])]
    if question or isinstance(data, Labels):  # Of systems a pair is no question.
        parts.append(_consistency(verdicts, level))
    if trusted:
        parts.append(_agreement(verdicts, trusted, level, rngs[1]))
    if time:
        changed = drifts(verdicts, others, rngs[2])
        if row_columns.levels(data, time):
            name_of = dict(zip(times(data, time), row_columns.written(data, time), strict=True))
            changed["drift_time"] = changed["drift_time"].map(name_of)
        parts.append(changed)
    for part in parts:
        table = table.join(part)
    shared = None
    if len(others) > 1:
        known = gold if isinstance(data, Labels) else None
        among = [data.judges[code] for code in others]
        with suppress(NothingShared):
            shared = dependence(model, result, known, among=among, level=level, seed=seed)
            table = table.join(_most_alike(shared, data))
    table.index = pd.Index([str(name) for name in data.judges], name="judge")
    panel = cheapest_panel(verdicts, others, price, target, level, rngs[3])
    board = table.iloc[others].sort_values("accuracy", ascending=False)
    board = board.dropna(axis=1, how="all")
    of_people = table.iloc[trusted].dropna(axis=1, how="all")
    context = AuditContext(Program(model, data), result, None, level)
    answer = {"doubts": found.anchor.doubts, "stands_on": found.anchor.sentence}
    words = {"judge": "judge", "judges": "judges"}
    facts = Judges.facts_of(context, words, answer, by="", entries="judge")
    notes = _notes(board, of_people, shared, panel, target)
    return Judges(board, notes, facts, of_people, shared, panel)


def people_and_prices(
    data: Any, people: Sequence[Any], cost: Mapping[Any, float]
) -> tuple[list[int], list[int], Float[np.ndarray, " judge"]]:
    """Codes of the people and of the judges, and the price of a verdict of each."""
    trusted = judge_codes(data, people, "people")
    others = [code for code in range(len(data.judges)) if code not in trusted]
    if not others:
        expected = f"leave out at least one of the {plural(data.judge)}"
        refuse("people", shorten(people), "are all who answered", expected)
    price = np.ones(len(data.judges))
    for name, one in cost.items():
        finite(f"cost of {name}", one, 0.02)
        price[judge_codes(data, [name], "cost")] = one
    if (price < 0).any():
        refuse("cost", float(price.min()), "is below 0", "give prices of at least 0")
    return trusted, others, price


def _notes(
    board: pd.DataFrame,
    people: pd.DataFrame,
    shared: Dependence | None,
    panel: Panel | None,
    target: float,
) -> tuple[dict[str, Any], ...]:
    """Findings beside the table."""
    notes = [finding("no_panel")] if panel is None else []
    if panel is not None:
        reached = panel.p_reached >= 0.5
        notes.append(finding("panel", **panel._asdict(), target=target) | {"reached": reached})
    if shared is not None:
        low, high = shared.effective_interval
        numbers: dict[str, Any] = {"judges": shared.judges, "effective": shared.effective}
        numbers |= {"low": low, "high": high}
        alike = shared.pairs().head(1)
        numbers["pair"] = alike[[shared.judge, "other"]].astype(str).to_numpy().ravel().tolist()
        numbers["correlation"] = next(iter(alike["correlation"].tolist()), None)
        notes.append(finding("shared", **numbers))
    if "people_agreement" in board and len(people) > 1:
        agreement = float(board["people_agreement"].mean())
        notes.append(finding("people", number=len(people), agreement=agreement))
    for name, row in board[board.get("drift_p", pd.Series(1.0, board.index)) < _DRIFT].iterrows():
        ends = {"before": row["accuracy_before"], "after": row["accuracy_after"]}
        notes.append(finding("drift", judge=name, p=row["drift_p"], time=row["drift_time"], **ends))
    return tuple(notes)


def _shares(verdicts: Verdicts, *more: str) -> pd.Series:
    """Share of each answer among a judge's to a question."""
    keys = ["judge", "question", *more]
    sums = verdicts.table.groupby([*keys, "answer"])["weight"].sum()
    return sums / sums.groupby(level=keys).transform("sum")


def _rate(name: str, shares: pd.Series, level: float) -> pd.DataFrame:
    """Mean over the questions of each judge, with Jeffreys' interval."""
    rates = shares.groupby("judge").agg(["sum", "size"])
    intervals = jeffreys(rates["sum"].to_numpy(), rates["size"].to_numpy(), level)
    return pd.DataFrame(intervals, rates.index, [name, f"{name}_low", f"{name}_high"])


def _consistency(verdicts: Verdicts, level: float) -> pd.DataFrame:
    """Probability of the same verdict in both orders."""
    if "first_answer" not in verdicts.table:
        return pd.DataFrame()
    shares = _shares(verdicts, "first_answer").unstack("first_answer", fill_value=0.0)
    both = shares.groupby(["judge", "question"]).sum().gt(0).all(axis=1)
    same = shares.prod(axis=1).groupby(["judge", "question"]).sum()[both]
    return _rate("consistency", same, level) if shares.shape[1] == 2 else pd.DataFrame()


def _biases(verdicts: Verdicts, level: float, rng: np.random.Generator) -> pd.DataFrame:
    """How much more often a side is chosen than it is right, by what marks the side."""
    draws = verdicts.truth[np.linspace(0, len(verdicts.truth) - 1, _DRAWS).astype(int)]
    names = {"first": "position_bias", "longer": "length_bias"}
    rows: dict[int, dict[str, Any]] = {}
    for role, name in names.items():
        if role not in verdicts.table:
            continue
        known = verdicts.table[verdicts.table[role].notna()]
        for code, table in known.groupby("judge"):
            place = table["question"].to_numpy()
            if len(np.unique(place)) < _FEWEST:
                continue
            right = draws[:, place] == table[f"{role}_answer"].to_numpy()
            over = table[role].to_numpy() - right
            # Several verdicts on a question count as one.
            weight = table["weight"] / table.groupby("question")["weight"].transform("sum")
            counts = [(over == sign) @ weight.to_numpy() for sign in (1, 0, -1)]
            parts = rng.standard_gamma(np.stack(counts) + 0.5)
            excess = (parts[0] - parts[2]) / parts.sum(0)
            rows.setdefault(int(code), {}).update(mean_and_interval(name, excess, level))
    return pd.DataFrame.from_dict(rows, orient="index")


def _agreement(
    verdicts: Verdicts, people: list[int], level: float, rng: np.random.Generator
) -> pd.DataFrame:
    """Agreement of each annotator with people, and that of people on the same questions."""
    shares = _shares(verdicts)
    by_people = shares.index.isin(people, level="judge")
    every = shares[by_people].groupby(["question", "answer"]).sum()
    number = shares[by_people].reset_index("judge")["judge"].groupby("question").nunique()
    others = every.reindex(shares.index.droplevel("judge"), fill_value=0.0).to_numpy()
    both = (shares * (others - shares.where(by_people, 0.0))).groupby(["judge", "question"]).sum()
    left = number.reindex(both.index.get_level_values("question"), fill_value=0).to_numpy()
    left = left - both.index.isin(people, level="judge")
    both = both[left > 0] / left[left > 0]
    found = _rate("agreement", both, level)
    alike = both[both.index.isin(people, level="judge")].groupby("question").mean()
    alike = alike[number.reindex(alike.index) > 1]
    rows = {}
    for code in found.index.difference(people):
        his = both.loc[code]
        same = his.index.intersection(alike.index)
        if len(same):
            # Both are of the same questions: a Bayesian bootstrap of these (Rubin 1981).
            weight = rng.standard_exponential((4000, len(same)))
            gap = weight @ (his[same] - alike[same]).to_numpy()
            below = float((gap < 0).mean() + (gap == 0).mean() / 2)
            rows[code] = {"people_agreement": alike[same].mean(), "p_below_people": below}
    return found.join(pd.DataFrame.from_dict(rows, orient="index"))


def _most_alike(shared: Dependence, data: Judgements) -> pd.DataFrame:
    """The other judge whose mistakes are most alike, by code."""
    pairs = shared.pairs()
    turned = pairs.rename(columns={shared.judge: "other", "other": shared.judge})
    both = pd.concat([pairs, turned]).sort_values("correlation", ascending=False, kind="stable")
    first = both.drop_duplicates(shared.judge).set_index(shared.judge)
    first.index = pd.Index(judge_codes(data, first.index, "judge"))
    return first[["other", "correlation"]].rename(columns={"other": "most_alike"})
