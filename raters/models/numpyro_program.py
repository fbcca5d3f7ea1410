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

from raters.distributions.correlated import unwrapped
from raters.errors import PACKAGE, DataError, DataWarning, SettingError, refuse
from raters.judgements.arguments import Arguments, Fixed
from raters.model import Model, Values
from raters.models.base import worded
from raters.program import skeleton
from raters.program.functions import FUNCTIONS, function_name

_PLAIN = (bool, int, float, str, type(None))
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
        with _Observing(self, data):
            self.function(**data.arguments())

    def read(self, data: Any, like: Any = None) -> Any:
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
            if like is None:
                problem, expected = "is no array of outcomes", "give what was observed"
                refuse(self.outcome, values[self.outcome], problem, expected, error=DataError)
        site = "" if like is None else like.site
        shape = () if outcomes is None else outcomes.shape
        raw = Arguments(outcomes, None, columns, Fixed(fixed), self.outcome, site, shape=shape)
        return self._with_facts(self._with_traced(raw), like)

    def _check_names(self, values: Mapping[str, Any], *, needs_outcome: bool) -> None:
        """Raise unless the values are the arguments of the function."""
        parameters = inspect.signature(self.function).parameters.values()
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
        named = [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]
        needed = {one.name for one in parameters if one.default is one.empty} - {self.outcome}
        if needs_outcome:
            needed.add(self.outcome)
        missing = [name for name in named if name in needed and name not in values]
        unknown = [] if takes_any else [name for name in values if name not in named]
        if missing or unknown:
            problem = f"has no {', '.join(map(repr, missing))}, which {self.title} takes"
            if unknown:
                problem = f"has {', '.join(map(repr, unknown))}, which {self.title} does not take"
            expected = f"its arguments are {', '.join(named)}"
            refuse("data", problem=problem, expected=expected, error=DataError)

    def _with_traced(self, raw: Arguments) -> Arguments:
        """Leave arrays untraced whose values the function looks at: whole numbers before others."""
        whole = [name for name, one in raw.columns.items() if one.dtype.kind in "biu"]
        for untraced in ((), whole, tuple(raw.columns)):
            traced = {name: one for name, one in raw.columns.items() if name not in untraced}
            fixed = {**raw.fixed, **{name: raw.columns[name] for name in untraced}}
            tried = dataclasses.replace(raw, columns=traced, fixed=Fixed(fixed))
            try:
                jax.eval_shape(lambda data: (skeleton(self, data), None)[1], tried)
                return tried
            except Exception as error:
                if not isinstance(error, _TRACER_ERRORS) or not traced:
                    raise self._cannot_run(raw, error) from error
        return raw

    def _cannot_run(self, raw: Arguments, error: Exception) -> DataError:
        """Return the error of a function that does not run on these arguments."""
        lengths = {name: len(one) for name, one in raw.columns.items() if np.ndim(one)}
        if raw.outcomes is not None and np.ndim(raw.outcomes):
            lengths[self.outcome] = len(raw.outcomes)
        sizes = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        first = str(error).split("\n", 1)[0][:200]
        numbers = {"kind": type(error).__name__, "first": first, "sizes": sizes}
        said = worded("cannot_run", title=self.title, outcome=self.outcome, **numbers)
        return DataError(said, parameter="data")

    def _with_facts(self, raw: Arguments, like: Arguments | None) -> Arguments:
        """Find the observed site, and what the outcomes can be."""
        found: list[tuple[str, dist.Distribution, tuple[int, ...]]] = []

        def read(data: Arguments) -> tuple[Any, Any]:
            sites = skeleton(self, data)
            self._check_plates(sites)
            site = self._observed_site(raw, sites, like)
            fn, shape = unwrapped(site["fn"]), _batch(site["fn"])
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
        if not same and (np.size(raw.outcomes) == np.prod(of_site) or not fn.event_shape):
            problem = f"has the shape {given}, and the observed site {name!r} {of_site}"
            expected = "give the outcomes in the shape of the site"
            refuse(self.outcome, problem=problem, expected=expected, error=DataError)
        if not inside.all():
            place = np.flatnonzero(~inside.ravel())
            wrong = np.reshape(raw.outcomes, (raw.number, -1))[place[0]]
            problem = f"is wrong in row {place[0]} (counted from 0; {len(place)} in all)"
            kind = type(fn).__name__.removesuffix("Logits").removesuffix("Probs")
            expected = f"it must be an outcome of {kind}"
            value = wrong.item() if wrong.size == 1 else wrong.tolist()
            refuse(self.outcome, value, problem, expected, error=DataError)
        if message := beyond.get():
            said = worded("beyond", title=self.title, message=message.split(". ")[0].strip(". "))
            warnings.warn(said, DataWarning, skip_file_prefixes=PACKAGE)
        return raw

    def _check_plates(self, sites: dict[str, Any]) -> None:
        """Raise for a subsample, and for names of axes that each result has."""
        for site in sites.values():
            if site["type"] != "plate":
                continue
            of_draws = site["name"] in ("chain", "draw")
            if of_draws or site["args"][1] not in (None, site["args"][0]):
                problem = "axis_of_draws" if of_draws else "subsample"
                raise SettingError(worded(problem, title=self.title, plate=site["name"]))

    def _observed_site(
        self, raw: Arguments, sites: dict[str, Any], like: Arguments | None
    ) -> dict[str, Any]:
        """Return NumPyro's record of the site that observes the outcomes."""
        samples = {name: one for name, one in sites.items() if one["type"] == "sample"}
        if like is not None and raw.site:
            if self.outcome not in samples:  # as `generate` calls it
                numbers = {"site": raw.site, "sites": list(sites)}
                raise SettingError(worded("other_site", title=self.title, **numbers))
            return dict(samples[self.outcome], name=raw.site)
        observed = {name: one for name, one in samples.items() if one["is_observed"]}
        if len(observed) != 1 or (self.outcome in sites and self.outcome not in observed):
            names = ", ".join(map(repr, observed)) or "nothing"
            problem = f"is given, and {self.title} observes {names}"
            expected = "one site observes this argument, and no other site has its name"
            such = f'numpyro.sample("obs", ..., obs={self.outcome})'
            refuse("observed", self.outcome, problem, expected, instead=such)
        return next(iter(observed.values()))

    def start(self, data: Arguments) -> Values:
        return {name: np.asarray(value) for name, value in _start(self, data).items()}

    def why_not(self, data: Arguments) -> str | None:
        kinds: dict[str, Any] = {}
        jax.eval_shape(lambda data: kinds.update(skeleton(self, data)), data)
        params = ", ".join(repr(name) for name, one in kinds.items() if one["type"] == "param")
        return worded("parameters", title=self.title, names=params) if params else None


