"""A model read on its data: its sites, the unit of its likelihood, and its latent class."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.sharding import Mesh
from numpyro.distributions import constraints

from raters.distributions import GroupedMixture, RowMixture
from raters.errors import BackendError, RatersError, SettingError, public_name, refuse
from raters.errors.validation import instance
from raters.errors.words import words_of
from raters.judgements.base import Judgements
from raters.judgements.names import plural
from raters.judgements.together import Together, axis_name, check_names, parts_of
from raters.model import Model, axis_names_of
from raters.program.placing import placed
from raters.program.traces import models_of, observed_sites, read_by, skeleton
from raters.program.values import SAMPLE

worded = words_of("raters.program")


class Site(NamedTuple):
    """One ``sample`` statement."""

    shape: tuple[int, ...]
    dims: tuple[str, ...]
    support: constraints.Constraint
    distribution: str


class Supports(dict[str, constraints.Constraint]):
    """Support of each latent site; hashable, so that compiled functions can depend on it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple((name, type(support)) for name, support in self.items()))


class LatentClass(NamedTuple):
    """The class that a likelihood sums out for each of its units."""

    unit: str
    name: str
    size: int
    names: tuple[Any, ...]

    @property
    def group(self) -> str:
        """Group of a result that holds the responsibilities: the plural of the class axis."""
        return plural(self.name.rsplit("_", 1)[-1])

    @property
    def axes(self) -> tuple[str, str]:
        """Axes of the responsibilities."""
        return self.unit, self.name


