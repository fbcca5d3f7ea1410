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
    ("models", "inference"),
    ("fitting",),
    ("datasets", "alignment"),
    ("imitation",),
    ("auditing",),
    ("figures",),
    ("checking",),
    ("acquisition",),
    ("reporting",),
    ("testing",),
    ("families",),
    ("_public",),
    ("cli",),
)
PLACE = {name: place for place, names in enumerate(LAYERS) for name in names}
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


def room(path: Path) -> str:
    """The part of the package that a module lies in."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path):
    own = PLACE[room(path)]
    against = [name for name in imported(path) if name[0] in PLACE and PLACE[name[0]] > own]
    assert not against, f"{path.name} imports from layers above its own: {against}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_private_is_imported_across_packages(path):
    own = path.relative_to(PACKAGE).parts[:-1]
    private = [
        name
        for name in imported(path)
        if any(part.startswith("_") for part in name) and name[: len(own)] != own
    ]
    assert not private, f"{path.name} imports what other packages keep to themselves: {private}"


def test_every_room_has_its_layer():
    rooms = {path.stem for path in PACKAGE.glob("*.py")} | {
        path.parent.name for path in PACKAGE.glob("*/__init__.py")
    }
    assert rooms - {"__init__"} == set(PLACE)
    assert len(rooms) <= 22  # with __init__, and _public, which it hands on


@pytest.mark.slow
@pytest.mark.parametrize("imports", ["import arviz, raters.testing", "import raters, arviz"])
def test_numpyro_is_whole_behind_arviz(imports: str):
    """ArviZ leaves a lazy module, of which submodules are lost when they are imported first."""
    code = f"{imports}; raters.fit; import numpyro.distributions as d; d.distribution.Unit"
    subprocess.run([sys.executable, "-c", code], check=True)
