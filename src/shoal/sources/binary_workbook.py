"""Binary workbooks (.xlsb): the records of their parts, read as far as the reader of cells does not report them.

Types and fields of records are those of Microsoft's specification [MS-XLSB].
"""

import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from struct import unpack_from
from typing import BinaryIO
from xml.etree import ElementTree as ET

from shoal.errors import FileError
from shoal.sources.unpacking import SizeLimit
from shoal.sources.workbook_parts import SheetCounts, SheetPart, damaged_workbook, inflated, opened

_ROW, _CELL_ERROR, _FORMULAS, _FORMULA_ERROR = 0, 3, range(8, 12), 11
_CELLS = range(1, 12)
_UNREAD = {*range(12, 19), 62}
"""Cells without a column, and cells of rich text: the reader of cells skips them, in silence."""
_COLUMNS, _SIZE, _SHEET, _MERGED = 60, 148, 156, 176
_HIDDEN_ROW, _HIDDEN_COLUMN = 0x10, 1


def binary_sheets(path: Path, limit: SizeLimit) -> list[SheetPart]:
    """Return the sheets of a binary workbook that hold cells; raise if its parts are declared to be too large."""
    with opened(path) as archive, open(path, "rb") as file:
        limit.check(sum(part.file_size for part in archive.infolist()))
        parts = {
            relation.get("Id"): f"xl/{relation.get('Target', '')}"
            for relation in ET.fromstring(archive.read("xl/_rels/workbook.bin.rels"))
            if relation.get("Type", "").endswith("/worksheet")
        }
        found = []
        for kind, content in _records(path, file, archive.getinfo("xl/workbook.bin")):
            if kind == _SHEET:
                (state,) = unpack_from("<I", content)
                relation, at = _text(content, 8)
                name, _ = _text(content, at)
                if relation in parts:
                    found.append(SheetPart(name, state != 0, parts[relation]))
    return found


def scan_binary_sheet(path: Path, sheet: SheetPart, limit: SizeLimit) -> SheetCounts:
    """Decompress all binary parts of a workbook, and count what is in one sheet; raise beyond the limit.

    Raises
    ------
    FileError
        Also if the sheet has cells that the reader would skip.
    """
    found, n_rows, size = SheetCounts(), 0, 0
    with opened(path) as archive, open(path, "rb") as file:
        for part in archive.infolist():
            if PurePosixPath(part.filename).suffix != ".bin":
                continue
            if part.filename != sheet.part:
                for piece in inflated(file, part):
                    size += len(piece)
                    limit.check(size)
                continue
            for kind, content in _records(path, file, part):
                size += len(content) + 2
                limit.check(size)
                if kind in _UNREAD:
                    raise FileError(
                        f"Sheet {sheet.name!r} of {path.name!r} has cells in a short form that is not read. Open the "
                        "workbook in Excel and save it, or save it as .xlsx."
                    )
                n_rows = max(n_rows, _counted(found, kind, content))
    limit.check(n_rows * found.last_column * 32)
    return found


def _counted(found: SheetCounts, kind: int, content: bytes) -> int:
    """Count a record; return the number of rows that the sheet has at least."""
    if kind in _CELLS:
        found.last_column = max(found.last_column, unpack_from("<I", content)[0] + 1)
        found.formulas += kind in _FORMULAS
        found.errors += kind in (_CELL_ERROR, _FORMULA_ERROR)
    elif kind == _ROW:
        row, flags = unpack_from("<I7xB", content)
        found.hidden_rows += bool(flags & _HIDDEN_ROW)
        return int(row) + 1
    elif kind == _COLUMNS:
        first, last, flags = unpack_from("<II8xB", content)
        if flags & _HIDDEN_COLUMN:
            found.hidden_columns.append((first + 1, last + 1))
    elif kind == _SIZE:
        _, last_row, _, last_column = unpack_from("<IIII", content)
        found.last_column = max(found.last_column, last_column + 1)
        return int(last_row) + 1
    elif kind == _MERGED:
        top, bottom, left, right = unpack_from("<IIII", content)
        found.merged.append(((top, left), (bottom, right)))
    return 0


def _records(path: Path, file: BinaryIO, part: zipfile.ZipInfo) -> Iterator[tuple[int, bytes]]:
    """Yield the type and the content of each record of a part; raise if the last one is cut short."""
    rest = b""
    for piece in inflated(file, part):
        rest, at = rest + piece, 0
        with suppress(IndexError):  # a record that goes on in the next piece
            while at < len(rest):
                kind, start = _number(rest, at, 2)
                n_bytes, start = _number(rest, start, 4)
                if start + n_bytes > len(rest):
                    break
                yield kind, rest[start : start + n_bytes]
                at = start + n_bytes
        rest = rest[at:]
    if rest:
        raise damaged_workbook(path)


def _number(raw: bytes, at: int, most: int) -> tuple[int, int]:
    """Return a number of seven bits a byte, and the place behind it."""
    found = 0
    for place in range(most):
        byte = raw[at + place]
        # The bits of a type stand as they are, with the mark of continuation.
        found |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return found, at + place + 1
    return found, at + most


def _text(content: bytes, at: int) -> tuple[str, int]:
    (n_letters,) = unpack_from("<I", content, at)
    end = at + 4 + 2 * n_letters
    return content[at + 4 : end].decode("utf-16-le"), end