@dataclass(frozen=True, eq=False)
class Program[Data: Judgements]:
    """A model read once on its data. `raters.fit` makes it and hands it on.

    The program runs when the first fact is asked for, on one unit of the data, and draws nothing.

    Parameters
    ----------
    model : Model
    data : Judgements
    mesh : jax.sharding.Mesh, optional
        Devices over which back-ends divide the rows.

    Examples
    --------
    >>> import raters as rt
    >>> labels = rt.datasets.anesthesia("labels")
    >>> program = rt.program.Program(rt.DawidSkene(), labels)
    >>> program.sites["confusion"].dims, program.unit, program.latent.name
    (('annotator', 'true_class', 'label'), 'item', 'true_class')
    """

    model: Model[Data]
    data: Data
    mesh: Mesh | None = None

    def placed(self) -> Any:
        """The data on JAX's default device, or with its rows divided over the mesh."""
        return placed(self.data, self.mesh)

    def sample(self, size: int = SAMPLE) -> Data:
        """The first units of the data, in arrays of their own, to try the program out on."""
        return _viewed(self.data.take(slice(0, size)))

    @property
    def is_joint(self) -> bool:
        """True for several kinds of judgement."""
        return isinstance(self.data, Together)

    @property
    def parts(self) -> dict[str, Program[Any]]:
        """Program of each kind of judgement by its name; of one kind itself, by no name."""
        return self._parts if self.is_joint else {"": self}

    @cached_property
    def _parts(self) -> dict[str, Program[Any]]:
        models, data = models_of(self.model), parts_of(self.data)
        check_names(tuple(models), tuple(data))
        for name, model in models.items():
            part = data[name]
            if not isinstance(part, model.data_type):
                kinds = f"{type(part).__name__}, and {model.title} is a model of"
                problem = f"is {kinds} {model.data_type.__name__}"
                refuse(name, part, problem, "give the part a model of its kind")
        return {name: Program(model, data[name]) for name, model in models.items()}

    def axis_name(self, part: str, axis: str) -> str:
        """Name that results have for an axis of a kind of judgement."""
        return axis_name(self.data, part, axis)

    @cached_property
    def _read(self) -> _Reading:
        instance("model", self.model, Model, "a model", "rt.BTL()")
        kind = self.model.data_type
        what = f"judgements ({kind.__name__}), of which {self.model.title} is a model"
        instance("data", self.data, kind, what, f"{public_name(kind)}(...)")
        if self.is_joint:
            several: Any = self.model
            sites = {name: part.sites for name, part in self.parts.items()}
            several.check_parts(self.data, sites)
        data = _viewed(self.data.first_unit())
        try:
            reading = _traced(self.model, data)
        except (ValueError, AssertionError) as error:  # such as a scale below 0, a name twice
            if isinstance(error, RatersError):
                raise
            if reason := self.model.why_not(self.data):
                raise BackendError(reason) from error
            said = worded("not_run", model=repr(self.model), error=error)
            raise SettingError(said) from error
        if _is_traced([site.support for site in reading.sites.values()]):
            # A bound that the program computes is a number.
            return _reading(self.model, data)[0]
        return reading

    @property
    def sites(self) -> dict[str, Site]:
        """Latent sites by name, in the order of the program."""
        return self._read.sites

    @property
    def deterministic(self) -> dict[str, tuple[str, ...]]:
        """Axes of each deterministic site by name, such as those of ``numpyro.deterministic``."""
        return self._read.deterministic

    @cached_property
    def supports(self) -> Supports:
        """Support of each latent site."""

        def on_host(bound: Any) -> Any:
            # Arrays of JAX equal no others, so that a further fit would be compiled anew.
            return np.asarray(bound) if isinstance(bound, jax.Array) else bound

        return Supports({k: jax.tree.map(on_host, one.support) for k, one in self.sites.items()})

    @cached_property
    def observed(self) -> Site:
        """The observed site: its axis is the unit of the likelihood."""
        return self._read.observed._replace(shape=(self.num_units,), dims=(self.unit,))

    @cached_property
    def unit(self) -> str:
        """Axis that the likelihood is a product over: ``infer={"unit": ...}``, or a plate."""
        return self._read.unit or self.data.unit

    @property
    def num_units(self) -> int:
        """Length of that axis, or the sum of those of all parts."""
        sizes = []
        for part in self.parts.values():
            of_data = part.unit == part.data.unit
            sizes.append(part.data.num_units if of_data else len(part.data.coords[part.unit]))
        return sum(sizes)

    @cached_property
    def latent(self) -> LatentClass | None:
        """The class that the likelihood sums out, or None.

        It is declared as ``infer={"latent_class": ...}`` of the observed site, whose distribution
        is then a `raters.distributions.GroupedMixture`.
        """
        title = self.model.title
        if (name := self._read.latent_class) is None:
            if self._read.num_classes is not None:
                raise SettingError(worded("unnamed_class", title=title, site=self.model.observed))
            return None
        assert self._read.num_classes is not None
        number, names = self._read.num_classes, self._read.class_names
        if names and len(names) != number:
            numbers = {"names": names, "axis": name, "number": number}
            raise SettingError(worded("other_classes", title=title, **numbers))
        return LatentClass(self.unit, name, number, names or tuple(range(number)))

    @property
    def counts_classes(self) -> bool:
        """True if the likelihood sums classes out, of units (`latent`) or of single rows."""
        parts = self.parts.values()
        return any(part._read.of_rows or part.latent is not None for part in parts)

    @property
    def observed_type(self) -> type[dist.Distribution]:
        """Class of the observed distribution, of a mixture that of its components."""
        return self._read.distribution

    @property
    def coords(self) -> dict[str, Any]:
        """Names along each axis that has any: of the data, the classes, and the model."""
        named: dict[str, Any] = {}
        for name, part in self.parts.items():
            own = {} if part.latent is None else {part.latent.name: part.latent.names}
            own |= axis_names_of(part.model, part.data) | dict(part.data.coords)
            named |= {self.axis_name(name, axis): names for axis, names in own.items()}
        return named | dict(self.data.coords)

    @property
    def has_truth(self) -> bool:
        """True if the likelihood sums out a class of what is asked about, and not of the judge."""
        return self.latent is not None and self.unit != self.data.judge

    @cached_property
    def axes(self) -> frozenset[str]:
        """Axes of the parameters: their names are those that were fitted."""
        return frozenset(axis for site in self.sites.values() for axis in site.dims)


