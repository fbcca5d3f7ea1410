"""Labels drawn under known classes and confusion matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from raters.datasets._generators import Truth, check_amount, check_shares, draw_kinds
from raters.errors.validation import at_most, checked, share, whole
from raters.judgements.labels import Labels


class GeneratedLabels(NamedTuple):
    """Labels, and what generated them.

    Attributes
    ----------
    labels : Labels
    truth : dict of str to array
        True classes and parameters by name.
    """

    labels: Labels
    truth: Truth


@checked
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
    """Generate labels by a crowd with spammers and adversaries in it.

    Each item is labelled by `labels_per_item` random annotators. Competent annotators have
    confusion matrices with diagonals around `accuracy`. A spammer's labels have the same
    distribution whatever the true class. An adversary gives each class the label of the next one,
    as reliably as a competent annotator gives the right label.

    Parameters
    ----------
    num_items, num_annotators, labels_per_item, num_classes : int
        At least 2 classes, 1 of the others, and as many annotators as labels per item.
    seed : int
        Seed of ``numpy.random.default_rng``.
    accuracy : float
        Mean diagonal of the competent annotators' confusion matrices.
    spammers, adversaries : float
        Shares of the annotators, not negative and with a sum below 1.
    num_features : int
        Number of features of the items, normal around a centre of each class; none by default.

    Returns
    -------
    GeneratedLabels
        ``labels``, and ``truth`` with ``true_class`` (item; codes), ``confusion`` (annotator, true
        class, label), ``prevalence`` (class), and ``kind`` (annotator): "competent", "spammer" or
        "adversary".

    Raises
    ------
    SettingError
        When a number is too small, or the shares or the labels per item are not possible.

    Examples
    --------
    >>> import raters as rt
    >>> labels, truth = rt.datasets.label_crowd(seed=0)
    >>> labels.num_labels, int((truth["kind"] == "spammer").sum())
    (1000, 2)
    """
    for name, number in {
        "num_items": num_items,
        "num_annotators": num_annotators,
        "labels_per_item": labels_per_item,
    }.items():
        whole(name, number)
    whole("num_classes", num_classes, least=2)
    whole("num_features", num_features, least=0)
    share("accuracy", accuracy)
    at_most("labels_per_item", labels_per_item, num_annotators, "annotators")
    check_amount(num_items=num_items, labels_per_item=labels_per_item)
    check_amount(num_items=num_items, num_features=num_features)
    check_amount("num_classes", num_annotators=num_annotators, num_classes=num_classes)
    check_shares(spammers=spammers, adversaries=adversaries)
    rng = np.random.default_rng(seed)
    prevalence = rng.dirichlet(np.full(num_classes, 5.0))
    true_class = rng.choice(num_classes, num_items, p=prevalence)
    kind = draw_kinds(rng, num_annotators, {"spammer": spammers, "adversary": adversaries})
    confusion = np.stack([_confusion(rng, each, num_classes, accuracy) for each in kind])
    item = np.repeat(np.arange(num_items), labels_per_item)
    annotator = np.argsort(rng.random((num_items, num_annotators)), axis=1)[
        :, :labels_per_item
    ].ravel()
    cumulative = confusion[annotator, true_class[item]].cumsum(1)
    # At most the last class, since rounding may leave the last sum below 1.
    label = np.minimum((rng.random(len(item))[:, None] > cumulative).sum(1), num_classes - 1)
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
        labels = labels.with_features(
            centre[true_class] + rng.normal(size=(num_items, num_features))
        )
    truth = {
        "true_class": true_class,
        "confusion": confusion,
        "prevalence": prevalence,
        "kind": kind,
    }
    return GeneratedLabels(labels, truth)


def _confusion(
    rng: np.random.Generator, kind: str, num_classes: int, accuracy: float
) -> Float[np.ndarray, "true_class label"]:
    """Draw an annotator's confusion matrix."""
    identity = np.eye(num_classes)
    if kind == "spammer":
        return np.tile(rng.dirichlet(np.ones(num_classes)), (num_classes, 1))
    usual = np.roll(identity, 1, axis=1) if kind == "adversary" else identity
    mean = accuracy * usual + (1 - accuracy) * (1 - usual) / (num_classes - 1)
    return np.stack([rng.dirichlet(10 * row) for row in mean])
