"""Workbooks: one sheet, with a header row, read by python-calamine and written by XlsxWriter (extra `excel`).

Messages name sheets, rows, columns and counts. They never show the content of a cell, nor of a header that may be a
record.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from shoal.distribution import optional
from shoal.errors import FileError, ParameterError, listed
from shoal.sources.binary_workbook import binary_sheets, scan_binary_sheet
from shoal.sources.clean import check_names, check_wanted
from shoal.sources.excel_writing import write_excel
from shoal.sources.format import Content, Format
from shoal.sources.glimpse import FIRST, LAST, Glimpse
from shoal.sources.python_values import cell_columns
from shoal.sources.reading import Reading
from shoal.sources.unpacking import SizeLimit
from shoal.sources.workbook_parts import (
    BINARY,
    OLD,
    OPEN_DOCUMENT,
    SheetCounts,
    SheetPart,
    check_open_document,
    check_workbook,
    damaged_workbook,
    encrypted_workbook,
    scan_sheet,
    sheets_of,
)
from shoal.spelling import setting

_SHOWN = 10
_LOOKED_AT = 50
_MOST_CELLS = 30  # of a row that is shown


class _Sheet(NamedTuple):
    """A sheet as it was loaded: its rows of cells, without the empty area around them."""

    name: str
    path: str
    rows: list[list[Any]]
    first_row: int
    first_column: int
    merged: list[tuple[tuple[int, int], tuple[int, int]]]

    def row(self, number: int) -> list[Any]:
        """Return a row by the number that Excel shows."""
        return self.rows[number - self.first_row]

    @property
    def last_row(self) -> int:
        """The last row with content."""
        return self.first_row + len(self.rows) - 1

    def __str__(self) -> str:
        return f"Sheet {self.name!r} of {self.path!r}"


def read_excel(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read one sheet of a workbook."""
    calamine, sheets, limit = _opened(path, reading)
    chosen, notes = _chosen(sheets, reading.sheet, path.name)
    ending, counts = path.suffix.lower(), SheetCounts()
    is_scanned = ending not in (OLD, OPEN_DOCUMENT)
    if is_scanned:
        counts = scan_binary_sheet(path, chosen, limit) if ending == BINARY else scan_sheet(path, chosen.part, limit)
    loaded = _loaded(calamine, path, chosen.name)
    loaded = loaded._replace(merged=[*loaded.merged, *counts.merged])
    head = reading.header_row if reading.header_row is not None or reading.names else _found_header(loaded)
    found, rows = _named(loaded, head, reading.names or ())
    places = {name: place for place, name in enumerate(found) if name is not None}
    check_names([name for name in found if name is not None])
    wanted = check_wanted(columns, list(places))

    def cells_of(name: str) -> list[Any]:
        return list(map(itemgetter(places[name]), rows))

    about = {"sheet": chosen.name, "header_row": head}
    table, receipt = cell_columns(cells_of, wanted, list(places), reading, of_sheet=True, **about)
    if not is_scanned:
        notes.append(
            "Rows and columns that are hidden are read like the others, formulas as the values stored with them."
        )
    notes = [*notes, *_notes(loaded, counts, head, found, len(rows))]
    return Content.of(table, replace(receipt, notes=tuple(notes)))


def sheet_names(path: Path, reading: Reading) -> list[str]:
    """Return the names of the sheets of a workbook."""
    return [sheet.name for sheet in _opened(path, reading)[1]]


def sheet_glimpse(path: Path, reading: Reading) -> Glimpse:
    """Return the first and last rows of the sheet that is read; of the first visible one while none is chosen."""
    calamine, sheets, _ = _opened(path, reading)
    visible = [sheet.name for sheet in sheets if not sheet.is_hidden]
    named = [sheet.name for sheet in sheets if sheet.name == reading.sheet]
    loaded = _loaded(calamine, path, (named or visible or [sheet.name for sheet in sheets])[0])
    rows = [
        (number, [_as_name(cell) or "" for cell in row[:_MOST_CELLS]])
        for number, row in enumerate(loaded.rows, loaded.first_row)
    ]
    head = min(max(reading.header_row or loaded.first_row, loaded.first_row), loaded.last_row)
    header = [_as_name(cell) or "" for cell in loaded.row(head)]
    return Glimpse(rows[:FIRST], rows[max(FIRST, len(rows) - LAST) :], header)