def once[Fact](find: Callable[..., Fact]) -> Callable[..., Fact]:
    """Keep a fact that a back-end finds as an attribute of the program, as a cached property is."""

    @functools.wraps(find)
    def kept(program: Program[Any], *values: Any) -> Fact:
        attributes, name = vars(program), find.__qualname__
        if name not in attributes:
            attributes[name] = find(program, *values)
        return attributes[name]

    return kept


class _Reading(NamedTuple):
    """Facts of a program."""

    sites: dict[str, Site]
    observed: Site
    unit: str | None
    latent_class: str | None
    num_classes: int | None
    distribution: type[dist.Distribution]
    class_names: tuple[str, ...]
    deterministic: dict[str, tuple[str, ...]]
    of_rows: bool = False


def _viewed[Data](data: Data) -> Data:
    """Views of the arrays, since JAX keeps those that it reads in the precision of a trial."""
    return jax.tree.map(
        lambda array: array.view() if isinstance(array, np.ndarray) else array, data
    )


def _reading_of_parts(model: Model[Any], data: Together) -> _Reading:
    """Run the program of several kinds of judgement and collect the facts that they share."""
    called = {
        f"{name}.{axis}": axis_name(data, name, axis)
        for name, part in data.by_name()
        for axis in part.coords
    }
    sites, deterministic = _collected(skeleton(model, data), called)
    for name in observed_sites(model):
        del sites[name]
    observed = Site((), (), constraints.dependent, "")
    return _Reading(sites, observed, "part", None, None, dist.Distribution, (), deterministic)


def _collected(
    full: dict[str, Any], called: Mapping[str, str]
) -> tuple[dict[str, Site], dict[str, tuple[str, ...]]]:
    """Collect sampled sites, and axes of deterministic ones, with the axis names of results."""
    sites, deterministic = {}, {}
    for name, site in full.items():
        if site["type"] == "deterministic":
            by_axis = {frame.dim: frame.name for frame in site["cond_indep_stack"]}
            number = jnp.ndim(site["value"])
            axes = [by_axis.get(axis, f"{name}_dim_{number + axis}") for axis in range(-number, 0)]
            deterministic[name] = tuple(called.get(axis, axis) for axis in axes)
        if site["type"] == "sample":
            shape = jnp.shape(site["value"])
            dims = tuple(called.get(axis, axis) for axis in _dims(name, site, len(shape)))
            sites[name] = Site(shape, dims, _of_one(site["fn"].support), _name(site["fn"]))
    return sites, deterministic


def _traced(model: Model[Any], data: Any) -> _Reading:
    """Collect the facts of a program without computing or compiling anything of it."""
    readings: list[_Reading] = []
    # Within a compiled function the count was checked before; of parts it is checked in each.
    if data.count is None or isinstance(data.count, jax.core.Tracer) or not data.has_answers:
        jax.eval_shape(lambda: readings.append(_reading(model, data)[0]))
        return readings[0]

    def density(column: Any) -> Any:
        counted = dataclasses.replace(jax.tree.map(jnp.asarray, data), **column)
        reading, site = _reading(model, counted)
        readings.append(reading)
        return site["fn"].log_prob(site["value"])

    if not read_by(density, {"count": np.asarray(data.count, np.float32)}):
        raise SettingError(worded("unused_count", title=model.title))
    reading = readings[0]
    if _is_traced(reading.observed.support):  # by the count, as that of a binomial is
        return reading._replace(observed=reading.observed._replace(support=constraints.dependent))
    return reading


def _is_traced(supports: Any) -> bool:
    """True if a bound of a support is a number that was not computed."""
    return any(isinstance(bound, jax.core.Tracer) for bound in jax.tree.leaves(supports))


