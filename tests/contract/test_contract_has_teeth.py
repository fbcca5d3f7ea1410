"""The contract refuses models and back-ends that break it, each for its own reason."""

from __future__ import annotations

import dataclasses
import itertools
import warnings
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.distributions import GroupedMixture
from raters.distributions.labels import RightOrWrongLabel
from raters.errors import ConvergenceWarning, SettingError
from raters.inference import Backend, Draws
from raters.inference.polya_gamma import augmentation, sums
from raters.model import Scale, Shift, Sign
from raters.testing import check_backend, check_model, check_result


@dataclass(frozen=True)
class Sound(rt.Model[rt.Comparisons]):
    """A model that keeps the contract; the others break one part of it each."""

    spread: float = 1.0

    @property
    def blocks(self):
        return (("worth",),)

    @property
    def symmetries(self):
        return (Shift("worth"),)

    def start(self, data):
        return {"worth": jnp.linspace(-1.0, 1.0, data.num_items)}

    def worth(self, data):
        with numpyro.plate("item", data.num_items):
            return numpyro.sample("worth", dist.Normal(0.0, self.spread))

    def logits(self, worth, data):
        return worth[data.first] - worth[data.second]

    def generate(self, data):
        logits = self.logits(self.worth(data), data)
        votes = (
            dist.Bernoulli(logits=logits)
            if data.count is None
            else dist.Binomial(data.count, logits=logits)
        )
        with numpyro.plate("comparison", data.num_comparisons):
            numpyro.sample("outcome", votes, obs=data.wins)


@dataclass(frozen=True)
class Growing(Sound):
    def __post_init__(self):
        object.__setattr__(self, "spread", 2 * self.spread)


class Unnamed(Sound):
    def worth(self, data):
        return numpyro.sample(
            "worth", dist.Normal(0.0, self.spread).expand([data.num_items]).to_event(1)
        )


class Lost(Sound):
    def start(self, data):
        return {"worth": jnp.full(data.num_items, jnp.nan)}


class Misnamed(Sound):
    def start(self, data):
        return {"value": jnp.zeros(data.num_items)}


class Factor(Sound):
    def logits(self, worth, data):
        numpyro.factor("penalty", -jnp.sum(worth**2))
        return super().logits(worth, data)


class Squared(Sound):
    def logits(self, worth, data):
        return worth[data.first] ** 3 - worth[data.second]


class Stretched(Sound):
    @property
    def symmetries(self):
        return (Shift("worth"), Scale(up=("worth",), down=()))


class Mirrored(Sound):
    @property
    def symmetries(self):
        return (Sign(("worth",)),)


class Idle(Sound):
    blocks = ()

    def logits(self, worth, data):
        return jnp.zeros(data.num_comparisons) * worth.sum()


class Favourite(Sound):
    def logits(self, worth, data):
        return super().logits(worth, data) + 0.5 * (data.first == 0)


class Uncounted(Sound):
    def generate(self, data):
        logits = self.logits(self.worth(data), data)
        scaled = dist.Bernoulli(logits=logits)
        with numpyro.plate("comparison", data.num_comparisons):
            most = 1 if data.count is None else data.count
            wins = None if data.wins is None else 1.0 * (data.wins > most / 2)
            numpyro.sample("outcome", scaled, obs=wins)


def test_a_sound_model_passes(tiny) -> None:
    check_model(Sound(), tiny)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Growing(), "built again from its own fields is not equal to itself"),
        (Unnamed(), "put it in a plate"),
        (Lost(), "log density at the start is nan"),
        (Misnamed(), "start has the sites"),
        (Factor(), "observed sites or factors"),
        (Squared(), "not affine"),
        (Stretched(), "changes the log-likelihood by"),
        (Mirrored(), "changes the log-likelihood by"),
        (Idle(), "says nothing"),
        (Favourite(), "renaming items and annotators changes"),
        (Uncounted(), "repeated row is not the same as count=2"),
    ],
    ids=lambda case: type(case).__name__ if isinstance(case, rt.Model) else "",
)
def test_a_broken_model_is_refused(model, sentence, tiny) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_model(model, tiny)


@dataclass(frozen=True)
class Coin(rt.Model[rt.Labels]):
    """A sound model of labels."""

    blocks = (("skill",),)
    axis: ClassVar[str] = "annotator"
    seen: ClassVar[tuple[str, ...]] = ("count", "truth")
    infer: ClassVar[dict[str, str]] = {"unit": "item", "latent_class": "true_class"}

    def start(self, data):
        return {"typical": jnp.asarray(1.0), "skill": jnp.ones(data.num_annotators)}

    def generate(self, data):
        typical = numpyro.sample("typical", dist.Normal(1.0, 1.0))
        with numpyro.plate(self.axis, data.num_annotators):
            skill = numpyro.sample("skill", dist.Normal(typical, 1.0))
        label = RightOrWrongLabel(skill[data.annotator][:, None], data.num_classes)
        even = dist.Categorical(probs=jnp.full(data.num_classes, 1 / data.num_classes))
        count, known = (
            getattr(data, name) if name in self.seen else None for name in ("count", "truth")
        )
        numpyro.sample(
            "label",
            GroupedMixture(even, label, data.group, data.num_units, count, known),
            obs=data.label,
            infer=self.infer,
        )


