"""Sources for the contract test: how each entry of the registries is made, and read by something other than shoal.

A new source is one more entry in `SOURCES`.
"""

import csv
import gzip
import io
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat

import postgres_server as server

PEOPLE = pa.table(
    {
        "age": [float(20 + i * 7 % 60) for i in range(60)],
        "income": [1000.25 + i * 37 % 900 for i in range(60)],
        "sex": [1.0 + i % 2 for i in range(60)],
        "town": [("Ulm", "Zürich", "Oslo")[i % 3] for i in range(60)],
        "illness": [("flu", "=SUM(A1)", "-", "a b")[i % 4] for i in range(60)],
        "born": [date(1950, 1, 1) + timedelta(days=97 * i) for i in range(60)],
    }
)
"""Numbers, texts and dates without gaps, which every source can hold; a whole number may come back as an integer. The
last column holds no texts, since pandas takes blanks at the end of a .xpt file for padding."""

QUASI = ["age", "income", "sex", "town", "born"]


@dataclass(frozen=True)
class Source:
    """How a source is tested.

    Attributes
    ----------
    kind : str
        Its name in the registry.
    make : callable
        Takes `PEOPLE` and a folder, writes the table without shoal, returns the address that shoal reads.
    recount : callable
        Takes the address of a release, returns it as a `pyarrow.Table`, read without shoal.
    out : callable
        Takes a folder, returns the address of the release.
    reading, writing : dict
        Options for `shoal.sources.read` and for `Release.write`.
    """

    kind: str
    make: Callable[[pa.Table, Path], Any]
    recount: Callable[[Any], pa.Table]
    out: Callable[[Path], Any]
    reading: dict[str, Any] = field(default_factory=dict)
    writing: dict[str, Any] = field(default_factory=dict)


def _file(ending: str, write: Callable[[pl.DataFrame, Path], Any]) -> Callable[[pa.Table, Path], Path]:
    """Return a maker of a file from a function that writes a polars frame."""

    def make(table: pa.Table, folder: Path) -> Path:
        path = folder / f"people{ending}"
        write(pl.DataFrame(table), path)
        return path

    return make


def _released(ending: str) -> Callable[[Path], Path]:
    return lambda folder: folder / f"release{ending}"


def _csv_rows(path: Path) -> pa.Table:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    return _from_texts(header, rows)


def _from_texts(header: list[str], rows: list[list[str]]) -> pa.Table:
    numbers, dates = {"age", "income", "sex"}, {"born"}
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    return pa.table(
        {
            name: [float(v) if name in numbers else date.fromisoformat(v) if name in dates else v for v in values]
            for name, values in columns.items()
        }
    )


def _json_lines(path: Path) -> pa.Table:
    table = pl.read_ndjson(path).to_arrow()
    born = [date.fromisoformat(text) for text in table["born"].to_pylist()]
    return table.set_column(table.column_names.index("born"), "born", [born])


