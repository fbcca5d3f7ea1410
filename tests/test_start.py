"""Starting loads no plotting libraries, and neither does a fit."""

from __future__ import annotations

import subprocess
import sys

import jax

CODE = """
import sys, raters as rt
[getattr(rt, name) for name in rt.__all__]
late = {"matplotlib", "arviz_plots", "scipy.stats"} & set(sys.modules)
votes = rt.datasets.separated(4, 3, 60, seed=0).votes
rt.fit(rt.BTL(), votes, rt.PGEM(draws=20), seed=0, progress=False)
print(late, {"matplotlib", "arviz_plots"} & set(sys.modules))
"""


def test_what_starting_and_fitting_load(monkeypatch):
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "set() set()"
