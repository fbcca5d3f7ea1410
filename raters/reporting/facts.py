"""Facts of a fit and its audit as plain values, for reports and for summaries."""

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

from raters.auditing.agreement import agreement
from raters.auditing.audit import Audit
from raters.errors import DataError
from raters.fitting.storage import shown
from raters.judgements.base import Judgements
from raters.judgements.names import plural
from raters.judgements.stored import imported_class
from raters.kinds import kind_of

STATISTICS = {
    "observed_agreement": "observed agreement",
    "specific_agreement": "specific agreement",
    "krippendorff_alpha": "Krippendorff's alpha",
    "fleiss_kappa": "Fleiss' kappa",
    "gwet_ac1": "Gwet's AC1",
    "kendall_w": "Kendall's W",
}


def plural_noun(axis: str) -> str:
    """Plural of the name of an axis, as a sentence has it."""
    return plural(axis).replace("_", " ")


def data_facts(data: Judgements) -> dict[str, Any]:
    """Sizes of the data."""
    latent = None if data.known is None else data.axes[data.known]
    axes = [axis for axis in data.question_axes() if axis != latent]
    sizes: dict[str, Any] = {plural_noun(axis): len(data.coords[axis]) for axis in axes}
    sizes[kind_of(data).words.many] = data.num_judgements
    if data.answer in data.axes:
        sizes["classes"] = list(data.coords[data.axes[data.answer]])
    if data.known is not None:
        sizes["known_truths"] = data.num_known
    if "feature" in data.names:
        sizes["features"] = [name for name in data.coords["feature"] if name != "intercept"]
    return sizes


def ranking(reward: xr.DataArray, level: float) -> pd.DataFrame:
    """Items from the highest reward to the lowest, with intervals of their ranks."""
    stacked = reward.stack(sample=("chain", "draw")).transpose("sample", "item")
    draws = stacked.values
    order = np.argsort(-draws.mean(0), kind="stable")
    draws, names = draws[:, order], stacked["item"].values[order]
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


def audit_frame(audit: Audit) -> pd.DataFrame:
    """The audit as a table, least trusted first."""
    frame = audit.table.to_dataframe().reset_index()
    return frame.sort_values(
        ["p_below", audit.judged], ascending=[False, True], kind="stable", ignore_index=True
    )


def audit_summary(audit: Audit) -> dict[str, Any]:
    """Verdicts of an audit, the rule behind them, and its table."""
    return {
        "stands_on": audit.anchor.sentence,
        "doubts": list(audit.anchor.doubts),
        "rule": audit.rule,
        "flagged": audit.flagged,
        "expected_share_of_wrong_drops": audit.wrong_drops,
        plural_noun(audit.judge): audit_frame(audit),
    }


def items_frame(items: xr.Dataset) -> pd.DataFrame:
    """Item labels as a table, least certain first."""
    frame = items.to_dataframe().reset_index()
    return frame.sort_values("probability", kind="stable", ignore_index=True)


def agreement_or_why_not(data: Judgements, level: float) -> tuple[pd.DataFrame | None, str]:
    """Agreement of those who are audited, or the sentence that says why it cannot be measured."""
    try:
        return agreement(data, level=level), ""
    except DataError:
        kind = kind_of(data)
        text = f"no question has {kind.words.many} by two {plural_noun(data.judge)}"
        return None, f"Agreement cannot be measured: {text}."


def fit_facts(result: xr.DataTree) -> dict[str, Any]:
    """Attributes of a result about the fit, without those about the data."""
    container: Any = imported_class(result.attrs["data"], (Judgements,))
    about_data = {"data", *container.statics(derived=True)}
    attrs = {str(name): value for name, value in result.attrs.items()}
    texts = {name: shown(attrs[name]) for name in ("model", "backend") if name in attrs}
    return {name: value for name, value in (attrs | texts).items() if name not in about_data}


def versions() -> dict[str, str]:
    """Versions of the packages that produced the numbers."""
    return {
        name: version(name) for name in ("raters", "numpyro", "jax", "arviz", "xarray", "numpy")
    }


def plain(value: Any) -> Any:
    """The value as strict JSON has it: a number that is not finite becomes None."""
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
    return (
        f"{share:.0%}"
        if share in (0.0, 1.0) or 0.005 <= share < 0.995
        else ("<1%" if share < 0.5 else ">99%")
    )


def span(low: float, high: float) -> str:
    """The two ends of an interval."""
    return f"{low:.2f}…{high:.2f}"