def _workbook(frame: pl.DataFrame, path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (frame.columns, *frame.rows()):
        sheet.append(row)
        for cell in sheet[sheet.max_row]:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # not a formula, whatever it begins with
    book.save(path)


def _labelled(reader: Callable[..., Any]) -> Callable[[Path], pa.Table]:
    return lambda path: pa.table(reader(path, output_format="dict")[0])


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(frame, preserve_index=False)


def _sas_transport(path: Path) -> pa.Table:
    """Read a .xpt file by pandas, which has a reader of its own."""
    table = _from_pandas(pd.read_sas(path, encoding="utf-8"))
    born = [date(1960, 1, 1) + timedelta(days=int(days)) for days in table["born"].to_pylist()]
    return table.set_column(table.column_names.index("born"), "born", [born])


_IN_A_DATABASE = {"reading": {"table": "people"}, "writing": {"to_table": "release"}}
_CREATE = (
    "CREATE TABLE people (age double precision, income double precision, sex double precision, town text, born date, "
    "illness text)"
)


def _statements(table: pa.Table) -> list[str]:
    """Return the statements that make the table of people."""
    columns = ("age", "income", "sex", "town", "born", "illness")
    rows = [", ".join(f"'{record[name]}'" for name in columns) for record in table.to_pylist()]
    return [
        "DROP TABLE IF EXISTS people",
        _CREATE,
        f"INSERT INTO people VALUES {', '.join(f'({row})' for row in rows)}",
    ]


def _postgresql(table: pa.Table, folder: Path) -> str:
    server.psql("postgres", "DROP TABLE IF EXISTS release, shoal_manifest", *_statements(table))
    return server.address("postgres")


def _from_postgresql(address: str) -> pa.Table:
    header, *rows = csv.reader(io.StringIO(server.psql("postgres", "SELECT * FROM release")))
    return _from_texts(header, rows)


def _sqlite(table: pa.Table, folder: Path) -> str:
    connection = sqlite3.connect(folder / "people.db")
    for statement in _statements(table):
        connection.execute(statement)
    connection.commit()
    connection.close()
    return f"sqlite:///{folder / 'people.db'}"


def _from_sqlite(path: Path) -> pa.Table:
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT * FROM release")
    header, rows = [column[0] for column in found.description], found.fetchall()
    connection.close()
    return _from_texts(header, rows)


def _duckdb(table: pa.Table, folder: Path) -> str:
    with duckdb.connect(folder / "people.duckdb") as connection:
        for statement in _statements(table):
            connection.execute(statement)
    return str(folder / "people.duckdb")


def _from_duckdb(address: str) -> pa.Table:
    with duckdb.connect(address.removeprefix("duckdb:///"), read_only=True) as connection:
        return connection.sql("SELECT * FROM release").to_arrow_table()


def _csv_in_zstd(frame: pl.DataFrame, path: Path) -> None:
    with pa.output_stream(path, compression="zstd") as file:
        file.write(frame.write_csv().encode())


SOURCES = {
    "csv": Source("csv", _file(".csv", pl.DataFrame.write_csv), _csv_rows, _released(".csv")),
    "csv, zstd": Source(
        "csv",
        _file(".csv.zst", _csv_in_zstd),
        lambda path: pl.read_csv(path, try_parse_dates=True).to_arrow(),
        _released(".csv.zst"),
    ),
    "ndjson": Source("ndjson", _file(".ndjson", pl.DataFrame.write_ndjson), _json_lines, _released(".ndjson")),
    "excel": Source(
        "xlsx",
        _file(".xlsx", _workbook),
        lambda path: _from_pandas(pd.read_excel(path, engine="openpyxl")),
        _released(".xlsx"),
    ),
    "parquet": Source("parquet", _file(".parquet", pl.DataFrame.write_parquet), pq.read_table, _released(".parquet")),
    "arrow": Source(
        "arrow",
        _file(".arrow", pl.DataFrame.write_ipc),
        lambda path: pl.read_ipc(path).to_arrow(),
        _released(".arrow"),
    ),
    "spss": Source("sav", _file(".sav", pyreadstat.write_sav), _labelled(pyreadstat.read_sav), _released(".sav")),
    "sas": Source(
        "sas",
        lambda table, folder: shutil.copy(Path(__file__).parent / "data" / "people.sas7bdat", folder),
        _sas_transport,
        _released(".xpt"),
        reading={"catalog": str(Path(__file__).parent / "data" / "people.sas7bcat")},
    ),
    "sas transport": Source("sas", _file(".xpt", pyreadstat.write_xport), _sas_transport, _released(".xpt")),
    "postgresql": Source(
        "postgresql", _postgresql, _from_postgresql, lambda folder: server.address("postgres"), **_IN_A_DATABASE
    ),
    "sqlite": Source("sqlite", _sqlite, _from_sqlite, _released(".db"), **_IN_A_DATABASE),
    "duckdb": Source(
        "duckdb", _duckdb, _from_duckdb, lambda folder: f"duckdb:///{folder / 'people.duckdb'}", **_IN_A_DATABASE
    ),
    "stata": Source(
        "dta",
        _file(".dta", pyreadstat.write_dta),
        lambda path: _from_pandas(pd.read_stata(path)),
        _released(".dta"),
    ),
}
"""Every source of the registry, some in several forms."""
