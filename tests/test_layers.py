"""No module imports against the order of the layers, and none imports what another package keeps to
itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import raters

PACKAGE = Path(raters.__file__).parent
# From the lowest to the highest; a module imports from its own layer and from those below.
LAYERS = (
    ("errors",),
    ("judgements",),
    ("distributions", "model"),
    ("kinds", "program"),
    ("terms",),
    ("models", "inference"),
    ("fitting", "infer"),
    ("datasets", "alignment"),
    ("imitation",),
    ("auditing",),
    ("figures",),
    ("checking",),
    ("acquisition",),
    ("reporting",),
    ("testing",),
    ("kinds.*",),
    ("cli",),
)
PLACE = {name: place for place, names in enumerate(LAYERS) for name in names}
# The registry of kinds is imported by nearly all; the kinds of the package stand on nearly all.
KINDS = {path.stem for path in (PACKAGE / "kinds").iterdir()} - {"__init__", "__pycache__"}
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__"
)


def imported(path: Path) -> list[tuple[str, ...]]:
    """Parts of the dotted names that a module imports from the package, each with what is taken of
    it."""
    names = []
    tree = ast.parse(path.read_text())
    for node in tree.body:  # what only annotations name is no import
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "raters"
        ):
            names += [(*node.module.split(".")[1:], alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            parts = [alias.name.split(".") for alias in node.names]
            names += [tuple(part[1:]) for part in parts if part[0] == "raters" and len(part) > 1]
    return names


def place(name: tuple[str, ...]) -> int:
    """The layer of a module by the parts of its name."""
    if name[0] == "kinds" and name[1:2] and name[1] in KINDS:
        return PLACE["kinds.*"]
    return PLACE.get(name[0], 0)


def test_imports_go_down():
    against = [
        f"{path.relative_to(PACKAGE)}: {'.'.join(name)}"
        for path in MODULES
        for name in imported(path)
        if place(name) > place(path.relative_to(PACKAGE).with_suffix("").parts)
    ]
    assert not against


def test_nothing_private_is_imported_across_packages():
    private = [
        f"{path.relative_to(PACKAGE)}: {'.'.join(name)}"
        for path in MODULES
        for name in imported(path)
        if any(part.startswith("_") for part in name)
        and name[: len(path.relative_to(PACKAGE).parts) - 1] != path.relative_to(PACKAGE).parts[:-1]
    ]
    assert not private


def test_every_room_has_its_layer():
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert rooms - {"__init__"} == set(PLACE) - {"kinds.*"}
    assert len(rooms) <= 22


@pytest.mark.slow
@pytest.mark.parametrize(
    "imports",
    [
        "import arviz, raters; raters.fit",
        "import raters, arviz; raters.fit",
        "import arviz, raters.program",
    ],
)
def test_numpyro_is_whole_behind_arviz(imports: str):
    """ArviZ leaves a lazy module, of which submodules are lost when they are imported first."""
    code = f"{imports}; import numpyro.distributions as d; d.distribution.Unit"
    subprocess.run([sys.executable, "-c", code], check=True)
