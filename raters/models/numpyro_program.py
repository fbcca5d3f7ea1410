"""Any NumPyro function as a model."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
from jax.experimental import checkify
from jaxtyping import Array, Float
from numpyro import handlers
from numpyro.distributions.transforms import biject_to
from numpyro.primitives import CondIndepStackFrame, Messenger

from raters.errors import PACKAGE, DataError, DataWarning, SettingError, refuse
from raters.errors.validation import instance
from raters.judgements.arguments import Arguments, Fixed
from raters.model import Model, Values
from raters.program import skeleton
from raters.program.functions import register_function

_PLAIN = (bool, int, float, str, type(None))
# Axes of draws.
_OF_RESULTS = ("chain", "draw")
# Of a start from the medians, in unconstrained coordinates.
_JITTER = 0.5
_TRACER_ERRORS = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


@dataclass(frozen=True, repr=False)
class NumpyroModel(Model[Arguments]):
    """A NumPyro function as a model; `raters.models.numpyro_model` makes it."""

    function: Callable[..., Any]
    outcome: str

    def __repr__(self) -> str:
        return f"numpyro_model({self.title}, observed={self.outcome!r})"

    @property
    def title(self) -> str:
        """Name in messages: that of the function."""
        return _name(self.function)

    @property
    def observed(self) -> str:
        """Name of the observed site: that of the argument."""
        return self.outcome

    def generate(self, data: Arguments) -> None:
        """Run the function, with its observed site in one row of observations."""
        with _Observing(self, data):
            self.function(**data.arguments())

    def read(self, data: Any, like: Any = None) -> Any:
        """Make `Arguments` of a mapping or a table."""
        if isinstance(data, Arguments):
            return data
        values = _of_table(data)
        self._check_names(values, needs_outcome=like is None)
        fixed, columns = {}, {}
        for name, value in values.items():
            if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and not value.ndim):
                value = value.item()
            if isinstance(value, _PLAIN) or _is_plain_tuple(value):
                fixed[name] = value
            else:
                columns[name] = _numbers(name, value)
        outcomes = columns.pop(self.outcome, None)
        if outcomes is None:
            fixed.pop(self.outcome, None)
        if like is None and outcomes is None:
            refuse(
                self.outcome,
                values[self.outcome],
                "is no array of outcomes",
                "give what was observed",
                instead=f"{{{self.outcome!r}: np.array([...]), ...}}",
                error=DataError,
            )
        site = "" if like is None else like.site
        raw = Arguments(outcomes, None, columns, Fixed(fixed), self.outcome, site)
        if outcomes is not None:
            raw = dataclasses.replace(raw, shape=outcomes.shape)
        return self._with_facts(self._with_traced(raw), like)

    def _check_names(self, values: Mapping[str, Any], *, needs_outcome: bool) -> None:
        """Raise unless the values are the arguments of the function."""
        parameters = inspect.signature(self.function).parameters.values()
        named = [one.name for one in parameters if one.kind not in (one.VAR_KEYWORD,)]
        needed = [one.name for one in parameters if one.default is one.empty]
        if needs_outcome:
            needed.append(self.outcome)
        name = self.title
        if missing := [one for one in dict.fromkeys(needed) if one in named and one not in values]:
            if missing == [self.outcome] and not needs_outcome:
                return
            refuse(
                "data",
                problem=f"has no {', '.join(map(repr, missing))}, which {name} takes",
                expected=f"give a value for each of {', '.join(named)}",
                instead=f"{{{missing[0]!r}: ..., ...}}",
                error=DataError,
            )
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
        if not takes_any and (unknown := [one for one in values if one not in named]):
            refuse(
                "data",
                problem=f"has {', '.join(map(repr, unknown))}, which {name} does not take",
                expected=f"its arguments are {', '.join(named)}; leave others out",
                error=DataError,
            )

    def _with_traced(self, raw: Arguments) -> Arguments:
        """Leave arrays whose values the function looks at, as ``len(np.unique(group))`` does,
        untraced: whole numbers before others."""
        whole = [name for name, one in raw.columns.items() if one.dtype.kind in "biu"]
        last: Exception | None = None
        for held in ((), whole, tuple(raw.columns)):
            kept = {name: one for name, one in raw.columns.items() if name not in held}
            fixed = {**raw.fixed, **{name: raw.columns[name] for name in held}}
            tried = dataclasses.replace(raw, columns=kept, fixed=Fixed(fixed))
            try:
                jax.eval_shape(lambda data: (skeleton(self, data), None)[1], tried)
                return tried
            except _TRACER_ERRORS as error:
                last = error
            except Exception as error:
                raise self._cannot_run(raw, error) from error
        assert last is not None
        raise self._cannot_run(raw, last) from last

    def _cannot_run(self, raw: Arguments, error: Exception) -> DataError:
        """Return the error of a function that does not run on these arguments."""
        lengths = {name: len(one) for name, one in raw.columns.items() if np.ndim(one)}
        if raw.outcomes is not None and np.ndim(raw.outcomes):
            lengths[self.outcome] = len(raw.outcomes)
        sizes = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        first = str(error).split("\n", 1)[0][:200]
        return DataError(
            f"{self.title} cannot be run on these data: {type(error).__name__}: {first}"
            f" (lengths of the arrays: {sizes or 'none'}); arrays of rows have the length of"
            f" {self.outcome!r}, and codes of groups count from 0",
            parameter="data",
        )

    def _with_facts(self, raw: Arguments, like: Arguments | None) -> Arguments:
        """Find the observed site, and what the outcomes can be."""
        found: list[tuple[str, dist.Distribution, tuple[int, ...]]] = []

        def read(data: Arguments) -> tuple[Any, Any]:
            sites = skeleton(self, data)
            self._check_plates(sites)
            site = self._observed_site(raw, sites, like)
            fn, shape = _plain(site["fn"]), _batch(site["fn"])
            found.append((site["name"], fn, shape))
            size = int(np.prod((*shape, *fn.event_shape)))
            if data.outcomes is None or np.size(data.outcomes) != size:
                return _largest(fn), True
            value = jnp.reshape(data.outcomes, (*shape, *fn.event_shape))
            return _largest(fn), jnp.broadcast_to(fn.support(value), shape)

        checked = checkify.checkify(read, errors=checkify.index_checks)
        beyond, facts = jax.jit(checked)(raw)
        largest, inside = jax.tree.map(np.asarray, facts)
        name, fn, shape = found[-1]
        raw = dataclasses.replace(
            raw, site=raw.site or name, number=int(np.prod(shape)), largest=int(largest)
        )
        if raw.outcomes is None:
            return dataclasses.replace(raw, shape=shape)
        of_site = (*shape, *fn.event_shape)
        given = np.shape(raw.outcomes)
        same = [one for one in given if one != 1] == [one for one in of_site if one != 1]
        if not same and np.size(raw.outcomes) == int(np.prod(of_site)):
            refuse(
                self.outcome,
                problem=f"has the shape {given}, and the observed site {name!r} {of_site}",
                expected="give the outcomes in the shape of the site",
                error=DataError,
            )
        if len(fn.event_shape) == 0 and np.size(raw.outcomes) != raw.number:
            refuse(
                self.outcome,
                problem=(
                    f"has {np.size(raw.outcomes):,} outcomes, and the observed site {name!r}"
                    f" has {raw.number:,}"
                ),
                expected="give one outcome for each",
                error=DataError,
            )
        if not inside.all():
            place = np.flatnonzero(~inside.ravel())
            wrong = np.reshape(raw.outcomes, (raw.number, -1))[place[0]]
            refuse(
                self.outcome,
                wrong.item() if wrong.size == 1 else wrong.tolist(),
                f"is wrong in row {place[0]} (counted from 0; {len(place)} in all)",
                f"it must be an outcome of {_title(fn)}",
                error=DataError,
            )
        if message := beyond.get():
            warnings.warn(
                f"{self.title}: {message.split('. ')[0].strip('. ')}; JAX reads another entry"
                " instead. Codes of groups count from 0, and each has an entry",
                DataWarning,
                skip_file_prefixes=PACKAGE,
            )
        return raw

    def _check_plates(self, sites: dict[str, Any]) -> None:
        """Raise for a subsample, which is another one at each run, and for names of axes that each
        result has."""
        plates = [one for one in sites.values() if one["type"] == "plate"]
        if taken := [one["name"] for one in plates if one["name"] in _OF_RESULTS]:
            raise SettingError(
                f"{self.title} has a plate {taken[0]!r}, which is an axis of the draws of every"
                " result; give the plate another name"
            )
        if parts := [one["name"] for one in plates if one["args"][1] not in (None, one["args"][0])]:
            raise SettingError(
                f"{self.title} draws a subsample in the plate {parts[0]!r}; leave"
                " subsample_size out, as fits read all rows"
            )

    def _observed_site(
        self, raw: Arguments, sites: dict[str, Any], like: Arguments | None
    ) -> dict[str, Any]:
        """Return NumPyro's record of the site that observes the outcomes."""
        samples = {name: one for name, one in sites.items() if one["type"] == "sample"}
        if like is not None and raw.site:
            found = samples.get(self.outcome)  # as `generate` calls it
            return dict(found or {}, name=raw.site) if found else _missing(self, raw.site, sites)
        observed = {name: one for name, one in samples.items() if one["is_observed"]}
        if len(observed) != 1:
            many = f"observes {', '.join(map(repr, observed)) or 'nothing'}"
            refuse(
                "observed",
                self.outcome,
                f"is given, and {self.title} {many}",
                "a model has one observed site, which takes this argument",
                instead=f'numpyro.sample("obs", ..., obs={self.outcome})',
            )
        if self.outcome in sites and self.outcome not in observed:
            refuse(
                "observed",
                self.outcome,
                f"is also the name of another site of {self.title}",
                "give that site another name",
            )
        return next(iter(observed.values()))

    def start(self, data: Arguments) -> Values:
        """Medians of the prior, given those of the sites before, moved a little at random, so that
        factors tell the starts of chains apart."""
        return {name: np.asarray(value) for name, value in _start(self, data).items()}

    def why_not(self, data: Arguments) -> str | None:
        """Refuse functions with parameters to optimise."""
        kinds: dict[str, Any] = {}
        jax.eval_shape(lambda data: kinds.update(skeleton(self, data)), data)
        if params := [name for name, one in kinds.items() if one["type"] == "param"]:
            return (
                f"{self.title} has parameters without a prior"
                f" ({', '.join(map(repr, params))}); write numpyro.sample with a prior instead of"
                " numpyro.param"
            )
        return None


