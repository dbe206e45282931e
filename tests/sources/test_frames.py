import datetime as dt

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import given

import shoal
from shoal import ParameterError, SchemaError
from shoal.sources import read, write
from strategies import arrow_tables

FRAMES = {
    # Without its own type for whole numbers that may be missing, pandas would round the large ones.
    "pandas": lambda arrow: arrow.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
    "polars": pl.from_arrow,
    "pyarrow": lambda arrow: arrow,
    "duckdb": duckdb.from_arrow,
}
ONE = pa.table({"a": [1, 2]})


def decoded(arrow):
    """Return the values of a table, with the types that the kinds of frames share."""
    return {name: column.to_pylist() for name, column in zip(arrow.column_names, arrow.columns, strict=True)}


def people():
    return pd.DataFrame(
        {
            "age": [31, 45, 52],
            "name": ["x", None, "z"],
            "town": pd.Categorical(["v", "u", "v"], categories=["w", "v", "u"], ordered=True),
            "children": pd.array([1, None, 3], dtype="Int64"),
            "small": pd.array([1, None, 3], dtype="Int8"),
            "seen": pd.to_datetime(["2020-01-01", "2020-01-02", None]).tz_localize("Europe/Berlin"),
            "note": pd.Series(["q", "", "r"], dtype=object),
            "height": [1.5, None, 2.5],
            "flag": pd.array([True, None, False], dtype="boolean"),
            "text": pd.array(["a", None, "c"], dtype="string"),
            "arrow": pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.int16())),
            "born": [dt.date(2000, 1, 1)] * 3,
        }
    )


@pytest.mark.parametrize("kind", FRAMES)
@given(arrow=arrow_tables())
def test_values_survive_the_way_in_and_the_way_back(kind, arrow):
    table = read(FRAMES[kind](arrow))
    again = read(table.like(table.arrow))

    assert table.kind == kind
    assert type(table.like(table.arrow)) is type(FRAMES[kind](arrow))
    assert decoded(table.arrow) == decoded(arrow)
    assert decoded(again.arrow) == decoded(arrow)


def test_a_pandas_frame_comes_back_with_its_dtypes_and_without_unused_categories():
    frame = people()
    back = read(frame).like(read(frame).arrow)
    frame["town"] = frame["town"].cat.remove_unused_categories()

    pd.testing.assert_frame_equal(back, frame)


def test_whole_numbers_that_became_means_come_back_as_floats():
    frame = people()[["age", "children"]]
    means = pa.table({"age": [1.5, 2.0, 2.5], "children": [1.5, 2.0, None]})
    back = read(frame).like(means)

    assert back.dtypes.astype(str).to_dict() == {"age": "float64", "children": "Float64"}


@pytest.mark.parametrize(
    ("index", "names"),
    [
        (pd.Index([5, 3, 9]), ("index",)),
        (pd.Index(["x", "y", "z"], name="id"), ("id",)),
        (pd.MultiIndex.from_tuples([(1, "a"), (1, "b"), (2, "a")], names=["g", None]), ("g", "level_1")),
        (pd.RangeIndex(1, 4), ("index",)),
    ],
)
def test_a_pandas_index_that_says_something_is_a_column_and_comes_back_as_index(index, names):
    frame = people()[["age", "name"]].set_index(index)
    table = read(frame)

    assert table.index == names
    assert table.names == (*names, "age", "name")
    pd.testing.assert_frame_equal(table.like(table.arrow), frame, check_index_type=False)


def test_a_pandas_index_that_only_counts_is_no_column_and_one_that_is_dropped_stays_away():
    frame = people()[["age"]]
    indexed = frame.set_index(pd.Index([7, 8, 9], name="id"))

    assert read(frame).names == ("age",)
    assert read(frame).index == ()
    pd.testing.assert_frame_equal(read(indexed).like(pa.table({"age": [31, 45, 52]})), frame)


def test_an_index_called_like_a_column_is_refused():
    frame = people()[["age"]].set_index(pd.Index([7, 8, 9], name="age"))

    with pytest.raises(SchemaError, match="both called 'age'"):
        read(frame)


