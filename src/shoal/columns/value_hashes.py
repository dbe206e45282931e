"""Value hashes: values and records as words of 64 bits, the same for the same values in any table, type or part.

A hash has two halves. The first ignores differences that some format cannot store (it treats a missing and an empty
string as equal). The second uses the exact values.

Those of a record are sums over the columns, so tables can be split by records or by columns and hashed in parts.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
"""The two halves of the hash of each record or value; shape (2, n)."""

_GOLDEN = 0x9E3779B97F4A7C15
_SEEDS = np.array([[0x2545F4914F6CDD1D], [0x8CB92BA72F3D8DD7]], dtype=np.uint64)
_MISSING = np.uint64(0xD1B54A32D192ED03)
_AT_ONCE = 1 << 16  # records per step, so that intermediate arrays stay in the cache
_FACTORS = {"day": 86_400_000, "s": 1000, "ms": 1, "us": 1, "ns": 1}
_DIVISORS = {"day": 1, "s": 1, "ms": 1, "us": 1000, "ns": 1_000_000}
_MASKS = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)  # the first n bytes of a word
_LONG = 256  # bytes; longer strings are hashed by a digest, to keep the loop over words short


def record_hashes(columns: Iterable[pa.ChunkedArray], n_records: int) -> Hashes:
    """Return the hash of each record, the sum of the hashes of its values; shape (2, n_records)."""
    sums = np.zeros((2, n_records), dtype=np.uint64)
    for place, column in enumerate(columns):
        add_hashes(sums, place, column)
    return sums


def add_hashes(sums: Hashes, place: int, column: pa.ChunkedArray) -> None:
    """Add the hashes of a column, which depend on its place, to those of the records."""
    own, start = np.uint64((place + 1) * _GOLDEN % 2**64), 0
    for chunk in column.chunks:
        if pa.types.is_string(chunk.type) or pa.types.is_large_string(chunk.type):
            chunk = chunk.dictionary_encode()  # most strings occur more than once
        if pa.types.is_dictionary(chunk.type):
            hashes, codes = _of_categories(chunk)
            sums[:, start : start + len(chunk)] += np.take(mixed(hashes + own), codes, axis=1)
            start += len(chunk)
            continue
        for at in range(0, len(chunk), _AT_ONCE):
            piece = value_hashes(chunk.slice(at, _AT_ONCE))
            sums[:, start : start + piece.shape[1]] += mixed(piece + own)
            start += piece.shape[1]


def value_hashes(values: pa.Array) -> Hashes:
    """Return the hash of each value, independent of its type; shape (2, n)."""
    kind = values.type
    if isinstance(kind, pa.BaseExtensionType):
        return value_hashes(values.storage)
    if pa.types.is_dictionary(kind):
        hashes, codes = _of_categories(values)
        return hashes[:, codes]
    if pa.types.is_null(kind):
        return _of_texts(values.cast(pa.large_binary()))
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _of_numbers(values)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):  # of months, days and nanoseconds
        return _of_times(values)
    if pa.types.is_decimal(kind):
        rounded = _of_numbers(values.cast(pa.float64(), safe=False))
        return np.stack([rounded[0], _of_texts(values.cast(pa.string()).cast(pa.large_binary()))[1]])
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _of_texts(values.cast(pa.large_string()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _of_texts(values.cast(pa.large_binary()))
    # Lists, structs, intervals and other types that only Arrow and Parquet can store.
    texts = [None if value is None else repr(value) for value in values.to_pylist()]
    return _of_texts(pa.array(texts, pa.large_string()))


def words_of(values: pa.ChunkedArray) -> NDArray[np.uint64]:
    """Return a word for each value, the first half of its hash; shape (n_records,).

    Examples
    --------
    >>> one, other = pa.chunked_array([[1, None]]), pa.chunked_array([[1.0], [float("nan")]])
    >>> (words_of(one) == words_of(other)).tolist()
    [True, True]
    """
    found = [value_hashes(chunk)[0] for chunk in values.chunks]
    return np.concatenate([np.empty(0, dtype=np.uint64), *found])


def _of_categories(values: pa.DictionaryArray) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the hash of each category, and of null, and the place of each record's among them."""
    categories = value_hashes(pa.concat_arrays([values.dictionary, pa.nulls(1, values.dictionary.type)]))
    codes = values.indices.cast(pa.int64())
    return categories, np.asarray(codes.fill_null(len(values.dictionary)) if codes.null_count else codes)


