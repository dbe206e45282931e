"""PostgreSQL: its types, rights and failures."""

import datetime
import decimal
import os
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import postgres_server as server
import shoal
from shoal.cli import main
from shoal.errors import DatabaseError
from shoal.sources import read
from shoal.sources.databases.postgresql import PostgreSQL
from stores import TABLE_AND_ROLES

TYPES = {
    "i2": ("smallint", "7", pa.int16(), 7),
    "i4": ("integer", "7", pa.int32(), 7),
    "i8": ("bigint", "7", pa.int64(), 7),
    "f4": ("real", "1.5", pa.float32(), 1.5),
    "f8": ("double precision", "1.5", pa.float64(), 1.5),
    "n": ("numeric", "1.250", pa.decimal128(38, 3), decimal.Decimal("1.250")),
    "n2": ("numeric(10,2)", "-12345678.25", pa.decimal128(38, 2), decimal.Decimal("-12345678.25")),
    "mo": ("money", "12.34", pa.decimal128(38, 2), decimal.Decimal("12.34")),
    "tx": ("text", "Zürich", pa.string(), "Zürich"),
    "vc": ("varchar(9)", "ab", pa.string(), "ab"),
    "b": ("boolean", "true", pa.bool_(), True),
    "d": ("date", "2024-02-29", pa.date32(), datetime.date(2024, 2, 29)),
    "ts": ("timestamp", "2024-02-29 10:00", pa.timestamp("us"), datetime.datetime(2024, 2, 29, 10)),
    "tz": (
        *("timestamptz", "2024-02-29 10:00+02", pa.timestamp("us", "UTC")),
        datetime.datetime(2024, 2, 29, 8, tzinfo=datetime.UTC),
    ),
    "tm": ("time", "10:30", pa.time64("us"), datetime.time(10, 30)),
    "by": ("bytea", "\\x01ff", pa.binary(), b"\x01\xff"),
    "u": ("uuid", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", pa.string(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    "j": ("json", '{"a": 1}', pa.string(), '{"a": 1}'),
    "jb": ("jsonb", '{"a": 1}', pa.string(), '{"a": 1}'),
    "ar": ("integer[]", "{{1,2},{3,4}}", pa.string(), "{{1,2},{3,4}}"),
    "iv": ("interval", "1 day 02:00", pa.string(), "P1DT2H"),
    "ip": ("inet", "1.2.3.4", pa.string(), "1.2.3.4/32"),
    "mood": ("mood", "low", pa.string(), "low"),
    "years": ("years", "7", pa.int32(), 7),
    "rg": ("int4range", "[1,3)", pa.string(), "[1,3)"),
}


@pytest.fixture
def typed(postgres):
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in TYPES.items())
    values = ", ".join(f"'{text}'" for _, text, *_ in TYPES.values())
    postgres.run(
        "CREATE TYPE mood AS ENUM ('low', 'high')",
        "CREATE DOMAIN whole AS integer; CREATE DOMAIN years AS whole CHECK (VALUE >= 0)",
        f"CREATE TABLE typed (id integer, {columns})",
        *[f"INSERT INTO typed VALUES ({i}, {values})" for i in range(4)],
        "INSERT INTO typed (id) VALUES (4), (5)",
    )
    return postgres


def test_every_type_is_read_as_what_it_means(typed):
    table = read(typed.address, table="typed").arrow

    assert {name: table.schema.field(name).type for name in TYPES} == {
        name: kind for name, (_, _, kind, _) in TYPES.items()
    }
    assert table.to_pylist()[0] == {"id": 0} | {name: value for name, (*_, value) in TYPES.items()}
    assert table.to_pylist()[5] == {"id": 5} | dict.fromkeys(TYPES)