class Mistyped(Coin):
    axis: ClassVar[str] = "anotator"


class NamesNoClass(Coin):
    infer: ClassVar[dict[str, str]] = {}


class SeesNoCounts(Coin):
    seen: ClassVar[tuple[str, ...]] = ("truth",)


class SeesNoTruths(Coin):
    seen: ClassVar[tuple[str, ...]] = ("count",)


class ClaimsTheCrowd(Coin):
    """What is typical reaches the labels through the prior of the skills alone."""

    blocks = (("typical",), ("skill",))


def test_a_class_without_a_name_is_refused(labelled) -> None:
    with pytest.raises(SettingError, match="sums a class out of 'label' and does not name it"):
        rt.fit(NamesNoClass(), labelled, rt.PGEM(), seed=0)


def test_a_sound_label_model_passes(labelled) -> None:
    check_model(Coin(), labelled)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (Mistyped(), "called 'anotator', and the data name"),
        (SeesNoCounts(), "does not use `count`"),
        (SeesNoTruths(), "summed over the classes, differ by"),
        (ClaimsTheCrowd(), r"block \('typical',\) .* the prior of another site depends on it"),
    ],
    ids=lambda case: type(case).__name__ if isinstance(case, rt.Model) else "",
)
def test_a_broken_label_model_is_refused(model, sentence, labelled) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_model(model, labelled)


def test_a_conditional_that_is_read_wrongly_is_seen(labelled, monkeypatch) -> None:
    """Outcomes that lean to one side by a hundredth of a vote."""
    right = augmentation.expectation
    monkeypatch.setattr(
        augmentation, "expectation", lambda logits, votes, kappa: right(logits, votes, kappa + 0.01)
    )
    sums.sums_of.clear_cache()
    with pytest.raises(
        AssertionError, match=r"read of block \('skill',\) has a slope that differs by 0.0"
    ):
        check_model(Coin(), labelled)
    sums.sums_of.clear_cache()


@dataclass(frozen=True)
class FromPrior(Backend):
    """Prior draws by NumPy: quick, and deterministic given the key. `fault` breaks one part of the
    contract."""

    fault: str = ""
    exact: ClassVar[bool] = True
    runs: ClassVar[itertools.count] = itertools.count()

    def why_not(self, program):
        return "not today" if self.fault == "refuses only in fit" and next(self.runs) % 2 else None

    def run(self, program, key, *, start=None, progress=False):
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
        if self.fault == "ignores the seed":
            rng = np.random.default_rng(0)
        if self.fault == "ignores the key":
            rng = np.random.default_rng(next(self.runs))
        if self.fault == "compiles":
            jax.jit(lambda x: x + 1)(jnp.ones(3)).block_until_ready()
        if self.fault == "warns in words":
            warnings.warn("it did not converge", ConvergenceWarning, stacklevel=2)
        values = {
            name: rng.normal(size=(1, 20, *site.shape)) for name, site in program.sites.items()
        }
        if self.fault == "draws NaN":
            values["worth"][0, 3] = np.nan
        return Draws(values, {})


class Approximate(FromPrior):
    exact = False


def test_a_sound_backend_passes(tiny) -> None:
    check_backend(FromPrior(), Sound(), tiny)


@pytest.mark.parametrize(
    ("backend", "sentence"),
    [
        (FromPrior("ignores the seed"), "same draws of 'worth' under two seeds"),
        (FromPrior("ignores the key"), "different draws of 'worth' under one seed"),
        (FromPrior("compiles"), "compiles 1 function"),
        (FromPrior("warns in words"), "has no number"),
        (FromPrior("draws NaN"), "are not finite"),
        (Approximate(), "does not store"),
    ],
    ids=lambda case: case.fault or "approximate" if isinstance(case, Backend) else "",
)
def test_a_broken_backend_is_refused(backend, sentence, tiny) -> None:
    with pytest.raises(AssertionError, match=sentence):
        check_backend(backend, Sound(), tiny)


def first_only(group, variable) -> None:
    """Let a variable of a result be 0 everywhere, as a code of the first."""
    group[variable] = 0 * group[variable]


def change(group, variable, amount) -> None:
    """Add to a variable of a result."""
    group[variable] = group[variable] + amount


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda tree: tree.attrs.pop("seed"), "does not record 'seed'"),
        (lambda tree: tree.attrs.update(ordered="false"), "differ in 'ordered'"),
        (lambda tree: change(tree["posterior"], "worth", 1.0), "not centred"),
        (lambda tree: first_only(tree["constant_data"], "annotator_code"), "differ in 'annotator'"),
        (lambda tree: change(tree["log_likelihood"], "outcome", 1.0), "log-likelihood is off by 1"),
        (lambda tree: tree.__delitem__("constant_data"), "no group"),
    ],
)
def test_a_spoilt_result_is_refused(spoil, sentence, tiny, fit_quietly) -> None:
    result = fit_quietly(Sound(), tiny, FromPrior())
    check_result(result, Sound(), tiny)
    spoil(result)
    with pytest.raises(AssertionError, match=sentence):
        check_result(result, Sound(), tiny)


def test_check_model_needs_outcomes(tiny) -> None:
    with pytest.raises(AssertionError, match="needs data with outcomes"):
        check_model(Sound(), dataclasses.replace(tiny, wins=None))
