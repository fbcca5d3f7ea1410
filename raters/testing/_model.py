"""Contract of a model."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.distributions import biject_to, constraints

from raters import model as declared
from raters.errors import SettingError
from raters.errors.validation import checked
from raters.fitting.result import check_data
from raters.fitting.simulate import simulate
from raters.fitting.storage import from_json, to_json
from raters.inference.modes import images, mirrored
from raters.inference.polya_gamma.line import orbit
from raters.judgements.base import Judgements
from raters.judgements.sets import OfferedSets
from raters.judgements.together import axis_name, parts_of, with_parts
from raters.model import Model, Symmetry, Values
from raters.program import Program, observed_sites, skeleton
from raters.reporting.cite import cited_entries
from raters.testing._blocks import check_blocks, densities

_TOLERANCE = 1e-8


@checked
def check_model(model: Model[Any], data: Judgements, *, seed: int = 0) -> None:
    """Check that a model keeps the contract on these data.

    It is hashable and described by its ``repr``; what it says to cite, if anything, is there;
    every axis has a name and every site the shape that its axes say; it draws outcomes where they
    are absent; its start has finite density and gradient in float32 and float64; its blocks are
    conjugate, and the conditional that is read of each has the slope of the joint density; its
    symmetries hold, and a random direction is none; renaming items and annotators, and writing a
    repeated row as a count, do not change the density; the pointwise log-likelihood is the joint
    density less the prior; and that of an item whose class is known, summed over the classes, is
    that of the item whose class is not.

    Parameters
    ----------
    model : Model
    data : Judgements
        A small table with outcomes, and whatever else the model needs: an order of presentation,
        features.
    seed : int
        For the points at which densities are compared.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_model(rt.BTL(), votes)
    """
    check_data(data, "data", model)
    check_identity(model)
    again = from_json(to_json(model), (Model,), "model")
    assert again == model, f"{model!r} stored and read back is another model: {again!r}"
    check_reference(model)
    assert data.has_answers, "check_model needs data with outcomes; rt.simulate draws some"
    reason = model.why_not(data)
    assert reason is None, f"{model!r} refuses these data: {reason}"
    program = Program(model, data)
    _check_sites(program)
    drawn = _check_simulates(model, data, seed)
    for wide in (False, True):
        _check_start(program, wide)
    with jax.enable_x64(True):
        points = [_point(model, data, truth) for truth in drawn]
        _check_density(program, points[0])
        check_blocks(program, points[0])
        _check_symmetries(model, data, points[0], seed)
        _check_relabelling(program, points[0], seed)
        _check_counts(model, data, points)
        if program.latent and data.known:
            _check_known(program, points[0])


# ---------------------------------------------------------------------- the model


def check_identity(thing: Any) -> None:
    """Check that equal models or back-ends are equal, also by their hashes."""
    name, twin = type(thing).__name__, dataclasses.replace(thing)
    assert twin == thing, (
        f"{name} built again from its own fields is not equal to itself: {twin!r} is not {thing!r}"
    )
    assert hash(twin) == hash(thing), f"two equal {name} have different hashes"


def check_reference(thing: Any) -> None:
    """Check that a `reference`, if there is any, can be cited."""
    try:
        cited_entries([thing])
    except SettingError as error:
        raise AssertionError(f"{type(thing).__name__}: {error}") from error


def _check_sites(program: Program[Any]) -> None:
    model, data, traced = program.model, program.data, []
    try:
        sites = program.sites
    except SettingError as error:
        raise AssertionError(str(error)) from error
    jax.eval_shape(lambda: traced.append(skeleton(model, data)))  # computes and compiles nothing
    full = traced[0]
    for observed in observed_sites(model):
        assert full[observed]["is_observed"], f"{observed!r} does not get the outcomes in the data"
    # A name that the program gives to an axis of its own is no slip of the pen.
    infer = [facts["infer"] for facts in full.values() if "infer" in facts]
    named = {axis for one in infer for axis in one.get("event_dims", ())}
    sizes = {axis: len(names) for axis, names in data.coords.items()}
    for site, facts in sites.items():
        shape = tuple(full[site]["fn"].shape())
        assert shape == facts.shape, f"{site!r} has shape {facts.shape} on a row, {shape} on all"
        for axis, size in zip(facts.dims, facts.shape, strict=True):
            assert axis in sizes or axis in named, (
                f"an axis of {site!r} is called {axis!r}, and the data name {list(sizes)}; put it"
                " in a plate of one of these names, or name it by infer={'event_dims': [...]}"
            )
            right = size == sizes.get(axis, max(size, 1))
            assert right, f"axis {axis!r} of {site!r} has size {size}, not {sizes.get(axis)}"


def _check_simulates(model: Model[Any], data: Any, seed: int) -> tuple[Values, Values]:
    """Two sets of parameters that were drawn."""
    name = type(model).__name__
    one, again, other = (simulate(model, data, seed=number) for number in (seed, seed, seed + 1))
    tables = [parts_of(table).values() for table in (one.data, again.data, data)]
    for each in zip(*tables, strict=True):
        _check_outcomes(name, *each)
    differs = any(np.any(one.truth[site] != other.truth[site]) for site in one.truth)
    assert differs, f"{name} draws the same parameters under two seeds"
    return one.truth, other.truth


def _check_outcomes(name: str, one: Any, again: Any, data: Any) -> None:
    """Outcomes that are drawn are possible, and the same under one seed."""
    drawn = outcomes(one)
    asked = (data.unanswered().num_rows, *outcomes(data).shape[1:])
    assert drawn.shape == asked, f"{name} draws outcomes of shape {drawn.shape}, not {asked}"
    equal = np.array_equal(drawn, outcomes(again))
    assert equal, f"{name} draws different outcomes under one seed"
    least, most = float(data.answers().min()), highest(one)
    most = most.reshape(-1, *(1,) * (drawn.ndim - 1))
    ends = f"from {drawn.min():g} to {drawn.max():g}, not {least:g} to {most.max():g}"
    assert np.all((drawn >= least) & (drawn <= most)), f"{name} draws outcomes {ends}"


def _check_start(program: Program[Any], wide: bool) -> None:
    model, data, sites = program.model, program.data, program.sites
    kind = "float64" if wide else "float32"
    with jax.enable_x64(wide):
        start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
        shapes = {name: value.shape for name, value in start.items()}
        expected = {name: site.shape for name, site in sites.items()}
        assert shapes == expected, f"start has the sites {shapes}; the program has {expected}"
        at_start = densities(model, data, start)
        density, slope = at_start.joint, at_start.slope
    assert density.dtype == kind, f"the log density has dtype {density.dtype} under {kind}"
    assert np.isfinite(density), f"the log density at the start is {density} in {kind}"
    for name, part in slope.items():
        finite = np.isfinite(part).all()
        assert finite, f"the gradient of {name!r} at the start is not finite in {kind}"


def _point(model: Model[Any], data: Any, drawn: Values) -> Values:
    """A point in the supports, near a prior draw but where densities are not extreme."""
    supports = Program(model, data).supports

    def between(name: str, start: Any) -> Any:
        # Other supports of sites are convex, so a point between the start and a draw is inside.
        if supports[name] is not constraints.corr_cholesky:
            return 0.5 * np.asarray(start, float) + 0.5 * drawn[name]
        transform = biject_to(supports[name])
        ends = (transform.inv(jnp.asarray(end)) for end in (start, drawn[name]))
        return np.asarray(transform(sum(ends) / 2))

    return {name: between(name, value) for name, value in model.start(data).items()}


def _log_likelihood(model: Model[Any], data: Any, values: Values) -> float:
    return float(np.asarray(densities(model, data, values).pointwise).sum())


def _close(one: float, other: float, scale: float = 0.0) -> bool:
    return bool(abs(one - other) <= _TOLERANCE * (1 + abs(one) + scale))


def _check_density(program: Program[Any], values: Values) -> None:
    here = densities(program.model, program.data, values)
    shape = here.pointwise.shape
    assert shape == (program.num_units,), f"the pointwise log-likelihood has shape {shape}"
    joint, prior = float(here.by_numpyro), float(here.prior)
    likelihood = float(np.asarray(here.pointwise).sum())
    assert _close(joint - prior, likelihood, abs(joint)), (
        f"the log-likelihood is {likelihood:.10g}; NumPyro's joint density less the prior is"
        f" {joint - prior:.10g}: something other than a sample site enters the density"
    )


def _moved(symmetry: Symmetry, values: Values) -> Values:
    """Another point of the orbit that a symmetry declares."""
    match symmetry:
        case declared.Shift(site, None):
            return values | {site: values[site] + 0.7}
        case declared.Shift(site, int(axis)):
            each = np.moveaxis(np.zeros_like(values[site]), axis, 0)[:1]
            each = np.linspace(0.3, 0.7, each.size).reshape(each.shape)
            return values | {site: values[site] + np.moveaxis(each, 0, axis)}
        case declared.Scale() | declared.Translation():
            return orbit(values, symmetry, 0.5)
        case declared.Sign():
            return mirrored(symmetry, values)
        case declared.Rotation(both):
            size = np.shape(values[both[0]])[-1]
            turn = np.linalg.qr(np.random.default_rng(size).normal(size=(size, size)))[0]
            turn = -turn if size == 1 and turn[0, 0] > 0 else turn
            return values | {name: values[name] @ turn for name in both}
        case declared.Exchange(((site, axis), *_)):
            # A shift, which from three classes on is not its own inverse.
            return mirrored(symmetry, values, np.roll(np.arange(np.shape(values[site])[axis]), 1))
        case declared.Permute(both):
            return values | {name: np.roll(values[name], 1, axis=-1) for name in both}
    raise AssertionError(f"{symmetry!r} is none of the symmetries of raters.model")


def _check_symmetries(model: Model[Any], data: Any, values: Values, seed: int) -> None:
    here = _log_likelihood(model, data, values)
    # An exchange of classes holds for data without known classes, some for two classes alone.
    there_are = [move.symmetry for move in images(Program(model, data)) if not move.broken]
    rng = np.random.default_rng(seed)
    for symmetry in model.symmetries:
        if isinstance(symmetry, declared.Exchange) and symmetry not in there_are:
            continue
        change = _log_likelihood(model, data, _moved(symmetry, values)) - here
        assert _close(here, here + change), f"{symmetry!r} changes the log-likelihood by {change}"
        named, away = jax.tree.leaves(dataclasses.astuple(symmetry)), dict(values)
        for name in values:
            if name in named:
                away[name] = values[name] * (1 + 0.3 * rng.uniform(size=np.shape(values[name])))
        changes = not _close(here, _log_likelihood(model, data, away))
        assert changes, f"{symmetry!r} says nothing: a random change leaves the log-likelihood"


def _check_relabelling(program: Program[Any], values: Values, seed: int) -> None:
    model, data = program.model, program.data
    rng = np.random.default_rng(seed)
    axes = question_axes(data)
    new = {axis: rng.permutation(len(data.coords[axis])) for axis in axes}
    moved = dict(values)
    for name, site in program.sites.items():
        for axis, dim in enumerate(site.dims):
            if dim in new:
                moved[name] = np.take(moved[name], np.argsort(new[dim]), axis=axis)
    here = float(densities(model, data, values).joint)
    there = float(densities(model, renamed(data, new), moved).joint)
    words = " and ".join(f"{axis}s" for axis in new)
    assert _close(here, there), f"renaming {words} changes the log density by {there - here:.3g}"


def _check_counts(model: Model[Any], data: Any, points: list[Values]) -> None:
    """Equal: a row twice, with a double count, and put together by `aggregate`."""
    twice, counted = doubled(data)
    tables = (twice, counted, twice.aggregate())
    each = [[_log_likelihood(model, table, point) for point in points] for table in tables]
    change, of_counts, aggregated = (here - there for here, there in each)
    by = f"a step changes the log-likelihood by {change:.10g} and by"
    problem = "a repeated row is not the same as count=2"
    assert _close(change, of_counts, 1e2), f"{problem}: {by} {of_counts:.10g}"
    problem = "aggregate() changes the likelihood"
    assert _close(change, aggregated, 1e2), f"{problem}: {by} {aggregated:.10g}"


def _check_known(program: Program[Any], values: Values) -> None:
    """A unit's likelihood is the sum of those with each class known: truths are used rightly."""
    model, data, latent = program.model, program.data, program.latent
    assert latent is not None
    assert data.known is not None

    def pointwise(true_class: int) -> jax.Array:
        column = np.full(program.num_units, true_class, np.int32)
        table = dataclasses.replace(data, **{data.known: column})
        return densities(model, table, values).pointwise

    each = [pointwise(true_class) for true_class in range(latent.size)]
    total = jax.nn.logsumexp(jnp.stack(each), axis=0)
    wrong = float(jnp.max(jnp.abs(total - pointwise(-1))))
    assert wrong <= _TOLERANCE * (1 + float(jnp.max(jnp.abs(total)))), (
        f"log-likelihoods with each class known, summed over the classes, differ by {wrong:.3g} of"
        f" those with none known; pass data.{data.known} to GroupedMixture(known=...)"
    )


