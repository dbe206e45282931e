"""Kinds of several columns at once: codes, numbers and data dictionaries become settings of single columns."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shoal.columns.schema import ColumnSettings, Kind
from shoal.errors import FileError, SchemaError, listed
from shoal.job.job_files import content_of, job_text
from shoal.sources import read
from shoal.spelling import named

_AT_ONCE = {"codes": Kind.NOMINAL, "numbers": Kind.NUMERIC}
"""The kind of the columns that a setting lists."""

_WORDS = {
    **{str(kind): kind for kind in Kind},
    **dict.fromkeys(("code", "codes", "categorical", "category", "factor", "text", "string", "label"), Kind.NOMINAL),
    **dict.fromkeys(("number", "scale", "metric", "continuous", "integer", "float", "count"), Kind.NUMERIC),
    "ordered": Kind.ORDINAL,
    "time": Kind.DATE,
}
"""What dictionaries call a kind."""


def with_kinds(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a job with `codes`, `numbers` and `kinds` as settings of its columns.

    Examples
    --------
    >>> with_kinds({"k": 5, "codes": ["sex"], "columns": {"age": {"round": 0}}})
    {'k': 5, 'columns': {'age': {'round': 0}, 'sex': {'kind': <Kind.NOMINAL: 'nominal'>}}}
    """
    rest = {name: value for name, value in content.items() if name not in (*_AT_ONCE, "kinds")}
    given = {name: content[name] for name in _AT_ONCE if content.get(name)}
    if not given and not content.get("kinds"):
        return rest
    columns = {name: plain_settings(settings) for name, settings in dict(rest.get("columns") or {}).items()}
    for setting, names in given.items():
        for column in _names(setting, names):
            _take(columns.setdefault(column, {}), column, setting)
    for column, settings in _of_dictionary(content.get("kinds")).items():
        columns[column] = {**settings, **columns.get(column, {})}
    return {**rest, "columns": columns}


def _take(settings: dict[str, Any], column: str, setting: str) -> None:
    kind = _AT_ONCE[setting]
    if settings.get("kind") not in (None, kind):
        raise SchemaError(
            f"{named(setting)} says that column {column!r} is {kind}, and another setting that it is "
            f"{settings['kind']}. Leave one of them out."
        )
    settings["kind"] = kind


def _names(setting: str, given: Any) -> list[str]:
    names = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else [given]
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(f"{named(setting)} should be a list of names of columns.")
    return names


def plain_settings(settings: Any) -> Any:
    """Return the settings of a column as they were given."""
    if isinstance(settings, ColumnSettings):
        return settings.model_dump(exclude_unset=True)
    return dict(settings) if isinstance(settings, Mapping) else settings


def _of_dictionary(given: Any) -> dict[str, dict[str, Any]]:
    """Return the settings in a data dictionary: a mapping, or a file of a table or a job."""
    if given is None or given == "":
        return {}
    if isinstance(given, Mapping):
        return {str(column): {"kind": kind} for column, kind in given.items() if kind is not None}
    if not isinstance(given, str | os.PathLike):
        raise SchemaError(f"{named('kinds')} should be the path of a file, or a mapping from columns to their kinds.")
    if Path(given).suffix.lower() == ".toml":
        said = content_of(job_text(given)).get("columns", {})
        wanted = ("kind", "categories")
        return {column: {key: of[key] for key in wanted if key in of} for column, of in said.items()}
    return _of_table(given)


def _of_table(path: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Return the kinds in a table whose first column has the names of columns, and one called kind their kinds."""
    table, name = read(path), Path(path).name
    where = next((column for column in table.names[1:] if column.strip().lower() == "kind"), None)
    if where is None:
        raise FileError(
            f"The data dictionary {name!r} has no column 'kind' after its first one, which has to hold the names of "
            f"columns. Columns: {listed(table.names)}. Rename one."
        )
    names, words = (table.load([column])[column].cast("string").to_pylist() for column in (table.names[0], where))
    found: dict[str, dict[str, Any]] = {}
    for number, (column, word) in enumerate(zip(names, words, strict=True), 1):
        if word is None or not word.strip():
            continue
        kind = _WORDS.get(word.strip().lower())
        if kind is None or column is None or column in found:
            why = "has an unknown kind" if kind is None else "names no column" if column is None else "repeats a column"
            raise FileError(
                f"Row {number} of the data dictionary {name!r} {why}. Kinds: {', '.join(_WORDS)}. Correct it."
            )
        found[column] = {"kind": kind}
    return found
