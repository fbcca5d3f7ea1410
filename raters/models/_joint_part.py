"""Programs of parts within a joint model: names of sites and axes, shared and tied sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpyro.primitives import CondIndepStackFrame, Messenger

from raters.distributions.correlated import Correlated, given_scores, normal_score

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
