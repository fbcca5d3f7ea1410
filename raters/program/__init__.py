"""A model read on its data: its sites, unit, latent class, and densities."""

from raters.program import placing as placing
from raters.program.densities import answer_probs as answer_probs
from raters.program.densities import class_probs as class_probs
from raters.program.densities import class_weights as class_weights
from raters.program.densities import left_out_log_probs as left_out_log_probs
from raters.program.densities import left_out_responsibility as left_out_responsibility
from raters.program.densities import likelihood_of as likelihood_of
from raters.program.densities import log_joint as log_joint
from raters.program.densities import log_likelihoods as log_likelihoods
from raters.program.densities import log_prior as log_prior
from raters.program.densities import pointwise_log_likelihood as pointwise_log_likelihood
from raters.program.densities import responsibility as responsibility
from raters.program.densities import row_log_probs as row_log_probs
from raters.program.program import LatentClass as LatentClass
from raters.program.program import Program as Program
from raters.program.program import Site as Site
from raters.program.program import Supports as Supports
from raters.program.traces import models_of as models_of
from raters.program.traces import observed_sites as observed_sites
from raters.program.traces import prior_draws as prior_draws
from raters.program.traces import skeleton as skeleton
from raters.program.traces import trace as trace
from raters.program.traces import within as within
from raters.program.values import inside as inside
from raters.program.values import scattered as scattered
from raters.program.values import start_of as start_of

# The others are for the package.
__all__ = ["Program"]
