"""Python values: columns of Python values, as a spreadsheet or JSON has them, become typed columns.

The type of a column is that of its cells; nothing is converted from text unless the caller asks for it. A column with
cells of several types becomes text, and the number of cells of each type is reported.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import FileError
from shoal.sources.csv_types import typed_field
from shoal.sources.left_out import Skipping
from shoal.sources.nested import text_of
from shoal.sources.reading import FieldReading, Reading, Receipt
from shoal.sources.text_values import is_among

_EXACT = 2**53
_WORDS = {
    str: "texts",
    bool: "true or false",
    int: "numbers",
    float: "numbers",
    date: "dates",
    datetime: "dates",
    time: "times of day",
    timedelta: "durations",
    list: "lists",
    dict: "objects",
}


class CellColumn(NamedTuple):
    """A typed column, and the number of cells of each type if there are several."""

    values: pa.ChunkedArray
    mixed: dict[str, int]


def cell_columns(
    cells_of: Callable[[str], Sequence[Any]],
    wanted: Sequence[str],
    names: Sequence[str],
    reading: Reading,
    *,
    of_sheet: bool = False,
    **found: Any,
) -> tuple[pa.Table, Receipt]:
    """Return the wanted columns of a file with their types, and how they were read.

    `cells_of` returns the cells of one of its columns, which are called `names`; `found` is of the file.
    """
    own = {name: how.over(reading.of_all) for name, how in reading.of_columns(names).items()}
    skipping = Skipping(reading, names)
    cells = {name: cells_of(name) for name in wanted}
    if skipping.is_asked:
        n_records = len(cells_of(names[0]))
        keep = skipping.keep(n_records, lambda name: pa.chunked_array([_texts(cells_of(name))]))
        skipping.check()
        cells = {name: list(compress(column, keep)) for name, column in cells.items()}
    number_of = skipping.number_of
    made = {name: _cell_column(name, column, own[name], of_sheet, number_of) for name, column in cells.items()}
    found["fields"] = {name: own[name] for name in made if own[name] != FieldReading()}
    mixed = {name: column.mixed for name, column in made.items() if column.mixed}
    table = pa.table({name: column.values for name, column in made.items()})
    return table, skipping.noted(Receipt(reading, reading.model_copy(update=found), mixed))


def _cell_column(
    name: str, cells: Sequence[Any], how: FieldReading, of_sheet: bool, number_of: Callable[[int], int]
) -> CellColumn:
    """Return the cells of a column with their common type; null values are missing.

    In a spreadsheet an empty text is a missing value, and whole numbers are not a type of their own.
    """
    if of_sheet and set(map(type, cells)) == {float}:
        return CellColumn(pa.chunked_array([_sheet_numbers(np.fromiter(cells, np.float64, len(cells)))]), {})
    cells = _with_missing(cells, how.null_values, of_sheet)
    values, mixed = _of_one_type(cells, of_sheet), {}
    if values is None:
        mixed = dict(Counter(_WORDS[type(cell)] for cell in cells if cell is not None))
        values = _texts(cells)
    column = pa.chunked_array([values])
    if how.is_typed and pa.types.is_string(column.type):
        return CellColumn(typed_field(name, column, how, number_of), {})
    if how.is_typed and not pa.types.is_null(column.type):
        raise FileError(
            f"The texts of column {name!r} are to be read by a format of dates or marks of numbers, but its cells are "
            "not texts and have a type of their own. Leave these settings of the column out."
        )
    return CellColumn(column, mixed)


def _with_missing(cells: Sequence[Any], null_values: Sequence[str] | None, of_sheet: bool) -> Sequence[Any]:
    """Return the cells with None in place of null values and, in a spreadsheet, of empty texts."""
    if null_values:
        texts = pa.chunked_array([[cell if type(cell) is str else None for cell in cells]], pa.string())
        is_null = is_among(texts, null_values).to_pylist()
        cells = [None if null else cell for cell, null in zip(cells, is_null, strict=True)]
    return [None if cell == "" else cell for cell in cells] if of_sheet else cells


def _of_one_type(cells: Sequence[Any], of_sheet: bool) -> pa.Array | None:
    """Return the column if its cells have one type, or types of which one holds the other; otherwise None."""
    types = set(map(type, cells)) - {type(None)}
    if types <= {str}:
        return pa.array(cells, pa.string())
    if types == {float} and of_sheet:
        return _sheet_numbers(np.array(cells, dtype=np.float64))  # None becomes NaN, which no cell of a sheet is
    if types == {int, float}:
        is_exact = all(abs(cell) <= _EXACT for cell in cells if type(cell) is int)
        return pa.array([None if cell is None else float(cell) for cell in cells], pa.float64()) if is_exact else None
    if types == {date, datetime}:
        cells = [datetime(cell.year, cell.month, cell.day) if type(cell) is date else cell for cell in cells]
        types = {datetime}
    if types == {datetime}:
        return _coarsest(pa.array(cells, pa.timestamp("us")))
    if len(types) > 1:
        return None
    try:
        return pa.array(cells)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # large integers; lists or objects that differ
        return None


def _sheet_numbers(numbers: NDArray[np.float64]) -> pa.Array:
    """Return numbers of a spreadsheet, NaN where missing, as int64 if all of them are whole, else as float64."""
    missing = np.isnan(numbers)
    known = np.where(missing, 0.0, numbers)
    is_whole = (known == np.floor(known)).all() and (np.abs(known) <= _EXACT).all()
    return pa.array(known.astype(np.int64) if is_whole else known, mask=missing)


def _coarsest(times: pa.Array) -> pa.Array:
    """Return timestamps at the coarsest unit that holds them."""
    for unit in ("s", "ms"):
        try:
            return times.cast(pa.timestamp(unit))
        except pa.ArrowInvalid:
            continue
    return times


def _texts(cells: Sequence[Any]) -> pa.Array:
    return pa.array([None if cell is None else _as_text(cell) for cell in cells], pa.string())


def _as_text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= _EXACT:
        return str(int(cell))
    if isinstance(cell, dict | list):
        return text_of(cell)
    return cell.isoformat() if isinstance(cell, date | time) else str(cell)
