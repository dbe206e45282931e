import math
import pickle
from itertools import permutations

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hiding import (
    FLAT,
    HARMLESS,
    HIDING,
    NESTINGS,
    NOT_IN_PARQUET,
    SECRET,
    alone,
    in_list,
    in_map,
    in_structure,
    slice_of_texts,
    sliced_categories,
    text_behind_gap,
    unused_category,
)

import shoal
from shoal import FileError, SchemaError
from shoal.sources import FORMATS, read, write
from shoal.sources.arrow_buffers import bare, bare_type


def buffers_of(array):
    """Return all the bytes of an array in memory, those of its dictionaries too."""
    found = [bytes(buffer) for buffer in array.buffers() if buffer is not None]
    return found + (buffers_of(array.dictionary) if pa.types.is_dictionary(array.type) else [])


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("nested", NESTINGS)
def test_a_bare_column_has_its_values_and_nothing_else(hiding, nested):
    column, other = (pa.chunked_array([nested(hiding(text))]) for text in (SECRET, HARMLESS))
    found, like = bare(column), bare(other)
    found.validate(full=True)

    assert found.to_pylist() == column.to_pylist() == other.to_pylist()
    assert found.type == bare_type(column.type)
    files = [as_file(pa.table({"a": each})) for each in (found, like)]
    assert SECRET.encode() not in files[0]
    assert SECRET[:8].encode() not in files[0]
    assert files[0] == files[1]
    assert [buffers_of(chunk) for chunk in found.chunks] == [buffers_of(chunk) for chunk in like.chunks]


def as_file(table):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("hiding", HIDING)
@pytest.mark.parametrize("nested", NESTINGS)
def test_a_slice_and_several_chunks_are_bare(hiding, nested):
    array = nested(hiding(SECRET))
    column = pa.chunked_array([array.slice(1), array.slice(0, 1), array.slice(0, 0)])
    found = bare(column)
    found.validate(full=True)

    assert found.to_pylist() == column.to_pylist()
    assert SECRET.encode() not in as_file(pa.table({"a": found}))


@pytest.mark.parametrize(
    "ending", [".csv", ".csv.gz", ".csv.zst", ".ndjson", ".xlsx", ".parquet", ".arrow", ".sav", ".zsav", ".dta", ".xpt"]
)
@pytest.mark.parametrize("hiding", HIDING)
def test_no_file_holds_a_value_that_no_record_has(tmp_path, ending, hiding):
    tables = [pa.table({"a": hiding(text), "b": range(3)}) for text in (SECRET, HARMLESS)]
    paths = [tmp_path / f"{number}{ending}" for number in range(2)]
    if hiding in NOT_IN_PARQUET if ending == ".parquet" else hiding not in FLAT and FORMATS[ending].name != "arrow":
        with pytest.raises(FileError) as caught:
            write(tables[0], paths[0])
        assert SECRET not in str(caught.value)
        assert list(tmp_path.iterdir()) == []
        return
    for table, path in zip(tables, paths, strict=True):
        write(table, path)
    content = [path.read_bytes() for path in paths]

    assert SECRET.encode() not in content[0]
    assert SECRET[:8].encode() not in content[0]
    assert content[0] == content[1]


@pytest.mark.parametrize("hiding", HIDING)
def test_no_frame_holds_a_value_that_no_record_has(hiding):
    table = pa.table({"a": hiding(SECRET)})
    released = read(table).like(table)

    assert released.to_pydict() == table.to_pydict()
    assert SECRET.encode() not in pickle.dumps(released)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("hiding", [unused_category, sliced_categories, text_behind_gap, slice_of_texts])
def test_no_frame_of_a_library_holds_a_value_that_no_record_has(library, hiding):
    table = pa.table({"a": hiding(SECRET)})
    frame = table.to_pandas(types_mapper=pd.ArrowDtype) if library == "pandas" else pl.from_arrow(table)
    released = read(frame).like(table)

    assert SECRET.encode() not in pickle.dumps(released)


def test_categories_cut_out_of_other_texts_are_published_alone(tmp_path):
    names = pd.Series([f"name{i:02}" for i in range(20)], dtype="string[pyarrow]")
    frame = pd.DataFrame({"who": pd.Categorical.from_codes([0, 1, 0, 1], categories=names[10:12]), "x": [1, 2, 3, 4]})
    release = shoal.anonymize(frame, k=2, quasi_identifiers=["x"], other=["who"])

    for ending in (".arrow", ".parquet", ".csv"):
        release.write(tmp_path / f"a{ending}", order="keep")
        assert read(tmp_path / f"a{ending}").arrow["who"].to_pylist() == ["name10", "name11"] * 2
    content = (tmp_path / "a.arrow").read_bytes() + pickle.dumps(release.table) + pickle.dumps(release.published)
    assert {name for name in names if name.encode() in content} == {"name10", "name11"}


