"""Shared by the tests: small tables, a fit that does not mind being short, and a cache of compiled
functions."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import itertools
import re
import time
import warnings
from pathlib import Path

import hypothesis
import jax
import numpy as np
import pytest
from platformdirs import user_cache_path

import raters as rt
from raters import kinds
from raters.errors import ConvergenceWarning, DataWarning

# Compiling is half of what the suite does; a second run takes it from here, in another clone too.
_CACHE = user_cache_path("raters-tests", appauthor=False)
_UNUSED = 30 * 24 * 3600  # Seconds.

# Linux ends a process that has more than 65,530 memory maps (vm.max_map_count), and each compiled
# function takes some: the whole suite would have more than that.
_MAPS = Path("/proc/self/maps")
_MANY_MAPS = 20_000
_TESTS_RUN = itertools.count(1)

# Folders of slow tests, and calls that make the example of a docstring slow.
_SLOW_FOLDERS = {"cli", "registered", "real", "statistical"}
_SLOW_CALLS = re.compile(
    r"\b(fit|simulate\w*|replay_campaign|Campaign|check_model|check_backend|sbc|geweke)\("
)

# Examples that take longest, of what tests of their own ask for at every change.
_LONG_EXAMPLES = {
    "raters.acquisition.suggestions.suggest",
    "raters.acquisition.suggestions.synthesize",
    "raters.auditing.audit.audit",
    "raters.auditing.audit.drop",
    "raters.models.comparisons.tastes.FactorBTL",
    "raters.models.responses.logistic.IdealPoint",
}


def pytest_configure(config: pytest.Config) -> None:
    """Keep compiled functions between runs, in the user's cache directory or in
    ``JAX_COMPILATION_CACHE_DIR``; an example that compiles has no deadline."""
    hypothesis.settings.register_profile("raters", deadline=None)
    hypothesis.settings.load_profile("raters")
    if jax.config.jax_compilation_cache_dir is None:
        jax.config.update("jax_compilation_cache_dir", str(_CACHE))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Delete compiled functions that no run has asked for in 30 days."""
    if hasattr(config, "workerinput") or not _CACHE.exists():
        return
    oldest = time.time() - _UNUSED
    for file in _CACHE.iterdir():
        with contextlib.suppress(FileNotFoundError):  # Another run deleted it.
            if file.stat().st_atime < oldest:
                file.unlink()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what lies in some folders, docstrings that compile much, and what is
    exhaustive."""
    for item in items:
        folders = item.path.relative_to(item.config.rootpath).parts[:-1]
        examples = item.dtest.examples if isinstance(item, pytest.DoctestItem) else ()
        compiles = any(_SLOW_CALLS.search(example.source) for example in examples)
        if item.name in _LONG_EXAMPLES:
            item.add_marker(pytest.mark.exhaustive)
        long = item.get_closest_marker("exhaustive")
        if long or compiles or _SLOW_FOLDERS & set(folders):
            item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of the rounds of the garbage collector, and make
    these few: they took some 4 % of the suite's processor time."""
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Compile in haste: only statistical checks run for longer than they compile."""
    jax.config.update("jax_disable_most_optimizations", "statistical" not in item.path.parts)


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Let go of the compiled functions when they are many; asked at the end of a file and after
    every tenth test, as the kernel takes long to list them."""
    ends = nextitem is None or nextitem.path != item.path
    tenth = next(_TESTS_RUN) % 10 == 0
    if (ends or tenth) and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > _MANY_MAPS:
        jax.clear_caches()


@pytest.fixture(scope="session")
def tiny() -> rt.Comparisons:
    """150 votes of 4 annotators on 6 items, with the order of presentation."""
    return rt.datasets.position_biased(num_items=6, num_annotators=4, num_votes=150, seed=0).votes


@pytest.fixture(scope="session")
def tied(tiny: rt.Comparisons) -> rt.Comparisons:
    """The same votes, each fourth a tie that is kept."""
    table = tiny.to_frame()
    table["outcome"] = np.where(np.arange(len(table)) % 4 == 0, "tie", table["outcome"])
    columns = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    return rt.Comparisons.from_frame(table, **columns, ties="keep")


@pytest.fixture(scope="session")
def stratified(tiny: rt.Comparisons) -> rt.Comparisons:
    """The same votes in two strata."""
    code = (np.arange(tiny.num_rows) % 2).astype(np.int32)
    return dataclasses.replace(tiny, stratum=code, strata=("code", "talk"))


