"""Plot collections, colours, rows of names and forests that all figures share."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from unicodedata import east_asian_width

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection
from jaxtyping import Float, Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raters.auditing.verdicts import DIFFERS
from raters.errors import refuse
from raters.fitting.result import check_finite
from raters.judgements.display import display_name

# Keywords of Matplotlib.
Style = dict[str, Any]

GREY, FAINT = "#595959", "#E5E5E5"
# Okabe and Ito's palette, which the common colour blindnesses can distinguish, in an order in which
# neighbours differ in lightness too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#000000")
# Colour and marker of each verdict.
VERDICTS = {
    "keep": ("#0072B2", "o"),
    "review": ("#E69F00", "s"),
    "drop": ("#D55E00", "X"),
    DIFFERS: ("#CC79A7", "D"),
    "too few judgements": ("#8C8C8C", "."),
    "too few draws": ("#8C8C8C", "x"),
}


def short(name: Any, most: int = 28) -> str:
    """Shorten a name to `most` letters, and keep Matplotlib from reading formulas in it."""
    shown = display_name(name, most)
    if len(shown) + sum(east_asian_width(letter) in "WF" for letter in shown) > most:
        shown = display_name(name, max(most // 2, 1))
    return shown.replace("$", r"\$")


class Rows(NamedTuple):
    """Places of the names that are shown, one in a row, with a blank row for those left out."""

    names: list[str]
    shown: Int[np.ndarray, " shown"]
    position: Float[np.ndarray, " shown"]
    head: int
    left_out: int

    @property
    def height(self) -> float:
        """Height of a figure of these rows, in inches."""
        return 1.9 + 0.21 * (len(self.shown) + bool(self.left_out))


def rows_of(
    names: np.ndarray, order: Int[np.ndarray, " name"], most: int = 60, head: int | None = None
) -> Rows:
    """Choose at most `most` rows in this order; of more names, the first `head` and the last."""
    left_out = max(len(order) - most, 0)
    head = len(order) if not left_out else (most + 1) // 2 if head is None else head
    shown = np.delete(order, slice(head, head + left_out))
    position = np.arange(len(shown), dtype=float)
    position[head:] += bool(left_out)
    return Rows([short(name) for name in names[shown]], shown, position, head, left_out)


class Plots(PlotCollection):
    """ArviZ plot collection of a Matplotlib figure that is not registered with pyplot."""

    def savefig(self, filename: Any, **kwargs: Any) -> None:
        """Save the figure, with the resolution of `set_dpi` unless ``dpi`` is given."""
        figure = self.get_viz("figure")
        with warnings.catch_warnings():
            # Where Matplotlib warns of each character, the boxes in the figure say enough.
            warnings.filterwarnings("ignore", ".*missing from font")
            figure.savefig(filename, **{"dpi": figure.dpi, **kwargs})

    def set_dpi(self, dpi: float) -> Plots:
        """Set the dots per inch, for showing and for saving without ``dpi=``, and return itself."""
        self.get_viz("figure").set_dpi(dpi)
        return self

    def __repr__(self) -> str:
        # Without an address, so that running a notebook again does not change it.
        sizes = ", ".join(f"{axis}: {size}" for axis, size in self.data.sizes.items())
        return f"<Plots of {', '.join(map(str, self.data))} ({sizes})>"

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png")
            return file.getvalue()


def new_figure(width: float, height: float) -> Figure:
    return Figure(figsize=(width, height), layout="constrained", dpi=150)


def grid(figure: Figure, number: int, columns: int) -> list[Axes]:
    """Panels line by line; those beyond the number stay empty."""
    panels = figure.subplots(-(-number // columns), columns, squeeze=False).ravel().tolist()
    for panel in panels[number:]:
        panel.set_axis_off()
    return list(panels[:number])


def collected(
    data: Any, figure: Figure, panels: Any, axis: str = "panel", names: Any = (), columns: int = 1
) -> Plots:
    """Return the plot collection of a figure with one panel, or with one for each of `names`."""
    boxes = np.empty(1 + len(panels), object)
    boxes[:] = [figure, *panels]
    boxed = xr.DataArray(boxes, dims=axis)
    row, column = np.divmod(np.arange(len(panels)), columns)
    places = {"plot": boxed[1:], "row_index": (axis, row), "col_index": (axis, column)}
    layout = xr.Dataset(places)
    layout = layout.assign_coords({axis: list(names)}) if len(names) else layout.isel({axis: 0})
    return Plots(data, xr.DataTree(layout.assign(figure=boxed[0])), backend="matplotlib")


def check_draws(result: Any) -> None:
    """Check that this is a result, or another tree of draws, all of them finite."""
    is_fit = isinstance(result, xr.DataTree) and "posterior" in result
    if not is_fit or not all(result["posterior"].sizes.get(axis, 0) for axis in ("chain", "draw")):
        refuse("result", result, "has no posterior draws", "give a fit", instead="rt.fit(...)")
    check_finite(result)


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Remove the box of the axes, and draw a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def name_rows(axes: Axes, rows: Rows) -> None:
    """Write the names beside the rows, and in the blank row how many are left out."""
    axes.set_yticks(rows.position, rows.names, fontsize=9)
    axes.set_ylim(rows.position[-1] + 0.7, -0.7)
    if rows.left_out:
        axes.axhspan(rows.head - 0.5, rows.head + 0.5, color="#F0F0F0", zorder=0)
        text = f"… {rows.left_out} of {len(rows.shown) + rows.left_out} not shown …"
        style: Style = {"ha": "center", "va": "center", "fontsize": 9}
        axes.text(0.5, rows.head, text, transform=axes.get_yaxis_transform(), **style)


def numbers(
    axes: Axes, x: np.ndarray, y: np.ndarray, probs: np.ndarray, form: Callable[[float], str]
) -> None:
    """Write probabilities into shaded cells, such as have a text."""
    style: Style = {"ha": "center", "va": "center", "fontsize": 8}
    for (row, column), prob in np.ndenumerate(probs):
        style["color"] = "white" if prob > 0.55 else "black"
        axes.text(float(x[column]), float(y[row]), form(prob), **style)


def intervals(
    axes: Axes, position: np.ndarray, data: xr.Dataset, name: str, marker: str = "o", **style: Any
) -> None:
    """Draw the means of a variable and their intervals, one in a row, with colour and alpha."""
    style = {"color": COLOURS[0]} | style
    axes.hlines(position, data[f"{name}_low"], data[f"{name}_high"], linewidth=1.6, **style)
    axes.plot(data[name], position, marker, markersize=5, linestyle="none", **style)


def summary(draws: xr.DataArray, level: float) -> xr.Dataset:
    """Posterior mean and equal-tailed interval of draws, under the name of the variable."""
    name, axes = str(draws.name), ("chain", "draw")
    low, high = draws.quantile(((1 - level) / 2, (1 + level) / 2), axes).drop_vars("quantile")
    columns = {name: draws.mean(axes), f"{name}_low": low, f"{name}_high": high}
    return xr.Dataset(columns, attrs={"level": level})
