"""Quantities of an audit of labels: confusions, competence, accuracy, information, types and
labels; and sections of a report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from raters import kinds
from raters.auditing.intervals import table
from raters.auditing.verdicts import gives_one_answer, share_of
from raters.distributions.labels import TypeMixture
from raters.errors import refuse
from raters.fitting.result import draws_of
from raters.inference.polya_gamma import latent_classes
from raters.judgements.labels import Labels
from raters.judgements.names import name_text, names_array
from raters.kinds import AuditLimits, Quantities
from raters.kinds.sections import shown
from raters.model import Model, Values
from raters.program import Program, answer_probs, skeleton, trace

ConfusionDraws = Float[np.ndarray, "draw annotator true_class label"]
Prevalence = Float[np.ndarray, "draw true_class"]
ItemCodes = Int[np.ndarray, " item"]
ClassProbs = Float[np.ndarray, "item true_class"]
PerAnnotator = Float[np.ndarray, " annotator"]

# Draws to read; an interval's end is then certain to about a tenth of the interval's width.
_DRAWS = 400
# Items to average over where an annotator's matrix depends on the item.
_ITEMS = 100
# Annotators are read in parts of so many numbers (80 MB), and so many under one draw.
_NUMBERS, _ROWS = 10_000_000, 4_000_000
# Probabilities this close are a tie.
_TIE = 1e-9


def quantities(program: Program[Any], result: xr.DataTree, limits: AuditLimits) -> Quantities:
    """Competence, accuracy and information of each annotator, from confusion matrices."""
    check_can_audit(program)
    labels: Labels = program.data
    draws, _ = draws_of(program, result, _DRAWS)
    responsibility = result["classes"]["responsibility"].transpose("item", "true_class").values
    num_draws = len(next(iter(draws.values())))
    prevalence = draws.get(
        "prevalence", np.broadcast_to(responsibility.mean(0), (num_draws, labels.num_classes))
    )
    parts = confusion_draws(program.model, labels, draws, responsibility)
    found = quantities_of(labels, parts, prevalence, most_probable(responsibility), limits)
    tables = dict(found.tables) | {"items": item_labels(result, labels)}
    columns = dict(found.columns) | type_columns(type_probs(program, draws))
    return dataclasses.replace(found, columns=columns, tables=tables)


def _check_limits(limits: AuditLimits, num_classes: int) -> None:
    """Raise unless both limits are within the range of what they bound."""
    if not -1 < limits.threshold < 1:
        problem = "is beyond every competence, which is 1 for whoever is always right"
        expected = "it must lie between -1 and 1"
        refuse("threshold", limits.threshold, problem, expected, instead="threshold=0.25")
    if num_classes > 1 and limits.margin >= np.log2(num_classes):
        problem = "is more than the whole information on a class, so that all would be spammers"
        expected = f"it must be below {np.log2(num_classes):.3g} bits"
        refuse("margin", limits.margin, problem, expected, instead="margin=0.05")


def quantities_of(
    labels: Labels,
    parts: Iterable[ConfusionDraws],
    prevalence: Prevalence,
    chosen: ItemCodes,
    limits: AuditLimits,
) -> Quantities:
    """Quantities of each annotator that follow from confusion matrices."""
    _check_limits(limits, labels.num_classes)
    tails = ((1 - limits.level) / 2, (1 + limits.level) / 2)
    found, means = [], []
    for confusion in parts:
        values, excess = _values(confusion, prevalence)
        found.append(values)
        means.append((excess, confusion.mean(0), *np.quantile(confusion, tails, axis=0)))
    values = {name: np.concatenate([part[name] for part in found], 1) for name in found[0]}
    bias, mean, low, high = map(np.concatenate, zip(*means, strict=True))
    axes = ("annotator", "true_class", "label")
    tables = {"mean": (axes, mean), "low": (axes, low), "high": (axes, high)}
    coords = {axis: names_array(labels.coords[axis]) for axis in axes}
    adversarial = (values["competence"] < 0) & (values["information"] >= limits.margin)
    return Quantities(
        values,
        judged="competence",
        columns={
            "p_spammer": (values["information"] < limits.margin).mean(0),
            "p_adversarial": adversarial.mean(0),
            "bias_class": names_array(labels.classes)[bias.argmax(-1)],
            "bias": bias.max(-1),
            **_agreement(labels, chosen),
        },
        tables={"confusion": xr.Dataset(tables, coords=coords)},
    )


def check_can_audit(program: Program[Any]) -> None:
    """Raise unless a model tells annotators apart and sums a true class out."""
    judge = program.data.judge
    if judge not in program.axes:
        problem = "takes all annotators as alike, so there is nobody to tell apart"
        expected = (
            "fit DawidSkene (or OneCoin when each gave few labels), and pass that model and"
            " its result"
        )
        refuse("model", program.model, problem, expected, instead="rt.DawidSkene()")
    if program.latent is None:
        problem = "sums no true class out, so its annotators have no confusion matrices to audit"
        refuse("model", program.model, problem, "fit a model that does")


# ---------------------------------------------------------------------- annotators


def confusion_draws(
    model: Model[Any], labels: Labels, draws: Values, responsibility: ClassProbs
) -> Iterator[ConfusionDraws]:
    """Draws of P(label | annotator, true class), in parts of the annotators."""
    num_draws, num_classes = len(next(iter(draws.values()))), labels.num_classes
    rng = np.random.default_rng(0)
    units = np.sort(rng.choice(labels.num_units, min(labels.num_units, _ITEMS), replace=False))
    codes = np.arange(labels.num_annotators)
    # Whether a label's probability differs between items, under one draw.
    some = jax.tree.map(jnp.asarray, _asked(labels, codes[:20], units))
    last = {name: value[-1] for name, value in draws.items()}
    probs = np.asarray(_label_probs(model, some, last, len(units)))
    if np.ptp(probs, axis=0).max() <= 1e-6:
        units = units[:1]
    # A class that none of these items has is averaged over all of them.
    weights = responsibility[units] + 1e-6
    weights /= weights.sum(0)
    most = min(_NUMBERS // num_draws, _ROWS // len(units)) // num_classes**2
    size = max(1, min(len(codes), most))
    for begin in range(0, len(codes), size):
        # Parts of one shape are compiled once.
        part = np.minimum(np.arange(begin, begin + size), len(codes) - 1)
        question = jax.tree.map(jnp.asarray, _asked(labels, part, units))
        emissions = _emissions(model, question, draws, jnp.asarray(weights))
        yield np.asarray(emissions, np.float64)[:, : len(codes) - begin]


def _asked(
    labels: Labels, codes: Int[np.ndarray, " annotator"], units: Int[np.ndarray, " unit"]
) -> Labels:
    """Questions about each of the items to each of the annotators."""
    group, annotator = np.indices((len(units), len(codes)), np.int32).reshape(2, -1)
    return dataclasses.replace(
        labels,
        group=group,
        annotator=codes.astype(np.int32)[annotator],
        label=None,
        count=None,
        unit_code=np.asarray(labels.unit_code)[units],
        truth=None,
        features=None if labels.features is None else np.asarray(labels.features)[units],
        most=len(codes),
    )


@partial(jax.jit, static_argnums=(0, 3))
def _label_probs(
    model: Model[Any], question: Any, values: Values, items: int
) -> Float[Array, "item annotator label true_class"]:
    """Probability of each label under each true class."""
    probs = answer_probs(model, question, values).transpose(2, 1, 0)
    return probs.reshape(items, -1, *probs.shape[1:])


@partial(jax.jit, static_argnums=0)
def _emissions(
    model: Model[Any], question: Any, draws: Values, weights: Float[Array, "item true_class"]
) -> Float[Array, "draw annotator true_class label"]:
    """Draws of confusion matrices, averaged over items."""

    def of(values: Values) -> Float[Array, "annotator true_class label"]:
        probs = _label_probs(model, question, values, len(weights))
        return jnp.einsum("iajk,ik->akj", probs, weights)

    return jnp.asarray(jax.lax.map(of, draws))


def _values(
    confusion: ConfusionDraws, prevalence: Prevalence
) -> tuple[dict[str, Float[np.ndarray, "draw annotator"]], Float[np.ndarray, "annotator label"]]:
    """Quantities that follow from confusion matrices, and the mean excess of each label."""
    num_classes = confusion.shape[-1]
    right = np.einsum("dakk->dak", confusion)
    given = np.einsum("dk,dakj->daj", prevalence, confusion)
    competence = (right.mean(-1) - 1 / num_classes) / (1 - 1 / num_classes)
    values = {"competence": competence, "accuracy": np.einsum("dk,dak->da", prevalence, right)}
    if num_classes == 2:
        values |= {"sensitivity": right[..., 1], "specificity": right[..., 0]}
    # Mutual information of true class and label.
    tiny = np.finfo(float).tiny
    gain = np.log2(np.maximum(confusion, tiny)) - np.log2(np.maximum(given, tiny))[:, :, None]
    bits = np.einsum("dk,dakj,dakj->da", prevalence, confusion, gain)
    values["information"] = np.maximum(bits, 0.0)
    return values, (given - prevalence[:, None]).mean(0)


def _agreement(labels: Labels, chosen: ItemCodes) -> dict[str, np.ndarray]:
    """Share of labels that are their item's likeliest class, and whether all are one class."""
    weight, item = np.asarray(labels.weight, float), np.asarray(labels.item)
    code, number = np.asarray(labels.annotator), labels.num_annotators
    given, votes = labels.answers_by("annotator"), labels.votes()
    most = given.argmax(1)
    with np.errstate(invalid="ignore"):
        shares = votes / votes.sum(1, keepdims=True)
    chance = share_of(code, weight * shares[item, most[code]], weight, number)
    chance = np.nan_to_num(chance, nan=1.0)
    same = weight * (np.asarray(labels.label) == chosen[item])
    return {
        "agreement": share_of(code, same, weight, number),
        "gives_one_answer": gives_one_answer(given.max(1), given.sum(1), chance),
    }


