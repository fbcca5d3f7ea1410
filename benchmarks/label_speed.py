"""Speed and memory of the label models: PGEM against crowd-kit's aggregators, PGGibbs against
NumPyro's NUTS.

Every tool sees the same labels, in the form that it takes natively. EM: each tool runs first in a
process of its own, for its peak memory; then all are timed in this process, compilation aside.
crowd-kit stops by its own rule. Sampling: the smallest bulk effective sample size over all
parameters, divided by CPU-seconds of all threads after compilation, warm-up counted apart.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import arviz as az
import numpy as np
import xarray as xr
from _common import child, options, peak_megabytes, report, table, timed

SIZES = {
    "large": (200_000, 200, 1_000_000, 4),
    "middle": (20_000, 200, 100_000, 4),
    "small": (400, 20, 2_000, 4),
}
Table = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # item, annotator, label, true class


def simulate(size: str, seed: int) -> Table:
    """Uniform items and annotators; accuracies uniform on [0.4, 0.9], mistakes on any class."""
    items, annotators, labels, classes = SIZES[size]
    rng = np.random.default_rng(seed)
    true_class = rng.integers(classes, size=items)
    item, annotator = rng.integers(items, size=labels), rng.integers(annotators, size=labels)
    right = rng.random(labels) < rng.uniform(0.4, 0.9, annotators)[annotator]
    wrong = (true_class[item] + rng.integers(1, classes, size=labels)) % classes
    return item, annotator, np.where(right, true_class[item], wrong), true_class


def as_labels(data: Table, size: str) -> Any:
    """Input of raters."""
    import raters as rt

    names = {
        name: range(number)
        for name, number in zip(("items", "annotators"), SIZES[size][:2], strict=True)
    }
    columns = {"item": data[0], "annotator": data[1], "label": data[2]}
    return rt.Labels.from_frame(
        columns,
        item="item",
        annotator="annotator",
        label="label",
        **names,
        classes=range(SIZES[size][3]),
    )


def as_frame(data: Table, size: str) -> Any:
    """Input of crowd-kit."""
    import pandas as pd

    return pd.DataFrame({"task": data[0], "worker": data[1], "label": data[2]})


def raters_mode(name: str) -> Callable[[Any], np.ndarray]:
    """The most probable class of each item at PGEM's mode, and the number of sweeps."""

    def solve(labels: Any) -> tuple[np.ndarray, float]:
        import jax

        import raters as rt
        from raters.inference.polya_gamma.latent_classes import expected

        model = getattr(rt, name)()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = rt.PGEM(draws=0).run(rt.program.Program(model, labels), jax.random.key(0))
        return np.asarray(expected(model, labels, found.mode)[0]).argmax(1), found.facts["sweeps"]

    return solve


def crowdkit(name: str, **settings: Any) -> Callable[[Any], np.ndarray]:
    """Labels by one of crowd-kit's aggregators, of the items that have any, and its iterations
    where it counts them."""

    def solve(frame: Any) -> tuple[Any, float]:
        import crowdkit.aggregation

        model = getattr(crowdkit.aggregation, name)(**settings)
        found = model.fit_predict(frame)
        return found.sort_index(), len(getattr(model, "loss_history_", ())) or np.nan

    return solve


EM: dict[str, tuple[str, Callable[[Table, str], Any], Callable[[Any], Any]]] = {
    "raters DawidSkene": ("large", as_labels, raters_mode("DawidSkene")),
    "crowd-kit DawidSkene": ("large", as_frame, crowdkit("DawidSkene")),
    "raters OneCoin": ("middle", as_labels, raters_mode("OneCoin")),
    "crowd-kit OneCoinDawidSkene": ("middle", as_frame, crowdkit("OneCoinDawidSkene")),
    "raters ItemDifficulty": ("middle", as_labels, raters_mode("ItemDifficulty")),
    "crowd-kit GLAD": ("middle", as_frame, crowdkit("GLAD")),
}


def measure_child(name: str, size: str, seed: int) -> None:
    """In a process of its own: peak memory before the tool runs, and with it."""
    _, convert, solve = EM[name]
    data = simulate(size, seed)
    if convert is as_labels:
        import raters  # noqa: F401
    else:
        import crowdkit.aggregation  # noqa: F401
    before = peak_megabytes()
    solve(convert(data, size))
    print(json.dumps({"before": before, "peak": peak_megabytes()}))


