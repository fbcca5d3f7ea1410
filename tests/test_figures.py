"""The figures: readable with 3 annotators and with 600, and drawn from the numbers that they claim to show."""

from __future__ import annotations

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.text import Text

import raters as rt
from raters import figures

VERDICTS = ("keep", "review", "drop", "not enough votes")


def fitted(items: int, seed: int = 0) -> xr.DataTree:
    """Draws of rewards around known means, item 0 the highest; figures need no more of a result."""
    rng = np.random.default_rng(seed)
    means = np.linspace(3, -3, items)
    draws = means + 0.3 * rng.normal(size=(2, 100, items))
    names = [f"item {number}" for number in range(items)]
    posterior = xr.Dataset({"reward": (("chain", "draw", "item"), draws)}, coords={"item": names})
    return xr.DataTree.from_dict({"posterior": posterior})


def judged(annotators: int, seed: int = 0) -> rt.Audit:
    """An audit of so many annotators, the first the worst, with every verdict in it."""
    rng = np.random.default_rng(seed)
    competence = np.linspace(-1, 2, annotators)
    p_below = np.linspace(1, 0, annotators)
    accuracy = 0.5 + 0.15 * competence
    columns = {
        "votes": rng.integers(1, 2000, annotators),
        "competence": competence,
        "competence_low": competence - 0.4,
        "competence_high": competence + 0.4,
        "accuracy": accuracy,
        "accuracy_low": accuracy - 0.05,
        "accuracy_high": accuracy + 0.05,
        "p_guessing": p_below * (1 - p_below),
        "p_adversarial": p_below**2,
        "p_below": p_below,
        "verdict": np.array([VERDICTS[::-1][min(3, 4 * row // annotators)] for row in range(annotators)], dtype=object),
    }
    names = np.array([f"annotator {number} of the far too long names" for number in range(annotators)], dtype=object)
    table = xr.Dataset({name: ("annotator", value) for name, value in columns.items()}, coords={"annotator": names})
    return rt.Audit(table, "a rule")


def pixels(figure: Figure) -> tuple[int, int]:
    """Width and height of the saved image; drawing it also settles the layout."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png")
        head = file.getvalue()[16:24]
    return int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")


def overlaps(texts) -> list[tuple[str, str]]:
    """Pairs of visible texts whose boxes overlap by more than a hair."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    return [
        (name, other)
        for row, (name, box) in enumerate(boxes)
        for other, against in boxes[row + 1 :]
        if min(box.x1, against.x1) - max(box.x0, against.x0) > 2 and min(box.y1, against.y1) - max(box.y0, against.y0) > 2
    ]


@pytest.mark.parametrize("number", [2, 5, 60, 600])
@pytest.mark.parametrize("what", ["rewards", "competences", "auditor"])
def test_figures_stay_readable_at_every_size(what, number):
    draw = {
        "rewards": lambda: figures.rewards(fitted(number)),
        "competences": lambda: figures.competences(judged(number)),
        "auditor": lambda: figures.auditor(judged(number)),
    }
    figure = draw[what]()
    width, height = pixels(figure)
    assert 1000 <= width <= 2000
    assert 300 <= height <= 2600
    for axes in figure.axes:
        assert not overlaps([*axes.get_yticklabels(), axes.yaxis.label])
        assert not overlaps(axes.get_xticklabels())
        assert not overlaps(axes.texts)
        words = {axes.get_title(loc="left"), axes.get_xlabel(), axes.get_ylabel()} - {""}
        named = [text for text in axes.findobj(Text) if text.get_text() in words]
        for text in [*axes.get_yticklabels(), *named]:
            box = text.get_window_extent()
            assert box.x0 >= figure.bbox.x0 - 1, text
            assert box.x1 <= figure.bbox.x1 + 1, text


def test_rewards_are_drawn_from_the_top_down():
    axes = figures.rewards(fitted(5)).axes[0]
    points = next(line for line in axes.lines if line.get_marker() == "o")
    assert [label.get_text() for label in axes.get_yticklabels()] == [f"item {number}" for number in range(5)]
    assert np.all(np.diff(points.get_xdata()) < 0)
    assert axes.yaxis_inverted()


@pytest.mark.parametrize("level", [0.5, 0.99])
def test_intervals_have_the_level_asked_for(level):
    result = fitted(3)
    segments = figures.rewards(result, level=level).axes[0].collections[0].get_segments()
    draws = result.posterior["reward"].values.reshape(-1, 3)
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2), axis=0)
    np.testing.assert_allclose([segment[:, 0] for segment in segments], np.column_stack([low, high]))


def test_what_is_left_out_is_said():
    words = [text.get_text() for text in figures.rewards(fitted(100), most=10).axes[0].texts]
    assert words == ["… 90 of 100 not shown …"]
    labels = [label.get_text() for label in figures.rewards(fitted(100), most=10).axes[0].get_yticklabels()]
    assert labels == [f"item {number}" for number in (0, 1, 2, 3, 4, 95, 96, 97, 98, 99)]


def test_competences_show_more_of_the_worst():
    labels = [label.get_text() for label in figures.competences(judged(90), most=9).axes[0].get_yticklabels()]
    numbers = [int(label.split()[1]) for label in labels]
    assert numbers == [0, 1, 2, 3, 4, 5, 87, 88, 89]


def test_each_verdict_has_its_colour_and_marker():
    figure = figures.competences(judged(8))
    drawn = {(line.get_color(), line.get_marker()) for line in figure.axes[0].lines if len(line.get_xdata()) == 2}
    assert set(figures._VERDICTS.values()) <= drawn
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [f"{verdict} (2)" for verdict in VERDICTS]


def test_the_auditor_lists_the_least_trusted_first():
    figure = figures.auditor(judged(40), most=6)
    labels = [label.get_text() for label in figure.axes[1].get_yticklabels()]
    assert [int(label.split()[1]) for label in labels] == list(range(6))
    below = next(line for line in figure.axes[1].lines if line.get_marker() == "s")
    np.testing.assert_allclose(below.get_xdata(), np.linspace(1, 0, 40)[:6])


def test_figures_leave_no_global_state():
    before = plt.get_fignums()
    figures.rewards(fitted(3))
    figures.auditor(judged(3))
    assert plt.get_fignums() == before


@pytest.mark.parametrize(
    ("number", "most", "head", "expected"),
    [
        (3, 4, None, ([0, 1, 2], 3, 0)),
        (4, 4, None, ([0, 1, 2, 3], 4, 0)),
        (5, 4, None, ([0, 1, 3, 4], 2, 1)),
        (9, 3, None, ([0, 1, 8], 2, 6)),
        (9, 3, 3, ([0, 1, 2], 3, 6)),
    ],
)
def test_both_ends(number, most, head, expected):
    shown, first, left_out = figures.ends(number, most, head)
    assert (shown.tolist(), first, left_out) == expected
