"""Choices from sets drawn under known coefficients and constants."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from raters.datasets._generators import Truth, check_amount
from raters.errors.validation import checked, positive, share, whole
from raters.judgements.choices import Choices


class GeneratedChoices(NamedTuple):
    """Choices, and what generated them.

    Attributes
    ----------
    choices : Choices
    truth : dict of str to array
        Parameters by name.
    """

    choices: Choices
    truth: Truth


@checked
def choice_crowd(
    num_choosers: int = 100,
    choices_per_chooser: int = 5,
    num_alternatives: int = 4,
    num_features: int = 2,
    *,
    seed: int,
    available: float = 0.8,
    spread: float = 0.0,
    correlation: float = 0.0,
) -> GeneratedChoices:
    """Generate choices from sets, under `MultinomialLogit`, or with a `spread` under `MixedLogit`.

    Parameters
    ----------
    num_choosers, choices_per_chooser : int
    num_alternatives : int
        At least 2.
    num_features : int
        Number of features of the alternatives, standard normal in each set.
    seed : int
        Seed of ``numpy.random.default_rng``.
    available : float
        Probability that an alternative is offered, above 0; each set offers two or more.
    spread : float
        Standard deviation of the choosers' own coefficients around those of all; 0 for choosers who
        all have the same.
    correlation : float
        Correlation between any two coefficients of a chooser, from 0 up to less than 1.

    Returns
    -------
    GeneratedChoices
        ``choices``, and ``truth`` with ``coefficient`` (feature) and ``constant`` (alternative);
        with a spread also ``own_coefficient`` (annotator, feature).

    Raises
    ------
    SettingError
        When a number is too small, `available` is no share, or a spread or a correlation is not
        possible.

    Examples
    --------
    >>> import raters as rt
    >>> choices, truth = rt.datasets.choice_crowd(seed=0)
    >>> choices.num_choices, truth["coefficient"].shape
    (500, (2,))
    """
    for name, number in {
        "num_choosers": num_choosers,
        "choices_per_chooser": choices_per_chooser,
        "num_features": num_features,
    }.items():
        whole(name, number)
    whole("num_alternatives", num_alternatives, least=2)
    if available != 1:
        share("available", available)
    if spread != 0:
        positive("spread", spread)
    if correlation != 0:
        share("correlation", correlation)
    number = num_choosers * choices_per_chooser
    check_amount(sets=number, num_alternatives=num_alternatives, num_features=num_features)
    rng = np.random.default_rng(seed)
    constant = rng.normal(0.0, 0.7, num_alternatives)
    truth = {
        "coefficient": rng.normal(0.0, 1.0, num_features),
        "constant": constant - constant.mean(),
    }
    features = rng.normal(size=(number, num_alternatives, num_features))
    offered = _offered(rng, (number, num_alternatives), available)
    own = truth["coefficient"]
    if spread:
        apart = rng.normal(size=(num_choosers, num_features)) * np.sqrt(1 - correlation)
        apart += rng.normal(size=(num_choosers, 1)) * np.sqrt(correlation)
        truth["own_coefficient"] = own + spread * apart
        own = np.repeat(truth["own_coefficient"], choices_per_chooser, axis=0)[:, None]
    utility = (features * own).sum(2) + truth["constant"]
    noisy = np.where(offered, utility + rng.gumbel(size=utility.shape), -np.inf)
    chosen = noisy.argmax(1)[:, None] == np.arange(num_alternatives)
    row, alternative = np.nonzero(offered)
    names = [f"feature {place}" for place in range(num_features)]
    table = {
        "set": row,
        "alternative": alternative,
        "chooser": row // choices_per_chooser,
        "chosen": chosen[row, alternative].astype(int),
    } | dict(zip(names, features[row, alternative].T, strict=True))
    choices = Choices.from_frame(
        table,
        set="set",
        alternative="alternative",
        chosen="chosen",
        annotator="chooser",
        features=names,
        alternatives=range(num_alternatives),
        annotators=range(num_choosers),
    )
    return GeneratedChoices(choices, truth)


def _offered(
    rng: np.random.Generator, shape: tuple[int, int], available: float
) -> Bool[np.ndarray, "set alternative"]:
    """Alternatives that each set offers: two at random, and the others by chance."""
    noise = rng.random(shape)
    always = noise.argsort(1).argsort(1) < 2
    offered: Bool[np.ndarray, "set alternative"] = always | (noise < available)
    return offered
