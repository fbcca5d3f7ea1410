"""A model: one generative NumPyro function, and a few facts that back-ends use."""

from __future__ import annotations

import abc
import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Bool
from numpyro import handlers
from numpyro.distributions import Distribution
from numpyro.infer.initialization import init_to_median

from raters.distributions.priors import OwnPriors, Priors
from raters.judgements.base import Judgements

Values = dict[str, Any]
# Probability of the less probable of two mirrored worlds from which on both count as possible.
OPEN_MIRROR = 0.05


@dataclass(frozen=True)
class Shift:
    """The likelihood is unchanged when a constant is added to every entry of `site`; draws are
    centred to sum to 0."""

    site: str
    axis: int | None = None


@dataclass(frozen=True)
class Scale:
    """The likelihood is unchanged when `up` is multiplied and `down` is divided by the same
    positive number.

    Sites that do not enter the likelihood (a prior's scale) may be listed too: moving them along
    keeps the prior density of what they govern in proportion, which makes the move longer. The
    priors say where on the orbit the posterior lies, so draws are not rescaled."""

    up: tuple[str, ...]
    down: tuple[str, ...]


@dataclass(frozen=True)
class Translation:
    """The likelihood is unchanged when a constant is added to one column of `site`, and that column
    of `slope` times the constant is taken from `offset`. The priors say where on the orbit the
    posterior lies."""

    site: str
    slope: str
    offset: str
    column: int = 0


@dataclass(frozen=True)
class Sign:
    """The likelihood is unchanged when all `sites`, which lie on the real line, change sign
    together, and the entries of those `exchanged` change places with them; the prior says how
    probable each of the two is."""

    sites: tuple[str, ...]
    exchanged: tuple[tuple[str, tuple[int, ...]], ...] = ()


@dataclass(frozen=True)
class Exchange:
    """The likelihood is unchanged when two classes change places in all `sites`; the prior says how
    probable each of the two namings is. A known true class breaks the symmetry."""

    sites: tuple[tuple[str, int], ...]
    negated: tuple[str, ...] = ()
    complemented: tuple[str, ...] = ()


@dataclass(frozen=True)
class Permute:
    """The likelihood is unchanged when the entries along the last axis of all `sites` change places
    alike: their numbering has no meaning.

    `raters.fit` gives all draws one numbering, by decreasing `share` on average."""

    sites: tuple[str, ...]
    share: str


@dataclass(frozen=True)
class Rotation:
    """The likelihood and the priors are unchanged when the vectors along the last axis of all
    `sites` are turned or reflected together; with one dimension, when they change sign.

    `raters.fit` turns each draw towards the mean of all, on its principal axes."""

    sites: tuple[str, ...]


@dataclass(frozen=True)
class Own:
    """Each judge has a vector of their own, with a normal prior about 0 and a scale for each entry.

    `raters.log_likelihood` by judge integrates them out, and `NUTS` moves them in units of their
    scales."""

    site: str
    scale: str


@dataclass(frozen=True)
class Local:
    """Sites of a mixture over units of which each entry has a prior of its own, given the other
    sites, and reaches the rows of one unit only, such as effects of items.

    Gibbs draws them together with the classes of the units, which alone would hardly change beside
    the effects that explain the rows under the class drawn last."""

    sites: tuple[str, ...]


# Of each, the prior says how probable a point and its image are.
Mirror = Sign | Exchange
Symmetry = Shift | Scale | Translation | Mirror | Permute | Rotation


def moved_sites(symmetry: Symmetry) -> tuple[str, ...]:
    """Sites that a symmetry moves."""
    leaves = jax.tree.leaves(dataclasses.astuple(symmetry))
    return tuple(dict.fromkeys(leaf for leaf in leaves if isinstance(leaf, str)))


class Fit(NamedTuple):
    """Draws of each latent site, shape (chain, draw, ...), and the posterior probability of each
    class of each unit, shape (unit, class), for a likelihood that sums classes out."""

    draws: Values
    responsibility: np.ndarray | None = None


class Marginal(NamedTuple):
    """A model with one site integrated out of its likelihood, and the data in the form that it
    reads."""

    model: Model[Any]
    data: Any
    site: str
    finer: Model[Any] | None = None


@runtime_checkable
class Several(Protocol):
    """A model with several modes, which draws starts at random."""

    def another_start(self, data: Any, rng: np.random.Generator) -> Values | None: ...


