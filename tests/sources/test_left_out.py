"""Records are left out by number or by the value of a column, from every source and by every engine, and counted."""

import json
import sqlite3
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.errors import ParameterError, SchemaError
from shoal.sources import KINDS, Reading, read, write
from shoal.sources.batches import open_batches

TOTAL = "Zzsumme"
PLANTED = 74209583
"""The total of a table: what no public byte may show."""

PEOPLE = pa.table(
    {
        "town": ["Reus", "Valls", TOTAL, "Flix", None, "Salou"],
        "age": [30, 40, 99, 50, 60, 70],
        "pay": [1.5, 2.5, None, 4.5, 5.5, 6.5],
    }
)


@pytest.mark.parametrize(
    ("reading", "left"),
    [
        ({"skip_rows": 3}, [2]),
        ({"skip_rows": "1-2, 6"}, [0, 1, 5]),
        ({"skip_rows": [6, "2-3", 3]}, [1, 2, 5]),
        ({"skip_rows": range(1, 4)}, [0, 1, 2]),
        ({"skip_where": {"town": TOTAL}}, [2]),
        ({"skip_where": f"town={TOTAL}"}, [2]),
        ({"skip_where": {"age": [99, 50]}}, [2, 3]),
        ({"skip_where": {"pay": 2.5, "town": None}}, [1, 4]),
        ({"skip_where": ["pay="], "skip_rows": "6"}, [2, 5]),
    ],
)
@pytest.mark.parametrize("kind", ["frame", *(kind.name for kind in KINDS)])
def test_every_source_leaves_out_the_same_records(kind, reading, left, tmp_path):
    source = PEOPLE
    if kind != "frame":
        ending = next(each for each in KINDS if each.name == kind).written[0]
        source = tmp_path / f"people{ending}"
        write(PEOPLE, source)
    whole = read(source)
    table = read(source, **reading)

    kept = [place for place in range(6) if place not in left]
    assert table.arrow["town"].to_pylist() == whole.arrow["town"].take(kept).to_pylist()
    assert table.n_records == len(kept)
    assert table.n_left_out == len(left)
    assert table.receipt.left_out.tolist() == left
    assert [table.receipt.number_of(place) for place in range(len(kept))] == [place + 1 for place in kept]
    assert read(source, columns=["age"], **reading).arrow["age"].to_pylist() == table.arrow["age"].to_pylist()


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_batches_leave_out_what_a_table_leaves_out(ending, tmp_path, monkeypatch):
    path = tmp_path / f"people.{ending}"
    write(PEOPLE, path)
    monkeypatch.setattr(shoal.sources.csv, "_TEXT", 10)
    reading = {"skip_rows": "6", "skip_where": {"town": TOTAL}}
    source = open_batches(path, **reading)

    assert source.n_records == 4
    assert source.n_left_out == 2
    assert pa.concat_tables(source.read()) == read(path, **reading).arrow
    assert pa.concat_tables(source.read(["age"]))["age"].to_pylist() == [30, 40, 50, 60]


def test_a_folder_counts_its_records_through_all_files(tmp_path):
    for number in range(2):
        write(PEOPLE, tmp_path / f"{number}.parquet")
    source = open_batches(tmp_path, skip_rows="1,8-12")

    assert pa.concat_tables(source.read(["age"]))["age"].to_pylist() == [40, 99, 50, 60, 70, 30]


def test_a_total_that_is_left_out_no_longer_makes_a_column_text(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"town;age;pay\nReus;30;1,5\nFlix;40;2,5\n{TOTAL};n = 2;4,0\n")

    assert str(read(path).types.field("age").type) == "string"
    for reading in ({"skip_rows": 3}, {"skip_where": {"town": TOTAL}}, {"skip_where": "age=n = 2"}):
        assert str(read(path, **reading).types.field("age").type) == "int64"
        assert str(open_batches(path, **reading).types.field("age").type) == "int64"


