"""The audit of a label model: what its program says of every annotator under every draw, and of every item."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from raters._result import draws_of, label_array
from raters.errors import SettingError
from raters.inference._trace import latent_sites, trace
from raters.labels import Labels
from raters.model import Model, Values

# Draws to read; an interval's end is then certain to about a tenth of the interval's width.
_DRAWS = 400
# Items to average over where an annotator's matrix depends on the item.
_ITEMS = 100
# Annotators are read in parts of so many numbers (80 MB), and so many under one draw.
_NUMBERS, _ROWS = 10_000_000, 4_000_000
# Probabilities this close are a tie.
_TIE = 1e-9

Columns = dict[str, np.ndarray]


class Findings(NamedTuple):
    """What an audit says of annotators (columns of its table, and their confusion matrices) and of items."""

    columns: Columns
    confusion: xr.Dataset
    items: xr.Dataset


def findings(
    model: Model, result: xr.DataTree, labels: Labels, *, level: float, threshold: float, spam_bits: float
) -> Findings:
    """Everything but the verdicts."""
    _check_can_audit(model, result, labels)
    draws, _ = draws_of(model, result, _DRAWS)
    responsibility = result["classes"]["responsibility"].transpose("item", "true_class").values
    number = len(next(iter(draws.values())))
    prevalence = draws.get("prevalence", np.broadcast_to(responsibility.mean(0), (number, labels.num_classes)))
    tails = ((1 - level) / 2, (1 + level) / 2)
    parts, matrices = [], []
    for confusion in confusion_draws(model, labels, draws, responsibility):
        parts.append(_judged(confusion, prevalence, tails, threshold, spam_bits))
        matrices.append((confusion.mean(0), *np.quantile(confusion, tails, axis=0)))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    columns["bias_class"] = label_array(labels.classes)[columns["bias_class"]]
    found = item_labels(result, labels)
    columns |= {"agreement": _agreement(labels, most_probable(responsibility)), "votes": labels.votes_by_annotator()}
    mean, low, high = (np.concatenate(part) for part in zip(*matrices, strict=True))
    axes = ("annotator", "true_class", "label")
    tables = {"mean": (axes, mean), "low": (axes, low), "high": (axes, high)}
    coords = {axis: label_array(labels.coords[axis]) for axis in axes}
    return Findings(columns, xr.Dataset(tables, coords=coords), found)


def _check_can_audit(model: Model, result: xr.DataTree, labels: Labels) -> None:
    name = type(model).__name__
    if not any("annotator" in site.dims for site in latent_sites(model, labels).values()):
        raise SettingError(
            f"{name} takes all annotators as alike, so there is nobody to tell apart; fit DawidSkene() (or OneCoin() when each "
            "gave few labels), and pass that model and its result"
        )
    if "classes" not in result:
        raise SettingError(f"{name} sums no true class out, so its annotators have no confusion matrices to audit")


# ------------------------------------------------------------------------------------------------- annotators


def confusion_draws(model: Model, labels: Labels, draws: Values, responsibility: np.ndarray) -> Iterator[np.ndarray]:
    r"""Draws of P(label | annotator, true class), read off the model's program, for some annotators after the others.

    Every annotator is made to give every label to the same items, and the program says how likely each label is under each
    true class. Where that depends on the item, it is averaged over (at most `_ITEMS`) items, each with the weight that its
    class has that probability: for class k over the items of class k.

    Yields
    ------
    array, shape (draw, annotator, true class, label)
    """
    number, classes = len(next(iter(draws.values()))), labels.num_classes
    rng = np.random.default_rng(0)
    units = np.sort(rng.choice(labels.num_units, min(labels.num_units, _ITEMS), replace=False))
    who = np.arange(labels.num_annotators)
    if not _depends_on_items(model, labels, {name: value[-1:] for name, value in draws.items()}, units):
        units = units[:1]
    # A class that none of these items has is averaged over all of them.
    weights = responsibility[units] + 1e-6
    weights /= weights.sum(0)
    size = max(1, min(len(who), _NUMBERS // (number * classes**2), _ROWS // (len(units) * classes**2)))
    for begin in range(0, len(who), size):
        part = np.minimum(np.arange(begin, begin + size), len(who) - 1)  # one shape, one compilation
        question = jax.tree.map(jnp.asarray, _every_label(labels, part, units))
        yield np.asarray(_emissions(model, question, draws, jnp.asarray(weights)), np.float64)[:, : len(who) - begin]


def _depends_on_items(model: Model, labels: Labels, draw: Values, units: np.ndarray) -> bool:
    """Whether a label's probability differs between items, under one draw and for the first annotators."""
    who = np.arange(min(labels.num_annotators, 20))
    question = jax.tree.map(jnp.asarray, _every_label(labels, who, units))
    table = np.asarray(_rows(model, question, {name: value[0] for name, value in draw.items()}, len(units)))
    return bool(np.ptp(table, axis=0).max() > 1e-6)