def accuracy(found: Any, data: Table) -> float:
    """Share of the items with labels whose class is right."""
    labelled, true_class = np.unique(data[0]), data[3]
    found = found.to_numpy() if hasattr(found, "index") else found[labelled]
    return float((found == true_class[labelled]).mean())


def em_rows(small: bool, seed: int) -> list[list[Any]]:
    """Each tool's seconds, memory and accuracy."""
    rows, reference, memories = [], 1.0, {}
    for name, (size, *_) in EM.items():  # before this process starts threads
        if size != "large":
            memories[name] = "–"
            continue
        arguments = ["--child", name, "--size", "small" if small else size, "--seed", str(seed)]
        memories[name] = child(arguments, limit_seconds=400, limit_gigabytes=20)
    for name, (size, convert, solve) in EM.items():
        size, memory = "small" if small else size, memories[name]
        data = simulate(size, seed)
        native = convert(data, size)
        done = timed(
            lambda native=native, solve=solve: solve(native), warm=convert is as_labels, enough=3.0
        )
        reference = done.seconds if convert is as_labels else reference
        peak = (
            (memory["peak"] - memory["before"], memory["peak"])
            if isinstance(memory, dict)
            else (memory, memory)
        )
        found, sweeps = done.value
        each = 1000 * done.seconds / sweeps
        rows.append(
            [
                f"{SIZES[size][2]:,}",
                name,
                done.seconds,
                done.seconds / reference,
                sweeps,
                each,
                *peak,
                accuracy(found, data),
            ]
        )
        print(rows[-1], flush=True)
    return rows


def sampling_rows(small: bool, seed: int) -> list[list[Any]]:
    """Effective draws per CPU-second of PGGibbs and of NUTS, on Dawid–Skene."""
    import raters as rt

    size = "small" if small else "middle"
    labels = as_labels(simulate(size, seed), size)
    runs = {
        "raters PGGibbs": lambda draws: rt.PGGibbs(draws=draws, warmup=100, chains=2),
        "NumPyro NUTS": lambda draws: rt.NUTS(draws=draws, warmup=200, chains=2),
    }
    rows = []
    for name, backend in runs.items():
        draws = 1000 if "Gibbs" in name else 100
        seconds = []
        for number in (4, draws):  # the first, short, run compiles and says what warm-up costs
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                _draws(rt, labels, backend(number), seed)  # the number of draws is compiled in
                begin = time.process_time()
                values = _draws(rt, labels, backend(number), seed)
                seconds.append(time.process_time() - begin)
        ess = float(min(float(az.ess(values)[site].min()) for site in values.data_vars))
        rhat = float(max(float(az.rhat(values)[site].max()) for site in values.data_vars))
        sampling = max(seconds[1] - seconds[0], 1e-9)
        rows.append(
            [
                f"{SIZES[size][2]:,}",
                name,
                2 * draws,
                ess,
                rhat,
                sampling,
                ess / sampling,
                ess / seconds[1],
            ]
        )
        print(rows[-1], flush=True)
    return rows


def _draws(rt: Any, labels: Any, backend: Any, seed: int) -> xr.Dataset:
    import jax

    values = backend.run(rt.program.Program(rt.DawidSkene(), labels), jax.random.key(seed)).values
    return xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{axis}" for axis in range(value.ndim - 2))), value)
            for name, value in values.items()
        }
    )


def main() -> None:
    """Measure and report."""
    settings = options(__doc__ or "", child=("", "internal"), size=("", "internal"))
    if settings.child:
        measure_child(settings.child, settings.size, settings.seed)
        return
    em = em_rows(settings.quick, settings.seed)
    sampling = sampling_rows(settings.quick, settings.seed)
    header = [
        "labels",
        "tool",
        "seconds",
        "× raters",
        "sweeps",
        "ms each",
        "MB above imports",
        "peak MB",
        "accuracy",
    ]
    header_of_sampling = [
        "labels",
        "sampler",
        "draws",
        "smallest ESS",
        "largest R-hat",
        "CPU s",
        "ESS/CPU s",
        "with warm-up",
    ]
    parts = [
        (__doc__ or "").split("\n\n")[1],
        table(header, em),
        table(header_of_sampling, sampling),
    ]
    report("label_speed", "Label models: speed and memory", parts, settings.quick)


if __name__ == "__main__":
    main()
