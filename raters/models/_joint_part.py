"""Parts of a joint model: names of their sites and axes, shared and tied sites, symmetries."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from numpyro.primitives import CondIndepStackFrame, Messenger

from raters.distributions.correlated import Correlated, given_scores, normal_score
from raters.model import Exchange, Permute, Scale, Shift, Sign, Symmetry, moved_sites

# Sites of the parts that are one, or tied: (part, site) of each, in the order of the parts.
Group = tuple[tuple[str, str], ...]
# Values of shared sites, and scores of tied ones, so far: by (part, site).
Drawn = dict[tuple[str, str], Any]


class PartOf(Messenger):  # type: ignore[misc]
    """Effect handler that runs the program of a part within a joint model."""

    def __init__(
        self, model: Any, part: str, correlation: Mapping[Group, Any], drawn: Drawn
    ) -> None:
        super().__init__()
        self.model, self.part, self.correlation, self.drawn = model, part, correlation, drawn

    def process_message(self, msg: dict[str, Any]) -> None:
        """Give a site its name, its value or its distribution."""
        name = msg.get("name")
        if name is None or msg["type"] not in ("sample", "deterministic", "plate", "param"):
            return
        prefix = f"{self.part}."
        msg["cond_indep_stack"] = [
            CondIndepStackFrame(prefix + frame.name, frame.dim, frame.size)
            for frame in msg.get("cond_indep_stack", [])
        ]
        msg["name"] = self.model.site_name(self.part, name)
        if msg["type"] != "sample":
            msg["name"] = prefix + name
            return
        msg["infer"] = _renamed(msg["infer"], prefix)
        for group in self.model.shared:
            if (self.part, name) in group and (value := self.drawn.get(group[0])) is not None:
                msg["value"] = value.reshape(msg["fn"].shape())
                msg["stop"] = msg["given"] = True  # No handler outside sees the site again.
        for group, correlation in self.correlation.items():
            if (self.part, name) in group:
                self._tie(msg, name, group, correlation)

    def _tie(self, msg: dict[str, Any], name: str, group: Group, correlation: Any) -> None:
        """Let a site depend on the scores of those before it."""
        before = [self.drawn[member] for member in group if member in self.drawn]
        msg["tied"] = ((self.part, name), msg["fn"])
        if before:
            msg["fn"] = Correlated(msg["fn"], *given_scores(before, correlation))

    def postprocess_message(self, msg: dict[str, Any]) -> None:
        """Keep the values of shared sites, and the scores of tied ones."""
        if msg["type"] != "sample" or msg.get("given"):
            return
        if (tied := msg.pop("tied", None)) is not None:
            member, fn = tied
            self.drawn[member] = normal_score(fn, msg["value"])
        for group in self.model.shared:
            first, site = group[0]
            if first == self.part and msg["name"] == self.model.site_name(first, site):
                self.drawn[group[0]] = msg["value"]


def _renamed(infer: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Facts that a site declares, with axes of the part."""
    infer = dict(infer)
    for key in ("unit", "latent_class"):
        if key in infer:
            infer[key] = prefix + str(infer[key])
    if "event_dims" in infer:
        infer["event_dims"] = [prefix + axis for axis in infer["event_dims"]]
    return infer


# ---------------------------------------------------------------- symmetries


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
        if field in ("axis", "column") or value is None:
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
