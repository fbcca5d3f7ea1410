"""Contract tests compile much and run little."""

from __future__ import annotations

import jax
import pytest


@pytest.fixture(autouse=True, scope="package")
def _compile_quickly():
    """A quarter less time in compiling than with the optimisations that so few draws would not repay."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