def numpyro_model(function: Callable[..., Any], observed: str) -> NumpyroModel:
    r"""A plain NumPyro function as a model that NUTS, SVI and the Pólya-Gamma back-ends fit.

    `raters.PGGibbs`, `raters.PGEM` and `raters.HMC` need Bernoulli or Binomial outcomes with
    logits, or (but for HMC) Categorical ones. They find the sites in which the logits are affine
    and whose priors are normal (truncated and multivariate, too) or uniform, and update them by
    Pólya-Gamma augmentation, several at a time where these enter the logits together; all other
    sites, such as learned scales, are updated by slice sampling. `raters.NUTS` and `raters.SVI` fit
    any function without discrete latent sites.

    Parameters
    ----------
    function : callable
        The NumPyro program, as ``numpyro.infer.MCMC`` takes it. It has one observed site.
    observed : str
        Name of the argument that holds what is observed, such as ``"y"`` of ``model(x, y=None)``.

    Returns
    -------
    Model
        `raters.fit` takes it with a mapping of the arguments by name, or a table whose columns they
        are. Arrays are traced; numbers and texts, such as a number of groups, are not, and neither
        are arrays whose values the function looks at, as ``len(np.unique(group))`` does.

    Raises
    ------
    SettingError
        When it is no function, or has no such argument.

    Notes
    -----
    A result stores the name of the function, not its text: to reopen it, pass the model, or import
    the module that makes it before. The function is read again whenever
    another function object is passed, so define it once.

    Examples
    --------
    >>> import numpy as np, numpyro, numpyro.distributions as dist, raters as rt
    >>> def logistic(x, y=None):
    ...     intercept = numpyro.sample("intercept", dist.Normal(0, 2))
    ...     slope = numpyro.sample("slope", dist.Normal(0, 1).expand([2]).to_event(1))
    ...     numpyro.sample("obs", dist.Bernoulli(logits=intercept + x @ slope), obs=y)
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> y = (rng.random(200) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    >>> model = rt.models.numpyro_model(logistic, observed="y")
    >>> print(rt.fitting.describe(model, {"x": x, "y": y}))
    numpyro_model(logistic, observed='y')
      intercept       Normal         ()
      slope           Normal         (slope_dim_0: 2)
      y               Bernoulli      (observation: 200)  observed
      blocks: intercept + slope
      symmetries: none
    >>> result = rt.fit(model, {"x": x, "y": y}, rt.PGGibbs(draws=500, warmup=50), seed=0,
    ...                 progress=False)
    >>> result.posterior["slope"].mean(("chain", "draw")).round(1).values.tolist()
    [1.2, -0.1]
    """
    instance("observed", observed, str, "the name of an argument", 'observed="y"')
    if not callable(function) or isinstance(function, type):
        refuse(
            "function",
            function,
            expected="it must be a function that calls numpyro.sample",
            instead='rt.models.numpyro_model(model, observed="y")',
        )
    if isinstance(function, Model):
        refuse(
            "function",
            function,
            expected="it is a model of raters already; pass it to rt.fit as it is",
        )
    names = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL, one.POSITIONAL_ONLY)
    ]
    if observed not in names:
        refuse(
            "observed",
            observed,
            f"is no argument of {_name(function)}",
            f"name the argument that holds the outcomes: {', '.join(names) or 'none'}",
        )
    register_function(function)
    return NumpyroModel(function, observed)


