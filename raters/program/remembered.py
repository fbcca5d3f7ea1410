"""Facts of programs that are found once for the same model and data.

Compiled functions depend on a model and on the structure of its data, and facts that are found by
running the program at some values, on some rows, on these too. So facts are kept by all of them,
and data with other contents, such as features that were all 0 before, are looked at anew.
"""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import jax
import numpy as np

from raters.model import Model, Values

_MOST = 32
_CACHES: list[Cache[Any]] = []


class Cache[Fact]:
    """The facts that were asked for last, by key."""

    def __init__(self) -> None:
        self._facts: OrderedDict[Hashable, Fact] = OrderedDict()
        self._lock = Lock()
        _CACHES.append(self)

    def clear(self) -> None:
        """Forget all facts."""
        with self._lock:
            self._facts.clear()

    def of(self, key: Hashable | None, find: Callable[[], Fact]) -> Fact:
        """The fact of a key; without a key, and the first time, it is found."""
        if key is None:
            return find()
        with self._lock:
            if key in self._facts:
                self._facts.move_to_end(key)
                return self._facts[key]
        fact = find()
        with self._lock:
            self._facts[key] = fact
            while len(self._facts) > _MOST:
                self._facts.popitem(last=False)
        return fact


def key_of(model: Model[Any], *parts: Any) -> Hashable | None:
    """Key that equal models share if some arrays are equal."""
    digest, structures = hashlib.blake2b(digest_size=16), []
    for part in parts:
        leaves, structure = jax.tree.flatten(part)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return None
        # Not as arrays of NumPy, which would fetch those on an accelerator.
        shapes = tuple((np.shape(leaf), str(getattr(leaf, "dtype", type(leaf)))) for leaf in leaves)
        structures.append((structure, shapes))
        for leaf in leaves:
            digest.update(np.ascontiguousarray(leaf))
    # Of two dataclasses with equal fields each has its own class, which is part of being equal.
    key = (model, tuple(structures), digest.digest(), jax.config.jax_enable_x64)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def forget() -> None:
    """Forget all facts, as `jax.clear_caches` does compiled functions."""
    for cache in _CACHES:
        cache.clear()


def remembered[Fact](find: Callable[[Any, Values], Fact]) -> Callable[[Any, Values], Fact]:
    """Let a function of a program, and of values at which it is tried out, look at the same model
    and data once."""
    cache: Cache[Fact] = Cache()

    @functools.wraps(find)
    def found(program: Any, values: Values) -> Fact:
        model, data = program.model, program.data
        return cache.of(key_of(model, data, values), lambda: find(program, values))

    return found