# ---------------------------------------------------------------------- items


def most_probable(responsibility: ClassProbs) -> ItemCodes:
    """Code of the most probable class of each item; of several, the first."""
    tied = responsibility > responsibility.max(1, keepdims=True) - _TIE
    return np.asarray(np.argmax(tied, axis=1))


def item_labels(result: xr.DataTree, labels: Labels) -> xr.Dataset:
    """Most probable class of each item by its model; see `item_table`."""
    probability = result["classes"]["responsibility"].transpose("item", "true_class").values
    return item_table(probability, labels)


def item_table(probability: ClassProbs, labels: Labels) -> xr.Dataset:
    """Most probable class of each item, with its probability, entropy, number of labels, and the
    probability of each of a few classes."""
    chosen = most_probable(probability)
    positive = np.where(probability > 0, probability, 1.0)
    columns = {
        "label": names_array(labels.classes)[chosen],
        "probability": probability.max(1),
        "entropy": np.maximum(-(positive * np.log2(positive)).sum(1), 0.0),
        "judgements": labels.judgements_by("item"),
    }
    if labels.num_classes <= _CLASSES:
        each = zip(labels.classes, probability.T, strict=True)
        columns |= {f"p_{name_text(name)}": of_class for name, of_class in each}
    return table("item", labels.items, columns)