@partial(jax.jit, static_argnums=0)
def _start(model: NumpyroModel, data: Arguments) -> Values:
    """Return a start, compiled: op by op it would take several times as long."""
    rng = np.random.default_rng(0)

    def near_median(site: dict[str, Any]) -> Any:
        if site["type"] != "sample" or site["is_observed"]:
            return None
        if site["name"] == model.observed:
            return jnp.zeros(site["fn"].shape())
        transform = biject_to(site["fn"].support)
        flat = transform.inv(_median(site["fn"]))
        jitter = _JITTER * rng.standard_normal(np.shape(flat))
        return transform(flat + jnp.asarray(jitter, flat.dtype))

    program = handlers.substitute(model.generate, substitute_fn=near_median)
    sites = handlers.trace(handlers.seed(program, jax.random.key(0))).get_trace(data)
    return {
        name: site["value"]
        for name, site in sites.items()
        if site["type"] == "sample" and name != model.observed
    }


class _Observing(Messenger):  # type: ignore[misc]
    """Handler that gives the observed site the name of its argument, and one axis of rows."""

    def __init__(self, model: NumpyroModel, data: Arguments) -> None:
        super().__init__(None)
        self.model, self.data = model, data

    def process_message(self, msg: dict[str, Any]) -> None:
        """Change the message of the observed site; a Delta that is observed is deterministic."""
        if msg["type"] != "sample":
            return
        if msg["is_observed"] and isinstance(_plain(msg["fn"]), dist.Delta):
            msg["type"] = "deterministic"
            return
        if msg["name"] != self.data.site or not self.data.site:
            return
        shape = _batch(msg["fn"])
        number = int(np.prod(shape))
        fn = msg["fn"] = _in_one_row(msg["fn"], shape)
        if msg["value"] is not None:
            msg["value"] = jnp.reshape(jnp.asarray(msg["value"]), (number, *fn.event_shape))
        msg["name"] = self.model.observed
        msg["cond_indep_stack"] = [CondIndepStackFrame(self.data.row, -1, number)]


