"""Ways to fit a model: one back-end per file."""

from raters.inference.base import Backend
from raters.inference.base import Draws as Draws
from raters.inference.nuts import NUTS
from raters.inference.polya_gamma.em import PGEM
from raters.inference.polya_gamma.gibbs import PGGibbs
from raters.inference.polya_gamma.hmc import HMC
from raters.inference.svi import SVI

__all__ = ["HMC", "NUTS", "PGEM", "SVI", "Backend", "PGGibbs"]
