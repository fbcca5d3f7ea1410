"""Audits of annotators, and their agreement without a model."""

from raters.auditing.audit import Audit
from raters.auditing.calibration import Anchor, Calibration
from raters.auditing.choices import choice_shares
from raters.auditing.dropping import drop

__all__ = ["Anchor", "Audit", "Calibration", "choice_shares", "drop"]