# ---------------------------------------------------------------- types of annotators

# Column of an audit's table that holds the probability of a type, in place of that of a range of
# competences.
_COLUMNS = {"guesser": "p_spammer", "adversary": "p_adversarial"}


def type_probs(
    program: Program[Any], draws: Values, true_class: Int[np.ndarray, "draw unit"] | None = None
) -> dict[str, PerAnnotator]:
    """Mean probability of each type of each annotator, by its name: that of their parameters under
    each draw, or, where the true classes are given, that of their labels."""
    mixtures = (
        name for name, one in program.sites.items() if one.distribution == TypeMixture.__name__
    )
    if (site := next(mixtures, None)) is None:
        return {}
    given = true_class is not None
    part = program.data.first_unit()
    with jax.enable_x64(given or jax.config.jax_enable_x64):
        data = jax.tree.map(jnp.asarray, program.data if given else part)
        classes = jnp.asarray(true_class) if given else None
        probs = np.asarray(_at_draws(program.model, site, data, draws, classes), np.float64)
    names: list[str] = []
    jax.eval_shape(lambda: names.extend(skeleton(program.model, part)[site]["fn"].names))
    return dict(zip(names, probs.T, strict=True))


@partial(jax.jit, static_argnums=(0, 1))
def _at_draws(
    model: Model[Any], site: str, data: Any, draws: Values, true_class: Any
) -> Float[Array, "annotator type"]:
    """Probabilities of the types given the parameters, or the classes, averaged over draws."""

    def of(entry: tuple[Values, Array | None]) -> Array:
        values, codes = entry
        found = trace(model, data, values)[site]
        if codes is None:
            return jnp.asarray(found["fn"].type_probs(found["value"]))
        classes = jax.nn.one_hot(codes, data.num_classes)
        parameters = latent_classes.parameters(model, data, values, classes, site)
        probs = jax.nn.softmax(latent_classes.component_log_probs(parameters), axis=-1)
        return jnp.asarray(found["fn"].by_type(probs))

    return jnp.mean(jax.lax.map(of, (draws, true_class)), 0)


