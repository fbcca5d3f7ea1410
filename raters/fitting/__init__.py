"""The verbs that run and read a model: fit, simulate, predict and score."""

from raters.fitting.fit import describe
from raters.fitting.groups import with_groups
from raters.fitting.parts import part

__all__ = ["describe", "part", "with_groups"]
