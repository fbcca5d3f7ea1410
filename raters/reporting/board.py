"""Leaderboard of a fit: ranks with intervals that hold at once, and votes that would tell more."""

from __future__ import annotations

import abc
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr
from jaxtyping import Float
from scipy.special import expit

from raters import figures
from raters.auditing.further_votes import information, votes_needed
from raters.auditing.intervals import ranked
from raters.checking.predictive import checked_by
from raters.errors import refuse
from raters.errors.validation import checked, share, whole
from raters.fitting.result import check_several, draws_of, model_of, program_of, thinned
from raters.judgements.comparisons import Comparisons
from raters.judgements.connection import imitated
from raters.judgements.rankings import Rankings
from raters.kinds import AuditContext, Column, finding, kind_of
from raters.model import Values
from raters.program import Program
from raters.reporting import views
from raters.reporting.convergence import convergence
from raters.reporting.facts import SCORES, as_json, data_facts, plain, plural_noun, scores_of

if TYPE_CHECKING:
    from raters.figures.base import Plots

Unit = Literal["logit", "elo", "win"]
By = Literal["category", "style"]
Numbers = Float[np.ndarray, " number"]

_UNITS: dict[str, Callable[[Numbers], Numbers]] = {
    "logit": lambda logits: logits,
    "elo": lambda logits: 1000 + 400 / np.log(10) * logits,
    "win": expit,
}
_COLUMNS = tomllib.loads(files("raters.reporting").joinpath("columns.toml").read_text("utf-8"))
_HEADINGS = {"logit": "score", "elo": "Elo", "win": "P(win)"}
# Site, setting of a model, and role of a column that boards side by side need.
_BY = {
    "category": ("deviation", "strata", "stratum"),
    "style": ("coefficient", "covariates", "feature"),
}
# Futures of further votes, pairs that decide on the first, and rows that are checked.
_FUTURES, _PAIRS, _ROWS = 400, 12, 50_000
_NEEDED = ("votes_needed", "votes_needed_low", "votes_needed_high")
# Discrepancies that are noted, replicates, and the probability of a false alarm.
_NOTED, _REPLICATES, _LEVEL = {"intransitivity": "cycles", "judge_items": "clustered"}, 200, 0.05


@dataclass(frozen=True, repr=False)
class Board(views.Page, abc.ABC):
    """A table with one row for each of those compared, and notes.

    Attributes
    ----------
    table : pandas.DataFrame
    notes : tuple of mapping
        What else is to be known, as numbers by name; ``"code"`` names the words for it.
    facts : mapping
        The question, the fit, and the settings.
    """

    table: pd.DataFrame
    notes: tuple[Mapping[str, Any], ...]
    facts: Mapping[str, Any]

    view = staticmethod(views.board)

    @classmethod
    def facts_of(
        cls, context: AuditContext, words: dict[str, str], answer: Mapping[str, Any], **asked: Any
    ) -> dict[str, Any]:
        """Facts about the question, the fit, and the settings."""
        program = context.program
        question = {"data": data_facts(program.data), "model": type(program.model).__name__}
        return plain(
            {
                "schema_version": 1,
                "board": cls.__name__.lower(),
                "judged": "",
                "words": kind_of(program.data).words._asdict() | words,
                "asked": question | {"level": context.level} | asked,
                "answer": answer,
                "convergence": convergence(context),
            }
        )

    @abc.abstractmethod
    def shown(self) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
        """Rows and columns as they are shown."""

    def to_frame(self) -> pd.DataFrame:
        """A copy of the table, with names in a column."""
        return self.table.reset_index() if self.table.index.name else self.table.copy()

    def to_json(self) -> str:
        """Strict JSON of the facts, the notes and all rows."""
        return as_json({**self.facts, "notes": self.notes, "rows": self.to_frame()})

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        name, model = type(self).__name__, self.facts["asked"]["model"]
        answer = views.lines_of(self._shown(), f"{self.facts['board']}_answer")[0]
        return f"{name} of {model}: {answer}"

    def _repr_html_(self) -> str:
        return self.view("inline.html", self._shown())

    def _columns(self, rows: pd.DataFrame, **words: str) -> list[dict[str, Any]]:
        """Columns of the board that these rows have, and their headings with some words."""
        columns = []
        for one in _COLUMNS[self.facts["board"]]:
            texts = {key: one.get(key, "").format(**words) for key in ("name", "heading")}
            columns.append(vars(Column(**one | texts)))
        return [column for column in columns if column["name"] in rows]

    def _shown(self) -> dict[str, Any]:
        rows, columns = self.shown()
        return plain({**self.facts, "notes": self.notes, "rows": rows, "columns": columns})


