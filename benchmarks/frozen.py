"""Draws of every model by every back-end, and facts of audits, as they were when they were stored.

``python benchmarks/frozen.py`` compares with ``results/frozen.json``, which holds for one machine
and one version of JAX; ``--write`` replaces that file. ``make frozen`` runs it, and the golden
numbers. Audits of real tables are left out where there is no folder ``RATERS_DATA``.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

import raters as rt

RESULTS = Path(__file__).parent / "results" / "frozen.json"
DATA = Path(os.environ.get("RATERS_DATA", Path(__file__).parents[2] / "shared" / "data"))
BACKENDS = (
    rt.PGGibbs(draws=20, warmup=10, chains=2),
    rt.PGEM(draws=20),
    rt.NUTS(draws=10, warmup=10, chains=1),
    rt.SVI(steps=500, draws=20),
    rt.HMC(draws=10, warmup=20, chains=1),
)
GIBBS = rt.PGGibbs(draws=100, warmup=50, chains=2)
EM = rt.PGEM(draws=200)
NUTS = rt.NUTS(draws=50, warmup=50, chains=1)


# ---------------------------------------------------------------- draws


def models() -> Iterator[tuple[str, Any, Any]]:
    """Name of a configuration, the model, and small data for it."""
    votes = rt.datasets.position_biased(num_items=6, num_annotators=4, num_votes=150, seed=0).votes
    table = votes.to_frame()
    table["outcome"] = np.where(np.arange(len(table)) % 4 == 0, "tie", table["outcome"])
    roles = {name: name for name in ("first", "second", "outcome", "annotator", "count")}
    tied = rt.Comparisons.from_frame(table, **roles, ties="keep")
    features = np.random.default_rng(0).normal(size=(6, 2))
    described = votes.with_features(features, names=["warmth", "price"])
    yield "BTL", rt.BTL(), votes
    yield "BTL position", rt.BTL(position_bias=True), votes
    yield "BTL davidson", rt.BTL(ties="davidson"), tied
    yield "BTL rao-kupper", rt.BTL(ties="rao-kupper"), tied
    yield "ExtendedBTL", rt.ExtendedBTL(), votes
    yield "ExtendedBTL signed", rt.ExtendedBTL(competence="signed", position_bias=True), votes
    yield "ExtendedBTL positive", rt.ExtendedBTL(competence="positive"), votes
    yield "LinearExtendedBTL", rt.models.LinearExtendedBTL(), described
    yield "GuesserBTL", rt.models.GuesserBTL(), votes
    yield "FactorBTL", rt.models.FactorBTL(), votes
    yield "HierarchicalBTL", rt.HierarchicalBTL(), votes
    yield "HierarchicalBTL signed", rt.HierarchicalBTL(competence="signed"), votes
    yield "MixtureBTL", rt.MixtureBTL(), described
    yield "ContextualBTL", rt.models.ContextualBTL(num_types=2), described
    labels = rt.datasets.label_crowd(12, 4, 4, 3, num_features=2, seed=0).labels
    labels = labels.with_truth({1: 0, 5: 1, 8: 2})
    for name in (
        "MajorityVote",
        "Pooled",
        "OneCoin",
        "DawidSkene",
        "HierarchicalDawidSkene",
        "GuesserOneCoin",
        "GuesserDawidSkene",
        "ItemDifficulty",
        "Raykar",
        "Yan",
    ):
        yield name, getattr(rt.models, name)(), labels
    family = np.array([0, 0, 1, 1], np.int32)
    related = dataclasses.replace(labels, family=family, families=("A", "B"))
    yield "SharedMistakes", rt.SharedMistakes(), related
    rankings = _rankings()
    yield "PlackettLuce", rt.PlackettLuce(), rankings
    yield "ExtendedPlackettLuce", rt.ExtendedPlackettLuce(), rankings
    yield "MixturePlackettLuce", rt.models.MixturePlackettLuce(), rankings
    rng = np.random.default_rng(0)
    cells = rng.choice(48, 32, replace=False)
    right = {"person": cells // 4, "item": cells % 4, "correct": rng.integers(0, 2, 32)}
    responses = rt.Responses.from_frame(right, person="person", item="item", correct="correct")
    yield "Rasch", rt.Rasch(), responses
    yield "TwoPL", rt.TwoPL(), responses
    yield "IdealPoint", rt.models.IdealPoint(), responses
    graded = {"person": cells // 4, "item": cells % 4, "response": (cells // 16 + cells) % 3}
    columns = {name: name for name in graded}
    yield (
        "GradedResponse",
        rt.models.GradedResponse(),
        rt.GradedResponses.from_frame(graded, **columns),
    )
    rated = {"item": cells // 4, "annotator": cells % 4, "rating": (cells // 16 + cells) % 3}
    columns = {name: name for name in rated}
    yield "ManyFacet", rt.ManyFacet(), rt.Ratings.from_frame(rated, **columns)
    choices = _choices()
    yield "MultinomialLogit", rt.MultinomialLogit(), choices
    yield "LatentClassLogit", rt.models.LatentClassLogit(), choices
    yield "MixedLogit", rt.MixedLogit(), choices
    yield "NestedLogit", rt.models.NestedLogit(nests=(("1", "3"),)), choices
    yield "MultinomialProbit", rt.models.MultinomialProbit(), choices
    walks = rt.datasets.demonstration_crowd(2, 2, 3, 3, 4, seed=0, num_features=2).demonstrations
    yield "MaxEntIRL", rt.MaxEntIRL(), walks
    yield "BehaviouralCloning", rt.models.BehaviouralCloning(), walks


def _rankings() -> rt.Rankings:
    """12 rankings of three to five of 5 items."""
    rng = np.random.default_rng(0)
    rows = [
        (number, f"item {item}", rank + 1, f"who {number % 3}")
        for number in range(12)
        for rank, item in enumerate(rng.choice(5, size=rng.integers(3, 6), replace=False))
    ]
    table = pd.DataFrame(rows, columns=["ranking", "item", "rank", "annotator"])
    columns = {name: name for name in table}
    return rt.Rankings.from_frame(table, **columns, unranked="not offered")


def _choices() -> rt.Choices:
    """40 choices of 4 choosers from sets of two to four alternatives."""
    rng = np.random.default_rng(0)
    rows = [
        (trip, str(mode), 100 * rng.normal(), rng.normal(), trip % 4, place == 0)
        for trip in range(40)
        for place, mode in enumerate(rng.permutation(4)[: rng.integers(2, 5)])
    ]
    table = pd.DataFrame(rows, columns=["set", "mode", "price", "time", "who", "taken"])
    roles = {"set": "set", "alternative": "mode", "chosen": "taken", "annotator": "who"}
    return rt.Choices.from_frame(table, **roles, features=["price", "time"])


# ---------------------------------------------------------------- facts


def audits() -> Iterator[tuple[str, Callable[[], tuple[Any, Any, Any, Any]]]]:
    """Name of an audit, and its model, data, back-end and known truths."""
    yield "bluebird", lambda: (rt.DawidSkene(), _labels("bluebird"), GIBBS, None)
    yield "bluebird, gold", lambda: (rt.DawidSkene(), _labels("bluebird"), GIBBS, _gold("bluebird"))
    yield "rte", lambda: (rt.HierarchicalDawidSkene(), _labels("rte"), EM, None)
    yield "snow_temp", lambda: (rt.models.OneCoin(), _labels("snow_temp"), EM, None)
    yield "duchenne", lambda: (rt.models.ItemDifficulty(), _labels("duchenne_smile"), EM, None)
    yield (
        "medrel, gold",
        lambda: (rt.DawidSkene(), _labels("medrel_treat"), EM, _gold("medrel_treat")),
    )
    yield (
        "weather",
        lambda: (rt.HierarchicalDawidSkene(), _labels("weather_sentiment_cf"), EM, None),
    )
    yield (
        "zencrowd",
        lambda: (rt.models.OneCoin(), _labels("zencrowd_us"), EM, _gold("zencrowd_us")),
    )
    yield "reading_level", lambda: (rt.ExtendedBTL(), _votes("reading_level"), GIBBS, None)
    yield "parties", lambda: (rt.HierarchicalBTL(), _votes("german_parties2009", 1500), EM, None)
    yield "countries", lambda: (rt.models.GuesserBTL(), _votes("country_population"), EM, None)
    yield "mtbench", lambda: (rt.ExtendedBTL(ties="davidson"), _mtbench(), EM, None)
    yield "nascar", lambda: (rt.ExtendedPlackettLuce(), _orders("nascar2002", 18), EM, None)
    yield "sushi", lambda: (rt.ExtendedPlackettLuce(), _orders("sushi10", 200), EM, None)
    yield "lsat", lambda: (rt.Rasch(), _responses("lsat6/responses.csv"), EM, None)
    yield "verbagg", lambda: (rt.TwoPL(), _responses("verbagg/responses_binary.csv"), EM, None)
    yield "verbagg graded", lambda: (rt.models.GradedResponse(), _graded(), EM, None)
    yield "anesthesia", lambda: (rt.ManyFacet(), _ratings(), NUTS, None)
    yield "dog", lambda: (rt.models.OneCoin(), _labels("dog_spectral"), EM, None)
    yield "walks", lambda: (rt.MaxEntIRL(), _walks(), NUTS, None)


@cache
def _labels(name: str) -> rt.Labels:
    table = pd.read_csv(DATA / name / "labels.csv")
    return rt.Labels.from_frame(table, item="item", annotator="annotator", label="label")


def _gold(name: str) -> dict[Any, Any]:
    """50 known truths."""
    known = set(_labels(name).items)
    truth = pd.read_csv(DATA / name / "truth.csv")
    truth = truth[truth["item"].isin(known)].sample(50, random_state=0)
    return dict(zip(truth["item"], truth["label"], strict=True))


def _votes(name: str, most: int | None = None) -> rt.Comparisons:
    table = pd.read_csv(DATA / name / "comparisons.csv", nrows=most)
    roles = {"winner": "winner", "loser": "loser"}
    if "winner" not in table:
        table["outcome"] = table["outcome"].map({"a": "first", "b": "second"})
        table = table.dropna()
        roles = {"first": "item_a", "second": "item_b", "outcome": "outcome"}
    else:
        table = table[table["winner"] != table["loser"]]
    return rt.Comparisons.from_frame(table, **roles, annotator="annotator")


def _mtbench() -> rt.Comparisons:
    table = pd.read_csv(DATA / "mtbench_human" / "comparisons_human.csv", nrows=1200)
    names = {"model_a": "first", "model_b": "second"}
    table["outcome"] = table["winner"].map(names).fillna("tie")
    roles = {"first": "model_a", "second": "model_b", "outcome": "outcome"}
    return rt.Comparisons.from_frame(table, **roles, annotator="annotator", ties="keep")


def _orders(name: str, most: int | None = None) -> rt.Rankings:
    table = pd.read_csv(DATA / name / "rankings.csv", nrows=most)
    table = table.melt(table.columns[0], var_name="rank", value_name="item")
    table.columns = ["ranking", "rank", "item"]
    table["rank"] = table["rank"].str[3:].astype(int)
    table["annotator"] = table["ranking"] % 20
    columns = {name: name for name in table}
    return rt.Rankings.from_frame(table, **columns, unranked="not offered")


def _responses(name: str) -> rt.Responses:
    table = pd.read_csv(DATA / name)
    items = [name for name in table if set(table[name]) <= {0, 1}]
    table = table.head(150).melt("person", items, var_name="item", value_name="correct")
    return rt.Responses.from_frame(table, person="person", item="item", correct="correct")


def _graded() -> rt.GradedResponses:
    table = pd.read_csv(DATA / "verbagg" / "responses_3cat.csv").head(100)
    items = [name for name in table if set(table[name]) <= {0, 1, 2}]
    table = table.melt("person", items, var_name="item", value_name="response")
    return rt.GradedResponses.from_frame(table, person="person", item="item", response="response")


def _ratings() -> rt.Ratings:
    table = pd.read_csv(DATA / "anesthesia" / "labels.csv")
    return rt.Ratings.from_frame(table, item="item", annotator="annotator", rating="label")


def _walks() -> rt.Demonstrations:
    crowd = rt.datasets.demonstration_crowd(4, 4, 6, 5, 10, seed=0, num_features=2)
    return crowd.demonstrations


def audited(case: Callable[[], tuple[Any, Any, Any, Any]]) -> dict[str, Any]:
    """Table, verdicts and expected mistakes of an audit, with a hash of each column."""
    model, data, backend, gold = case()
    result = rt.fit(model, data, backend, seed=1, progress=False)
    audit = rt.audit(model, result, *(() if gold is None else (gold,)))
    columns = audit.table.data_vars
    stated: dict[str, Any] = {str(name): _stated(columns[name].values) for name in columns}
    for name in ("expected_wrong", "wrong_interval", "wrong_drops"):
        if (value := getattr(audit, name, None)) is not None:
            stated[f"audit.{name}"] = _stated(np.asarray(value))
    return stated


def _stated(values: np.ndarray) -> str:
    """Hash of numbers to nine digits, with their mean; of text, the counts."""
    if values.dtype.kind in "fiub":
        text = ",".join(f"{value:.9g}" for value in values.ravel().astype(float))
        return f"{np.nanmean(values.astype(float)):.6g} {hashed(text.encode())}"
    names, counts = np.unique(values.astype(str), return_counts=True)
    kinds = " ".join(f"{name}:{count}" for name, count in zip(names, counts, strict=True))
    return f"{kinds[:80]} {hashed('|'.join(values.astype(str).ravel()).encode())}"


# ---------------------------------------------------------------- both


def hashed(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def draws(model: Any, backend: Any, data: Any) -> str:
    """Hash of all draws in the order of the sites' names, or why the back-end refuses."""
    if backend.why_not(rt.program.Program(model, data)):
        return "refused"
    posterior = rt.fit(model, data, backend, seed=1, progress=False).posterior
    parts = [
        str(name).encode() + np.ascontiguousarray(posterior[name].values).tobytes()
        for name in sorted(posterior.data_vars)
    ]
    return hashed(b"".join(parts))


def attempt(compute: Callable[[], Any]) -> Any:
    """Result of a computation, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compute()
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:150]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="replace what is stored")
    parser.add_argument("--only", default="", help="part of a name, such as BTL or PGGibbs")
    arguments = parser.parse_args()
    jax.config.update("jax_disable_most_optimizations", True)  # Short runs, long compilation.
    now: dict[str, Any] = {}
    for name, model, data in models():
        for backend in BACKENDS:
            label = f"{name} by {type(backend).__name__}"
            if arguments.only in label:
                now[label] = attempt(partial(draws, model, backend, data))
                print(label, now[label], flush=True)
        jax.clear_caches()
    for name, case in audits() if DATA.is_dir() else ():
        label = f"audit of {name}"
        if arguments.only in label:
            now[label] = attempt(partial(audited, case))
            print(label, "" if isinstance(now[label], dict) else now[label], flush=True)
        jax.clear_caches()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if arguments.write:
        stored |= now
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
    changed = [name for name, value in now.items() if stored.get(name) != value]
    print(f"{len(now) - len(changed)} of {len(now)} are as stored")
    if changed:
        sys.exit("other: " + "; ".join(changed))


if __name__ == "__main__":
    main()
