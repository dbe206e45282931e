"""DuckDB: its types, and files that cannot be used."""

import subprocess
import sys

import duckdb
import pyarrow as pa
import pytest

import shoal
from shoal.errors import DatabaseError
from shoal.sources import read


@pytest.mark.skipif(duckdb.__version__ < "2", reason="DuckDB 1 does not read the times of this test")
def test_types_come_back_from_a_release(duck):
    duck.run(
        "CREATE TYPE mood AS ENUM ('low', 'high')",
        "CREATE TABLE typed AS SELECT i // 2 AS a, 1.25::DECIMAL(10, 2) AS n, [1, 2] AS l, "
        "TIMESTAMPTZ '2024-02-29 10:00Z' AS z, 'low'::mood AS m, DATE '2024-02-29' AS d FROM range(4) AS r(i)",
    )
    names = ["n", "l", "z", "m", "d"]
    release = shoal.anonymize(
        duck.address, k=2, quasi_identifiers=["a"], other=names, seed=1, reading={"table": "typed"}
    )
    release.write(duck.address, to_table="release", order="keep")
    again = read(duck.address, table="release").arrow

    assert again.select(names).to_pylist() == read(duck.address, table="typed").arrow.select(names).to_pylist()
    assert again.schema.field("n").type == pa.decimal128(10, 2)


def test_a_query_reads_no_other_file_and_no_variable_of_python(duck, tmp_path):
    (tmp_path / "other.csv").write_text("a\n1\n")
    arrow = pa.table({"a": [1]})
    for query in (
        f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')",
        "SELECT * FROM 'other.csv'",
        "SELECT * FROM arrow",
    ):
        with pytest.raises(DatabaseError):
            read(duck.address, query=query)
    assert arrow.num_rows == 1


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "text.duckdb").write_text("name,age\n" * 20)
    with pytest.raises(shoal.FileError, match="not a DuckDB file"):
        read(tmp_path / "text.duckdb", table="people")


def test_a_file_of_a_newer_version_is_refused(duck, monkeypatch):
    def newer(*_, **__):
        raise duckdb.IOException(
            "IO Error: Trying to read a database file with version number 99, but we can only read 64"
        )

    monkeypatch.setattr(duckdb, "connect", newer)
    with pytest.raises(DatabaseError, match=r"newer version of DuckDB.*pip install --upgrade duckdb"):
        read(duck.address, table="people")


def test_a_database_that_another_program_writes_to_is_refused(duck):
    code = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, duck.address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "open\n"
    with pytest.raises(DatabaseError, match="is locked by another program"):
        read(duck.address, table="people")
    holder.communicate("")


def test_a_database_that_is_open_in_this_process_is_passed_as_its_connection(duck):
    with duckdb.connect(duck.address) as connection:
        with pytest.raises(DatabaseError, match="pass it in place of the address"):
            read(duck.address, table="people")

        assert read(connection, table="people").n_records == 40
