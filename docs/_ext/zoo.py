"""Directives whose content is read off the code: graphs of the models, the table of models and
back-ends, and the table of modules.

``{model-graph} ExtendedBTL`` draws the program, ``{model-backend-table}`` asks every back-end's
``why_not``, with names for these models only, and ``{module-table}`` reads the imports.
"""

from __future__ import annotations

import ast
import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from docutils import nodes
from docutils.parsers.rst import directives
from model_graph import graph_of, svg
from sphinx.util.docutils import SphinxDirective

import raters as rt
from raters.program.compiled import keep_compiled

# Back-ends are asked why not and nothing is fitted: compiling is all that takes time.
jax.config.update("jax_disable_most_optimizations", True)
keep_compiled()

BACKENDS = (rt.PGGibbs(), rt.HMC(), rt.NUTS(), rt.PGEM(), rt.SVI())
# Models that need a setting.
_EXAMPLES = {"NestedLogit": rt.models.NestedLogit(nests=(("car", "bus"),))}


@cache
def tables() -> dict[type, Any]:
    """A tiny table of each kind, with features, an order of presentation, and a family."""
    votes = rt.datasets.position_biased(num_items=4, num_annotators=3, num_votes=30, seed=0).votes
    described = votes.with_features(
        np.random.default_rng(0).normal(size=(4, 2)), names=["length", "warmth"]
    )
    labels = rt.datasets.label_crowd(8, 3, 2, 3, num_features=2, seed=0).labels
    family = np.array([0, 0, -1], np.int32)
    responses = rt.Responses.from_wide(
        {"who": ["a", "b", "c"], "q1": [1, 1, 0], "q2": [1, 0, 0]}, person="who"
    )
    trips = {
        "trip": [1, 1, 2, 2, 2],
        "who": ["ann", "ann", "bob", "bob", "bob"],
        "mode": ["car", "bus", "car", "bus", "tram"],
        "taken": [1, 0, 0, 0, 1],
        "price": [9, 4, 8, 3, 6],
        "age": [30, 30, 60, 60, 60],
    }
    choices = rt.Choices.from_frame(
        trips,
        set="trip",
        alternative="mode",
        chosen="taken",
        features=["price"],
        choosers=["age"],
        annotator="who",
    )
    rankings = rt.Rankings.from_wide(
        {"who": ["a", "b", "c"], "best": ["x", "x", "y"], "next": ["y", "z", "x"]},
        places=["best", "next"],
        annotator="who",
        unranked="below",
    )
    marks = {"who": ["a", "b", "c"], "q1": [0, 1, 2], "q2": [1, 1, 2]}
    return {
        rt.Choices: choices,
        rt.Comparisons: described,
        rt.Demonstrations: rt.datasets.demonstration_crowd(
            2, 2, 3, 2, 3, num_features=2, seed=0
        ).demonstrations,
        rt.GradedResponses: rt.GradedResponses.from_wide(marks, person="who"),
        rt.Labels: dataclasses.replace(labels, family=family, families=("A",)),
        rt.Rankings: rankings,
        rt.Ratings: rt.Ratings.from_wide(marks, item="who"),
        rt.Responses: responses,
    }


def written_model(text: str) -> rt.Model:
    """The model of the zoo that ``ExtendedBTL``, or ``ExtendedBTL(position_bias=True)``, names."""
    name, _, settings = text.partition("(")
    call = ast.parse(f"f({settings or ')'}", mode="eval").body
    values = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
    return getattr(rt.models, name)(**values)


class ModelGraph(SphinxDirective):
    """``{model-graph} ExtendedBTL``, or with settings: ``{model-graph}
    ExtendedBTL(position_bias=True)``."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The drawing."""
        written = self.arguments[0]
        model = written_model(written)
        graph = graph_of(model, tables()[model.data_type])
        arrows = ", ".join(f"{one} → {other}" for one, other in graph.arrows)
        drawing = svg(graph, f"Graph of {written}: {arrows}")
        figure = nodes.container(
            "", nodes.raw("", drawing, format="html"), classes=["model-graph-frame"]
        )
        return [figure]


# ---------------------------------------------------------------------- models against back-ends


@cache
def reasons(model: rt.Model) -> tuple[str | None, ...]:
    """Reason of each back-end not to run a model, or None; once for all pages."""
    program = rt.program.Program(model, tables()[model.data_type])
    return tuple(backend.why_not(program) for backend in BACKENDS)


