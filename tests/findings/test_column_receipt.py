"""How a column was read is one line, the same in `inspect` and in a release; the public one tells no value."""

import json

import numpy as np
import pytest

import shoal

N = 200
ROWS = np.random.default_rng(3)
ROLES = {"quasi_identifiers": ["age", "pay", "born", "place"], "confidential": ["visits"], "identifiers": ["name"]}
READING = {
    "fields": {
        "born": {"date_format": "%d.%m.%Y", "null_values": ["form:a"]},
        "pay": {"thousands": ".", "decimal": ",", "unit": "after"},
    }
}


@pytest.fixture
def path(tmp_path):
    rows = ["name;age;pay;born;place;visits"]
    for i in range(N):
        born = "geheim" if i % 20 == 0 else f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1940 + i % 60}"
        pay = f"{ROWS.integers(1000, 9000):,}".replace(",", ".") + ",50 EUR"
        rows.append(f"n{i};{-9 if i % 25 == 0 else ROWS.integers(18, 90)};{pay};{born};{'NSW'[i % 3]};{i % 7}")
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "people.csv"


@pytest.fixture
def release(path):
    columns = {"age": {"missing_codes": ["smallest"]}}
    return shoal.anonymize(path, k=5, seed=1, missing="own-value", reading=READING, columns=columns, **ROLES)


def test_every_column_has_a_line_with_who_decided(release):
    lines = {receipt.name: receipt.line for receipt in release.receipts}

    assert list(lines) == ["name", "age", "pay", "born", "place", "visits"]
    assert lines["name"] == "not published (as set)"
    assert lines["age"].startswith("whole number (as set), ")
    assert lines["age"].endswith("8 missing (smallest or empty)")
    assert "number with 1 decimal; decimal comma; '.' between thousands; unit after the numbers removed" in lines["pay"]
    assert lines["born"].startswith("date (%d.%m.%Y) (as set), ")
    assert lines["place"] == "text (by default), 3 different"


def test_inspect_reads_as_the_release_does(path, release):
    inspected = {column.facts.name: column.receipt for column in shoal.inspect(path, **READING).columns}

    for receipt in release.receipts:
        if receipt.name not in ("name", "age"):
            assert receipt == inspected[receipt.name]


def test_the_receipt_is_in_the_report_and_in_both_manifests_and_the_public_one_tells_no_count(release, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    release.write(out / "release.csv", report=out / "report.html")
    public = json.loads((out / "release.csv.public.json").read_text())
    internal = json.loads((out / "release.csv.internal.json").read_text())

    assert {entry["name"]: entry["read"] for entry in public["codebook"]}["place"] == "text"
    assert {entry["name"]: entry["n_different"] for entry in internal["reading"]}["place"] == 3
    assert "text (by default), 3 different" in (out / "report.html").read_text()
    assert not any("geheim" in file.read_text() for file in out.iterdir() if file.suffix in (".json", ".html"))


def test_a_position_that_names_no_code_is_refused(path):
    columns = {"visits": {"missing_codes": ["largest"]}}
    with pytest.raises(shoal.SchemaError, match="does not lie apart from the others"):
        shoal.anonymize(
            path,
            k=5,
            quasi_identifiers=["visits"],
            identifiers=["name", "age", "pay", "born", "place"],
            columns=columns,
        )
