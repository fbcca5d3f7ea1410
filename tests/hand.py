"""Results with draws written by hand, so that what is computed from them can be checked with pencil
and paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpyro
import pandas as pd
import xarray as xr

import raters as rt
from raters.distributions.rows import votes_of
from raters.judgements.stored import qualified_name

AXES = {
    "reward": ("item",),
    "competence": ("annotator",),
    "position_bias": ("annotator",),
    "taste": ("annotator", "item"),
}


def result(votes: rt.Comparisons, *, enough: bool = False, **draws) -> xr.DataTree:
    """A result in one chain: `draws` maps each site to an array of shape (draw, ...).

    With `enough` they are repeated, in random order, until they are enough for a verdict.
    """
    if enough:
        number = len(next(iter(draws.values())))
        order = np.random.default_rng(0).permutation(np.tile(np.arange(number), -(-200 // number)))
        draws = {name: np.asarray(values, float)[order] for name, values in draws.items()}
    names = {"item": np.array(votes.items, object), "annotator": np.array(votes.annotators, object)}
    posterior = {
        name: (("chain", "draw", *AXES.get(name, ())), np.asarray(values, float)[None])
        for name, values in draws.items()
    }
    used = {axis for dims, _ in posterior.values() for axis in dims if axis in names}
    coords = {axis: names[axis] for axis in used} | {
        "chain": [0],
        "draw": np.arange(next(iter(posterior.values()))[1].shape[1]),
    }
    groups = {"posterior": xr.Dataset(posterior, coords=coords)}
    for group, columns in votes.groups().items():
        groups[group] = xr.Dataset(columns)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(votes.flags() | {"data": qualified_name(type(votes))})
    return tree


def votes(*rows: tuple, **options) -> rt.Comparisons:
    """Votes from rows of (winner, loser, annotator)."""
    return rt.Comparisons.from_frame(**_table("winner loser annotator", rows), **options)


def ordered_votes(*rows: tuple, **options) -> rt.Comparisons:
    """Votes from rows of (first, second, outcome, annotator), in the order of presentation."""
    return rt.Comparisons.from_frame(**_table("first second outcome annotator", rows), **options)


def labels(*rows: tuple, **options) -> rt.Labels:
    """Labels from rows of (item, annotator, label)."""
    return rt.Labels.from_frame(**_table("item annotator label", rows), **options)


def label_table(codes: np.ndarray, **options) -> rt.Labels:
    """Labels from a table of them, shape (item, annotator)."""
    return labels(*((*place, code) for place, code in np.ndenumerate(codes)), **options)


def _table(roles: str, rows: tuple[tuple, ...]) -> dict:
    """A table of these rows, and the columns in which the roles are."""
    table = dict(zip(roles.split(), zip(*rows, strict=True), strict=True))
    return {"frame": table} | {name: name for name in table}


def visible(folder: Path) -> set[str]:
    """Names of the files of a folder, without the list of those that raters wrote."""
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def stored(path: Path) -> xr.DataTree:
    """A result read whole from its file, which is closed: netCDF4 ends the process now and then
    when a file is opened while an earlier look at it is thrown away."""
    with xr.open_datatree(path) as tree:
        return tree.load()


def write_demonstrations(data: rt.Demonstrations, folder: Path) -> None:
    """Tables of the steps, of the transitions, and of the features of the states."""
    columns = {"trajectory": "t", "step": "s", "state": "st", "action": "a", "annotator": "who"}
    steps = data.to_frame().drop(columns="count").rename(columns=columns)
    steps.to_csv(folder / "demos.csv", index=False)
    mdp, (state, action, after) = data.mdp, np.nonzero(data.mdp.transition)
    moves = {"state": np.array(mdp.states)[state], "action": np.array(mdp.actions)[action]}
    moves |= {"next_state": np.array(mdp.states)[after]}
    moves |= {"probability": mdp.transition[state, action, after]}
    pd.DataFrame(moves).to_csv(folder / "transitions.csv", index=False)
    cells = pd.DataFrame(mdp.features[:, 0], columns=["warm", "high"]).assign(state=mdp.states)
    cells.to_csv(folder / "features.csv", index=False)


def vote(logits, data) -> None:
    """The observed site of a program of votes."""
    numpyro.sample("outcome", votes_of(logits, data.count), obs=data.wins)
