"""Reports of an audit, from one dictionary of facts."""

from raters.reporting.report import Report

__all__ = ["Report"]
