"""Audits of annotators, and their agreement without a model."""

from raters.auditing.audit import Audit
from raters.auditing.calibration import Calibration as Calibration
from raters.auditing.choices import choice_shares
from raters.auditing.dropping import drop

__all__ = ["Audit", "choice_shares", "drop"]