def test_pandas_names_that_are_no_text_become_text_and_come_back():
    frame = pd.DataFrame(np.arange(4).reshape(2, 2))
    table = read(frame)

    assert table.names == ("0", "1")
    pd.testing.assert_frame_equal(table.like(table.arrow), frame, check_column_type=False)
    with pytest.raises(SchemaError, match="same name: '1'"):
        read(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    with pytest.raises(SchemaError, match="2 levels"):
        read(pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])))


def test_a_pandas_column_of_mixed_types_is_refused_without_its_values_unless_it_is_left_out():
    frame = pd.DataFrame({"ok": [1, 2], "odd": [1, "SECRET"]})

    with pytest.raises(SchemaError, match="Column 'odd'") as caught:
        read(frame)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert read(frame, columns=["ok"]).names == ("ok",)


@pytest.mark.parametrize(
    "twice",
    [
        lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]),
        lambda: pa.table([[1], [2]], names=["a", "a"]),
        lambda: duckdb.sql("select 1 as a, 2 as a"),
    ],
    ids=["pandas", "pyarrow", "duckdb"],
)
def test_two_columns_of_one_name_are_refused(twice):
    with pytest.raises(SchemaError, match="same name: 'a'"):
        read(twice())


def test_categories_that_no_record_has_are_not_given_back():
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0]), ["c", "SECRET", "a"], ordered=True)
    table = read(pa.table({"x": pa.chunked_array([column, column])}))
    back = table.like(table.arrow)["x"]

    assert back.to_pylist() == ["a", None, "c"] * 2
    assert [chunk.dictionary.to_pylist() for chunk in back.chunks] == [["c", "a"]]
    assert back.type.ordered


@pytest.mark.skipif(pl.__version__ < "2", reason="polars 1 makes a Categorical of it")
def test_a_polars_enum_comes_back_as_an_enum_of_what_occurs():
    table = read(pl.DataFrame({"e": pl.Series(["u"], dtype=pl.Enum(["SECRET", "u"]))}))

    assert table.like(table.arrow).schema == {"e": pl.Enum(["u"])}
    assert table.like(table.arrow.slice(1)).schema == {"e": pl.Enum([])}


def hidden_behind_gaps():
    """Yield tables with a secret in the place of a missing value, or outside of a slice."""
    mask, number, text = (
        np.array([False, True, False]),
        np.frombuffer(b"SECRET!!", dtype=np.int64)[0],
        ["x", "SECRET", "z"],
    )
    yield pd.DataFrame({"a": pd.arrays.IntegerArray(np.array([1, number, 3]), mask)})
    yield pl.DataFrame({"a": text}).with_columns(a=pl.when(pl.col("a") != "SECRET").then(pl.col("a")))
    validity = pa.py_buffer(bytes([0b101]))
    yield pa.table({"a": pa.Array.from_buffers(pa.string(), 3, [validity, *pa.array(text).buffers()[1:]])})
    yield pa.table({"a": pa.StructArray.from_arrays([pa.array(text)], ["part"], mask=pa.array(mask))})
    yield pa.table({"a": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3]), pa.array(text), mask=pa.array(mask))})
    yield pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), ["x", "SECRET"])}).slice(2)
    yield pa.table({"a": text}).slice(2)
    yield pa.table({"a": [1.0, np.frombuffer(b"SECRET!!")[0]]}).slice(0, 1)


@pytest.mark.parametrize("frame", list(hidden_behind_gaps()), ids=lambda frame: type(frame).__module__)
def test_nothing_stays_hidden_behind_a_missing_value_or_outside_a_slice(frame, tmp_path):
    table = read(frame)
    back = read(table.like(table.arrow)).arrow
    write(table.arrow, tmp_path / "a.arrow")

    assert back.to_pydict() == table.arrow.to_pydict() == read(tmp_path / "a.arrow").arrow.to_pydict()
    assert b"SECRET" not in (tmp_path / "a.arrow").read_bytes()
    for buffer in (buffer for chunk in back["a"].chunks for buffer in chunk.buffers() if buffer):
        assert b"SECRET" not in buffer.to_pybytes()


def test_metadata_does_not_come_along():
    field = pa.field("a", pa.int64(), metadata={"author": "SECRET"})
    arrow = pa.table([[1]], schema=pa.schema([field], metadata={"pandas": "SECRET"}))

    assert read(arrow).arrow.schema.metadata is None
    assert read(arrow).arrow.schema.field("a").metadata is None
    assert read(ONE).like(arrow).schema.field("a").metadata is None


