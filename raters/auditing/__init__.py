"""Audits of annotators, and their agreement without a model."""

from raters.auditing.audit import Audit
from raters.auditing.choices import choice_shares
from raters.auditing.dropping import drop
from raters.auditing.truth.calibration import Calibration as Calibration

__all__ = ["Audit", "choice_shares", "drop"]
