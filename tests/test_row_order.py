"""The order of the people is in nothing public: not in a list of categories, and not in the last digit of a number."""

import warnings

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from row_order import (
    CONFIDENTIAL,
    ORDER,
    QUASI,
    SETTINGS,
    K,
    people,
    permuted,
    public_bytes,
    released,
    with_categories,
    with_nested,
)
from shoal import SchemaError
from shoal.incremental.collection import begin
from shoal.sources import FORMATS, read
from shoal.sources.arrow_buffers import has_categories
from shoal.stream import Stream

FLAT = [".csv", ".tsv.gz", ".ndjson", ".xlsx", ".parquet", ".arrow", ".sav", ".dta", ".xpt"]
ONE, OTHER = people(), permuted(people(), seed=7)


def test_every_format_is_compared():
    assert {FORMATS[ending].name for ending in FLAT} == {kind.name for kind in FORMATS.values()}


@pytest.fixture(scope="module")
def releases():
    """Return two releases of the same people in two orders."""
    return [released(with_categories(table), table.column_names) for table in (ONE, OTHER)]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("settings", [{"weights": "weight"}, {"truthful": True}])
def test_no_digit_and_no_set_follows_from_the_order_of_the_input(tmp_path, settings, ending):
    found = [
        public_bytes(released(table, table.column_names, **settings), tmp_path / str(number), ending)
        for number, table in enumerate((ONE, OTHER))
    ]

    assert found[0] == found[1]


@pytest.mark.parametrize("ending", FLAT)
def test_the_bytes_of_a_release_do_not_depend_on_the_order_of_the_input(releases, tmp_path, ending):
    one, other = (public_bytes(each, tmp_path / str(n), ending) for n, each in enumerate(releases))

    assert one == other
    assert len(one) == 4  # the table, its manifest and two reports


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
@pytest.mark.parametrize(("source", "engine"), [("frame", "memory"), ("file", "memory"), ("file", "disk")])
def test_the_bytes_of_nested_categories_do_not_depend_on_the_order_of_the_input(tmp_path, ending, source, engine):
    found = []
    for number, table in enumerate((ONE, OTHER)):
        table = with_nested(table)
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path)
        given = path if source == "file" else table
        release = released(given, table.column_names, engine=engine, **({"by": []} if engine == "disk" else {}))
        found.append(public_bytes(release, tmp_path / str(number), ending))
    written = read(tmp_path / "0" / f"release{ending}")

    assert found[0] == found[1]
    # Each part of a release in blocks would have a list of its own, which an Arrow file cannot hold.
    assert any(map(has_categories, written.types.types)) == (engine == "memory")


@pytest.mark.parametrize("name", ["release.db", "release.duckdb"])
def test_a_table_in_a_database_does_not_depend_on_the_order_of_the_input(releases, tmp_path, name):
    found = []
    for number, release in enumerate(releases):
        (tmp_path / str(number)).mkdir()
        release.write(tmp_path / str(number) / name, to_table="release")
        found.append(stored(tmp_path / str(number) / name))

    assert found[0] == found[1]


def stored(path):
    """Return a file of SQLite as it is; of DuckDB, which gives each file an identity, what can be read from it."""
    if path.suffix == ".db":
        return path.read_bytes()
    with duckdb.connect(path, read_only=True) as connection:
        queries = ["SELECT rowid, * FROM release", "FROM shoal_manifest", "SELECT sql FROM duckdb_tables()"]
        return [connection.sql(query).fetchall() for query in queries]


def as_polars(table):
    return pl.from_arrow(table).cast({"pain": pl.Enum(ORDER)})


POLARS_1 = pytest.mark.skipif(pl.__version__ < "2", reason="an Enum of polars 1 has no order in Arrow")


@pytest.mark.parametrize("frame", [pa.Table.to_pandas, pytest.param(as_polars, marks=POLARS_1)])
def test_the_categories_of_a_frame_are_those_published_in_ascending_order(frame):
    table = with_categories(ONE)
    release = released(frame(table), table.column_names)
    returned = read(release.table).arrow

    for name in ("city", "salary", "illness", "note"):
        values = sorted(set(release.published[name].to_pylist()))
        assert listed(release.published[name]) == values
        # A polars frame has no list of its own, but lists them when it is converted.
        assert frame is as_polars or listed(returned[name]) == values
    assert listed(release.published["pain"]) == listed(returned["pain"]) == ORDER


def listed(column):
    """Return the list of the categories of a column."""
    return column.unify_dictionaries().chunk(0).dictionary.to_pylist()


def test_the_categories_of_a_stream_follow_from_each_batch_that_it_releases():
    table = with_categories(ONE).select(["age", "salary", "pain"])
    stream = Stream(K, delay=10, quasi_identifiers=["age"], other=["salary", "pain"])
    batches = [table.slice(start, 17) for start in range(0, table.num_rows, 17)]
    found = [part for part in [*map(stream.push, batches), stream.flush()] if part.num_rows]

    assert sum(part.num_rows for part in found) == table.num_rows
    for part in found:
        assert listed(part["salary"]) == sorted(part["salary"].to_pylist())
        assert listed(part["pain"]) == [grade for grade in ORDER if grade in part["pain"].to_pylist()]


def test_a_stream_refuses_ranks_that_would_follow_from_the_arrival_of_tuples():
    def batch(order):
        pain = pa.DictionaryArray.from_arrays(range(len(order)), order, ordered=True)
        return pa.table({"age": pa.array(range(len(order)), pa.float64()), "pain": pain})

    stream = Stream(2, delay=100, quasi_identifiers=["age"], other=["pain"])
    stream.push(batch(["low", "high"]))
    stream.push(batch(["low", "high"]))
    with pytest.raises(SchemaError, match=r"'pain' has ordered categories that are not those of the batch before"):
        stream.push(batch(["low", "mid", "high"]))

    assert stream.flush()["pain"].to_pylist() == ["low", "low", "high", "high"]


def test_a_collection_is_published_without_the_order_in_which_its_records_came(tmp_path):
    table = with_categories(ONE)
    base, late = table.slice(0, 150), table.slice(150)  # late records of other salaries and notes
    found = []
    for number in range(2):
        parts = [permuted(part, seed=number) if number else part for part in (base, late)]
        roles = {
            "quasi_identifiers": QUASI,
            "confidential": CONFIDENTIAL,
            "other": ["note", "weight"],
            "identifiers": ["town"],
        }
        settings = {"method": "mdav", "accept": SETTINGS["accept"], "columns": {"grade": {"categories": ORDER}}}
        collection = begin(tmp_path / f"{number}.collection", parts[0], k=K, seed=1, **roles, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            collection.add(parts[1])
            found.append(public_bytes(collection.finish(), tmp_path / str(number), ".arrow"))
    published = read(tmp_path / "0" / "release.arrow").arrow

    assert found[0] == found[1]
    assert listed(published["salary"]) == sorted(published["salary"].to_pylist())


def test_a_late_record_brings_no_new_rank(tmp_path):
    table = with_categories(ONE).select(["age", "pain"])
    collection = begin(tmp_path / "collection", table, k=K, quasi_identifiers=["age"], other=["pain"], seed=1)
    late = pa.table({"age": [30.0, 40.0], "pain": ["worst", "low"]})

    with pytest.raises(SchemaError, match=r"'pain' is ordinal, and 1 late records have .* so their rank is unknown"):
        collection.add(late)