def test_every_type_comes_back_from_a_release(typed):
    names = [name for name in TYPES if name != "by"]
    release = shoal.anonymize(
        typed.address, k=2, quasi_identifiers=["id"], other=[*names, "by"], seed=1, reading={"table": "typed"}
    )
    release.write(typed.address, to_table="release", order="keep")
    again = read(typed.address, table="release").arrow

    assert again.select(list(TYPES)) == read(typed.address, table="typed").arrow.select(list(TYPES))
    assert typed.rows("SELECT n2, tz AT TIME ZONE 'UTC', d, b FROM release LIMIT 1") == [
        ("-12345678.25", "2024-02-29 08:00:00", "2024-02-29", "t")
    ]


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        ("date", "infinity", "infinite"),
        ("timestamptz", "-infinity", "infinite"),
        ("date", "0044-03-15 BC", "outside the years"),
        ("numeric", "NaN", "NaN"),
        ("numeric", "1" * 40, "38 digits"),
    ],
)
def test_values_that_would_be_misread_are_refused(postgres, kind, value, said):
    with pytest.raises(DatabaseError, match=said) as caught:
        read(postgres.address, query=f"SELECT '{value}'::{kind} AS a")

    assert value not in str(caught.value).replace("are NaN", "")


def test_a_long_name_is_refused_since_postgresql_would_cut_it_off(postgres):
    postgres.run(f"CREATE TABLE {'a' * 63} (id integer)")
    with pytest.raises(shoal.SchemaError, match="cuts names off after 63"):
        read(postgres.address, table="a" * 64)


def test_a_column_with_the_name_of_a_system_column_is_refused_as_such(postgres, tmp_path):
    release = shoal.anonymize(pa.table({"xmin": [1.0, 1.0, 2.0, 2.0]}), k=2, quasi_identifiers=["xmin"], seed=1)
    with pytest.raises(DatabaseError, match="Rename the column"):
        release.write(postgres.address, to_table="release", manifest=tmp_path / "release.internal.json")

    assert list(tmp_path.iterdir()) == []


def test_schemas_are_named_and_the_search_path_is_respected(postgres):
    postgres.run("CREATE SCHEMA census", 'CREATE TABLE census."People" AS SELECT 1 AS one')

    assert read(postgres.address, table="census.People").names == ("one",)
    assert read(postgres.address, table="public.people").n_records == 40
    with pytest.raises(DatabaseError, match=r"Tables: census.People, people"):
        read(postgres.address, table="People")


def test_text_with_a_nul_character_is_refused(postgres):
    people = pa.table({"a": [1, 1, 2, 2], "b": ["x\0", "x\0", "y", "y"]})
    with pytest.raises(shoal.FileError, match="NUL"):
        shoal.anonymize(people, k=2, quasi_identifiers=["a"], other=["b"]).write(postgres.address, to_table="release")


def guest(postgres):
    return server.address(postgres.name, server.GUEST)


def test_a_password_comes_from_the_environment_or_a_pass_file(postgres, tmp_path, monkeypatch):
    postgres.run(f"GRANT SELECT ON people TO {server.GUEST}")
    with pytest.raises(DatabaseError, match=r"does not let this user in.*PGPASSWORD"):
        read(guest(postgres), table="people")
    with monkeypatch.context() as patch:
        patch.setenv("PGPASSWORD", server.SECRET)
        assert read(guest(postgres), table="people").n_records == 40
    passes = tmp_path / "passes"
    passes.write_text(f"*:*:*:{server.GUEST}:{server.SECRET}\n")
    passes.chmod(0o600)
    assert read(f"{guest(postgres)}&passfile={passes}", table="people").n_records == 40
    services = tmp_path / "services"
    services.write_text(
        f"[census]\nhost={server.folder()}\ndbname={postgres.name}\nuser={server.GUEST}\npassword={server.SECRET}\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGSERVICE", "census")
    release = shoal.anonymize(
        "postgresql:///", k=4, quasi_identifiers=["Age", "zip", "pay"], identifiers=["id"], reading={"table": "people"}
    )
    paths = release.write(tmp_path / "out.csv", report=tmp_path / "report.html", save_job=tmp_path / "job.toml")

    assert not [path for path in paths if server.SECRET in path.read_text()]


def test_a_wrong_password_is_not_repeated(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "falsch123")
    with pytest.raises(DatabaseError, match="does not let this user in") as caught:
        read(guest(postgres), table="people")

    assert "falsch123" not in str(caught.value) + repr(caught.value.__cause__)