@dataclass(frozen=True)
class Model[Data: Judgements](abc.ABC):
    """A generative model of judgements. Subclasses are final frozen dataclasses whose fields are
    hyper-parameters.

    A subclass writes `generate`, which buys every back-end and every verb; a better `start` than
    medians of the prior shortens the way.
    The Pólya-Gamma back-ends find blocks in it: latent sites, one or several that are updated
    jointly, in which the logits are affine and whose priors are Gaussian, truncated Gaussian or
    uniform, and sites with a Dirichlet or Beta prior whose probabilities are counted. A subclass
    that knows better declares `blocks`; the claim is checked before sampling.

    The observed site has the name that the data declare (``data.observed``). What the likelihood is
    a product over is the innermost plate of that site, or ``infer={"unit": axis}`` of it; a class
    that it sums out for each unit is named by ``infer={"unit": axis, "latent_class": axis of the
    classes}``, and its classes, where the data have no names for them, by ``"class_names"``.

    Calling a model runs its program, with the priors of `prior`.

    `reference` holds what `raters.cite` prints: keys of `raters/references.bib`, separated by
    spaces, or BibTeX.

    Parameters
    ----------
    prior : mapping of str to numpyro distribution, optional
        Priors of your own by site, in place of those of the program:
        ``prior={"competence": dist.StudentT(4, 1, 1)}``. `NUTS` and `SVI` take all,
        `HMC` and `PGGibbs` most, `PGEM` conjugate ones. Draws of these sites are not centred.
    """

    prior: Mapping[str, Distribution] = dataclasses.field(
        default=Priors(), kw_only=True, repr=False
    )

    reference: ClassVar[str] = ""
    data_type: ClassVar[type[Judgements]] = Judgements

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in types.get_original_bases(cls):
            for argument in typing.get_args(base):
                if isinstance(argument, type) and issubclass(argument, Judgements):
                    cls.data_type = argument
        # Of its own, so that `dataclass` does not write one with the fields that are not given.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = cls.__repr__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", Priors(self.prior))

    def __repr__(self) -> str:
        every = sorted(dataclasses.fields(self), key=lambda one: one.name == "prior")
        shown = [one for one in every if one.repr or self.prior]
        pairs = (f"{one.name}={getattr(self, one.name)!r}" for one in shown)
        return f"{type(self).__qualname__}({', '.join(pairs)})"

    def __call__(self, data: Data) -> None:
        """Run the program, with the priors of the user."""
        if not self.prior:
            return self.generate(data)
        with OwnPriors(Priors(self.prior), self.title):
            return self.generate(data)

    @property
    def observed(self) -> str:
        """Name of the observed site."""
        return self.data_type.observed

    @property
    def title(self) -> str:
        """Name in messages: that of the class."""
        return type(self).__name__

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...] | None:
        """Conjugate blocks in order of update; None to find them, an empty tuple for none."""
        return None

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Transformations that leave the likelihood unchanged."""
        return ()

    @property
    def facts(self) -> tuple[Local | Own, ...]:
        """Further facts for back-ends: `Local` and `Own` of its sites."""
        return ()

    @abc.abstractmethod
    def generate(self, data: Data) -> None:
        """The NumPyro program.

        Parameters
        ----------
        data : Judgements
            Outcomes that are None are drawn.
        """

    def start(self, data: Data) -> Values:
        """A point of finite density from which optimisers and samplers set out, on the right side
        of each symmetry: by default medians of a few draws of the prior.

        Parameters
        ----------
        data : Judgements

        Returns
        -------
        dict of str to array
            Value of each latent site.
        """

        def median(site: dict[str, Any]) -> Any:
            if site["type"] == "sample" and site["name"] == self.observed:
                return None if site["is_observed"] else np.zeros(site["fn"].shape())
            return init_to_median(site)

        seeded = handlers.seed(self, jax.random.key(0))
        program = handlers.substitute(seeded, substitute_fn=median)
        values = {
            name: np.asarray(site["value"])
            for name, site in handlers.trace(program).get_trace(data.first_unit()).items()
            if site["type"] == "sample" and name != self.observed
        }
        return identify(self, values, 0)

    def why_not(self, data: Data) -> str | None:
        """The sentence that says why this model cannot be fitted to these data.

        Parameters
        ----------
        data : Judgements

        Returns
        -------
        str or None
            None where the model can be fitted.
        """
        return None

    def warnings(self, data: Data, fit: Fit | None = None) -> tuple[str, ...]:
        """Sentences about what these data cannot tell this model; about a fit, what is wrong with
        it that diagnostics of convergence do not see. `raters.fit` warns of each.

        Parameters
        ----------
        data : Judgements
            Without rows of count 0.
        fit : Fit, optional
            Draws of a fit to the data.

        Returns
        -------
        tuple of str
        """
        return ()


def exact_symmetries(model: Model[Any]) -> tuple[Symmetry, ...]:
    """Symmetries of a model less those that rest on priors which a user has replaced."""

    def is_replaced(one: Symmetry) -> bool:
        return isinstance(one, Rotation) and not set(one.sites).isdisjoint(model.prior)

    return tuple(one for one in model.symmetries if not is_replaced(one))


def probability_of_mirror(competence: np.ndarray) -> float:
    """Probability of the less probable of two mirrored worlds."""
    other = in_mirror(competence)
    return float(other.mean()) if len(other) else 0.0


def in_mirror(competence: np.ndarray) -> Bool[np.ndarray, " draw"]:
    """Draws that lie in the less probable of two mirrored worlds."""
    flat = np.asarray(competence, np.float64).reshape(-1, competence.shape[-1])
    if not flat.size or not np.isfinite(flat).all():
        return np.zeros(len(flat), bool)
    along = np.linalg.eigh(flat.T @ flat)[1][:, -1]
    ahead: np.ndarray = flat @ along > 0
    return ~ahead if ahead.mean() > 0.5 else ahead


def identify(model: Model[Any], values: Values, batch_ndim: int) -> Values:
    """Each draw on the identified section: for every `Shift`, centred over the site's own axes; for
    `Permute`, by decreasing share.

    Centring is exact for independent equal normal priors, because the likelihood does not see the
    shift and a normal vector's mean is independent of its deviations from the mean."""
    identified = dict(values)
    for symmetry in model.symmetries:
        match symmetry:
            case Shift(name, axis) if name not in model.prior:
                site = identified[name]
                axes = tuple(range(batch_ndim, site.ndim)) if axis is None else (batch_ndim + axis,)
                identified[name] = site - site.mean(axis=axes, keepdims=True)
            case Permute(_, share):
                order = np.argsort(-identified[share], axis=-1, kind="stable")
                identified |= renumbered(symmetry, identified, order)
    return identified


