"""Data on devices: on one, or with the rows divided over a mesh."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

# Rows read at a time: bounds the memory of a sweep, whatever the number of votes.
CHUNK = 1 << 18
# Rows of a piece on an accelerator, of which the data are a multiple there; larger pieces, which
# take less time in all, where the rows that fill up the last of them are few beside the others.
PIECE, LARGE_PIECE = 1 << 22, 1 << 24
# Binary digits of a number of rows that are kept.
_DIGITS = 4
# Attribute of divided data that holds the first unit on the host.
_FIRST = "_first_unit"


def placed(data: Any, mesh: Mesh | None = None) -> Any:
    """Data on JAX's default device, or with its rows divided over the devices of a mesh."""
    if mesh is None:
        if jax.default_backend() != "cpu" and data.num_rows > PIECE and data.axes:
            data = _padded(data, piece_of(data.num_rows))
        return jax.tree.map(jnp.asarray, data)
    # What each compiled function divides is left to the compiler; axes of `jax.make_mesh` are
    # explicit unless it is told otherwise.
    mesh = Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))
    data = _padded(data, math.prod(mesh.shape.values()))
    columns, by_row = {}, _sharding(mesh, mesh.axis_names)
    for name, axes in data.arrays().items():
        if (column := getattr(data, name)) is not None:
            sharding = by_row if axes[0] == data.row else _sharding(mesh)
            array = np.asarray(column, jax.dtypes.canonicalize_dtype(column.dtype))
            columns[name] = jax.make_array_from_callback(array.shape, sharding, array.__getitem__)
    divided = dataclasses.replace(data, **columns)
    # What a process would have to ask another one for; it is no part of what is compiled.
    object.__setattr__(divided, _FIRST, data.take(slice(0, 1)))
    return divided


def of_few_sizes(program: Any) -> Any:
    """Data on a device, in one of few sizes: those of like size find functions compiled already."""
    if program.is_joint:
        parts = tuple(of_few_sizes(program.parts[name]) for name in program.data.part_names)
        return dataclasses.replace(program.data, parts=parts)
    data = program.data
    if program.mesh is not None or data.unit != data.row or data.row in program.axes:
        return program.placed()
    if jax.default_backend() == "cpu":
        # Neighbours among sorted rows add to the same entry, and would wait for each other. Rows
        # of count 0 stay behind, whatever their number.
        chance = np.random.default_rng(0).random(data.num_rows)
        order = np.argsort(np.where(np.asarray(data.weight) > 0, chance, 1.0), kind="stable")
        columns = {name: getattr(data, name) for name in data.row_columns()}
        known = {name: column[order] for name, column in columns.items() if column is not None}
        data = dataclasses.replace(data, **known)
    return placed(_padded(data, 1 << max(data.num_rows.bit_length() - _DIGITS, 0)))


def _padded(data: Any, parts: int) -> Any:
    """Return data with a multiple of so many rows."""
    rest = -data.num_rows % parts
    return data.padded(data.num_rows + rest) if rest else data


def piece_of(rows: int) -> int:
    """Number of rows of a piece on an accelerator, for so many rows, filled up or not."""
    return LARGE_PIECE if rows > 8 * LARGE_PIECE else PIECE


def first_unit(data: Any) -> Any:
    """The first unit of data, which is enough to read a prior on."""
    first = getattr(data, _FIRST, None)
    return data.take(slice(0, 1)) if first is None else first


def mesh_of(data: Any) -> Mesh | None:
    """The mesh over which the rows of data are divided, or None."""
    for leaf in jax.tree.leaves(data):
        if isinstance(leaf, jax.Array) and isinstance(sharding := leaf.sharding, NamedSharding):
            assert isinstance(sharding.mesh, Mesh)
            return sharding.mesh
    return None


def _sharding(mesh: Mesh, *axes: tuple[str, ...]) -> NamedSharding:
    """Return the sharding over some axes of a mesh; none of them for a copy on each device."""
    return NamedSharding(mesh, PartitionSpec(*axes))  # type: ignore[no-untyped-call]


def pieces(data: Any) -> Iterator[Any]:
    """The data in pieces of at most `CHUNK` units; rows on an accelerator, or divided over a mesh,
    stay where they are, in one piece."""
    leaves = [leaf for leaf in jax.tree.leaves(data) if isinstance(leaf, jax.Array)]
    stays = any(device.platform != "cpu" for leaf in leaves for device in leaf.devices())
    if stays or mesh_of(data) is not None:
        yield data
    else:
        yield from data.chunks(CHUNK)


def everywhere[Tree](tree: Tree, mesh: Mesh | None) -> Tree:
    """Arrays as a compiled function is to return them: whole on each device of a mesh."""
    if mesh is None:
        return tree
    return jax.lax.with_sharding_constraint(tree, _sharding(mesh))  # type: ignore[no-untyped-call]
