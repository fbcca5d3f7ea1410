"""What all figures share: the object that they return, their colours, and names that fit."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raters.errors import DataWarning, SettingError

GREY, FAINT = "#595959", "#E5E5E5"
# Okabe and Ito's palette, told apart under every common colour blindness, in an order in which neighbours differ in lightness
# as well.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C8C8C", "#000000")
# Verdicts differ in their marker as well.
VERDICTS = {
    "keep": ("#0072B2", "o"),
    "review": ("#E69F00", "s"),
    "drop": ("#D55E00", "X"),
    "not enough votes": ("#8C8C8C", "."),
}
_NAME_LENGTH = 28


class Plots(PlotCollection):
    """ArviZ's collection around a Matplotlib figure that belongs to nobody, so that drawing leaves nothing open in pyplot.

    As in ArviZ, ``data`` is the dataset that is drawn, ``viz["figure"]`` and ``viz["plot"]`` are Matplotlib's figure and axes,
    and `get_viz` picks one of them. As the last expression of a notebook's cell it shows itself.
    """

    def savefig(self, filename: Any, **kwargs: Any) -> None:
        """Save the figure; other arguments, such as ``dpi``, are those of ``matplotlib.figure.Figure.savefig``.

        Parameters
        ----------
        filename : str, pathlib.Path or binary file

        Warns
        -----
        DataWarning
            When the font lacks characters of the names.
        """
        figure = self.get_viz("figure")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # Matplotlib itself would save with the dots per inch of the day on which the figure was made.
            figure.savefig(filename, **{"dpi": figure.dpi, **kwargs})
        boxes = [entry for entry in caught if "missing from font" in str(entry.message)]
        for entry in caught:
            if entry not in boxes:
                warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
        if boxes:  # Matplotlib says it of each character, each time
            warnings.warn(
                "the figure's font lacks characters of the names, and shows boxes for them; set font.family in matplotlibrc or "
                "matplotlib.rcParams to fonts that have them, such as DejaVu Sans, Noto Sans CJK JP",
                DataWarning,
                stacklevel=2,
            )

    def set_dpi(self, dpi: float) -> Plots:
        """Dots per inch when it is shown, and saved without ``dpi=``; gives itself back, to be shown at once."""
        self.get_viz("figure").set_dpi(dpi)
        return self

    def show(self) -> None:
        """Show it in a notebook.

        Raises
        ------
        SettingError
            Elsewhere: there is no window for a figure that is not pyplot's.
        """
        # Who runs in a notebook has imported it.
        shell = sys.modules.get("IPython")
        if shell is None or shell.get_ipython() is None:
            raise SettingError("there is no notebook to show this figure in; save it, such as .savefig('figure.png')")
        shell.display.display(self)

    def __repr__(self) -> str:
        # Without an address, so that a notebook that is run again does not change.
        sizes = ", ".join(f"{axis}: {size}" for axis, size in self.data.sizes.items())
        return f"<Plots of {', '.join(map(str, self.data))} ({sizes})>"

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png")
            return file.getvalue()


def collected(data: xr.Dataset, figure: Figure, axes: Axes) -> Plots:
    """A figure of one panel."""
    return _plots(data, figure, xr.Dataset({"plot": _boxed(axes), "row_index": 0, "col_index": 0}))


def collected_over(
    data: xr.Dataset, figure: Figure, panels: Sequence[Axes], axis: str, names: Sequence[Any] | np.ndarray, columns: int
) -> Plots:
    """A figure of a panel for each of `names`, in rows of `columns`: ``get_viz("plot", axis=name)`` is one of them."""
    boxes = np.empty(len(panels), object)
    boxes[:] = panels
    rows, places = np.divmod(np.arange(len(panels)), columns)
    variables = {name: (axis, value) for name, value in (("plot", boxes), ("row_index", rows), ("col_index", places))}
    return _plots(data, figure, xr.Dataset(variables, {axis: list(names)}))


def _plots(data: xr.Dataset, figure: Figure, panels: xr.Dataset) -> Plots:
    return Plots(data, xr.DataTree(panels.assign(figure=_boxed(figure))), backend="matplotlib")


def _boxed(thing: Any) -> xr.DataArray:
    box = np.empty((), object)
    box[()] = thing
    return xr.DataArray(box)


def check_draws(result: Any) -> None:
    """A result, or any tree of draws such as ArviZ reads; not a model, data or an audit."""
    if not isinstance(result, xr.DataTree) or "posterior" not in result:
        raise SettingError(
            f"the first argument must be a result, such as rt.fit(model, votes); it is a {type(result).__name__}"
        )


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Axes without a box, and a faint grid behind what is drawn."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def short(name: Any, most: int = _NAME_LENGTH) -> str:
    """A name cut to so many letters."""
    text = str(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def cell(share: float) -> str:
    """A probability in few letters, without calling rare what is impossible."""
    if share in (0, 1):
        return f"{share:.0f}"
    return "<.01" if share < 0.005 else ">.99" if share >= 0.995 else f"{share:.2f}".lstrip("0")


def ends(number: int, most: int, head: int | None = None) -> tuple[np.ndarray, int, int]:
    """Positions of the first and last rows to show, how many of them come first, and how many rows that leaves out.

    Parameters
    ----------
    number, most : int
        Rows there are, and rows to show.
    head : int, optional
        Of those to show, how many from the top; half of them by default.

    Examples
    --------
    >>> ends(10, 4)
    (array([0, 1, 8, 9]), 2, 6)
    """
    if number <= most:
        return np.arange(number), number, 0
    head = (most + 1) // 2 if head is None else head
    return np.r_[:head, number - (most - head) : number], head, number - most


class Rows(NamedTuple):
    """The names to show, one in a row: which of `names`, how high each stands, and the blank row for those left out."""

    names: np.ndarray
    shown: np.ndarray
    place: np.ndarray
    head: int
    gap: int


def rows_of(names: np.ndarray, most: int, head: int) -> Rows:
    """Which rows to show: `most`, of more the first `head` and the last."""
    shown, head, gap = ends(len(names), most, head)
    place = np.arange(len(shown), dtype=float)
    place[head:] += bool(gap)
    return Rows(names, shown, place, head, gap)


def height(rows: Rows) -> float:
    """Inches for a figure of these rows."""
    return 1.9 + 0.21 * (len(rows.shown) + bool(rows.gap))


def name_rows(axes: Axes, rows: Rows) -> None:
    """Names beside the rows, from the top down, and how many are left out."""
    axes.set_yticks(rows.place, [short(name) for name in rows.names[rows.shown]], fontsize=9)
    axes.set_ylim(rows.place[-1] + 0.7, -0.7)
    if rows.gap:
        axes.axhspan(rows.head - 0.5, rows.head + 0.5, color="#F0F0F0", zorder=0)
        words = f"… {rows.gap} of {len(rows.names)} not shown …"
        axes.text(0.5, rows.head, words, transform=axes.get_yaxis_transform(), ha="center", va="center", fontsize=9)
