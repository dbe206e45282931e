"""CSV: delimited text files, parsed by pyarrow on all cores once the dialect is known, and written in that dialect."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from shoal.errors import FileError, ParameterError
from shoal.sources.clean import check_flat, check_names, check_texts, check_wanted
from shoal.sources.csv_dialect import (
    DELIMITERS,
    Piece,
    after_lines,
    as_utf8,
    check_header,
    find_delimiter,
    likely_header,
    lines_of_records,
    pieces,
    records,
    sample,
)
from shoal.sources.csv_lines import have_blanks, without_blanks, without_comments
from shoal.sources.csv_types import Types, TypesFound, infer
from shoal.sources.format import About, Content, Format, InParts, Parts, one_part
from shoal.sources.glimpse import text_glimpse
from shoal.sources.left_out import Skipping, all_skipped, are_skipped
from shoal.sources.reading import FieldReading, Reading, Receipt
from shoal.sources.unpacking import archived_endings, packed, packed_endings, unpacked
from shoal.spelling import setting

_ROWS_AT_ONCE = 1 << 16
_AT_ONCE = 1 << 24  # bytes of a file that are read at a time, about
# In parts: about so many bytes, with all that is made of them a part of any budget of memory; and the longest record.
_TEXT, _LONGEST = 1 << 23, 1 << 26
_SHOWN = 5
_MOST_BLOCK = (1 << 31) - 1


def read_csv(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read a delimited text file."""
    file = open_csv(path, reading)
    wanted = check_wanted(columns, file.names)
    skipping = Skipping(reading, file.names)
    texts, is_whole = pa.concat_tables(skipping.of_tables(file.texts, wanted)), len(wanted) == len(file.names)
    skipping.check()
    table, found = infer(texts, file.whole_file, file.own, path.name, is_whole=is_whole, number_of=skipping.number_of)
    return Content.of(table, skipping.noted(file.receipt(found)))


def read_csv_parts(path: Path, reading: Reading) -> Parts:
    """Read a delimited text file in parts: once, since the types follow from all values, and then part by part."""
    file = open_csv(path, reading)
    types = Types(file.whole_file, file.own)

    def texts(wanted: Sequence[str], skipping: Skipping | None = None) -> Iterator[pa.Table]:
        read = partial(file.texts, at_once=_TEXT, longest=_LONGEST)
        return (skipping or Skipping(reading, file.names)).of_tables(read, wanted)

    first = Skipping(reading, file.names)
    for part in texts(file.names, first):
        types.see(part)
    first.check()
    schema, found = types.decide(path.name, texts, first.number_of)
    receipt = first.noted(file.receipt(found))
    return Parts(schema, types.n_records, lambda wanted: map(types.typed, texts(wanted)), receipt)


def open_csv(path: Path, reading: Reading) -> "CsvFile":
    """Return a file whose dialect is known, from its beginning."""
    quote = '"' if reading.quote is None else reading.quote
    encoding = reading.encoding or "utf-8"
    above = 0 if reading.header_row is None else reading.header_row - 1
    blocks = as_utf8(unpacked(path, reading.max_unpacked_gb), encoding, path.name)
    start = sample(next(after_lines(blocks, above, path.name), b""), path.name)
    text = b"".join(without_comments([start.encode()], reading.comment, quote)).decode()
    if not text.strip():
        raise FileError(f"{path.name!r} is empty: it has neither a header nor records.")
    delimiter = reading.delimiter or find_delimiter(text, quote)
    for name in ("decimal", "comment"):
        if getattr(reading, name) == delimiter:
            raise ParameterError(f"{setting(name, delimiter)} cannot be used here: it is the delimiter.")
    strips = reading.blanks == "strip" or (reading.blanks is None and have_blanks(text, delimiter, quote))
    if strips:
        text = without_blanks(text.encode(), delimiter, quote).decode()
    # A comma-delimited file cannot have decimal commas, so there is nothing to detect.
    is_pointed = reading.decimal is None and delimiter == "," and reading.thousands != "."
    has_header = _has_header(reading)
    names = _names(text, delimiter, quote, path.name, reading)
    whole_file = reading.of_all.model_copy(update={"null_values": None, **({"decimal": "."} if is_pointed else {})})
    return CsvFile(
        *(path, delimiter, encoding, quote, strips, names, has_header, above + 1),
        *(reading, whole_file, reading.of_columns(names)),
    )


