"""Bare columns: buffers that hold the values of the records and nothing else, at every nesting level.

An Arrow array can carry hidden data: the bytes under a null, the values before and after a slice, unused dictionary
entries, the branches of a union that were not selected, metadata on the fields of a struct. Anyone who opens an Arrow
or Parquet file can read them, so a column is rebuilt from its values before it is published.

The list of categories is hidden data too: Arrow, pandas and polars list them by first occurrence, which is the order of
the records that the published order replaces. Categories are listed in ascending order, unless they have an order of
their own, and each once.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_types = pa.types
_LISTS = (_types.is_list, _types.is_list_view)
_LARGE_LISTS = (_types.is_large_list, _types.is_large_list_view)


def bare(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that holds only values of the records, of a type without metadata, views or run-end encoding.

    Raises
    ------
    pyarrow.ArrowException
        If the column has a type that cannot be rebuilt.
    OrdersDifferError
        If its chunks do not list ordered categories in one order.
    """
    kind = bare_type(column.type)
    chunks = [chunk for chunk in column.chunks if len(chunk)]
    if has_categories(kind) and len(chunks) > 1:
        # Which categories are used depends on the whole column.
        chunks = [pa.concat_arrays(_with_one_list(chunks))]
    if _types.is_dictionary(kind) and not chunks:
        chunks = [pa.nulls(0, kind)]  # without a chunk there would be no dictionary, not even an empty one
    return pa.chunked_array(map(_bare, chunks), kind)


