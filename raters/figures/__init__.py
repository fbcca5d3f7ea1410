"""Figures of fits, audits, checks, labels, choices, types, campaigns and calibration.

Each function returns an ArviZ ``PlotCollection``: ``.savefig(path)`` saves it, ``.data`` is the
dataset that is drawn, and ``.get_viz("figure")`` the Matplotlib figure, which is not registered
with pyplot. As the last expression of a notebook's cell it shows itself; ``.set_dpi(70)`` makes it
smaller.
"""

from raters.figures.audits import auditor, competences, position_bias
from raters.figures.checks import checks
from raters.figures.choices import choice_shares
from raters.figures.curves import learning_curves, reliability
from raters.figures.dependence import dependence
from raters.figures.fits import ranks, rewards
from raters.figures.labels import certainty, confusions
from raters.figures.scales import item_person_map, levels
from raters.figures.types import profiles, responsibilities, weights

__all__ = [
    "auditor",
    "certainty",
    "checks",
    "choice_shares",
    "competences",
    "confusions",
    "dependence",
    "item_person_map",
    "learning_curves",
    "levels",
    "position_bias",
    "profiles",
    "ranks",
    "reliability",
    "responsibilities",
    "rewards",
    "weights",
]