def numpyro_model(function: Callable[..., Any], observed: str) -> NumpyroModel:
    r"""A plain NumPyro function as a model that all back-ends fit.

    `raters.PGGibbs` and `raters.PGEM` need Bernoulli, Binomial or Categorical outcomes with logits.
    They update sites in which the logits are affine and whose priors are normal or uniform by
    Pólya-Gamma augmentation, and all others by slice sampling. `raters.HMC`, `raters.NUTS` and
    `raters.SVI` fit any function without discrete latent sites.

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
    if not callable(function) or isinstance(function, (type, Model)):
        expected = "it must be a function that calls numpyro.sample"
        such = 'rt.models.numpyro_model(model, observed="y")'
        refuse("function", function, expected=expected, instead=such)
    names = [
        name
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL, one.POSITIONAL_ONLY)
    ]
    if observed not in names:
        problem = f"is no argument of {_name(function)}"
        expected = f"name the argument that holds the outcomes: {', '.join(names) or 'none'}"
        refuse("observed", observed, problem, expected)
    FUNCTIONS[function_name(function)] = function
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

    program = handlers.substitute(model, substitute_fn=near_median)
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
        if msg["is_observed"] and isinstance(unwrapped(msg["fn"]), dist.Delta):
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


def _median(fn: dist.Distribution) -> Array:
    """Median of a prior, or its mean, or any value in its support, without a draw."""
    base = unwrapped(fn)
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
    return fn.support.feasible_like(jnp.zeros(fn.shape()))


def _batch(fn: dist.Distribution) -> tuple[int, ...]:
    """Shape of the outcomes that have a density each."""
    shape: tuple[int, ...] = fn.shape()
    return shape[: len(shape) - len(unwrapped(fn).event_shape)]


def _in_one_row(fn: dist.Distribution, shape: tuple[int, ...]) -> dist.Distribution:
    """The distribution with one axis of outcomes."""
    base = unwrapped(fn)

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

    def __init__(self, base: dist.Distribution) -> None:
        self.base = base
        number = int(np.prod(base.batch_shape))
        super().__init__((number,), base.event_shape)

    @property
    def support(self) -> Any:
        """Support of one outcome."""
        return unwrapped(self.base).support

    def sample(self, key: jax.Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw."""
        drawn: Array = self.base.sample(key, sample_shape)
        return drawn.reshape(*sample_shape, *self.batch_shape, *self.event_shape)

    def log_prob(self, value: Array) -> Float[Array, " observation"]:
        """Log-density of each outcome."""
        each = jnp.reshape(value, (*self.base.batch_shape, *self.event_shape))
        return jnp.ravel(self.base.log_prob(each))


def _largest(fn: dist.Distribution) -> Any:
    """Largest outcome of whole numbers from 0; −1 for others."""
    if isinstance(fn, (dist.BernoulliLogits, dist.BernoulliProbs)):
        return 1
    if isinstance(fn, (dist.BinomialLogits, dist.BinomialProbs)):
        return jnp.max(jnp.asarray(fn.total_count), initial=0)
    categorical = isinstance(fn, (dist.CategoricalLogits, dist.CategoricalProbs))
    return int(fn.support.upper_bound) if categorical else -1


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def _is_plain_tuple(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(one, _PLAIN) for one in value)


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
    if array.dtype.kind in "biu" and np.abs(array.astype(np.float64)).max(initial=0.0) < 2**31:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iuf":
        problem, expected = "holds no numbers", "give an array of numbers; of names, their codes"
        such = f"{name}=pd.factorize({name})[0]"
        refuse(name, value, problem, expected, instead=such, error=DataError)
    if not np.isfinite(array).all():
        problem = f"has {int((~np.isfinite(array)).sum())} entries that are missing or infinite"
        refuse(name, problem=problem, expected="leave such rows out", error=DataError)
    return array


def _of_table(data: Any) -> dict[str, Any]:
    """Arguments by name, of a mapping or of the columns of a table."""
    if isinstance(data, Mapping):
        return dict(data)
    columns = getattr(data, "columns", None)
    if columns is None or callable(columns):
        expected = "it must be a mapping of arguments by name, or a table whose columns they are"
        refuse("data", data, expected=expected, instead='{"x": x, "y": y}')
    return {str(name): np.asarray(data[name]) for name in columns}