@dataclass(frozen=True, repr=False)
class Leaderboard(Board):
    """Leaderboard, from `raters.leaderboard`.

    Attributes
    ----------
    table : pandas.DataFrame
        A row for each entry, best first; of several boards, one below the other.

        - ``item`` (or ``person``), and ``category``, ``style`` or ``type`` of several boards;
        - ``rank``, by the posterior mean; ``rank_low`` to ``rank_high`` for one entry alone,
          ``joint_low`` to ``joint_high`` for all entries of a board at once; ``tier``, of entries
          that the joint intervals keep apart;
        - ``score`` at the posterior mean, ``score_low`` and ``score_high``;
        - ``p_best``, ``p_above_next``, ``judgements``;
        - of votes and rankings ``votes_needed`` for the pair of the entry and the next, with
          ``votes_needed_low`` and ``votes_needed_high``.
    notes : tuple of mapping
        What else moves the ranking, as numbers by name; ``"code"`` names the words for it.
    facts : mapping
        The question, the fit, and the settings.
    """

    def plot(self) -> Plots:
        """Scores and ranks with their intervals, by `raters.figures.leaderboard`."""
        return figures.leaderboard(self.table, level=self.facts["asked"]["level"])

    def shown(self) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
        """Rows and columns as they are shown, boards side by side."""
        axis, group = self.facts["asked"]["entries"], self.facts["asked"]["by"]
        if not group:
            return self._single(axis)
        rows = self._side_by_side(axis, group)
        return rows, [vars(Column(name, "name" if name == axis else "text", name)) for name in rows]

    def _single(self, axis: str) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
        """Rows of one board, and their columns."""
        asked, rows = self.facts["asked"], self.table.copy()
        rows["place"], rows["at_once"] = rows["rank"], _ranges(rows, "joint")
        rows["alone"] = _ranges(rows, "rank")
        if "votes_needed" in rows:
            rows["further"] = [_needed(row) for row in rows.to_dict("records")]
        digits = 0 if asked["unit"] == "elo" else 2
        marks = (float(_UNITS[asked["unit"]](np.zeros(1))[0]),)
        columns = self._columns(rows, axis=axis, unit=_HEADINGS[asked["unit"]])
        return rows, [one | {"digits": digits, "marks": marks} for one in columns]

    def _side_by_side(self, axis: str, group: str) -> pd.DataFrame:
        """Rows of several boards, with the ranks in each."""
        ranks = self.table["rank"].astype(str) + " (" + _ranges(self.table, "joint") + ")"
        boards = self.table[group].drop_duplicates().tolist()
        order = self.table.loc[self.table[group] == boards[0], axis].tolist()
        cells = self.table.assign(ranks=ranks).pivot(index=axis, columns=group, values="ranks")
        return cells.loc[order, boards].add_prefix(f"{group} ").reset_index()


def _ranges(rows: pd.DataFrame, name: str) -> pd.Series[str]:
    """Intervals of ranks as text."""
    low, high = rows[f"{name}_low"].astype(str), rows[f"{name}_high"].astype(str)
    return low.where(low == high, low + "–" + high)


def _needed(row: Mapping[str, Any]) -> str:
    """Votes still needed as text."""
    numbers = [row[name] for name in _NEEDED]
    if np.isnan(numbers[0]):
        return "–"
    if numbers[0] == 0:
        return "none"
    middle, low, high = ("> 1 million" if np.isinf(n) else f"{n:,.0f}" for n in numbers)
    return f"{middle} ({low} to {high})"


# ---------------------------------------------------------------- from a fit to a board


