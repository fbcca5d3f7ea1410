"""Report of comparisons: columns of the audit's table, reasons for verdicts, and the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import xarray as xr

from raters import figures
from raters.fitting.result import program_of
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, Column, Section, Table
from raters.models.comparisons.directions import has_directions
from raters.reporting import facts
from raters.reporting.sentences import CLEAR, joined, reason_of

COLUMNS = (
    Column(
        "competence",
        "competence",
        "interval",
        "Competence is 1 for the annotator that all are measured against, 0 for one who guesses"
        ", and below 0 for one who is wrong more often than chance.",
        marks=(0.0, 1.0),
    ),
    Column(
        "p_guessing",
        "P(guess)",
        "percent",
        "P(guess) is the probability that the accuracy is within {margin} of one half; under a"
        " model with guessers as a type, and by the crowd alone, the posterior probability of the"
        " type.",
    ),
    Column(
        "p_careless",
        "P(careless)",
        "percent",
        "P(careless) is the probability that coin flips would predict the votes as well as rewards"
        " of the annotator's own.",
    ),
    Column(
        "p_different_taste",
        "P(own taste)",
        "percent",
        "P(own taste) is the probability that an annotator votes consistently, and by rewards that"
        " correlate with the crowd's by less than one half, and are not their reverse.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "P(adversary) is the probability that competence is below 0, which is the posterior"
        " probability of the type under a model that has it; of annotators with rewards of their"
        " own, that these are consistent and correlate with the crowd's by less than minus one"
        " half.",
    ),
    Column(
        "accuracy",
        "accuracy",
        "percent",
        "Accuracy is the probability of choosing the better of two random items; a tie that is an"
        " answer of its own counts half.",
    ),
    Column(
        "agreement",
        "agreement",
        "percent",
        "Agreement is the share of the votes for the item that the model ranks higher, and half of"
        " the ties.",
    ),
    Column(
        "influence",
        "influence",
        "percent",
        "Influence is the share of the pairs of items that would be the other way round without the"
        " annotator.",
    ),
)

_RANKING = (
    Column("rank", "rank", "range"),
    Column("item", "item", "name"),
    Column("reward", "reward", "interval"),
    Column("p_best", "P(best)", "percent"),
    Column("p_above_next", "P(above next)", "percent"),
)
# Most items whose change of rank is named.
_MOVES = 8


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: an adversary, a guesser, a taste of their own, or none of them."""
    different, careless = row.get("p_different_taste", 0.0), row.get("p_careless")
    if different > 0.5:
        perhaps = "" if different > CLEAR else "perhaps "
        return f"{perhaps}consistent, with a taste unlike the crowd's"
    random = row["p_guessing"] if careless is None else careless
    text = "answers as if by chance" if careless is None else "careless: answers as if by chance"
    return reason_of(row, random=random, random_text=text)


def ranking(context: AuditContext) -> Section | None:
    """Items by their rewards; of a mixture, a ranking for each type of annotator."""
    if "reward" not in context.program.sites:
        return None
    level = context.level
    reward, true = order_of(context, "reward")
    types = types_of(context) if "type" in reward.dims else []
    rewards = [reward.sel(type=kind["type"], drop=True) for kind in types] or [reward]
    rankings = [facts.ranking(part, level).to_dict("records") for part in rewards]
    headings = [heading_of(kind) for kind in types]
    what = "true reward" if true else "reward"
    caption = f"Items, highest {what} first; a reward of 0 is the average item"
    tables = tuple(
        Table("ranking", caption, _RANKING, rows, heading=heading, both_ends=True)
        for rows, heading in zip(rankings, headings or [""], strict=True)
    )
    sentence = (
        first_of_types(types, rankings, "each is judged by the ranking of theirs")
        if types
        else order_sentence(rankings[0], level, true=true)
    )
    sentence += _of_directions(context) if has_directions(context.program) else ""
    if context.audit is not None and "worlds" in context.audit.tables:
        sentence += " In the mirror image, which is possible too, the order is the other way round."
    if context.audit is not None and context.audit.of_influence:
        sentence += f" {context.audit.of_influence}"
    return Section(
        key="items",
        title="Ranking",
        sentence=sentence,
        tables=tables,
        facts={"num_items": reward.sizes["item"]} | ({"types": types} if types else {}),
        files=_figures(context),
    )


def _figures(context: AuditContext) -> dict[str, Any]:
    """The figure of the rewards, where there is one reward for each item."""
    if not _one_ranking(context.result):
        return {}
    posterior = xr.Dataset({"reward": order_of(context, "reward")[0]})
    shown = xr.DataTree.from_dict({"posterior": posterior})
    return {"rewards.png": lambda path: figures.rewards(shown, level=context.level).savefig(path)}


