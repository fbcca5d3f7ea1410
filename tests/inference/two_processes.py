"""A fit whose rows are divided between processes, or of one process with all; run as a script."""

from __future__ import annotations

import json
import sys
import warnings

import jax
import numpy as np

import raters as rt


def main(port: str, rank: str) -> None:
    """Print the mean of the absolute draws of each site."""
    warnings.simplefilter("ignore")
    if port:
        jax.distributed.initialize(f"localhost:{port}", 2, int(rank))
    votes, _ = rt.datasets.paper(num_items=6, num_annotators=4, num_votes=801, seed=0)
    mesh = jax.make_mesh((jax.device_count(),), ("row",))
    gibbs = rt.PGGibbs(draws=4, warmup=4, chains=2)
    result = rt.fit(rt.ExtendedBTL("signed"), votes, gibbs, seed=0, progress=False, mesh=mesh)
    draws = result.posterior.data_vars.items()
    print(json.dumps({name: float(np.abs(each.values).mean()) for name, each in draws}))


if __name__ == "__main__":
    main(*sys.argv[1:])
