"""NDJSON: one JSON object a line, with the same keys in every line.

Messages name lines, keys and counts. They never show a value.
"""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import FileError
from shoal.sources.clean import check_finite, check_flat, check_wanted, not_storable, with_columns
from shoal.sources.csv_dialect import as_utf8
from shoal.sources.csv_types import with_iso_dates
from shoal.sources.format import About, Content, Format
from shoal.sources.glimpse import text_glimpse
from shoal.sources.python_values import cell_columns
from shoal.sources.reading import Reading
from shoal.sources.unpacking import archived_endings, packed, packed_endings, unpacked
from shoal.spelling import setting

_ROWS_AT_ONCE = 1 << 14
_SHOWN = 5
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def read_ndjson(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read JSON objects, one a line."""
    encoding = reading.encoding or "utf-8"
    content = b"".join(as_utf8(unpacked(path, reading.max_unpacked_gb), encoding, path.name))
    records = list(_records(content, path.name))
    if not records:
        raise FileError(f"{path.name!r} is empty: it has no records.")
    names = list(dict.fromkeys(key for record in records for key in record))
    if not names:
        raise FileError(f"The objects of {path.name!r} are empty: they have no keys. Write it again.")
    if not reading.fill_keys:
        _check_keys(records, names, path.name)
    wanted = check_wanted(columns, names)

    def cells_of(name: str) -> list[Any]:
        return [record.get(name) for record in records]

    table, receipt = cell_columns(cells_of, wanted, names, reading, encoding=encoding)
    dates = {
        name: with_iso_dates(table[name])
        for name in wanted
        if pa.types.is_string(table[name].type) and name not in receipt.mixed
    }
    return Content.of(with_columns(table, dates), receipt)


def write_ndjson(table: pa.Table, path: Path, ending: str, like: About | None = None) -> None:
    """Write one JSON object a line, in UTF-8; dates are ISO 8601 texts, a missing value is null."""
    check_flat(table.schema)
    check_finite(table, "NDJSON")
    table = pa.table({name: _with_texts(name, table[name]) for name in table.column_names})
    with open(path, "wb") as file, packed(file, ending) as out:
        for batch in table.to_batches(_ROWS_AT_ONCE):
            lines = (json.dumps(record, ensure_ascii=False) for record in batch.to_pylist())
            out.write("".join(f"{line}\n" for line in lines).encode())


def _records(content: bytes, path: str) -> Iterator[dict[str, Any]]:
    """Yield the object of each line; empty lines are skipped."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            yield _record(line, number, path)


def _record(line: bytes, number: int, path: str) -> dict[str, Any]:
    try:
        found = json.loads(line, object_pairs_hook=_object, parse_constant=_refuse_constant)
        if _SURROGATE.search(line):
            _check_pairs(found)
    except (ValueError, RecursionError) as error:  # its message may contain a value
        why = str(error) if isinstance(error, _RefusedError) else "is not valid JSON"
        raise FileError(
            f"Line {number} of {path!r} {why}. NDJSON has one JSON object a line. Correct the line, or write it again."
        ) from None
    if not isinstance(found, dict):
        raise FileError(
            f"Line {number} of {path!r} holds a {'list' if isinstance(found, list) else 'single value'} in place of an "
            "object. NDJSON has one JSON object a line. Write it again, with one object for each record."
        )
    return found


class _RefusedError(ValueError):
    """What is valid for Python's parser and refused here."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RefusedError("has the same key twice in an object")
    return found


def _check_pairs(found: Any) -> None:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _RefusedError("holds half of a surrogate pair, which is not text") from None


def _refuse_constant(name: str) -> None:
    raise _RefusedError(f"holds {name}, which is not JSON")


def _check_keys(records: list[dict[str, Any]], names: list[str], path: str) -> None:
    """Raise if some records lack keys that others have."""
    odd = list(islice((i for i, record in enumerate(records) if len(record) < len(names)), _SHOWN))
    if not odd:
        return
    lacking = {name: sum(name not in record for record in records) for name in names}
    listed = ", ".join(f"{name!r} ({count:,})" for name, count in lacking.items() if count)
    raise FileError(
        f"The keys of {path!r} change from line to line: of its {len(records):,} records some lack {listed}, the first "
        f"in record {odd[0] + 1}. If a key that is left out means a missing value, give {setting('fill_keys', True)}."
    )


def _with_texts(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that JSON has: dates and times as texts, decimals as numbers."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _with_texts(name, column.cast(kind.value_type))
    if pa.types.is_duration(kind):
        raise not_storable(name, "durations", "NDJSON", "Convert them to numbers")
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64())
    return column.cast(pa.large_string()) if pa.types.is_temporal(kind) else column


NDJSON = Format(
    "ndjson",
    "NDJSON",
    packed_endings(".ndjson", ".jsonl"),
    read_ndjson,
    write_ndjson,
    "one object a line, UTF-8",
    options=frozenset({"encoding", "null_values", "fill_keys", "fields", "max_unpacked_gb"}),
    glimpse=text_glimpse,
    read_only=archived_endings(".ndjson", ".jsonl"),
    skips=True,
    loses="categories, labels, lists and objects (read, not written), NaN and infinity; dates are texts",
)
