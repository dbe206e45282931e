"""Set: all values that occur in a cell."""

import numpy as np
import pyarrow as pa

from shoal.aggregate.members import Members
from shoal.aggregate.mode import categories_of
from shoal.columns.categories import category_codes
from shoal.columns.coarse.sets import written_set
from shoal.columns.hierarchy.tree import leaf_texts
from shoal.columns.schema import Column


def value_sets(values: pa.ChunkedArray, column: Column, members: Members) -> pa.Array:
    """Return the set of each cell as text, its values in the order of the column, ``missing`` last."""
    categories = categories_of(values, column)
    texts = leaf_texts(categories).to_pylist()
    codes = category_codes(values, categories)
    cells, places = np.divmod(np.unique(members.labels * len(texts) + codes), len(texts))
    starts = np.searchsorted(cells, np.arange(members.n_cells + 1))
    sets = [
        written_set([texts[place] for place in places[start:end]], bool(missing))
        for start, end, missing in zip(starts[:-1], starts[1:], members.some_missing, strict=True)
    ]
    return pa.array(sets, pa.string())