def type_columns(probs: dict[str, PerAnnotator]) -> dict[str, PerAnnotator]:
    """Columns of an audit's table that the probabilities of types give."""
    return {column: probs[name] for name, column in _COLUMNS.items() if name in probs}


# ---------------------------------------------------------------- sections of a report

# Confusion matrices in a report, and classes up to which they can be read.
_MATRICES, _CLASSES = 12, 8


def doubtful_items(context: kinds.AuditContext) -> kinds.Section:
    """Expected number of wrong labels, and the items from the most doubtful on."""
    data, audit = context.program.data, context.audit
    labelled = item_labels(context.result, data) if audit is None else audit.items
    assert labelled is not None
    table = labelled.to_dataframe().reset_index()
    table = table.sort_values("probability", kind="stable", ignore_index=True)
    interval = None if audit is None else audit.wrong_interval
    numbers = {
        "expected_wrong": float((1 - labelled["probability"]).sum()),
        "wrong_interval": interval,
        "of": len(table),
        "like_public_crowds": audit is not None and audit.anchor.is_missing,
    }
    classes = table["label"].astype(str).value_counts().to_dict()
    findings = [kinds.finding("wrong_labels", **numbers), kinds.finding("classes", number=classes)]
    if audit is not None and audit.influential:
        findings.append(kinds.finding("influence", **audit.influential))
    return kinds.Section(
        key="items",
        title="Item labels",
        findings=tuple(findings),
        columns=shown("item label probability entropy judgements"),
        table=table,
        limits=() if interval else (kinds.finding("independent_errors"),),
    )


def confusions(context: kinds.AuditContext) -> kinds.Section | None:
    """Confusion matrices of the least trusted annotators; of many classes only as a table."""
    audit = context.audit
    if audit is None or audit.confusion is None:
        return None
    mean = audit.confusion["mean"].transpose("annotator", "true_class", "label")
    names = {axis: [str(name) for name in mean[axis].values] for axis in mean.dims}
    order = np.lexsort((audit.table["competence"].values, -audit.table["p_below"].values))
    shown_judges = order[:_MATRICES] if mean.sizes["label"] <= _CLASSES else order[:0]
    matrices = [
        {
            "title": names["annotator"][place],
            "rows": names["true_class"],
            "columns": names["label"],
            "values": mean.values[place],
        }
        for place in shown_judges
    ]
    numbers = {"shown": len(shown_judges), "of": len(order), "classes": mean.sizes["label"]}
    return kinds.Section(
        key="confusion",
        title="Confusion matrices",
        findings=(kinds.finding("confusion", **numbers),),
        table=audit.confusion.to_dataframe().reset_index(),
        matrices=tuple(matrices),
        figures={"confusions": {"audit": audit}},
    )