def _opened(path: Path, reading: Reading) -> tuple[Any, list[SheetPart], SizeLimit]:
    """Return the library, the sheets of a workbook that may be read, and the limit of its size."""
    calamine = optional("python_calamine", "Excel workbooks need python-calamine", "excel", FileError)
    check_workbook(path)
    limit, ending = SizeLimit(path, reading.max_unpacked_gb), path.suffix.lower()
    if ending == OPEN_DOCUMENT:
        check_open_document(path, limit)
    if ending in (OLD, OPEN_DOCUMENT):
        return calamine, _listed(calamine, path), limit
    return calamine, (binary_sheets if ending == BINARY else sheets_of)(path, limit), limit


def _listed(calamine: Any, path: Path) -> list[SheetPart]:
    """Return the sheets of a workbook that is not in Open XML."""
    with _workbook(calamine, path) as book:
        return [
            SheetPart(each.name, each.visible != calamine.SheetVisibleEnum.Visible, "")
            for each in book.sheets_metadata
            if each.typ == calamine.SheetTypeEnum.WorkSheet
        ]


@contextmanager
def _workbook(calamine: Any, path: Path) -> Iterator[Any]:
    try:
        with calamine.load_workbook(path) as book:
            yield book
    except calamine.PasswordError:
        raise encrypted_workbook(path) from None
    except (calamine.CalamineError, ValueError):
        raise damaged_workbook(path) from None
    except BaseException as error:
        # On a truncated .xls file the reader panics, which is no Exception of Python.
        if type(error).__name__ == "PanicException":
            raise damaged_workbook(path) from None
        raise


def _chosen(sheets: list[SheetPart], wanted: str | None, path: str) -> tuple[SheetPart, list[str]]:
    """Return the sheet to read, and what there is to say about the others; raise unless one sheet is meant."""
    visible = [sheet for sheet in sheets if not sheet.is_hidden]
    listed = ", ".join(f"{sheet.name!r}{' (hidden)' if sheet.is_hidden else ''}" for sheet in sheets[:_SHOWN])
    listed += f" and {len(sheets) - _SHOWN} more" if len(sheets) > _SHOWN else ""
    if wanted is not None:
        for sheet in sheets:
            if sheet.name == wanted:
                return sheet, [f"Sheet {wanted!r} is hidden in the workbook."] if sheet.is_hidden else []
        raise FileError(
            f"{path!r} has no sheet {wanted!r}. Sheets: {listed or 'none'}. Give one of them with {setting('sheet')}."
        )
    if len(visible) != 1:
        raise FileError(
            f"{path!r} has {len(visible)} visible sheets, and one is read. Sheets: {listed or 'none'}. Give one of "
            f"them with {setting('sheet')}."
        )
    hidden = [repr(sheet.name) for sheet in sheets if sheet.is_hidden]
    return visible[0], [f"The workbook has hidden sheets, which are not read: {', '.join(hidden)}."] if hidden else []


def _loaded(calamine: Any, path: Path, name: str) -> _Sheet:
    """Return the cells of a sheet; raise if it has none."""
    with _workbook(calamine, path) as book:
        sheet = book.get_sheet_by_name(name)
        rows, start, merged = sheet.to_python(), sheet.start, sheet.merged_cell_ranges or []
    if not rows or start is None:
        raise FileError(f"Sheet {name!r} of {path.name!r} is empty: it has neither a header nor records.")
    return _Sheet(name, path.name, rows, start[0] + 1, start[1] + 1, merged)


