"""Demonstrations on a grid of 36 states by 12 demonstrators, one of them careless and one an
adversary: what `MaxEntIRL` finds by NUTS, and what moving along the scale orbit does for its
effective sample size.

    python benchmarks/demonstrations.py [--seeds 3] [--draws 400]
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import dataclass

import arviz as az
import numpy as np

import raters as rt
from raters.errors import ConvergenceWarning
from raters.model import Sign, Symmetry


@dataclass(frozen=True)
class Still(rt.MaxEntIRL):
    """The same model, of which NUTS does not know the scale orbit."""

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """The sign alone."""
        return tuple(one for one in super().symmetries if isinstance(one, Sign))


def main() -> None:
    """Print one line for each seed and model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=400)
    options = parser.parse_args()
    print("| seed | model | adversary | careless | others | smallest ESS | ESS a CPU-second |")
    print("|---|---|---|---|---|---|---|")
    for seed in range(options.seeds):
        data, truth = rt.datasets.demonstration_crowd(seed=seed)
        for model in (Still(), rt.MaxEntIRL()):
            backend = rt.NUTS(draws=options.draws, warmup=options.draws, chains=2)
            begin = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                result = rt.fit(model, data, backend, seed=0, progress=False)
            seconds = time.process_time() - begin
            ess = az.ess(result.posterior)
            least = min(float(ess[name].min()) for name in ("coefficient", "rationality"))
            print(f"| {seed} | {model.title} | {_found(result, truth)} | {least:.0f}", end=" | ")
            print(f"{least / seconds:.1f} |", flush=True)


def _found(result, truth) -> str:
    """Rationalities on the scale of the crowd's mean, beside the truth."""
    draws = result.posterior["rationality"].stack(sample=("chain", "draw")).values
    draws = draws / np.abs(draws).mean(0)
    true = truth["rationality"] / np.abs(truth["rationality"]).mean()
    cells = []
    for kind in ("adversary", "careless"):
        place = int(np.argmax(truth["kind"] == kind))
        mean, spread = draws[place].mean(), draws[place].std()
        cells.append(f"{mean:.2f} ± {spread:.2f} (true {true[place]:.2f})")
    others = truth["kind"] == "competent"
    apart = np.abs(draws[others].mean(1) - true[others]) / draws[others].std(1)
    return " | ".join([*cells, f"{apart.mean():.2f} sd apart on average"])


if __name__ == "__main__":
    main()
