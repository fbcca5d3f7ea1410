"""Hashes of the draws of one fit of each model, to see that a change of the code changes no draw.

``python benchmarks/draw_hashes.py`` compares with ``results/draw_hashes.json``, which holds for one
machine and one version of JAX; ``--write`` replaces that file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np

import raters as rt

RESULTS = Path(__file__).parent / "results" / "draw_hashes.json"
NUTS = rt.NUTS(draws=20, warmup=20, chains=1)
SVI = rt.SVI(steps=500, draws=20)
GIBBS = rt.PGGibbs(draws=30, warmup=10, chains=2)
EM = rt.PGEM(draws=30)


def cases():
    """Pairs of a model and a back-end with the data to fit."""
    votes = rt.datasets.position_biased(num_items=6, num_annotators=4, num_votes=150, seed=0).votes
    described = votes.with_features(
        np.random.default_rng(0).normal(size=(6, 2)), names=["warmth", "price"]
    )
    labels = rt.datasets.label_crowd(12, 4, 4, 3, num_features=2, seed=0).labels
    yield from ((rt.BTL(), backend, votes) for backend in (GIBBS, EM, NUTS, SVI))
    yield rt.ExtendedBTL(competence="signed", position_bias=True), GIBBS, votes
    yield rt.ExtendedBTL(), NUTS, votes
    yield rt.ExtendedBTL(competence="positive"), EM, votes
    yield from ((rt.MixtureBTL(), backend, votes) for backend in (GIBBS, EM))
    yield rt.models.ContextualBTL(num_types=2), SVI, described
    yield rt.models.ContextualBTL(num_types=2), GIBBS, described
    yield from ((rt.DawidSkene(), backend, labels) for backend in (GIBBS, EM, NUTS, SVI))
    yield rt.HierarchicalDawidSkene(), GIBBS, labels
    yield rt.models.ItemDifficulty(), GIBBS, labels
    yield rt.Raykar(), EM, labels
    yield rt.models.Yan(), GIBBS, labels
    yield rt.models.OneCoin(), SVI, labels
    yield rt.models.Pooled(), EM, labels
    yield rt.models.MajorityVote(), GIBBS, labels


def hashed(model, backend, data) -> str:
    """Hash of all draws, in the order of the sites' names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        posterior = rt.fit(model, data, backend, seed=1, progress=False).posterior
    digest = hashlib.sha256()
    for name in sorted(posterior.data_vars):
        digest.update(str(name).encode() + np.ascontiguousarray(posterior[name].values).tobytes())
    return digest.hexdigest()[:16]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace the stored hashes")
    arguments = parser.parse_args()
    hashes = {
        f"{model!r} by {backend!r}": hashed(model, backend, data)
        for model, backend, data in cases()
    }
    if arguments.write:
        RESULTS.write_text(json.dumps(hashes, indent=1) + "\n")
    stored = json.loads(RESULTS.read_text())
    changed = [name for name, value in hashes.items() if stored.get(name) != value]
    print(f"{len(hashes) - len(changed)} of {len(hashes)} fits have the stored draws")
    if changed:
        sys.exit("other draws: " + "; ".join(changed))


if __name__ == "__main__":
    main()
