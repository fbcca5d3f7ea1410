"""Sections of a report on demonstrations."""

from __future__ import annotations

import pandas as pd

from raters import kinds
from raters.kinds.demonstrations import audit
from raters.kinds.sections import shown, signs


def reward(context: kinds.AuditContext) -> kinds.Section | None:
    """Coefficients of the reward, as far as demonstrations can tell them."""
    if "coefficient" not in context.program.sites:
        return None
    table = audit.rewards(context.program, context.result, context.level).to_dataframe()
    table = table.reset_index().sort_values("coefficient", ascending=False, kind="stable")
    return kinds.Section(
        key="reward",
        findings=(signs(table, "feature"),),
        columns=shown("feature coefficient p_positive identified"),
        table=table,
        limits=(kinds.finding("one_goal"),),
    )


def policy(context: kinds.AuditContext) -> kinds.Section:
    """Most probable action in each state with a choice, those most demonstrated first."""
    policies = audit.policies(context.program, context.result)
    probability = policies["probability"]
    table = pd.DataFrame(
        {
            "state": policies["state"].values.astype(str),
            "action": policies["action"].values[probability.values.argmax(1)].astype(str),
            "probability": probability.values.max(1),
            "steps": policies["steps"].values,
        }
    )[context.program.data.num_choices() > 1]
    table = table.sort_values("steps", ascending=False, kind="stable", ignore_index=True)
    unseen = int((table["steps"] == 0).sum())
    learned = "coefficient" in context.program.sites
    return kinds.Section(
        key="policy",
        findings=(kinds.finding("policy", by_reward=learned, unseen=unseen, of=len(table)),),
        columns=shown("state action probability steps"),
        table=table,
    )
