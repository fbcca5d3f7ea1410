"""Run the Python block of README.md, and write what it prints and its figure where the README shows
them.

With ``--check`` nothing is written: the exit code is 1 where the README is not what the block
gives.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import matplotlib.image
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
FIGURE = ROOT / "docs" / "_static" / "readme-audit.png"
# Mean difference of pixels, of 255, that another version of Matplotlib or FreeType may make.
PIXEL_TOLERANCE = 1.0
# Difference of a number with decimals that another processor may make: it rounds otherwise, and
# chains part from there.
NUMBER_TOLERANCE = 0.05

_NUMBER = re.compile(r"-?\d+\.\d+")
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PRINTED = re.compile(
    r"(?<=<!-- printed by benchmarks/readme\.py -->\n)(.*?)(?=<!-- end -->)", re.DOTALL
)


class Output(NamedTuple):
    """Text and figure (the bytes of a PNG file) that the block gives."""

    printed: str
    figure: bytes


def block(readme: str) -> str:
    """Return the source of the README's only Python block."""
    sources = _BLOCK.findall(readme)
    if len(sources) != 1:
        raise SystemExit(f"README.md has {len(sources)} Python blocks; one is expected")
    return sources[0]


def run(source: str) -> Output:
    """Run a block in an empty folder, where it must write one PNG file."""
    before, printed = Path.cwd(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(source, str(README), "exec"), {"__name__": "readme"})
            (figure,) = Path(folder).glob("*.png")
            return Output(printed.getvalue(), figure.read_bytes())
        finally:
            os.chdir(before)


def with_printed(readme: str, printed: str) -> str:
    """Return the README with the text between its markers replaced."""
    if len(_PRINTED.findall(readme)) != 1:
        raise SystemExit("README.md lacks the markers around what its Python block prints")
    return _PRINTED.sub(lambda _: f"```text\n{printed}```\n", readme)


def same_text(one: str, other: str) -> bool:
    """Compare two texts, of which numbers with decimals may differ by `NUMBER_TOLERANCE`."""
    parts = [_NUMBER.split(text) for text in (one, other)]
    numbers = [np.array(_NUMBER.findall(text), float) for text in (one, other)]
    words = [[" ".join(part.split()) for part in each] for each in parts]
    return words[0] == words[1] and np.allclose(*numbers, 0.0, NUMBER_TOLERANCE)


def same_picture(one: bytes, other: bytes) -> bool:
    """Compare two PNG files by their pixels."""
    first, second = (matplotlib.image.imread(io.BytesIO(content)) for content in (one, other))
    if first.shape != second.shape:
        return False
    return 255 * float(np.abs(first - second).mean()) <= PIXEL_TOLERANCE


def main() -> int:
    """Write the README's output and figure, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    readme = README.read_text(encoding="utf-8")
    output = run(block(readme))
    expected = with_printed(readme, output.printed)
    print(output.printed)
    if not check:
        README.write_text(expected, encoding="utf-8")
        FIGURE.write_bytes(output.figure)
        return 0
    differences = []
    if not same_text(expected, readme):
        differences.append(f"{README.name} does not show what its Python block prints")
    if not FIGURE.exists() or not same_picture(FIGURE.read_bytes(), output.figure):
        differences.append(f"{FIGURE.relative_to(ROOT)} is not the figure of the Python block")
    for difference in differences:
        print(f"{difference}; run python benchmarks/readme.py", file=sys.stderr)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
