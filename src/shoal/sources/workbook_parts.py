"""Parts of a workbook: its XML files inside a ZIP archive, checked before a reader loads them.

The archive is decompressed in pieces, so that neither a ZIP bomb nor a lone cell in the last corner of a sheet exhausts
the memory; and what a reader of cells does not report is counted: hidden rows and columns, formulas, errors.
"""

import re
import struct
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO, NamedTuple

from shoal.errors import FileError
from shoal.sources.unpacking import SizeLimit

OLD = ".xls"
"""Extension of workbooks of Excel 97 to 2003, which are no archives; a sheet has at most 65,536 rows of 256 cells."""

OPEN_DOCUMENT = ".ods"

BINARY = ".xlsb"
"""Extension of workbooks whose parts are binary (`shoal.sources.binary_workbook`)."""

_PIECE = 1 << 20
_BYTES_PER_CELL = 32
_MOST_ROWS = 1 << 20
_OLE = bytes.fromhex("d0cf11e0a1b11ae1")
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")
_RELATIONS = (
    "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id",
    "{http://purl.oclc.org/ooxml/officeDocument/relationships}id",  # of a workbook saved as strict Open XML
)

_FAR_COLUMN = re.compile(rb' r="([A-Z]{2,3})\d')
_ERROR = re.compile(rb' r="([A-Z]{1,3})\d+"[^<>]* t="e"')
_ROW = re.compile(rb' r="[A-Z]{0,3}(\d+)"')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row [^<>]*?hidden="(?:1|true)"')
_COLUMN = re.compile(rb"<(?:\w+:)?col [^<>]*>")
_BOUND = re.compile(rb'(min|max)="(\d+)"')
_UNCOMPUTED = re.compile(
    rb"(?:</(?:\w+:)?f>|<(?:\w+:)?f [^<>]*/>)(?:<(?:\w+:)?v ?/>|<(?:\w+:)?v></(?:\w+:)?v>)?</(?:\w+:)?c>"
)


class SheetPart(NamedTuple):
    """A sheet of cells: its name, whether it is hidden, and its XML file in the archive."""

    name: str
    is_hidden: bool
    part: str


