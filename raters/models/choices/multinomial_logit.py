"""Multinomial logit: the largest utility is chosen, up to independent noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from raters.models.choices._utility import Utility


@dataclass(frozen=True)
class MultinomialLogit(Utility):
    r"""Multinomial logit, also called the conditional logit: utilities are sums of terms, and noise
    is independent.

    .. math::

        P(j \mid S) = \frac{e^{u_{Sj}}}{\sum_{k \in S} e^{u_{Sk}}}, \qquad
        u_{Sj} = \sum_f \beta_f x_{Sjf} + \alpha_j + \sum_g \gamma_{jg} z_{Sg}

    with features x of the alternatives, a constant :math:`\alpha` of each, and features z of the
    choosers. Coefficients are in the user's units. Priors are in standard deviations of the
    features, within sets for those of the alternatives, between sets for those of the choosers:

    .. math::

        \beta_f \sim \mathrm{Normal}(0, c / \mathrm{sd}_f), \qquad
        \gamma_{jg} \sim \mathrm{Normal}(0, c / \mathrm{sd}_g), \qquad
        \alpha_j \sim \mathrm{Normal}(0, d)

    Constants add up to 0, and so do the coefficients of each feature of the choosers.

    Parameters
    ----------
    features, constants, interactions : bool
        Terms of the utility: features of the alternatives, a constant of each (turn it off where
        the names are mere places in a list), and coefficients of the features of the choosers.
    coefficient_scale : float
        Standard deviation c of the change of utility with one standard deviation of a feature.
    constant_scale : float
        Standard deviation d of the constants.

    Examples
    --------
    >>> import raters as rt
    >>> choices = rt.Choices.from_wide(
    ...     {"took": ["car", "bus", "car"], "car": [9, 8, 5], "bus": [4, 3, 4]}, choice="took",
    ...     alternatives=["car", "bus"], features={"price": ["car", "bus"]})
    >>> nuts = rt.NUTS(draws=500, warmup=300, chains=2)
    >>> result = rt.fit(rt.MultinomialLogit(), choices, nuts, seed=0, progress=False)
    >>> result.posterior["coefficient"].dims
    ('chain', 'draw', 'feature')
    """

    reference: ClassVar[str] = "mcfadden1974conditional"
