"""Person keys: the column that names the persons of a table, in the one form in which tables are compared."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.prepare import as_seen, decoded, one_missing
from shoal.errors import SchemaError


def key_texts(values: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the keys as text, as a reader sees them: 7, 7.0 and "7 " are one key. One record for each person.

    Raises
    ------
    SchemaError
        If a key is missing or occurs twice.

    Examples
    --------
    >>> key_texts(pa.chunked_array([[7.0, 8.0]]), "id").to_pylist()
    ['7', '8']
    """
    texts = texts_of_keys(values)
    if texts.null_count:
        raise SchemaError(
            f"The key column {name!r} is missing or blank in {texts.null_count:,} records, so that nothing says whose "
            "they are. Give every record a key, or leave these records out."
        )
    n_twice = len(texts) - pc.count_distinct(texts).as_py()
    if n_twice:
        raise SchemaError(
            f"The key column {name!r} names {len(texts) - n_twice:,} persons in {len(texts):,} records: keys repeat. A "
            "series has one record for each person in each release. Join the records of a person into one, or leave "
            "out the key."
        )
    return texts


def texts_of_keys(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the keys as text, whatever they are."""
    values = as_seen(one_missing(decoded(values)))
    if pa.types.is_floating(values.type) and bool(pc.all(pc.equal(values, pc.round(values))).as_py()):
        values = values.cast(pa.int64(), safe=False)
    return values.cast(pa.large_string())


def numbered(tables: list[pa.ChunkedArray]) -> list[np.ndarray]:
    """Return the number of each person, the same in all tables; shape (n_records,) each.

    Examples
    --------
    >>> numbered([pa.chunked_array([["a", "b"]]), pa.chunked_array([["b", "c"]])])
    [array([0, 1]), array([1, 2])]
    """
    everybody = pa.chunked_array([chunk for texts in tables for chunk in texts.chunks], tables[0].type).unique()
    return [np.asarray(pc.index_in(texts, value_set=everybody).combine_chunks()).astype(np.int64) for texts in tables]