def renumbered(symmetry: Permute, values: Values, order: np.ndarray) -> Values:
    """The sites of a `Permute` in another numbering."""

    def moved(site: np.ndarray) -> np.ndarray:
        along = np.expand_dims(order, tuple(range(order.ndim - 1, site.ndim - 1)))
        return np.take_along_axis(site, along, axis=-1)

    return {name: moved(np.asarray(values[name])) for name in symmetry.sites}


def facts_of[Fact](model: Model[Any], kind: type[Fact]) -> tuple[Fact, ...]:
    """Facts of one kind."""
    return tuple(one for one in model.facts if isinstance(one, kind))


def own_sites(model: Model[Any]) -> tuple[str, ...]:
    """Sites of the vectors of single judges."""
    return tuple(one.site for one in facts_of(model, Own))


def read_by(model: Model[Any], data: Any, like: Any = None) -> Any:
    """Data as a model takes them, of what a user passes to a verb; `like` is what was fitted, of
    questions."""
    return model.read(data, like) if hasattr(model, "read") else data


def marginal_of(model: Model[Any], data: Any) -> Marginal | str | None:
    """A model with one site integrated out, as back-ends see it which look for a mode, or a
    sentence where they do not see it at all; None where all sites are estimated together.

    The mode of many entries, each with few judgements of its own, together with what they share is
    inconsistent for what they share, however many there are (Neyman and Scott 1948)."""
    return model.marginal(data) if hasattr(model, "marginal") else None


def axis_names_of(model: Model[Any], data: Any) -> dict[str, tuple[Any, ...]]:
    """Names along axes of the parameters that are not axes of the data."""
    return model.axis_names(data) if hasattr(model, "axis_names") else {}


def local_sites(model: Model[Any]) -> tuple[str, ...]:
    """Sites of single units."""
    return tuple(site for local in facts_of(model, Local) for site in local.sites)


def references_of(thing: Any) -> tuple[str, ...]:
    """Works that a model cites, or a back-end, or a class of these."""
    cited = None if isinstance(thing, type) else getattr(thing, "cited", None)
    return (str(thing.reference),) if cited is None else cited
