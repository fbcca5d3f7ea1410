"""Terms: parts of a predictor of comparisons, which sums and products combine."""

from __future__ import annotations

import abc
import dataclasses
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jaxtyping import Array, Float

from raters.errors import Reason, refuse
from raters.errors.words import words_of
from raters.judgements.comparisons import Comparisons
from raters.model import Scale, Sign, Symmetry, Values

# Comparisons, or rankings; a term says which.
Data = Any
Axis = tuple[str, int]
worded = words_of("raters.terms")

# What a term needs of the data: which parameter is wrong without it, the problem, and the remedy.
NEEDS = {
    "first": (
        "position_bias",
        "needs the order of presentation, and these votes have none",
        "name the columns by `first`, `second` and `outcome`, or leave it out",
    ),
    "features": (
        "covariates",
        "needs features of the two sides, and these votes have none",
        "name the columns of the `features`",
    ),
    "stratum": (
        "strata",
        "needs to know the stratum of each vote, and these votes have none",
        "name the column of the `stratum`, or leave it out",
    ),
}


class Term(abc.ABC):
    """A part of a predictor: a frozen dataclass with settings, which samples its own sites.

    Terms are added and multiplied: ``Competence("signed") * (Rewards() + Strata())``. A subclass
    writes `sample` and `start`; the rest has defaults.

    Attributes
    ----------
    needs : tuple of str
        What it reads of the data: names of columns, and ``"first"`` (the order of presentation),
        ``"features"`` or ``"stratum"``.
    linear : tuple of str, or None
        Sites with normal priors about 0, or a competence, in which it is linear and which it needs
        all: a product of two such terms is invariant to their scale. None where it is not known.
    scales : tuple of str
        Learned scales of these sites.
    flipped : tuple of str, or None
        Sites on the real line whose common change of sign changes that of the term; `linear`.
    exchanged : tuple
        Shares of types, and the order of the types, in which they change the sign of the term.
    symmetries : tuple of Symmetry
        Transformations that leave its part of the predictor unchanged.
    parts : tuple of Term
        Terms that it is made of.
    reference : str
        Keys of works that a model with it cites.
    """

    reference: ClassVar[str] = ""
    needs: tuple[str, ...] = ()
    linear: tuple[str, ...] | None = None
    scales: tuple[str, ...] = ()
    symmetries: tuple[Symmetry, ...] = ()
    exchanged: ClassVar[tuple[tuple[str, tuple[int, ...]], ...]] = ()
    parts: tuple[Term, ...] = ()

    @abc.abstractmethod
    def sample(self, data: Data) -> Float[Array, " *row"]:
        """Sample the sites, and return what they add to the log-odds of each row.

        Codes such as ``data.first`` index the sites; with types of annotators they have an axis of
        the types behind that of the rows, and so has the result.
        """

    @abc.abstractmethod
    def start(self, data: Data) -> Values:
        """Values of the sites from which samplers set out."""

    @property
    def flipped(self) -> tuple[str, ...] | None:
        return self.linear

    def warnings(self, data: Data) -> tuple[str, ...]:
        """Sentences on what the data cannot tell of it."""
        return ()

    def why_not(self, data: Data) -> str | None:
        """Why it cannot be of these data, or None: something that it needs is missing."""
        for name in self.needs:
            present = {
                "first": data.ordered,
                "features": data.features is not None and bool(data.feature_names),
                "stratum": data.stratum is not None and bool(data.strata),
            }
            if name in NEEDS and not present[name]:
                parameter, problem, expected = NEEDS[name]
                return Reason(parameter, True, problem, expected)
            if name not in NEEDS and name not in data.column_names:
                problem = f"is a column that {self!r} needs, and these votes do not have it"
                expected = f"read them with columns=[{name!r}]"
                return Reason("columns", name, problem, expected)
        return None

    def axis_names(self, data: Data) -> dict[str, tuple[Any, ...]]:
        """Names along axes of its sites that are not axes of the data."""
        return {}

    # ---------------------------------------------------------------- combinations

    def every(self) -> tuple[Term, ...]:
        """It, and all terms that it is made of."""
        return (self, *(term for part in self.parts for term in part.every()))

    def prepare(self, data: Data) -> Any:
        """Sample sites that come before those of the factor of a product; see `Product`."""
        return None

    def finish(self, data: Data, ready: Any) -> Float[Array, " *row"]:
        """Sample the other sites."""
        return self.sample(data)

    def __add__(self, other: Term) -> Sum:
        return Sum((*_terms(self), *_terms(other)))

    def __mul__(self, other: Term) -> Product:
        _check(other)
        return Product(self, other)


def _check(term: Any) -> None:
    if not isinstance(term, Term):
        expected = "add and multiply terms, such as Competence() * Rewards() + PositionBias()"
        refuse("terms", term, "is no term", expected)


def _terms(term: Term) -> tuple[Term, ...]:
    _check(term)
    return term.terms if isinstance(term, Sum) else (term,)


class Prepared(Term):
    """Term that samples some of its sites before the factor of a product, and some behind it."""

    def sample(self, data: Data) -> Float[Array, " *row"]:
        return self.finish(data, self.prepare(data))


@dataclass(frozen=True)
class Combined(Term):
    """Several terms: what one of them needs, warns of and cannot be, all do."""

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(dict.fromkeys(name for part in self.parts for name in part.needs))

    @property
    def scales(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for part in self.parts for name in part.scales)

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        return tuple(one for part in self.parts for one in part.symmetries)

    def start(self, data: Data) -> Values:
        return {name: value for part in self.parts for name, value in part.start(data).items()}

    def warnings(self, data: Data) -> tuple[str, ...]:
        return tuple(text for part in self.parts for text in part.warnings(data))

    def why_not(self, data: Data) -> str | None:
        return next(filter(None, (part.why_not(data) for part in self.parts)), None)

    def axis_names(self, data: Data) -> dict[str, tuple[Any, ...]]:
        return {axis: names for p in self.parts for axis, names in p.axis_names(data).items()}


