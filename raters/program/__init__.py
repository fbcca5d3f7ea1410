"""A model read on its data: its sites, the unit of its likelihood, its latent class, and its
densities."""

from raters.program import placing
from raters.program.class_table import ClassTable
from raters.program.densities import (
    answer_probs,
    class_probs,
    class_weights,
    left_out_log_probs,
    left_out_responsibility,
    likelihood_of,
    log_joint,
    log_likelihoods,
    log_prior,
    pointwise_log_likelihood,
    prior_of,
    responsibility,
    row_log_probs,
)
from raters.program.pooled_rows import PooledRows
from raters.program.program import LatentClass, Program, Site, Supports
from raters.program.traces import skeleton, trace
from raters.program.values import inside, scattered, start_of

__all__ = [
    "ClassTable",
    "LatentClass",
    "PooledRows",
    "Program",
    "Site",
    "Supports",
    "answer_probs",
    "class_probs",
    "class_weights",
    "inside",
    "left_out_log_probs",
    "left_out_responsibility",
    "likelihood_of",
    "log_joint",
    "log_likelihoods",
    "log_prior",
    "placing",
    "pointwise_log_likelihood",
    "prior_of",
    "responsibility",
    "row_log_probs",
    "scattered",
    "skeleton",
    "start_of",
    "trace",
]
