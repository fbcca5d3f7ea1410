"""Campaigns: ask and tell around a journal on disk, which loses no answer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.acquisition.campaign import journal as journals
from raters.acquisition.campaign.fits import Fits
from raters.acquisition.campaign.journal import Journal, Question, Snapshot, TellResult
from raters.acquisition.campaign.ledger import Account, Decision, Ledger, Stream
from raters.acquisition.campaign.settings import Rule, Setup, rebuilt, stored_data
from raters.acquisition.campaign.stopping import ExpectedAccuracy, ExpectedTau, OrderIsRight, Stop
from raters.acquisition.policy import Policy, chooses_at_random
from raters.acquisition.posterior import Posterior
from raters.acquisition.questions import pool as pools
from raters.errors import DataError, SettingError, refuse_data
from raters.errors.validation import checked, share, whole
from raters.fitting.fit import fit
from raters.fitting.result import check_data, check_model
from raters.inference import Backend
from raters.inference.defaults import SHORT, short_backend
from raters.judgements.base import Judgements
from raters.judgements.names import shorten
from raters.model import Model
from raters.program import Program

# The certainties of a status are the values of stopping rules, whose thresholds are not read.
_CERTAINTIES: list[Stop] = [OrderIsRight(0.5), ExpectedTau(0.5), ExpectedAccuracy(0.5)]


@dataclass(frozen=True)
class Status:
    """Status of a campaign: numbers of questions with an answer, waiting for one, and withdrawn
    without one, and of batches; the costs of those answered, and of the open ones; and the number
    of questions answered by each annotator.

    ``max_rhat`` and ``min_ess`` are diagnostics of the worst of the ``fits`` between batches, which
    are short on purpose; `Campaign.result` is not. The posterior probability that the items are
    ordered as their mean rewards are, the expected Kendall's τ of that order with the true one, and
    of labels the expected share of items whose most probable class is right, are None where the
    model has none, before any answer, and with ``probability=False``.
    """

    answered: int
    open: int
    withdrawn: int
    batches: int
    spent: float
    committed: float
    budget: float | None
    by_annotator: dict[Any, int]
    fits: int
    max_rhat: float
    min_ess: float
    order_probability: float | None
    expected_tau: float | None
    expected_accuracy: float | None
    why_done: str | None


class Campaign:
    r"""Ask, tell, and ask again: a loop around a model, a pool of questions and a journal on disk.

    Every question is in the journal before it is handed out, and every answer before `tell`
    returns, so a campaign survives a crash: open the same path again. Answers may come late, twice,
    out of order, and from several processes at once. Between fits, the draws are re-weighted by the
    answers since.

    Parameters
    ----------
    path : path
        The journal, one SQLite file, which is made where there is none. Otherwise the arguments
        below must be those of the journal, except `batch_size`, `budget` and `stop`, which may
        change, and are kept where they are not given.
    model : Model
    pool : Judgements
        The questions that may be asked, such as ``rt.Candidates.pairs(votes)``. Which item of a
        pair comes first is drawn by the seed, unless the pairs are ordered.
    backend : Backend, optional
        For the fits between batches, and for `result`. By default that of `raters.fit`, with short
        runs between batches.
    policy : Policy, optional
        Choice of questions and annotators, with the costs and quotas of annotators.
    batch_size : int, optional
        Number of questions that `ask` hands out by default (10), and of new answers after which
        another fit is made.
    data : Judgements, optional
        Judgements from before the campaign, which the journal keeps too.
    budget : float, optional
        Bound of the total cost; ``math.inf`` removes the bound of the journal.
    again : bool, optional
        Whether an annotator may be asked a question again that they have answered. By default True
        for comparisons and False for labels.
    stop : Stop, optional
        A rule such as ``rt.acquisition.ExpectedTau(0.9)``; False removes that of the journal.
    seed : int

    Examples
    --------
    >>> import raters as rt, tempfile
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=2, num_votes=40, seed=0)
    >>> path = tempfile.mkdtemp() + "/tea.db"
    >>> campaign = rt.Campaign(path, rt.BTL(), rt.Candidates.pairs(votes), data=votes)
    >>> questions = campaign.ask(3)
    >>> accepted = campaign.tell({question: "first" for question in questions["id"].values})
    >>> len(accepted.new), campaign.data.num_votes, rt.Campaign.open(path).spent
    (3, 43, 3.0)
    """

    @checked
    def __init__(
        self,
        path: Any,
        model: Model[Any],
        pool: Judgements,
        *,
        backend: Backend | None = None,
        policy: Policy | None = None,
        batch_size: int | None = None,
        data: Judgements | None = None,
        budget: float | None = None,
        again: bool | None = None,
        stop: Rule = None,
        seed: int = 0,
    ) -> None:
        check_model(model)
        check_data(pool, "pool", model)
        usual, policy = backend or short_backend(Program(model, pool)), policy or Policy()
        again = type(pool).again if again is None else again
        pool, base = pools.prepared(pool, data)
        setup = Setup(model, pool.shuffled(seed), base, usual, policy, again, int(seed))
        identity = setup.identity()
        if journals.is_new(path):
            setup.check_possible()
        else:  # What is in the journal need not be given again.
            given = identity | {"data": data, "backend": backend}
            identity = {name: identity[name] for name in identity if given[name] is not None}
        settings = setup.settings(batch_size, budget, stop)
        journal = Journal.start(path, identity, settings, setup.parts())
        if data is None:
            setup = setup._replace(base=stored_data(journal, "data"))
        if backend is None:  # Another one may have been the usual one.
            setup = setup._replace(backend=rebuilt(journal.identity["backend"], Backend, "backend"))
        self._set(journal, setup)

    @classmethod
    @checked
    def open(
        cls,
        path: Any,
        *,
        batch_size: int | None = None,
        budget: float | None = None,
        stop: Rule = None,
    ) -> Campaign:
        """Reopen a campaign, with everything read from its journal, and maybe new values of these
        settings; ``budget=math.inf`` and ``stop=False`` remove them. Models, back-ends and policies
        of other packages can be reopened once the module that defines them is imported."""
        journal = Journal(path)
        setup = Setup.stored(journal)
        journal.change(setup.settings(batch_size, budget, stop))
        campaign = cls.__new__(cls)
        campaign._set(journal, setup)
        return campaign

    def _set(self, journal: Journal, setup: Setup) -> None:
        self._journal = journal
        self.model, self.pool, self._base, self.backend, self.policy, self.again, self.seed = setup
        rule = journal.settings["stop"]
        self.stop: Stop | None = rebuilt(rule, Stop, "stop") if rule else None
        self._ledger = Ledger(self.pool, self._base, self.policy, self.again)
        self._lock = RLock()
        self._result = np.full(1, -1.0), xr.DataTree()  # the answers that it is of
        self._fits = Fits(self.model, self.backend, self.pool, self.seed)

    def __repr__(self) -> str:
        size = len(self._journal.read())
        return f"Campaign({str(self.path)!r}, {self.model!r}, {size} questions asked)"

    @property
    def path(self) -> Path:
        """Path of the journal."""
        return self._journal.path

    @property
    def batch_size(self) -> int:
        """Number of questions in a batch."""
        return int(self._journal.settings["batch_size"])

    @property
    def budget(self) -> float | None:
        """Bound of the total cost, or None."""
        text = self._journal.settings["budget"]
        return float(text) if text else None

    # ---------------------------------------------------------------- ask and tell

    def ask(self, number: int | None = None, *, annotator: Any = None) -> xr.Dataset:
        """Hand out questions; they are open, and in the journal, when this returns.

        Parameters
        ----------
        number : int, optional
            Number of questions; `batch_size` by default.
        annotator : name or list of names, optional
            Ask only these.

        Returns
        -------
        xarray.Dataset
            With axis ``id``: ``first`` and ``second`` (for labels ``item``), ``by``, and ``score``.
            There are fewer than `number` when the pool or the budget runs out (or the pairs, where
            the policy takes each once a batch), and none when the campaign is `done`.
        """
        size = self.batch_size if number is None else number
        whole("number", size)
        judges = pools.codes_of(annotator, self.pool.judges, self.pool.judge, "annotator")
        with self._lock:
            ids = None
            while ids is None:  # when another process has written since: questions may be its
                account = self._account()
                questions = self._choose(account, size, judges)
                known = len(account.snapshot)
                ids = self._journal.ask(questions, known=known) if questions else []
        rows, _, scores, _ = zip(*questions, strict=True) if questions else ([],) * 4
        return self._ledger.table(ids, rows, scores)

    def _choose(self, account: Account, size: int, judges: pools.Codes) -> list[Question]:
        """Choose at most `size` questions to these annotators."""
        ledger, snapshot = self._ledger, account.snapshot
        if self._why_done(account) is not None:
            return []
        rows = account.payable[np.isin(ledger.judge[account.payable], judges)]
        if not len(rows):
            return []
        state = {"asked": account.asked, "pending": self.pool.rows(account.waiting)}
        seed, draws = pools.seed_of(self.seed, len(snapshot)), self._posterior(snapshot)
        size = min(size, len(rows))
        chosen = self.policy.choose(draws, self.pool.rows(rows), size, seed=seed, **state)
        questions, left = [], account.left
        for row, score in zip(rows[chosen.rows].tolist(), chosen.score.tolist(), strict=True):
            question = ledger.question(row, score)
            if question.cost <= left:
                left -= question.cost
                questions.append(question)
        return questions

    @checked
    def consider(self, question: Mapping[str, Any], *, rate: float | None = None) -> Decision:
        """Decide whether to ask a question that arrives, or to let it go (stream-based sampling).

        The question is scored by the policy together with the 300 that arrived last, and asked if
        its score is in the upper part of them, whose size follows the rate: at most 11 + rate · n
        of n are asked (more where an annotator is short of the policy's `least_share`). The first
        are asked by lot. Decisions are in the journal when this returns, with the question if it
        is asked: it then waits for `tell` as one of `ask` does.

        Parameters
        ----------
        question : mapping
            The names of one question of the pool in the columns that `ask` gives, such as
            ``{"first": "tea", "second": "milk", "by": "ann"}``.
        rate : float, optional
            Share of the questions that are asked; 0.1 at first, and kept where it is not given.

        Examples
        --------
        >>> import raters as rt, tempfile
        >>> pool = rt.Candidates.pairs(items=["tea", "milk", "beer"], annotators=["ann"])
        >>> campaign = rt.Campaign(tempfile.mkdtemp() + "/tea.db", rt.BTL(), pool)
        >>> decision = campaign.consider({"first": "tea", "second": "milk", "by": "ann"}, rate=0.99)
        >>> decision.ask, campaign.outstanding().sizes["id"]
        (True, 1)
        """
        if rate is not None:
            share("rate", rate)
        row = self._ledger.row_of(question)
        with self._lock:
            ids = None
            while ids is None:  # when another process has written since: it may be another decision
                account, stream = self._account(), Stream.of(self._journal, rate)
                done = self._why_done(account)
                why = f"there is nothing more to ask: {done}" if done else None
                if why := why or self._ledger.why_not(account, row):
                    decision = Decision(False, None, math.nan, math.inf, why)
                else:
                    draws = self._posterior(account.snapshot)
                    decision = stream.decide(row, self._ledger, account, draws, self.seed)
                arrived = stream.place, stream.seen(row, decision, moves=not done)
                questions = [self._ledger.question(row, decision.score)] * decision.ask
                ids = self._journal.ask(questions, known=len(account.snapshot), seen=arrived)
        return decision._replace(id=ids[0] if ids else None)

    @checked
    def tell(
        self, answers: Mapping[str, Any] | str, answer: Any = None, *, correct: bool = False
    ) -> TellResult:
        """Store answers, all or none; they are on disk when this returns.

        Parameters
        ----------
        answers : mapping, or str
            From ids to answers; or one id, with `answer` beside it. An answer about two items is
            the name of the better one, ``"first"`` or ``"second"`` (``"left"``, ``"right"``), or
            ``"tie"``, which is half a vote for each; of a label, the name of the class.
        answer : name, optional
            The answer, where `answers` is one id.
        correct : bool
            Whether an answer may take the place of another. The journal keeps both.

        Returns
        -------
        TellResult
            Ids: ``new``, ``again`` (stored before), ``corrected``, ``late`` (withdrawn before).
        """
        if isinstance(answers, str) and answer is not None:
            answers = {answers: answer}
        elif not isinstance(answers, Mapping) or answer is not None:
            such, expected = "{'a3f1-1': 'first'}", "give an id and an answer, or map them"
            refuse_data("answers", answers, expected=expected, instead=such)
        rows, outcomes = self._journal.read().row.tolist(), dict[int, float]()
        for question, words in answers.items():
            place = self._journal.place_of(question, len(rows))
            if place in outcomes:
                raise DataError(f"the id {question!r} comes twice; nothing was written")
            try:
                outcome = self.pool.outcome_of(rows[place - 1], words)
            except DataError as error:
                raise DataError(f"question {question}: {error}. Nothing was written") from error
            if outcome is None:
                possible = shorten(map(repr, self.pool.answer_words(rows[place - 1])), 10)
                problem = f"is no answer to question {question}, and nothing was written"
                refuse_data("answers", words, problem, f"it must be one of {possible}")
            outcomes[place] = float(outcome)

        def words_of(place: int, outcome: float) -> str:
            return repr(self.pool.words_of(rows[place - 1], outcome))

        return self._journal.tell(outcomes, correct=correct, words_of=words_of)

    @checked
    def withdraw(self, ids: str | Iterable[str]) -> tuple[str, ...]:
        """Withdraw open questions, and return the ids of those that were open: their cost is free
        again, and they may be asked anew. Answers that come later still count."""
        return self._journal.withdraw([ids] if isinstance(ids, str) else list(ids))

    def outstanding(self, *, annotator: Any = None) -> xr.Dataset:
        """Open questions as `ask` returned them, of one annotator, of several, or of all."""
        judges = pools.codes_of(annotator, self.pool.judges, self.pool.judge, "annotator")
        snapshot = self._journal.read()
        places = np.flatnonzero(snapshot.open & np.isin(snapshot.annotator, judges))
        ids = self._journal.ids_of(places)
        return self._ledger.table(ids, snapshot.row[places], snapshot.score[places])

    @property
    def asked(self) -> xr.Dataset:
        """All questions ever handed out, as `outstanding` returns them, with ``batch``, ``status``
        (``"answered"``, ``"open"`` or ``"withdrawn"``) and ``answer`` (empty where there is none).
        """
        snapshot = self._journal.read()
        return self._ledger.history(self._journal.ids_of(np.arange(len(snapshot))), snapshot)

    @property
    def considered(self) -> xr.Dataset:
        """All questions that `consider` decided on, with axis ``seen``: names, ``score``
        (NaN where the question could not be asked), ``threshold``, ``ask``, ``id`` (empty where it
        was let go), ``rate`` and ``reason``.
        """
        seen = self._journal.read_seen()
        ids = [self._journal.id_of(int(one)) if pd.notna(one) else "" for one in seen["question"]]
        return self._ledger.stream(seen, ids)

    # ---------------------------------------------------------------- data and fits

    @property
    def data(self) -> Judgements:
        """All judgements: those from before, then the answers in the order of their questions."""
        return self._data(self._journal.read())

    def _data(self, snapshot: Snapshot) -> Judgements:
        told = snapshot[snapshot.answered]
        return self._base.joined(pools.answers(self.pool, told.row, told.value))

    @property
    def result(self) -> xr.DataTree:
        """Fit of all judgements so far, kept until another answer comes."""
        with self._lock:
            answers = self._journal.read().value
            if not np.array_equal(self._result[0], answers, equal_nan=True):
                if not (data := self.data).num_rows:
                    raise DataError("there is no answer yet; hand out questions first")
                given = data.aggregate(), None if self.backend in SHORT else self.backend
                self._result = answers, fit(self.model, *given, seed=self.seed, progress=False)
            return self._result[1]

    @property
    def posterior(self) -> Posterior:
        """Posterior by which the next question is chosen."""
        with self._lock:
            return self._posterior(self._journal.read(), always=True)

    def _posterior(self, snapshot: Snapshot, *, always: bool = False) -> Posterior:
        if not always and chooses_at_random(self.policy):
            return Posterior(self.model, self._base, {}, np.ones(1, np.float32))
        return self._fits.posterior(snapshot.value, self._data(snapshot), self.batch_size)

    # ---------------------------------------------------------------- progress

    @property
    def spent(self) -> float:
        """Costs of all questions that were answered."""
        snapshot = self._journal.read()
        return float(snapshot.cost[snapshot.answered].sum())

    @property
    def done(self) -> bool:
        """True if there is nothing more to ask. Open questions may still be answered."""
        return self.why_done is not None

    @property
    def why_done(self) -> str | None:
        """Reason why there is nothing more to ask, as a sentence; None when there is."""
        with self._lock:
            return self._why_done(self._account())

    def _account(self) -> Account:
        return self._ledger.account(self._journal.read(), self.budget)

    def _is_known(self, snapshot: Snapshot) -> bool:
        return bool(snapshot.answered.any() or self._base.num_rows)

    def _why_done(self, account: Account) -> str | None:
        snapshot = account.snapshot
        if not len(account.free):
            asked = "all questions of the pool have been asked, or quotas of annotators are used up"
            return f"{asked}; waiting for an answer: {len(account.waiting)}"
        if not len(account.payable):
            budget = self.budget or 0.0
            paid = f"{budget - account.left:g} of {budget:g}, open questions included"
            return f"the budget is used up: {paid}"
        if self.stop is None or not self._is_known(snapshot):
            return None
        # Open questions are among those that can still be learned from: their answers may change
        # the verdict.
        pool = self.pool.rows(np.union1d(account.payable, account.waiting))
        posterior = self._posterior(snapshot, always=True)
        posterior = dataclasses.replace(posterior, pool=pool, cost=self._ledger.cost)
        value = self.stop.value(posterior)
        met = self.stop.met(value)
        return f"the stopping rule is met: {self.stop.describe(value)}" if met else None

    @checked
    def status(self, *, probability: bool = True) -> Status:
        """Status of the campaign: counts, costs, and whether it is done; with `probability` also
        how certain the order or the classes are, which needs a fit when answers are new."""
        with self._lock:
            account, judges = self._account(), self.pool.judges
            snapshot, answered = account.snapshot, account.snapshot.answered
            known = probability and self._is_known(snapshot)
            posterior = self._posterior(snapshot, always=True) if known else None
            counts = np.bincount(snapshot.annotator[answered], minlength=len(judges)).tolist()
            why_done = self._why_done(account)
            groups = answered, snapshot.open, snapshot.withdrawn & ~answered
            batches = int(snapshot.batch.max(initial=-1)) + 1
            spent, committed = (float(snapshot.cost[some].sum()) for some in groups[:2])
            by_annotator = dict(zip(judges, counts, strict=True))
            facts: list[Any] = [*(int(some.sum()) for some in groups), batches, spent, committed]
            facts += [self.budget, by_annotator]
            facts += [self._fits.number, self._fits.max_rhat, self._fits.min_ess]
            facts += [_certainty(rule, posterior) for rule in _CERTAINTIES]
            return Status(*[*facts, why_done])


def _certainty(rule: Stop, posterior: Posterior | None) -> float | None:
    """Value of a stopping rule; None where it has no meaning."""
    try:
        return None if posterior is None else rule.value(posterior)
    except SettingError:
        return None
