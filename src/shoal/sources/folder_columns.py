"""Folder columns: columns whose values are in the names of folders, COLUMN=VALUE, as Hive and Spark write them.

Types and values are those that Spark reads. What it would take for a time, a decimal or another number than it seems is
refused.
"""

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from shoal.errors import FileError

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"[-+]?[0-9]+")
_REAL = re.compile(r"[-+]?[0-9]*\.[0-9]+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNCLEAR = re.compile(
    r"[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]+)?[fd]?|nan|infinity)|[0-9]{4}-[0-9]{2}-[0-9]{2}[ t][0-9].*",
    re.IGNORECASE,
)
_CONVERTED: dict[pa.DataType, Any] = {pa.int32(): int, pa.int64(): int, pa.float64(): float}
_CONVERTED |= {pa.date32(): date.fromisoformat, pa.string(): unquote}


def folder_columns(folder: Path, files: Sequence[Path], types: pa.Schema) -> pa.Table | None:
    """Return the values of each file, a row a file; None if no folder is named COLUMN=VALUE.

    Files have the columns of `types`, so that no folder may be named by one of these.
    """
    found = [[part.partition("=") for part in path.relative_to(folder).parts[:-1] if "=" in part] for path in files]
    names = [unquote(name) for name, _, _ in found[0]]
    for path, parts in zip(files, found, strict=True):
        if [unquote(name) for name, _, _ in parts] != names or len({*names, ""}) <= len(names):
            raise FileError(
                f"In the folder {str(folder)!r}, {str(path.relative_to(folder))!r} is not in folders named COLUMN=VALUE"
                f" of the same columns as {str(files[0].relative_to(folder))!r}, in the same order and each once. Move "
                "it, or let its name begin with an underscore."
            )
    if not names:
        return None
    both = [name for name in names if name in types.names]
    if both:
        raise FileError(
            f"The folder {str(folder)!r} has column {both[0]!r} twice: in its files, and in the names of its folders. "
            "Rename the folders, or write the files without the column."
        )
    raw = {name: [parts[place][2] for parts in found] for place, name in enumerate(names)}
    return pa.table({name: _column(name, texts, folder) for name, texts in raw.items()})


def _column(name: str, texts: Sequence[str], folder: Path) -> pa.Array:
    """Return the values of a column with the one type that fits all of them."""
    types = {_type_of(text) for text in texts if text != _MISSING}
    if None in types:
        raise FileError(
            f"Folders in {str(folder)!r} give column {name!r} values that other programs read as times, as decimals or "
            "as numbers of several notations. Write files that hold the column, in folders without its name."
        )
    if types == {pa.int32(), pa.int64()}:
        kind = pa.int64()
    elif types == {pa.int32(), pa.float64()}:
        kind = pa.float64()
    else:
        kind = types.pop() if len(types) == 1 else pa.string()
    return pa.array([None if text == _MISSING else _CONVERTED[kind](text) for text in texts], kind)


def _type_of(text: str) -> pa.DataType | None:
    """Return the type that Spark gives to a value, None if that is none of ours."""
    if _WHOLE.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return pa.int32() if -(2**31) <= int(text) < 2**31 else pa.int64()
    if _REAL.fullmatch(text):
        return pa.float64()
    if _DATE.fullmatch(text):
        try:
            date.fromisoformat(text)
        except ValueError:
            return pa.string()
        return pa.date32()
    return None if _UNCLEAR.fullmatch(unquote(text).strip()) else pa.string()
