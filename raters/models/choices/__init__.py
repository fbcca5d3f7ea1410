"""Models of choices from sets."""

from raters.models.choices.correlated import MultinomialProbit, NestedLogit
from raters.models.choices.latent_class_logit import LatentClassLogit
from raters.models.choices.mixed_logit import MixedLogit
from raters.models.choices.multinomial_logit import MultinomialLogit

__all__ = ["LatentClassLogit", "MixedLogit", "MultinomialLogit", "MultinomialProbit", "NestedLogit"]
