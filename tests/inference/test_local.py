"""Classes and effects on their units drawn together."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit, logsumexp

import raters as rt
from raters.inference.polya_gamma import collapsed
from tests.models.test_shared_mistakes import crowd, point


def exact(labels: rt.Labels, at: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Probability of the second class, and mean effect of the family, of each item, on a grid."""
    grid = np.linspace(-14, 14, 2801)
    chance, effect = [], []
    for item in range(labels.num_items):
        rows = np.flatnonzero(labels.item == item)
        kin = labels.annotator[rows] < 5
        logits = at["ability"][labels.annotator[rows]] + np.where(kin, grid[:, None], 0.0)
        right = labels.label[rows] == np.arange(2)[:, None, None]
        log_joint = np.log(np.where(right, expit(logits), expit(-logits))).sum(-1)
        log_joint = log_joint - 0.5 * (grid / at["family_spread"]) ** 2
        log_joint = log_joint + np.log(at["prevalence"])[:, None]
        weight = np.exp(log_joint - logsumexp(log_joint))
        chance.append(weight[1].sum())
        effect.append((weight * grid).sum())
    return np.array(chance), np.array(effect)


def draws(labels: rt.Labels, at: dict[str, np.ndarray], drawn, number: int):
    """Second class and effect of each item, of repeated draws given the other sites."""

    def once(effect, key):
        values = at | {"family_effect": effect}
        effect, classes = drawn(rt.SharedMistakes(), labels, values, "family_effect", key)
        return effect, (classes[:, 1], effect[0])

    keys = jax.random.split(jax.random.key(0), number)
    _, found = jax.lax.scan(once, jnp.asarray(at["family_effect"]), keys)
    return tuple(map(np.asarray, found))


def worst(labels: rt.Labels, drawn=collapsed.drawn, number: int = 20_000) -> float:
    """The largest distance from the exact means, in Monte-Carlo errors of 50 batches."""
    with jax.enable_x64(True):
        at = point(rt.SharedMistakes(), labels) | {"family_spread": np.asarray(2.0)}
        at["family_effect"] = np.zeros((labels.num_families, labels.num_items))
        found = draws(labels, at, drawn, number)
    z = []
    for part, right in zip(found, exact(labels, at), strict=True):
        batches = part.reshape(50, -1, labels.num_items).mean(1)
        z.append((batches.mean(0) - right) / (batches.std(0) / np.sqrt(49) + 1e-4))
    return float(np.abs(z).max())


def test_classes_and_effects_have_their_joint_distribution() -> None:
    """Of six items with five labels of a family and three others, against quadrature;
    false-alarm rate 1e-4 (12 means under Student's t with 49 degrees of freedom)."""
    assert worst(crowd(0.25, 0, 6)[0]) < 4.8
