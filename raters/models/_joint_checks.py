"""Refusals of joint models whose parts do not fit together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpyro.distributions import constraints

from raters.errors import refuse
from raters.judgements.names import plural, shorten
from raters.judgements.together import Together
from raters.models._joint_part import Group, missing

Sites = Mapping[str, Mapping[str, Any]]


def check_groups(model: Any, data: Together, sites: Sites) -> None:
    """Raise unless the sites that a joint model shares or ties can be."""
    for parameter, groups in (("shared", model.shared), ("tied", model.tied)):
        for part, site in (member for group in groups for member in group):
            if site not in sites[part]:
                raise missing(parameter, part, site, sites[part])
    for group in model.shared:
        _check_shared(group, data, sites)
    for group in model.tied:
        _check_tied(group, data, sites)


def _axes(data: Together, part: str, site: Any) -> tuple[str, ...]:
    """Axes of a site as results call them, without those of length 1."""
    named = data.own_axes(part)
    return tuple(
        named.get(axis, f"{part}.{axis}")
        for axis, size in zip(site.dims, site.shape, strict=True)
        if size != 1 or axis in named
    )


def _check_shared(group: Group, data: Together, sites: Sites) -> None:
    """Raise unless the sites of a group have the same axes, with the same names, and range."""
    first, name = group[0]
    one = sites[first][name]
    for part, site in group[1:]:
        other = sites[part][site]
        what = f"of part {part!r} cannot be {name!r} of part {first!r}"
        mine, theirs = _axes(data, part, other), _axes(data, first, one)
        if mine != theirs:
            refuse(
                "shared",
                site,
                (
                    f"{what}: they have the axes {_sizes(data, part, other)} and"
                    f" {_sizes(data, first, one)}{_names(data, part, first, other.dims)}"
                ),
                (
                    "share sites along the same names, and give both parts the same ones;"
                    " an axis of one part alone is called part.axis"
                ),
            )
        if _bounds(other.support) != _bounds(one.support):
            refuse(
                "shared",
                site,
                (f"{what}: one is {_range(other.support)}, and the other {_range(one.support)}"),
                (
                    "share sites of one range, such as a competence='signed' and a"
                    " rationality, or tie them"
                ),
            )


def _names(data: Together, part: str, first: str, axes: tuple[str, ...]) -> str:
    """The names along the first axis that two parts name differently, in words."""
    mine, theirs = data.part(part).coords, data.part(first).coords
    for axis in axes:
        if axis in mine and axis in theirs and tuple(mine[axis]) != tuple(theirs[axis]):
            return (
                f", with the {plural(axis)} {shorten(mine[axis], 3)} and {shorten(theirs[axis], 3)}"
            )
    return ""


def _sizes(data: Together, part: str, site: Any) -> str:
    """Axes of a site with their sizes, in words."""
    named = data.own_axes(part)
    sizes = zip(site.dims, site.shape, strict=True)
    words = [f"{named.get(axis, f'{part}.{axis}')}: {size}" for axis, size in sizes]
    return f"({', '.join(words)})"


def _bounds(support: constraints.Constraint) -> tuple[Any, Any]:
    """Least and largest value of a support of numbers; None where there is none."""
    if support.event_dim:
        return type(support).__name__, None
    ends = (getattr(support, end, None) for end in ("lower_bound", "upper_bound"))
    low, high = (None if end is None else float(end) for end in ends)
    return low, high


def _range(support: constraints.Constraint) -> str:
    """A support in words."""
    low, high = _bounds(support)
    if isinstance(low, str):
        return low.strip("_").lower()
    if low is None and high is None:
        return "any number"
    return f"at least {low:g}" if high is None else f"from {low:g} to {high:g}"


def _check_tied(group: Group, data: Together, sites: Sites) -> None:
    """Raise unless the sites of a group have one number for each of the same judges."""
    axes = {_axes(data, part, sites[part][site]) for part, site in group}
    judges = {(data.axis_name(part, data.part(part).judge),) for part, _ in group}
    if axes != judges or len(judges) != 1:
        listed = "; ".join(
            f"{site!r} of part {part!r} has the axes {_axes(data, part, sites[part][site])}"
            for part, site in group
        )
        refuse(
            "tied",
            dict(group),
            f"has not one number for each of the same judges: {listed}",
            "tie sites such as a competence, an accuracy or a rationality",
        )
    for part, site in group:
        support = sites[part][site].support
        if support.event_dim or support.is_discrete:
            refuse(
                "tied",
                site,
                f"of part {part!r} is not a number of its own",
                "tie sites such as a competence, an accuracy or a rationality",
            )
