"""What the tests of differential privacy share: all small tables and their neighbours."""

from itertools import product

import numpy as np


def neighbours(n, values):
    """Yield all pairs of arrays of `n` of the values that differ in one place, and how far apart they are there."""
    for table in product(values, repeat=n):
        for place, value in product(range(n), values):
            other = list(table)
            other[place] = value
            yield np.array(table), np.array(other), abs(value - table[place])
