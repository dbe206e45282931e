"""Arrays that hide a text which none of their records has, in every way that Arrow offers."""

import numpy as np
import pyarrow as pa

SECRET, HARMLESS = "SECRET-VALUE", "harmless-one"
"""As long as each other, so that the same files are expected."""


def text_behind_gap(hidden):
    offsets = np.cumsum([0, 1, len(hidden), 1], dtype=np.int32)
    return pa.StringArray.from_buffers(
        3, pa.py_buffer(offsets), pa.py_buffer(f"a{hidden}b".encode()), pa.py_buffer(b"\x05")
    )


def number_behind_gap(hidden):
    numbers = np.array([1, int.from_bytes(hidden[:8].encode(), "little"), 3])
    return pa.Array.from_buffers(pa.int64(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(numbers)])


def bytes_behind_gap(hidden):
    content = b"a" * len(hidden) + hidden.encode() + b"b" * len(hidden)
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(len(hidden)), 3, buffers)


def slice_of_texts(hidden):
    return pa.array([hidden, "a", None, "b", hidden]).slice(1, 3)


def bits_beside_a_slice(hidden):
    first = [True, False, None]
    return pa.array([*first, *([hidden == SECRET] * 5)]).slice(0, 3)


def bits_of_validity(hidden):
    return pa.array([1, None, 3, *([None if hidden == SECRET else 4] * 5)]).slice(0, 3)


def unused_category(hidden):
    return pa.DictionaryArray.from_arrays(pa.array([1, None, 2], pa.int8()), ["x" + hidden, "a", "b", hidden])


def category_behind_gap(hidden):
    indices = pa.Array.from_buffers(
        pa.int8(), 3, [pa.py_buffer(b"\x05"), pa.py_buffer(bytes([0, 2 if hidden == SECRET else 3, 1]))]
    )
    return pa.DictionaryArray.from_arrays(indices, ["a", "b", hidden, "x" + hidden])


def sliced_categories(hidden):
    return pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([hidden, "a", "b", hidden]).slice(1, 2))


def categories_of_views(hidden):
    categories = pa.array(["a", "b", hidden * 2]).cast(pa.string_view())
    return pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), categories)


def categories_of_structures(hidden):
    return pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([{"s": "a"}, {"s": "b"}, {"s": hidden}]))


def slice_of_views(hidden):
    return pa.array([hidden * 2, "a" * 20, None, "b"]).cast(pa.string_view()).slice(1)


def structure_behind_gap(hidden):
    return pa.StructArray.from_arrays([["a", hidden, "b"]], ["s"], mask=pa.array([False, True, False]))


def structure_without_fields(hidden):
    return pa.array([{}, None, {}, *([None if hidden == SECRET else {}] * 5)], pa.struct([])).slice(0, 3)


def list_behind_gap(hidden):
    return pa.ListArray.from_arrays([0, 1, 2, 3], ["a", hidden, "b"], mask=pa.array([False, True, False]))


def large_list_behind_gap(hidden):
    return pa.LargeListArray.from_arrays([0, 1, 2, 3], ["a", hidden, "b"], mask=pa.array([False, True, False]))


def fixed_list_behind_gap(hidden):
    values = pa.array(["a", "b", hidden, hidden, "c", None])
    return pa.FixedSizeListArray.from_arrays(values, 2, mask=pa.array([False, True, False]))


def list_around_others(hidden):
    return pa.ListArray.from_arrays([1, 2, 2, 3], [hidden, "a", "b", hidden])


def list_view_with_rest(hidden):
    values = pa.array([hidden, "a", hidden, "b"])
    return pa.ListViewArray.from_arrays([3, 0, 1], [1, 0, 1], values)


def map_behind_gap(hidden):
    mask = pa.array([False, True, False])
    return pa.MapArray.from_arrays([0, 1, 2, 3], ["a", hidden, "b"], [1, 2, 3], mask=mask)


def sparse_union(hidden):
    codes = pa.array([0, 1, 0, 1], pa.int8())
    return pa.UnionArray.from_sparse(codes, [pa.array(["z", hidden, "a", hidden]), pa.array([1, 2, 3, 4])]).slice(1)


def dense_union(hidden):
    codes, offsets = pa.array([0, 5, 0], pa.int8()), pa.array([1, 0, 2], pa.int32())
    branches = [pa.array([hidden, "a", "b"]), pa.array([7, 8])]
    return pa.UnionArray.from_dense(codes, offsets, branches, ["text", "number"], [0, 5])


def slice_of_runs(hidden):
    ends, values = pa.array([2, 4, 5], pa.int32()), pa.array([hidden, "a", None])
    return pa.RunEndEncodedArray.from_arrays(ends, values).slice(2)


def extension(hidden):
    return pa.json_().wrap_array(text_behind_gap(hidden))


def noted_field(hidden):
    field = pa.field("s", pa.string(), metadata={"by": hidden})
    return pa.array([{"s": "a"}, None, {"s": "b"}], pa.struct([field]))


HIDING = [
    *(text_behind_gap, number_behind_gap, bytes_behind_gap, slice_of_texts, bits_beside_a_slice, bits_of_validity),
    *(unused_category, category_behind_gap, sliced_categories, categories_of_views, categories_of_structures),
    *(slice_of_views, structure_behind_gap, structure_without_fields, list_behind_gap, large_list_behind_gap),
    *(fixed_list_behind_gap, list_around_others, list_view_with_rest, map_behind_gap, sparse_union, dense_union),
    *(slice_of_runs, extension, noted_field),
]

FLAT = HIDING[:2] + HIDING[3:10] + [slice_of_views, slice_of_runs]
"""Those that any file can hold."""

NOT_IN_PARQUET = [structure_without_fields, sparse_union, dense_union]


def alone(array):
    return array


def in_structure(array):
    return pa.StructArray.from_arrays([array, pa.array(range(len(array)))], ["inner", "number"])


def in_list(array):
    return pa.ListArray.from_arrays(list(range(len(array) + 1)), array)


def in_fixed_list(array):
    return pa.FixedSizeListArray.from_arrays(array, 1)


def in_map(array):
    return pa.MapArray.from_arrays(list(range(len(array) + 1)), [f"key {i}" for i in range(len(array))], array)


def in_union(array):
    codes = pa.array([0, 1, 0], pa.int8())
    return pa.UnionArray.from_sparse(codes, [array, pa.array([1, 2, 3])])


def in_list_of_structures(array):
    return in_list(in_structure(array))


def in_list_in_structure(array):
    return in_structure(in_list(array))


NESTINGS = [alone, in_structure, in_list, in_fixed_list, in_map, in_union, in_list_of_structures, in_list_in_structure]

if int(pa.__version__.split(".")[0]) < 24:
    # Arrow before 24 shows slices of sparse unions with wrong gaps, and writes no lists of a fixed size with gaps.
    HIDING.remove(sparse_union)
    NESTINGS.remove(in_union)
    NOT_IN_PARQUET.append(fixed_list_behind_gap)