@dataclass
class SheetCounts:
    """What was counted in the XML of a sheet."""

    hidden_rows: int = 0
    hidden_columns: list[tuple[int, int]] = field(default_factory=list)
    """First and last column of each hidden range, from 1."""
    formulas: int = 0
    uncomputed: int = 0
    """Formulas without a stored value."""
    merged: list[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    """First and last cell of each merged range, from 0, where the reader of cells does not report them."""
    errors: int = 0
    """Cells with an error, such as #N/A."""
    error_columns: set[int] = field(default_factory=set)
    """The columns that have some, from 1."""
    last_column: int = 26
    """At least 26, since single letters are not looked at."""

    def count(self, xml: bytes) -> None:
        """Count what is in a piece of the XML."""
        self.last_column = max(self.last_column, *map(_column_number, set(_FAR_COLUMN.findall(xml))), 0)
        if b't="e"' in xml:
            self.errors += xml.count(b't="e"')
            self.error_columns.update(map(_column_number, set(_ERROR.findall(xml))))
        if b"hidden=" in xml:
            self.hidden_rows += len(_HIDDEN_ROW.findall(xml))
            self.hidden_columns += [_bounds(tag) for tag in _COLUMN.findall(xml) if _is_hidden(tag)]
        if b"</f>" in xml or b"<f " in xml:
            self.formulas += xml.count(b"<f>") + xml.count(b"<f ")
            self.uncomputed += len(_UNCOMPUTED.findall(xml))


def check_workbook(path: Path) -> None:
    """Raise if a file is no workbook that can be read: encrypted, of another format, or truncated."""
    with open(path, "rb") as file:
        start = file.read(1 << 16)
    is_old = path.suffix.lower() == OLD
    if start.startswith(_OLE):
        if _ENCRYPTED in start or _ENCRYPTED in path.read_bytes():
            raise encrypted_workbook(path)
        if not is_old:
            raise FileError(f"{path.name!r} is a workbook of Excel 97 to 2003. Give it the extension {OLD}.")
    elif is_old or not zipfile.is_zipfile(path):
        raise damaged_workbook(path)


def encrypted_workbook(path: Path) -> FileError:
    """Return the error for a workbook that needs a password."""
    return FileError(
        f"{path.name!r} is encrypted: it opens with a password only. Open it in Excel, save a copy without the "
        "password (File, Info, Protect Workbook), and read the copy."
    )


def damaged_workbook(path: Path) -> FileError:
    """Return the error for a file that is no complete workbook."""
    return FileError(
        f"{path.name!r} is not a complete Excel workbook: it is truncated, damaged or of another format. Save it again."
    )


def sheets_of(path: Path, limit: SizeLimit) -> list[SheetPart]:
    """Return the sheets of a workbook that hold cells; raise if its parts are declared to be too large."""
    with opened(path) as archive:
        limit.check(sum(part.file_size for part in archive.infolist()))
        relations = {
            relation.get("Id"): relation.get("Target", "")
            for relation in ET.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
            if relation.get("Type", "").endswith("/worksheet")
        }
        elements = [
            element
            for element in ET.fromstring(archive.read("xl/workbook.xml")).iter()
            if element.tag.endswith("}sheet") and _relation(element) in relations
        ]
    targets = [relations[_relation(element)] for element in elements]
    return [
        SheetPart(
            element.get("name", ""),
            element.get("state", "visible") != "visible",
            target.lstrip("/") if target.startswith("/") else f"xl/{target}",
        )
        for element, target in zip(elements, targets, strict=True)
    ]


def _relation(sheet: ET.Element) -> str | None:
    return next((found for name in _RELATIONS if (found := sheet.get(name)) is not None), None)


def scan_sheet(path: Path, part: str, limit: SizeLimit) -> SheetCounts:
    """Decompress all XML of a workbook once, in pieces, and count what is in one sheet; raise beyond the limit."""
    found, size = SheetCounts(), 0
    with opened(path) as archive, open(path, "rb") as file:
        for each in archive.infolist():
            if PurePosixPath(each.filename).suffix not in (".xml", ".rels"):
                continue
            for piece in _whole_rows(inflated(file, each)):
                size += len(piece)
                limit.check(size)
                if each.filename == part:
                    found.count(piece)
    if found.last_column * _MOST_ROWS * _BYTES_PER_CELL > limit.n_bytes:  # then the number of rows matters
        limit.check(found.last_column * _last_row(path, part) * _BYTES_PER_CELL)
    return found


_REPEATED = re.compile(rb'number-(rows|columns)-repeated="(\d+)"')
_ROW_START = re.compile(rb"(?=<table:table-row\b)")
_HAS_VALUE = re.compile(rb"value-type=|<text:p")
_CELL = re.compile(rb"<table:(?:covered-)?table-cell[^>]*>(?:<text:p)?")


def check_open_document(path: Path, limit: SizeLimit) -> None:
    """Raise if a sheet of an OpenDocument file has more cells than the limit: a repeated row is stored once."""
    with opened(path) as archive, open(path, "rb") as file:
        size, n_rows, widest = 0, 0, 1
        for piece in _whole_rows(inflated(file, archive.getinfo("content.xml"))):
            size += len(piece)
            limit.check(size)
            for row in _ROW_START.split(piece):
                n_rows += _repeats(row.partition(b">")[0]) if row.startswith(b"<table:table-row") else 0
                if _HAS_VALUE.search(row):  # rows below the last value are not read
                    widest = max(widest, _width(row))
                    limit.check(n_rows * widest * _BYTES_PER_CELL)
                if b"<table:table " in row:
                    n_rows, widest = 0, 1


def _width(row: bytes) -> int:
    """Return the number of cells up to the last one with a value."""
    cells = _CELL.findall(row)
    while cells and not _HAS_VALUE.search(cells[-1]):
        cells.pop()
    return sum(map(_repeats, cells))


def _repeats(tag: bytes) -> int:
    found = _REPEATED.search(tag)
    return int(found[2]) if found else 1


def _last_row(path: Path, part: str) -> int:
    """Return the largest number of a row in the XML of a sheet."""
    with opened(path) as archive, open(path, "rb") as file:
        pieces = _whole_rows(inflated(file, archive.getinfo(part)))
        return max((int(row) for piece in pieces for row in set(_ROW.findall(piece))), default=0)


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open the archive; raise the same error for everything that damage can lead to."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (
        zipfile.BadZipFile,
        zlib.error,
        ET.ParseError,
        KeyError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        struct.error,
    ):
        raise damaged_workbook(path) from None


def inflated(file: BinaryIO, part: zipfile.ZipInfo) -> Iterator[bytes]:
    """Yield the content of a part to the end of its compressed data, whatever size the archive declares."""
    file.seek(part.header_offset + 26)
    lengths = file.read(4)
    file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
    if part.compress_type == zipfile.ZIP_STORED:
        yield file.read(part.compress_size)
        return
    if part.compress_type != zipfile.ZIP_DEFLATED:
        raise zipfile.BadZipFile("unknown compression")
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    left = part.compress_size
    while not inflate.eof:
        packed = inflate.unconsumed_tail or file.read(min(left, _PIECE))
        left -= 0 if inflate.unconsumed_tail else len(packed)
        piece = inflate.decompress(packed, _PIECE)
        if not piece and not packed:
            raise EOFError
        yield piece


def _whole_rows(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield XML in pieces that end where a row or the text ends, so that no cell is cut."""
    rest = b""
    for piece in pieces:
        rest += piece
        end = rest.rfind(b"row>") + 4
        if end > 3:
            yield rest[:end]
            rest = rest[end:]
        elif len(rest) > 16 * _PIECE:
            yield rest
            rest = b""
    yield rest


def _column_number(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _is_hidden(tag: bytes) -> bool:
    return b'hidden="1"' in tag or b'hidden="true"' in tag


def _bounds(tag: bytes) -> tuple[int, int]:
    found = {name: int(number) for name, number in _BOUND.findall(tag)}
    return found.get(b"min", 1), found.get(b"max", 1)
