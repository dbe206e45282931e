"""Lines: NDJSON or CSV as Arrow tables, and tables as lines.

Quasi-identifiers are parsed by their kind; columns that only pass through keep their text unchanged. A line that
cannot be used is reported by its number and a reason, never by its content.
"""

import csv
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.schema import Kind
from shoal.errors import SchemaError
from shoal.stream.batches import as_array, floats_of, is_plain
from shoal.stream.rules import Rules, refuse_misfit

NUMBER, TEXT, PASSED, NOTHING = range(4)
LINE = "shoal:line"
"""The column that holds the line number of a tuple. It appears in the side output only."""


class LineForm(StrEnum):
    """The format of the lines."""

    NDJSON = "ndjson"
    CSV = "csv"


class LineReason(StrEnum):
    """Why a line is not a tuple."""

    MALFORMED = "malformed-line"
    MISSING_KEY = "missing-key"
    UNKNOWN_KEY = "unknown-key"
    NOT_A_NUMBER = "not-a-number"
    NOT_UTF8 = "not-utf-8"
    NOT_A_DATE = "not-a-date"
    TOO_LONG = "line-too-long"


_REASONS = (
    LineReason.MALFORMED,
    LineReason.MISSING_KEY,
    LineReason.UNKNOWN_KEY,
    LineReason.NOT_A_NUMBER,
    LineReason.NOT_UTF8,
)


class Bad(NamedTuple):
    """A line that is not a tuple: its number in the input, from 1, why, the line itself, and where it begins."""

    number: int
    reason: LineReason
    content: bytes
    begin: int


class Read(NamedTuple):
    """Parsed lines: the tuples, the bytes of text they took, and the lines that are not tuples."""

    rows: pa.RecordBatch
    numbers: NDArray[np.int64]
    """The number of the line of each tuple."""
    begins: NDArray[np.int64]
    """Where in the text the line of each tuple begins."""
    n_bytes: int
    n_lines: int
    bad: list[Bad]

    def before(self, number: int) -> "Read":
        """Return the tuples of the lines before a given one."""
        n = int(np.searchsorted(self.numbers, number))
        return self._replace(rows=self.rows.slice(0, n), numbers=self.numbers[:n], begins=self.begins[:n], bad=[])


@dataclass(frozen=True)
class LineReading:
    """How columns are parsed, by the rules of the stream."""

    rules: Rules
    form: LineForm
    separator: str = ","

    @property
    def dates(self) -> tuple[str, ...]:
        """Quasi-identifiers that are dates."""
        return self.rules.of_kind(Kind.DATE)

    def how(self, name: str) -> int:
        """Return the type as which a column is parsed."""
        quasi = self.rules.quasi_identifiers or ()
        if name in quasi:
            is_number = name not in (*self.dates, *self.rules.of_kind(Kind.NOMINAL), *self.rules.ordinal)
            return NUMBER if is_number else TEXT
        return PASSED if name in (*self.rules.confidential, *self.rules.other, self.rules.subject) else NOTHING

    @property
    def names(self) -> list[str]:
        """The columns that have a role."""
        rules = self.rules
        roles = [*(rules.quasi_identifiers or ()), *rules.confidential, *rules.other, *rules.identifiers]
        return [*roles, *([rules.subject] if rules.subject and rules.subject not in roles else [])]


