"""The verbs that read a fit: predict with it, and score it."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import xarray as xr
from jax.scipy.special import expit

from raters import _frame
from raters._check import one_of
from raters._result import check_data, check_model, data_of, draws_of, label_array, pointwise
from raters.data import Comparisons
from raters.errors import DataError, SettingError
from raters.inference._rows import logits_of
from raters.inference._trace import latent_sites, skeleton, trace
from raters.labels import Labels
from raters.model import Model, Values, unit_of

# Probabilities of classes are computed for up to this many numbers (1.6 GB).
_MOST = 400_000_000
# `responsibilities` averages over as many draws as stay below this many numbers, and over this many at least.
_AVERAGED, _FEWEST = 40_000_000, 50


def predict(model: Model, result: xr.DataTree, questions: Comparisons | Labels | None = None) -> xr.DataArray:
    """The probability that the first item wins, or of each true class, for each question and posterior draw.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    questions : Comparisons or Labels, optional
        By default those that were fitted. Items, annotators and classes are matched by name. `Labels` may have new items:
        their class is inferred from their labels, and from their features if the model has a classifier.

    Returns
    -------
    xarray.DataArray
        For comparisons, probabilities with axes ``chain``, ``draw``, ``comparison``, and the names ``first``, ``second``,
        ``by`` of each comparison. For labels, probabilities with axes ``chain``, ``draw``, ``item``, ``true_class``.

    Raises
    ------
    DataError
        When a question names an annotator that was not in the fit, or an item where the model has parameters of items.

    Examples
    --------
    >>> import raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=100), seed=0, progress=False)
    >>> rt.predict(rt.BTL(), result).sizes["draw"]
    100

    The class of a text that nobody of the crowd has seen but Ann:

    >>> labels, _ = rt.datasets.label_crowd(60, 5, 5, 2, seed=0)
    >>> result = rt.fit(rt.DawidSkene(), labels, rt.PGEM(draws=100), seed=0, progress=False)
    >>> new = rt.Labels.from_frame({"item": ["new"], "who": [0], "says": [1]}, item="item", annotator="who", label="says",
    ...                            classes=labels.classes)
    >>> rt.predict(rt.DawidSkene(), result, new).mean(("chain", "draw")).dims
    ('item', 'true_class')
    """
    check_model(model)
    fitted = data_of(result)
    if questions is not None:
        check_data(questions, "questions", model)
    asked = fitted if questions is None else recode(model, questions, fitted)
    values, sizes = draws_of(model, result)
    lead = {axis: result["posterior"][axis].values for axis in ("chain", "draw")}
    if isinstance(asked, Labels):
        if (number := sizes[0] * sizes[1] * asked.num_units * asked.num_classes) > _MOST:
            raise SettingError(
                f"probabilities of {asked.num_classes} classes of {asked.num_units} items under {sizes[0] * sizes[1]} draws "
                f"are {number:.2g} numbers; thin the draws first, as in result.sel(draw=result['posterior']['draw'][::10]), "
                "or read the mean over draws from result['classes']['responsibility']"
            )
        table = np.asarray(class_probabilities(model, jax.tree.map(jnp.asarray, asked), values))
        return xr.DataArray(
            table.reshape(*sizes, *table.shape[1:]),
            dims=("chain", "draw", "item", "true_class"),
            coords=lead | {"item": label_array(asked.items), "true_class": label_array(asked.classes)},
            name="probability",
        )
    known = jax.tree.map(jnp.asarray, fitted) if latent_of(model, fitted) else None
    pieces = [np.asarray(_chances(model, piece, known, values)) for piece in asked.take(slice(None)).chunks(1 << 16)]
    chances = np.concatenate(pieces, axis=1)
    who = {"first": asked.first, "second": asked.second, "by": asked.annotator}
    names = {"first": asked.items, "second": asked.items, "by": asked.annotators}
    return xr.DataArray(
        chances.reshape(*sizes, -1),
        dims=("chain", "draw", "comparison"),
        coords={
            **lead,
            "comparison": np.arange(asked.num_comparisons),
            **{role: ("comparison", label_array(names[role])[np.asarray(codes)]) for role, codes in who.items()},
        },
        name="probability",
    )


@partial(jax.jit, static_argnums=0)
def _chances(model: Model, asked: Any, fitted: Any, draws: Values) -> jax.Array:
    """Probability that the first item wins, shape (draw, comparison)."""

    def one(values):
        weight, logits = weighted_logits(model, asked, fitted, values)
        return (weight * expit(logits)).sum(-1)

    return jax.lax.map(one, draws)


def weighted_logits(model: Model, asked: Any, fitted: Any, values: Values) -> tuple[jax.Array, jax.Array]:
    """Log-odds that the first item wins for each type that the annotator may be of, and the probability of each type given
    the `fitted` votes, both of shape (comparison, type). A model without types has one, and needs no `fitted` votes."""
    logits = logits_of_types(model, asked, values)
    if latent_of(model, asked) is None:
        return jnp.ones(()), logits
    return responsibility(model, fitted, values)[asked.annotator], logits


def logits_of_types(model: Model, asked: Any, values: Values) -> jax.Array:
    """Log-odds that the first item wins for each type, shape (comparison, type); one type where the model has none."""
    asked = dataclasses.replace(asked, wins=jnp.zeros(asked.num_comparisons))  # No answer is drawn where none is given.
    if latent_of(model, asked) is None:
        return logits_of(model, asked, values)[:, None]
    return trace(model, asked, values)[model.observed]["fn"].component_distribution.logits


def responsibility(model: Model, data: Any, values: Values) -> jax.Array:
    """Probability of each class of each unit given its judgements, under one draw, shape (unit, class)."""
    site = trace(model, data, values)[model.observed]
    return site["fn"].responsibilities(site["value"])


@partial(jax.jit, static_argnums=0)
def class_probabilities(model: Model, data: Any, draws: Values) -> jax.Array:
    """Probability of each class of each unit given its judgements, shape (draw, unit, class)."""
    return jax.lax.map(lambda values: responsibility(model, data, values).astype(jnp.float32), draws)


@partial(jax.jit, static_argnums=0)
def _mean_responsibility(model: Model, data: Any, draws: Values) -> jax.Array:
    number = len(next(iter(draws.values())))

    def add(total, values):
        return total + responsibility(model, data, values), None

    one = jax.eval_shape(lambda: responsibility(model, data, jax.tree.map(lambda value: value[0], draws)))
    return jax.lax.scan(add, jnp.zeros(one.shape), draws)[0] / number


class Latent(NamedTuple):
    """What a likelihood sums out: the group of a result that holds its responsibilities, and their axes."""

    group: str
    axes: tuple[str, str]


_LATENT = {"item": Latent("classes", ("item", "true_class")), "annotator": Latent("types", ("annotator", "type"))}


def latent_of(model: Model, data: Any) -> Latent | None:
    """The classes that the model sums out, if any."""
    return _LATENT.get(unit_of(model, data)[0])


def responsibilities(model: Model, result: xr.DataTree, data: Any) -> xr.DataArray:
    """Posterior probability of each class of each unit, averaged over (evenly thinned) draws; axes of `latent_of`."""
    values, sizes = draws_of(model, result)
    number, units = sizes[0] * sizes[1], unit_of(model, data)[1]
    keep = min(number, max(_FEWEST, _AVERAGED // max(units * _num_classes(model, data), 1)))
    rows = np.linspace(0, number - 1, keep).astype(int)
    with jax.enable_x64(True):
        draws = {name: np.asarray(value[rows], np.float64) for name, value in values.items()}
        mean = np.asarray(_mean_responsibility(model, jax.tree.map(jnp.asarray, data), draws))
    latent = latent_of(model, data)
    assert latent is not None
    names = data.coords | {"type": range(mean.shape[-1])}
    coords = {axis: label_array(names[axis]) for axis in latent.axes}
    return xr.DataArray(mean, dims=latent.axes, coords=coords, name="responsibility")


def _num_classes(model: Model, data: Any) -> int:
    return skeleton(model, data.take(slice(0, 1)))[model.observed]["fn"].log_weights().shape[-1]


def recode(model: Model, questions: Any, fitted: Any) -> Any:
    """Questions in the codes of the fitted data."""
    annotator = _frame.match(questions.annotator, questions.annotators, fitted.annotators, "annotator")
    if isinstance(questions, Comparisons):
        first, second, items = questions.first, questions.second, questions.items
        if of_items(model, fitted):
            first, second = (_frame.match(side, items, fitted.items, "item") for side in (first, second))
            items = fitted.items
        return dataclasses.replace(
            questions,
            first=first,
            second=second,
            annotator=annotator,
            items=items,
            annotators=fitted.annotators,
            **_side_features(model, questions, fitted),
        )
    unit, items = questions.unit, questions.items
    if of_items(model, fitted):
        unit, items = _frame.match(unit, items, fitted.items, "item"), fitted.items
    codes = {}
    for role in ("label", "truth"):
        column = getattr(questions, role)
        if column is not None:
            known = np.asarray(column) >= 0
            code = np.full(column.shape, -1, np.int32)
            code[known] = _frame.match(np.asarray(column)[known], questions.classes, fitted.classes, "class")
            codes[role] = code
    if questions.label is None:
        raise DataError("these labels have no answers to infer the class from; items without any label may be among them")
    return dataclasses.replace(
        questions,
        **codes,
        annotator=annotator,
        unit=unit,
        items=items,
        annotators=fitted.annotators,
        classes=fitted.classes,
        record=fitted.record,
        **_features_as(model, questions, fitted),
    )


def of_items(model: Model, fitted: Any) -> bool:
    """Whether there are parameters of items, which are those of the items that were fitted."""
    return any("item" in site.dims for site in latent_sites(model, fitted).values())


def _side_features(model: Model, questions: Comparisons, fitted: Comparisons) -> dict[str, Any]:
    """Features of the sides, in the order of those that were fitted; none for a model that does without."""
    none: dict[str, Any] = {"features": None, "feature_names": ()}
    if fitted.features is None or model.why_not(dataclasses.replace(fitted, **none)) is None:
        return none
    if missing := [name for name in fitted.feature_names if name not in questions.feature_names]:
        raise DataError(
            f"the model was fitted with {len(fitted.feature_names)} features, and these comparisons lack {len(missing)} of "
            f"them ({_frame.shorten(missing)}); add them with votes.with_features(...), or by from_frame(..., features={{...}})"
        )
    order = [questions.feature_names.index(name) for name in fitted.feature_names]
    return {"features": np.asarray(questions.features)[:, order], "feature_names": fitted.feature_names}


def _features_as(model: Model, questions: Labels, fitted: Labels) -> dict[str, Any]:
    """Features centred and scaled as those that were fitted; none for a model that does without."""
    none: dict[str, Any] = {"features": None, "centre": None, "scale": None, "feature_names": ()}
    if model.why_not(dataclasses.replace(fitted, **none)) is None:
        return none
    if questions.feature_names != fitted.feature_names:
        raise DataError(
            f"the model was fitted with {len(fitted.feature_names) - 1} features "
            f"({_frame.shorten(fitted.feature_names[1:])}), and these labels have "
            f"{max(len(questions.feature_names) - 1, 0)} ({_frame.shorten(questions.feature_names[1:])}); add the same "
            "ones, in the same order, with labels.with_features(..., like=fitted_labels)"
        )
    raw = np.asarray(questions.features) * np.asarray(questions.scale) + np.asarray(questions.centre)
    scaled = (raw - np.asarray(fitted.centre)) / np.asarray(fitted.scale)
    return {"features": scaled, "centre": fitted.centre, "scale": fitted.scale}


def log_likelihood(model: Model, result: xr.DataTree, *, by: str | None = None) -> xr.DataTree:
    """The result with its pointwise log-likelihood, summed to the unit that is left out in cross-validation.

    Models whose likelihood marginalises something per annotator have no smaller unit than that; bring two
    models to one unit before ``arviz.compare``.

    Parameters
    ----------
    model : Model
        The model that was fitted.
    result : xarray.DataTree
    by : {"comparison", "annotator", "item"}, optional
        By default what the likelihood is a product over: a comparison, an item with all its labels, or, for models of
        types, an annotator with all votes.

    Returns
    -------
    xarray.DataTree
        A copy with group ``log_likelihood``: variable ``outcome`` with axes ``chain``, ``draw`` and `by`.

    Examples
    --------
    >>> import arviz as az, raters as rt
    >>> votes, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> result = rt.fit(rt.BTL(), votes, rt.PGEM(draws=100), seed=0, progress=False)
    >>> rt.log_likelihood(rt.BTL(), result, by="annotator").log_likelihood["outcome"].dims
    ('chain', 'draw', 'annotator')
    """
    data = data_of(result)
    axis, _ = unit_of(model, data)
    by = axis if by is None else by
    one_of("by", by, ("comparison", "annotator", "item"))
    if by not in (axis, "annotator") or (by == "annotator" and isinstance(data, Labels)):
        latent = latent_of(model, data)
        what = "labels" if isinstance(data, Labels) else "votes"
        shared = "" if latent is None else f", whose {what} share a {latent.axes[1].replace('_', ' ')} that is summed out"
        raise SettingError(
            f"by={by!r} is not possible: the likelihood of {type(model).__name__} is a product over the axis {axis!r}{shared}"
        )
    table_by_unit = pointwise(model, result, data)
    if by != axis:
        voted, code = np.unique(data.annotator, return_inverse=True)
        member = scipy.sparse.coo_array((np.ones(len(code)), (np.arange(len(code)), code)), (len(code), len(voted)))
        table = table_by_unit[model.observed].values
        sums = (table.reshape(-1, len(code)) @ member.tocsc()).reshape(*table.shape[:2], len(voted))
        table_by_unit = xr.Dataset(
            {model.observed: (("chain", "draw", "annotator"), sums)},
            coords={
                "annotator": label_array(data.annotators)[voted],
                "chain": table_by_unit["chain"],
                "draw": table_by_unit["draw"],
            },
        )
    copy = result.copy()
    copy["log_likelihood"] = xr.DataTree(table_by_unit)
    return copy
