"""The kinds of judgement that raters comes with, registered."""

from raters.families.choices import CHOICES
from raters.families.comparisons import COMPARISONS
from raters.families.demonstrations import DEMONSTRATIONS
from raters.families.labels import LABELS
from raters.families.rankings import RANKINGS
from raters.families.ratings import RATINGS
from raters.families.responses import GRADED_RESPONSES, RESPONSES
from raters.kinds import register

ALL = (CHOICES, COMPARISONS, DEMONSTRATIONS, LABELS, RANKINGS, RATINGS, RESPONSES, GRADED_RESPONSES)
for kind in ALL:
    register(kind)