def _found_header(sheet: _Sheet) -> int:
    """Return the number of the header row if it is beyond doubt; otherwise raise, and name the likely row."""
    likely = _likely_header(sheet)
    advice = (
        f"If row {likely} is the header, give {setting('header_row', likely)}"
        if likely is not None
        else f"Give the number of the header row with {setting('header_row')}"
    )
    advice += f"; if the sheet has no header, give {setting('names', [...])}."
    if sheet.first_row > 1:
        raise FileError(f"{sheet} begins in row {sheet.first_row}, below blank rows. {advice}")
    head = sheet.rows[0]
    unnamed = [_letters(sheet.first_column + i) for i in _columns_without_name(sheet, head)]
    if unnamed:
        raise FileError(
            f"Row 1 of {_lower(sheet)} leaves column(s) {_few(unnamed)} without a name, as a title or merged cells "
            f"above a header do. {advice}"
        )
    odd = [_letters(sheet.first_column + i) for i, cell in enumerate(head) if not isinstance(cell, str)]
    if odd:
        raise FileError(
            f"Row 1 of {_lower(sheet)} looks like a record, not like a header: column(s) {_few(odd)} hold a number, a "
            f"date, true or false. If it is the header, give {setting('header_row', 1)}; if the sheet has no header, "
            f"give {setting('names', [...])}."
        )
    if _is_second_header(sheet):
        raise FileError(
            f"{sheet} has two rows that look like headers: rows 1 and 2 hold texts, and the rows below numbers or "
            f"dates in the same columns. Say which one names the columns: {setting('header_row', 1)}, then row 2 is a "
            f"record, or {setting('header_row', 2)}, then row 1 is left out."
        )
    return 1


def _likely_header(sheet: _Sheet) -> int | None:
    """Return the first row that has a text in every column."""
    for number, row in enumerate(sheet.rows[:_LOOKED_AT], sheet.first_row):
        if all(isinstance(cell, str) and cell.strip() for cell in row):
            return number
    return None


def _columns_without_name(sheet: _Sheet, head: list[Any]) -> list[int]:
    """Return the places of columns that have cells but no name."""
    return [i for i, cell in enumerate(head) if cell == "" and any(row[i] != "" for row in sheet.rows)]


def _is_second_header(sheet: _Sheet) -> bool:
    """Return whether row 2 has only texts, over a column without any other text."""
    if len(sheet.rows) < 3 or not all(isinstance(cell, str) and cell.strip() for cell in sheet.rows[1]):
        return False
    below = sheet.rows[2 : 2 + _LOOKED_AT]
    return any(
        all(not isinstance(row[i], str) or row[i] == "" for row in below) and any(row[i] != "" for row in below)
        for i in range(len(below[0]))
    )


def _named(sheet: _Sheet, head: int | None, names: tuple[str, ...]) -> tuple[list[str | None], list[list[Any]]]:
    """Return the names of the columns, None for an empty column, and the rows of records without blank ones."""
    if head is not None and not sheet.first_row <= head <= sheet.last_row:
        raise FileError(
            f"{setting('header_row', head)} is given, but {_lower(sheet)} has content in rows {sheet.first_row} to "
            f"{sheet.last_row}. Give one of these."
        )
    rows = sheet.rows if head is None else sheet.rows[head - sheet.first_row + 1 :]
    width = len(sheet.rows[0])
    rows = [row for row in rows if row[0] != "" or row.count("") < width]
    found = [None if head is None else _as_name(cell) for cell in (sheet.rows[0] if head is None else sheet.row(head))]
    used = [name is not None or any(row[i] != "" for row in rows) for i, name in enumerate(found)]
    if names:
        return _replaced(sheet, used, names), rows
    unnamed = [_letters(sheet.first_column + i) for i in range(width) if used[i] and found[i] is None]
    if unnamed:
        raise FileError(
            f"Row {head} of {_lower(sheet)} leaves column(s) {_few(unnamed)} without a name. Name them in the sheet, "
            f"or give {setting('names', [...])} (with {setting('header_row')} to replace that row by them)."
        )
    return found, rows


