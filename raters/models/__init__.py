"""Models of judgements, by kind."""

from raters.models import choices, comparisons, demonstrations, labels, rankings, ratings, responses
from raters.models.choices import *
from raters.models.comparisons import *
from raters.models.demonstrations import *
from raters.models.joint import JointModel
from raters.models.labels import *
from raters.models.numpyro_program import numpyro_model
from raters.models.rankings import *
from raters.models.ratings import *
from raters.models.responses import *

__all__ = ["JointModel", "numpyro_model"]
__all__ += choices.__all__
__all__ += comparisons.__all__
__all__ += demonstrations.__all__
__all__ += labels.__all__
__all__ += rankings.__all__
__all__ += ratings.__all__
__all__ += responses.__all__
