"""Tables larger than memory: equal rows of a Parquet file put together, beside Polars.

Votes on pairs of 100 items by 200 annotators, with a column that is not read. Each reader runs in a
process of its own; CPU seconds of all its threads, imports left out, and peak memory with them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from _common import child, options, peak_megabytes, report, table
from pyarrow import parquet

_COLUMNS = {"winner": "winner", "loser": "loser", "annotator": "annotator"}


def write(path: Path, rows: int) -> None:
    """Write so many votes, a million at a time."""
    rng = np.random.default_rng(0)
    items = np.array([f"model-{code:04d}" for code in range(100)])
    people = np.array([f"worker_{code:03d}" for code in range(200)])
    writer = None
    for first in range(0, rows, 1_000_000):
        size = min(1_000_000, rows - first)
        winner = rng.integers(0, 100, size)
        part = pa.table(
            {
                "winner": items[winner],
                "loser": items[(winner + rng.integers(1, 100, size)) % 100],
                "annotator": people[rng.integers(0, 200, size)],
                "time": rng.random(size),
            }
        )
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def read(reader: str, path: str) -> dict[str, float]:
    """Read with one of the readers; different rows, CPU seconds and peak memory."""
    if reader == "Polars":
        import polars as pl

        begin = time.process_time()
        rows = pl.scan_parquet(path).group_by(*_COLUMNS).len().collect(engine="streaming").height
    elif reader == "raters, rows":
        from raters.judgements.scanned import grouped

        begin = time.process_time()
        rows = len(grouped(path, _COLUMNS))
    else:
        import raters as rt

        rt.Comparisons  # noqa: B018 - its import is not timed
        begin = time.process_time()
        rows = rt.Comparisons.scan(path, **_COLUMNS).num_rows
    return {"rows": rows, "cpu": time.process_time() - begin, "memory": peak_megabytes()}


def main() -> None:
    if sys.argv[1:2] == ["--read"]:
        print(json.dumps(read(*sys.argv[2:])))
        return
    chosen = options(__doc__ or "")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for votes in (10**6,) if chosen.quick else (10**7, 10**8):
            path = Path(folder) / f"{votes}.parquet"
            write(path, votes)
            for reader in ("raters, rows", "`Comparisons.scan`", "Polars"):
                found = child(["--read", reader, str(path)], limit_gigabytes=16.0)
                if isinstance(found, str):
                    lines.append([f"{votes:.0e}", reader, "–", found, "–"])
                else:
                    cells = found["rows"], found["cpu"], found["memory"]
                    lines.append([f"{votes:.0e}", reader, *cells])
            path.unlink()
    report(
        "scan",
        "Tables larger than memory",
        [table(["votes", "reader", "different rows", "CPU seconds", "peak MB"], lines)],
        chosen.quick,
    )


if __name__ == "__main__":
    main()