def test_other_holders_of_records_are_taken_too():
    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return ONE.__arrow_c_stream__(requested_schema)

    batch = ONE.to_batches()[0]

    assert read(Stream()).like(ONE) == ONE
    assert read(ONE.to_reader()).arrow == ONE
    assert read(batch).like(ONE) == batch
    assert isinstance(read(nw.from_native(pl.DataFrame(ONE))).like(ONE), nw.DataFrame)
    assert read(pl.DataFrame({"s": ["x"]}).to_arrow(compat_level=pl.CompatLevel.newest())).arrow.schema.types == [
        pa.large_string()
    ]


@pytest.mark.parametrize("kind", ["polars lazy", "pyarrow dataset"])
def test_a_frame_that_is_not_in_memory_comes_back_as_one(kind):
    source = pl.LazyFrame(ONE) if kind == "polars lazy" else pyarrow.dataset.dataset(ONE)
    table = read(source)

    assert table.kind == kind
    assert table.arrow == ONE
    assert type(table.like(ONE)) is type(source)
    assert read(table.like(ONE)).arrow == ONE


@pytest.mark.parametrize("kind", ["polars lazy", "pyarrow dataset"])
def test_of_a_frame_that_is_not_in_memory_only_the_wanted_columns_are_read(kind, tmp_path):
    pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}).write_parquet(tmp_path / "ab.parquet")
    source = pl.scan_parquet(tmp_path / "ab.parquet") if kind == "polars lazy" else pyarrow.dataset.dataset(tmp_path)

    assert read(source, columns=["a"]).arrow == pa.table({"a": [1, 2]})
    with pytest.raises(SchemaError, match="no column 'c'"):
        read(source, columns=["c"])


def test_a_pandas_frame_of_arrow_types_is_released_with_arrow_types():
    ages = [20, 21, 40, 44]
    frame = pd.DataFrame(
        {
            "age": pd.array(ages, dtype=pd.ArrowDtype(pa.int16())),
            "ill": pd.array(list("abab"), dtype=pd.ArrowDtype(pa.string())),
        }
    )
    release = shoal.anonymize(frame, k=2, quasi_identifiers=["age"], confidential=["ill"])

    assert release.table.dtypes.to_dict() == {"age": pd.ArrowDtype(pa.float64()), "ill": pd.ArrowDtype(pa.string())}
    assert release.table["age"].tolist() == [20.5, 20.5, 42.0, 42.0]


@pytest.mark.parametrize("source", [[1], {"a": [1]}, np.ones((2, 2)), None, 5, pd.Series([1]), pl.Series([1])])
def test_what_is_no_table_is_refused_by_its_type(source):
    with pytest.raises(ParameterError, match=f"made from {type(source).__name__}"):
        read(source)


@pytest.mark.parametrize("kind", FRAMES)
def test_columns_are_taken_as_asked_and_missing_ones_named_with_the_nearest(kind):
    frame = FRAMES[kind](pa.table({"age": [1], "income": [2], "zip": [3]}))

    assert read(frame, columns=["zip", "age"]).names == ("zip", "age")
    with pytest.raises(SchemaError, match=r"no column 'incom'\. Did you mean 'income'\? Columns: age, income, zip\."):
        read(frame, columns=["age", "incom"])


def test_a_reading_option_for_a_frame_is_an_error():
    with pytest.raises(ParameterError, match="delimiter, header cannot be given"):
        read(ONE, delimiter=";", header=True)


def test_a_table_tells_its_size_and_no_values():
    table = read(pa.table({"a": ["SECRET"]}))

    assert repr(table) == "Table('pyarrow', 1 records x 1 columns)"
    assert table.n_records == 1


def test_values_that_are_stored_as_runs_are_read_as_what_they_are():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", None]))
    table = read(pa.table({"x": [1, 2, 3], "runs": runs}))

    assert table.arrow["runs"].to_pylist() == ["a", "a", None]
    assert table.arrow["runs"].type == pa.string()


def test_runs_within_lists_are_read_too():
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"]))
    table = read(pa.table({"lists": pa.ListArray.from_arrays([0, 1, 2], runs)}))

    assert table.arrow["lists"].to_pylist() == [["a"], ["a"]]
    assert table.arrow["lists"].type == pa.list_(pa.string())
