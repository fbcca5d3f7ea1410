"""NumPyro programs that were written without this package, by Gibbs, HMC and NUTS.

The programs follow three of NumPyro's gallery of examples (Apache License 2.0): the logistic
regression of ``covtype.py``, on data that are simulated here; the partial pooling with logits of
``baseball.py``, on the batting averages of Efron and Morris (1975); and the generalised linear
mixed model of ``ucbadmit.py``, on the admissions of Bickel, Hammel and O'Connell (1975).

The partial pooling stands here in both forms, of which NUTS needs the whitened one. Seconds are
those of the CPU, of a second call, with four chains and the default number of draws;
compiling is a column of its own. The effective sample size is the least of all numbers that are
drawn, and differences from NUTS are in Monte-Carlo errors of both.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from _common import options, report, table
from arviz_stats.base import array_stats

import raters as rt


def regression(x, y=None):
    """Logistic regression on features, one of them constant."""
    size = x.shape[1]
    coefs = numpyro.sample("coefs", dist.Normal(jnp.zeros(size), jnp.ones(size)))
    numpyro.sample("obs", dist.Bernoulli(logits=jnp.dot(x, coefs)), obs=y)


def batting(at_bats, hits=None):
    """Log-odds of a hit of each player, about a mean."""
    loc = numpyro.sample("loc", dist.Normal(-1, 1))
    scale = numpyro.sample("scale", dist.HalfCauchy(1))
    with numpyro.plate("player", at_bats.shape[0]):
        log_odds = numpyro.sample("log_odds", dist.Normal(loc, scale))
        numpyro.sample("obs", dist.Binomial(at_bats, logits=log_odds), obs=hits)


def whitened(at_bats, hits=None):
    """The same in whitened coordinates, in which NUTS mixes better."""
    loc = numpyro.sample("loc", dist.Normal(-1, 1))
    scale = numpyro.sample("scale", dist.HalfCauchy(1))
    with numpyro.plate("player", at_bats.shape[0]):
        z = numpyro.sample("z", dist.Normal(0, 1))
        log_odds = numpyro.deterministic("log_odds", loc + scale * z)
        numpyro.sample("obs", dist.Binomial(at_bats, logits=log_odds), obs=hits)


def admission(dept, male, applications, admit=None):
    """Intercept and slope of each department, correlated, in whitened coordinates."""
    mean = numpyro.sample("mean", dist.Normal(0, jnp.array([4.0, 1.0])))
    sigma = numpyro.sample("sigma", dist.HalfNormal(jnp.ones(2)))
    corr = numpyro.sample("corr", dist.LKJCholesky(2, concentration=2))
    number = len(np.unique(dept))
    z = numpyro.sample("z", dist.Normal(jnp.zeros((number, 2)), 1))
    own = jnp.dot(sigma[..., None] * corr, z.T).T
    logits = mean[0] + own[dept, 0] + (mean[1] + own[dept, 1]) * male
    numpyro.sample("obs", dist.Binomial(applications, logits=logits), obs=admit)


def simulated(rows: int, size: int, seed: int) -> dict[str, np.ndarray]:
    """Correlated features on the scale of those of covtype, a constant, and outcomes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, size)) @ (np.eye(size) + 0.3 * rng.normal(size=(size, size)))
    x = np.hstack([(x - x.mean(0)) / x.std(0), np.ones((rows, 1))])
    logits = x @ rng.normal(size=size + 1) * 0.4
    return {"x": x, "y": (rng.random(rows) < 1 / (1 + np.exp(-logits))).astype(int)}


HITS = [18, 17, 16, 15, 14, 14, 13, 12, 11, 11, 10, 10, 10, 10, 10, 9, 8, 7]
# Department, male, applications, admitted.
ADMISSIONS = np.array(
    [
        [0, 1, 825, 512],
        [0, 0, 108, 89],
        [1, 1, 560, 353],
        [1, 0, 25, 17],
        [2, 1, 325, 120],
        [2, 0, 593, 202],
        [3, 1, 417, 138],
        [3, 0, 375, 131],
        [4, 1, 191, 53],
        [4, 0, 393, 94],
        [5, 1, 373, 22],
        [5, 0, 341, 24],
    ]
)


def cases(quick: bool, seed: int) -> list[tuple[Callable[..., Any], str, dict[str, Any]]]:
    """Programs with the argument that is observed, and data."""
    names = ("dept", "male", "applications", "admit")
    rows, size = (1000, 5) if quick else (10_000, 20)
    return [
        (regression, "y", simulated(rows, size, seed)),
        (batting, "hits", {"at_bats": np.full(18, 45), "hits": np.array(HITS)}),
        (whitened, "hits", {"at_bats": np.full(18, 45), "hits": np.array(HITS)}),
        (admission, "admit", dict(zip(names, ADMISSIONS.T, strict=True))),
    ]


def numbers(result: Any) -> dict[str, np.ndarray]:
    """Draws of each number that moves, shape (chain, draw)."""
    drawn = {}
    for name, site in result["posterior"].data_vars.items():
        flat = site.values.reshape(*site.shape[:2], -1)
        drawn |= {f"{name}[{place}]": flat[..., place] for place in range(flat.shape[-1])}
    return {name: value for name, value in drawn.items() if value.std() > 1e-8}


def effective(draws: np.ndarray) -> float:
    """Effective sample size of a mean."""
    return float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="bulk"))


def main() -> None:
    """Print the table, and write it."""
    given = options(__doc__ or "")
    warnings.simplefilter("ignore")
    draws = 200 if given.quick else 1000
    backends = {
        "NUTS": rt.NUTS(draws=draws),
        "PGGibbs": rt.PGGibbs(draws=draws),
        "HMC": rt.HMC(draws=draws),
    }
    rows = []
    for function, observed, data in cases(given.quick, given.seed):
        model = rt.models.numpyro_model(function, observed=observed)
        found = rt.fitting.describe(model, data).split("blocks: ")[1].split("\n")[0]
        means: dict[str, tuple[float, float]] = {}
        for name, backend in backends.items():
            seconds = []
            for seed in (1, 2):
                begin = time.process_time()
                result = rt.fit(
                    model, data, backend, seed=seed, progress=False, log_likelihood=False
                )
                seconds.append(time.process_time() - begin)
            drawn = numbers(result)
            sizes = {key: effective(value) for key, value in drawn.items()}
            own = {
                key: (value.mean(), value.std() / np.sqrt(sizes[key]))
                for key, value in drawn.items()
            }
            means = means or own
            apart = float(
                max(
                    abs(own[key][0] - means[key][0]) / np.hypot(own[key][1], means[key][1])
                    for key in own
                )
            )
            worst = min(sizes.values())
            rows.append(
                [
                    function.__name__,
                    found,
                    name,
                    len(own),
                    seconds[1],
                    seconds[0] - seconds[1],
                    worst,
                    worst / seconds[1],
                    apart,
                    float(result.attrs["max_rhat"]) if "max_rhat" in result.attrs else np.nan,
                ]
            )
            print(rows[-1], flush=True)
    header = (
        "program",
        "blocks found",
        "back-end",
        "numbers",
        "CPU s",
        "compiling, CPU s",
        "least ESS",
        "ESS per CPU s",
        "largest difference from NUTS (errors)",
        "R-hat",
    )
    report("numpyro_programs", "NumPyro programs", [table(header, rows)], given.quick)


if __name__ == "__main__":
    main()
