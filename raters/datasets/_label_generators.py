"""Labels drawn under known classes and confusion matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from raters._check import share, whole
from raters.datasets._generators import Truth
from raters.errors import SettingError
from raters.labels import Labels


class GeneratedLabels(NamedTuple):
    """Labels, and the values that they were drawn under."""

    labels: Labels
    truth: Truth


def label_crowd(
    num_items: int = 200,
    num_annotators: int = 20,
    labels_per_item: int = 5,
    num_classes: int = 3,
    *,
    seed: int,
    accuracy: float = 0.75,
    spammers: float = 0.1,
    adversaries: float = 0.0,
    num_features: int = 0,
) -> GeneratedLabels:
    """A crowd that labels items, with spammers and adversaries in it.

    Every item is labelled by `labels_per_item` annotators, drawn at random. Competent ones have confusion matrices whose
    diagonals scatter about `accuracy`; a spammer's labels are drawn from one distribution whatever the class; an adversary
    gives a class the name of the next one, as reliably as the competent give it its own.

    Parameters
    ----------
    num_items, num_annotators, labels_per_item, num_classes : int
    seed : int
    accuracy : float
        Mean diagonal of the competent annotators' confusion matrices.
    spammers, adversaries : float
        Shares of the annotators.
    num_features : int
        Features of the items, normal about a centre of each class; none by default.

    Returns
    -------
    GeneratedLabels
        ``labels``, and ``truth`` with ``true_class`` (codes), ``confusion`` (annotator, true class, label), ``prevalence`` and
        ``kind``: "competent", "spammer" or "adversary" for each annotator.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(seed=0)
    >>> labels.num_labels, int((truth["kind"] == "spammer").sum())
    (1000, 2)
    """
    whole("num_items", num_items)
    whole("num_annotators", num_annotators)
    whole("labels_per_item", labels_per_item)
    whole("num_classes", num_classes, least=2)
    whole("num_features", num_features, least=0)
    share("accuracy", accuracy)
    if labels_per_item > num_annotators:
        raise SettingError(
            f"labels_per_item={labels_per_item} is not possible: there are only {num_annotators} annotators; "
            f"write labels_per_item={num_annotators} or raise num_annotators"
        )
    if spammers < 0 or adversaries < 0 or spammers + adversaries >= 1:
        raise SettingError(f"spammers={spammers} and adversaries={adversaries} must be shares that leave someone competent")
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.full(num_classes, 5.0))
    true_class = rng.choice(num_classes, num_items, p=prevalence)
    kind = np.array(
        ["spammer"] * round(spammers * num_annotators) + ["adversary"] * round(adversaries * num_annotators), object
    )
    kind = rng.permutation(np.concatenate([kind, ["competent"] * (num_annotators - len(kind))]))
    confusion = np.stack([_confusion(rng, one, num_classes, accuracy) for one in kind])
    item = np.repeat(np.arange(num_items), labels_per_item)
    annotator = np.argsort(rng.random((num_items, num_annotators)), axis=1)[:, :labels_per_item].ravel()
    chances = confusion[annotator, true_class[item]].cumsum(1)
    label = np.minimum((rng.random(len(item))[:, None] > chances).sum(1), num_classes - 1)
    table = {"item": item, "annotator": annotator, "label": label}
    labels = Labels.from_frame(
        table,
        item="item",
        annotator="annotator",
        label="label",
        items=range(num_items),
        annotators=range(num_annotators),
        classes=range(num_classes),
    )
    if num_features:
        centre = rng.normal(scale=1.5, size=(num_classes, num_features))
        labels = labels.with_features(centre[true_class] + rng.normal(size=(num_items, num_features)))
    truth = {"true_class": true_class, "confusion": confusion, "prevalence": prevalence, "kind": kind}
    return GeneratedLabels(labels, truth)


def _confusion(rng: np.random.Generator, kind: str, number: int, accuracy: float) -> np.ndarray:
    """An annotator's confusion matrix."""
    if kind == "spammer":
        return np.tile(rng.dirichlet(np.ones(number)), (number, 1))
    right = np.roll(np.eye(number), 1, axis=1) if kind == "adversary" else np.eye(number)
    mean = accuracy * right + (1 - accuracy) * (1 - right) / (number - 1)
    return np.stack([rng.dirichlet(10 * row) for row in mean])
