"""Starting loads no plotting libraries, and neither does a fit."""

from __future__ import annotations

import subprocess
import sys

import pytest

LATE = ("matplotlib", "arviz_plots", "scipy.stats")
NAMES = "import sys, raters as rt; [getattr(rt, name) for name in rt.__all__]"
FIT = (
    "votes = rt.datasets.separated(4, 3, 60, seed=0).votes\n"
    "rt.fit(rt.BTL(), votes, rt.PGEM(draws=20), seed=0, progress=False)"
)


@pytest.mark.parametrize(("code", "late"), [(NAMES, LATE), (f"{NAMES}\n{FIT}", LATE[:2])])
def test_what_starting_and_fitting_load(code, late):
    code += f"\nprint([name for name in {late} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
