"""Graph of a model's program: read off the code, laid out in rows, and drawn as SVG."""

from __future__ import annotations

from functools import partial
from html import escape
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

import numpy as np
from numpyro.infer.inspect import get_model_relations
from scipy.optimize import linprog

import raters as rt
from raters.inference.polya_gamma.detection import log_weights_of
from raters.kinds import kind_of
from raters.program.traces import read_by


class Graph(NamedTuple):
    """Nodes with the line below their name, arrows, the nodes of each plate, and which nodes are
    observed or summed out."""

    nodes: dict[str, str]
    arrows: list[tuple[str, str]]
    plates: dict[str, set[str]]
    observed: set[str]
    summed: set[str]


def graph_of(model: rt.Model, data: Any) -> Graph:
    """The graph of a model's program; a class that the likelihood sums out is a node between its
    weights and the outcome."""
    relations = get_model_relations(model.generate, (data,))
    program = rt.program.Program(model, data)
    site_of = program.sites | {model.observed: program.observed}
    names = {name: site.distribution for name, site in site_of.items()}
    # Deterministic sites, which are no nodes, are among the relations too.
    arrows = [
        (parent, child)
        for child, parents in relations["sample_sample"].items()
        for parent in parents
        if {parent, child} <= set(names)
    ]
    plates: dict[str, set[str]] = {}
    for plate, members in relations["plate_sample"].items():
        # The observed site's own axis goes by the name that results and pages use.
        name = (
            site_of[model.observed].dims[0]
            if model.observed in members
            else plate.removesuffix("__CLONE")
        )
        plates.setdefault(name, set()).update(set(members) & set(names))
    plates = {name: members for name, members in plates.items() if members}
    summed: set[str] = set()
    if latent := program.latent:
        hidden = latent.name
        start = {name: np.asarray(value, float) for name, value in model.start(data).items()}
        weighing = read_by(partial(log_weights_of, model, data), start)
        names[hidden] = "summed out"
        arrows = [
            (one, hidden if one in weighing and other == model.observed else other)
            for one, other in arrows
        ]
        arrows.append((hidden, model.observed))
        plates[latent.unit].add(hidden)
        names[model.observed] = f"all {kind_of(data).words.many}"
        summed = {hidden}
    together: dict[frozenset[str], list[str]] = {}
    for plate, members in plates.items():
        together.setdefault(frozenset(members), []).append(plate)
    plates = {" × ".join(names): set(members) for members, names in together.items()}
    return Graph(names, arrows, plates, {model.observed}, summed)


# ---------------------------------------------------------------------- the layout

_ROW, _HEIGHT = 96, 46
# Between two neighbours in a row, and between what is inside a plate and its edge: at the sides,
# above, below.
_GAP, _SIDE, _ABOVE, _BELOW = 24, 13, 9, 22


def width_of(name: str, below: str) -> float:
    """Width of an ellipse around these words."""
    return max(8.6 * len(name), 7.0 * len(below)) + 34


class Place(NamedTuple):
    """Centres of the nodes, and (left, top, right, bottom) of each plate."""

    centre: dict[str, tuple[float, float]]
    box: dict[str, tuple[float, float, float, float]]


def layered(graph: Graph) -> list[list[str]]:
    """Nodes by their distance from the outcome, the furthest first."""
    depth = dict.fromkeys(graph.nodes, 0)
    for _ in graph.nodes:
        for parent, child in graph.arrows:
            depth[parent] = max(depth[parent], depth[child] + 1)
    rows = max(depth.values()) + 1
    return [[name for name in graph.nodes if depth[name] == rows - 1 - row] for row in range(rows)]


def placed(graph: Graph) -> Place:
    """The best of all orders of the nodes within their rows: few crossings, then short arrows."""
    best, lowest = None, (np.inf, np.inf)
    for order in product(*(permutations(row) for row in layered(graph))):
        place = _columns(graph, order)
        if place and (cost := _cost(graph, place)) < lowest:
            best, lowest = place, cost
    if best is None:
        raise ValueError(
            f"no drawing of {sorted(graph.nodes)} keeps the plates {sorted(graph.plates)} apart"
        )
    return best