def _replaced(sheet: _Sheet, used: list[bool], names: tuple[str, ...]) -> list[str | None]:
    """Return the given names at the places of the columns that have content."""
    if len(names) != sum(used):
        raise ParameterError(
            f"{setting('names')} gives {len(names)} names, but {_lower(sheet)} has {sum(used)} columns with content."
        )
    given = iter(names)
    return [next(given) if is_used else None for is_used in used]


def _as_name(cell: Any) -> str | None:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell) if str(cell).strip() else None


def _notes(sheet: _Sheet, counts: SheetCounts, head: int | None, names: list[str | None], n_records: int) -> list[str]:
    """Say what is in the sheet that its records do not show."""
    first = sheet.first_row if head is None else head + 1
    notes = []
    if head is not None and head > sheet.first_row:
        notes.append(f"{head - sheet.first_row:,} row(s) above the header, in row {head}, are not read.")
    blank = sheet.last_row - first + 1 - n_records
    if blank:
        notes.append(f"{blank:,} blank row(s) between the records are left out.")
    merged = [ends for ends in sheet.merged if ends[1][0] + 1 >= first]
    if merged:
        notes.append(
            f"{len(merged):,} range(s) of merged cells: the first cell of each has the value, the others are read as "
            "missing."
        )
    if counts.hidden_rows:
        notes.append(f"{counts.hidden_rows:,} row(s) are hidden in the sheet, and read like the others.")
    hidden = [
        name
        for i, name in enumerate(names, sheet.first_column)
        if name is not None and any(low <= i <= high for low, high in counts.hidden_columns)
    ]
    if hidden:
        notes.append(f"Column(s) {', '.join(map(repr, hidden))} are hidden in the sheet, and read like the others.")
    if counts.formulas:
        notes.append(f"{counts.formulas:,} formula(s) are read as the values stored with them.")
    if counts.uncomputed:
        notes.append(
            f"{counts.uncomputed:,} formula(s) have no stored value and are read as missing. Open the workbook in "
            "Excel and save it to store them."
        )
    if counts.errors:
        odd = [
            name for i, name in enumerate(names, sheet.first_column) if name is not None and i in counts.error_columns
        ]
        of = f" of {listed(odd)}" if odd else ""
        notes.append(f"{counts.errors:,} cell(s){of} hold an error such as #N/A and are read as missing.")
    return notes


def _lower(sheet: _Sheet) -> str:
    return f"sheet {sheet.name!r} of {sheet.path!r}"


def _letters(number: int) -> str:
    """Return the letters of a column.

    Examples
    --------
    >>> _letters(1), _letters(28)
    ('A', 'AB')
    """
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


def _few(columns: list[str]) -> str:
    more = f" and {len(columns) - _SHOWN} more" if len(columns) > _SHOWN else ""
    return ", ".join(columns[:_SHOWN]) + more


EXCEL = Format(
    "xlsx",
    "Excel",
    (".xlsx", ".xlsm", BINARY, OLD, OPEN_DOCUMENT),
    read_excel,
    write_excel,
    "one sheet, values by the types of their cells, texts never as formulas",
    options=frozenset({"sheet", "header_row", "names", "null_values", "fields", "max_unpacked_gb"}),
    extra="excel",
    glimpse=sheet_glimpse,
    sheets=sheet_names,
    tells_empty=False,
    read_only=(".xlsm", BINARY, OLD, OPEN_DOCUMENT),
    own_reading={"header_row": 1},
    skips=True,
    loses="the difference between whole and other numbers, integers beyond 2^53, decimals of more than 15 digits, "
    "dates before March 1900, times finer "
    "than a millisecond, time zones, categories; an empty text is missing; formulas, formatting and other sheets",
)
