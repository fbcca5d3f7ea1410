"""One model of several kinds of judgement, whose parts share parameters."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro import handlers

from raters.distributions.correlated import Correlated, given_scores, normal_score
from raters.distributions.priors import range_of, same_support
from raters.errors import refuse
from raters.errors.validation import nearest
from raters.judgements.together import Together, axis_name, check_part_name
from raters.model import (
    Fit,
    Model,
    Permute,
    Scale,
    Shift,
    Sign,
    Symmetry,
    Values,
    moved_sites,
    references_of,
)
from raters.models.base import worded

OfPart = Mapping[str, Any]
Sites = Mapping[str, OfPart]
# Sites of the parts that are one, or tied: (part, site) of each, in the order of the parts.
Group = tuple[tuple[str, str], ...]
# Values of shared sites, and scores of tied ones, so far: by (part, site).
Drawn = dict[tuple[str, str], Any]
_SUCH = "rt.models.JointModel({'votes': rt.ExtendedBTL(), 'labels': rt.models.OneCoin()})"


@dataclass(frozen=True, repr=False)
class JointModel(Model[Together]):
    r"""One posterior from several kinds of judgement.

    Each kind, a part of the data, has a model of its own. Sites of the parts may be

    - **shared**: one site that enters the likelihood of each part, with the prior that it has in
      the first of them. Share what means the same in each, such as the coefficients of a reward
      that comparisons of trajectories and demonstrations are both about;
    - **tied**: numbers of the same people in different units, such as a competence in votes and an
      accuracy in labels. Each keeps its own prior, and any two have a correlation ρ, which is
      learned:

      .. math::

          u_{pk} = \Phi^{-1}(F_p(x_{pk})), \qquad
          (u_{1k}, u_{2k}, \dots) \sim \mathrm{Normal}\bigl(0, (1 - \rho) I + \rho 1 1^\top\bigr),
          \qquad \rho \sim \mathrm{Beta}(2, 2)

      with :math:`F_p` the distribution function of the prior in part p. It is a Gaussian copula:
      whoever is among the best fifth of the crowd in one is likely to be among the best in the
      other, whatever the units. With ρ = 0 the parts tell nothing of each other; with few people
      the prior of ρ decides how much.

    Sites of a part are called ``part.site`` in results, shared ones as in the first part, and the
    correlations ``site_correlation``. The likelihood is the product of those of the parts, and with
    nothing shared and nothing tied the posterior is the product of separate fits.

    `HMC`, the default, `NUTS` and `SVI` fit every joint model; `PGGibbs` and `PGEM` those of parts
    that they fit one by one. `rt.fitting.part` gives the result of one part, which all verbs take.

    Parameters
    ----------
    models : mapping of str to Model
        Model of each part of `Together`, by the same names.
    shared : sequence of str or mapping
        A site by the name that it has in all parts, or a mapping from some parts to the name in
        each, such as ``{"votes": "competence", "shown": "rationality"}``.
    tied : sequence of str or mapping
        Sites with one number for each judge, in the same form.

    Examples
    --------
    >>> import raters as rt
    >>> demonstrations, _ = rt.datasets.demonstration_crowd(2, 2, num_annotators=3, seed=0)
    >>> by_cloning = rt.models.BehaviouralCloning()
    >>> labels, _ = rt.datasets.label_crowd(30, 3, 3, 2, seed=0)
    >>> both = rt.judgements.Together.of({"shown": demonstrations, "labels": labels})
    >>> model = rt.models.JointModel({"shown": by_cloning, "labels": rt.models.OneCoin()},
    ...                       tied=[{"shown": "competence", "labels": "accuracy"}])
    >>> for name in rt.program.Program(model, both).sites:
    ...     print(name)
    competence_correlation
    shown.competence
    shown.policy
    labels.prevalence
    labels.accuracy
    """

    models: Any
    shared: Any = ()
    tied: Any = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", _models(self.models))
        for name in ("shared", "tied"):
            groups = _groups(name, getattr(self, name), tuple(self.parts))
            object.__setattr__(self, name, groups)
        of_group = [self.correlation_of(group) for group in self.tied]
        names = Counter([*map(_title, self.shared), *of_group])
        names.update(member for group in (*self.shared, *self.tied) for member in group)
        for name, number in names.items():
            if number > 1:
                expected = "name each site of a part once, and begin with one of another name"
                refuse("shared", name, "is named twice", expected)

    def __repr__(self) -> str:
        groups = [
            f", {name}={[dict(group) for group in getattr(self, name)]}"
            for name in ("shared", "tied")
            if getattr(self, name)
        ]
        return f"JointModel({dict(self.models)!r}{''.join(groups)})"

    @property
    def cited(self) -> tuple[str, ...]:
        of_parts = (text for model in self.parts.values() for text in references_of(model))
        return (*(("song2000multivariate",) if self.tied else ()), *of_parts)

    # ---------------------------------------------------------------- parts

    @property
    def parts(self) -> Mapping[str, Model[Any]]:
        """The model of each part."""
        return MappingProxyType(dict(self.models))

    def site_name(self, part: str, site: str) -> str:
        """Name in the joint model of a site of a part."""
        for group in self.shared:
            if (part, site) in group:
                return _title(group)
        return f"{part}.{site}"

    def correlation_of(self, group: Group) -> str:
        """Name of the correlation of tied sites."""
        return f"{_title(group)}_correlation"

    def in_part(self, values: Values, part: str, sites: OfPart, batch_ndim: int = 0) -> Values:
        """Values of the sites of a part, of those of the joint model."""
        own = {site: values[self.site_name(part, site)] for site in sites}
        return {
            site: value.reshape((*np.shape(value)[:batch_ndim], *sites[site].shape))
            for site, value in own.items()
        }

    def named(self, part: str, symmetry: Any) -> Any:
        """A symmetry of a part with the names that the joint model has for its sites."""

        def named(leaf: Any) -> Any:
            return self.site_name(part, leaf) if isinstance(leaf, str) else leaf

        return type(symmetry)(**jax.tree.map(named, vars(symmetry)))

    # ---------------------------------------------------------------- the model

    # Blocks are those of one kind of judgement.
    blocks = ()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Those of each part that no other part breaks."""
        own = {
            part: [self.named(part, one) for one in of.symmetries if not isinstance(one, Permute)]
            for part, of in self.models
        }
        shared = {_title(group): {part for part, _ in group} for group in self.shared}
        found: dict[object, Symmetry] = {}
        for part, symmetry in ((part, one) for part, every in own.items() for one in every):
            whole = _completed(symmetry, part, own, shared)
            if whole is not None:  # Each part completes it, in an order of its own.
                found.setdefault((type(whole), frozenset(moved_sites(whole))), whole)
        return tuple(found.values())

    def generate(self, data: Together) -> None:
        """Run the programs of the parts, one after the other."""
        correlation = {
            group: numpyro.sample(self.correlation_of(group), dist.Beta(2.0, 2.0))
            for group in self.tied
        }
        drawn: Drawn = {}
        for name, model in self.models:
            with PartOf(self, name, correlation, drawn):
                model(data.part(name))

    def start(self, data: Together) -> Values:
        """Start where the parts do; shared sites where the first part that has them does."""
        start: Values = {self.correlation_of(group): np.asarray(0.5) for group in self.tied}
        for name, model in self.models:
            for site, value in model.start(data.part(name)).items():
                start.setdefault(self.site_name(name, site), value)
        return start

    def check_parts(self, data: Together, sites: Sites) -> None:
        """Raise unless shared sites are alike, and tied ones have a number for each judge."""
        for parameter, groups in (("shared", self.shared), ("tied", self.tied)):
            for part, site in (member for group in groups for member in group):
                _check_site(parameter, part, site, sites[part])
        for group in self.shared:
            _check_shared(group, data, sites)
        for group in self.tied:
            _check_tied(group, data, sites)

    def why_not(self, data: Together) -> str | None:
        """Refuse what the model of a part refuses."""
        for name, model in self.models:
            if (reason := model.why_not(data.part(name))) is not None:
                return f"part {name!r}: {reason}"
            if any(isinstance(one, Permute) for one in model.symmetries):
                return worded("of_types", part=name, model=repr(model))
        return None

    def warnings(self, data: Together, fit: Fit | None = None) -> tuple[str, ...]:
        """Pass on what the models say about each part by itself."""
        return tuple(
            f"part {name!r} by itself: {sentence}"
            for name, model in self.models
            for sentence in model.warnings(data.part(name))
        )


