"""Every notebook runs from top to bottom, without data that are not in the repository, and is kept
as it ran."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
_LARGEST = 500_000  # bytes, outputs included
# `make test-slow` runs the first notebook and one on audits; `make test-all` all of them.
_IN_CI = ("00", "03")
_RUNS = [
    pytest.param(
        path, marks=pytest.mark.slow if path.stem[:2] in _IN_CI else pytest.mark.exhaustive
    )
    for path in NOTEBOOKS
]


def test_they_are_there() -> None:
    assert [path.stem[:2] for path in NOTEBOOKS] == [f"{number:02d}" for number in range(14)]


@pytest.mark.parametrize("path", _RUNS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("RATERS_DATA", raising=False)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", jax.config.jax_compilation_cache_dir)
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(path.parent.parent), os.environ.get("PYTHONPATH", "")])
    )
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(tmp_path)}},
    ).execute()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_as_it_ran(path: Path) -> None:
    """Cells were run in order, none failed or wrote to standard error, and the file is small."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert any(output.output_type in ("execute_result", "display_data") for output in outputs)
    assert not [
        output
        for output in outputs
        if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert path.stat().st_size < _LARGEST
