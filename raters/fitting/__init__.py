"""The verbs that run and read a model: fit, simulate, predict and score."""

from raters.fitting.describe import describe
from raters.fitting.groups import with_groups
from raters.fitting.parts import Part, part
from raters.fitting.result import model_of

__all__ = ["Part", "describe", "model_of", "part", "with_groups"]
