"""What a fit and its audit say, as plain values: what the command line summarises, and what a report is written from."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from raters.agreement import agreement
from raters.audit import Audit
from raters.data import Comparisons
from raters.errors import DataError
from raters.labels import Labels

STATISTICS = {
    "observed_agreement": "observed agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
}


def data_facts(data: Comparisons | Labels) -> dict[str, Any]:
    """How much was judged, and by how many."""
    sizes: dict[str, Any] = {"items": data.num_items, "annotators": data.num_annotators}
    if isinstance(data, Comparisons):
        return sizes | {"votes": data.num_votes}
    known = 0 if data.truth is None else int((np.asarray(data.truth) >= 0).sum())
    sizes["labels"] = data.num_labels
    return sizes | {"classes": data.classes, "known_truths": known, "features": data.feature_names[1:]}


def ranking(reward: Any, level: float) -> pd.DataFrame:
    """Items from the highest reward to the lowest, with what the draws (chain, draw, item) say about their ranks.

    Columns: ``item``, ``rank`` (by posterior mean reward), ``reward`` with ``reward_low`` and ``reward_high``, ``rank_low``
    and ``rank_high`` (interval of the rank), ``p_best`` (highest of all), ``p_above_next`` (above the item that follows).
    """
    reward = reward.stack(sample=("chain", "draw")).transpose("sample", "item")
    draws = reward.values
    order = np.argsort(-draws.mean(0), kind="stable")
    draws, names = draws[:, order], reward["item"].values[order]
    ranks = np.argsort(np.argsort(-draws, axis=1), axis=1) + 1
    tails = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.quantile(draws, tails, axis=0)
    rank_low, rank_high = np.quantile(ranks, tails, axis=0, method="nearest")
    return pd.DataFrame(
        {
            "item": names,
            "rank": np.arange(1, len(names) + 1),
            "reward": draws.mean(0),
            "reward_low": low,
            "reward_high": high,
            "rank_low": rank_low,
            "rank_high": rank_high,
            "p_best": (ranks == 1).mean(0),
            "p_above_next": np.append((draws[:, :-1] > draws[:, 1:]).mean(0), np.nan),
        }
    )


def audit_frame(found: Audit) -> pd.DataFrame:
    """The audit as a table, least trusted first."""
    frame = found.table.to_dataframe().reset_index()
    return frame.sort_values(["p_below", "competence"], ascending=[False, True], kind="stable", ignore_index=True)


def audit_summary(found: Audit) -> dict[str, Any]:
    """What a summary says of the annotators."""
    return {
        "rule": found.rule,
        "flagged": found.flagged,
        "expected_share_of_wrong_drops": found.wrong_drops,
        "annotators": audit_frame(found),
    }


def items_frame(items: xr.Dataset) -> pd.DataFrame:
    """Item labels as a table, least certain first."""
    frame = items.to_dataframe().reset_index()
    return frame.sort_values("probability", kind="stable", ignore_index=True)


def agreement_or_why_not(labels: Labels, level: float) -> tuple[pd.DataFrame | None, str]:
    """Agreement of the annotators, or why there is none to measure."""
    try:
        return agreement(labels, level=level), ""
    except DataError:
        return None, "Agreement cannot be measured: no item has labels by two annotators."


def fit_facts(result: xr.DataTree) -> dict[str, Any]:
    """What a result records about its own making, without the names of items and annotators."""
    return {
        str(name): value
        for name, value in result.attrs.items()
        if name not in ("items", "annotators", "ordered", "classes", "feature_names")
    }


def versions() -> dict[str, str]:
    """Versions of what produced the numbers."""
    return {name: version(name) for name in ("raters", "numpyro", "jax", "arviz", "xarray", "numpy")}


def plain(value: Any) -> Any:
    """The value as strict JSON has it: what is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, pd.DataFrame):
        return plain(value.to_dict("records"))
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def as_json(values: Mapping[str, Any]) -> str:
    """Strict JSON of `values`."""
    return json.dumps(plain(values), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_json(values: Mapping[str, Any], path: Path) -> None:
    """Strict JSON of `values`, as a file."""
    path.write_text(as_json(values), encoding="utf-8")


def percent(share: float) -> str:
    """A probability as people read it: never 0 % or 100 % but where it is."""
    if math.isnan(share):
        return "–"
    return f"{share:.0%}" if share in (0.0, 1.0) or 0.005 <= share < 0.995 else ("<1%" if share < 0.5 else ">99%")


def span(low: float, high: float) -> str:
    """The two ends of an interval."""
    return f"{low:.2f}…{high:.2f}"
