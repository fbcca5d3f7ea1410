"""One model of several kinds of judgement, whose parts share parameters."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpyro
import numpyro.distributions as dist

from raters.errors import refuse
from raters.errors.validation import is_number
from raters.judgements.common_names import check_part_name
from raters.judgements.together import Together
from raters.model import Model, Permute, Symmetry, Values
from raters.models import _joint_checks as checks
from raters.models._joint_part import Drawn, Group, PartOf
from raters.models._joint_symmetries import joint_symmetries, named


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

    `NUTS`, the default, and `SVI` fit every joint model; `PGGibbs` and `PGEM` those of parts that
    they fit one by one. `rt.fitting.part` gives the result of one part, which all verbs take.

    Parameters
    ----------
    models : mapping of str to Model
        Model of each part of `Together`, by the same names.
    shared : sequence of str or mapping
        A site by the name that it has in all parts, or a mapping from some parts to the name in
        each, such as ``{"votes": "competence", "shown": "rationality"}``.
    tied : sequence of str or mapping
        Sites with one number for each judge, in the same form.
    correlation : float, optional
        Correlation ρ of tied sites, at least 0 and below 1; learned unless given.

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
    correlation: float | None = None

    @property
    def cited(self) -> tuple[str, ...]:
        """That of the copula, and those of all parts."""
        of_parts = (reference for model in self.parts.values() for reference in model.cited)
        return (*(("song2000multivariate",) if self.tied else ()), *of_parts)

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", _models(self.models))
        for name in ("shared", "tied"):
            groups = _groups(name, getattr(self, name), tuple(self.parts))
            object.__setattr__(self, name, groups)
        self._check_once()
        if self.correlation is not None:
            _check_correlation(self.correlation)
            if not self.tied:
                refuse(
                    "correlation",
                    self.correlation,
                    "is that of tied sites, and none are tied",
                    "tie sites of two parts, or leave it out",
                    instead="tied=[...]",
                )
            object.__setattr__(self, "correlation", float(self.correlation))

    def __repr__(self) -> str:
        written = [repr(dict(self.models))]
        written += [
            f"{name}={[dict(group) for group in getattr(self, name)]}"
            for name in ("shared", "tied")
            if getattr(self, name)
        ]
        written += [f"correlation={self.correlation}"] if self.correlation is not None else []
        return f"JointModel({', '.join(written)})"

    def _check_once(self) -> None:
        """Raise where a site is in two groups, or two groups would have one name."""
        members = [member for group in (*self.shared, *self.tied) for member in group]
        if twice := [member for member in members if members.count(member) > 1]:
            part, site = twice[0]
            is_shared = any((part, site) in group for group in self.shared)
            refuse(
                "shared" if is_shared else "tied",
                site,
                f"of part {part!r} is shared or tied twice",
                "name each site of a part once",
            )
        names = [_title(group) for group in self.shared] + [
            self.correlation_of(group) for group in self.tied
        ]
        if twice_named := [name for name in names if names.count(name) > 1]:
            refuse(
                "shared",
                twice_named[0],
                "would be the name of two sites of the joint model",
                "begin one of the two with a part in which the site has another name",
            )

    # ---------------------------------------------------------------- parts

    @property
    def parts(self) -> Mapping[str, Model[Any]]:
        """The model of each part."""
        return MappingProxyType(dict(self.models))

    @property
    def observed_sites(self) -> tuple[str, ...]:
        """The observed site of each part."""
        return tuple(f"{name}.{model.observed}" for name, model in self.models)

    def site_name(self, part: str, site: str) -> str:
        """Name in the joint model of a site of a part."""
        for group in self.shared:
            if (part, site) in group:
                return _title(group)
        return f"{part}.{site}"

    def correlation_of(self, group: Group) -> str:
        """Name of the correlation of tied sites."""
        return f"{_title(group)}_correlation"

    def in_part(
        self, values: Values, part: str, sites: Mapping[str, Any], batch_ndim: int = 0
    ) -> Values:
        """Values of the sites of a part, of those of the joint model."""
        own = {site: values[self.site_name(part, site)] for site in sites}
        return {
            site: value.reshape((*np.shape(value)[:batch_ndim], *sites[site].shape))
            for site, value in own.items()
        }

    # ---------------------------------------------------------------- the model

    def generate(self, data: Together) -> None:
        """Run the programs of the parts, one after the other."""
        strength = {group: self._correlation(group) for group in self.tied}
        drawn: Drawn = {}
        for name, model in self.models:
            with PartOf(self, name, strength, drawn):
                model.generate(data.part(name))

    def _correlation(self, group: Group) -> Any:
        """Sample the correlation of tied sites, unless it is given."""
        if self.correlation is not None:
            return self.correlation
        return numpyro.sample(self.correlation_of(group), dist.Beta(2.0, 2.0))

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """None: blocks are those of one kind of judgement."""
        return ()

    @property
    def symmetries(self) -> tuple[Symmetry, ...]:
        """Those of each part that no other part breaks."""
        return joint_symmetries(self)

    def named(self, part: str, symmetry: Symmetry) -> Symmetry:
        """A symmetry of a part with the names that the joint model has for its sites."""
        renamed: Symmetry = named(self, part, symmetry)
        return renamed

    def start(self, data: Together) -> Values:
        """Start where the parts do; shared sites where the first part that has them does."""
        start: Values = {}
        if self.correlation is None:
            start = {self.correlation_of(group): np.asarray(0.5) for group in self.tied}
        for name, model in self.models:
            for site, value in model.start(data.part(name)).items():
                start.setdefault(self.site_name(name, site), value)
        return start

    def check_parts(self, data: Together, sites: Mapping[str, Mapping[str, Any]]) -> None:
        """Raise unless shared sites are there, with the same axes, names and range in each part,
        and tied ones have a number for each of the same judges."""
        checks.check_groups(self, data, sites)

    # ---------------------------------------------------------------- sentences

    def why_not(self, data: Together) -> str | None:
        """Refuse what the model of a part refuses."""
        for name, model in self.models:
            if (reason := model.why_not(data.part(name))) is not None:
                return f"part {name!r}: {reason}"
            if any(isinstance(one, Permute) for one in model.symmetries):
                return (
                    f"part {name!r}: {model!r} has types whose numbering has no meaning, which only"
                    " a fit of its own puts in order; take one type, or fit it by itself"
                )
        return None

    def data_warnings(self, data: Together) -> tuple[str, ...]:
        """Pass on what the models say about each part by itself."""
        return tuple(
            f"part {name!r} by itself: {sentence}"
            for name, model in self.models
            for sentence in model.data_warnings(data.part(name))
        )


def _title(group: Group) -> str:
    """Name that the first part has for a site."""
    return group[0][1]


def _models(models: Any) -> tuple[tuple[str, Model[Any]], ...]:
    """Models by part, in a form that has a hash."""
    pairs = models.items() if isinstance(models, Mapping) else models
    such = "rt.models.JointModel({'votes': rt.ExtendedBTL(), 'labels': rt.models.OneCoin()})"
    if not isinstance(pairs, (tuple, list, ItemsView)) or len(pairs) < 2:
        refuse(
            "models",
            models,
            "is no mapping of two models or more",
            "give each part of the data its model",
            instead=such,
        )
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            refuse(
                "models",
                pair,
                "is no part with its model",
                "give each part of the data its model",
                instead=such,
            )
    names = [name for name, _ in pairs]
    for name in names:
        check_part_name("models", name)
    if twice := [name for name in names if names.count(name) > 1]:
        refuse(
            "models", twice[0], "names two parts", "give each part a name of its own", instead=such
        )
    for name, model in pairs:
        if not isinstance(model, Model) or isinstance(model, JointModel):
            refuse(
                name,
                model,
                "is no model of one kind of judgement",
                "give each part of the data its model",
                instead=such,
            )
    return tuple(pairs)


def _groups(parameter: str, groups: Any, parts: tuple[str, ...]) -> tuple[Group, ...]:
    """Groups of sites by part, in the order of the parts."""
    if isinstance(groups, (str, Mapping)):
        groups = (groups,)
    if not isinstance(groups, (tuple, list)) or not all(map(_is_group, groups)):
        refuse(
            parameter,
            groups,
            "is no list of names of sites",
            "give the name that a site has in all parts, or a mapping from parts to names",
            instead=f"{parameter}=['coefficient']",
        )
    found = []
    for group in groups:
        by_part = dict.fromkeys(parts, group) if isinstance(group, str) else dict(group)
        if unknown := [part for part in by_part if part not in parts]:
            refuse(
                parameter,
                unknown[0],
                "is no part",
                f"choose among {', '.join(map(repr, parts))}",
                instead=f"{parameter}=[{{'{parts[0]}': 'competence', '{parts[1]}': 'competence'}}]",
            )
        if len(by_part) < 2:
            refuse(
                parameter,
                dict(by_part),
                "names a site of one part alone",
                "name the sites of two parts or more",
            )
        found.append(tuple((part, by_part[part]) for part in parts if part in by_part))
    return tuple(found)


def _is_group(group: Any) -> bool:
    """True for the name of a site, and for a mapping from parts to names, or its pairs."""
    pairs = group.items() if isinstance(group, Mapping) else group
    return isinstance(group, str) or (
        isinstance(pairs, (tuple, ItemsView))
        and all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs)
        and all(isinstance(site, str) for _, site in pairs)
    )


def _check_correlation(correlation: Any) -> None:
    """Raise unless a correlation is possible among any number of sites."""
    if not is_number(correlation) or not 0 <= correlation < 1:
        refuse(
            "correlation",
            correlation,
            expected="it must be a number of at least 0 and below 1",
            instead="correlation=0.5",
        )
