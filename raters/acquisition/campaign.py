"""A campaign: questions are asked and answers told until enough is known, and no answer is ever lost."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np
import xarray as xr

from raters import _frame
from raters._check import boolean, positive, whole
from raters._result import check_data, check_model, label_array
from raters.acquisition import _pool
from raters.acquisition._rebuild import rebuilt
from raters.acquisition._refits import Refits, most_draws, prior
from raters.acquisition.batches import Power, SpanningTree, Top, Unique
from raters.acquisition.criteria import Random
from raters.acquisition.journal import Journal, Question, Snapshot, Told
from raters.acquisition.policy import Policy, check_names
from raters.acquisition.posterior import Posterior
from raters.acquisition.stopping import ExpectedAccuracy, ExpectedTau, OrderIsRight, Stop
from raters.acquisition.whom import Joint
from raters.data import Comparisons
from raters.errors import BackendError, DataError, SettingError
from raters.fit import fit
from raters.inference import Backend, PGGibbs
from raters.labels import Labels
from raters.model import Model

Rule = Callable[[Posterior], bool]

# Fits between batches are short: they choose questions, and `Campaign.result` is what to report.
_QUICK = PGGibbs(draws=250, warmup=100, chains=2)
# What a new journal says where nothing is given.
_UNLESS_GIVEN = {"batch_size": "10", "budget": "", "stop": ""}
# What `status` says of certainty is what these rules look at.
_CERTAINTIES: dict[str, Stop] = {
    "order_probability": OrderIsRight(0.5),
    "expected_tau": ExpectedTau(0.5),
    "expected_accuracy": ExpectedAccuracy(0.5),
}


@dataclass(frozen=True)
class Status:
    """Where a campaign stands.

    Parameters
    ----------
    answered, open, withdrawn : int
        Questions with an answer, waiting for one, and taken back without one.
    batches : int
    spent, committed : float
        Costs of the questions answered, and of those that are open.
    budget : float or None
    by_annotator : dict
        Questions answered by each annotator.
    fits : int
        Fits between batches since the campaign was opened.
    max_rhat, min_ess : float
        The worst of those fits (NaN before the first). They are short on purpose; `Campaign.result` is not.
    order_probability, expected_tau : float or None
        Of comparisons: the posterior probability that the items are ordered as their mean rewards are, and Kendall's τ of that
        order with the true one, as it is expected. None for labels, for a model without rewards, before any answer, and when
        it was not asked for.
    expected_accuracy : float or None
        Of labels: the share of items whose most probable class is expected to be right.
    why_done : str or None
        Why there is nothing more to ask; None when there is.
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

    Every question is in the journal before it is handed out, and every answer before `tell` returns, so a campaign goes on
    where it stood after a crash: open the same path again. Answers may come late, twice, out of order, and from several
    processes at once.

    Between fits, the draws are re-weighted by the answers that came since. A fit, started where the last one ended, is made
    when `batch_size` answers are new, or when the weighted draws are worth less than a quarter of equal ones.

    Parameters
    ----------
    path : path
        The journal, one SQLite file; made when it is not there. When it is, everything below must be as it was (but for
        `batch_size`, `budget` and `stop`, which may change, and are kept where they are not given); ``Campaign.open(path)``
        takes all from the file.
    model : Model
    pool : Comparisons or Labels
        The questions that may be asked: ``rt.Candidates.pairs(votes)``, ``rt.Candidates.labels(labels)``. Which item of a pair
        comes first is drawn by the seed, unless the pairs are ordered.
    backend : Backend, optional
        For the fits between batches, and for `result`. By default those are short, and `result` is ``rt.PGGibbs()``.
    policy : Policy, optional
        What to ask next, and whom; costs and quotas of annotators.
    batch_size : int, optional
        Questions that `ask` hands out when no number is given; 10 by default.
    votes : Comparisons or Labels, optional
        Judgements from before the campaign. They are kept in the journal too.
    budget : float, optional
        Most that the questions may cost in all; a question costs 1 where the policy does not say. ``math.inf`` for no bound,
        which takes that of the journal away.
    again : bool, optional
        Whether an annotator may be asked a question again that they have answered. By default True for comparisons and False
        for labels. A question that is open is never handed out a second time.
    stop : callable, optional
        A rule such as ``rt.acquisition.ExpectedTau(0.9)``: from a `Posterior`, whether to stop. Of budgets use `budget`.
        False for no rule, which takes that of the journal away.
    seed : int

    Raises
    ------
    DataError
        When the pool is empty or names what `votes` does not; when the file is no journal, a damaged one, that of
        another campaign (the message says in what they differ), or locked.
    BackendError
        When the back-end cannot run this model.
    SettingError
        When the policy or the rule has no meaning for the model, or the rule asks for more than the draws can show.

    Examples
    --------
    >>> import raters as rt, tempfile
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=2, num_votes=40, seed=0)
    >>> path = tempfile.mkdtemp() + "/tea.db"
    >>> campaign = rt.Campaign(path, rt.BTL(), rt.Candidates.pairs(votes), votes=votes, batch_size=3)
    >>> questions = campaign.ask()
    >>> dict(questions.sizes), sorted(questions)
    ({'id': 3}, ['by', 'first', 'score', 'second'])
    >>> told = campaign.tell({question: "first" for question in questions["id"].values})
    >>> len(told.new), campaign.data.num_votes
    (3, 43)
    >>> rt.Campaign.open(path).spent
    3.0
    """

    def __init__(
        self,
        path: str | Path,
        model: Model,
        pool: Comparisons | Labels,
        *,
        backend: Backend | None = None,
        policy: Policy | None = None,
        batch_size: int | None = None,
        votes: Comparisons | Labels | None = None,
        budget: float | None = None,
        again: bool | None = None,
        stop: Rule | Literal[False] | None = None,
        seed: int = 0,
    ) -> None:
        backend = _QUICK if backend is None else backend
        policy = Policy() if policy is None else policy
        seed = _plain(seed)
        _check_settings(model, pool, backend, policy, seed)
        again = isinstance(pool, Comparisons) if again is None else again
        boolean("again", again)
        pool, base = _pool.prepared(pool, votes)
        pool = _pool.mixed(pool, seed)
        identity = {"model": repr(model), "policy": repr(policy), "backend": repr(backend), "again": str(again)}
        identity |= {"seed": str(seed)} | _pool.identity(pool, base)
        settings = _settings(batch_size, budget, stop)
        if not Path(path).exists():
            _check_possible(model, backend, policy, pool, base, seed)
            settings = _UNLESS_GIVEN | settings
        elif votes is None:
            del identity["votes"]  # They are in the journal, and so need not be given again.
        _check_rule(stop, model, backend, pool, seed)
        parts = _pool.packed(pool, "pool") | _pool.packed(base, "votes")
        journal = Journal.start(path, identity, settings, parts)
        if votes is None:
            base = _pool.unpacked(journal.identity, journal.parts, "votes")
        self._set(journal, model, pool, base, backend, policy, again, _rule_of(journal, stop), seed)

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        batch_size: int | None = None,
        budget: float | None = None,
        stop: Rule | Literal[False] | None = None,
    ) -> Campaign:
        """Go on with a campaign, everything read from its journal.

        Parameters
        ----------
        path : path
        batch_size, budget, stop : optional
            New values in place of those in the journal; ``budget=math.inf`` and ``stop=False`` take them away.

        Raises
        ------
        DataError
            When the file is missing, no journal, or damaged.
        SettingError
            When the model, the back-end or the policy is not one of raters' own; give them: ``Campaign(path, model, pool)``.
        """
        journal = Journal(path)
        there = journal.identity
        model, backend, policy = (rebuilt(there[name], name) for name in ("model", "backend", "policy"))
        pool, base = (_pool.unpacked(there, journal.parts, part) for part in ("pool", "votes"))
        settings, rule, seed = _settings(batch_size, budget, stop), _rule_of(journal, stop), int(there["seed"])
        _check_rule(stop, model, backend, pool, seed)
        journal.change(settings)
        campaign = cls.__new__(cls)
        campaign._set(journal, model, pool, base, backend, policy, there["again"] == "True", rule, seed)
        return campaign

    def _set(self, journal, model, pool, base, backend, policy, again, stop, seed) -> None:
        self._journal: Journal = journal
        self.model: Model = model
        self.pool: Comparisons | Labels = pool
        self.backend: Backend = backend
        self.policy: Policy = policy
        self.again: bool = again
        self.stop: Rule | None = stop
        self.seed: int = seed
        self._base: Comparisons | Labels = base
        self._keys, base_keys = np.split(_pool.keys(pool, base), [_pool.num_rows(pool)])
        self._done_before = np.isin(self._keys, base_keys) & (not again)
        self._cost = policy.cost_of(pool.annotators)
        self._lock = RLock()
        self._result: tuple[np.ndarray, xr.DataTree] | None = None
        self._refits = Refits(model, backend, pool, seed)

    def __repr__(self) -> str:
        return f"Campaign({str(self.path)!r}, {self.model!r}, {len(self._journal.read())} questions asked)"

    @property
    def path(self) -> Path:
        """The journal."""
        return self._journal.path

    @property
    def batch_size(self) -> int:
        """Questions of a batch."""
        return int(self._journal.settings["batch_size"])

    @property
    def budget(self) -> float | None:
        """Most that the questions may cost in all, or None."""
        text = self._journal.settings["budget"]
        return float(text) if text else None

    # ---------------------------------------------------------------- the loop

    def ask(self, number: int | None = None, *, annotator: Any = None) -> xr.Dataset:
        """Hand out questions; they are open, and in the journal, when this returns.

        Parameters
        ----------
        number : int, optional
            How many; `batch_size` by default.
        annotator : name or list of names, optional
            Ask only these, who are there now.

        Returns
        -------
        xarray.Dataset
            With axis ``id``: ``first`` and ``second`` (for labels ``item``), ``by``, and ``score``. Fewer than asked for when
            the pool or the budget runs out (or pairs, where the policy takes each once a batch), and none when it is `done`.
        """
        number = self.batch_size if number is None else _plain(number)
        whole("number", number)
        there = np.arange(len(self.pool.annotators))
        wanted = np.isin(there, there if annotator is None else self._codes_of(annotator))
        with self._lock:
            while True:
                seen = self._journal.read()
                questions = self._choose(seen, number, wanted)
                ids = self._journal.ask(questions, known=len(seen)) if questions else []
                if ids is not None:  # else another process was faster, and these questions may be its
                    return self._table(ids, [one.row for one in questions], [one.score for one in questions])

    def _choose(self, seen: Snapshot, number: int, wanted: np.ndarray) -> list[Question]:
        rows = self._free(seen)
        if self._why_done(seen, rows) is not None:
            return []
        who = np.asarray(self.pool.annotator)
        rows = self._payable(seen, rows)
        rows = rows[wanted[who[rows]]]
        if not len(rows):
            return []
        asked = self._asked(seen)
        seed = _pool.seed_of(self.seed, len(seen))
        candidates = _pool.take(self.pool, rows)
        waiting = _pool.take(self.pool, np.sort(seen.row[seen.open])) if seen.open.any() else None
        known, number = self._posterior(seen), min(number, len(rows))
        chosen = self.policy.choose(known, candidates, number, seed=seed, asked=asked, pending=waiting)
        questions, left = [], self._left(seen)
        for row, score in zip(rows[np.asarray(chosen.rows)].tolist(), np.asarray(chosen.score, float).tolist(), strict=True):
            code = int(who[row])
            if self._cost[code] <= left:
                left -= self._cost[code]
                questions.append(Question(row, *self._sides(row), code, score, float(self._cost[code])))
        return questions

    def _codes_of(self, annotator: Any) -> np.ndarray:
        """Codes of one annotator or of several."""
        names = tuple(annotator) if isinstance(annotator, (list, tuple, set, np.ndarray)) else (annotator,)
        if not names:
            raise DataError("annotator= names nobody; give a name, such as annotator=['ann'], or leave it out for all")
        return _frame.match(np.arange(len(names)), names, self.pool.annotators, "annotator")

    def _sides(self, row: int) -> tuple[int, int | None]:
        if isinstance(self.pool, Labels):
            return int(np.asarray(self.pool.item)[row]), None
        return int(self.pool.first[row]), int(self.pool.second[row])

    def _free(self, seen: Snapshot) -> np.ndarray:
        """Rows of the pool that may be asked now."""
        taken = seen.row[seen.open if self.again else seen.open | seen.answered]
        below_quota = self._asked(seen) < self.policy.quota_of(self.pool.annotators)
        free = below_quota[np.asarray(self.pool.annotator)] & ~self._done_before
        return np.flatnonzero(free & ~np.isin(self._keys, self._keys[taken]))

    def _payable(self, seen: Snapshot, rows: np.ndarray) -> np.ndarray:
        """Those of these rows that what is left of the budget pays."""
        return rows[self._cost[np.asarray(self.pool.annotator)[rows]] <= self._left(seen)]

    def _asked(self, seen: Snapshot) -> np.ndarray:
        """Answers that each annotator gave or is asked for, earlier judgements counted, shape (annotator,)."""
        asked = np.bincount(seen.annotator[seen.open | seen.answered], minlength=len(self.pool.annotators))
        return asked + self._base.votes_by_annotator()

    def _left(self, seen: Snapshot) -> float:
        """What is left of the budget, open questions paid."""
        budget = self.budget
        # A hair more, so that ten times 0.1 fit into 1.
        return math.inf if budget is None else budget * (1 + 1e-9) - float(seen.cost[seen.open | seen.answered].sum())

    def _table(self, ids: list[str], rows: Any, score: Any) -> xr.Dataset:
        rows = np.asarray(rows, int)
        roles = ("item",) if isinstance(self.pool, Labels) else ("first", "second")
        columns = {role: label_array(self.pool.items)[np.asarray(getattr(self.pool, role))[rows]] for role in roles}
        columns["by"] = label_array(self.pool.annotators)[np.asarray(self.pool.annotator)[rows]]
        columns["score"] = np.asarray(score, float)
        table = xr.Dataset({name: ("id", column) for name, column in columns.items()}, {"id": np.array(ids, object)})
        if isinstance(self.pool, Labels):
            table.attrs["classes"] = [_frame.text(name) for name in self.pool.classes]
        return table

    def tell(self, answers: Mapping[str, Any] | str, answer: Any = None, *, correct: bool = False) -> Told:
        """Take answers; they are on disk when this returns. All of them, or none when one is wrong.

        Parameters
        ----------
        answers : mapping, or str
            From ids to answers; or one id, with `answer` beside it. An answer about two items is the name of the better
            one, ``"first"`` or ``"second"`` (``"left"``, ``"right"``), or ``"tie"``, which is half a vote for each; of a label,
            the name of the class.
        correct : bool
            Whether an answer may take the place of another. The journal keeps both.

        Returns
        -------
        Told
            Ids: ``new``, ``again`` (told before, and ignored), ``corrected``, and ``late`` (after they were withdrawn).

        Raises
        ------
        DataError
            For an unknown id, an impossible answer, and an answer that contradicts one told before, unless `correct`.
        """
        boolean("correct", correct)
        if not isinstance(answers, Mapping):
            if not isinstance(answers, str) or answer is None:
                raise DataError("tell takes an id and an answer, or a mapping: campaign.tell({'a3f1-1': 'first'})")
            answers = {answers: answer}
        elif answer is not None:
            raise DataError("tell takes a mapping alone, or an id and an answer")
        row, values = self._journal.read().row, {}
        for question, said in answers.items():
            number = self._journal.number_of(question, len(row))
            values[self._journal.id_of(number)] = _pool.value_of(self.pool, int(row[number - 1]), said, str(question))
        if len(values) < len(answers):
            raise DataError("an id comes twice, with spaces and without; nothing was written")
        say = lambda number, value: repr(_pool.words_of(self.pool, int(row[number - 1]), value))  # noqa: E731
        return self._journal.tell(values, correct=correct, say=say)

    def withdraw(self, ids: str | Iterable[str]) -> tuple[str, ...]:
        """Take open questions back: their cost is free again, and they may be asked anew. Answers that come later still count.

        Returns
        -------
        tuple of str
            Those that were open.
        """
        return self._journal.withdraw([ids] if isinstance(ids, str) else list(ids))

    def outstanding(self, *, annotator: Any = None) -> xr.Dataset:
        """The questions that wait for an answer, as `ask` gave them; of one annotator, or of all."""
        seen = self._journal.read()
        waiting = seen.open
        if annotator is not None:
            waiting = waiting & np.isin(seen.annotator, self._codes_of(annotator))
        places = np.flatnonzero(waiting)
        ids = [self._journal.id_of(place + 1) for place in places.tolist()]
        return self._table(ids, seen.row[places], seen.score[places])

    @property
    def asked(self) -> xr.Dataset:
        """All questions ever handed out, as `outstanding` gives them, with ``batch``, ``state`` (``"answered"``, ``"open"`` or
        ``"withdrawn"``) and ``answer`` (the name of an item or a class, or ``"tie"``; empty where there is none)."""
        seen = self._journal.read()
        places = range(len(seen))
        table = self._table([self._journal.id_of(place + 1) for place in places], seen.row, seen.score)
        state = np.where(seen.answered, "answered", np.where(seen.withdrawn, "withdrawn", "open")).astype(object)
        said = [
            _pool.words_of(self.pool, int(seen.row[place]), seen.value[place]) if seen.answered[place] else ""
            for place in places
        ]
        columns = {"batch": seen.batch, "state": state, "answer": np.array(said, object)}
        return table.assign({name: ("id", column) for name, column in columns.items()})

    # ---------------------------------------------------------------- what is known

    @property
    def data(self) -> Comparisons | Labels:
        """All judgements: those from before, then the answers in the order in which they were asked."""
        return self._data(self._journal.read())

    def _data(self, seen: Snapshot) -> Comparisons | Labels:
        places = np.flatnonzero(seen.answered)
        return _pool.joined(self._base, _pool.answers(self.pool, seen.row[places], seen.value[places]))

    @property
    def result(self) -> xr.DataTree:
        """The fit of everything so far, by `rt.PGGibbs()` or the back-end that was given; kept until another answer comes.

        Raises
        ------
        DataError
            Before the first answer.
        """
        with self._lock:
            seen = self._journal.read()
            if self._result is None or not np.array_equal(self._result[0], seen.value, equal_nan=True):
                backend = PGGibbs() if self.backend == _QUICK else self.backend
                data = self._data(seen)
                if not _pool.num_rows(data):
                    raise DataError("there is no answer yet, so there is nothing to fit; campaign.ask() hands out questions")
                data = data.aggregate() if isinstance(data, Labels) or data.features is None else data
                self._result = seen.value, fit(self.model, data, backend, seed=self.seed, progress=False)
            return self._result[1]

    @property
    def posterior(self) -> Posterior:
        """What the next question is chosen by: draws of the last short fit, weighted by the answers since."""
        with self._lock:
            return self._posterior(self._journal.read(), always=True)

    def _posterior(self, seen: Snapshot, *, always: bool = False) -> Posterior:
        if not always and _looks_at_nothing(self.policy):
            return Posterior(self.model, self._base, {}, np.ones((1, 1), np.float32))
        return self._refits.posterior(seen.value, self._data(seen), self.batch_size)

    # ---------------------------------------------------------------- how far it is

    @property
    def spent(self) -> float:
        """Costs of all questions that were answered."""
        seen = self._journal.read()
        return float(seen.cost[seen.answered].sum())

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask: the budget is used up, the rule says stop, or all was asked.

        Questions that are open may still be answered.
        """
        return self.why_done is not None

    @property
    def why_done(self) -> str | None:
        """The sentence that says why there is nothing more to ask, or None."""
        with self._lock:
            seen = self._journal.read()
            return self._why_done(seen, self._free(seen))

    def _why_done(self, seen: Snapshot, free: np.ndarray) -> str | None:
        if not len(free):
            waiting = f"; {int(seen.open.sum())} wait for an answer" if seen.open.any() else ""
            return f"all questions of the pool have been asked, or the quotas of the annotators are used up{waiting}"
        payable = self._payable(seen, free)
        if not len(payable):
            paid = float(seen.cost[seen.open | seen.answered].sum())
            return f"the budget is used up: {paid:g} of {self.budget:g}, open questions included"
        known = seen.answered.any() or _pool.num_rows(self._base)
        if self.stop is None or not known:
            return None
        # Open questions count among what can be learned: their answers may still change the verdict.
        pool = _pool.take(self.pool, np.union1d(payable, seen.row[seen.open]))
        posterior = dataclasses.replace(self._posterior(seen, always=True), pool=pool, cost=self._cost)
        if self.stop(posterior):
            rule = self.stop.describe(posterior) if isinstance(self.stop, Stop) else repr(self.stop)
            return f"the stopping rule is met: {rule}"
        return None

    def status(self, *, probability: bool = True) -> Status:
        """Where the campaign stands.

        Parameters
        ----------
        probability : bool
            Whether to compute how sure the order or the classes are, which needs a fit when answers are new.
        """
        with self._lock:
            seen = self._journal.read()
            counts = np.bincount(seen.annotator[seen.answered], minlength=len(self.pool.annotators)).tolist()
            sure: dict[str, float | None] = dict.fromkeys(_CERTAINTIES)
            if probability and (seen.answered.any() or _pool.num_rows(self._base)):
                posterior = self._posterior(seen, always=True)
                sure = {name: _certainty(rule, posterior) for name, rule in _CERTAINTIES.items()}
            return Status(
                answered=int(seen.answered.sum()),
                open=int(seen.open.sum()),
                withdrawn=int((seen.withdrawn & ~seen.answered).sum()),
                batches=int(seen.batch.max(initial=-1)) + 1,
                spent=float(seen.cost[seen.answered].sum()),
                committed=float(seen.cost[seen.open].sum()),
                budget=self.budget,
                by_annotator=dict(zip(self.pool.annotators, counts, strict=True)),
                fits=self._refits.number,
                max_rhat=self._refits.max_rhat,
                min_ess=self._refits.min_ess,
                **sure,
                why_done=self._why_done(seen, self._free(seen)),
            )


