"""Compiled functions are kept in the user's cache directory, or where the user has them."""

from __future__ import annotations

import os

import jax
import pytest

from raters.program import compiled


@pytest.mark.parametrize("given", [None, "elsewhere"])
def test_a_folder_of_the_user_is_left_alone(given, tmp_path, monkeypatch) -> None:
    changed = {}
    monkeypatch.setattr(compiled, "user_cache_path", lambda *_, **__: tmp_path / "raters")
    monkeypatch.setattr(compiled.compilation_cache, "reset_cache", lambda: None)
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", given)
    monkeypatch.setattr(jax.config, "update", changed.__setitem__)
    try:
        compiled.keep_compiled.__wrapped__()
    finally:
        monkeypatch.undo()
        jax.config.update("jax_compilation_cache_dir", before)
    expected = {} if given else {"jax_compilation_cache_dir": str(tmp_path / "raters")}
    assert {name: value for name, value in changed.items() if name.endswith("dir")} == expected


@pytest.mark.parametrize(("most", "left"), [(30, {"2", "3"}), (100, {"0", "1", "2", "3"})])
def test_the_oldest_functions_go_where_there_are_many(most, left, tmp_path, monkeypatch) -> None:
    for place in range(4):
        (tmp_path / str(place)).write_bytes(bytes(10))
        os.utime(tmp_path / str(place), (place, place))
    monkeypatch.setattr(compiled, "_MOST", most)
    compiled._prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == left