def _all(every: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    """All sites; None where those of a term are not known."""
    return None if None in every else tuple(name for one in every for name in one or ())


@dataclass(frozen=True)
class Sum(Combined):
    """Sum of terms."""

    terms: tuple[Term, ...]

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.terms))

    @property
    def parts(self) -> tuple[Term, ...]:  # type: ignore[override]
        return self.terms

    @property
    def linear(self) -> tuple[str, ...] | None:  # type: ignore[override]
        return _all([term.linear for term in self.terms])

    @property
    def flipped(self) -> tuple[str, ...] | None:
        return _all([term.flipped for term in self.terms])

    def sample(self, data: Data) -> Float[Array, " *row"]:
        value = self.terms[0].sample(data)
        for term in self.terms[1:]:
            value = value + term.sample(data)
        return value


@dataclass(frozen=True)
class Product(Combined):
    """Product of a factor, such as a competence, and what it scales."""

    factor: Term
    scaled: Term

    def __repr__(self) -> str:
        sides = [f"({side!r})" if isinstance(side, Sum) else repr(side) for side in self.parts]
        return " * ".join(sides)

    def __mul__(self, other: Term) -> Product:
        return Product(self.factor, self.scaled * other)

    @property
    def parts(self) -> tuple[Term, ...]:  # type: ignore[override]
        return (self.factor, self.scaled)

    @property
    def flipped(self) -> tuple[str, ...] | None:
        return self.scaled.flipped or self.factor.flipped

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:  # type: ignore[override]
        up, down = self.scaled, self.factor
        found = [*up.symmetries, *down.symmetries]
        if up.linear and down.linear:
            each = ((*(term.linear or ()), *term.scales) for term in _terms(up))
            names = tuple(name for one in each for name in one)
            found.append(Scale(up=names, down=(*down.linear, *down.scales)))
        if up.flipped and down.exchanged:
            found.append(Sign(up.flipped, exchanged=down.exchanged))
        elif up.flipped and down.flipped:
            found.append(Sign((*up.flipped, *down.flipped)))
        return tuple(found)

    def start(self, data: Data) -> Values:
        # What is scaled comes first, as free sites are updated in this order.
        parts = self.parts if self.factor.linear == () else (self.scaled, self.factor)
        return {name: value for part in parts for name, value in part.start(data).items()}

    def sample(self, data: Data) -> Float[Array, " *row"]:
        """Sample scales first, then the first term that is scaled, the factor, and the others."""
        first, *others = _terms(self.scaled)
        ready, of_factor = first.prepare(data), self.factor.prepare(data)
        value = first.finish(data, ready)
        factor = self.factor.finish(data, of_factor)
        for term in others:
            value = value + term.sample(data)
        return factor * value


def by_type(data: Comparisons, number: int) -> Comparisons:
    """The data with an axis of types behind that of the rows, in codes and columns."""
    shape = (data.num_rows, number)
    views: dict[str, Any] = {}
    for name in ("first", "second", "annotator", "stratum"):
        if (codes := getattr(data, name)) is not None:
            # Each log-odds has its own index, as the conjugate updates read it row by row.
            views[name] = jnp.broadcast_to(jnp.asarray(codes)[:, None], shape)
    if data.features is not None:
        views["features"] = jnp.asarray(data.features)[:, None]
    if data.columns is not None:
        columns = jnp.asarray(data.columns)[:, None]
        views["columns"] = jnp.broadcast_to(columns, (*shape, columns.shape[-1]))
    return dataclasses.replace(data, **views)


def sampled(
    site: str,
    prior: dist.Distribution,
    *events: str,
    obs: Any = None,
    infer: Any = MappingProxyType({}),
    **plates: int,
) -> Array:
    """Sample a site in plates, from the outermost to the innermost; `events` name the axes that its
    distribution has beside them."""
    with ExitStack() as stack:
        for place, (axis, size) in enumerate(reversed(plates.items()), 1):
            stack.enter_context(numpyro.plate(axis, size, dim=-place))
        return numpyro.sample(site, prior, obs=obs, infer={"event_dims": [*events], **infer})


def sample_vectors(site: str, scale: Any, plate: Axis, event: Axis) -> Float[Array, "name entry"]:
    """Sample a vector for each name of a plate, normal about 0.

    Its entries are an axis of the event: a plate has one place among the axes in all sites."""
    (axis, number), (entry, size) = plate, event
    normal = dist.Normal(0.0, scale).expand([number, size]).to_event(1)
    return sampled(site, normal, entry, **{axis: number})


def sample_about_mean(
    site: str, mean: dist.Distribution, spread: dist.Distribution, number: int
) -> Float[Array, " annotator"]:
    """Sample a number for each annotator, normal about a mean with a spread, both of which are
    learned."""
    centre = numpyro.sample(f"{site}_mean", mean)
    width = numpyro.sample(f"{site}_spread", spread)
    return sampled(site, dist.Normal(centre, width), annotator=number)


def gap(site: Any, data: Comparisons) -> Float[Array, " *row"]:
    """Entry of the first item of a site less that of the second."""
    return site[data.first] - site[data.second]


def spread_of(start: Any) -> float:
    """Standard deviation of a start, above 0."""
    return max(float(np.std(start)), 0.1)