@checked
def leaderboard(
    result: xr.DataTree,
    *,
    level: float = 0.9,
    unit: Unit = "logit",
    by: By | None = None,
    top: int = 1,
    seed: int = 0,
) -> Leaderboard:
    r"""Rank the entries of a fit, with intervals that hold for each and for all at once.

    Parameters
    ----------
    result : xarray.DataTree
        From `raters.fit`, of a model that puts entries in an order: by rewards, worths, qualities,
        or abilities. Of a mixture there is a board for each type of annotators.
    level : float
        Posterior probability of all intervals, and from which on two entries are told apart.
    unit : {"logit", "elo", "win"}
        Unit of the scores: log-odds of a vote against the average entry, by an annotator of
        competence 1; the same as :math:`1000 + 400 / \log(10)` times it; or as a probability, ties
        left out.
    by : {"category", "style"}, optional
        Boards side by side: for each stratum of the votes (of a model with ``strata=True``), or at
        equal style and with the style that each entry has (with ``covariates=True``).
    top : int
        The first so many entries, of which a note says how many votes would set them apart.
    seed : int
        For futures and replicated votes.

    Returns
    -------
    Leaderboard
        With ``table``, ``notes``, ``to_frame()``, ``to_text()``, ``to_markdown()``, ``to_html()``,
        ``to_json()`` and ``plot()``.

    See Also
    --------
    audit, report, suggest

    Notes
    -----
    Ranks are by the posterior mean. Joint intervals lie between order statistics of the same place
    of each entry's ranks over the draws, the place being the innermost one for which all ranks lie
    inside at once in a share `level` of the draws (Besag et al. 1995). A tier ends where these
    intervals keep all entries above from all below, so that all tiers are right at once too.

    Votes needed are those of a pair in equal numbers of each order, after which as many futures as
    not tell it apart with probability `level`, in either order; the interval holds a share `level`
    of the futures. A future draws the true gap from the posterior, and the votes given it.

    References
    ----------
    Besag, J., Green, P., Higdon, D. and Mengersen, K. (1995). Bayesian computation and stochastic
    systems. Statistical Science 10, 3–41.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=300, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(), seed=0, progress=False)
    >>> board = rt.leaderboard(result)
    >>> board.table[["rank", "joint_low", "joint_high", "tier"]].values.tolist()
    [[1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 4, 4]]
    """
    share("level", level)
    whole("top", top)
    model = model_of(result)
    program = program_of(model, result)
    program = Program(model, program.data.unpadded())
    check_several(result, "a leaderboard says how sure it is")
    axis, boards = _boards(program, result, by)
    if top >= (size := len(program.data.coords[axis])):
        refuse("top", top, f"are all {size} entries", "give fewer than there are")
    pairs = isinstance(program.data, Comparisons | Rankings)
    if unit != "logit" and not pairs:
        expected = "scores of votes and rankings alone have it; write unit='logit'"
        refuse("unit", unit, f"is no unit of {kind_of(program.data).words.many}", expected)
    group = by or ("" if list(boards) == [""] else "type")
    values = draws_of(program, result, _FUTURES, seed)[0]
    tables, notes = [], list[Mapping[str, Any]]()
    for name, scores in boards.items():
        table = ranked(scores.rename({axis: "item"}).rename("score"), level)
        data: Any = program.data
        if by == "category":
            data = data.rows(np.flatnonzero(np.asarray(data.stratum) == data.strata.index(name)))
        number = dict(zip(scores[axis].values, data.judgements_by(axis), strict=True))
        table.insert(len(table.columns), "judgements", table["item"].map(number))
        # Further votes tell of the categories that they are in, and of those alone.
        common = "deviation" in program.sites and by != "category"
        if pairs and group != "type" and not common:
            every = scores.transpose("chain", "draw", axis).values
            found, first = _further_votes(program, values, every, table, level, top, seed)
            table = table.assign(**found)
            notes += [] if group else [first]
        columns = ["score", "score_low", "score_high"]
        table[columns] = _UNITS[unit](table[columns].to_numpy())
        table = table.rename(columns={"item": axis})
        tables.append(table.assign(**{group: name}) if group else table)
    whole_table = pd.concat(tables, ignore_index=True)
    context = AuditContext(program, result, None, level)
    kind, judge = kind_of(program.data), program.data.judge
    words = {"judge": judge.replace("_", " "), "judges": plural_noun(judge)}
    facts = Leaderboard.facts_of(context, words, {"doubts": []}, unit=unit, by=group, entries=axis)
    facts["kind"] = kind.name
    notes += [one for make in kind.sections[1:] if (part := make(context)) for one in part.findings]
    notes += _noted(program, result, seed)
    return Leaderboard(whole_table, tuple(notes), facts)


def check_order(program: Program[Any], parameter: str = "result") -> None:
    """Raise unless the model puts something in an order."""
    names = [name for name in SCORES if name in program.sites]
    if not names or len({*program.sites[names[0]].dims} - {"type"}) != 1:
        many, name = kind_of(program.data).words.many, type(program.model).__name__
        problem = f"is of {many} under {name}, which put nothing in an order"
        refuse(parameter, problem=problem, expected="an audit says what they tell")