# ---------------------------------------------------------------- settings


def _check_settings(model, pool, backend, policy, seed) -> None:
    check_model(model)
    check_data(pool, "the pool", model)
    if not isinstance(backend, Backend):
        raise SettingError(f"backend= takes a back-end such as rt.PGGibbs(draws=250), not {backend!r}")
    if not isinstance(policy, Policy):
        raise SettingError(f"policy= takes a policy such as rt.Policy(target='ranking'), not {policy!r}")
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise SettingError(f"seed={seed!r} is not possible; it must be a whole number from 0 to 2**32 - 1, such as seed=0")


def _plain(number: Any) -> Any:
    """A whole number of NumPy as one of Python."""
    return int(number) if isinstance(number, np.integer) else number


def _settings(batch_size: int | None, budget: float | None, stop: Rule | Literal[False] | None) -> dict[str, str]:
    """What may change from one session to the next, as the journal holds it; without what is None."""
    found = {}
    if batch_size is not None:
        whole("batch_size", _plain(batch_size))
        found["batch_size"] = str(batch_size)
    if budget is not None:
        endless = isinstance(budget, (float, np.floating)) and budget == math.inf
        if not endless:
            positive("budget", budget)
        found["budget"] = "" if endless else repr(float(budget))
    if stop is not None:
        if stop is not False and (isinstance(stop, type) or not callable(stop)):
            raise SettingError(f"stop= takes a rule that is called with a posterior, such as ExpectedTau(0.9), not {stop!r}")
        found["stop"] = "" if stop is False else repr(stop)
    return found


