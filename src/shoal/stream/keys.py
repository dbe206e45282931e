"""Values as 64-bit keys, which distinguish values without storing them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal import kernels
from shoal.columns.prepare import as_seen
from shoal.columns.schema import is_text
from shoal.sources.clean import nulled
from shoal.sources.nested import text_of_json, text_of_number
from shoal.stream.batches import whole

Keys = NDArray[np.uint64]

MISSING = np.uint64(0x6D697373696E6721)
"""The one key of all missing values."""


def keys_of(column: pa.Array) -> Keys:
    """Return a key for each value: equal values have equal keys, in every batch, process and machine.

    Values written as JSON, which a reader of lines returns as bytes, are compared as values.

    Texts that share a key by chance count as one value. A cell then seems to hold fewer different values than it
    does, so a guarantee counted by keys holds for the values.
    """
    if pa.types.is_dictionary(column.type):
        return _of_dictionary(column)
    column = _values_of(column)
    keys = _of_values(column)
    if column.null_count:
        keys = np.where(_is_null(column), MISSING, keys)
    return keys


def tags_of(column: pa.Array) -> Keys:
    """Return keys for values that have to differ within a cell: values that look alike get the same key.

    Texts that are numbers count as these: a reader of CSV takes the fields of a column for numbers where all are.
    """
    seen = whole(as_seen(pa.chunked_array([_values_of(column)])))
    return keys_of(_with_one_spelling_of_numbers(seen) if is_text(seen.type) else seen)


_SPELLED = r"\\|^[\[{]|^-?\d+[.eE]|^-0"
"""What JSON spells in several ways: escapes, lists and objects, numbers with a fraction or a power."""


_NUMERAL = r"^(?:\+\d+|-?0\d+|-0|[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?\d+[eE][+-]?\d+)$"
"""Numbers that may be spelled in another way: all but whole ones in digits, as `text_of_json` spells them."""


def _values_of(column: pa.Array) -> pa.Array:
    """Return values written as JSON, and nested ones, as texts that are equal where the values are."""
    if pa.types.is_nested(column.type):
        return whole(as_seen(pa.chunked_array([column])))
    if not pa.types.is_large_binary(column.type):
        return column
    try:
        written = column.cast(pa.large_string())
    except pa.ArrowInvalid:  # bytes of another kind
        return column
    texts = nulled(pc.utf8_trim(written, characters='"'), pc.equal(written, "null"))
    several = pc.fill_null(pc.match_substring_regex(written, _SPELLED), False)
    return _replaced(texts, several, written, text_of_json)


def _with_one_spelling_of_numbers(texts: pa.Array) -> pa.Array:
    """Return texts in which equal numbers are spelled in one way."""
    several = pc.fill_null(pc.match_substring_regex(texts, _NUMERAL), False)
    return _replaced(texts, several, texts, text_of_number)


def _replaced(texts: pa.Array, where: pa.Array, written: pa.Array, spell: Callable[[str], str | None]) -> pa.Array:
    """Return texts, some of which are replaced by what is made of the written values; each is made once."""
    if not pc.any(where).as_py():
        return texts
    coded = written.filter(where).dictionary_encode()
    one_of_each = pa.array(map(spell, coded.dictionary.to_pylist()), texts.type)
    return pc.replace_with_mask(texts, where, one_of_each.take(coded.indices))


def _of_dictionary(column: pa.DictionaryArray) -> Keys:
    table: Keys = np.append(keys_of(column.dictionary), MISSING)
    where = pc.fill_null(column.indices, len(column.dictionary)) if column.null_count else column.indices
    keys: Keys = table[where.to_numpy(zero_copy_only=False)]
    return keys


def _of_values(column: pa.Array) -> Keys:
    kind = column.type
    if pa.types.is_integer(kind):
        return _filled(column, 0).astype(np.int64 if pa.types.is_signed_integer(kind) else np.uint64).view(np.uint64)
    if pa.types.is_floating(kind):
        # Adding 0.0 turns -0.0 into 0.0; all NaN count as one value.
        values = _filled(column, np.nan).astype(np.float64) + 0.0
        return np.where(np.isnan(values), MISSING, values.view(np.uint64))
    if pa.types.is_temporal(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return _of_values(column.cast(width))
    if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or _is_large(kind)):
        column = column.cast(pa.string())
    return _of_texts(column)


def _is_large(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _of_texts(column: pa.Array) -> Keys:
    _, offsets, data = column.buffers()
    width: Any = np.int64 if _is_large(column.type) else np.int32
    # An empty array may come without buffers.
    bounds: Any = np.zeros(1, dtype=width) if offsets is None else np.frombuffer(offsets, dtype=width)
    content = np.zeros(1, dtype=np.uint8) if data is None or data.size == 0 else np.frombuffer(data, dtype=np.uint8)
    return kernels.text_keys(bounds[column.offset : column.offset + len(column) + 1], content)


def _filled(column: pa.Array, value: float) -> NDArray[np.generic]:
    filled: NDArray[np.generic] = (pc.fill_null(column, value) if column.null_count else column).to_numpy(
        zero_copy_only=False
    )
    return filled


def _is_null(column: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.is_null(column).to_numpy(zero_copy_only=False), dtype=bool)