# ---------------------------------------------------------------------- judgements as they vary

# Where each new code of an axis comes from: the code of old entry i is `new[axis][i]`.
NewCodes = dict[str, np.ndarray]


def outcomes(data: Judgements) -> np.ndarray:
    """Outcome of each row."""
    return np.asarray(getattr(data, data.answer))


def highest(data: Judgements) -> np.ndarray:
    """Highest outcome that each row can have."""
    most = np.full(data.num_rows, float(data.answers().max()))
    return most * np.asarray(data.weight) if data.summed else most


def renamed(data: Any, new: NewCodes) -> Any:
    """The same judgements with other codes along some axes, and the names at their new codes."""
    moved = {}
    for part_name, part in parts_of(data).items():
        for axis, names in part.coords.items():
            if (order := new.get(axis_name(data, part_name, axis))) is not None:
                of_new = tuple(names[place] for place in np.argsort(order))
                part = part.with_names(axis, of_new)
        moved[part_name] = part
    return with_parts(data, moved)


def question_axes(data: Any) -> list[str]:
    """Axes of what is asked, and whom."""
    called = dict[str, None]()
    for name, part in parts_of(data).items():
        axes = [axis for axis in part.question_axes() if axis != part.axes.get(part.known)]
        called |= dict.fromkeys(axis_name(data, name, axis) for axis in axes)
    return list(called)


