"""Tables: read any file or frame, and return or write the same kind.

Internally a table is a `pyarrow.Table`. Files are recognised by their extension, frames by their type. Each format is
one file in this folder and one entry in `KINDS`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike

from shoal.errors import FileError, ParameterError
from shoal.files import replacing, sha256
from shoal.sources.clean import as_permutation, check_wanted, plain, publishable, reordered
from shoal.sources.csv import CSV, Reading
from shoal.sources.databases import DATABASES, Place, place_of, read_database, shared
from shoal.sources.databases.connection import Connection, Origin
from shoal.sources.databases.database import Database
from shoal.sources.excel import EXCEL
from shoal.sources.format import Format, Notes
from shoal.sources.frames import Back, from_frame, without_types
from shoal.sources.labelled_files import ValueLabels
from shoal.sources.ndjson import NDJSON
from shoal.sources.parquet_arrow import ARROW, PARQUET, ParquetColumns, parquet_types, read_parquet
from shoal.sources.parquet_rewrite import rewrite_parquet, rewrite_parquet_into
from shoal.sources.sas import SAS
from shoal.sources.source_stamps import Stamp, check_stamp, sha256_of_records
from shoal.sources.spss_stata import SPSS, STATA
from shoal.sources.standard_input import DASH, standard_input

__all__ = [
    "DATABASES",
    "FORMATS",
    "KINDS",
    "Reading",
    "Table",
    "ValueLabels",
    "databases_in_words",
    "format_of",
    "formats_in_words",
    "inputs_of",
    "output_format_of",
    "read",
    "refuse_unused",
    "rewrite_parquet",
    "rewrite_parquet_into",
    "shown",
    "write",
    "write_into",
]


KINDS = (CSV, NDJSON, EXCEL, PARQUET, ARROW, SPSS, STATA, SAS)
"""File formats: one line here, one file in this folder."""

FORMATS = {ending: kind for kind in KINDS for ending in kind.endings}
"""File formats by extension."""


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """An input table.

    Attributes
    ----------
    types : pyarrow.Schema
        Names and types of the columns.
    n_records : int
        Number of records.
    kind : str
        csv, ndjson, xlsx, parquet, arrow, sav, dta or sas for files; postgresql, sqlite or duckdb for databases;
        pandas, polars, pyarrow, duckdb ... for frames.
    path : Path or None
        Path of the file.
    reading : Reading or None
        Options with which a CSV file was read.
    labels : ValueLabels or None
        Labels from an SPSS, Stata or SAS file; comments on the columns of a table in a database.
    said : tuple of str
        Notes of the reader on what the records do not show, such as hidden rows.
    mixed : mapping of str to (mapping of str to int)
        Columns that hold values of several types, and the number of values of each.
    index : tuple of str
        Columns that came from the index of a pandas frame.
    stamp : Stamp or None
        Size, modification time and inode of the file when it was opened.
    origin : Origin or None
        The database and the tables in it that were read.
    """

    types: pa.Schema
    n_records: int
    kind: str
    path: Path | None = None
    reading: Reading | None = None
    labels: ValueLabels | None = None
    said: tuple[str, ...] = ()
    mixed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    index: tuple[str, ...] = ()
    stamp: Stamp | None = None
    origin: Origin | None = None
    _load: Callable[[Sequence[str]], pa.Table] = field(kw_only=True)
    _back: Back | None = field(default=None, kw_only=True)

    @staticmethod
    def of(arrow: pa.Table, kind: str, **about: Any) -> "Table":
        """Return a table whose records are in memory."""
        records = plain(arrow)
        return Table(records.schema, int(records.num_rows), kind, _load=records.select, **about)

    @property
    def has_fields(self) -> bool:
        """Whether the texts of a column can be read in another way, as numbers or dates."""
        return any(kind.name == self.kind and "fields" in kind.options for kind in KINDS)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.types.names)

    @cached_property
    def arrow(self) -> pa.Table:
        """All records, without metadata."""
        return self.load(self.names)

    def load(self, names: Sequence[str]) -> pa.Table:
        """Return the named columns, without metadata. Columns of a Parquet file are read now and not cached."""
        self._check_stamp()
        found = self._load(names)
        self._check_stamp()
        return found

    def in_memory(self) -> "Table":
        """Return the same table with all columns read, so that none is read again."""
        return replace(self, _load=self.arrow.select)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes, or of the records of a frame or database; computed on first use."""
        if self.path is None:
            return sha256_of_records(self.arrow)
        found = sha256(self.path)
        self._check_stamp()
        return found

    def seal(self) -> "Table":
        """Compute the SHA-256 now, so that `check_unchanged` can compare with it later."""
        assert self.sha256
        return self

    def check_unchanged(self) -> None:
        """Raise if a file has changed since it was opened, or a frame since its SHA-256 was computed."""
        self._check_stamp()
        # What a database returned is one snapshot, which nothing else can change.
        if self.path is None and self.origin is None and sha256_of_records(self.arrow) != self.sha256:
            raise FileError(
                "The frame has changed since it was passed in. Nothing was written. Start again, and do not modify the "
                "frame until the release is written."
            )

    def _check_stamp(self) -> None:
        if self.path is not None and self.stamp is not None:
            check_stamp(self.path, self.stamp)

    def like(self, arrow: pa.Table, *, own_types: bool = True) -> Any:
        """Return `arrow` as the same kind of frame as the input; for a file, as a `pyarrow.Table`.

        Metadata and unused categories are left out. With ``own_types=False``, the dtypes of the input frame are not
        restored, since a single record can determine them.
        """
        released = publishable(arrow)
        if self._back is None:
            return released
        return (self._back if own_types else without_types(self._back))(released)

    def __repr__(self) -> str:
        return f"Table({self.kind!r}, {self.n_records} records x {len(self.names)} columns)"