def _of_numbers(values: pa.Array) -> Hashes:
    """Hash numbers: first as floats, where 0 is -0 and NaN is missing, then bit by bit."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif pa.types.is_float16(values.type):
        values = values.cast(pa.float32())  # Arrow before 24 cannot fill its gaps
    exact = np.asarray(values.fill_null(0))
    shown = exact.astype(np.float64) + 0.0
    bits = exact.astype(np.float64).view(np.uint64) if exact.dtype.kind == "f" else exact.astype(np.uint64)
    missing = _is_null(values)
    return _finished(shown.view(np.uint64), bits, missing | np.isnan(shown), missing)


def _of_times(values: pa.Array) -> Hashes:
    """Hash dates, timestamps, times of day and durations: first in milliseconds, then exactly."""
    unit = "day" if pa.types.is_date32(values.type) else getattr(values.type, "unit", "ms")
    whole = values.cast(pa.int32()) if values.type.bit_width == 32 else values
    exact = np.asarray(whole.cast(pa.int64()).fill_null(0))
    missing = _is_null(values)
    return _finished(exact * _FACTORS[unit] // _DIVISORS[unit], exact, missing, missing)


def _finished(
    shown: NDArray[Any], exact: NDArray[Any], not_shown: NDArray[np.bool_], missing: NDArray[np.bool_]
) -> Hashes:
    hashes = mixed(np.stack([shown, exact]).view(np.uint64) + _SEEDS)
    hashes[0, not_shown] = _MISSING
    hashes[1, missing] = _MISSING
    return hashes


def _of_texts(values: pa.Array) -> Hashes:
    """Hash strings: first without trailing spaces and with empty as missing, then exactly."""
    missing = _is_null(values)
    is_text = pa.types.is_large_string(values.type)
    exact = values.fill_null("" if is_text else b"")
    shown = pc.utf8_rtrim(exact, " ") if is_text else exact
    hashes = _of_bytes(shown)
    hashes[0, np.asarray(pc.binary_length(shown)) == 0] = _MISSING
    # The trailing spaces that were removed are identified by their number.
    lengths = np.asarray(pc.binary_length(exact)).astype(np.uint64)
    hashes[1] += mixed(np.where(missing, _MISSING, lengths))
    return hashes


def _of_bytes(texts: pa.Array) -> Hashes:
    """Hash large strings without nulls, eight bytes at a time."""
    hashes = np.repeat(_SEEDS, len(texts), axis=1)
    if not len(texts):
        return hashes
    _, offsets, data = texts.buffers()
    at = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.zeros(int(at[-1] - at[0]) + 8, dtype=np.uint8)
    content[:-8] = np.frombuffer(data or b"", np.uint8)[at[0] : at[-1]]
    starts, lengths = at[:-1] - at[0], np.diff(at)
    hashes += lengths.astype(np.uint64)
    words = np.ndarray(len(content) - 7, "<u8", content.data, strides=(1,))  # the eight bytes that start at each byte
    open_ones = np.flatnonzero(lengths <= _LONG)
    for position in range(0, _LONG, 8):
        open_ones = open_ones[lengths[open_ones] > position]
        word = words[starts[open_ones] + position] & _MASKS[np.minimum(lengths[open_ones] - position, 8)]
        hashes[:, open_ones] = mixed(hashes[:, open_ones] ^ word)
    for i in np.flatnonzero(lengths > _LONG).tolist():
        digest = blake2b(content[starts[i] : starts[i] + lengths[i]].data, digest_size=16).digest()
        hashes[:, i] = mixed(hashes[:, i] ^ np.frombuffer(digest, "<u8"))
    return hashes


def _is_null(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.is_null())


def mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words with their bits mixed, one to one: the end of SplitMix64 (Steele, Lea and Flood 2014)."""
    words = words ^ (words >> np.uint64(30))
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words