def _reading(model: Model[Any], data: Any) -> tuple[_Reading, dict[str, Any]]:
    """Run the program and collect its facts; return them with the record of the observed site."""
    if isinstance(data, Together):
        return _reading_of_parts(model, data), {}
    full = skeleton(model, data)
    _check_sites(model, full, data)
    sites, deterministic = _collected(full, {})
    site, observed = full[model.observed], sites.pop(model.observed)
    plates = sorted(site["cond_indep_stack"], key=lambda frame: frame.dim)
    declared, fn, num_classes = site["infer"], site["fn"], None
    unit = declared.get("unit") or (plates[-1].name if plates else None)
    named = declared.get("latent_class")
    of_rows = isinstance(fn, RowMixture)
    if not of_rows and (named is not None or isinstance(fn, GroupedMixture)):
        num_classes = int(fn.component_distribution.batch_shape[-1])
    one = fn.component_distribution if isinstance(fn, GroupedMixture) else fn
    unit, named = (None if name is None else str(name) for name in (unit, named))
    classes = named, num_classes, type(one), tuple(declared.get("class_names", ()))
    return _Reading(sites, observed, unit, *classes, deterministic, of_rows), site


def _check_sites(model: Model[Any], sites: dict[str, Any], data: Any) -> None:
    """Raise unless every back-end sees the same density: one observed site, with a density for each
    row or unit, and no site that is scaled, discrete, or in the plate of the rows."""
    rows = None if data.row in data.names else data.row
    if model.observed not in sites:
        numbers = {"site": model.observed, "sites": list(sites)}
        raise SettingError(worded("not_observed", title=model.title, **numbers))
    site = sites[model.observed]
    latent = [one for one in sites.values() if one["type"] == "sample" and one is not site]
    wrong = {
        "more_observed": [
            one for one in sites.values() if one.get("is_observed") and one is not site
        ],
        "scaled": [one for one in (site, *latent) if one["scale"] is not None],
        "discrete": [one for one in latent if one["fn"].support.is_discrete],
        "of_rows": [
            one for one in latent if rows in {frame.name for frame in one["cond_indep_stack"]}
        ],
    }
    _check_observed(model.title, site, data)
    for problem, found in wrong.items():
        if found:
            names = [one["name"] for one in found]
            raise SettingError(worded(problem, title=model.title, sites=names, plate=rows))


def _check_observed(name: str, site: dict[str, Any], data: Any) -> None:
    """Raise unless the observed site has one density for each row or unit, and knows ties."""
    mixed = isinstance(site["fn"], GroupedMixture)
    sizes = {data.row: data.num_rows, data.unit: data.num_units}
    inner = {frame.name: frame.size for frame in site["cond_indep_stack"] if frame.dim == -1}
    if not mixed and not any(sizes.get(plate) == size for plate, size in inner.items()):
        plates = ", ".join(f"{plate!r} of {size}" for plate, size in inner.items())
        numbers = {"plates": plates, "rows": data.num_rows, "plate": data.row}
        raise SettingError(worded("other_plate", title=name, site=site["name"], **numbers))
    fn = site["fn"].component_distribution if mixed else site["fn"]
    of_two = (dist.BernoulliLogits, dist.BernoulliProbs, dist.BinomialLogits, dist.BinomialProbs)
    if data.pair is not None and len(data.answers()) > 2 and isinstance(fn, of_two):
        raise SettingError(worded("no_ties", title=name))


def _of_one(support: constraints.Constraint) -> constraints.Constraint:
    """The support of one event, of many that `to_event` or a plate has put together."""
    while isinstance(support, constraints.independent):
        support = support.base_constraint
    return support


def _dims(name: str, site: dict[str, Any], number: int) -> tuple[str, ...]:
    """Names of a site's axes: its plates', then those that it declares for its events."""
    event = site["fn"].event_dim
    by_axis = {frame.dim: frame.name for frame in site["cond_indep_stack"]}
    own = range(event - number, 0)
    batch = tuple(by_axis.get(axis, f"{name}_dim_{axis - event + number}") for axis in own)
    declared = tuple(site["infer"].get("event_dims", ()))
    return batch + (declared or tuple(f"{name}_dim_{number + axis}" for axis in range(-event, 0)))


def _name(fn: dist.Distribution) -> str:
    """A distribution's name as a reader knows it."""
    if isinstance(fn, (dist.ExpandedDistribution, dist.Independent)):
        return _name(fn.base_dist)
    name = type(fn).__name__
    if "Truncated" in name and hasattr(fn, "base_dist"):
        return f"Truncated{_name(fn.base_dist)}"
    return name.removesuffix("Logits").removesuffix("Probs")
