"""The size of the package stays within the budget of each room, in ``budget.toml``."""

from __future__ import annotations

import ast
import importlib
import io
import tokenize
import tomllib
from collections import Counter
from pathlib import Path

import raters

ROOT = Path(__file__).parents[1]
BUDGET = tomllib.loads((ROOT / "tests" / "budget.toml").read_text())
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
PUBLIC_MODULES = (
    "acquisition",
    "alignment",
    "auditing",
    "checking",
    "datasets",
    "distributions",
    "errors",
    "figures",
    "fitting",
    "imitation",
    "infer",
    "inference",
    "judgements",
    "kinds",
    "models",
    "program",
    "reporting",
    "terms",
    "testing",
)


def lines(text: str) -> tuple[int, int]:
    """Lines of code and of docstrings."""
    code: set[int] = set()
    docs: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node, clean=False) is not None:
            docs.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return len(code - docs), len(docs)


def sizes(folder: str) -> tuple[Counter[str], int]:
    """Lines of code of each room of a folder, and lines of docstrings."""
    code: Counter[str] = Counter()
    docstrings = 0
    for path in (ROOT / folder).rglob("*.py"):
        own, docs = lines(path.read_text())
        room = path.relative_to(ROOT / folder).parts[0]
        code[room.removesuffix(".py")] += own
        docstrings += docs
    return code, docstrings


def public_names(module: str) -> set[str]:
    """Qualified names of what a module exports."""
    public = importlib.import_module(module)
    exported = getattr(public, "__all__", None)
    if exported is None:
        exported = [
            name
            for name, thing in vars(public).items()
            if not name.startswith("_") and getattr(thing, "__module__", None) == module
        ]
    things = [(name, getattr(public, name)) for name in exported]
    return {f"{getattr(thing, '__module__', module)}.{name}" for name, thing in things}


def test_rooms_are_within_their_budget():
    code, docstrings = sizes("raters")
    budget = BUDGET["code"]
    over = {
        room: (code[room], budget.get(room, 0)) for room in code if code[room] > budget.get(room, 0)
    }
    assert not over
    assert docstrings <= BUDGET["total"]["docstrings"]


def test_tests_are_within_their_budget():
    assert sum(sizes("tests")[0].values()) <= BUDGET["total"]["tests"]


def test_the_public_surface_is_within_its_budget():
    names = set().union(*(public_names(f"raters.{module}") for module in PUBLIC_MODULES))
    assert len(raters.__all__) <= BUDGET["total"]["names_at_the_top"]
    assert len(names | public_names("raters")) <= BUDGET["total"]["names"]
