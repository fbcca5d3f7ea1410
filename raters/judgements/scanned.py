"""Judgements from files larger than memory: equal rows are counted before they are read."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import acero

from raters.errors import DataError, refuse, refuse_data
from raters.judgements.reading.columns import read_columns


def scan(cls: Any, /, path: Path | str, **roles: Any) -> Any:
    """Read judgements from a Parquet file, or a folder of such files, larger than memory.

    Equal rows are put together batch by batch. Memory is that of the different rows and names,
    whatever the number of rows.

    Parameters
    ----------
    path : path
        A Parquet file, or a folder of such files.
    **roles
        Columns and settings, as `from_frame` takes them.

    Returns
    -------
    Judgements
        What `from_frame` gives for the whole table.

    Raises
    ------
    DataError
        When there is no such file or column, and for values that `from_frame` refuses.
    SettingError
        For settings that need the rows as they are: ``features``, ``aggregate=False`` and
        ``repeats="drop"``.

    Examples
    --------
    >>> import tempfile, pandas as pd, raters as rt
    >>> table = pd.DataFrame({"winner": ["tea", "tea"], "loser": ["beer", "beer"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/votes.parquet")
    ...     votes = rt.Comparisons.scan(folder, winner="winner", loser="loser")
    >>> votes.count.tolist()
    [2.0]
    """
    read = cls.from_frame
    wrong = {
        "features": roles.get("features") is not None,
        "columns": roles.get("columns") is not None,
        "aggregate": roles.get("aggregate") is False,
        "repeats": roles.get("repeats") == "drop",
    }
    expected = "leave it out, or read the table into memory and pass it to from_frame"
    for name in (name for name, given in wrong.items() if given):
        refuse(name, roles[name], "needs the rows one by one, in their order", expected)
    columns = {
        name: roles[name]
        for name, parameter in inspect.signature(read).parameters.items()
        if str(parameter.annotation).removesuffix(" | None") == "str"
        and isinstance(roles.get(name), str)
        and name != "count"
    }
    if not columns:
        read({}, **roles)  # raises what `from_frame` says of roles that are not given
    table = grouped(path, columns, roles.get("count"))
    try:
        data = read(table, **roles | {"count": table.columns[-1]})
    except DataError as error:
        raise DataError(
            f"{error} (rows are numbered among the {len(table):,} different ones of {str(path)!r})"
        ) from error
    return data


def opened(path: Path | str) -> ds.Dataset:
    """A Parquet file, or a folder of such files."""
    if not Path(path).exists():
        raise DataError(f"there is no file or folder {str(path)!r}")
    try:
        return ds.dataset(path, format="parquet")
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(
            f"{str(path)!r} is no Parquet file, nor a folder of such files; read another table"
            " into memory, for example with pandas.read_csv, and pass it to from_frame"
        ) from error


def grouped(path: Path | str, roles: Mapping[str, str], count: str | None = None) -> pd.DataFrame:
    """Different rows of a Parquet file, or of a folder of such files, and their numbers behind."""
    wanted: dict[str, Any] = dict(roles) | ({} if count is None else {"count": count})
    data = opened(path)
    if not set(wanted.values()) <= set(data.schema.names):
        read_columns(data.schema.empty_table(), **wanted)
    keys = list(dict.fromkeys(roles.values()))
    free = [name for name in ("count", *map("count {}".format, range(9))) if name not in keys]
    columns = {}
    for name in keys:  # Batches of one column may have different dictionaries.
        kind = data.schema.field(name).type
        coded = pa.types.is_dictionary(kind)
        columns[name] = ds.field(name).cast(kind.value_type) if coded else ds.field(name)
    total: tuple[Any, str] = ([], "hash_count_all")
    if count is not None:
        _check_counts(data, count)
        columns[count] = ds.field(count).cast(pa.int64())
        total = (count, "hash_sum")
    steps = [
        ("scan", acero.ScanNodeOptions(data, columns=list(columns))),
        ("project", acero.ProjectNodeOptions(list(columns.values()), list(columns))),
        ("aggregate", acero.AggregateNodeOptions([(*total, None, count or free[0])], keys)),
    ]
    try:
        table = acero.Declaration.from_sequence(
            [acero.Declaration(name, options) for name, options in steps]
        ).to_table()
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f"a column holds lists or tables; every row needs one value ({error})"
        ) from error
    table = table.select([*keys, count or free[0]])
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def _check_counts(data: ds.Dataset, count: str) -> None:
    """Raise unless a column holds whole numbers from 1 to 2**53."""
    number = ds.field(count).cast(pa.int64())
    try:
        wrong = number.is_null() | (number < 1) | (number > 2**53)
        valid = data.count_rows(filter=wrong) == 0
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        valid = False
    if not valid:
        problem = "holds something else than whole numbers from 1 to 2**53"
        refuse_data("count", count, problem, "leave out rows without judgements, and round weights")