# ---------------------------------------------------------------- settings


def _title(group: Group) -> str:
    """Name that the first part has for a site."""
    return group[0][1]


def _models(models: Any) -> tuple[tuple[str, Model[Any]], ...]:
    """Models by part, in a form that has a hash."""
    pairs = tuple(_mapping(models).items())
    single = [isinstance(one, Model) and not isinstance(one, JointModel) for _, one in pairs]
    if len(pairs) < 2 or not all(single):
        problem = "is no mapping of two models or more, each of one kind of judgement"
        expected = "give each part of the data its model"
        refuse("models", models, problem, expected, instead=_SUCH)
    for name, _ in pairs:
        check_part_name("models", name)
    return pairs


def _mapping(pairs: Any) -> dict[Any, Any]:
    """A mapping, or its pairs as they are stored; empty for anything else."""
    try:
        return dict(pairs)
    except (TypeError, ValueError):
        return {}


def _groups(parameter: str, groups: Any, parts: tuple[str, ...]) -> tuple[Group, ...]:
    """Groups of sites by part, in the order of the parts."""
    found = []
    for group in groups if isinstance(groups, (tuple, list)) else (groups,):
        by_part = dict.fromkeys(parts, group) if isinstance(group, str) else _mapping(group)
        named = all(isinstance(site, str) for site in by_part.values())
        if len(by_part) < 2 or not set(by_part) <= set(parts) or not named:
            problem = "does not name sites of two parts or more"
            expected = "give the name that a site has in all parts, or a mapping to names from some"
            expected += f" of {', '.join(map(repr, parts))}"
            refuse(parameter, group, problem, expected, instead=f"{parameter}=['coefficient']")
        found.append(tuple((part, by_part[part]) for part in parts if part in by_part))
    return tuple(found)


