"""Compiled functions that are kept from one process to the next."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache
from platformdirs import user_cache_path

# Bytes on disk, beyond which those that were used least recently go.
_MOST = 1 << 30


@cache
def keep_compiled() -> None:
    """Let JAX keep compiled functions in the user's cache directory, unless it has one already."""
    update: Any = jax.config.update
    if jax.config.jax_compilation_cache_dir is not None:
        return
    with suppress(OSError):
        folder = user_cache_path("raters", appauthor=False, ensure_exists=True)
        update("jax_compilation_cache_dir", str(folder))
        update("jax_compilation_cache_max_size", _MOST)
        # The small functions of a fit take a second to compile together.
        update("jax_persistent_cache_min_compile_time_secs", 0.0)
        compilation_cache.reset_cache()  # What was compiled before has switched it off.
