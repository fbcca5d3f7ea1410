"""Judgements from files that are larger than memory."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, Self

from raters.errors import DataError, refuse
from raters.judgements.reading.scan import grouped


class Scanned:
    """Mixin of the containers of which each row is a judgement by itself, so that equal rows may be
    counted before they are read."""

    @classmethod
    def scan(cls, path: Path | str, **roles: Any) -> Self:
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
        read = cls.from_frame  # type: ignore[attr-defined]
        _check(roles)
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
            data: Self = read(table, **roles | {"count": table.columns[-1]})
        except DataError as error:
            raise DataError(
                f"{error} (rows are numbered among the {len(table):,} different ones of"
                f" {str(path)!r})"
            ) from error
        return data


def _check(roles: dict[str, Any]) -> None:
    """Raise for settings that need the rows as they are."""
    wrong = {
        "features": roles.get("features") is not None,
        "aggregate": roles.get("aggregate") is False,
        "repeats": roles.get("repeats") == "drop",
    }
    for name, given in wrong.items():
        if given:
            refuse(
                name,
                roles[name],
                "needs the rows one by one, in their order",
                "leave it out, or read the table into memory and pass it to from_frame",
            )
