"""The kinds of judgement that raters comes with, registered."""

from raters.families.choices import CHOICES
from raters.families.comparisons import COMPARISONS
from raters.families.labels import LABELS
from raters.families.rankings import RANKINGS
from raters.families.responses import RESPONSES

__all__ = ["CHOICES", "COMPARISONS", "LABELS", "RANKINGS", "RESPONSES"]
