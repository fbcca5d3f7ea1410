"""Equal rows of Parquet files put together batch by batch, as of files larger than memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from jaxtyping import Int

from raters.errors import DataError, refuse_data
from raters.judgements.reading.columns import read_columns

# Rows that are read at a time, and that are sorted at a time.
_BATCH, _SORTED = 1 << 17, 2_000_000
# Bits of a row's number, in which its columns' codes are one behind the other, and of a code before
# there are more names.
_BITS, _FIRST_BITS = 63, 16


def grouped(path: Path | str, roles: Mapping[str, str], count: str | None = None) -> pd.DataFrame:
    """Different rows of a Parquet file, or of a folder of such files, and how often each is
    there."""
    data, columns = _opened(Path(path), roles, count), list(dict.fromkeys(roles.values()))
    wanted = [*columns, *([count] if count is not None else [])]
    groups = _Groups(len(columns))
    for batch in data.to_batches(columns=wanted, batch_size=_BATCH, batch_readahead=2):
        if batch.num_rows:
            times = None if count is None else _times(batch.column(count), count)
            groups.add([batch.column(name) for name in columns], times)
    codes, number = groups.all()
    table = {
        name: pd.Categorical.from_codes(code, categories=pd.Index(list(names), dtype=object))
        for name, code, names in zip(columns, codes, groups.names, strict=True)
    }
    free = next(
        name for name in ("count", *map("count {}".format, range(9))) if name not in columns
    )
    return pd.DataFrame(table | {count or free: number})


def num_rows(path: Path) -> int:
    """Number of rows of a Parquet file or of a folder of such files, from what they say of
    themselves."""
    return int(_dataset(path).count_rows())


def column_names(path: Path) -> list[str]:
    """Columns of a Parquet file or of a folder of such files."""
    return list(_dataset(path).schema.names)


def _dataset(path: Path, dictionaries: Sequence[str] = ()) -> ds.Dataset:
    if not path.exists():
        raise DataError(f"there is no file or folder {str(path)!r}")
    options = ds.ParquetReadOptions(dictionary_columns=list(dictionaries))
    try:
        return ds.dataset(path, format=ds.ParquetFileFormat(read_options=options))
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{str(path)!r} is no Parquet file, nor a folder of such files:"
            f" {str(error).splitlines()[0].rstrip('.')}; read another table into memory, for"
            " example with pandas.read_csv, and pass it to from_frame"
        ) from error


def _opened(path: Path, roles: Mapping[str, str], count: str | None) -> ds.Dataset:
    """The files, with texts read as codes; a `DataError` names a column that they have not."""
    schema = _dataset(path).schema
    wanted = dict(roles) | ({} if count is None else {"count": count})
    if not set(wanted.values()) <= set(schema.names):
        read_columns(schema.empty_table(), **wanted)
    texts = [
        name
        for name in roles.values()
        if pa.types.is_string(schema.field(name).type)
        or pa.types.is_large_string(schema.field(name).type)
    ]
    return _dataset(path, texts)


def _times(column: pa.Array, name: str) -> Int[np.ndarray, " row"]:
    """A column of counts, as whole numbers."""
    try:
        whole = pc.cast(column, pa.int64())
        least, most = pc.min_max(whole).as_py().values()
    except pa.ArrowInvalid:
        least = most = None
    if column.null_count or least is None or least < 1 or most > 2**53:
        refuse_data(
            "count",
            name,
            "holds something else than whole numbers from 1 to 2**53",
            "leave out rows without judgements, and round weights",
        )
    return np.asarray(whole)


class _Groups:
    """Different rows so far: sorted runs of their numbers, a run at least twice as long as the
    next, so that each row takes part in few merges."""

    def __init__(self, num_columns: int) -> None:
        self.names: list[dict[Any, int]] = [{} for _ in range(num_columns)]
        self._bits = [min(_FIRST_BITS, _BITS // num_columns)] * num_columns
        self._runs: list[tuple[np.ndarray, np.ndarray]] = []
        self._waiting: list[tuple[np.ndarray, np.ndarray | None]] = []
        self._known: list[tuple[pa.Array, np.ndarray] | None] = [None] * num_columns

    def add(self, columns: Sequence[pa.Array], times: np.ndarray | None) -> None:
        """Take the rows of a batch."""
        codes = [self._codes(place, column) for place, column in enumerate(columns)]
        self._make_room()
        self._waiting.append((self._packed(codes), times))
        if sum(len(key) for key, _ in self._waiting) >= _SORTED:
            self._sort()

    def all(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Codes of the different rows in each column, −1 for nothing, and their numbers."""
        self._sort()
        while len(self._runs) > 1:
            self._runs.append(_summed(*map(np.concatenate, zip(*self._pair(), strict=True))))
        if not self._runs:
            return [np.zeros(0, int) for _ in self.names], np.zeros(0, int)
        ((key, number),) = self._runs
        return [code - 1 for code in self._unpacked(key, self._bits)], number

    def _codes(self, place: int, column: pa.Array) -> Int[np.ndarray, " row"]:
        """Codes of a column's values from 1, and 0 for nothing."""
        if pa.types.is_nested(column.type):
            raise DataError(
                f"a column holds lists or tables ({column.type}); every row must hold one value"
            )
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        known = self._known[place]
        if known is None or not column.dictionary.equals(known[0]):
            names = self.names[place]
            of_name = [
                0 if value is None or value != value else names.setdefault(value, len(names)) + 1
                for value in column.dictionary.to_pylist()
            ]
            known = self._known[place] = column.dictionary, np.array([*of_name, 0], np.int64)
        codes: np.ndarray = known[1][np.asarray(pc.fill_null(column.indices, -1))]
        return codes

    def _make_room(self) -> None:
        """Lengthen the codes where there are more names than they can tell apart."""
        least = [len(names).bit_length() for names in self.names]
        bits = [max(own, old) for own, old in zip(least, self._bits, strict=True)]
        if bits == self._bits:
            return
        if sum(bits) > _BITS:
            if sum(least) > _BITS:
                raise DataError(
                    "these columns have too many different values to tell their rows apart:"
                    f" {', '.join(f'{len(names):,}' for names in self.names)}; leave out a column"
                )
            bits = least
        old, self._bits = self._bits, bits

        def again(key: np.ndarray) -> np.ndarray:
            return self._packed(self._unpacked(key, old))

        self._runs = [(again(key), number) for key, number in self._runs]
        self._waiting = [(again(key), times) for key, times in self._waiting]

    def _packed(self, codes: Sequence[np.ndarray]) -> Int[np.ndarray, " row"]:
        key = np.zeros(len(codes[0]), np.int64)
        for code, bits in zip(codes, self._bits, strict=True):
            key = (key << bits) | code
        return key

    def _unpacked(self, key: np.ndarray, bits: Sequence[int]) -> list[np.ndarray]:
        codes = []
        for width in reversed(bits):
            codes.append(key & ((1 << width) - 1))
            key = key >> width
        return codes[::-1]

    def _sort(self) -> None:
        """Make a run of the rows that wait."""
        if not self._waiting:
            return
        key = np.concatenate([key for key, _ in self._waiting])
        times = [times for _, times in self._waiting if times is not None]
        self._waiting = []
        self._runs.append(_summed(key, np.concatenate(times) if times else None))
        while len(self._runs) > 1 and len(self._runs[-2][0]) < 2 * len(self._runs[-1][0]):
            self._runs.append(_summed(*map(np.concatenate, zip(*self._pair(), strict=True))))

    def _pair(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [self._runs.pop(), self._runs.pop()]


def _summed(
    key: Int[np.ndarray, " row"], number: Int[np.ndarray, " row"] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The different keys in order, and the sum of the numbers of each, 1 unless given."""
    if number is None:
        key.sort()
    else:
        order = np.argsort(key, kind="stable")  # of runs that are sorted it merges them
        key, number = key[order], number[order]
    first = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    if number is None:
        return key[first], np.diff(first, append=len(key))
    return key[first], np.add.reduceat(number, first)