def order_of(context: AuditContext, site: str) -> tuple[xr.DataArray, bool]:
    """Draws of the rewards or worths of the items, and whether they are the true ones: where known
    orders or trusted annotators tell of them."""
    if context.audit is not None and context.audit.calibration is not None:
        return context.audit.calibration.truth.expand_dims("chain").rename(site), True
    return context.result["posterior"].dataset[site], False


def _one_ranking(result: xr.DataTree) -> bool:
    """True if there is one reward for each item."""
    posterior = result["posterior"]
    return "reward" in posterior and posterior["reward"].dims == ("chain", "draw", "item")


def types_of(context: AuditContext) -> list[dict[str, Any]]:
    """Types of annotators, each with its posterior mean share."""
    share = context.result["posterior"].dataset["type_weight"].mean(("chain", "draw"))
    return [
        {"type": kind, "share": float(share.sel(type=kind))}
        for kind in share["type"].values.tolist()
    ]


def heading_of(kind: Mapping[str, Any]) -> str:
    """Heading of the items of one type of annotators, as `types_of` gives it."""
    return f"Type {kind['type']}: {facts.percent(kind['share'])} of annotators"


def first_of_types(
    types: Sequence[Mapping[str, Any]], rankings: Sequence[Any], also: str = ""
) -> str:
    """Sentences on the item that comes first of each type."""
    first = [
        f"{isolated(rows[0]['item'])} of type {kind['type']} ({facts.percent(kind['share'])})"
        for kind, rows in zip(types, rankings, strict=True)
    ]
    return (
        f"Annotators are of {len(types)} types{', and ' * bool(also)}{also}."
        f" First is {joined(first)}."
    )


def _of_directions(context: AuditContext) -> str:
    """Shares of guessers and adversaries, which are types of annotators."""
    share = context.result["posterior"].dataset["type_weight"].mean(("chain", "draw"))
    guessers, adversaries = (
        facts.percent(float(share.sel(type=kind))) for kind in ("guesser", "adversary")
    )
    return (
        f" Of annotators, {guessers} are guessers and {adversaries} adversaries, by this model and"
        " on average; of each, the posterior probability of the type is given."
    )


def order_sentence(rows: Sequence[Mapping[str, Any]], level: float, *, true: bool = False) -> str:
    """The first and the last item in words, and how many neighbours are told apart."""
    by = "which allows for errors that annotators share" if true else "by this model"
    pairs = len(rows) - 1
    apart = sum(row["p_above_next"] >= level for row in rows[:-1])
    if pairs == 1:
        neighbours = f"The two are {'' if apart else 'not '}told apart"
    else:
        neighbours = (
            f"Of {pairs:,} neighbours in the ranking, {apart:,} {'is' if apart == 1 else 'are'}"
            " told apart"
        )
    return (
        f"{isolated(rows[0]['item'])} is first (with probability"
        f" {facts.percent(rows[0]['p_best'])} the best of all, {by}), and"
        f" {isolated(rows[-1]['item'])} last. {neighbours} with {facts.percent(level)} probability"
        " or more."
    )


def change(context: AuditContext) -> Section | None:
    """Change of the ranking when those flagged are left out."""
    if context.dropped is None or context.audit is None or not _one_ranking(context.result):
        return None
    program_of(context.program.model, context.dropped)
    before, after = (
        facts.ranking(result["posterior"].dataset["reward"], context.level)
        for result in (context.result, context.dropped)
    )
    changed = ranking_change(before, after)
    moves = [
        f"{isolated(move['item'])} ({move['rank']} → {move['new_rank']})"
        for move in changed["moves"][:_MOVES]
    ]
    tau, count = f"{changed['kendall_tau']:.3f}", changed["moved"]
    return Section(
        key="without_flagged",
        title="Without those flagged",
        sentence=(
            f"Without {counted(len(context.audit.flagged), 'annotator')} flagged: Kendall's tau of"
            f" the two rankings is {tau}; {count:,} of"
            f" {counted(len(before), 'item')} {'changes' if count == 1 else 'change'}"
            f" rank{', most of all ' + ', '.join(moves) if moves else ''}."
        ),
        facts=changed,
    )


def ranking_change(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
    """Kendall's tau between two rankings of the same items, and the items that moved."""
    from scipy.stats import kendalltau

    both = before[["item", "rank"]].merge(
        after[["item", "rank"]].rename(columns={"rank": "new_rank"}), on="item"
    )
    both["moved"] = (both["new_rank"] - both["rank"]).abs()
    moves = (
        both[both["moved"] > 0]
        .sort_values("moved", ascending=False, kind="stable")
        .drop(columns="moved")
    )
    tau = float(kendalltau(both["rank"], both["new_rank"]).statistic)
    return {"kendall_tau": tau, "moved": len(moves), "moves": moves.to_dict("records")}