# ---------------------------------------------------------------- parts that do not fit together


def _check_site(parameter: str, part: str, site: str, sites: Mapping[str, Any]) -> None:
    if site in sites:
        return
    # Looser, and 'coefficient' would be offered for a competence that another part has.
    near = nearest(site, sites, least=0.8) or next(iter(sites))
    expected = f"it has {', '.join(map(repr, sites))}; a mapping gives the name in each part"
    such = f"{parameter}=[{{{part!r}: {near!r}, ...}}]"
    refuse(parameter, site, f"is no site of part {part!r}", expected, instead=such)


def _axes(data: Together, part: str, site: Any) -> tuple[str, ...]:
    """Axes of a site as results call them, without those of length 1."""
    named = data.part(part).coords
    return tuple(
        axis_name(data, part, axis)
        for axis, size in zip(site.dims, site.shape, strict=True)
        if size != 1 or axis in named
    )


def _check_shared(group: Group, data: Together, sites: Sites) -> None:
    """Raise unless the sites of a group have the same axes, with the same names, and range."""
    (first_part, first_site), *others = group
    first = sites[first_part][first_site]
    for part, site in others:
        own = sites[part][site]
        axes = _axes(data, part, own), _axes(data, first_part, first)
        if axes[0] != axes[1] or not same_support(own.support, first.support):
            ranges = range_of(own.support), range_of(first.support)
            problem = (
                f"of part {part!r} cannot be {first_site!r} of part {first_part!r}: their axes"
                f" (of names of one part alone: part.axis) are {axes}, and ranges {ranges}"
            )
            expected = "share sites along the same names and of one range, or tie them"
            refuse("shared", site, problem, expected)


