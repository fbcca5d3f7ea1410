"""Mirrored worlds: what a model declares by `raters.model.Sign` or `raters.model.Exchange` leaves
the likelihood as it is, so that the prior alone says how probable a point and its image are."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int

from raters.inference import renaming
from raters.judgements.base import Judgements
from raters.model import Exchange, Mirror, Model, Sign, Values
from raters.program.densities import log_joint, log_prior


class Images(NamedTuple):
    """Mirror images of a point under one symmetry.

    Attributes
    ----------
    symmetry : Sign or Exchange
    orders : tuple of tuple of int
        Orders of the classes that may take the place of the declared one, with the inverse of each;
        an empty one for a change of sign. They depend on the data alone.
    chances : tuple of float
        Probability with which a sampler tries each of them, the same for an order and its inverse.
    broken : bool
        True where known classes break the symmetry, so that the likelihood has a say too.
    """

    symmetry: Mirror
    orders: tuple[tuple[int, ...], ...] = ((),)
    chances: tuple[float, ...] = (1.0,)
    broken: bool = False

    def tried(
        self, rng: np.random.Generator, size: tuple[int, ...] = ()
    ) -> Int[np.ndarray, "*size true_class"]:
        """Return orders to try, shape (*size, class); of one, no random number is drawn.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : tuple of int

        Returns
        -------
        int array, shape (*size, class)
        """
        orders = np.array(self.orders, int)
        if len(orders) == 1:
            return np.broadcast_to(orders[0], (*size, orders.shape[1]))
        return orders[rng.choice(len(orders), size, p=self.chances)]


def images(model: Model[Any], data: Judgements) -> tuple[Images, ...]:
    """Mirror images that leave the likelihood of these data as it is, but for known classes.

    Parameters
    ----------
    model : Model
    data : Judgements

    Returns
    -------
    tuple of Images
    """
    found = []
    for symmetry in model.symmetries:
        if isinstance(symmetry, Sign):
            found.append(Images(symmetry))
        elif isinstance(symmetry, Exchange):
            number = len(data.coords[data.axes[str(data.known)]])
            if number == 2 or not (symmetry.negated or symmetry.complemented):
                chances = renaming.orders(data, number)
                found.append(
                    Images(symmetry, tuple(chances), tuple(chances.values()), data.num_known > 0)
                )
    return tuple(found)


def mirrored(symmetry: Mirror, values: Values, order: Any = ()) -> Values:
    """The mirror image of a point, or of draws.

    Parameters
    ----------
    symmetry : Sign or Exchange
    values : dict of str to array
        Of NumPy, or of JAX within a compiled function: outside of one, JAX would compile for each
        shape.
    order : int array, shape (class,)
        Class k of the image is class ``order[k]`` of the point, in all sites.

    Returns
    -------
    dict of str to array
    """
    if isinstance(symmetry, Sign):
        moved = values | {name: -values[name] for name in symmetry.sites}
        places = {name: np.array(places) for name, places in symmetry.exchanged}
        return moved | {name: moved[name].take(to, axis=-1) for name, to in places.items()}
    moved = values | {name: values[name].take(order, axis=axis) for name, axis in symmetry.sites}
    moved |= {name: -moved[name] for name in symmetry.negated}
    return moved | {name: 1 - moved[name] for name in symmetry.complemented}


def log_odds(
    model: Model[Any], symmetry: Mirror, broken: bool, data: Any, values: Values, order: Any
) -> Float[Array, ""]:
    r"""Log odds of the mirror image of a point against the point itself.

    .. math:: \log p(g\theta \mid y) - \log p(\theta \mid y) = \log p(g\theta) - \log p(\theta)

    Parameters
    ----------
    model : Model
    symmetry : Sign or Exchange
    broken : bool
        Whether known classes break the symmetry.
    data : Judgements
        Any part of the data, since the prior does not depend on them; all where known classes
        break the symmetry.
    values : dict of str to array
    order : int array, shape (class,)

    Returns
    -------
    array, shape ()
    """
    density = log_joint if broken else log_prior
    there = density(model, data, mirrored(symmetry, values, order))
    return there - density(model, data, values)


@partial(jax.jit, static_argnums=(0, 1, 2))
def _image(
    model: Model[Any], symmetry: Mirror, broken: bool, data: Any, values: Values, order: Array
) -> tuple[Values, Float[Array, ""]]:
    """The mirror image, and its log odds."""
    odds = log_odds(model, symmetry, broken, data, values, order)
    return mirrored(symmetry, values, order), odds


def step(
    model: Model[Any],
    moves: tuple[Images, ...],
    row: Any,
    data: Any,
    values: Values,
    rng: np.random.Generator,
) -> Values:
    """Metropolis step to a mirror image, which leaves the posterior invariant.

    Parameters
    ----------
    model : Model
    moves : tuple of Images
        Of each, one image is tried, at random.
    row : Judgements
        Any part of the data, for images that leave the likelihood as it is.
    data : Judgements
    values : dict of str to array
    rng : numpy.random.Generator

    Returns
    -------
    dict of str to array
        The point, or its mirror image; without images, no random number is drawn.
    """
    for move in moves:
        part = data if move.broken else row
        image, odds = _image(model, move.symmetry, move.broken, part, values, move.tried(rng))
        if np.log(rng.random()) < float(odds):
            values = image
    return values
