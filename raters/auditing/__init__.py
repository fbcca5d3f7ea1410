"""Audits of annotators, and their agreement without a model."""

from importlib import import_module
from typing import Any

from raters.auditing.audit import Audit, drop
from raters.auditing.truth.calibration import Calibration as Calibration

__all__ = ["Audit", "choice_shares", "drop"]


def __getattr__(name: str) -> Any:
    """Import `choice_shares` from its kind of judgement, which lies in a higher layer."""
    if name == "choice_shares":
        return import_module("raters.kinds.choices").choice_shares
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