@pytest.mark.parametrize(
    ("reading", "complaint"),
    [
        ({"skip_rows": "7"}, "skip_rows names record 7, but the table has 6 records"),
        ({"skip_rows": "1-6"}, "leave out all 6 records"),
        *(({"skip_rows": odd}, "skip_rows cannot be used") for odd in ("0", "3-1", "x", "", True, [], {"a": 1}, 1.5)),
        ({"skip_where": {"age": 98}}, "leaves out no record: column 'age' has nowhere the value"),
        ({"skip_where": {"age": "Reus"}}, "leaves out no record"),
        ({"skip_where": "town"}, "skip_where cannot be used: it should be COLUMN=VALUE"),
        ({"skip_where": 3}, "skip_where cannot be used"),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_refused(reading, complaint, tmp_path):
    path = tmp_path / "people.parquet"
    write(PEOPLE, path)
    for opened in (read, open_batches):
        with pytest.raises(ParameterError, match=complaint):
            opened(path, **reading)
        with pytest.raises(ParameterError, match=complaint):
            opened(PEOPLE, **reading)


def test_an_unknown_column_is_refused_without_its_value():
    with pytest.raises(SchemaError, match="no column 'twon'") as caught:
        read(PEOPLE, skip_where={"twon": TOTAL})
    assert TOTAL not in str(caught.value)


def test_a_database_has_no_numbers_of_records(tmp_path):
    path = tmp_path / "people.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE people (town TEXT, age INTEGER)")
        base.executemany("INSERT INTO people VALUES (?, ?)", [("Reus", 30), (TOTAL, 99), ("Flix", 40)])

    assert read(path, table="people", skip_where={"town": TOTAL}).arrow["age"].to_pylist() == [30, 40]
    with pytest.raises(ParameterError, match="skip_rows cannot be given for a database, whose records have no order"):
        read(path, table="people", skip_rows=2)


def test_the_settings_are_held_in_one_form():
    assert Reading(skip_rows=[812, "1-2", 3]).skip_rows == "1-3,812"
    assert Reading(skip_where={"a=b": ["x", 2], "c": None}).skip_where == ('"a=b"=x', '"a=b"=2', "c=")


def office_table(n=60):
    """Return people below whom somebody has added a total."""
    rng = np.random.default_rng(1)
    age, pay = rng.integers(20, 70, n).tolist(), rng.integers(1000, 5000, n).tolist()
    region = rng.choice(["north", "south"], n).tolist()
    return pa.table({"region": [*region, TOTAL], "age": [*age, None], "pay": [*pay, PLANTED]})


SETTINGS = {"k": 5, "seed": 1, "quasi_identifiers": ["age", "pay"], "other": ["region"]}


@pytest.mark.parametrize("reading", [{"skip_rows": "61"}, {"skip_where": {"region": TOTAL}}, {"skip_where": "age="}])
@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_a_total_that_is_left_out_never_reaches_a_public_byte(engine, reading, tmp_path):
    source = tmp_path / "people.csv"
    write(office_table(), source)
    release = tmp_path / "release.csv"
    with shoal.anonymize(source, engine=engine, reading=reading, **SETTINGS) as made:
        made.write(release, report=tmp_path / "public.html", form="public", json=tmp_path / "public.json")
        assert made.verdict.n_records == 60
        assert made.records.source.n_left_out == 1
    public = [release, tmp_path / "release.csv.public.json", tmp_path / "public.html", tmp_path / "public.json"]
    told = {path.name: path.read_text(encoding="utf-8") for path in public}

    for text in told.values():
        assert TOTAL not in text
        assert str(PLANTED) not in text
    for name in ("release.csv.public.json", "release.csv.internal.json"):
        assert json.loads((tmp_path / name).read_text())["n_left_out"] == 1
    assert "Left out: 1 record of the table, on request" in told["public.html"]
    assert "Left out: 1 record of the table, on request" in told["public.json"]


def test_the_other_records_are_released_as_if_the_left_out_one_had_never_been_there(tmp_path):
    table = office_table()
    alone = shoal.anonymize(table.slice(0, 60), **SETTINGS)
    left = shoal.anonymize(table, reading={"skip_rows": 61}, **SETTINGS)
    alone.write(tmp_path / "alone.csv")
    left.write(tmp_path / "left.csv")

    assert left.published == alone.published
    assert (tmp_path / "left.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()
    assert "n_left_out" not in (tmp_path / "alone.csv.public.json").read_text()


def test_a_pandas_frame_comes_back_as_one():
    frame = pd.DataFrame({"age": [20, 21, 40, 44, 999], "pay": [1.0, 2.0, 3.0, 4.0, 5.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reading = {"skip_where": {"age": 999}}
        release = shoal.anonymize(frame, k=2, seed=1, quasi_identifiers=["age", "pay"], reading=reading)

    assert isinstance(release.table, pd.DataFrame)
    assert len(release.table) == 4


@pytest.mark.parametrize("engine", ["memory", "disk"])
@pytest.mark.parametrize("odd", ["inf", "much"])
def test_refusals_name_the_number_that_a_record_has_in_its_file(odd, engine, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("\n".join(["age;pay", "Total;9", *(f"{20 + i};{odd if i == 6 else i}" for i in range(40))]) + "\n")
    reading = {"skip_rows": "1", **({} if odd == "inf" else {"fields": {"pay": {"thousands": "."}}})}

    with pytest.raises(shoal.ShoalError, match="the first in record 8"):
        shoal.anonymize(path, k=3, quasi_identifiers=["age", "pay"], engine=engine, reading=reading)