def _plain(fn: dist.Distribution) -> dist.Distribution:
    """A distribution without the events and the axes that were added to it."""
    while isinstance(fn, (dist.Independent, dist.ExpandedDistribution)):
        fn = fn.base_dist
    return fn


def _median(fn: dist.Distribution) -> Array:
    """Median of a prior, or its mean, or any value in its support, without a draw: compiling the
    draws of some takes long."""
    base = _plain(fn)
    for name in ("icdf", "mean"):
        try:
            centre: Any = getattr(base, name)
            value = jnp.broadcast_to(
                centre(jnp.asarray(0.5)) if name == "icdf" else centre, fn.shape()
            )
        except (NotImplementedError, AttributeError, TypeError, ValueError, ImportError):
            continue
        is_valid = jnp.all(jnp.isfinite(value)) & jnp.all(fn.support(value))
        return jnp.where(is_valid, value, fn.support.feasible_like(jnp.zeros(fn.shape())))
    feasible: Array = fn.support.feasible_like(jnp.zeros(fn.shape()))
    return feasible


def _batch(fn: dist.Distribution) -> tuple[int, ...]:
    """Shape of the outcomes that have a density each."""
    shape: tuple[int, ...] = fn.shape()
    return shape[: len(shape) - len(_plain(fn).event_shape)]


