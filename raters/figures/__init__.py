"""Figures of fits, audits, checks and campaigns.

Each function returns an ArviZ ``PlotCollection``: ``.savefig(path)`` saves it, ``.data`` is the
dataset that is drawn, and ``.get_viz("figure")`` the Matplotlib figure, which is not registered
with pyplot. As the last expression of a notebook's cell it shows itself; ``.set_dpi(70)`` makes it
smaller.
"""

import lazy_loader

# Matplotlib and ArviZ's plots are loaded when the first figure is drawn.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