def verdicts() -> list[tuple[str, tuple[str | None, ...]]]:
    """The rows of the table: each model by its defaults, and models with settings that change what
    can run them."""
    models = {name: getattr(rt.models, name) for name in rt.models.__all__}
    for name in ("JointModel", "PairwiseModel", "numpyro_model"):
        del models[name]  # which depend on what they are made of
    rows = [(name, reasons(_EXAMPLES.get(name) or model())) for name, model in models.items()]
    hidden = dataclasses.replace(rt.Raykar(), hidden=256)
    return [*rows, ("Raykar(hidden=256)", reasons(hidden))]


class ModelBackendTable(SphinxDirective):
    """``{model-backend-table}``: every model on every back-end, as the code answers; with names,
    the lines of these models."""

    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = {"link": directives.flag}

    def run(self) -> list[nodes.Node]:
        """The table, and below it the sentences of the back-ends that cannot run a model."""
        rows = verdicts()
        if self.arguments:
            asked = self.arguments[0].split()
            rows = [row for row in rows if row[0].split("(")[0] in asked]
        notes: list[str] = []
        lines = [
            "| model | " + " | ".join(f"`{type(backend).__name__}`" for backend in BACKENDS) + " |",
            "|---" * (1 + len(BACKENDS)) + "|",
        ]
        for name, answers in rows:
            cells = []
            for backend, reason in zip(BACKENDS, answers, strict=True):
                if reason and reason not in notes:
                    notes.append(reason)
                kind = "exact" if backend.exact else "approximate"
                cells.append(f"— ({notes.index(reason) + 1})" if reason else f"✓ {kind}")
            section = name.split("(")[0]
            target = (
                f"[`{name}`](/explanation/models/{page_of(section)}.md#{section.lower()})"
                if "link" in self.options
                else f"`{name}`"
            )
            lines.append(f"| {target} | " + " | ".join(cells) + " |")
        lines += ["", *(f"({number}) {note}." for number, note in enumerate(notes, 1))]
        return self.parse_text_to_nodes("\n".join(lines))


def page_of(name: str) -> str:
    """The page that has the section of a model."""
    pages = (Path(__file__).parent.parent / "explanation" / "models").glob("*.md")
    (page,) = (page.stem for page in pages if f"## `{name}`\n" in page.read_text())
    return page


# ---------------------------------------------------------------------- modules and imports


def imports() -> dict[str, tuple[str, set[str]]]:
    """Each public module of raters (a folder is one) with the first sentence of its docstring and
    the other modules that it imports; imports of a private module count for the modules that import
    it."""
    root = Path(rt.__file__).parent
    trees = {
        path: ast.parse(path.read_text())
        for path in root.rglob("*.py")
        if path != root / "__init__.py"
    }

    def part(name: str) -> str:
        return name.split(".")[1]

    direct: dict[str, set[str]] = {}
    sentence: dict[str, str] = {}
    for path, tree in trees.items():
        name = path.relative_to(root).with_suffix("").parts[0]
        if path.parent == root or path == root / name / "__init__.py":
            first = (ast.get_docstring(tree) or "").split("\n\n")[0].split(". ")[0]
            sentence[name] = first.replace("\n", " ").rstrip(".") + "."
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "raters":
                names = (
                    [f"raters.{alias.name}" for alias in node.names]
                    if node.module == "raters"
                    else [node.module or ""]
                )
                direct.setdefault(name, set()).update(part(other) for other in names)

    def through(name: str, seen: frozenset[str]) -> set[str]:
        public: set[str] = set()
        for other in direct.get(name, set()) - seen:
            public |= through(other, seen | {other}) if other.startswith("_") else {other}
        return public

    return {
        name: (sentence[name], through(name, frozenset({name})) - {name})
        for name in sentence
        if not name.startswith("_")
    }


class ModuleTable(SphinxDirective):
    """``{module-table}``: the modules from the bottom up, each after those that it uses."""

    def run(self) -> list[nodes.Node]:
        """The table."""
        modules = imports()
        height: dict[str, int] = {}

        def height_of(name: str) -> int:
            if name not in height:
                height[name] = 0
                height[name] = 1 + max(
                    (height_of(other) for other in modules[name][1] if other in modules), default=0
                )
            return height[name]

        lines = ["| module | content | uses |", "|---|---|---|"]
        for name in sorted(modules, key=lambda name: (height_of(name), name)):
            sentence, used = modules[name]
            listed = [f"`{other}`" for other in sorted(used - {"errors"}) if other in modules]
            lines.append(f"| `{name}` | {sentence} | {', '.join(listed) or '–'} |")
        return self.parse_text_to_nodes("\n".join(lines))


def setup(app: Any) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("model-graph", ModelGraph)
    app.add_directive("model-backend-table", ModelBackendTable)
    app.add_directive("module-table", ModuleTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