def _in_one_row(fn: dist.Distribution, shape: tuple[int, ...]) -> dist.Distribution:
    """The distribution with one axis of outcomes."""
    base = _plain(fn)

    def flat(part: Any) -> Array:
        return jnp.broadcast_to(part, shape).ravel()

    if isinstance(base, dist.BernoulliLogits):
        return dist.Bernoulli(logits=flat(base.logits))
    if isinstance(base, dist.BinomialLogits):
        return dist.Binomial(flat(base.total_count), logits=flat(base.logits))
    if isinstance(base, dist.CategoricalLogits):
        size = base.logits.shape[-1]
        return dist.Categorical(
            logits=jnp.broadcast_to(base.logits, (*shape, size)).reshape(-1, size)
        )
    if base is fn and len(shape) == 1:
        return fn
    return _Raveled(base.expand(shape))


class _Raveled(dist.Distribution):  # type: ignore[misc]
    """A distribution with its outcomes in one row."""

    pytree_data_fields = ("base",)

    def __init__(self, base: dist.Distribution, *, validate_args: bool | None = None) -> None:
        self.base = base
        number = int(np.prod(base.batch_shape))
        super().__init__((number,), base.event_shape, validate_args=validate_args)

    @property
    def support(self) -> Any:
        """Support of one outcome."""
        return _plain(self.base).support

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw."""
        drawn: Array = self.base.sample(key, sample_shape)
        return drawn.reshape(*sample_shape, *self.batch_shape, *self.event_shape)

    def log_prob(self, value: Array) -> Float[Array, " observation"]:
        """Log-density of each outcome."""
        each = jnp.reshape(value, (*self.base.batch_shape, *self.event_shape))
        log_probs: Array = jnp.ravel(self.base.log_prob(each))
        return log_probs


def _largest(fn: dist.Distribution) -> Any:
    """Largest outcome of whole numbers from 0; −1 for others."""
    if isinstance(fn, (dist.BernoulliLogits, dist.BernoulliProbs)):
        return 1
    if isinstance(fn, (dist.BinomialLogits, dist.BinomialProbs)):
        return jnp.max(jnp.asarray(fn.total_count), initial=0)
    if isinstance(fn, dist.CategoricalLogits):
        return int(fn.logits.shape[-1]) - 1
    if isinstance(fn, dist.CategoricalProbs):
        return int(fn.probs.shape[-1]) - 1
    return -1


def _missing(model: NumpyroModel, site: str, sites: dict[str, Any]) -> dict[str, Any]:
    raise SettingError(
        f"{_name(model.function)} has no site {site!r} on these data; it has {list(sites)}"
    )


def _title(fn: dist.Distribution) -> str:
    """Name of a distribution as one writes it."""
    return type(fn).__name__.removesuffix("Logits").removesuffix("Probs")


def _name(function: Callable[..., Any]) -> str:
    """Name of a function, for people."""
    return getattr(function, "__name__", repr(function))


def _is_plain_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, _PLAIN) for one in value)


def _is_small(array: np.ndarray) -> bool:
    """True for whole numbers that JAX holds in any precision."""
    return bool(np.abs(array.astype(np.float64)).max(initial=0.0) < 2**31)


def _numbers(name: str, value: Any) -> np.ndarray:
    """An argument as an array of finite numbers."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":  # as columns of tables with mixed rows have it
            array = np.asarray(array.tolist())
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind == "f":
        array = array.astype(np.float32)  # as JAX has them unless it is told otherwise
    if array.dtype.kind == "b" or (array.dtype.kind in "iu" and _is_small(array)):
        array = array.astype(np.int32)
    if array.dtype.kind not in "iuf":
        refuse(
            name,
            value,
            "holds no numbers",
            (
                "an argument is an array of numbers, or a number or a text; of names, give"
                " their codes"
            ),
            instead=f"{name}=pd.factorize({name})[0]",
            error=DataError,
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        refuse(
            name,
            problem=f"has {int((~np.isfinite(array)).sum())} entries that are missing or infinite",
            expected="leave such rows out",
            error=DataError,
        )
    return array


def _of_table(data: Any) -> dict[str, Any]:
    """Arguments by name, of a mapping or of the columns of a table."""
    if isinstance(data, Mapping):
        return dict(data)
    columns = getattr(data, "columns", None)
    if columns is None or callable(columns):
        refuse(
            "data",
            data,
            expected="it must be a mapping of arguments by name, or a table whose columns they are",
            instead='{"x": x, "y": y}',
        )
    return {str(name): np.asarray(data[name]) for name in columns}
