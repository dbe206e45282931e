"""Every public byte of a release is searched for secrets that were planted wherever a table can hold them."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from planted import (
    HIDDEN,
    ILLNESS,
    NAME,
    NOTED,
    PAY,
    QUASI,
    RARE,
    REMARK,
    SUBJECT,
    WHEN,
    columns_of,
    exposed,
    people,
    released,
    with_hidden,
)
from row_order import public_bytes, public_files
from shoal.sources import write

ENDINGS = [".csv", ".tsv.gz", ".ndjson", ".xlsx", ".parquet", ".arrow", ".sav", ".dta", ".xpt", ".db", ".duckdb"]
TABLE = with_hidden(people(np.random.default_rng(1), 60))


def as_file(table, folder):
    pq.write_table(table, folder / "people.parquet")
    return folder / "people.parquet"


SOURCES = {"arrow": lambda table, _: table, "pandas": lambda table, _: table.to_pandas(), "file": as_file}


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv.gz", ".ndjson", ".xlsx", ".parquet", ".arrow", ".sav", ".dta", ".xpt"]
)
def test_the_search_finds_what_a_table_shows(tmp_path, ending):
    write(people(np.random.default_rng(1), 60), tmp_path / f"release{ending}")

    assert {NAME, SUBJECT, RARE, "74209583"} <= {secret for _, secret in exposed(public_files(tmp_path))}


def test_the_search_finds_what_no_record_of_a_file_has_and_what_a_report_shows(tmp_path):
    pq.write_table(TABLE, tmp_path / "release.parquet")
    (tmp_path / "report.html").write_text("flu, SecretIllness", encoding="utf-16")

    assert {HIDDEN, NOTED, ILLNESS} <= {secret for _, secret in exposed(public_files(tmp_path))}


@pytest.mark.parametrize("truthful", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_no_public_byte_shows_a_secret(tmp_path, source, truthful):
    release = released(SOURCES[source](TABLE, tmp_path), **columns_of("gap", truthful=truthful))
    found = []
    for ending in ENDINGS:
        place = {"to_table": "release"} if ending in (".db", ".duckdb") else {}
        found += exposed(public_bytes(release, tmp_path / ending[1:], ending, **place))

    assert found == []


TYPED = {
    "columns": {
        "town": {"missing_codes": [RARE]},
        "pay": {"missing_codes": [PAY]},
        "born": {"missing_codes": [WHEN]},
        "grade": {"categories": ["low", "mid", HIDDEN, "high"]},
    },
    "quasi_identifiers": [*QUASI, "grade"],
    "accept": ["near-unique-text", "published-identifier", "missing-code"],
}
"""Secrets that a user types into settings of columns."""


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_no_public_byte_shows_a_value_that_was_typed(tmp_path, engine):
    people_ = people(np.random.default_rng(1), 60)
    write(people_.append_column("grade", [["low", "mid", "high"] * 20]), tmp_path / "people.csv")
    fields = {"remark": {"null_values": [f"{REMARK} 3"]}}
    reading = {"fields": fields, "skip_where": [f"name={NAME} 9", f"illness={ILLNESS}"], "skip_rows": "4"}
    release = released(tmp_path / "people.csv", engine=engine, reading=reading, **TYPED)
    with release:
        files = public_bytes(release, tmp_path / "out", ".csv")

    assert exposed(files) == []
    manifest = next(text for name, text in files.items() if name.endswith(".public.json")).decode()
    assert manifest.count('"VALUE"') == 7


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow"])
def test_no_public_byte_of_the_engine_disk_shows_a_secret(tmp_path, ending):
    settings = columns_of("gap", truthful=False)
    with released(as_file(TABLE, tmp_path), engine="disk", **settings) as release:
        files = public_bytes(release, tmp_path / "out", ending)

    assert exposed(files) == []
