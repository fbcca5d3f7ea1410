"""Starting loads no plotting libraries, and neither does a fit."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys, raters as rt
[getattr(rt, name) for name in rt.__all__]
late = {"matplotlib", "arviz_plots", "scipy.stats"} & set(sys.modules)
votes = rt.datasets.separated(4, 3, 60, seed=0).votes
rt.fit(rt.BTL(), votes, rt.PGEM(draws=20), seed=0, progress=False)
print(late, {"matplotlib", "arviz_plots"} & set(sys.modules))
"""


def test_what_starting_and_fitting_load():
    run = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "set() set()"
