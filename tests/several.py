"""Several kinds of judgement by the same people, drawn under one truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from numpyro import handlers
from scipy.special import expit

import raters as rt
from raters.inference import Backend, Draws
from tests import hand


class Walks(NamedTuple):
    """Comparisons of trajectories and demonstrations by the same annotators under one reward."""

    votes: rt.Comparisons
    shown: rt.Demonstrations
    truth: dict[str, Any]

    @property
    def together(self) -> rt.judgements.Together:
        return rt.judgements.Together.of({"votes": self.votes, "shown": self.shown})


def compared(
    rng: np.random.Generator, names, who, coefficient, competence, spread: float = 2.0
) -> rt.Comparisons:
    """Votes between pairs of trajectories with random features, each pair compared once."""
    one, other = rng.normal(0.0, spread, (2, len(who), len(names)))
    probability = expit(competence[who] * ((one - other) @ coefficient))
    table = {
        "first": [f"{row}, left" for row in range(len(who))],
        "second": [f"{row}, right" for row in range(len(who))],
        "better": (rng.random(len(who)) < probability).astype(int),
        "who": who,
    }
    features = {}
    for place, name in enumerate(names):
        table |= {f"{name}, left": one[:, place], f"{name}, right": other[:, place]}
        features[name] = (f"{name}, left", f"{name}, right")
    return rt.Comparisons.from_frame(
        table, first="first", second="second", outcome="better", annotator="who", features=features
    )


def walks(
    num_annotators: int = 4,
    votes_each: int = 10,
    trajectories: int = 2,
    steps: int = 5,
    *,
    seed: int = 0,
    size: int = 2,
    adversaries: float = 0.25,
) -> Walks:
    """Draw both kinds on a grid of `size` × `size` cells with two features."""
    shown, truth = rt.datasets.demonstration_crowd(
        size,
        size,
        num_annotators,
        trajectories,
        steps,
        seed=seed,
        num_features=2,
        careless=0.0,
        adversaries=adversaries,
    )
    rng = np.random.default_rng(seed)
    who = np.tile(np.arange(num_annotators), votes_each)
    votes = compared(rng, ("0", "1"), who, truth["coefficient"], truth["rationality"])
    return Walks(votes, shown, truth)


@dataclass(frozen=True)
class FromPrior(Backend):
    """Draws from the prior, where a test asks what a result holds and not which draws."""

    draws: int = 60

    exact: ClassVar[bool] = True

    def run(self, program, key, *, start=None, progress=False) -> Draws:
        def drawn(key: Any) -> Any:
            seeded = handlers.seed(program.model.generate, key)
            sites = handlers.trace(seeded).get_trace(program.data)
            return {name: sites[name]["value"] for name in program.sites}

        keys = jax.random.split(key, 2 * self.draws)
        values = jax.jit(lambda keys: jax.lax.map(drawn, keys))(keys)
        shaped = {
            name: np.asarray(value, float).reshape(2, self.draws, *value.shape[1:])
            for name, value in values.items()
        }
        return Draws(shaped, {})


def labelled(seed: int = 0, num_items: int = 12, num_annotators: int = 4) -> rt.judgements.Together:
    """Labels and votes on the same items by the same annotators."""
    rng = np.random.default_rng(seed)
    labels = rt.datasets.label_crowd(num_items, num_annotators, 3, 2, seed=seed).labels
    first = rng.integers(num_items, size=40)
    second = (first + rng.integers(1, num_items, size=40)) % num_items
    votes = hand.votes(*zip(first, second, rng.integers(num_annotators, size=40), strict=True))
    return rt.judgements.Together.of({"labels": labels, "votes": votes})


ONE_REWARD = rt.models.JointModel(
    {"votes": rt.models.LinearExtendedBTL(coefficient_scale=1.0), "shown": rt.MaxEntIRL()},
    shared=["coefficient", {"votes": "competence", "shown": "rationality"}],
)
TIED = rt.models.JointModel(
    {"votes": rt.models.LinearExtendedBTL(coefficient_scale=1.0), "shown": rt.MaxEntIRL()},
    shared=["coefficient"],
    tied=[{"votes": "competence", "shown": "rationality"}],
)
OF_LABELS = rt.models.JointModel(
    {"labels": rt.models.OneCoin(), "votes": rt.ExtendedBTL(competence="signed", reward_scale=1.0)},
    tied=[{"labels": "accuracy", "votes": "competence"}],
)