def _check_tied(group: Group, data: Together, sites: Sites) -> None:
    """Raise unless the sites of a group have one number for each of the same judges."""
    axes = {_axes(data, part, sites[part][site]) for part, site in group}
    judges = {(axis_name(data, part, data.part(part).judge),) for part, _ in group}
    supports = [sites[part][site].support for part, site in group]
    numbers = not any(support.event_dim or support.is_discrete for support in supports)
    if axes != judges or len(judges) != 1 or not numbers:
        problem = f"has not one number for each of the same judges: the axes are {sorted(axes)}"
        expected = "tie sites such as a competence, an accuracy or a rationality"
        refuse("tied", dict(group), problem, expected)


# ---------------------------------------------------------------- programs of the parts


class PartOf(handlers.scope):  # type: ignore[misc]
    """Effect handler that runs the program of a part within a joint model."""

    def __init__(self, model: Any, part: str, correlation: dict[Group, Any], drawn: Drawn) -> None:
        super().__init__(prefix=part, divider=".")
        self.model, self.part, self.correlation, self.drawn = model, part, correlation, drawn
        self.scored: dict[str, Any] = {}

    def process_message(self, msg: dict[str, Any]) -> None:
        """Give a site its name, its value or its distribution."""
        name = msg.get("name")
        if msg.get("infer", {}).get("white"):  # Named by the joint model.
            return
        super().process_message(msg)
        if name is None or msg["type"] != "sample":
            return
        msg["name"] = self.model.site_name(self.part, name)
        axes = [f"{self.part}.{axis}" for axis in msg["infer"].get("event_dims", ())]
        msg["infer"] = msg["infer"] | {"event_dims": axes}
        for group in self.model.shared:
            if (self.part, name) in group and (value := self.drawn.get(group[0])) is not None:
                msg["value"] = value.reshape(msg["fn"].shape())
                msg["stop"] = msg["given"] = True  # No handler outside sees the site again.
        for group, correlation in self.correlation.items():
            if (self.part, name) in group:
                before = [self.drawn[member] for member in group if member in self.drawn]
                self.scored[msg["name"]] = (self.part, name), msg["fn"]
                if before:
                    msg["fn"] = Correlated(msg["fn"], *given_scores(before, correlation))

    def postprocess_message(self, msg: dict[str, Any]) -> None:
        """Keep the values of shared sites, and the scores of tied ones."""
        # A site in units of its prior is deterministic.
        if msg["type"] not in ("sample", "deterministic") or msg.get("given"):
            return
        if msg["name"] in self.scored:
            member, fn = self.scored.pop(msg["name"])
            self.drawn[member] = normal_score(fn, msg["value"])
        for group in self.model.shared:
            first, site = group[0]
            if first == self.part and msg["name"] == self.model.site_name(first, site):
                self.drawn[group[0]] = msg["value"]


# ---------------------------------------------------------------- symmetries of all parts


def _completed(symmetry: Any, part: str, own: dict[str, Any], shared: dict[str, set[str]]) -> Any:
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
    pair_moved = getattr(one, "exchanged", ()) or getattr(other, "exchanged", ())
    if type(one) is not type(other) or not isinstance(one, Shift | Sign | Scale) or pair_moved:
        return None
    fields = {}
    for name in (field.name for field in dataclasses.fields(one)):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs and not isinstance(mine, tuple):
            return None
        if mine != theirs:
            if set(mine) & common != set(theirs) & common:
                return None
            mine = tuple(dict.fromkeys((*mine, *theirs)))
        fields[name] = mine
    return type(one)(**fields)