def _every_label(labels: Labels, who: np.ndarray, units: np.ndarray) -> Labels:
    """Each of the annotators giving each label to each of the items, by item, annotator, label."""
    shape = (len(units), len(who), labels.num_classes)
    group, annotator, label = (code.ravel().astype(np.int32) for code in np.indices(shape))
    return dataclasses.replace(
        labels,
        group=group,
        annotator=who.astype(np.int32)[annotator],
        label=label,
        count=None,
        unit=np.asarray(labels.unit)[units],
        truth=None,
        features=None if labels.features is None else np.asarray(labels.features)[units],
        most=shape[1] * shape[2],
    )


@partial(jax.jit, static_argnums=(0, 3))
def _rows(model: Model, question: Any, values: Values, items: int) -> jax.Array:
    """Probability of each row's label under each true class, shape (item, annotator, label, true class)."""
    site = trace(model, question, values)[model.observed]
    log = site["fn"].component_distribution.log_prob(site["value"][:, None])
    return jnp.exp(log).reshape(items, -1, question.num_classes, question.num_classes)


@partial(jax.jit, static_argnums=0)
def _emissions(model: Model, question: Any, draws: Values, weights: jax.Array) -> jax.Array:
    return jax.lax.map(lambda values: jnp.einsum("iajk,ik->akj", _rows(model, question, values, len(weights)), weights), draws)


def _judged(confusion: np.ndarray, prevalence: np.ndarray, tails: tuple[float, float], threshold, spam_bits) -> Columns:
    """What follows from confusion matrices, shape (draw, annotator, true class, label), and class frequencies."""
    number = confusion.shape[-1]
    right = np.einsum("dakk->dak", confusion)
    said = np.einsum("dk,dakj->daj", prevalence, confusion)
    competence = (right.mean(-1) - 1 / number) / (1 - 1 / number)
    information = _information(confusion, prevalence, said)
    quantities = {"competence": competence, "accuracy": np.einsum("dk,dak->da", prevalence, right)}
    if number == 2:
        quantities |= {"sensitivity": right[..., 1], "specificity": right[..., 0]}
    columns: Columns = {}
    for name, draws in (quantities | {"information": information}).items():
        low, high = np.quantile(draws, tails, axis=0)
        columns |= {name: draws.mean(0), f"{name}_low": low, f"{name}_high": high}
    excess = (said - prevalence[:, None]).mean(0)
    return columns | {
        "p_spammer": (information < spam_bits).mean(0),
        "p_adversarial": ((competence < 0) & (information >= spam_bits)).mean(0),
        "p_below": (competence < threshold).mean(0),
        "bias_class": excess.argmax(-1),
        "bias": excess.max(-1),
    }


def _information(confusion: np.ndarray, prevalence: np.ndarray, said: np.ndarray) -> np.ndarray:
    """Mutual information of true class and label in bits, shape (draw, annotator)."""
    tiny = np.finfo(float).tiny
    gain = np.log2(np.maximum(confusion, tiny)) - np.log2(np.maximum(said, tiny))[:, :, None]
    return np.maximum(np.einsum("dk,dakj,dakj->da", prevalence, confusion, gain), 0.0)


def _agreement(labels: Labels, chosen: np.ndarray) -> np.ndarray:
    """Share of each annotator's labels that are the most probable class of their item; NaN without labels."""
    weight = np.asarray(labels.weight, float)
    same = weight * (np.asarray(labels.label) == chosen[np.asarray(labels.item)])
    who, number = np.asarray(labels.annotator), labels.num_annotators
    with np.errstate(invalid="ignore"):
        return np.bincount(who, same, number) / np.bincount(who, weight, number)


# ------------------------------------------------------------------------------------------------- items


def most_probable(responsibility: np.ndarray) -> np.ndarray:
    """Code of the most probable class of each item; of several, the first."""
    return np.argmax(responsibility > responsibility.max(1, keepdims=True) - _TIE, axis=1)


def item_labels(result: xr.DataTree, labels: Labels) -> xr.Dataset:
    """For each item its most probable class, that class's probability, the entropy of its class in bits, and its labels."""
    responsibility = result["classes"]["responsibility"].transpose("item", "true_class").values
    chosen = most_probable(responsibility)
    positive = np.where(responsibility > 0, responsibility, 1.0)
    columns = {
        "label": label_array(labels.classes)[chosen],
        "probability": responsibility.max(1),
        "entropy": np.maximum(-(positive * np.log2(positive)).sum(1), 0.0),
        "votes": labels.votes_by_item(),
    }
    names = {"item": label_array(labels.items)}
    return xr.Dataset({name: ("item", value) for name, value in columns.items()}, coords=names)
