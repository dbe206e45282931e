"""Distribution: the values of a column in the whole table, for functions that see a part of the records."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.typing import Labels


class Distribution(NamedTuple):
    """The values of a column and how many records of the table have each.

    Examples
    --------
    >>> whole = Distribution(pa.array(["a", "b", None]), np.array([5, 3, 1]))
    >>> whole.counts_of(pa.array(["b", "a"]))
    array([3, 5])
    """

    values: pa.Array
    """In the order of the column's kind; null is the last one, if values are missing."""

    counts: Labels
    """Shape (n_values,)."""

    def counts_of(self, values: pa.Array) -> Labels:
        """Return the counts of some of the values."""
        return np.asarray(self.counts[np.asarray(pc.index_in(values, value_set=self.values))])


Distributions = Mapping[str, Distribution]
"""The distributions of columns, by name."""
