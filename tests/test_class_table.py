"""Classes of groups from counts of their rows: as from the rows."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import raters as rt
from raters.inference.polya_gamma import latent_classes
from raters.inference.polya_gamma.detection import names_of
from raters.program import ClassTable, Program, class_table, scattered
from raters.program.densities import class_probs

MODELS = (rt.DawidSkene(), rt.models.Pooled(), rt.HierarchicalDawidSkene(), rt.models.Yan())


@pytest.fixture(scope="module")
def labels() -> rt.Labels:
    """200 labels of 3 classes, put together, with known classes of some items and features."""
    data = rt.datasets.label_crowd(
        num_items=40, num_annotators=6, num_classes=3, num_features=2, seed=0
    ).labels
    return data.with_truth(dict.fromkeys(data.items[:4], data.classes[0])).aggregate()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_counts_give_what_rows_give(model, labels, monkeypatch) -> None:
    monkeypatch.setattr(class_table, "_FEW_ROWS", 0)
    with jax.enable_x64(True):
        program = Program(model, labels)
        start = {name: np.asarray(value, float) for name, value in model.start(labels).items()}
        rng = np.random.default_rng(1)
        points = [scattered(start, program.supports, rng, least=0.3) for _ in range(7)]
        table = ClassTable.of(model, labels, start)
        if table is None:
            assert model == rt.models.Yan()  # Each row has a distribution of its own.
            return
        classes, total = table.expected(points[0])
        expected, log_likelihood = latent_classes.expected(model, labels, points[0])
        np.testing.assert_allclose(classes, expected, atol=1e-12)
        assert total == pytest.approx(float(log_likelihood), rel=1e-12)
        for block in names_of(program):
            given = (model, labels, points[0], classes)
            try:
                exact = latent_classes.parameters(*given, block[0])
            except NotImplementedError:  # Not counted.
                continue
            found = latent_classes.parameters_of_counts(*given, table.counted(classes), block[0])
            for part, other in zip(found, exact, strict=True):
                np.testing.assert_allclose(part, other, atol=1e-9)
        draws = {name: np.stack([point[name] for point in points]) for name in start}
        mean = np.asarray(class_probs(model, labels, draws)).mean(0)
        np.testing.assert_allclose(table.mean_responsibility(draws), mean, atol=1e-6)


def test_few_rows_have_no_table(labels) -> None:
    model = rt.DawidSkene()
    assert ClassTable.of(model, labels, model.start(labels)) is None


@pytest.mark.slow
def test_mode_and_classes_are_those_without_a_table(labels, monkeypatch, fit_quietly) -> None:
    model = rt.DawidSkene()
    plain = fit_quietly(model, labels, rt.PGEM(draws=50))
    monkeypatch.setattr(class_table, "_FEW_ROWS", 0)
    counted = fit_quietly(model, labels, rt.PGEM(draws=50))
    for name in ("prevalence", "confusion"):
        np.testing.assert_allclose(counted["mode"][name], plain["mode"][name], atol=1e-6)
    chances = (each["classes"]["responsibility"] for each in (counted, plain))
    np.testing.assert_allclose(*chances, atol=1e-4)
