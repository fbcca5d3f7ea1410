"""Models of choices from sets."""

from raters.models.choices.multinomial_logit import MultinomialLogit

__all__ = ["MultinomialLogit"]
