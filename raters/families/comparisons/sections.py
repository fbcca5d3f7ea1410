"""Report of comparisons: columns of the audit's table, reasons for verdicts, and the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from raters.kinds import AuditContext, Column, Section, Table
from raters.reporting import facts
from raters.reporting.sentences import listing, reason_of

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
        "accuracy",
        "accuracy",
        "percent",
        "Accuracy is the probability of choosing the better of two random items.",
    ),
    Column(
        "p_guessing",
        "P(guess)",
        "percent",
        "P(guess) is the probability that the accuracy is within {margin} of one half.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "P(adversary) is the probability that competence is below 0.",
    ),
)

_RANKING = (
    Column("rank", "rank", "whole"),
    Column("item", "item", "name"),
    Column("reward", "reward", "interval"),
    Column("rank", "rank lies in", "range"),
    Column("p_best", "P(best)", "percent"),
)


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: an adversary, a guesser, or neither."""
    return reason_of(row, random=row["p_guessing"], random_text="answers as if by chance")


def ranking(context: AuditContext) -> Section | None:
    """Items by their rewards; of a mixture, a ranking for each type of annotator."""
    if "reward" not in context.program.sites:
        return None
    level = context.audit.level
    reward = context.result["posterior"].dataset["reward"]
    types = _types(context) if context.program.latent is not None else []
    rewards = [reward.sel(type=kind["type"], drop=True) for kind in types] or [reward]
    rankings = [facts.ranking(part, level).to_dict("records") for part in rewards]
    headings = [
        f"Type {kind['type']}: {facts.percent(kind['share'])} of annotators" for kind in types
    ]
    caption = "Items, highest reward first; a reward of 0 is the average item"
    tables = tuple(
        Table("ranking", caption, _RANKING, rows, heading=heading)
        for rows, heading in zip(rankings, headings or [""], strict=True)
    )
    sentence = _of_types(types, rankings) if types else _of_all(rankings[0], level)
    return Section(
        key="items",
        title="Which items are preferred",
        sentence=sentence,
        tables=tables,
        facts={"num_items": reward.sizes["item"]} | ({"types": types} if types else {}),
    )


def _types(context: AuditContext) -> list[dict[str, Any]]:
    """Types of annotators with their posterior mean shares."""
    share = context.result["posterior"].dataset["type_weight"].mean(("chain", "draw"))
    return [
        {"type": kind, "share": float(share.sel(type=kind))}
        for kind in share["type"].values.tolist()
    ]


def _of_types(types: Sequence[Mapping[str, Any]], rankings: Sequence[Any]) -> str:
    first = [
        f"{rows[0]['item']} of type {kind['type']} ({facts.percent(kind['share'])})"
        for kind, rows in zip(types, rankings, strict=True)
    ]
    return (
        f"Annotators are of {len(types)} types, and each is judged by the ranking of theirs."
        f" First is {listing(first)}."
    )


def _of_all(rows: Sequence[Mapping[str, Any]], level: float) -> str:
    """The first and the last item, and how many neighbours are told apart."""
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
        f"{rows[0]['item']} is first (with probability {facts.percent(rows[0]['p_best'])} the best"
        f" of all), and {rows[-1]['item']} last. {neighbours} with {facts.percent(level)}"
        " probability or more."
    )