def doubled(data: Any) -> tuple[Any, Any]:
    """The same judgements with each row twice, and with double counts."""
    twice, counted = {}, {}
    for name, part in parts_of(data).items():
        weight = np.asarray(part.weight)
        changes = {"count": (2 * weight).astype(weight.dtype)}
        if part.summed:
            changes[part.answer] = (2 * outcomes(part)).astype(np.float32)
        twice[name] = part.rows(np.repeat(np.arange(part.num_rows), 2))
        counted[name] = dataclasses.replace(part, **changes)
    return with_parts(data, twice), with_parts(data, counted)


def answered_otherwise(data: Any) -> Any:
    """Data of equal shape with other outcomes."""
    if isinstance(data, OfferedSets):  # What is true of one thing is true of the next.
        position, size = np.arange(outcomes(data).shape[1]), data.there.sum(1, keepdims=True)
        order = np.where(position < size, (position + 1) % size, position)
        return data.answered(np.take_along_axis(outcomes(data), order, 1))
    if data.summed:
        column = (highest(data) - outcomes(data)).astype(np.float32)
        return dataclasses.replace(data, **{data.answer: column})
    possible = data.answers().tolist()
    others = []
    for row, outcome in enumerate(outcomes(data).tolist()):
        own = [value for value in possible if value in set(data.answer_words(row).values())]
        others.append(own[(own.index(outcome) + 1) % len(own)])
    return data.answered(np.asarray(others))
