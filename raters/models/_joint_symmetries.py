"""Symmetries of a joint model: those of its parts that no other part breaks."""

from __future__ import annotations

import dataclasses
from typing import Any

from raters.model import Exchange, Permute, Scale, Shift, Sign, Symmetry, moved_sites


def joint_symmetries(model: Any) -> tuple[Symmetry, ...]:
    """Symmetries of the parts in the names of a joint model."""
    own = {
        part: [named(model, part, one) for one in of.symmetries if not isinstance(one, Permute)]
        for part, of in model.parts.items()
    }
    shared = {model.site_name(*group[0]): {part for part, _ in group} for group in model.shared}
    found: dict[object, Symmetry] = {}
    for part, symmetries in own.items():
        for symmetry in symmetries:
            whole = _completed(symmetry, part, own, shared)
            if whole is not None:  # Each part completes it, in an order of its own.
                found.setdefault((type(whole), frozenset(moved_sites(whole))), whole)
    return tuple(found.values())


def named(model: Any, part: str, symmetry: Any) -> Any:
    """A symmetry of a part with the names that the joint model has for its sites."""

    def of(value: Any, field: str) -> Any:
        if field in ("axis",) or value is None:
            return value
        if isinstance(value, str):
            return model.site_name(part, value)
        if field in ("exchanged",) or (field == "sites" and isinstance(symmetry, Exchange)):
            return tuple((model.site_name(part, site), extra) for site, extra in value)
        return tuple(model.site_name(part, site) for site in value)

    fields = {field.name: getattr(symmetry, field.name) for field in dataclasses.fields(symmetry)}
    return type(symmetry)(**{name: of(value, name) for name, value in fields.items()})


def _completed(
    symmetry: Any, part: str, own: dict[str, list[Any]], shared: dict[str, set[str]]
) -> Any:
    """A symmetry with what other parts move along; None where one of them does not."""
    done, whole = {part}, symmetry
    while True:
        moved = moved_sites(whole)
        waiting = {of for site in moved for of in shared.get(site, ()) if of not in done}
        if not waiting:
            return whole
        other = min(waiting)
        theirs = {site for site, parts in shared.items() if other in parts}
        ours = {site for site, parts in shared.items() if parts & done}
        joined = (_joined(whole, one, theirs & ours) for one in own[other])
        whole = next((one for one in joined if one is not None), None)
        if whole is None:
            return None
        done = done | {other}


def _joined(one: Any, other: Any, common: set[str]) -> Any:
    """Both symmetries as one; None where they do not move the common sites alike."""
    if type(one) is not type(other):
        return None
    if isinstance(one, Shift):
        return one if one == other else None
    if isinstance(one, Sign) and not (one.exchanged or other.exchanged):
        alike = set(one.sites) & common == set(other.sites) & common
        return Sign(tuple(dict.fromkeys((*one.sites, *other.sites)))) if alike else None
    if isinstance(one, Scale):
        sides = [(getattr(one, side), getattr(other, side)) for side in ("up", "down")]
        if any(set(mine) & common != set(theirs) & common for mine, theirs in sides):
            return None
        up, down = (tuple(dict.fromkeys((*mine, *theirs))) for mine, theirs in sides)
        return Scale(up, down)
    return None
