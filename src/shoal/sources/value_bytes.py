"""Value bytes: the size of the values of a column, the same however its records are split into batches.

The size that Arrow reports is not the same: it includes bitmaps, which a batch without missing values does not have.
"""

import pyarrow as pa
import pyarrow.compute as pc

_PLACE = 4
"""Bytes that say where a text or a list begins."""

_NUMBER = 8
"""Bytes of a number, at least: engines read the same column with other widths."""


def value_bytes(values: pa.ChunkedArray) -> int:
    """Return the size of values in bytes; a missing value counts as a place for one.

    Examples
    --------
    >>> value_bytes(pa.chunked_array([[1, None], [3]])), value_bytes(pa.chunked_array([["a", "bcd"]]))
    (24, 12)
    """
    return sum(map(_bytes, values.chunks))


def _bytes(values: pa.Array) -> int:
    kind, n = values.type, len(values)
    if isinstance(kind, pa.BaseExtensionType):
        return _bytes(values.storage)
    if pa.types.is_dictionary(kind):
        return _bytes(values.dictionary_decode())
    if pa.types.is_map(kind):
        entries = pa.struct({"key": kind.key_type, "value": kind.item_type})
        return _bytes(values.cast(pa.list_(entries)))
    if pa.types.is_struct(kind):
        return sum(map(_bytes, values.flatten()))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _PLACE * n + _bytes(values.flatten())
    if pa.types.is_null(kind):
        return 0
    try:
        width: int = kind.bit_width // 8
    except ValueError:  # texts and bytes have no fixed width
        return _PLACE * n + int(pc.sum(pc.binary_length(values)).as_py() or 0)
    return max(width, _NUMBER) * n
