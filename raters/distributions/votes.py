"""Votes for one of two sides."""

from __future__ import annotations

from typing import Any

import numpyro.distributions as dist
from numpyro.distributions import constraints


def votes_of(logits: Any, count: Any) -> dist.Distribution:
    """Votes for the first side out of `count`, or single votes where it is None."""
    return dist.Bernoulli(logits=logits) if count is None else Votes(logits, count)


class Votes(dist.BinomialLogits):
    r"""Binomial votes for one of two sides, with half votes for ties.

    .. math::

        \log p(y \mid n, \psi) = \log\Gamma(n + 1) - \log\Gamma(y + 1) - \log\Gamma(n - y + 1)
            + y\psi - n \log(1 + e^\psi)

    On whole numbers this is the Binomial, and its draws are whole numbers.

    Parameters
    ----------
    logits : array
        Log-odds of a vote for the first side.
    total_count : array
        Number of votes.

    Examples
    --------
    >>> from raters.distributions import Votes
    >>> round(float(Votes(logits=0.0, total_count=1).log_prob(0.5)), 3)   # a tie
    -0.452
    """

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """Interval from 0 to the number of votes."""
        return constraints.interval(0.0, self.total_count)
