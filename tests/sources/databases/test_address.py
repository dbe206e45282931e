"""Addresses of databases, and the passwords that must not be in them."""

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import shoal
from shoal.cli import main
from shoal.job import Job
from shoal.sources import read
from shoal.sources.databases import place_of

SECRET = "ge/h:e@im"
LEAKS = [
    f"postgresql://me:{SECRET}@host/db",
    "postgresql://me:geheim@host/db",
    "postgres://:geheim@/db",
    "postgresql://host/db?password=geheim",
    "postgresql://host/db?user=me&pass%77ord=geheim",
    "postgresql://host/db?sslpassword=geheim",
    "mysql://me:geheim@host/db",
    "postgresql://me%3Ageheim@host/db",
    "POSTGRESQL://me:geheim@host/db",
    "postgresql:/me:geheim@host/db",
]


def refusals(address):
    """Return the messages of everything that takes an address."""
    release = shoal.anonymize(_people(), k=2, quasi_identifiers=["age"])
    calls = {
        "read": lambda: read(address, table="people"),
        "anonymize": lambda: shoal.anonymize(address, k=2, quasi_identifiers=["age"], reading={"table": "people"}),
        "audit": lambda: shoal.audit(address, quasi_identifiers=["age"], table="people"),
        "write": lambda: release.write(address, to_table="release"),
        "table.write": lambda: shoal.sources.write(_people(), address),
        "input": lambda: Job.of(k=2, roles={"quasi_identifiers": ["age"]}, input={"path": address, "table": "people"}),
        "output": lambda: Job.from_toml(
            f'k = 2\n[roles]\nquasi_identifiers = ["age"]\n[output]\npath = "{address}"\nto_table = "release"'
        ),
    }
    for name, call in calls.items():
        with pytest.raises(shoal.ShoalError) as caught:
            call()
        yield name, caught.value
    commands = [
        ["inspect", address, "--table", "people"],
        ["anonymize", address, "--table", "people", "-k", "2", "--quasi-identifiers", "age", "-o", "release.csv"],
        ["anonymize", "people.csv", "-k", "2", "--quasi-identifiers", "age", "-o", address, "--to-table", "release"],
        [
            "anonymize",
            "people.csv",
            "-k",
            "2",
            "--quasi-identifiers",
            "age",
            f"--output={address}",
            "--to-table",
            "release",
        ],
        ["anonymize", "people.csv", "-k", "2", "--quasi-identifiers", "age", f"-o{address}", "--nonsense"],
        ["audit", address, "--table", "people", "--quasi-identifiers", "age"],
        ["compare", address, "--table", "people", "--quasi-identifiers", "age"],
        ["dp", address, "--table", "people"],
        ["stream", address, "-o", "out.csv"],
        ["attack", address, address],
        ["collect", "begin", "folder", address],
        ["run", address],
    ]
    for command in commands:
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 2
        yield " ".join(command[:2]), done.output


def _people():
    return pa.table({"age": [1, 1, 2, 2]})


@pytest.mark.parametrize("address", LEAKS)
def test_an_address_with_a_password_is_refused_everywhere_without_repeating_it(address):
    for name, said in refusals(address):
        assert "geheim" not in str(said), name
        assert "e@im" not in str(said), name
        if isinstance(said, Exception):
            assert "geheim" not in repr(said.__context__), name
            assert b"geheim" not in pickle.dumps(str(said.args)), name


def test_the_refusal_of_a_password_names_the_remedy():
    with pytest.raises(shoal.ParameterError, match=r"PGPASSWORD.*PGSERVICE.*pass file"):
        read(LEAKS[0], table="people")


@pytest.mark.parametrize(
    ("given", "name", "path"),
    [
        ("postgresql://host/db", "postgresql", None),
        ("postgres://me@host:5432,other/db?sslmode=require", "postgresql", None),
        ("postgresql://[::1]:5432/db", "postgresql", None),
        ("postgresql:///", "postgresql", None),
        ("sqlite:///people.data", "sqlite", Path("people.data")),
        ("sqlite:////tmp/people.data", "sqlite", Path("/tmp/people.data")),
        ("duckdb:///people.db", "duckdb", Path("people.db")),
        ("people.db", "sqlite", Path("people.db")),
        (Path("a/People.SQLite"), "sqlite", Path("a/People.SQLite")),
        ("people.sqlite3", "sqlite", Path("people.sqlite3")),
        ("people.duckdb", "duckdb", Path("people.duckdb")),
    ],
)
def test_databases_are_recognised_by_scheme_or_extension(given, name, path):
    found = place_of(given)

    assert found.database.name == name
    assert found.address.path == path


@pytest.mark.parametrize("given", ["people.csv", "db/people.parquet", "db.csv"])
def test_other_paths_are_not_databases(given):
    assert place_of(given) is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mysql://host/db", "Known: postgresql://"),
        ("postgresql://host/db?hsot=x", "not known: 'hsot'"),
        ("postgresql://host:port/db", "not of the form"),
        ("sqlite://people.db", "sqlite:///FILE"),
        (Path("postgresql://host/db"), "as a text"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused(given, said):
    with pytest.raises(shoal.ParameterError, match=said):
        place_of(given)
