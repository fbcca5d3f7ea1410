"""What every model keeps to."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.infer.util

import raters.models
from raters._bibtex import entries
from raters._judgements import Judgements
from raters.fit import simulate
from raters.inference._trace import latent_sites, sites, skeleton
from raters.labels import Labels
from raters.model import Model, Permute, Scale, Shift, Sign, Symmetry, Values, unit_of
from raters.models import from_repr
from raters.testing import _kinds
from raters.testing._blocks import check_blocks
from raters.testing._densities import parts, value_and_slope

_TOLERANCE = 1e-8


def check_model(model: Model, data: Judgements, *, seed: int = 0) -> None:
    """Check that a model keeps the contract on these data.

    It is hashable and described by its ``repr``; what it says to cite, if anything, is BibTeX; every axis has a name and
    every site the shape that its axes say; it draws outcomes where they are absent; its start has finite density and
    gradient in float32 and float64; its blocks are conjugate, and the conditional that is read of each has the slope of the
    joint density; its symmetries hold, and a random direction is none; renaming items and annotators, and writing a
    repeated row as a count, do not change the density; the pointwise log-likelihood is the joint density less the prior;
    and that of an item whose class is known, summed over the classes, is that of the item whose class is not.

    Parameters
    ----------
    model : Model
    data : Comparisons or Labels
        A small table with outcomes, and whatever else the model needs: an order of presentation, features.
    seed : int
        For the points at which densities are compared.

    Raises
    ------
    AssertionError
        Saying what was violated, with the number.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=100, seed=0)
    >>> rt.testing.check_model(rt.BTL(), votes)
    """
    _check_identity(model)
    check_reference(model)
    assert data.answered, "check_model needs data with outcomes; rt.simulate draws some"
    reason = model.why_not(data)
    assert reason is None, f"{model!r} refuses these data: {reason}"
    _check_sites(model, data)
    drawn = _check_simulates(model, data, seed)
    for wide in (False, True):
        _check_start(model, data, wide)
    with jax.enable_x64(True):
        points = [_point(model, data, truth) for truth in drawn]
        _check_density(model, data, points[0])
        check_blocks(model, data, points[0])
        _check_symmetries(model, data, points[0], seed)
        _check_relabelling(model, data, points[0], seed)
        _check_counts(model, data, points)
        if isinstance(data, Labels):
            _check_known(model, data, points[0])


# ---------------------------------------------------------------------------------------------------------- the model


def _check_identity(model: Model) -> None:
    name = type(model).__name__
    fields = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    twin = type(model)(**fields)
    assert twin == model, f"{name} built again from its own fields is not equal to itself: {twin!r} is not {model!r}"
    assert hash(twin) == hash(model), f"two equal {name} have different hashes, {hash(twin)} and {hash(model)}"
    if getattr(raters.models, name, None) is type(model):
        assert from_repr(repr(model)) == model, f"from_repr({model!r}) is another model: {from_repr(repr(model))!r}"
        return
    call = ast.parse(repr(model), mode="eval").body
    written = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords} if isinstance(call, ast.Call) else {}
    for field, value in fields.items():
        expected = ast.unparse(ast.parse(repr(value), mode="eval"))
        assert written.get(field) == expected, f"the repr of {name} does not say {field}={value!r}: it is {model!r}"


def check_reference(thing: Any) -> None:
    """What a model or back-end says to cite, if anything, is BibTeX."""
    try:
        entries(thing.reference)
    except ValueError as error:
        raise AssertionError(f"{type(thing).__name__}.reference is no BibTeX: {error}") from error


def _check_sites(model: Model, data: Any) -> None:
    name, found = type(model).__name__, sites(model, data)
    assert model.observed in found, f"{name} has no site {model.observed!r}, which it calls observed; it has {list(found)}"
    full = skeleton(model, data)
    extra = [site for site, facts in full.items() if facts["type"] == "sample" and facts["is_observed"]]
    extra = [site for site in extra if site != model.observed]
    assert not extra, f"{name} has observed sites or factors {extra} besides {model.observed!r}, which no back-end would see"
    assert full[model.observed]["is_observed"], f"{name} does not pass the outcomes in the data to site {model.observed!r}"
    declared = {axis for facts in full.values() if "infer" in facts for axis in facts["infer"].get("event_dims", ())}
    for site, facts in found.items():
        shape = tuple(full[site]["fn"].shape())
        assert site == model.observed or shape == facts.shape, (
            f"{site!r} has shape {facts.shape} on one row and {shape} on all; it must not depend on rows"
        )
        for axis, size in zip(facts.dims, facts.shape, strict=True):
            _check_axis(site, axis, size, declared, data)


def _check_axis(site: str, axis: str, size: int, declared: set[str], data: Any) -> None:
    sizes = {axis: len(names) for axis, names in data.coords.items()}
    if axis in sizes:
        assert size == sizes[axis], f"axis {axis!r} of {site!r} has size {size}; the data have {sizes[axis]}"
        return
    # A name that the program gives to an axis of its own is no slip of the pen.
    assert axis in declared, (
        f"an axis of {site!r} is called {axis!r}, and the data name {list(sizes)}; put it in a plate of one of these names, or "
        "name it by infer={'event_dims': [...]}"
    )
    assert size > 0, f"axis {axis!r} of {site!r} is empty"


def _check_simulates(model: Model, data: Any, seed: int) -> tuple[Values, Values]:
    """Two sets of parameters that were drawn."""
    name = type(model).__name__
    one, again, other = (simulate(model, data, seed=number) for number in (seed, seed, seed + 1))
    drawn, most = _kinds.outcomes(one.data), _kinds.highest(one.data)
    asked = data.without_outcomes().annotator.shape
    assert drawn.shape == asked, f"{name} draws outcomes of shape {drawn.shape}, not {asked}"
    assert np.all((drawn >= 0) & (drawn <= most)), (
        f"{name} draws outcomes from {drawn.min():g} to {drawn.max():g}, not between 0 and {most.max():g}"
    )
    assert np.array_equal(drawn, _kinds.outcomes(again.data)), f"{name} draws different outcomes under one seed"
    assert any(np.any(one.truth[site] != other.truth[site]) for site in one.truth), (
        f"{name} draws the same parameters under two seeds"
    )
    return one.truth, other.truth


def _check_start(model: Model, data: Any, wide: bool) -> None:
    kind = "float64" if wide else "float32"
    with jax.enable_x64(wide):
        start = {name: jnp.asarray(value, float) for name, value in model.start(data).items()}
        found = latent_sites(model, data)
        assert set(start) == set(found), f"start has the sites {sorted(start)}; the program has {sorted(found)}"
        for name, value in start.items():
            assert value.shape == found[name].shape, f"start gives {name!r} shape {value.shape}, not {found[name].shape}"
        density, slope = value_and_slope(model, data, start)
    assert density.dtype == kind, f"the log density has dtype {density.dtype} where {kind} is on; something is cast"
    assert np.isfinite(density), f"the log density at the start is {density} in {kind}"
    for name, part in slope.items():
        assert np.isfinite(part).all(), (
            f"the gradient of {name!r} at the start has {np.sum(~np.isfinite(part))} bad entries in {kind}"
        )


def _point(model: Model, data: Any, drawn: Values) -> Values:
    """A point inside the supports, near a draw from the prior but where densities are not extreme."""
    # Supports of sites are convex, so a point between the start and a draw is inside.
    return {name: 0.5 * np.asarray(value, float) + 0.5 * drawn[name] for name, value in model.start(data).items()}


def _log_likelihood(model: Model, data: Any, values: Values) -> float:
    return float(parts(model, data, values)[1].sum())


def _close(one: float, other: float, scale: float = 0.0) -> bool:
    return bool(abs(one - other) <= _TOLERANCE * (1 + abs(one) + scale))


def _check_density(model: Model, data: Any, values: Values) -> None:
    by_numpyro = jax.jit(lambda values, data: numpyro.infer.util.log_density(model.generate, (data,), {}, values)[0])
    prior, pointwise = parts(model, data, values)
    shape = (unit_of(model, data)[1],)
    assert pointwise.shape == shape, f"the pointwise log-likelihood has shape {pointwise.shape}, not {shape}"
    joint, likelihood = float(by_numpyro(values, data)), float(pointwise.sum())
    assert _close(joint - float(prior), likelihood, abs(joint)), (
        f"the pointwise log-likelihood sums to {likelihood:.10g}; NumPyro's joint density less the prior is "
        f"{joint - float(prior):.10g}. Something other than a sample site enters the density"
    )


def _moved(symmetry: Symmetry, values: Values) -> Values:
    """Another point of the orbit that a symmetry declares."""
    match symmetry:
        case Shift(site, None):
            return values | {site: values[site] + 0.7}
        case Shift(site, int(axis)):
            each = np.moveaxis(np.zeros_like(values[site]), axis, 0)[:1]
            each = np.linspace(0.3, 0.7, each.size).reshape(each.shape)
            return values | {site: values[site] + np.moveaxis(each, 0, axis)}
        case Scale(up, down):
            return values | {name: values[name] * 1.7 for name in up} | {name: values[name] / 1.7 for name in down}
        case Sign(both):
            return values | {name: -values[name] for name in both}
        case Permute(both):
            return values | {name: np.roll(values[name], 1, axis=-1) for name in both}
    raise AssertionError(f"{symmetry!r} is not a symmetry that raters knows: Shift, Scale, Sign or Permute")


def _check_symmetries(model: Model, data: Any, values: Values, seed: int) -> None:
    here = _log_likelihood(model, data, values)
    for symmetry in model.symmetries:
        there = _log_likelihood(model, data, _moved(symmetry, values))
        assert _close(here, there), f"{symmetry!r} does not hold: it changes the log-likelihood by {there - here:.3g}"
    rng = np.random.default_rng(seed)
    for symmetry in model.symmetries:
        away = values | {name: values[name] * (1 + 0.3 * rng.uniform(size=np.shape(values[name]))) for name in _sites(symmetry)}
        there = _log_likelihood(model, data, away)
        assert not _close(here, there), (
            f"a random change of {_sites(symmetry)} leaves the log-likelihood at {here:.6g}, so {symmetry!r} says nothing"
        )


def _sites(symmetry: Symmetry) -> tuple[str, ...]:
    match symmetry:
        case Shift(site):
            return (site,)
        case Scale(up, down):
            return up + down
        case Sign(both) | Permute(both):
            return both
    return ()


def _check_relabelling(model: Model, data: Any, values: Values, seed: int) -> None:
    rng = np.random.default_rng(seed)
    new = {axis: rng.permutation(len(data.coords[axis])) for axis in ("item", "annotator")}
    moved = dict(values)
    for name, site in latent_sites(model, data).items():
        for axis, dim in enumerate(site.dims):
            if dim in new:
                moved[name] = np.take(moved[name], np.argsort(new[dim]), axis=axis)
    pairs = (data, values), (_kinds.renamed(data, new), moved)
    here, there = (float(prior + pointwise.sum()) for prior, pointwise in (parts(model, *pair) for pair in pairs))
    assert _close(here, there), f"renaming items and annotators changes the log density by {there - here:.3g}"


def _check_counts(model: Model, data: Any, points: list[Values]) -> None:
    """Each row twice, or once with a double count: equal but for Binomial coefficients, which cancel between two points."""
    change = [
        _log_likelihood(model, table, points[0]) - _log_likelihood(model, table, points[1]) for table in _kinds.doubled(data)
    ]
    assert _close(change[0], change[1], 1e2), (
        f"a repeated row is not the same as count=2: a step changes the log-likelihood by {change[0]:.10g} "
        f"and by {change[1]:.10g}"
    )


def _check_known(model: Model, data: Labels, values: Values) -> None:
    """The likelihood of an item is that with each class known, summed: so that known truths are used, and used rightly."""

    def pointwise(true_class: int) -> jax.Array:
        known = dataclasses.replace(data, truth=np.full(data.num_units, true_class, np.int32))
        return parts(model, known, values)[1]

    total = jax.nn.logsumexp(jnp.stack([pointwise(true_class) for true_class in range(data.num_classes)]), axis=0)
    wrong = float(jnp.max(jnp.abs(total - pointwise(-1))))
    assert wrong <= _TOLERANCE * (1 + float(jnp.max(jnp.abs(total)))), (
        f"log-likelihoods with each class known, summed over the classes, differ by {wrong:.3g} from those with none known; "
        "pass data.truth to GroupedMixture(known=...)"
    )