@pytest.mark.parametrize("values", [["b", "a", "c"], [3, 1, 2], [0.0, -0.0, math.nan], [b"b", b"", b"\0"]])
@pytest.mark.parametrize("nested", NESTINGS)
def test_the_list_of_categories_follows_from_the_values_alone(nested, values):
    def listed(order, *more):
        codes = [order.index(record) for record in range(3)]
        return nested(pa.DictionaryArray.from_arrays(codes, pa.array([*(values[i] for i in order), *more])))

    arrays = [listed(order, *more) for order in permutations(range(3)) for more in ([], [None], values)]

    assert len({as_file(pa.table({"a": bare(pa.chunked_array([array]))})) for array in arrays}) == 1


def test_categories_listed_twice_and_missing_ones_do_not_tell_records_apart():
    array = pa.DictionaryArray.from_arrays([0, 1, 2, 3, None], ["b", "a", "b", None])
    found = bare(pa.chunked_array([array])).chunk(0)

    assert found.dictionary.to_pylist() == ["a", "b"]
    assert found.indices.to_pylist() == [1, 0, 1, None, None]


def ordered(codes, categories):
    return pa.DictionaryArray.from_arrays(codes, categories, ordered=True)


@pytest.mark.parametrize("nested", [alone, in_list, in_structure, in_map])
def test_ordered_categories_keep_their_order_without_those_that_no_record_has(nested):
    parts = [ordered([1, 0], ["low", "high"]), ordered([2, 1], ["none", "low", "mid", "high"])]
    for chunks in (parts, parts[::-1]):
        found = bare(pa.chunked_array([nested(part) for part in chunks])).chunk(0)

        assert categories_in(found) == ["low", "mid", "high"]


def test_ordered_categories_of_no_record_stay_ordered(monkeypatch):
    made = pa.array

    def unordered(values, kind=None, **given):
        """As Arrow before 24 makes an array of ordered categories from no values."""
        assert not (isinstance(kind, pa.DictionaryType) and kind.ordered)
        return made(values, kind, **given)

    kind = pa.dictionary(pa.int8(), pa.string(), ordered=True)
    monkeypatch.setattr(pa, "array", unordered)

    assert bare(pa.chunked_array([], kind)).type == kind
    assert bare(pa.chunked_array([ordered(made([0], pa.int8()), ["low"]).slice(1)])).type == kind


def categories_in(array):
    """Return the categories at the innermost level of an array."""
    while not pa.types.is_dictionary(array.type):
        kind = array.type
        array = array.field(0) if pa.types.is_struct(kind) else array.items if pa.types.is_map(kind) else array.values
    return array.dictionary.to_pylist()


def test_ordered_categories_without_one_order_are_refused_by_name(tmp_path):
    column = pa.chunked_array([ordered([0, 1], ["low", SECRET]), ordered([0, 1], [SECRET, "low"])])

    with pytest.raises(SchemaError, match=r"ordered categories of column 'a' are not listed in one order") as caught:
        write(pa.table({"a": column}), tmp_path / "a.arrow")
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_column_that_cannot_be_made_bare_is_refused_by_name(tmp_path):
    with_null = [pa.DictionaryArray.from_arrays([0, 1, 2], [text, None, "a"]) for text in (SECRET, HARMLESS)]
    column = pa.chunked_array(with_null)  # which Arrow does not unite

    with pytest.raises(SchemaError, match=r"Column 'a' has type dictionary.*it is not published") as caught:
        write(pa.table({"a": column}), tmp_path / "a.arrow")
    assert SECRET not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_column_with_nothing_beside_its_values_is_not_copied():
    column = pa.chunked_array([pa.array([1.5, 2.5, 3.5])])

    assert bare(column).chunk(0).buffers()[1].address == column.chunk(0).buffers()[1].address


def test_a_bitmap_without_missing_values_is_left_out_and_the_values_are_not_copied():
    taken = pa.array(["a", "bc", "d"]).take(pa.array([2, 0, 1]))
    found = bare(pa.chunked_array([taken])).chunk(0)

    assert found.to_pylist() == ["d", "a", "bc"]
    assert found.buffers()[0] is None
    assert found.buffers()[2].address == taken.buffers()[2].address
