"""Labelled files: SPSS (.sav, .zsav) and Stata (.dta), with variable and value labels.

Uses pyreadstat, which the extra `spss` installs.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import FileError, ShoalError
from shoal.extras import install
from shoal.table.clean import check_flat, check_names, check_wanted
from shoal.table.format import Format

_INTEGERS = ("int8", "int16", "int32")


@dataclass(frozen=True)
class ValueLabels:
    """Labels of a file, by column name.

    Attributes
    ----------
    variables : dict of str to str
        Variable label of a column.
    values : dict of str to dict
        Value labels of a column.
    missing : dict of str to list of (low, high)
        User-defined missing values of SPSS: a range, or the same value twice.
    measures : dict of str to str
        nominal, ordinal or scale, where the file specifies it.
    """

    variables: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[Any, str]] = field(default_factory=dict)
    missing: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)

    def of(self, table: pa.Table) -> "ValueLabels":
        """Return the labels of the columns of a table and of the values that occur in it."""
        occurring = {
            name: set(pc.unique(table[name]).to_pylist())
            for name in (*self.values, *self.missing)
            if name in table.column_names
        }
        values = {
            name: {value: label for value, label in self.values[name].items() if value in occurring[name]}
            for name in self.values
            if name in occurring
        }
        missing = {
            name: [(low, high) for low, high in self.missing[name] if _any_within(occurring[name], low, high)]
            for name in self.missing
            if name in occurring
        }
        return ValueLabels(
            _only(self.variables, table.column_names),
            {name: labels for name, labels in values.items() if labels},
            {name: ranges for name, ranges in missing.items() if ranges},
            _only(self.measures, table.column_names),
        )


def read_sav(
    path: Path, columns: Sequence[str] | None = None, encoding: str | None = None
) -> tuple[pa.Table, ValueLabels]:
    """Read an SPSS file. User-defined missing values are kept and listed in the labels."""
    return _read(_pyreadstat(path).read_sav, path, columns, encoding, user_missing=True)


def read_dta(
    path: Path, columns: Sequence[str] | None = None, encoding: str | None = None
) -> tuple[pa.Table, ValueLabels]:
    """Read a Stata file. Missing values, including extended ones (.a to .z), become null."""
    return _read(_pyreadstat(path).read_dta, path, columns, encoding)


def write_sav(table: pa.Table, path: Path, ending: str = ".sav", notes: object = None) -> None:
    """Write an SPSS file, with the input labels that still apply."""
    labels = _labels(notes, table)
    ranges = {name: [{"lo": low, "hi": high} for low, high in found] for name, found in labels.missing.items()}
    options = {"missing_ranges": ranges, "variable_measure": labels.measures, "compress": ending == ".zsav"}
    _write(_pyreadstat(path).write_sav, table, path, labels, {key: value for key, value in options.items() if value})
    # Date and time of writing, at a fixed offset in the header.
    _overwrite(path, 92, b"01 Jan 7000:00:00")


def write_dta(table: pa.Table, path: Path, ending: str = ".dta", notes: object = None) -> None:
    """Write a Stata file, with the input labels that still apply."""
    _write(_pyreadstat(path).write_dta, table, path, _labels(notes, table), {})
    with open(path, "rb") as file:
        start = file.read(1024)
    mark = b"<timestamp>\x11"
    if mark in start:
        _overwrite(path, start.index(mark) + len(mark), b"01 Jan 1970 00:00")


def _pyreadstat(path: Path) -> Any:
    try:
        import pyreadstat
    except ImportError:
        raise FileError(f"{path.suffix} files need pyreadstat, which is not installed: {install('spss')}.") from None
    return pyreadstat


def _read(
    reader: Callable[..., Any], path: Path, columns: Sequence[str] | None, encoding: str | None, **options: Any
) -> tuple[pa.Table, ValueLabels]:
    options |= {"encoding": encoding} if encoding else {}
    try:
        _, about = reader(path, metadataonly=True, **options)
        names = list(about.column_names)
        check_names(names)
        wanted = names if columns is None else check_wanted(columns, names)
        data, about = reader(path, usecols=wanted, output_format="dict", **options)
    except (ShoalError, MemoryError):
        raise
    except Exception as error:  # on damaged files pyreadstat raises whatever its conversions do
        if isinstance(error, UnicodeDecodeError) or "convert" in str(error).lower():
            raise FileError(f"{path.name!r} has text in another encoding than it declares. Give encoding=.") from None
        raise _cut_short(path) from None
    if about.number_rows is not None and any(len(values) != about.number_rows for values in data.values()):
        raise _cut_short(path)
    types = about.readstat_variable_types
    return pa.table({name: _column(data[name], types[name]) for name in wanted}), _about(about, wanted)


def _cut_short(path: Path) -> FileError:
    return FileError(f"{path.name!r} is not a complete {path.suffix} file: it is truncated or damaged. Write it again.")


def _column(values: list[Any], kind: str) -> pa.Array:
    array = pa.array(values, from_pandas=True)
    if pa.types.is_null(array.type):
        return array.cast(pa.string() if kind == "string" else pa.float64())
    return array.cast(pa.int64()) if kind in _INTEGERS and pa.types.is_floating(array.type) else array


def _about(about: Any, names: list[str]) -> ValueLabels:
    measures = {name: kind for name, kind in about.variable_measure.items() if kind != "unknown"}
    ranges = {name: [(r["lo"], r["hi"]) for r in found] for name, found in about.missing_ranges.items()}
    said = {name: label for name, label in about.column_names_to_labels.items() if label}
    return ValueLabels(*(_only(part, names) for part in (said, about.variable_value_labels, ranges, measures)))


def _write(
    writer: Callable[..., None], table: pa.Table, path: Path, labels: ValueLabels, options: dict[str, Any]
) -> None:
    check_flat(table.schema)
    frame = _frame(table)
    try:
        writer(
            frame,
            path,
            column_labels={name: labels.variables.get(name) for name in table.column_names},
            variable_value_labels=labels.values,
            **options,
        )
    except (OSError, MemoryError):
        raise
    except Exception:  # the message of the error may contain a value
        raise FileError(
            "The table cannot be written as SPSS or Stata: names must be short and without spaces, and columns must "
            "hold numbers, text or dates. Rename or convert columns, or write Parquet."
        ) from None


def _frame(table: pa.Table) -> Any:
    """Return a frame that pyreadstat can write: polars or pandas."""
    table = pa.table([_storable(name, table[name]) for name in table.column_names], names=table.column_names)
    if find_spec("polars"):
        import polars

        return polars.from_arrow(table)
    if find_spec("pandas"):
        return table.to_pandas(date_as_object=True)
    raise FileError(
        "Writing SPSS or Stata files requires polars or pandas, and neither is installed. Install one of them."
    )


def _storable(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as a type that these formats support: numbers are float64, timestamps have no zone."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _storable(name, column.cast(kind.value_type))
    if pa.types.is_timestamp(kind) and kind.tz:
        column = pc.local_timestamp(column)
    if pa.types.is_integer(kind):
        ends = pc.min_max(column).as_py().values()
        if any(end is not None and abs(end) > 2**53 for end in ends):
            raise FileError(
                f"Column {name!r} has integers of more than 15 digits, which SPSS and Stata files would round. "
                "Convert it to text, or write Parquet."
            )
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind) or pa.types.is_null(kind):
        return column.cast(pa.float64())
    if pa.types.is_duration(kind):
        raise FileError(
            f"Column {name!r} holds durations, which SPSS and Stata files cannot store. Convert them to numbers, or "
            "write Parquet."
        )
    return column


def _labels(notes: object, table: pa.Table) -> ValueLabels:
    return notes.of(table) if isinstance(notes, ValueLabels) else ValueLabels()


def _any_within(values: Iterable[Any], low: Any, high: Any) -> bool:
    return any(
        value is not None and isinstance(value, str) == isinstance(low, str) and low <= value <= high
        for value in values
    )


def _only(part: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}


def _overwrite(path: Path, offset: int, content: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)


SPSS = Format(
    "sav", "SPSS", (".sav", ".zsav"), read_sav, write_sav, "the same, with labels", extra="spss", tells_empty=False
)
STATA = Format("dta", "Stata", (".dta",), read_dta, write_dta, "the same, with labels", extra="spss", tells_empty=False)
