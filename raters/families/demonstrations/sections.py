"""Report of demonstrations: columns of the audit's table, reasons, the reward and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from raters.auditing import demonstrations as audited
from raters.judgements.display import isolated
from raters.judgements.names import counted
from raters.kinds import AuditContext, Column, Section, Table
from raters.reporting.cells import write_csv
from raters.reporting.sentences import reason_of

# Probability of a sign from which on it is called known.
_KNOWN = 0.975

COLUMNS = (
    Column(
        "rationality",
        "rationality",
        "interval",
        "Rationality is 1 where the crowd is taken to be, 0 for one who acts at random, and below 0"
        " for one who acts against the goal of the crowd.",
        marks=(0.0, 1.0),
    ),
    Column(
        "competence",
        "competence",
        "interval",
        "Competence is the probability that a step is by the policy that all share, and not at"
        " random.",
        marks=(0.0, 1.0),
    ),
    Column(
        "agreement",
        "best action",
        "percent",
        "Best action is the share of the steps with a choice that take the most probable action of"
        " the policy below.",
    ),
    Column(
        "p_guessing",
        "P(random)",
        "percent",
        "P(random) is the probability that it is within twice {margin} of 0, a rationality relative"
        " to the crowd's mean, or that the whole crowd acts at random.",
    ),
    Column(
        "p_adversarial",
        "P(adversary)",
        "percent",
        "P(adversary) is the probability that rationality is below 0.",
    ),
)


def reason(row: Mapping[str, Any]) -> str:
    """Reason for a verdict: against the crowd's goal, at random, or neither."""
    if (adverse := row.get("p_adversarial", 0.0)) > max(row["p_guessing"], 0.5):
        return f"acts against the goal of the crowd (probability {adverse:.0%})"
    return reason_of(
        {"p_adversarial": 0.0} | dict(row), random=row["p_guessing"], random_text="acts at random"
    )


def reward(context: AuditContext) -> Section | None:
    """Coefficients of the reward, as far as demonstrations can tell them."""
    if "coefficient" not in context.program.sites:
        return None
    table = audited.rewards(context.program, context.result, context.level)
    frame = table.to_dataframe().reset_index()
    frame = frame.sort_values("coefficient", ascending=False, kind="stable")
    columns = (
        Column("feature", "feature", "name"),
        Column(
            "coefficient",
            "coefficient",
            "interval",
            "Coefficient: reward of one unit of the feature, in logits of a demonstrator of"
            " rationality 1, without what changes no policy, such as a constant.",
        ),
        Column("p_positive", "above 0", "percent", "Above 0: the probability that it is positive."),
        Column(
            "identified",
            "identified",
            "percent",
            "Identified: the share of the feature that demonstrations can tell.",
        ),
    )
    sentence = _signs(frame.to_dict("records"))
    return Section(
        key="reward",
        title="Reward",
        sentence=sentence,
        headline=sentence,
        tables=(
            Table(
                "coefficients",
                "Coefficients of the reward",
                columns,
                frame.to_dict("records"),
                both_ends=True,
            ),
        ),
        facts={"num_features": len(frame)},
        files={"reward.csv": lambda path: write_csv(frame, path)},
        limits=(
            "The reward is the one that fits all demonstrators together if they have one goal and"
            " the transitions are as given; whether it is the one that is wanted, demonstrations"
            " alone do not tell. Groups with goals of their own may look like careless ones: fit"
            " them separately and compare.",
        ),
    )


def _signs(rows: list[dict[Any, Any]]) -> str:
    """Sentence on the features that demonstrators seek and avoid."""
    sought = [isolated(row["feature"]) for row in rows if row["p_positive"] >= _KNOWN]
    avoided = [isolated(row["feature"]) for row in rows if row["p_positive"] <= 1 - _KNOWN]
    parts = [
        f"{what} {_some(names)}"
        for names, what in ((sought, "seek"), (avoided[::-1], "avoid"))
        if names
    ]
    text = f"Demonstrators {' and '.join(parts)}" if parts else ""
    left = len(rows) - len(sought) - len(avoided)
    if left:
        text += f"{'; of' if text else 'Of'} {counted(left, 'feature')} the sign is open"
    return f"{text}."


def _some(names: list[str]) -> str:
    """Up to five names, and how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def policy(context: AuditContext) -> Section:
    """Most probable action in each state."""
    table = audited.policies(context.program, context.result)
    probs, steps = table["probability"].values, table["steps"].values
    free = context.program.data.num_choices() > 1
    best = probs.argmax(1)
    rows: list[dict[str, Any]] = [
        {
            "state": str(table["state"].values[state]),
            "action": str(table["action"].values[best[state]]),
            "probability": float(probs[state, best[state]]),
            "steps": int(steps[state]),
        }
        for state in np.flatnonzero(free)
    ]
    rows.sort(key=lambda row: -row["steps"])
    unseen = sum(row["steps"] == 0 for row in rows)
    seen = f"Of {counted(len(rows), 'state')} with a choice, {unseen:,} were never demonstrated"
    learned = "coefficient" in context.program.sites
    sentence = f"{seen}{'; their policy follows from the reward' if learned and unseen else ''}."
    whose = "a demonstrator of rationality 1" if learned else "the policy that all share"
    columns = (
        Column("state", "state", "name"),
        Column("action", "action", "text", f"Action: the most probable one of {whose}."),
        Column("probability", "probability", "percent"),
        Column("steps", "steps", "whole", "Steps: how many were demonstrated in the state."),
    )
    every = table["probability"].to_dataframe().reset_index()
    return Section(
        key="policy",
        title="Policy",
        sentence=sentence,
        tables=(Table("policy", "Most probable actions", columns, rows),),
        facts={"num_states": len(rows), "never_demonstrated": unseen},
        files={"policy.csv": lambda path: write_csv(every, path)},
    )