def _columns(graph: Graph, rows: tuple[tuple[str, ...], ...]) -> Place | None:
    """Short arrows for one order, by linear programming; None where the plates cannot be kept apart
    in this order."""
    width = {name: width_of(name, below) for name, below in graph.nodes.items()}
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    slot = {name: number for row in rows for number, name in enumerate(row)}
    spans = {plate: {row_of[name] for name in members} for plate, members in graph.plates.items()}
    # Variables: centres, left and right ends of plates, lengths of arrows.
    names = [
        *graph.nodes,
        *((plate, end) for plate in graph.plates for end in (0, 1)),
        *graph.arrows,
    ]
    column = {name: number for number, name in enumerate(names)}
    limits: list[tuple[dict[Any, float], float]] = []  # Σ coefficient · variable ≤ bound

    def before(one, other, least):
        limits.append(({one: 1.0, other: -1.0}, -least))

    for row in rows:
        for one, other in pairwise(row):
            before(one, other, (width[one] + width[other]) / 2 + _GAP)
    for plate, members in graph.plates.items():
        before((plate, 0), (plate, 1), 7.4 * len(plate) + 18)
        for name in members:
            before((plate, 0), name, width[name] / 2 + _SIDE)
            before(name, (plate, 1), width[name] / 2 + _SIDE)
        for name in set(graph.nodes) - members:
            if row_of[name] in range(min(spans[plate]), max(spans[plate]) + 1):
                beside = [
                    slot[other] > slot[name] for other in members if row_of[other] == row_of[name]
                ]
                if not beside or any(beside) != all(beside):
                    return None
                if beside[0]:
                    before(name, (plate, 0), width[name] / 2 + 10)
                else:
                    before((plate, 1), name, width[name] / 2 + 10)
        for other, others in graph.plates.items():
            if members < others:
                before((other, 0), (plate, 0), 8)
                before((plate, 1), (other, 1), 8)
            elif not members & others and (shared := sorted(spans[plate] & spans[other])):
                first = {
                    min(slot[name] for name in members if row_of[name] == row)
                    < min(slot[name] for name in others if row_of[name] == row)
                    for row in shared
                }
                if first == {True}:
                    before((plate, 1), (other, 0), 14)
                elif len(first) == 2:
                    return None
    for one, other in graph.arrows:
        limits += [
            ({one: 1.0, other: -1.0, (one, other): -1.0}, 0.0),
            ({one: -1.0, other: 1.0, (one, other): -1.0}, 0.0),
        ]
    matrix = np.zeros((len(limits), len(names)))
    for line, (terms, _) in enumerate(limits):
        for name, coefficient in terms.items():
            matrix[line, column[name]] = coefficient
    price = np.zeros(len(names))
    for plate in graph.plates:
        price[column[plate, 0]], price[column[plate, 1]] = -0.1, 0.1
    price[[column[arrow] for arrow in graph.arrows]] = 1.0
    solved = linprog(price, matrix, [bound for _, bound in limits], bounds=(-3000, 3000))
    if not solved.success:
        return None
    x = dict(zip(names, solved.x, strict=True))
    centre = {name: (x[name], _ROW * row_of[name]) for name in graph.nodes}
    box: dict[str, tuple[float, float, float, float]] = {}
    for plate, members in sorted(graph.plates.items(), key=lambda entry: len(entry[1])):
        inside = [box[other] for other in box if graph.plates[other] < members]
        top = (
            min(
                [centre[name][1] - _HEIGHT / 2 for name in members] + [other[1] for other in inside]
            )
            - _ABOVE
        )
        bottom = (
            max(
                [centre[name][1] + _HEIGHT / 2 for name in members] + [other[3] for other in inside]
            )
            + _BELOW
        )
        box[plate] = x[plate, 0], top, x[plate, 1], bottom
    return Place(centre, box)


def _cost(graph: Graph, place: Place) -> tuple[float, float]:
    bad = 0.0
    for number, one in enumerate(graph.arrows):
        for other in graph.arrows[:number]:
            bad += 3 * _cross(*(place.centre[end] for end in (*one, *other)))
        for name in graph.nodes:  # Arrows through a node on the way.
            bad += 5 * (
                name not in one and _through(place, one, name, width_of(name, graph.nodes[name]))
            )
    wide = max(box[2] for box in place.box.values()) - min(box[0] for box in place.box.values())
    return bad, 0.2 * wide + sum(
        abs(place.centre[one][0] - place.centre[other][0]) for one, other in graph.arrows
    )