class Reader:
    """Parses text into tables, piece by piece."""

    def __init__(self, reading: LineReading, columns: list[str] | None = None) -> None:
        self.reading = reading
        self.columns = columns if columns is not None or reading.form is LineForm.CSV else reading.names
        self._date_types: dict[str, pa.DataType] = {}
        if self.columns is not None:
            self._start(self.columns)

    def _start(self, columns: list[str]) -> None:
        if not set(columns) & set(self.reading.names):  # a record, whose values no message may show
            raise SchemaError(
                "The first line of the input names none of the columns that have a role, so that it seems to be a "
                "record. Begin CSV with a header line; lines that are JSON objects are NDJSON."
            )
        refuse_misfit(columns, self.reading.names, (), "header")
        self.columns = columns
        self._how = [self.reading.how(name) for name in columns]
        is_csv = self.reading.form is LineForm.CSV
        self._reader = kernels.TextReader(columns, self._how, is_csv, self.reading.separator)

    def header(self, text: bytes, is_end: bool) -> int:
        """Parse the header of a CSV text, if it is complete; return its length in bytes."""
        end = text.find(b"\n") + 1 or (len(text) if is_end else 0)
        if end:
            line = text[:end].decode(errors="replace").rstrip("\r\n")
            self._start(next(csv.reader([line], delimiter=self.reading.separator), []))
        return end

    def read(self, text: bytes, is_end: bool, n_before: int) -> Read:
        """Parse the complete lines of a text that follows `n_before` other lines."""
        assert self.columns is not None
        parsed: Any = self._reader.read(text, is_end)
        n_bytes, n_lines, lines, columns, bad, begins = parsed
        faults = [Bad(n_before + line + 1, _REASONS[fault], text[begin:end], begin) for line, fault, begin, end in bad]
        arrays = {
            name: as_array(column) if how == NUMBER else self._as_texts(column)
            for name, how, column in zip(self.columns, self._how, columns, strict=True)
            if how != NOTHING
        }
        for name in self.reading.rules.ordinal:
            # A level is the text between the quotes in JSON.
            arrays[name] = pc.utf8_trim(arrays[name].cast(pa.large_string()), characters='"')
        numbers = lines.view(np.int64) + n_before + 1
        rows = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        read = Read(rows, numbers, begins.view(np.int64), n_bytes, n_lines, faults)
        for name in self.reading.dates:
            read = self._with_dates(read, name, text)
        return read

    def _as_texts(self, column: tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.uint8]]) -> pa.Array:
        """Return the fields of CSV as texts, and values of JSON as the bytes that spell them."""
        offsets, content, there = column
        mask = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
        kind = pa.large_string() if self.reading.form is LineForm.CSV else pa.large_binary()
        return pa.Array.from_buffers(kind, len(there), [mask, pa.py_buffer(offsets), pa.py_buffer(content)])

    def _with_dates(self, read: Read, name: str, text: bytes) -> Read:
        """Parse a column of texts as dates or times; where that fails, the line is not a tuple."""
        where = read.rows.schema.get_field_index(name)
        texts = pc.utf8_trim(read.rows.column(where).cast(pa.large_string()), characters='" ')
        dates, failed = self._as_dates(name, texts)
        rows = read.rows.set_column(where, name, dates)
        if not failed.any():
            return read._replace(rows=rows)
        starts = np.sort([*read.begins, *(line.begin for line in read.bad), read.n_bytes])
        ends = starts[np.searchsorted(starts, read.begins[failed], side="right")]
        bad = [
            Bad(int(number), LineReason.NOT_A_DATE, text[begin:end].rstrip(b"\r\n"), int(begin))
            for number, begin, end in zip(read.numbers[failed], read.begins[failed], ends, strict=True)
        ]
        return Read(
            rows.filter(pa.array(~failed)),
            read.numbers[~failed],
            read.begins[~failed],
            read.n_bytes,
            read.n_lines,
            [*read.bad, *bad],
        )

    def _as_dates(self, name: str, texts: pa.Array) -> tuple[pa.Array, NDArray[np.bool_]]:
        if name not in self._date_types:
            longest = pc.max(pc.utf8_length(texts)).as_py()
            if longest is None:
                return texts.cast(pa.timestamp("us")), np.zeros(len(texts), dtype=bool)
            self._date_types[name] = pa.date32() if longest <= 10 else pa.timestamp("us")
        return _as_dates(texts, self._date_types[name])


def _as_dates(texts: pa.Array, unit: pa.DataType) -> tuple[pa.Array, NDArray[np.bool_]]:
    failed = np.zeros(len(texts), dtype=bool)
    try:
        return texts.cast(unit), failed
    except pa.ArrowInvalid:
        dates = []
        for row, text in enumerate(texts):
            try:
                dates.append(text.cast(unit).as_py())
            except pa.ArrowInvalid:
                failed[row] = True
                dates.append(None)
    return pa.array(dates, unit), failed


class Writer:
    """Formats tables as text."""

    def __init__(self, form: LineForm, names: list[str], separator: str = ",") -> None:
        self.form = form
        self.names = names
        self._separator = separator
        self._writer = kernels.TextWriter(names, form is LineForm.CSV, separator)

    def header(self) -> bytes:
        """Return the line that names the columns of CSV."""
        if self.form is not LineForm.CSV:
            return b""
        out: list[str] = []
        csv.writer(_Lines(out), delimiter=self._separator, lineterminator="\n").writerow(self.names)
        return "".join(out).encode()

    def write(self, rows: pa.RecordBatch) -> bytes:
        """Return tuples as lines."""
        columns = [self._column(rows.column(name)) for name in self.names]
        return bytes(self._writer.write(columns, rows.num_rows))

    def _column(self, array: pa.Array) -> object:
        if is_plain(array):
            return floats_of(array)
        if pa.types.is_floating(array.type):
            filled = pc.fill_null(array, np.nan) if array.null_count else array
            return np.ascontiguousarray(filled.to_numpy(zero_copy_only=False), dtype=np.float64)
        if not pa.types.is_large_binary(array.type):
            array = self._spelled(array)
        there = np.ones(len(array), dtype=np.uint8)
        if array.null_count:
            there = np.asarray(pc.is_valid(array).to_numpy(zero_copy_only=False)).astype(np.uint8)
        _, offsets, content = array.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64)[array.offset : array.offset + len(array) + 1]
        # A table of no rows may come without buffers.
        has_content = content is not None and content.size > 0
        return (bounds, np.frombuffer(content, dtype=np.uint8) if has_content else np.zeros(1, dtype=np.uint8), there)

    def _spelled(self, array: pa.Array) -> pa.Array:
        """Return integers, dates and plain texts as they are written."""
        if self.form is LineForm.CSV and pa.types.is_large_string(array.type):
            return array.cast(pa.large_binary())
        texts = array.cast(pa.string())
        if self.form is LineForm.NDJSON and not pa.types.is_integer(array.type):
            texts = pc.binary_join_element_wise('"', texts, '"', "")
        return texts.cast(pa.large_string()).cast(pa.large_binary())


class _Lines:
    """A buffer for the csv module."""

    def __init__(self, out: list[str]) -> None:
        self._out = out

    def write(self, text: str) -> None:
        self._out.append(text)
