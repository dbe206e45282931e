"""Labelled files: what SPSS, Stata and SAS files have in common, read and written by pyreadstat (extra `spss`)."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.distribution import optional
from shoal.errors import FileError, ShoalError, listed
from shoal.sources.clean import check_flat, check_names, check_texts, check_wanted, in_few_types
from shoal.sources.reading import Reading, Receipt
from shoal.sources.unpacking import SizeLimit
from shoal.spelling import setting

if TYPE_CHECKING:
    from shoal.sources.format import About

_TITLE = "SPSS, Stata and SAS files"
_INTEGERS = ("int8", "int16", "int32")
_READERS = {".sav": "read_sav", ".zsav": "read_sav", ".dta": "read_dta", ".xpt": "read_xport"}
_NAME = re.compile(r"[^\W\d_]\w{0,31}")


@dataclass(frozen=True)
class ColumnLabels:
    """The description of a column in a labelled file.

    Attributes
    ----------
    values : mapping
        Labels of values.
    missing : tuple of (low, high)
        Values that the file declares missing.
    measure : str or None
        nominal, ordinal or scale.
    has_special : bool
        Whether it has special missing values (.A to .Z of SAS and Stata), which are missing already.
    """

    values: Mapping[Any, str] = field(default_factory=dict)
    missing: tuple[tuple[Any, Any], ...] = ()
    measure: str | None = None
    has_special: bool = False

    def is_missing(self, value: Any) -> bool:
        """Return whether a value is declared missing."""
        return any(_is_within(value, low, high) for low, high in self.missing)


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
    special : dict of str to list of str
        Letters of the special missing values of SAS and Stata (.A to .Z) that occur; they are read as missing.
    formats : dict of str to str
        Formats in which the program shows the values, such as DATE9.
    """

    variables: dict[str, str] = field(default_factory=dict)
    values: dict[str, dict[Any, str]] = field(default_factory=dict)
    missing: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)
    measures: dict[str, str] = field(default_factory=dict)
    special: dict[str, list[str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)

    def of_column(self, name: str) -> ColumnLabels | None:
        """Return the description of one column, if the file has any."""
        ranges, special = tuple(self.missing.get(name, ())), name in self.special
        found = ColumnLabels(self.values.get(name, {}), ranges, self.measures.get(name), special)
        return None if found == ColumnLabels() else found

    def without(self, column: str) -> "ValueLabels":
        """Return the labels of the other columns."""
        own = {part.name: getattr(self, part.name) for part in fields(self)}
        return ValueLabels(**{name: {key: of[key] for key in of if key != column} for name, of in own.items()})

    def with_others(self, other: "ValueLabels") -> "ValueLabels":
        """Return the labels of both, those of this one first."""
        return ValueLabels(**{part.name: getattr(other, part.name) | getattr(self, part.name) for part in fields(self)})

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
            name: [ends for ends in self.missing[name] if any(_is_within(value, *ends) for value in occurring[name])]
            for name in self.missing
            if name in occurring
        }
        return ValueLabels(
            _only(self.variables, table.column_names),
            {name: labels for name, labels in values.items() if labels},
            {name: ranges for name, ranges in missing.items() if ranges},
            _only(self.measures, table.column_names),
            {},
            _only(self.formats, table.column_names),
        )


def pyreadstat_for(path: Path) -> Any:
    """Return pyreadstat; raise if it is not installed."""
    return optional("pyreadstat", f"{path.suffix} files need pyreadstat", "spss", FileError)


