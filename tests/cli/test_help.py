"""The help fits on a screen, says what there is, and imports nothing that computes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import raters
from raters.cli.app import COLUMNS, main
from raters.cli.reading import flags

COMMANDS = {
    "": (),
    "audit": (),
    "report": (),
    "fit": (),
    "rank": (),
    "suggest": (),
    "simulate": (),
    "models": (),
    "campaign": ("start", "ask", "tell", "status", "withdraw", "consider", "export"),
}


def test_help_of_each_command_fits_on_a_screen(capsys) -> None:
    large = []
    for command, parts in COMMANDS.items():
        for part in ("", *parts):
            words = [word for word in (command, part) if word]
            assert main([*words, "--help"]) == 0
            printed = capsys.readouterr().out
            assert all(one in printed for one in (COMMANDS if not words else parts * (not part)))
            lines = printed.splitlines()
            if len(lines) > 40 or max(map(len, lines)) > 80:
                large.append((words, len(lines), max(map(len, lines))))
    assert not large


def test_columns_in_the_help_are_options() -> None:
    named = {word.rstrip(",") for word in COLUMNS.split() if word.startswith("--")}
    assert named <= set(flags())


@pytest.mark.parametrize("words", [["--help"], ["audit", "--help"], ["--version"]])
def test_help_imports_nothing_that_computes(words) -> None:
    heavy = "jax numpyro arviz matplotlib pandas xarray numpy scipy pyarrow"
    script = f"""
import sys
from raters.cli.app import main
assert main({words}) == 0
print(sorted(set({heavy.split()}) & set(sys.modules)), file=sys.stderr)
"""
    environment = os.environ | {"PYTHONPATH": str(Path(raters.__file__).parent.parent)}
    line = [sys.executable, "-c", script]
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == "[]\n"