def bare_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a rebuilt column."""
    if isinstance(kind, pa.BaseExtensionType):
        storage = bare_type(kind.storage_type)
        return kind if storage == kind.storage_type else storage
    for is_so, plain in _PLAIN.items():
        if is_so(kind):
            return plain()
    if _types.is_run_end_encoded(kind):
        return bare_type(kind.value_type)
    if _types.is_dictionary(kind):
        values = bare_type(kind.value_type)
        return pa.dictionary(kind.index_type, values, kind.ordered) if _can_be_listed(values) else values
    if _types.is_map(kind):
        return pa.map_(bare_type(kind.key_type), bare_type(kind.item_type), kind.keys_sorted)
    if any(is_so(kind) for is_so in _LISTS):
        return pa.list_(_bare_field(kind.value_field))
    if any(is_so(kind) for is_so in _LARGE_LISTS):
        return pa.large_list(_bare_field(kind.value_field))
    if _types.is_fixed_size_list(kind):
        return pa.list_(_bare_field(kind.value_field), kind.list_size)
    if _types.is_struct(kind):
        return pa.struct(list(map(_bare_field, kind)))
    if _types.is_union(kind):
        fields = [_bare_field(kind.field(i)) for i in range(kind.num_fields)]
        return pa.union(fields, kind.mode, kind.type_codes)
    return kind


_PLAIN: dict[Callable[[pa.DataType], bool], Callable[[], pa.DataType]] = {
    _types.is_string_view: pa.large_string,
    _types.is_binary_view: pa.large_binary,
}


def _bare_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, bare_type(field.type))


def _can_be_listed(kind: pa.DataType) -> bool:
    """Return whether values have an order and can be found in a list; others, such as structs, are not categories."""
    if kind.num_fields:
        return False
    try:
        return len(pc.sort_indices(pa.array([], kind))) == len(pc.index_in(pa.array([], kind), pa.array([], kind)))
    except pa.ArrowNotImplementedError:
        return False


def has_categories(kind: pa.DataType) -> bool:
    """Return whether a type is a dictionary or contains one."""
    if isinstance(kind, pa.BaseExtensionType):
        return has_categories(kind.storage_type)
    return _types.is_dictionary(kind) or any(has_categories(kind.field(i).type) for i in range(kind.num_fields))


class OrdersDifferError(Exception):
    """The chunks of a column do not list its ordered categories in one order."""


def _with_one_list(chunks: list[pa.Array]) -> list[pa.Array]:
    """Return chunks that share their lists of categories; the longest list has the order of ordered ones."""
    longest = max(chunks, key=lambda chunk: sum(map(len, _orders(chunk))))
    united: list[pa.Array] = pa.chunked_array([longest.slice(0, 0), *chunks]).unify_dictionaries().chunks[1:]
    for chunk, like in zip(chunks, united, strict=True):
        for order, whole in zip(_orders(chunk), _orders(like), strict=True):
            if not np.all(np.diff(pc.index_in(pc.unique(order), value_set=whole)) > 0):
                raise OrdersDifferError
    return united


def _orders(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the lists of the ordered categories of an array, at every level."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        yield from _orders(array.storage)
    elif _types.is_dictionary(kind):
        yield from [array.dictionary] if kind.ordered else []
    elif _types.is_struct(kind) or _types.is_union(kind):
        for place in range(kind.num_fields):
            yield from _orders(array.field(place))
    elif _types.is_map(kind):
        yield from (*_orders(array.keys), *_orders(array.items))
    elif kind.num_fields and not _types.is_run_end_encoded(kind):
        yield from _orders(array.values)


def _bare(array: pa.Array) -> pa.Array:
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        storage = _bare(array.storage)
        return kind.wrap_array(storage) if storage.type == kind.storage_type else storage
    if _types.is_run_end_encoded(kind):
        return _bare(pc.run_end_decode(array))
    if _types.is_dictionary(kind):
        is_listed = _types.is_dictionary(bare_type(kind))
        return _bare_dictionary(array) if is_listed else _bare(array.dictionary.take(array.indices))
    if _types.is_struct(kind) and kind.num_fields:
        parts = [_bare(part) for part in array.flatten()]
        return pa.StructArray.from_arrays(parts, fields=list(bare_type(kind)), mask=array.is_null())
    if _types.is_fixed_size_list(kind):
        return _bare_fixed_lists(array)
    if _types.is_map(kind):
        return _bare_map(array)
    if any(is_so(kind) for is_so in (*_LISTS, *_LARGE_LISTS)):
        return _bare_lists(array)
    if _types.is_union(kind):
        return _bare_union(array)
    return _bare_flat(array if kind == bare_type(kind) else array.cast(bare_type(kind)))


def _bare_flat(array: pa.Array) -> pa.Array:
    """Return an array of a flat type unchanged if its buffers hold nothing else; bitmaps are always copied."""
    valid, *buffers = array.buffers() or [None]
    if valid is not None and not array.null_count:  # a bitmap that says nothing is left out
        array, valid = pa.Array.from_buffers(array.type, len(array), [None, *buffers], 0, array.offset), None
    if valid is None and not _types.is_boolean(array.type) and _holds_only_values(array):
        return array
    return _taken(array, np.arange(len(array)))


_OFFSETS = {
    _types.is_string: np.int32,
    _types.is_binary: np.int32,
    _types.is_large_string: np.int64,
    _types.is_large_binary: np.int64,
}


def _holds_only_values(array: pa.Array) -> bool:
    """Return whether the buffers of an array without a bitmap hold its values and nothing else."""
    width = next((width for is_so, width in _OFFSETS.items() if is_so(array.type)), None)
    if width is None:
        return bool(array.get_total_buffer_size() == array.nbytes)
    _, offsets, data = array.buffers()
    at = np.frombuffer(offsets or b"", width)
    is_whole = array.offset == 0 and len(at) == len(array) + 1
    return bool(is_whole and at[0] == 0 and at[-1] == len(data or b""))


def _bare_dictionary(array: pa.DictionaryArray) -> pa.DictionaryArray:
    """List each category that occurs once: in their order if they are ordered, else ascending."""
    listed = _bare(array.dictionary)
    used = listed.take(pc.unique(array.indices.drop_null()).sort()).drop_null()
    categories = _bare(pc.unique(used if array.type.ordered else _ascending(used)))
    codes = pc.index_in(listed, value_set=categories).take(array.indices).cast(array.type.index_type)
    return pa.DictionaryArray.from_arrays(_bare_flat(codes), categories, ordered=array.type.ordered)


def _ascending(values: pa.Array) -> pa.Array:
    """Return values, none missing, in an order that depends on nothing else."""
    if _types.is_floating(values.type):
        # A sort takes 0 for -0, and one NaN for another.
        bits = np.asarray(values).view(f"i{values.type.bit_width // 8}")
        values = values.take(np.argsort(bits))
    return values.take(pc.sort_indices(values))


def _bare_lists(array: pa.Array) -> pa.Array:
    kind = bare_type(array.type)
    lists, width = (pa.LargeListArray, np.int64) if _types.is_large_list(kind) else (pa.ListArray, np.int32)
    ends = np.cumsum(pc.list_value_length(array).fill_null(0))
    missing = array.is_null() if array.null_count else None
    return lists.from_arrays(np.append(0, ends).astype(width), _bare(array.flatten()), type=kind, mask=missing)


def _bare_map(array: pa.MapArray) -> pa.MapArray:
    starts = np.asarray(array.offsets)
    lengths = np.where(array.is_valid(), np.diff(starts), 0)
    ends = np.cumsum(lengths)
    places = np.arange(lengths.sum()) + np.repeat(starts[:-1] - ends + lengths, lengths)
    keys, items = (_bare(_taken(_bare(part), places)) for part in (array.keys, array.items))
    offsets = np.append(0, ends).astype(np.int32)
    missing = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(offsets, keys, items, type=bare_type(array.type), mask=missing)


def _bare_fixed_lists(array: pa.FixedSizeListArray) -> pa.FixedSizeListArray:
    there = np.repeat(np.asarray(array.is_valid()), array.type.list_size)
    inner = _bare(array.flatten())
    if array.null_count:
        inner = _bare(_taken(inner, np.cumsum(there) - 1, there))
    missing = array.is_null() if array.null_count else None
    return pa.FixedSizeListArray.from_arrays(inner, type=bare_type(array.type), mask=missing)


def _bare_union(array: pa.UnionArray) -> pa.UnionArray:
    """Keep only the selected values of each branch."""
    kind = array.type
    part = slice(array.offset, array.offset + len(array))
    codes = np.frombuffer(array.buffers()[1], np.int8)[part]
    branches = [_bare(array.field(i)) for i in range(kind.num_fields)]
    names = [kind.field(i).name for i in range(kind.num_fields)]
    taken = [codes == code for code in kind.type_codes]
    if kind.mode == "sparse":
        places = np.arange(len(array))
        parts = [_bare(_taken(branch, places, here)) for branch, here in zip(branches, taken, strict=True)]
        return pa.UnionArray.from_sparse(pa.array(codes), parts, names, kind.type_codes)
    inside = np.frombuffer(array.buffers()[2], np.int32)[part]
    parts = [_bare(_taken(branch, inside[here])) for branch, here in zip(branches, taken, strict=True)]
    offsets = np.zeros(len(array), np.int32)
    for here in taken:
        offsets[here] = np.arange(np.count_nonzero(here))
    return pa.UnionArray.from_dense(pa.array(codes), pa.array(offsets), parts, names, kind.type_codes)


def _taken(array: pa.Array, places: NDArray[np.integer], there: NDArray[np.bool_] | None = None) -> pa.Array:
    """Return the values at the given positions, in new memory; null where `there` is False."""
    return array.take(pa.array(places, mask=None if there is None else ~there))