def _cross(a, b, c, d) -> bool:
    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def _through(place: Place, arrow: tuple[str, str], name: str, width: float) -> bool:
    (x0, y0), (x1, y1), (x, y) = (place.centre[node] for node in (*arrow, name))
    if not min(y0, y1) < y < max(y0, y1):
        return False
    return abs(x0 + (x1 - x0) * (y - y0) / (y1 - y0) - x) < width / 2 + 6


# ---------------------------------------------------------------------- the drawing


def svg(graph: Graph, title: str) -> str:
    """The drawing, in the colours of the text around it."""
    place = placed(graph)
    width = {name: width_of(name, below) for name, below in graph.nodes.items()}
    lefts = [x - width[name] / 2 for name, (x, _) in place.centre.items()] + [
        box[0] for box in place.box.values()
    ]
    rights = [x + width[name] / 2 for name, (x, _) in place.centre.items()] + [
        box[2] for box in place.box.values()
    ]
    tops = [y - _HEIGHT / 2 for _, y in place.centre.values()] + [
        box[1] for box in place.box.values()
    ]
    bottoms = [y + _HEIGHT / 2 for _, y in place.centre.values()] + [
        box[3] for box in place.box.values()
    ]
    left, top, wide, high = (
        min(lefts) - 4,
        min(tops) - 4,
        max(rights) - min(lefts) + 8,
        max(bottoms) - min(tops) + 8,
    )
    parts = [
        (
            f'<svg class="model-graph" role="img" aria-label="{escape(title)}" viewBox="{left:.0f}'
            f' {top:.0f} {wide:.0f} {high:.0f}" width="{wide:.0f}" style="min-width:'
            f' {0.62 * wide:.0f}px" xmlns="http://www.w3.org/2000/svg" font-size="14"'
            ' stroke="currentColor" fill="none">'
        ),
        (
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8"'
            ' markerHeight="8" orient="auto"><path d="M0 1 L7 4 L0 7 z" fill="currentColor"'
            ' stroke="none"/></marker></defs>'
        ),
    ]
    labels = []
    for plate, (x0, y0, x1, y1) in place.box.items():
        parts.append(
            f'<rect x="{x0:.1f}" y="{y0:.1f}" width="{x1 - x0:.1f}" height="{y1 - y0:.1f}" rx="10"'
            ' stroke-opacity=".45"/>'
        )
        inside = graph.plates[plate]
        lean = sum(
            place.centre[b][0] - place.centre[a][0]
            for a, b in graph.arrows
            if a in inside and b not in inside
        )
        at, anchor = (x0 + 9, "start") if lean > 0 else (x1 - 9, "end")
        labels.append(
            f'<text class="plate" x="{at:.1f}" y="{y1 - 7:.1f}" text-anchor="{anchor}"'
            f' font-size="12" font-style="italic" fill="currentColor">{escape(plate)}</text>'
        )
    for one, other in graph.arrows:
        (x0, y0), (x1, y1) = (
            _edge(place.centre[a], place.centre[b], width[a])
            for a, b in ((one, other), (other, one))
        )
        parts.append(
            f'<line x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"'
            ' marker-end="url(#tip)"/>'
        )
    for name, (x, y) in place.centre.items():
        look = 'fill="currentColor" fill-opacity=".16"' if name in graph.observed else ""
        look += ' stroke-dasharray="5 4"' if name in graph.summed else ""
        parts.append(
            f'<ellipse cx="{x:.1f}" cy="{y:.1f}" rx="{width[name] / 2:.1f}" ry="{_HEIGHT / 2}"'
            f' {look}/><text x="{x:.1f}" y="{y - 1:.1f}" text-anchor="middle" stroke="none"'
            f' fill="currentColor">{escape(name)}</text><text x="{x:.1f}" y="{y + 14:.1f}"'
            ' text-anchor="middle" stroke="none" fill="currentColor" fill-opacity=".75"'
            f' font-size="11.5">{escape(graph.nodes[name])}</text>'
        )
    return "".join([*parts, *labels, "</svg>"])


def _edge(
    centre: tuple[float, float], towards: tuple[float, float], width: float
) -> tuple[float, float]:
    """Point at which the line from a node's centre leaves its ellipse."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    share = 1 / np.hypot(dx / (width / 2 + 1), dy / (_HEIGHT / 2 + 1))
    return centre[0] + share * dx, centre[1] + share * dy
