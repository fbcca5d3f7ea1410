"""The kinds of judgement that raters comes with, registered."""

from raters.families.choices import CHOICES
from raters.families.comparisons import COMPARISONS
from raters.families.demonstrations import DEMONSTRATIONS
from raters.families.labels import LABELS
from raters.families.rankings import RANKINGS
from raters.families.ratings import RATINGS
from raters.families.responses import GRADED_RESPONSES, RESPONSES

__all__ = [
    "CHOICES",
    "COMPARISONS",
    "DEMONSTRATIONS",
    "GRADED_RESPONSES",
    "LABELS",
    "RANKINGS",
    "RATINGS",
    "RESPONSES",
]
