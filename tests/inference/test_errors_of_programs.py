"""Errors of a user's program are shown as they are, whatever reads the program."""

from __future__ import annotations

import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

import raters as rt
from raters.inference.polya_gamma.rows import NotIndexed, StandIn
from raters.program import start_of, trace

VOTES = rt.datasets.paper(num_items=4, num_annotators=3, num_votes=60, seed=0).votes
MISTAKES = {
    TypeError: lambda gap: gap + None,
    AttributeError: lambda gap: gap.no_such_attribute,
    IndexError: lambda gap: gap + (1.0, 2.0)[5],
    KeyError: lambda gap: gap + {}["scale"],
}
BACKENDS = (
    rt.PGGibbs(draws=5, warmup=5, chains=1),
    rt.PGEM(draws=5),
    rt.HMC(draws=5, warmup=5, chains=1),
    rt.NUTS(draws=5, warmup=5, chains=1),
    rt.SVI(steps=500, draws=5),
)


@dataclass(frozen=True)
class Wrong(rt.Model[rt.Comparisons]):
    """Bradley–Terry with a mistake, everywhere or on tables of so many rows only."""

    error: Any = TypeError
    rows: int | None = None

    def generate(self, data: rt.Comparisons) -> None:
        with numpyro.plate("item", data.num_items):
            reward = numpyro.sample("reward", dist.Normal(0.0, 1.0))
        logits = reward[data.first] - reward[data.second]
        if self.rows in (None, data.num_rows):
            logits = MISTAKES[self.error](logits)
        with numpyro.plate("comparison", data.num_rows):
            numpyro.sample("outcome", dist.Binomial(data.count, logits=logits), obs=data.wins)

    def start(self, data: rt.Comparisons) -> dict[str, Any]:
        return {"reward": np.zeros(data.num_items)}


def shown(error: type[Exception], call: Any) -> None:
    """Check that a call raises this error, with the line of the mistake in its traceback."""
    with pytest.raises(error) as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert any(frame.line and "MISTAKES[self.error]" in frame.line for frame in frames)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda one: type(one).__name__)
def test_a_mistake_in_a_program_is_shown(backend) -> None:
    for error in MISTAKES:
        model = Wrong(error)
        shown(error, lambda model=model: rt.fit(model, VOTES, backend, seed=0, progress=False))
        program = rt.program.Program(model, VOTES)
        shown(error, lambda program=program: backend.why_not(program))


@pytest.mark.parametrize("error", MISTAKES)
def test_a_mistake_is_no_other_design(error) -> None:
    """It was: any error of a program with stand-ins made its rows a dense design."""
    program = rt.program.Program(Wrong(error, rows=2), VOTES)
    shown(error, lambda: rt.PGGibbs().why_not(program))


@pytest.mark.parametrize(
    "use",
    [
        jnp.exp,
        np.exp,
        jax.lax.exp,
        jax.nn.relu,
        np.asarray,
        list,
        lambda site: 2 * site,
        lambda site: jnp.ones(3) * site,
        lambda site: np.ones(3) @ site,
        lambda site: site.T,
        lambda site: site.at[0].set(0.0),
        lambda site: jnp.stack([site, site]),
        lambda site: jnp.arange(3)[site],
        lambda site: jax.vmap(jnp.exp)(site),
        lambda site: dist.Normal(site, 1.0),
    ],
)
def test_a_site_that_is_used_otherwise_has_other_rows(use) -> None:
    """JAX's own refusal of a stand-in is told from a mistake by the cause that it names."""
    with pytest.raises((NotIndexed, TypeError)) as caught:
        use(StandIn(jnp.zeros(3)))
    named = isinstance(caught.value, NotIndexed)
    assert named or "StandIn" in str(caught.value.__cause__)


def test_a_site_misses_what_an_array_misses() -> None:
    with pytest.raises(AttributeError, match="no_such"):
        _ = StandIn(jnp.zeros(3)).no_such


def test_a_program_is_read_in_one_thread_at_a_time() -> None:
    """NumPyro's handlers are on one stack, and chains that met there failed."""
    model, interval = rt.ExtendedBTL(), sys.getswitchinterval()
    values = start_of(model, VOTES)
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            read = list(pool.map(lambda _: trace(model, VOTES, values), range(40)))
    finally:
        sys.setswitchinterval(interval)
    assert all(list(one) == list(read[0]) for one in read)