def _rule_of(journal: Journal, stop: Rule | Literal[False] | None) -> Rule | None:
    """The rule given, or else that of the journal."""
    if stop is None:
        text = journal.settings["stop"]
        return rebuilt(text, "stop") if text else None
    return stop or None


def _check_rule(stop: Any, model: Model, backend: Backend, pool: Any, seed: int) -> None:
    """`SettingError` for a rule that has no meaning here, or could never be met."""
    if isinstance(stop, Stop):
        few = _pool.take(pool, np.arange(min(2, _pool.num_rows(pool))))
        stop.check(dataclasses.replace(prior(model, pool, seed), pool=few), most_draws(backend))


def _check_possible(model: Model, backend: Backend, policy: Policy, pool: Any, base: Any, seed: int) -> None:
    """Say now what the first batch or the first fit would refuse."""
    check_names(policy, pool.annotators)
    # One answer by everybody: some models need several annotators, and get by with the prior until they have them.
    _, first = np.unique(np.asarray(pool.annotator), return_index=True)
    if reason := backend.why_not(model, _pool.joined(base, _pool.answers(pool, np.sort(first), np.zeros(len(first))))):
        raise BackendError(reason)
    if not _looks_at_nothing(policy):
        policy.choose(prior(model, pool, seed), _pool.take(pool, np.arange(min(2, _pool.num_rows(pool)))), 1, seed=0)


def _looks_at_nothing(policy: Policy) -> bool:
    """Whether questions are chosen at random, so that nothing need be fitted."""
    whom, batch = policy.annotator, policy.batch
    by_chance = isinstance(policy.score, Random) and (whom is None or isinstance(whom, Joint))
    return by_chance and (batch is None or isinstance(batch, (Top, Unique, Power, SpanningTree)))


def _certainty(rule: Stop, posterior: Posterior) -> float | None:
    """What a stopping rule looks at; None where it has no meaning."""
    try:
        return rule.value(posterior)
    except SettingError:
        return None
