"""Writing an Excel workbook: one sheet, each value as a cell of its type, texts as texts whatever they begin with."""

import io
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.distribution import optional
from shoal.errors import FileError
from shoal.files import hidden_folder
from shoal.sources.clean import check_finite, check_flat, in_few_types, not_storable
from shoal.sources.format import About

_SHEET = "release"
_ROWS_AT_ONCE = 1 << 14
_MOST_ROWS, _MOST_COLUMNS, _MOST_TEXT = 1_048_575, 16_384, 32_767
_FIRST_DAY = -25_508  # 1900-03-01: Excel counts 29 February 1900, which never was
_NO_TIME = datetime(1980, 1, 1)
_FORMATS = {"date": "yyyy-mm-dd", "timestamp": "yyyy-mm-dd hh:mm:ss.000", "time": "hh:mm:ss.000"}


def write_excel(table: pa.Table, path: Path, ending: str = ".xlsx", like: About | None = None) -> None:
    """Write a table to the only sheet of a workbook, with its header in the first row."""
    xlsxwriter = optional("xlsxwriter", "Writing Excel workbooks needs XlsxWriter", "excel", FileError)
    check_flat(table.schema)
    check_finite(table, "Excel")
    if table.num_rows > _MOST_ROWS or table.num_columns > _MOST_COLUMNS:
        raise FileError(
            f"A sheet of Excel holds {_MOST_ROWS:,} records of {_MOST_COLUMNS:,} columns at most; the table has "
            f"{table.num_rows:,} of {table.num_columns:,}. Write CSV or Parquet."
        )
    table = pa.table({name: _storable(name, table[name]) for name in table.column_names})
    with hidden_folder(path) as folder, _Archive(path, "wb") as archive:
        book = xlsxwriter.Workbook(archive, {"constant_memory": True, "tmpdir": folder})
        _fill(book, table, _exact_worksheet(xlsxwriter))
        book.close()
        if archive.error is not None:
            raise archive.error


class _Archive(io.FileIO):
    """A file that keeps its first error: an archive that fails tries again when it is deleted, with a traceback."""

    error: OSError | None = None

    def write(self, content: Any) -> int:
        """Write all bytes, or none after an error."""
        rest = memoryview(content)
        while rest and self.error is None:
            try:
                rest = rest[super().write(rest) :]
            except OSError as error:
                self.error = error
        return len(content)


def _fill(book: Any, table: pa.Table, kind: Any) -> None:
    """Write the records to the only sheet."""
    # A fixed time of writing, so that the same table gives the same bytes.
    book.set_properties({"created": _NO_TIME})
    sheet = book.add_worksheet(_SHEET, worksheet_class=kind)
    for place, name in enumerate(table.column_names):
        sheet.write_string(0, place, name)
    writers = [_writer(book, sheet, field.type) for field in table.schema]
    for start in range(0, table.num_rows, _ROWS_AT_ONCE):
        columns = [column.to_pylist() for column in table.slice(start, _ROWS_AT_ONCE).columns]
        for row, record in enumerate(zip(*columns, strict=True), start + 1):
            for place, value in enumerate(record):
                if value is not None:
                    writers[place](row, place, value)


def _exact_worksheet(xlsxwriter: Any) -> Any:
    """Return a class of sheets whose numbers keep all 17 digits; XlsxWriter itself writes 16."""

    class Exact(xlsxwriter.worksheet.Worksheet):  # type: ignore[misc]
        def _xml_number_element(self, number: float, attributes: Any = ()) -> None:
            marks = "".join(f' {key}="{value}"' for key, value in attributes)
            self.fh.write(f"<c{marks}><v>{float(number)!r}</v></c>")

    return Exact


def _writer(book: Any, sheet: Any, kind: pa.DataType) -> Callable[[int, int, Any], Any]:
    """Return what writes a value of a type."""
    if pa.types.is_boolean(kind):
        return sheet.write_boolean  # type: ignore[no-any-return]
    if pa.types.is_temporal(kind):
        name = "date" if pa.types.is_date(kind) else "timestamp" if pa.types.is_timestamp(kind) else "time"
        shown = book.add_format({"num_format": _FORMATS[name]})
        return lambda row, place, value: sheet.write_datetime(row, place, value, shown)
    return sheet.write_number if _is_number(kind) else sheet.write_string  # type: ignore[no-any-return]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _storable(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column in a type that cells have; raise if that would change a value."""
    column = in_few_types(name, column, "Excel", "before March 1900 or after the year 9999", _FIRST_DAY)
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.date32())
    if pa.types.is_timestamp(kind):
        return _in_milliseconds(name, column, pa.timestamp("ms"))
    if pa.types.is_time(kind):
        return _in_milliseconds(name, column, pa.time32("ms"))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        longest = pc.max(pc.utf8_length(column)).as_py() or 0
        if longest > _MOST_TEXT:
            raise not_storable(name, f"texts of more than {_MOST_TEXT:,} characters", "Excel", "Shorten them")
    return column


def _in_milliseconds(name: str, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        raise not_storable(name, "times finer than a millisecond", "Excel", "Round them") from None