@pytest.fixture(scope="session")
def ranked() -> rt.Rankings:
    """12 rankings of three to five of 5 items by 3 annotators, most of them in part."""
    rng = np.random.default_rng(0)
    table: dict[str, list] = {"ranking": [], "item": [], "rank": [], "who": []}
    for number in range(12):
        offered = rng.choice(5, size=rng.integers(3, 6), replace=False)
        for rank, item in enumerate(offered):
            asked = rank <= number % 4
            row = (number, f"item {item}", rank + 1 if asked else None, f"who {number % 3}")
            for column, value in zip(table.values(), row, strict=True):
                column.append(value)
    roles = {"ranking": "ranking", "item": "item", "rank": "rank", "annotator": "who"}
    return rt.Rankings.from_frame(table, **roles, unranked="not offered", aggregate=False)


@pytest.fixture(scope="session")
def best_worst(ranked: rt.Rankings) -> rt.Rankings:
    """Of the same sets the best and the worst, and of every fourth the best two; the worst of each
    third is not asked for."""
    number = np.arange(ranked.num_rows)
    depth = np.where(number % 4 == 3, 2, 1).astype(np.int32)
    lowest = (number % 3 > 0).astype(np.int32)
    asked = dataclasses.replace(ranked, place=None, depth=depth, lowest=lowest)
    return rt.simulate(rt.ExtendedPlackettLuce(), asked, seed=0).data


@pytest.fixture(scope="session")
def tied_ranks(ranked: rt.Rankings) -> rt.Rankings:
    """Of the same sets as many places, of which up to three items share one."""
    asked = dataclasses.replace(ranked, place=None, most_tied=3)
    return rt.simulate(rt.PlackettLuce(ties="davidson"), asked, seed=0).data


@pytest.fixture(scope="session")
def ranked_fit(ranked: rt.Rankings, fit_quietly):
    """A model of them with competences, and its result."""
    model = rt.ExtendedPlackettLuce()
    return model, fit_quietly(model, ranked, rt.PGEM(draws=50))


@pytest.fixture(scope="session")
def described(tiny: rt.Comparisons) -> rt.Comparisons:
    """The same, with two features of the items."""
    return tiny.with_features(
        np.random.default_rng(0).normal(size=(6, 2)), names=["warmth", "price"]
    )


@pytest.fixture(scope="session")
def few() -> rt.Comparisons:
    """12 questions to 3 annotators about 4 items: what joint-distribution tests have most power
    on."""
    return rt.datasets.position_biased(num_items=4, num_annotators=3, num_votes=12, seed=0).votes


@pytest.fixture(scope="session")
def singles(few: rt.Comparisons) -> rt.Comparisons:
    """The same with one vote in each row, which the models describe by a Bernoulli."""
    rows = np.repeat(np.arange(few.num_comparisons), np.asarray(few.count, int))
    return dataclasses.replace(few.take(rows), wins=np.zeros(len(rows), np.float32), count=None)


@pytest.fixture(scope="session")
def labelled() -> rt.Labels:
    """12 items with 2 to 4 labels by 4 annotators in 3 classes; features, counts, and 3 items whose
    class is known."""
    crowd = rt.datasets.label_crowd(12, 4, 4, 3, num_features=2, seed=0).labels
    rng = np.random.default_rng(0)
    kept = rng.random((12, 4)).argsort(1).ravel() < np.repeat(rng.integers(2, 5, 12), 4)
    table = crowd.to_frame()[kept].assign(count=rng.integers(1, 3, kept.sum()))
    names = {"items": crowd.items, "annotators": crowd.annotators, "classes": crowd.classes}
    labels = rt.Labels.from_frame(
        table, item="item", annotator="annotator", label="label", count="count", **names
    )
    return labels.with_truth({1: 0, 5: 1, 8: 2}).with_features(np.asarray(crowd.features)[:, 1:])


@pytest.fixture(scope="session")
def fit_quietly():
    """`raters.fit` without progress, and without warnings about chains that a test keeps short on
    purpose."""

    def run(model, data, backend, seed=0, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", DataWarning)
            return rt.fit(model, data, backend, seed=seed, progress=False, **options)

    return run


@pytest.fixture(autouse=True)
def _own_kinds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the kinds that other tests register when they are imported."""
    if "kinds" not in request.path.parts:
        own = {
            kind.name: kind
            for kind in kinds.registered_kinds()
            if not kind.data.__module__.startswith("tests.kinds")
        }
        monkeypatch.setattr(kinds, "_KINDS", own)
