"""A term outside the package: annotators whose opinions fade along the order of their answers."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

import raters as rt
from raters.terms import Competence, Rewards, Strata, Term


@dataclass(frozen=True)
class Fatigue(Term):
    """1 + f_k · nth, by which the rewards are multiplied."""

    needs = ("nth",)

    def sample(self, data):
        with numpyro.plate("annotator", data.num_annotators):
            fatigue = numpyro.sample("fatigue", dist.Normal(0.0, 0.5))
        return 1 + fatigue[data.annotator] * data.column("nth")

    def start(self, data):
        return {"fatigue": jnp.zeros(data.num_annotators)}


TIRED = rt.models.PairwiseModel(Fatigue() * (Competence("signed") * (Rewards() + Strata())))
