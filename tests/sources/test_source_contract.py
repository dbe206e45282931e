"""The contract of every source: read, inspect, anonymize, write, audit, and recounted by another reader."""

import contextlib
import os
from collections import Counter
from datetime import datetime

import pyarrow as pa
import pytest

import shoal
from shoal import FileError
from shoal.files import replacing
from shoal.sources import DATABASES, KINDS, read, write, write_into
from sources import PEOPLE, QUASI, SOURCES

ROLES = {"quasi_identifiers": QUASI, "confidential": ["illness"]}
TABLES = [name for name, source in SOURCES.items() if "to_table" in source.writing]
SETTINGS = {"k": 3, "seed": 1, "columns": {"sex": {"kind": "nominal"}}, "accept": ["single-record-values"]}


def records(table):
    """Return the records as a multiset of plain values: sources differ in order and in types of numbers and dates."""
    columns = [map(_plain, table[name].to_pylist()) for name in PEOPLE.column_names]
    return Counter(zip(*columns, strict=True))


def _plain(value):
    if isinstance(value, datetime):
        return value.date()
    return float(value) if isinstance(value, int | float) else value


def test_every_source_of_the_registry_is_tested():
    assert {source.kind for source in SOURCES.values()} == {kind.name for kind in (*KINDS, *DATABASES)}


@pytest.fixture(scope="module", params=SOURCES)
def source(request):
    return SOURCES[request.param]


@pytest.fixture(scope="module")
def folder(source, tmp_path_factory):
    return tmp_path_factory.mktemp(source.kind)


@pytest.fixture(scope="module")
def people(source, folder):
    return source.make(PEOPLE, folder)


@pytest.fixture(scope="module")
def release(source, people):
    return shoal.anonymize(people, reading=source.reading, **ROLES, **SETTINGS)


@pytest.fixture(scope="module")
def released(source, release, folder):
    address = source.out(folder)
    with contextlib.chdir(folder):  # to which the manifest of a server goes
        release.write(address, **source.writing)
    return address


def test_it_is_read_as_it_is(source, people):
    table = read(people, **source.reading)

    assert table.kind == source.kind
    assert set(table.names) == set(PEOPLE.column_names)
    assert records(table.arrow) == records(PEOPLE)


def test_some_columns_are_read_in_the_order_asked_for(source, people):
    table = read(people, columns=["town", "age"], **source.reading)

    assert table.names == ("town", "age")
    with pytest.raises(shoal.SchemaError, match="Did you mean 'town'"):
        read(people, columns=["towm"], **source.reading)


def test_an_option_of_another_source_is_refused(source, people):
    (kind,) = [kind for kind in (*KINDS, *DATABASES) if kind.name == source.kind]
    other = next(name for each in KINDS for name in sorted(each.options) if name not in kind.options)

    with pytest.raises(shoal.ParameterError, match=f"{other} cannot be given"):
        read(people, **source.reading, **{other: "1"})


def test_it_is_inspected_without_a_value(source, people):
    found = shoal.inspect(people, **source.reading)

    assert found.n_records == 60
    assert {column.facts.name for column in found.columns} == set(PEOPLE.column_names)
    assert not [town for town in ("Ulm", "Zürich", "Oslo") if town in str(found)]


def test_a_release_is_made_written_and_audited(source, release, released):
    verdict = shoal.audit(released, k=3, **ROLES, **_reading_of_release(source))

    assert release.verdict.holds
    assert verdict.holds
    assert verdict.n_records == 60


def test_another_reader_counts_the_same(source, release, released):
    found = source.recount(released)
    classes = Counter(zip(*(found[name].to_pylist() for name in QUASI), strict=True))

    assert min(classes.values()) >= 3
    assert records(found) == records(release.published)


def test_what_is_written_is_read_back_with_the_same_types(source, release, released):
    again = read(released, **_reading_of_release(source))

    assert records(again.arrow) == records(release.published)
    assert _kinds(again.arrow) == _kinds(release.published)


@pytest.mark.parametrize("source", [name for name in SOURCES if name not in TABLES], indirect=True)
def test_the_same_release_is_written_as_the_same_bytes(source, release, folder, released):
    again = folder / f"again{''.join(released.suffixes)}"
    release.write(again, **source.writing)

    assert again.read_bytes() == released.read_bytes()


def _reading_of_release(source):
    """Return how a release is read: from the table that it was written to, if it is in a database."""
    kept = {name: value for name, value in source.reading.items() if name in source.writing}
    return kept | ({"table": source.writing["to_table"]} if "to_table" in source.writing else {})


def _kinds(table):
    """Return what the columns hold: text, dates or numbers; whole numbers may come back as integers."""
    is_so = {"text": pa.types.is_string, "text ": pa.types.is_large_string, "date": pa.types.is_date}
    return {
        field.name: next((kind.strip() for kind, holds in is_so.items() if holds(field.type)), "number")
        for field in table.schema
        if not pa.types.is_timestamp(field.type)
    }


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
@pytest.mark.parametrize("ending", [ending for kind in KINDS for ending in kind.written])
def test_a_full_disk_is_told_as_such_by_every_writer(ending, tmp_path):
    def write_to_a_full_disk():
        with replacing(tmp_path / f"release{ending}") as temporary:
            temporary.unlink()
            temporary.symlink_to("/dev/full")
            write_into(pa.table({"name": [f"Zyxwv {i}" for i in range(500)]}), temporary)

    with pytest.raises(FileError, match=r"cannot be written: the disk is full\. Make room"):
        write_to_a_full_disk()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".xlsx", ".sav", ".zsav", ".dta", ".xpt"])
@pytest.mark.parametrize("column", [pa.array([-800_000, 0], pa.date32()), pa.array([2**59, 0], pa.timestamp("us"))])
def test_dates_that_a_reader_could_not_return_are_refused(ending, column, tmp_path):
    with pytest.raises(FileError, match="Column 'born' has dates"):
        write(pa.table({"born": column}), tmp_path / f"release{ending}")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".sav", ".zsav", ".dta", ".xpt"])
@pytest.mark.parametrize("name", ["age\0low", "", "age low"])
def test_names_that_a_file_would_change_are_refused_by_name(ending, name, tmp_path):
    with pytest.raises(FileError, match="The cause may be the names") as refused:
        write(pa.table({"income": [1.0], name: [1.0]}), tmp_path / f"release{ending}")

    assert repr(name) in str(refused.value)
    assert "income" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", [".dta", ".xpt"])
def test_intervals_in_columns_are_refused_with_the_way_out(ending, tmp_path):
    people = pa.table({"age": [1, 2, 3, 4]})
    release = shoal.anonymize(people, k=2, quasi_identifiers="age", truthful=True, intervals="columns", seed=1)
    with pytest.raises(FileError, match=r"names 'age\.low', 'age\.high'.* publish intervals as text"):
        release.write(tmp_path / f"release{ending}")

    assert list(tmp_path.iterdir()) == []
