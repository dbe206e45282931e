"""Confidential columns and partitions at random, for the tests of the models."""

import numpy as np
from hypothesis import strategies as st

from shoal.models import Codes

COLUMNS = {
    "distinct": lambda rng, n: rng.permutation(n),
    "few values": lambda rng, n: rng.integers(0, 3, n),
    "mostly one": lambda rng, n: np.where(rng.random(n) < 0.9, 0, rng.integers(0, 9, n)),
    "constant": lambda rng, n: np.zeros(n, dtype=np.int64),
    "rounded": lambda rng, n: rng.normal(0, 3, n).round(),
}


def as_codes(values, ordered=True):
    codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
    return Codes(codes, int(codes.max()) + 1, ordered)


@st.composite
def columns_in_cells(draw, *, n_most=60):
    """Return a coded column and a partition of its records."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, n_most))
    column = as_codes(COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))](rng, n), draw(st.booleans()))
    labels = np.unique(rng.integers(0, draw(st.integers(1, 6)), n), return_inverse=True)[1]
    return column, labels.astype(np.int64)


@st.composite
def guarded_problems(draw, *, n_most=90):
    """Return records, a k, and a confidential column that depends on them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(2, 5))
    n = draw(st.integers(2 * k, n_most))
    X = rng.normal(size=(n, draw(st.integers(1, 3))))
    X[:: draw(st.integers(2, 7))] = X[0]
    values = X[:, 0] * draw(st.sampled_from([0, 1])) + rng.normal(size=n) * draw(st.sampled_from([0, 1]))
    return X, k, as_codes(values.round(draw(st.integers(0, 2))), draw(st.booleans()))