def read_labelled(
    reader: Callable[..., Any],
    path: Path,
    columns: Sequence[str] | None,
    reading: Reading,
    *,
    expands: bool = True,
    **given: Any,
) -> tuple[pa.Table, Receipt, ValueLabels]:
    """Read a file by one of the readers of pyreadstat; its size is limited if it is of a format that `expands`."""
    given |= {} if reading.encoding is None else {"encoding": reading.encoding}
    limit = SizeLimit(path, reading.max_unpacked_gb if expands else math.inf)
    try:
        _, about = reader(path, metadataonly=True, **given)
        names = list(about.column_names)
        check_names(names)
        wanted = check_wanted(columns, names)
        width = sum(about.variable_storage_width[name] for name in wanted)
        if about.number_rows is None:  # then reading stops just beyond the limit
            given["row_limit"] = min(limit.n_bytes // max(width, 1) + 1, 2**31 - 1)
        limit.check((about.number_rows or 0) * width)
        data, about = reader(path, usecols=wanted, output_format="dict", **given)
    except (ShoalError, MemoryError, PermissionError):
        raise
    except Exception as error:  # on damaged files pyreadstat raises whatever its conversions do
        if isinstance(error, UnicodeDecodeError) or "convert" in str(error).lower():
            raise FileError(
                f"{path.name!r} has text in another encoding than it declares. Give {setting('encoding')}."
            ) from None
        if isinstance(error, OverflowError):
            raise _beyond_years(reader, path, wanted, given) from None
        if "version of the file format" in str(error):
            raise FileError(
                f"{path.name!r} is in a version of the {path.suffix} format that is too old to be read. Open it in the "
                "program that it is for, and save it in a current one."
            ) from None
        raise _cut_short(path) from None
    limit.check(max(map(len, data.values()), default=0) * width)
    if about.number_rows is not None and any(len(values) != about.number_rows for values in data.values()):
        raise _cut_short(path)
    types, special = about.readstat_variable_types, about.missing_user_values
    columns_read = {name: _column(data[name], types[name], name in special) for name in wanted}
    found = reading.model_copy(update={"encoding": about.file_encoding or reading.encoding})
    return pa.table(columns_read), Receipt(reading, found), _about(about, wanted)


def _beyond_years(reader: Callable[..., Any], path: Path, names: Sequence[str], given: dict[str, Any]) -> FileError:
    """Return the error for dates that Python does not have, and name their columns."""

    def is_beyond(name: str) -> bool:
        try:
            reader(path, usecols=[name], output_format="dict", **given)
        except OverflowError:
            return True
        return False

    beyond = [name for name in names if is_beyond(name)]
    return FileError(
        f"Column(s) {listed(beyond)} of {path.name!r} hold dates outside the years 1 to 9999, which cannot be read. "
        "Make them missing, or store them as numbers."
    )


def _cut_short(path: Path) -> FileError:
    return FileError(f"{path.name!r} is not a complete {path.suffix} file: it is truncated or damaged. Write it again.")


def _column(values: list[Any], kind: str, has_special: bool) -> pa.Array:
    if has_special and kind != "string":
        values = [None if isinstance(value, str) else value for value in values]
    array = pa.array(values, from_pandas=True)
    if pa.types.is_null(array.type):
        return array.cast(pa.string() if kind == "string" else pa.float64())
    return array.cast(pa.int64()) if kind in _INTEGERS and pa.types.is_floating(array.type) else array


def _about(about: Any, names: list[str]) -> ValueLabels:
    measures = {name: kind for name, kind in about.variable_measure.items() if kind != "unknown"}
    ranges = {name: [(r["lo"], r["hi"]) for r in found] for name, found in about.missing_ranges.items()}
    said = {name: label for name, label in about.column_names_to_labels.items() if label}
    is_text = {name: kind == "string" for name, kind in about.readstat_variable_types.items()}
    # A label of a special missing value (.a) stands under a letter, which no number can be.
    values = {
        name: {value: label for value, label in labels.items() if is_text[name] or not isinstance(value, str)}
        for name, labels in about.variable_value_labels.items()
    }
    special = {name: found for name, found in about.missing_user_values.items() if not is_text[name]}
    formats = {name: form for name, form in about.original_variable_types.items() if form}
    parts = (said, {name: labels for name, labels in values.items() if labels}, ranges, measures, special, formats)
    return ValueLabels(*(_only(part, names) for part in parts))


def write_labelled(
    writer: Callable[..., None], table: pa.Table, path: Path, labels: ValueLabels, options: dict[str, Any]
) -> None:
    """Write a file by one of the writers of pyreadstat, with variable labels."""
    check_flat(table.schema)
    check_texts(table, _TITLE)
    frame = _frame(table)
    column_labels = {name: labels.variables.get(name) for name in table.column_names}
    reader = getattr(pyreadstat_for(path), _READERS[path.suffix.lower()])
    try:
        writer(frame, path, column_labels=column_labels, **{key: value for key, value in options.items() if value})
        kept = list(reader(path, metadataonly=True)[1].column_names)
    except (OSError, MemoryError):
        raise
    except Exception:  # the message of the error may contain a value
        _check_room(path)
        raise _unwritable(path, table.column_names) from None
    _check_room(path)
    if kept != table.column_names:
        raise _unwritable(path, table.column_names)


def _unwritable(path: Path, names: Sequence[str]) -> FileError:
    """Return the error for a table that cannot be written, or whose names would be others in the file."""
    odd = [name for name in names if not _NAME.fullmatch(name)]
    split = any(name.endswith(".low") for name in odd)
    advice = f"publish intervals as text ({setting('intervals', 'text')}), " if split else ""
    return FileError(
        f"The table cannot be written to a {path.suffix} file. "
        + (f"The cause may be the names {', '.join(map(repr, odd))}. " if odd else "")
        + "Names must begin with a letter, have no more than 32 letters, digits and underscores, differ not in case "
        "alone and be no keywords; columns must hold numbers, short text or dates. Rename or convert columns, "
        f"{advice}or write Parquet."
    )


def _check_room(path: Path) -> None:
    """Raise OSError if the disk is full: pyreadstat does not say so, and leaves a .xpt file incomplete."""
    size = path.stat().st_size
    with open(path, "ab") as file:
        file.write(bytes(2**16))
        file.flush()
        file.truncate(size)


def _frame(table: pa.Table) -> Any:
    """Return a frame that pyreadstat can write: polars or pandas."""
    columns = [in_few_types(name, table[name], _TITLE, "outside the years 1 to 9999") for name in table.column_names]
    table = pa.table(columns, names=table.column_names)
    if find_spec("polars"):
        import polars

        return polars.from_arrow(table)
    if find_spec("pandas"):
        return table.to_pandas(date_as_object=True)
    raise FileError(
        "Writing SPSS, Stata or SAS files requires polars or pandas, and neither is installed. Install one of them."
    )


def labels_for(like: "About | None", table: pa.Table) -> ValueLabels:
    """Return the input labels that still apply to a table."""
    return ValueLabels() if like is None or like.labels is None else like.labels.of(table)


def _is_within(value: Any, low: Any, high: Any) -> bool:
    return value is not None and isinstance(value, str) == isinstance(low, str) and low <= value <= high


def _only(part: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}


def overwrite(path: Path, offset: int, content: bytes) -> None:
    """Replace bytes of a file, such as the time of writing."""
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(content)
