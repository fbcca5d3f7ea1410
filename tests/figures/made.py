"""Results and audits to draw, and what is asked of every figure."""

from __future__ import annotations

import io

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib.text import Text

import raters as rt
from raters.figures.base import VERDICTS


def fitted(items: int, seed: int = 0) -> xr.DataTree:
    """Draws of rewards around known means, item 0 the highest; figures need no more of a result."""
    rng = np.random.default_rng(seed)
    draws = np.linspace(3, -3, items) + 0.3 * rng.normal(size=(2, 100, items))
    names = [f"item {number}" for number in range(items)]
    posterior = xr.Dataset({"reward": (("chain", "draw", "item"), draws)}, coords={"item": names})
    return xr.DataTree.from_dict({"posterior": posterior})


def judged(annotators: int, seed: int = 0) -> rt.auditing.Audit:
    """An audit of so many annotators, the first the worst, with every verdict in it."""
    rng = np.random.default_rng(seed)
    rows = np.arange(annotators)
    competence, p_below = np.linspace(-1, 2, annotators), np.linspace(1, 0, annotators)
    verdicts = np.array(list(VERDICTS)[::-1], object)
    columns = {
        "judgements": rng.integers(1, 2000, annotators),
        "competence": competence,
        "competence_low": competence - 0.4,
        "competence_high": competence + 0.4,
        "p_below": p_below,
        "verdict": verdicts[len(verdicts) * rows // annotators],
    }
    names = np.array([f"annotator {row} of the far too long names" for row in rows], object)
    variables = {name: ("annotator", value) for name, value in columns.items()}
    return rt.auditing.Audit(xr.Dataset(variables, coords={"annotator": names}), "a rule")


def judged_labels(annotators: int, classes: list[str]) -> rt.auditing.Audit:
    """An audit of labels with every verdict in it; the first annotator is the worst."""
    of_votes = judged(annotators)
    table = of_votes.table
    rng = np.random.default_rng(0)
    matrices = rng.dirichlet(np.ones(len(classes)), (annotators, len(classes)))
    axes = ("annotator", "true_class", "label")
    coords = {"annotator": table["annotator"].values, "true_class": classes, "label": classes}
    confusion = xr.Dataset(dict.fromkeys(("mean", "low", "high"), (axes, matrices)), coords=coords)
    return rt.auditing.Audit(table, of_votes.rule, {"confusion": confusion})


def typed(types: int, items: int = 8, site: str = "reward") -> xr.DataTree:
    """Draws around known rewards of types."""
    rng = np.random.default_rng(0)
    axis = "item" if site == "reward" else "feature"
    means = 2 * rng.normal(size=(items, types))
    share = np.sort(rng.dirichlet(3 * np.ones(types)))[::-1]
    draws = means + 0.3 * rng.normal(size=(2, 50, items, types))
    variables = {
        site: (("chain", "draw", axis, "type"), draws),
        "type_weight": (("chain", "draw", "type"), np.broadcast_to(share, (2, 50, types))),
    }
    names = [f"{axis} {item} of some very long name" for item in range(items)]
    posterior = xr.Dataset(variables, {axis: names, "type": range(types)})
    return xr.DataTree.from_dict({"posterior": posterior, "types": xr.Dataset()})


def curves(policies: int = 2, replicates: int = 3, batches: int = 6) -> xr.Dataset:
    """Curves that rise, each policy slower than the one before."""
    rng = np.random.default_rng(0)
    answers = np.broadcast_to(10.0 * np.arange(1, batches + 1), (policies, replicates, batches))
    pace = np.linspace(20, 80, policies)[:, None, None]
    tau = 1 - np.exp(-answers / pace) + 0.05 * rng.normal(size=answers.shape)
    axes = ("policy", "replicate", "batch")
    names = [f"policy {number} of the far too long names" for number in range(policies)]
    return xr.Dataset({"tau": (axes, tau), "answers": (axes, answers)}, {"policy": names})


def overlaps(texts) -> list[tuple[str, str]]:
    """Pairs of visible texts whose boxes overlap by more than a hair."""
    seen = [text for text in texts if text.get_text() and text.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in seen]
    return [
        (name, other)
        for row, (name, box) in enumerate(boxes)
        for other, against in boxes[row + 1 :]
        if min(box.x1, against.x1) - max(box.x0, against.x0) > 2
        and min(box.y1, against.y1) - max(box.y0, against.y0) > 2
    ]


def check_readable(plots: PlotCollection) -> None:
    """Nothing runs into its neighbour or over the edge."""
    figure = plots.get_viz("figure")
    with io.BytesIO() as file:
        figure.savefig(file, format="png")  # drawing it also settles the layout
        head = file.getvalue()[16:24]
    assert 800 <= int.from_bytes(head[:4], "big") <= 2000
    assert 300 <= int.from_bytes(head[4:], "big") <= 2600
    titles = [figure._suptitle, figure._supxlabel]
    for axes in figure.axes:
        assert not overlaps([*axes.get_yticklabels(), axes.yaxis.label])
        assert not overlaps(axes.get_xticklabels())
        assert not overlaps(axes.texts)
        titles += [axes.title, axes._left_title]
    titles = [title for title in titles if title is not None]
    assert not overlaps(titles)
    words = {axes.get_xlabel() for axes in figure.axes} | {
        axes.get_ylabel() for axes in figure.axes
    }
    labels = [text for text in figure.findobj(Text) if text.get_text() in words - {""}]
    for text in [*titles, *labels]:
        if text.get_text():
            box = text.get_window_extent()
            assert box.x0 >= figure.bbox.x0 - 1, text
            assert box.x1 <= figure.bbox.x1 + 1, text