def write_csv_parts(tables: Iterable[pa.Table], path: Path, ending: str, like: About | None = None) -> None:
    """Write tables of the same columns one after another, as UTF-8 text that is quoted only where needed.

    An empty field is a missing value, `""` an empty string. Delimiter and decimal mark are those of the input, if it
    was CSV too.
    """
    found = Reading() if like is None else like.receipt.found
    delimiter, decimal = found.delimiter or ",", found.decimal or "."
    if ending.startswith(".tsv"):
        delimiter = "\t"
    elif ending.startswith(".csv") and delimiter == "\t":
        delimiter = ","
    if decimal == delimiter:
        decimal = "."
    with open(path, "wb") as file, packed(file, ending) as out:
        for number, table in enumerate(tables):
            check_flat(table.schema)
            check_texts(table, "CSV")
            for piece in _lines(table, delimiter, decimal, header=number == 0):
                out.write(piece)


@dataclass(frozen=True)
class CsvFile:
    """A file whose dialect is known, which is read a piece at a time."""

    path: Path
    delimiter: str
    encoding: str
    quote: str
    strips: bool
    """Whether blanks around fields are left out."""
    names: tuple[str, ...]
    has_header: bool
    first_line: int
    """Number of the first line that is read, from 1."""
    given: Reading
    whole_file: FieldReading
    """How the fields of all columns are read, if they have no settings of their own."""
    own: dict[str, FieldReading]
    """The settings of each column."""

    def receipt(self, found: TypesFound) -> Receipt:
        """Return how the file was read, with what was decided on its columns."""
        dialect = {"delimiter": self.delimiter, "encoding": self.encoding, "quote": self.quote}
        # Marks and formats for all columns stand with the columns that were read by them.
        every: dict[str, Any] = {
            **dialect,
            "header": self.has_header,
            "thousands": None,
            "date_format": None,
            "unit": None,
        }
        every |= {"decimal": found.decimal, "fields": found.fields, "blanks": "strip" if self.strips else None}
        told = "Blanks beside the delimiter are not read as parts of the fields."
        notes = (told,) if self.strips and self.given.blanks is None else ()
        return Receipt(self.given, self.given.model_copy(update=every), thousandths=found.thousandths, notes=notes)

    def texts(self, wanted: Sequence[str], at_once: int = _AT_ONCE, longest: int | None = None) -> Iterator[pa.Table]:
        """Yield columns of text, of about `at_once` bytes of the file at a time.

        Records that are left out by their numbers may have any number of fields; they are yielded without values.

        Raises
        ------
        FileError
            If a record has too many or too few fields, at the end of the file; if a quote is misplaced, bytes do not
            match the encoding or a record has more than `longest` bytes, when this is met.
        """
        blocks = as_utf8(unpacked(self.path, self.given.max_unpacked_gb, at_once), self.encoding, self.path.name)
        above = self.first_line - 1
        blocks = after_lines(blocks, above, self.path.name)
        blocks = without_comments(blocks, self.given.comment, self.quote, in_lines=len(self.names) > 1)
        broken, is_first, n_seen = _Broken(), True, -1 if self.has_header else 0
        for piece in pieces(blocks, self.quote, self.delimiter, self.path.name, longest, above, strips=self.strips):
            if is_first:
                piece = piece.without_empty_lines()
            if not piece.raw:
                continue
            table, odd = self._split(piece, wanted)
            broken.add(piece, self.quote, n_seen, odd, self.given.skip_rows)
            if odd and not broken.n_records:
                table = _with_gaps(table, [number - 1 for number, _ in odd])
            if not broken.n_records:
                yield table.slice(1 if self.has_header and is_first else 0)
            is_first, n_seen = False, n_seen + table.num_rows
        if broken.n_records:
            raise broken.error(self.path.name, len(self.names), self.given.skip_rows)

    def _split(self, piece: Piece, wanted: Sequence[str]) -> tuple[pa.Table, list[tuple[int, int]]]:
        """Split records on all cores; return also the numbers and widths of those with too many or too few fields."""
        block = 1 << 20
        while True:
            n_broken = 0

            def count(row: Any) -> str:
                nonlocal n_broken
                n_broken += 1
                return "skip"

            try:
                table = self._parse(piece, wanted, block, count, threads=True)
            except pa.ArrowInvalid:
                # The only remaining cause of failure is a record larger than a block.
                if block >= min(len(piece.raw), _MOST_BLOCK):
                    raise FileError(
                        f"{self.path.name!r} cannot be read as CSV. Check its delimiter and its quotes."
                    ) from None
                block = min(block * 8, _MOST_BLOCK)
                continue
            rows: list[tuple[int, int]] = []
            if n_broken:  # read again on one thread to find which they are
                self._parse(piece, wanted, block, partial(_note_row, rows), threads=False)
            return table, rows

    def _parse(self, piece: Piece, wanted: Sequence[str], block: int, invalid: Any, *, threads: bool) -> pa.Table:
        return pyarrow.csv.read_csv(
            pa.BufferReader(piece.raw),
            # The header is parsed as a record too, so that its number of fields is checked.
            pyarrow.csv.ReadOptions(use_threads=threads, block_size=block, column_names=list(self.names)),
            pyarrow.csv.ParseOptions(
                delimiter=self.delimiter,
                quote_char=self.quote or False,
                newlines_in_values=piece.has_quotes,
                # In a file of one column an empty line is a missing value.
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=invalid,
            ),
            pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(self.names, pa.string()),
                include_columns=list(wanted),
                null_values=["", *(self.given.null_values or ())],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _note_row(rows: list[tuple[int, int]], row: Any) -> str:
    rows.append((row.number, row.actual_columns))
    return "skip"


def _with_gaps(table: pa.Table, places: list[int]) -> pa.Table:
    """Return a table with records without values at some places."""
    is_gap = np.zeros(table.num_rows + len(places), dtype=bool)
    is_gap[places] = True
    return table.take(pa.array(np.cumsum(~is_gap) - 1, mask=is_gap))


class _Broken:
    """Records that do not have as many fields as the header and are not left out."""

    def __init__(self) -> None:
        self.n_records, self._n_marked = 0, 0
        self._lines: list[int] = []
        self._numbers: list[int] = []
        self._widths: set[int] = set()

    def add(self, piece: Piece, quote: str, before: int, rows: list[tuple[int, int]], skipped: str | None) -> None:
        """Take the numbers and widths of such records of a piece; `before` records come before it."""
        if not rows:
            return
        left_out = are_skipped(skipped, [before + number for number, _ in rows])
        rows = [row for row, is_left_out in zip(rows, left_out, strict=True) if not is_left_out]
        self.n_records += len(rows)
        self._widths.update(width for _, width in rows)
        numbers = [number for number, _ in rows[: _SHOWN - len(self._lines)]]
        found = lines_of_records(piece.raw, quote, numbers)
        self._lines += [piece.line + line for line in found]
        if found:
            lines = piece.raw.splitlines()
            self._n_marked += sum(lines[line - 1].startswith(b"#") for line in found)
        self._numbers += [before + number for number in numbers]

    def error(self, path: str, n_fields: int, skipped: str | None) -> FileError:
        """Return the error that names them."""
        is_all = self.n_records == len(self._lines)
        more = "" if is_all else f" and {self.n_records - len(self._lines)} more"
        rows = all_skipped(skipped, self._numbers)
        leave_out = f" leave them out with {setting('skip_rows', rows)}," if is_all else ""
        is_comment = f"If lines that begin with '#' are comments, give {setting('comment', '#')}; otherwise correct"
        advice = is_comment if self._n_marked else "Correct"
        return FileError(
            f"{self.n_records} records of {path!r} do not have {n_fields} fields, as the header has, but "
            f"{' or '.join(map(str, sorted(self._widths)[:_SHOWN]))}: line(s) "
            f"{', '.join(map(str, self._lines))}{more}. {advice} these lines (a delimiter within a field needs "
            f"quotes),{leave_out} or give {setting('delimiter')} or {setting('quote')}."
        )


def _has_header(reading: Reading) -> bool:
    if reading.header is False and not reading.names:
        raise ParameterError(
            f"{setting('header', False)} means that the file has no header line; then {setting('names', [...])} must "
            "name its columns."
        )
    return bool(reading.header or reading.header_row) if reading.names else True


def _names(text: str, delimiter: str, quote: str, path: str, reading: Reading) -> tuple[str, ...]:
    """Return the column names, given or read from the header."""
    first, names = next(iter(records(text, delimiter, quote)), []), reading.names
    if not names:
        line = reading.header_row or 1
        # A line that was named is the header; only what it cannot be is refused.
        tried = DELIMITERS if reading.delimiter is None else (delimiter,)
        likely = None if reading.header_row else likely_header(text, quote, tried)
        if likely is None and len(first) == 1 and not reading.header_row:
            likely = likely_header(text, quote, tried, of_numbers=True)
        check_header(first, path, trusted=bool(reading.header or reading.header_row), line=line, likely=likely)
        return tuple(first)
    if len(names) != len(first):
        raise ParameterError(
            f"{setting('names')} gives {len(names)} names, but the first line of {path!r} that is read has "
            f"{len(first)} fields."
        )
    check_names(names)
    return names


def _lines(table: pa.Table, delimiter: str, decimal: str, header: bool) -> Iterator[memoryview]:
    """Yield the bytes of the file in chunks of records."""
    special = ('"', "\n", "\r", delimiter)
    names = pa.table([pa.array([name]) for name in table.column_names], names=table.column_names)
    for start in (*([-1] if header else []), *range(0, table.num_rows, _ROWS_AT_ONCE)):
        rows = names if start < 0 else table.slice(start, _ROWS_AT_ONCE)
        fields = [_field(column, decimal, special) for column in rows.columns]
        lines = pc.binary_join_element_wise(*fields, _text(delimiter), null_handling="replace", null_replacement="")
        ended = pc.binary_join_element_wise(lines, _text("\n"), _text(""))
        yield from (_content(chunk) for chunk in ended.chunks)


def _field(column: pa.ChunkedArray, decimal: str, special: tuple[str, ...]) -> pa.ChunkedArray:
    text = _as_text(column, decimal)
    # Numbers and dates contain none of the usual special characters, and searching for them would double the time.
    is_text = (
        pa.types.is_dictionary(column.type) or pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    )
    return _quoted(text, special) if is_text or special[-1] not in DELIMITERS else text


def _as_text(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Format each value so that it can be read back exactly."""
    text = pc.cast(column, pa.large_string())
    if not pa.types.is_floating(column.type):
        return text
    # A float keeps its decimal point even where its value is whole. (The n matches nan and inf.)
    pointed = _holds_any(text, (".", "e", "n"))
    text = pc.if_else(pointed, text, pc.binary_join_element_wise(text, _text(".0"), _text("")))
    return pc.replace_substring(text, ".", decimal) if decimal != "." else text


def _quoted(text: pa.ChunkedArray, special: tuple[str, ...]) -> pa.ChunkedArray:
    """Quote strings that contain a special character, and empty strings, which are not missing."""
    needs = pc.or_(_holds_any(text, special), pc.equal(text, ""))
    if not pc.any(needs).as_py():
        return text
    inner = pc.replace_substring(text, '"', '""')
    return pc.if_else(needs, pc.binary_join_element_wise(_text('"'), inner, _text('"'), _text("")), text)


def _holds_any(text: pa.ChunkedArray, parts: tuple[str, ...]) -> pa.ChunkedArray:
    return reduce(pc.or_, (pc.match_substring(text, part) for part in parts))


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _content(lines: pa.LargeStringArray) -> memoryview:
    """Return the concatenated strings of an array without copying them."""
    _, offsets, data = lines.buffers()
    at = memoryview(offsets).cast("q")
    return memoryview(data or b"")[at[lines.offset] : at[lines.offset + len(lines)]]


_ENDINGS = (".csv", ".tsv", ".txt")
_OPTIONS = frozenset(
    {
        *("delimiter", "encoding", "decimal", "quote", "null_values", "header", "header_row", "names", "thousands"),
        *("date_format", "unit", "fields", "comment", "blanks", "max_unpacked_gb"),
    }
)
CSV = Format(
    "csv",
    "CSV",
    packed_endings(*_ENDINGS),
    read_csv,
    one_part(write_csv_parts),
    "the same delimiter and decimal mark, UTF-8",
    options=_OPTIONS,
    in_parts=InParts(read_csv_parts, _ENDINGS, _OPTIONS),
    write_parts=write_csv_parts,
    read_only=archived_endings(*_ENDINGS),
    own_reading={"header": True, "blanks": "keep"},
    glimpse=text_glimpse,
    skips=True,
    loses="types, which are inferred again; categories, labels",
)
