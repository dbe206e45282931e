"""Tables: read any file or frame, and return or write the same kind.

Internally a table is a `pyarrow.Table`. Files are recognised by their extension, frames by their type. Each format is
one file in this folder and one entry in `KINDS`.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import ArrayLike

from shoal.errors import FileError
from shoal.files import replacing
from shoal.sources.clean import as_permutation, check_wanted, publishable, reordered
from shoal.sources.csv import CSV
from shoal.sources.databases import DATABASES, place_of, read_database, shared
from shoal.sources.databases.connection import Connection, Database
from shoal.sources.excel import EXCEL
from shoal.sources.format import Content, Format
from shoal.sources.frames import from_frame
from shoal.sources.labelled_files import ColumnLabels, ValueLabels
from shoal.sources.left_out import Skipping, without_positions
from shoal.sources.ndjson import NDJSON
from shoal.sources.parquet_arrow import ARROW, PARQUET
from shoal.sources.parquet_rewrite import rewrite_parquet, rewrite_parquet_into
from shoal.sources.reading import OF_ANY_SOURCE, FieldReading, Reading, Receipt
from shoal.sources.sas import SAS
from shoal.sources.source_stamps import Files
from shoal.sources.spss_stata import SPSS, STATA
from shoal.sources.standard_input import DASH, standard_input
from shoal.sources.table import Source, Table
from shoal.spelling import setting

__all__ = [
    "DATABASES",
    "FORMATS",
    "KINDS",
    "ColumnLabels",
    "FieldReading",
    "Reading",
    "Receipt",
    "Source",
    "Table",
    "ValueLabels",
    "databases_in_words",
    "format_of",
    "formats_in_words",
    "output_format_of",
    "read",
    "rewrite_parquet",
    "rewrite_parquet_into",
    "shown",
    "write",
    "write_into",
]


def __dir__() -> list[str]:
    return sorted(__all__)


KINDS = (CSV, NDJSON, EXCEL, PARQUET, ARROW, SPSS, STATA, SAS)
"""File formats: one line here, one file in this folder."""

FORMATS = {ending: kind for kind in KINDS for ending in kind.endings}
"""File formats by extension."""


def read(source: Any, *, columns: Sequence[str] | None = None, **reading: Any) -> Table:
    r"""Read a table: a file by its path, a database by its address, or a frame.

    Parameters
    ----------
    source : path, address, frame or connection
        A file in one of the formats of `FORMATS`, ``"-"`` for standard input, a pandas, polars or pyarrow frame or
        dataset, a DuckDB relation, or anything with the Arrow C stream interface; a database, by its address or file
        (``postgresql://host/db``, ``people.db``, ``people.duckdb``) or by an ADBC or DuckDB connection; a `Table`.
    columns : sequence of str, optional
        Columns to read, in this order. Other columns of a Parquet file are not read.
    **reading
        How to read it: the settings of `shoal.sources.Reading`, such as ``delimiter=";"``.

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
    >>> table.receipt.found.delimiter
    ','
    """
    if isinstance(source, str | os.PathLike):
        if os.fspath(source) == DASH:
            return _read_standard_input(columns, reading)
        place = place_of(source)
        if place is None:
            return _read_path(Path(source), columns, reading)
        how = _of_database(reading, place.database, "database")
        return _read_connection(place.database, place.connect(), columns, how)
    connection = shared(source)
    if connection is not None:
        how = _of_database(reading, connection[0], "connection")
        return _read_connection(*connection, columns, how)
    how = Reading.of(reading, frozenset(), type(source).__name__)
    if isinstance(source, Table):
        return _wanted_of(_without_skipped(source, how), columns)
    frame = from_frame(source, None if how.skips else columns)
    table = Table.of(frame.arrow, frame.kind, index=frame.index, _back=frame.back)
    return _wanted_of(_without_skipped(table, how), columns) if how.skips else table


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
    with replacing(path, force, inputs=[] if like is None else like.inputs) as temporary:
        write_into(arrow, temporary, like=like, order=order)


def write_into(
    arrow: pa.Table, path: str | os.PathLike[str], *, like: Table | None = None, order: ArrayLike | None = None
) -> None:
    """Write a table directly to `path`, overwriting it: for a path from `shoal.files.replacing_all`."""
    ending, kind = output_format_of(path)
    ordered = arrow if order is None else reordered(arrow, as_permutation(order, arrow.num_rows))
    try:
        kind.write(publishable(ordered), Path(path), ending, like)
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
    ".json": " If it has one JSON object a line, name it .ndjson.",
    ".sas7bcat": f" It is a catalogue: read the table, and give this file with {setting('catalog')}.",
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
    return _in_words(KINDS)


def databases_in_words() -> str:
    """Return the list of databases as text.

    Examples
    --------
    >>> databases_in_words()
    'PostgreSQL, SQLite or DuckDB'
    """
    return _in_words(DATABASES)


def _in_words(kinds: Iterable[Format | Database]) -> str:
    *titles, last = (kind.title for kind in kinds)
    return f"{', '.join(titles)} or {last}"


def shown(source: str | os.PathLike[str]) -> str:
    """Return a short name of a file or a database, for progress."""
    if os.fspath(source) == DASH:
        return "standard input"
    place = place_of(source)
    return Path(source).name if place is None else str(place.address)


def _read_standard_input(columns: Sequence[str] | None, reading: Mapping[str, Any]) -> Table:
    others = {name: value for name, value in reading.items() if name != "format"}
    path, notes = standard_input(reading.get("format"), FORMATS)
    table = _read_path(path, columns, others)
    receipt = replace(
        table.receipt,
        given=table.receipt.given.model_copy(update={"format": reading.get("format")}),
        found=table.receipt.found.model_copy(update={"format": format_of(path)[0][1:]}),
        notes=(*notes, *table.receipt.notes),
    )
    return replace(table, receipt=receipt)


def _read_path(path: Path, columns: Sequence[str] | None, reading: Mapping[str, Any]) -> Table:
    if os.path.isdir(path):
        raise FileError(
            f"{str(path)!r} is a folder. Give the path of one file. A folder of Parquet files is released or audited "
            f"with a limit of memory, {setting('memory', '2GB')}."
        )
    ending, kind = format_of(path)
    how = Reading.of(reading, kind.options, f"a {ending} file")
    if not os.path.isfile(path):  # unlike that of a Path, also for a name that is too long
        raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    files = Files.of(path)
    is_later = how.skips and not kind.skips
    try:
        content = kind.read(path, None if is_later else columns, how)
    except PermissionError:
        raise FileError(f"{str(path)!r} cannot be read: permission denied.") from None
    files.check()
    table = Table.of(content, kind.name, files=files, options=kind.options)
    return _wanted_of(_without_skipped(table, how), columns) if is_later else table


def _without_skipped(table: Table, how: Reading) -> Table:
    """Return a table without the records that are to be left out, if there are any."""
    if not how.skips:
        return table
    skipping = Skipping(how, table.names)
    kept = pa.array(skipping.keep(table.n_records, lambda name: table.load([name])[name]))
    skipping.check()
    about = {name: value for name, value in how.given.items() if name in OF_ANY_SOURCE}
    given, found = (each.model_copy(update=about) for each in (table.receipt.given, table.receipt.found))
    return replace(
        table,
        n_records=table.n_records - skipping.n_left_out,
        receipt=skipping.noted(replace(table.receipt, given=given, found=found)),
        _load=lambda names: table.load(names).filter(kept),
    )


def _wanted_of(table: Table, columns: Sequence[str] | None) -> Table:
    """Return a table with the wanted columns only."""
    names = check_wanted(columns, table.names)
    index = tuple(name for name in table.index if name in names)
    return replace(table, types=pa.schema([table.types.field(name) for name in names]), index=index)


def _of_database(reading: Mapping[str, Any], database: Database, what: str) -> Reading:
    """Return how a database is read; raise if its records are numbered."""
    how = Reading.of(reading, database.options, f"a {database.title} {what}")
    if how.skip_rows:
        raise without_positions("a database")
    return how


def _read_connection(database: Database, connection: Connection, columns: Sequence[str] | None, how: Reading) -> Table:
    found = read_database(connection, how.table, how.query, None if how.skips else columns)
    labels = ValueLabels(variables=found.comments) if found.comments else None
    content = Content.of(found.arrow, Receipt(how, how), labels)
    table = Table.of(content, database.name, origin=found.origin, options=database.options)
    return _wanted_of(_without_skipped(table, how), columns) if how.skips else table