def test_a_missing_right_is_one_paragraph_and_nothing_is_written(postgres, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", server.SECRET)
    with pytest.raises(DatabaseError, match="SELECT on what is read"):
        read(guest(postgres), table="people")
    postgres.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC", f"GRANT SELECT ON people TO {server.GUEST}")
    words = ["anonymize", guest(postgres), *TABLE_AND_ROLES]
    done = CliRunner().invoke(main, [*words, "-o", guest(postgres), "--to-table", "release"])

    assert done.exit_code == 2
    assert "CREATE on the schema" in done.output
    assert done.output.count("\n") == 1
    assert postgres.names() == ["people"]
    assert not [name for name in os.listdir() if "internal" in name]


def test_a_lost_connection_is_one_paragraph_and_nothing_is_written(postgres, monkeypatch):
    insert = PostgreSQL.insert

    def lost(self, name, arrow):
        ((pid,),) = self.rows("SELECT pg_backend_pid()")
        postgres.run(f"SELECT pg_terminate_backend({pid})")
        insert(self, name, arrow)

    monkeypatch.setattr(PostgreSQL, "insert", lost)
    words = ["anonymize", postgres.address, *TABLE_AND_ROLES]
    done = CliRunner().invoke(main, [*words, "-o", postgres.address, "--to-table", "release"])

    assert done.exit_code == 2
    assert "connection is lost" in done.output.splitlines()[-1]
    assert done.output.count("Error") == 1
    assert postgres.names() == ["people"]
    assert os.listdir() == []


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql:///db?host=/nowhere", "cannot be reached"),
        ("postgresql://127.0.0.1:1/db", "cannot be reached"),
    ],
)
def test_a_server_that_does_not_answer_is_one_paragraph(address, said):
    done = CliRunner().invoke(main, ["inspect", address, "--table", "people"])

    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1


def test_a_database_that_does_not_exist_is_named(postgres):
    with pytest.raises(DatabaseError, match="'postgresql://shoal@/nodb' does not exist on the server"):
        read(server.address("nodb"), table="people")


def test_a_locked_table_is_waited_for_no_longer_than_the_server_says(postgres):
    postgres.run("ALTER ROLE shoal SET lock_timeout = '100ms'")
    try:
        with PostgreSQLLock(postgres), pytest.raises(DatabaseError, match="lock"):
            read(postgres.address, table="people")
    finally:
        postgres.run("ALTER ROLE shoal RESET lock_timeout")


class PostgreSQLLock:
    """A connection that holds a lock on the table of people."""

    def __init__(self, store):
        import adbc_driver_postgresql.dbapi

        self.connection = adbc_driver_postgresql.dbapi.connect(store.address)

    def __enter__(self):
        with self.connection.cursor() as cursor:
            cursor.execute("LOCK TABLE people IN ACCESS EXCLUSIVE MODE")

    def __exit__(self, *exception):
        self.connection.rollback()
        self.connection.close()


def test_a_job_names_tables_and_repeats_its_release(postgres, tmp_path):
    words = ["anonymize", postgres.address, *TABLE_AND_ROLES]
    first = CliRunner().invoke(
        main, [*words, "-o", postgres.address, "--to-table", "release", "--save-job", "job.toml", "--seed", "1"]
    )
    sha256 = postgres.rows("SELECT sha256 FROM shoal_manifest")
    refused = CliRunner().invoke(main, ["run", "job.toml"])
    again = CliRunner().invoke(main, ["run", "job.toml", "--force"])
    planned = CliRunner().invoke(main, ["run", "job.toml", "--dry-run", "--force"])

    assert first.exit_code == 0, first.output
    assert "table release in postgresql://shoal@/" in first.output.replace("\n", " ")
    assert 'to_table = "release"' in Path("job.toml").read_text()
    assert refused.exit_code == 2
    assert "--force" in refused.output
    assert again.exit_code == 0, again.output
    assert planned.exit_code == 0
    assert postgres.rows("SELECT sha256 FROM shoal_manifest") == sha256


def test_the_options_are_asked_for_in_the_words_of_the_command_line(postgres):
    for words in (
        ["inspect", postgres.address],
        [
            "anonymize",
            postgres.address,
            "--table",
            "people",
            "-k",
            "4",
            "--quasi-identifiers",
            "Age",
            "-o",
            postgres.address,
        ],
    ):
        done = CliRunner().invoke(main, words)

        assert done.exit_code == 2
        assert "--table or --query" in done.output if words[0] == "inspect" else "--to-table" in done.output