def _boards(
    program: Program[Any], result: xr.DataTree, by: str | None
) -> tuple[str, dict[Any, xr.DataArray]]:
    """Axis of the entries, and draws of their scores by the name of each board."""
    check_order(program)
    posterior = result["posterior"].dataset
    scores = scores_of(posterior)
    assert scores is not None
    axes = [str(name) for name in scores.dims if name not in ("chain", "draw", "type")]
    if "type" in scores.dims:
        if by is not None:
            expected = "leave it out: there is a board for each type of annotators"
            refuse("by", by, "is not for a mixture", expected)
        return axes[0], {name: scores.sel(type=name, drop=True) for name in scores["type"].values}
    needed, setting, role = _BY.get(by or "", ("", "", ""))
    if needed and needed not in posterior:
        expected = f"fit a model with {setting}=True (--{role} COLUMN --set {setting}=yes)"
        problem, instead = "asks for what the model did not fit", f"rt.BTL({setting}=True)"
        refuse("by", by, problem, expected, instead=instead)
    if by == "category":
        own = scores + posterior["deviation"]
        return axes[0], {name: own.sel(stratum=name, drop=True) for name in own["stratum"].values}
    if by == "style":
        return axes[0], {"equal": scores, "as written": scores + _style(program, posterior)}
    return axes[0], {"": scores}


def _style(program: Program[Any], posterior: xr.Dataset) -> xr.DataArray:
    """What the style of each item adds to its reward, by its mean features."""
    data = program.data
    features = np.asarray(data.features, float)
    means = [imitated(data, column)[0] for column in features.T]
    names = {"feature": posterior["feature"], "item": posterior["item"]}
    of_items = xr.DataArray(np.array(means), names, ("feature", "item"))
    added = (posterior["coefficient"] * of_items).sum("feature")
    if "competence" in posterior:
        votes = xr.DataArray(data.judgements_by(data.judge), dims=data.judge)
        added = added / (posterior["competence"] * votes).sum(data.judge) * votes.sum()
    return added - added.mean("item")


# ---------------------------------------------------------------- further votes


def _further_votes(
    program: Program[Any],
    values: Values,
    scores: Float[np.ndarray, "chain draw item"],
    table: pd.DataFrame,
    level: float,
    top: int,
    seed: int,
) -> tuple[dict[str, Numbers], dict[str, Any]]:
    """Votes that would tell each entry from the next, and the first ones from the rest."""
    code = {name: place for place, name in enumerate(program.data.coords["item"])}
    order = np.array([code[name] for name in table["item"]])
    every = scores.reshape(-1, len(order))[:, order]
    draws = thinned({"score": scores}, _FUTURES, seed)["score"][:, order]  # As those of `values`.

    def needed(one: np.ndarray, other: np.ndarray) -> Any:
        gap = draws[:, one] - draws[:, other]
        per_vote = information(program, values, gap, order[one], order[other])
        return votes_needed(gap, per_vote, level, np.random.default_rng(seed))

    above = np.arange(len(order) - 1)[:, None]
    told = table["p_above_next"].to_numpy()[:-1]
    told = np.maximum(told, 1 - told) >= level
    found = {
        name: np.append(np.where(told, 0.0, column), np.nan)
        for name, column in zip(_NEEDED, needed(above, above + 1), strict=True)
    }
    p_first = (every[:, :top].min(1) > every[:, top:].max(1, initial=-np.inf)).mean()
    names = table["item"].tolist()
    first = {"names": names[:top], "probability": float(p_first), "pairs": list[Any]()}
    if p_first < level:
        inside, outside = (grid.ravel() for grid in np.indices((top, len(order) - top)))
        outside = outside + top
        doubt = (every[:, inside] < every[:, outside]).mean(0)
        doubtful = np.argsort(-doubt, kind="stable")[:_PAIRS]
        doubtful = doubtful[doubt[doubtful] > (1 - level) / len(doubt)]
        one, other = inside[doubtful], outside[doubtful]
        pairs = needed(one[None], other[None])
        first["pairs"] = [(names[a], names[b]) for a, b in zip(one, other, strict=True)]
        first |= dict(zip(_NEEDED, (float(end[0]) for end in pairs), strict=True))
    return found, finding("further", **first)


# ---------------------------------------------------------------- what the model leaves out


def _noted(program: Program[Any], result: xr.DataTree, seed: int) -> list[dict[str, Any]]:
    """Cycles among majorities, and votes of one annotator that go together, beyond the model."""
    data, kind = program.data, kind_of(program.data)
    noted = tuple(one for one in kind.discrepancies if one.name in _NOTED)
    if not noted or not data.listed or data.num_rows > _ROWS:
        return []
    table = checked_by(noted, program, result, _REPLICATES, seed, _LEVEL).table
    names = ["observed", "replicated", "replicated_low", "replicated_high", "fails"]
    notes = []
    for name in table["discrepancy"].values:
        row = table.sel(discrepancy=name)
        numbers = {key: row[key].item() for key in names}
        if name == "intransitivity" or numbers["fails"]:
            notes.append(finding(_NOTED[name], **numbers))
    return notes
