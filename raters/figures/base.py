"""Plot collections, colours, and rows of names that all figures share."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from unicodedata import east_asian_width

import numpy as np
import xarray as xr
from arviz_plots import PlotCollection
from jaxtyping import Float, Int, Shaped
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from raters.auditing.verdicts import DIFFERS
from raters.errors import DataWarning, SettingError
from raters.errors.validation import whole
from raters.fitting.draws import check_finite
from raters.judgements.display import display_name

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
_NAME_LENGTH = 28
# Errors about the place of a file; others, as of a full disk, are not of the name.
_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError)


class Plots(PlotCollection):
    """ArviZ plot collection of a Matplotlib figure that is not registered with pyplot."""

    def savefig(self, filename: Any, **kwargs: Any) -> None:
        """Save the figure."""
        figure = self.get_viz("figure")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            # Matplotlib itself would save with the resolution at which the figure was created, not
            # that of `set_dpi`.
            _save(figure, filename, **{"dpi": figure.dpi, **kwargs})
        missing = [entry for entry in caught if "missing from font" in str(entry.message)]
        for entry in caught:
            if entry not in missing:
                warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
        if missing:  # One warning, where Matplotlib gives one for each character.
            warnings.warn(
                "the figure's font lacks characters of the names, and shows boxes for them; set"
                " font.family in matplotlibrc or matplotlib.rcParams to fonts that have them, such"
                " as DejaVu Sans, Noto Sans CJK JP",
                DataWarning,
                stacklevel=2,
            )

    def set_dpi(self, dpi: float) -> Plots:
        """Set the dots per inch, for showing and for saving without ``dpi=``, and return itself."""
        self.get_viz("figure").set_dpi(dpi)
        return self

    def show(self) -> None:
        """Show the figure in a notebook."""
        # A notebook has imported IPython; elsewhere it need not be installed.
        shell = sys.modules.get("IPython")
        if shell is None or shell.get_ipython() is None:
            raise SettingError(
                "there is no notebook to show this figure in; save it, such as"
                " .savefig('figure.png')"
            )
        shell.display.display(self)

    def __repr__(self) -> str:
        # Without an address, so that running a notebook again does not change it.
        sizes = ", ".join(f"{axis}: {size}" for axis, size in self.data.sizes.items())
        return f"<Plots of {', '.join(map(str, self.data))} ({sizes})>"

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png")
            return file.getvalue()


def _save(figure: Figure, filename: Any, **settings: Any) -> None:
    """Save a figure, with errors that say what is wrong with the file."""
    _check_format(figure, filename, settings.get("format"))
    try:
        figure.savefig(filename, **settings)
    except _NOT_THERE as error:
        raise SettingError(
            parameter="filename",
            value=str(filename),
            problem=f"cannot be written: {error.strerror}",
            expected="name a file in a folder that is there and can be written to",
        ) from error


def _check_format(figure: Figure, filename: Any, form: Any) -> None:
    """Raise unless this is a file, in a format that Matplotlib can write."""
    is_path = isinstance(filename, (str, os.PathLike))
    if not is_path and not hasattr(filename, "write"):
        raise SettingError(
            parameter="filename",
            value=filename,
            expected="it must be a path, or a binary file",
            instead="savefig('figure.png')",
        )
    name, ending = os.path.splitext(os.fspath(filename)) if is_path else ("", "")
    known = figure.canvas.get_supported_filetypes()
    if str(form or ending[1:] or "png").lower() not in known:
        raise SettingError(
            parameter="format" if form else "filename",
            value=form or str(filename),
            problem="names no format that Matplotlib can write",
            expected=f"it must be one of {', '.join(known)}",
            instead="format='png'" if form else f"savefig({f'{name}.png'!r})",
        )


def collected(data: xr.Dataset, figure: Figure, axes: Axes) -> Plots:
    """Return the plot collection of a figure with one panel."""
    return _plots(data, figure, xr.Dataset({"plot": _boxed(axes), "row_index": 0, "col_index": 0}))


def collected_over(
    data: xr.Dataset,
    figure: Figure,
    panels: Sequence[Axes],
    axis: str,
    names: Sequence[Any] | np.ndarray,
    columns: int,
) -> Plots:
    """Return the plot collection of a figure with a panel for each of `names`."""
    boxes = np.empty(len(panels), object)
    boxes[:] = panels
    row, column = np.divmod(np.arange(len(panels)), columns)
    variables = {
        name: (axis, value)
        for name, value in (("plot", boxes), ("row_index", row), ("col_index", column))
    }
    return _plots(data, figure, xr.Dataset(variables, {axis: list(names)}))


def _plots(data: xr.Dataset, figure: Figure, panels: xr.Dataset) -> Plots:
    return Plots(data, xr.DataTree(panels.assign(figure=_boxed(figure))), backend="matplotlib")


def _boxed(value: Any) -> xr.DataArray:
    """Wrap a Matplotlib object in an array of dimension 0, as ArviZ does."""
    box = np.empty((), object)
    box[()] = value
    return xr.DataArray(box)


def check_draws(result: Any) -> None:
    """Check that this is a result, or another tree of draws, all of them finite; not a model, data
    or an audit."""
    if (
        not isinstance(result, xr.DataTree)
        or "posterior" not in result
        or not all(result["posterior"].sizes.get(axis, 0) for axis in ("chain", "draw"))
    ):
        raise SettingError(
            parameter="result",
            value=result,
            expected="it must be a result, with posterior draws",
            instead="rt.fit(model, votes)",
        )
    check_finite(result)


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Remove the box of the axes, and draw a faint grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


def short(name: Any, most: int = _NAME_LENGTH) -> str:
    """Shorten a name to `most` letters (half as many where there are wide ones), and keep
    Matplotlib from reading formulas in it."""
    shown = display_name(name, most)
    if len(shown) + sum(east_asian_width(letter) in "WF" for letter in shown) > most:
        shown = display_name(name, max(most // 2, 1))
    return shown.replace("$", r"\$")


def cell(prob: float) -> str:
    """Format a probability in at most four characters; only 0 and 1 themselves are so shown."""
    if prob in (0, 1):
        return f"{prob:.0f}"
    return "<.01" if prob < 0.005 else ">.99" if prob >= 0.995 else f"{prob:.2f}".lstrip("0")


def ends(
    num_rows: int, most: int, head: int | None = None
) -> tuple[Int[np.ndarray, " shown"], int, int]:
    """Choose the rows to show from both ends of a list."""
    whole("most", most)
    if num_rows <= most:
        return np.arange(num_rows), num_rows, 0
    head = (most + 1) // 2 if head is None else head
    return np.r_[:head, num_rows - (most - head) : num_rows], head, num_rows - most


class Rows(NamedTuple):
    """Names of which some are shown, one in a row, with a blank row for those left out."""

    names: Shaped[np.ndarray, " name"]
    shown: Int[np.ndarray, " shown"]
    position: Float[np.ndarray, " shown"]
    head: int
    gap: int


def rows_of(names: np.ndarray, most: int, head: int) -> Rows:
    """Choose at most `most` rows to show; of more names, the first `head` and the last."""
    shown, head, gap = ends(len(names), most, head)
    position = np.arange(len(shown), dtype=float)
    position[head:] += bool(gap)
    return Rows(names, shown, position, head, gap)


def height(rows: Rows) -> float:
    """Return the height of a figure of these rows, in inches."""
    return 1.9 + 0.21 * (len(rows.shown) + bool(rows.gap))


def name_rows(axes: Axes, rows: Rows) -> None:
    """Write the names beside the rows, and in the blank row how many are left out."""
    axes.set_yticks(rows.position, [short(name) for name in rows.names[rows.shown]], fontsize=9)
    axes.set_ylim(rows.position[-1] + 0.7, -0.7)
    if rows.gap:
        axes.axhspan(rows.head - 0.5, rows.head + 0.5, color="#F0F0F0", zorder=0)
        text = f"… {rows.gap} of {len(rows.names)} not shown …"
        axes.text(
            0.5,
            rows.head,
            text,
            transform=axes.get_yaxis_transform(),
            ha="center",
            va="center",
            fontsize=9,
        )


def forest(rows: Rows) -> tuple[Figure, Axes]:
    """Return a figure of a forest plot, with the rows named and no data yet."""
    figure = Figure(figsize=(8.5, height(rows)), layout="constrained", dpi=150)
    axes = figure.subplots()
    plain(axes, "y")
    name_rows(axes, rows)
    return figure, axes
