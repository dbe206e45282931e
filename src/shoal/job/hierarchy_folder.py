"""Hierarchy folder: one file for each column, found by its name; becomes the setting `hierarchy` of the columns."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.columns.schema import as_names
from shoal.errors import FileError, SchemaError, listed
from shoal.job.kinds import plain_settings
from shoal.spelling import setting

_ENDINGS = (".csv", ".txt", ".tsv")


def with_hierarchies(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a job with the files of `hierarchies` as settings of its quasi-identifiers.

    A hierarchy that a column names itself goes before a file of the folder.
    """
    rest = {name: value for name, value in content.items() if name != "hierarchies"}
    folder = content.get("hierarchies")
    if folder is None:
        return rest
    found = _files(os.fspath(folder))
    names = as_names(dict(rest.get("roles") or {}).get("quasi_identifiers") or ())
    own = {name: path for name in names if (path := _of_column(name, found)) is not None}
    if not own:
        raise SchemaError(
            f"No file of the folder {os.fspath(folder)!r} is named after a quasi-identifier. A file has the name of "
            "its column, such as age.csv, or ends in it, such as adult_hierarchy_age.csv. Quasi-identifiers: "
            f"{listed(names)}."
        )
    columns = {name: plain_settings(given) for name, given in dict(rest.get("columns") or {}).items()}
    for name, path in own.items():
        columns[name] = {"hierarchy": path, **columns.get(name, {})}
    return {**rest, "columns": columns}


def _files(folder: str) -> list[Path]:
    try:
        return sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in _ENDINGS)
    except OSError as error:
        raise FileError(f"The folder of hierarchies {folder!r} cannot be read: {error.strerror}.") from None


def _of_column(name: str, files: list[Path]) -> str | None:
    """Return the file of a column: NAME.csv, or as ARX calls it, DATA_hierarchy_NAME.csv."""
    wanted = name.casefold()
    own = [path for path in files if path.stem.casefold() in (wanted, f"hierarchy_{wanted}")]
    own += [path for path in files if path.stem.casefold().endswith(f"_hierarchy_{wanted}")]
    if len(own) > 1:
        raise SchemaError(
            f"The files {listed([path.name for path in own])} are all named after column {name!r}. Remove one, or name "
            f"the right one: {setting('hierarchy', os.fspath(own[0]), column=name)}."
        )
    return os.fspath(own[0]) if own else None
