"""Parts of a result of several kinds of judgement: each as a result of its own model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from raters.errors import refuse
from raters.errors.validation import checked, instance, one_of
from raters.fitting import result as results
from raters.fitting.result import as_tree, lead_coords, whole_program_of
from raters.fitting.storage import to_json
from raters.inference.base import Draws
from raters.model import Model
from raters.models.joint import JointModel
from raters.program import Program, models_of, within

# Attribute of the result of a part: the model that was fitted.
PART_OF = "part_of"


class Part(NamedTuple):
    """One kind of judgement of a joint fit."""

    model: Model[Any]
    result: xr.DataTree


@checked
def part(model: Model[Any], result: xr.DataTree, name: str) -> Part:
    """One part of a joint fit as a result of its own model, which every verb takes.

    Its draws are those of the joint posterior, so that predictions, audits, checks and scores of
    one kind of judgement use what all kinds tell. The prior is not that of the part's model alone:
    groups of the prior are those of the joint model.

    Parameters
    ----------
    model : JointModel
    result : xarray.DataTree
    name : str
        Name of the part.

    Returns
    -------
    Part
        ``model`` and ``result``.

    Examples
    --------
    >>> import raters as rt
    >>> careful, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=200, seed=0)
    >>> others, _ = rt.datasets.separated(num_items=4, num_annotators=3, num_votes=300, seed=1)
    >>> both = rt.judgements.Together.of({"careful": careful, "others": others})
    >>> models = {"careful": rt.BTL(), "others": rt.ExtendedBTL(reward_scale=1.0)}
    >>> model = rt.models.JointModel(models, shared=["reward"])
    >>> nuts = rt.NUTS(draws=500, warmup=300, chains=1)
    >>> result = rt.fit(model, both, nuts, seed=0, progress=False)
    >>> rt.predict(*rt.fitting.part(model, result, "others")).dims
    ('chain', 'draw', 'comparison')
    """
    instance("model", model, Model, "a model", "rt.models.JointModel({...})")
    parts = models_of(model)
    if "" in parts:
        expected = "pass the model and its result to the verb as they are"
        refuse("model", model, "is a model of one kind of judgement, without parts", expected)
    one_of("name", name, parts)
    return Part(parts[name], _whole(whole_program_of(model, result), result, name))


def _tree(program: Program[Any], result: xr.DataTree, name: str) -> xr.DataTree:
    """Draws and data of a part, as `raters.fitting.result.as_tree` gives those of a fit."""
    if not name:
        return result
    own, model = program.parts[name], program.model
    assert isinstance(model, JointModel)
    draws: dict[str, dict[str, np.ndarray]] = {}
    for group, lead in (("posterior", 2), ("mode", 0)):
        if group in result.children:
            values = {site: np.asarray(result[group][site].values) for site in program.sites}
            draws[group] = model.in_part(values, name, own.sites, lead)
    flags = program.data.flags()
    facts = {str(key): value for key, value in result.attrs.items() if key not in flags}
    facts |= {"model": to_json(own.model), PART_OF: to_json(model)}
    stats, history = (_variables(result, group) for group in ("sample_stats", "optimisation"))
    found = Draws(draws["posterior"], stats, history, {}, draws.get("mode", {}))
    tree = as_tree(own, found, facts)
    # Numbers of draws are those of the joint result, which may be thinned.
    for group in {"posterior", "sample_stats"} & set(tree.children):
        tree[group] = tree[group].to_dataset().assign_coords(lead_coords(result))
    return tree


def _variables(result: xr.DataTree, group: str) -> dict[str, np.ndarray]:
    """Arrays of a group by name; none where there is no such group."""
    if group not in result.children:
        return {}
    return {str(key): np.asarray(one.values) for key, one in result[group].data_vars.items()}


def _whole(program: Program[Any], result: xr.DataTree, name: str) -> xr.DataTree:
    """Draws and data of a part, and what a fit has computed from them."""
    tree = _tree(program, result, name)
    if not name:
        return tree
    own, prefix = program.parts[name], f"{name}."
    back = {program.axis_name(name, axis): axis for axis in own.data.coords}

    def of_part(group: str, site: str) -> xr.DataArray | None:
        if group not in result.children or prefix + site not in result[group].data_vars:
            return None
        array = result[group].to_dataset()[prefix + site]
        dims = {axis: back.get(str(axis), str(axis).removeprefix(prefix)) for axis in array.dims}
        return _renamed(array, dims).rename(site)

    posterior = tree["posterior"].to_dataset()
    for site in own.deterministic:
        if (values := of_part("posterior", site)) is not None:
            posterior[site] = values
    tree["posterior"] = posterior
    if (table := of_part("log_likelihood", own.model.observed)) is not None:
        tree["log_likelihood"] = table.to_dataset()
    if own.latent is not None and (group := prefix + own.latent.group) in result.children:
        probs = result[group].to_dataset()["responsibility"]
        dims = dict(zip(probs.dims, own.latent.axes, strict=True))
        tree[own.latent.group] = _renamed(probs, dims).to_dataset()
    return tree


def _renamed[Table: (xr.DataArray, xr.Dataset)](table: Table, dims: Mapping[Any, Any]) -> Table:
    """A table with other names of some axes."""
    return table.rename({axis: to for axis, to in dims.items() if axis != to})


# ---------------------------------------------------------------------- of all parts


def pointwise(program: Program[Any], result: xr.DataTree) -> xr.Dataset:
    """Log-likelihood of each unit of the data under every draw, as a result stores it."""
    tables = {}
    for name, own in program.parts.items():
        table = results.pointwise(own, _tree(program, result, name))[own.model.observed]
        axis = program.axis_name(name, own.unit)
        tables[within(name, own.model.observed)] = _renamed(table, {own.unit: axis})
    return xr.Dataset(tables)


def responsibilities(program: Program[Any], result: xr.DataTree) -> dict[str, xr.Dataset]:
    """Posterior probability of each class that the likelihood sums out, by group of the result."""
    groups = {}
    for name, own in program.parts.items():
        if own.latent is not None:
            probs = results.responsibilities(own, _tree(program, result, name))
            dims = {axis: program.axis_name(name, axis) for axis in own.latent.axes}
            groups[within(name, own.latent.group)] = _renamed(probs, dims).to_dataset()
    return groups


def fit_warnings(program: Program[Any], result: xr.DataTree) -> tuple[str, ...]:
    """Sentences of the models about a fit; see `raters.Model.warnings`."""
    sentences: list[str] = []
    for name, own in program.parts.items():
        before = f"part {name!r}: " if name else ""
        tree = _whole(program, result, name)
        sentences += [before + one for one in results.fit_warnings(own, tree)]
    return tuple(sentences)