def read(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    quote: str | None = None,
    null_values: Sequence[str] | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    thousands: str | None = None,
    date_format: str | None = None,
    fields: Mapping[str, Any] | None = None,
    fill_keys: bool | None = None,
    sheet: str | None = None,
    header_row: int | None = None,
    catalog: str | None = None,
    format: str | None = None,
    max_unpacked_gb: float | None = None,
    table: str | None = None,
    query: str | None = None,
) -> Table:
    r"""Read a table: a file by its path, a database by its address, or a frame.

    Parameters
    ----------
    source : path, address, frame or connection
        A file in one of the formats of `FORMATS`, ``"-"`` for standard input, a pandas, polars or pyarrow frame or
        dataset, a DuckDB relation, or anything with the Arrow C stream interface; a database, by its address or file
        (``postgresql://host/db``, ``people.db``, ``people.duckdb``) or by an ADBC or DuckDB connection; a `Table`.
    columns : sequence of str, optional
        Columns to read, in this order. Other columns of a Parquet file are not read.
    delimiter : str, optional
        Delimiter of a CSV file; detected among ``,`` ``;`` tab and ``|`` by default.
    encoding : str, optional
        Encoding of a CSV, NDJSON, SPSS, Stata or SAS file. The default for CSV is UTF-8, with or without byte order
        mark.
    decimal : {".", ","}, optional
        Decimal mark of a CSV file; detected by default.
    quote : str, optional
        Quote character of a CSV file, ``"`` by default; an empty string disables quoting.
    null_values : sequence of str, optional
        Strings in a CSV, Excel or NDJSON file that mean a missing value, in addition to an empty field.
    header : bool, optional
        True: the first line of the CSV file is a header even if it looks like a record.
    names : sequence of str, optional
        Column names for a CSV file or a sheet without a header; with ``header=True`` or `header_row`, they replace it.
    thousands : str, optional
        Thousands separator of numbers in a CSV file, as in 1,234.50: ``,``, ``.``, ``'`` or a space.
    date_format : str, optional
        Date format in a CSV file, such as ``%d.%m.%Y``, in addition to ISO 8601. Columns that match it become dates.
    fields : dict of str to dict, optional
        ``null_values``, ``decimal``, ``thousands`` and ``date_format`` of individual columns of a CSV, Excel or NDJSON
        file, as in ``{"born": {"date_format": "%d.%m.%Y", "null_values": ["NA"]}}``. Every value of the column must
        match. Null values of a column apply to quoted fields as well.
    fill_keys : bool, optional
        True: keys that some lines of an NDJSON file lack are missing values there.
    sheet : str, optional
        Sheet of an Excel workbook; by default its only visible one.
    header_row : int, optional
        Row of the sheet that names the columns, counted from 1 as in Excel. By default the first row, if it is a
        header beyond doubt. Rows above it are not read.
    catalog : path, optional
        Catalogue (.sas7bcat) with the labels of the values of a .sas7bdat file.
    format : str, optional
        Format of standard input, by the extension that a file would have, without its first dot; detected by default.
    max_unpacked_gb : float, optional
        Largest size, in GB (10^9 bytes), to which a file that can expand may unpack; 2 by default.
    table : str, optional
        Table or view of a database, as NAME or SCHEMA.NAME.
    query : str, optional
        SELECT statement for a database, in place of `table`. One that writes is refused.

    Returns
    -------
    table : Table

    Raises
    ------
    FileError
        If the file is missing, empty, damaged, in another encoding, without a header, or has malformed records.
    SchemaError
        If two columns have the same name or a requested column is missing.
    ParameterError
        If `source` is not a table, an option does not apply to it, or an address holds a password.
    DatabaseError
        If a database does not answer, does not have the table, or does not permit reading it.

    Examples
    --------
    >>> from shoal import datasets
    >>> table = read(datasets.path("census"), columns=["AFNLWGT", "AGI"])
    >>> table
    Table('csv', 1080 records x 2 columns)
    >>> table.reading.delimiter
    ','
    """
    options = {
        **{"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "quote": quote},
        **{"null_values": null_values, "header": header, "names": names, "max_unpacked_gb": max_unpacked_gb},
        **{"thousands": thousands, "date_format": date_format, "fields": fields or None},
        **{"fill_keys": fill_keys, "sheet": sheet, "header_row": header_row, "catalog": catalog, "format": format},
        **{"table": table, "query": query},
    }
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(source, str | os.PathLike):
        place = place_of(source)
        return _read_file(source, columns, given) if place is None else _read_place(place, columns, given)
    connection = shared(source)
    if connection is not None:
        return _read_connection(*connection, columns, given)
    refuse_unused(given, frozenset(), type(source).__name__)
    if isinstance(source, Table):
        names = source.names if columns is None else check_wanted(columns, source.names)
        return replace(source, types=pa.schema([source.types.field(name) for name in names]))
    frame = from_frame(source, columns)
    return Table.of(frame.arrow, frame.kind, index=frame.index, _back=frame.back)


def write(
    arrow: pa.Table,
    path: str | os.PathLike[str],
    *,
    like: Table | None = None,
    force: bool = False,
    order: ArrayLike | None = None,
) -> None:
    r"""Write a table to a file atomically.

    Parameters
    ----------
    arrow : pyarrow.Table of n records
        Table to write. Metadata and unused categories are left out.
    path : path
        Output file; its extension determines the format.
    like : Table, optional
        The input table: CSV is written with its delimiter and decimal mark, SPSS and Stata files with its labels.
    force : bool
        Overwrite an existing file.
    order : array_like of shape (n,), optional
        A permutation: record `order[i]` is written as row i. By default records keep their order.

    Raises
    ------
    FileError
        If the file exists, cannot be written, or cannot hold the table.

    Notes
    -----
    The same table gives the same bytes. Text is written unchanged, including values that a spreadsheet would interpret
    as a formula (``=``, ``+``, ``-``, ``@``).

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cities.csv"
    >>> write(pa.table({"city": ["Turin", None], "size": [0.5, 2.0]}), path)
    >>> path.read_text()
    'city,size\nTurin,0.5\n,2.0\n'
    """
    output_format_of(path)
    with replacing(path, force, inputs=inputs_of(like)) as temporary:
        write_into(arrow, temporary, like=like, order=order)


def inputs_of(table: Table | None) -> list[Path]:
    """Return the file that a table was read from, which must not be overwritten; an empty list for a frame."""
    if table is None:
        return []
    return [*([] if table.path is None else [table.path]), *([] if table.origin is None else table.origin.files)]


def write_into(
    arrow: pa.Table, path: str | os.PathLike[str], *, like: Table | None = None, order: ArrayLike | None = None
) -> None:
    """Write a table directly to `path`, overwriting it: for a path from `shoal.files.replacing_all`."""
    ending, kind = output_format_of(path)
    ordered = arrow if order is None else reordered(arrow, as_permutation(order, arrow.num_rows))
    try:
        kind.write(publishable(ordered), Path(path), ending, like and (like.reading or like.labels))
    except pa.ArrowException:  # its message may contain a value
        raise FileError(
            f"The table has a column of a type that a {ending} file cannot hold. Convert it, or choose another format."
        ) from None


def format_of(path: str | os.PathLike[str]) -> tuple[str, Format]:
    """Return the extension of a file and its format; raise if the extension is unknown."""
    place = place_of(path)
    if place is not None:
        raise FileError(
            f"{str(place.address)!r} is a database, and this is written to a file. Give the path of a file."
        )
    name = Path(path).name.lower()
    for ending in sorted(FORMATS, key=len, reverse=True):
        if name.endswith(ending):
            return ending, FORMATS[ending]
    hint = next((hint for ending, hint in _HINTS.items() if name.endswith(ending)), "")
    raise FileError(
        f"{Path(path).name!r} does not end in a known file extension.{hint} Extensions: {', '.join(FORMATS)}."
    )


_HINTS = {
    **dict.fromkeys((".xls", ".xlsb", ".ods"), " Save it as .xlsx in a spreadsheet program."),
    ".json": " If it has one JSON object a line, name it .ndjson.",
    ".sas7bcat": " It is a catalogue: read the table, and give this file with catalog=.",
    ".por": " Save it as .sav in SPSS.",
}


def output_format_of(path: str | os.PathLike[str]) -> tuple[str, Format]:
    """Return the extension of a file and its format; raise if files of this extension are not written."""
    ending, kind = format_of(path)
    if ending in kind.read_only:
        raise FileError(
            f"{Path(path).name!r} cannot be written: {ending} files are read only. Choose another extension, for "
            f"instance {' or '.join(kind.written)}."
        )
    return ending, kind


def formats_in_words() -> str:
    """Return the list of formats as text.

    Examples
    --------
    >>> formats_in_words()
    'CSV, NDJSON, Excel, Parquet, Arrow, SPSS, Stata or SAS'
    """
    titles = list(dict.fromkeys(kind.title for kind in KINDS))
    return f"{', '.join(titles[:-1])} or {titles[-1]}"


def databases_in_words() -> str:
    """Return the list of databases as text.

    Examples
    --------
    >>> databases_in_words()
    'PostgreSQL, SQLite or DuckDB'
    """
    titles = [database.title for database in DATABASES]
    return f"{', '.join(titles[:-1])} or {titles[-1]}"


def shown(source: str | os.PathLike[str]) -> str:
    """Return a short name of a file or a database, for progress."""
    if os.fspath(source) == DASH:
        return "standard input"
    place = place_of(source)
    return Path(source).name if place is None else str(place.address)


def _read_file(source: str | os.PathLike[str], columns: Sequence[str] | None, given: dict[str, Any]) -> Table:
    if os.fspath(source) != DASH:
        return _read_path(Path(source), columns, given)
    path, said = standard_input(given.pop("format", None), FORMATS)
    table = _read_path(path, columns, given)
    return replace(table, said=(*said, *table.said))


def _read_path(path: Path, columns: Sequence[str] | None, given: dict[str, Any]) -> Table:
    if os.path.isdir(path):
        raise FileError(
            f"{str(path)!r} is a folder. Give the path of one file. A folder of Parquet files is released or audited "
            'with a limit of memory, memory="2GB".'
        )
    ending, kind = format_of(path)
    refuse_unused(given, kind.options, f"a {ending} file")
    if not os.path.isfile(path):  # unlike that of a Path, also for a name that is too long
        raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    stamp = Stamp.of(path)
    try:
        if kind is PARQUET:
            return _unread_parquet(path, columns, stamp, **given)
        arrow, notes = kind.read(path, columns, **given)
    except PermissionError:
        raise FileError(f"{str(path)!r} cannot be read: permission denied.") from None
    check_stamp(path, stamp)
    return Table.of(arrow, kind.name, path=path, stamp=stamp, **vars(notes or Notes()))


def _read_place(place: Place, columns: Sequence[str] | None, given: dict[str, Any]) -> Table:
    refuse_unused(given, place.database.options, f"a {place.database.title} database")
    return _read_connection(place.database, place.connect(), columns, given)


def _read_connection(
    database: Database, connection: Connection, columns: Sequence[str] | None, given: dict[str, Any]
) -> Table:
    refuse_unused(given, database.options, f"a {database.title} connection")
    found = read_database(connection, given.get("table"), given.get("query"), columns)
    labels = ValueLabels(variables=found.comments) if found.comments else None
    return Table.of(found.arrow, database.name, labels=labels, origin=found.origin)


def _unread_parquet(
    path: Path, columns: Sequence[str] | None, stamp: Stamp, max_unpacked_gb: float | None = None
) -> Table:
    """Return a Parquet file as a table whose columns are read on demand."""
    types, n_records = parquet_types(path)
    wanted = types.names if columns is None else check_wanted(columns, types.names)
    types = plain(pa.schema([types.field(name) for name in wanted]).empty_table()).schema

    one_by_one = cache(lambda: ParquetColumns(path, max_unpacked_gb))

    def load(names: Sequence[str]) -> pa.Table:
        if len(names) == 1:
            return plain(one_by_one().read(names[0]))
        return plain(read_parquet(path, names, max_unpacked_gb)[0])

    return Table(types, n_records, "parquet", path, stamp=stamp, _load=load)


def refuse_unused(given: Mapping[str, Any], known: frozenset[str], what: str) -> None:
    """Raise if a reading option was given that a source does not have."""
    unused = sorted(set(given) - known)
    if unused:
        names = ", ".join(unused)
        raise ParameterError(f"{names} cannot be given for {what}, only for other formats. Leave it out.")
