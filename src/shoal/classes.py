"""Classes: records that agree in some columns, a missing value being a value like any other."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.typing import Labels


def class_ids(table: pa.Table) -> Labels:
    """Return a number for each record, the same for records that agree in all columns; shape (n_records,)."""
    ids = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        codes = value_codes(column)
        # Numbered anew after each column, so that the product never overflows.
        ids = np.unique(ids * (codes.max(initial=0) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return ids


def value_codes(values: pa.ChunkedArray) -> Labels:
    """Return a number for each value, from 0; null and NaN are one value, and so are 0 and -0; shape (n_records,)."""
    if pa.types.is_floating(values.type):
        values = pc.add(pc.if_else(pc.is_nan(values), None, values), pa.scalar(0.0, values.type))
    encoded = values.combine_chunks()
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64) + 1
    return np.asarray(codes)


def distinct_in_classes(classes: Labels, codes: Labels) -> NDArray[np.int64]:
    """Count the different codes in each class, shape (n_classes,)."""
    pairs = np.unique(classes * (codes.max() + 1) + codes)
    return np.bincount(pairs // (codes.max() + 1))
