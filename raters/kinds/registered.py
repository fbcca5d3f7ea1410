"""The kinds of judgement that raters comes with, registered."""

from raters.kinds import register
from raters.kinds.choices import CHOICES
from raters.kinds.comparisons import COMPARISONS
from raters.kinds.demonstrations import DEMONSTRATIONS
from raters.kinds.labels import LABELS
from raters.kinds.rankings import RANKINGS
from raters.kinds.ratings import RATINGS
from raters.kinds.responses import GRADED_RESPONSES, RESPONSES

ALL = (CHOICES, COMPARISONS, DEMONSTRATIONS, LABELS, RANKINGS, RATINGS, RESPONSES, GRADED_RESPONSES)
for kind in ALL:
    register(kind)
