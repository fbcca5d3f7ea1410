"""Tests on public data that are not part of the project; skipped where they are absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_folder(name: str) -> Path:
    """The folder of one data set, below RATERS_DATA or ../shared/data; skips the test where it is
    absent."""
    root = Path(os.environ.get("RATERS_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if not (root / name).is_dir():
        pytest.skip(f"no folder {root / name}; set RATERS_DATA to the folder that holds {name!r}")
    return root / name
