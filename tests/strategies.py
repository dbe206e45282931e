"""Problems that break microaggregation elsewhere, for hypothesis and for plain loops."""

from datetime import UTC, date, datetime

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from shoal import kernels

_LOOPS = ["generic", "avx2", "avx512"]
# The instruction sets that this machine can run.
RUNNABLE = _LOOPS[: _LOOPS.index(kernels.simd()) + 1]

# Each takes a random generator and a shape. Together they hold ties, duplicates, constant columns, great offsets, far
# outliers and columns of very different size.
FAMILIES = {
    "gaussian": lambda rng, shape: rng.normal(size=shape),
    "lattice": lambda rng, shape: rng.integers(0, 3, shape).astype(float),
    "rounded": lambda rng, shape: rng.integers(0, 50, shape) / 7,
    "duplicates": lambda rng, shape: rng.normal(size=shape)[rng.integers(0, shape[0], shape[0])],
    "all the same": lambda rng, shape: np.full(shape, rng.normal()),
    "constant column": lambda rng, shape: rng.normal(size=shape) * (np.arange(shape[1]) > 0) + 3.3,
    "offset of 1e9": lambda rng, shape: rng.normal(size=shape) + 1e9,
    "one far outlier": lambda rng, shape: _with_outlier(rng, rng.normal(size=shape)),
    "heavy tails": lambda rng, shape: np.exp(3 * rng.normal(size=shape)),
    "uneven columns": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-12, 12, shape[1]),
    "two tight clusters": lambda rng, shape: 1e-4 * rng.normal(size=shape) + 1000 * rng.integers(0, 2, (shape[0], 1)),
    "one direction": lambda rng, shape: rng.normal(size=(shape[0], 1)) @ rng.normal(size=(1, shape[1])),
}


def _with_outlier(rng, X):
    X[rng.integers(len(X))] *= 10.0 ** rng.integers(1, 100)
    return X


def draw_problem(rng, family, *, n_most=400):
    """Return a matrix of this family and a k, both at random."""
    n = int(rng.integers(2, n_most))
    m = int(rng.choice([1, 2, 3, 4, 5, 9, 15, 33]))
    X = FAMILIES[family](rng, (n, m))
    return np.ascontiguousarray(X), int(rng.integers(2, min(n, 12) + 1))


@st.composite
def problems(draw, *, n_most=120):
    """Return a matrix and a k that fits it, with the sizes at which algorithms stumble."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(2, 9))
    n = draw(
        st.sampled_from([k, k + 1, 2 * k - 1, 2 * k, 2 * k + 1, 3 * k - 1, 3 * k, 4 * k + 1]) | st.integers(k, n_most)
    )
    m = draw(st.sampled_from([1, 2, 3, 5, 16]))
    return np.ascontiguousarray(FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))](rng, (n, m))), k


@st.composite
def untied_problems(draw, *, n_most=120):
    """Return a matrix without ties, and a k: what holds "up to ties" holds here without."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(2, 9))
    n = draw(st.integers(k, n_most))
    return rng.normal(size=(n, draw(st.sampled_from([1, 2, 5, 16])))), k


# Texts that formats stumble over: delimiters, quotes, line ends, formulas, and what other readers take for missing.
AWKWARD = [
    "",
    " ",
    "NA",
    "null",
    "nan",
    "01234",
    "-1",
    "=1+1",
    "@x",
    'say "hi"',
    "a,b",
    "a;b",
    "two\nlines",
    "\r\n",
    "'t",
    "ü€𝄞",
]


def texts():
    """Return texts without the characters that no text file keeps."""
    plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
    return st.sampled_from(AWKWARD) | plain


FILE_COLUMNS = {
    "text": (pa.large_string(), texts()),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "real": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates(date(1900, 1, 1), date(2200, 1, 1))),
    "time": (pa.timestamp("us"), st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))),
    "instant": (
        pa.timestamp("us", "Europe/Paris"),
        st.datetimes(datetime(1970, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),
    ),
    "category": (pa.dictionary(pa.int32(), pa.large_string()), st.sampled_from(["low", "high", "ü,"])),
}
"""Kinds of columns, each with its Arrow type and values for it."""


@st.composite
def arrow_tables(draw, *, kinds=tuple(FILE_COLUMNS), nulls=True):
    """Return an Arrow table with a column of each of some kinds, and gaps."""
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, unique=True))
    n = draw(st.integers(1, 12))
    columns = {}
    for kind in chosen:
        type_, values = FILE_COLUMNS[kind]
        some = draw(st.lists(st.none() | values if nulls else values, min_size=n, max_size=n))
        # Arrow before 24 makes no categories of large texts at once.
        columns[kind] = pa.array(some, getattr(type_, "value_type", type_)).cast(type_)
    return pa.table(columns)


# Each takes a random generator, a matrix and a k, and returns released points and the number of each record's point.
RELEASES = {
    "means": lambda rng, X, k: _cell_means(X, _random_cells(rng, X, k)),
    "members": lambda rng, X, k: (X[: len(X) // k], _random_cells(rng, X, k)),
    "the records themselves": lambda rng, X, k: (X, rng.permutation(len(X))),
    "nothing changed": lambda rng, X, k: (X, np.arange(len(X))),
    "all different": lambda rng, X, k: (X * rng.normal(1, 0.1, X.shape), np.arange(len(X))),
    "one point": lambda rng, X, k: (X[:1], np.zeros(len(X), dtype=np.int64)),
    "rounded means": lambda rng, X, k: _rounded(*_cell_means(X, _random_cells(rng, X, k))),
}


def _random_cells(rng, X, k):
    return rng.permutation(np.arange(len(X)) % (len(X) // k))


def _cell_means(X, labels):
    return np.array([X[labels == cell].mean(axis=0) for cell in range(labels.max() + 1)]), labels


def _rounded(points, labels):
    return np.round(points), labels


def _choice(rng, n, values, type_=None):
    return pa.array([values[i] for i in rng.integers(0, len(values), n)], type_)


def _categories(rng, n, categories, *, ordered=False):
    codes = pa.array(rng.integers(0, len(categories), n), pa.int8())
    return pa.DictionaryArray.from_arrays(codes, pa.array(categories), ordered=ordered)


def _in_chunks(rng, n):
    """Categories in two chunks whose dictionaries differ."""
    cut = int(rng.integers(0, n + 1))
    return pa.chunked_array([_categories(rng, cut, ["b", "a"]), _categories(rng, n - cut, ["c", "a", "b"])])


_NOON = 1_700_000_000

# Each takes a random generator and a number of records, and makes a column of a type or with values that break things.
COLUMNS = {
    "whole numbers": lambda rng, n: pa.array(rng.integers(0, 90, n)),
    "int8": lambda rng, n: pa.array(rng.integers(-128, 128, n), pa.int8()),
    "int64 extremes": lambda rng, n: _choice(rng, n, [-(2**63), 2**63 - 1, 0, 1, None]),
    "uint64 extremes": lambda rng, n: _choice(rng, n, [2**64 - 1, 2**64 - 2, 2**64 - 3], pa.uint64()),
    "all of uint64": lambda rng, n: _choice(rng, n, [2**64 - 1, 0, 2**63, None], pa.uint64()),
    "gaussian": lambda rng, n: pa.array(rng.normal(size=n)),
    "offset": lambda rng, n: pa.array(rng.normal(size=n) + 1e12),
    "signed zeros": lambda rng, n: _choice(rng, n, [0.0, -0.0, 1.0]),
    "NaN and null": lambda rng, n: _choice(rng, n, [float("nan"), None, 1.5, -2.0]),
    "as large as floats go": lambda rng, n: _choice(rng, n, [1.7e308, -1.7e308, 0.0]),
    "as small as floats go": lambda rng, n: _choice(rng, n, [5e-324, 0.0, 1e-310]),
    "float32": lambda rng, n: pa.array(rng.normal(size=n).astype(np.float32)),
    "float16": lambda rng, n: pa.array(rng.integers(0, 5, n).astype(np.float16)),
    "decimal": lambda rng, n: pa.array(rng.integers(0, 500, n)).cast(pa.decimal128(21, 2)),
    "decimal256": lambda rng, n: pa.array(rng.integers(0, 500, n)).cast(pa.decimal256(40, 3)),
    "bool": lambda rng, n: _choice(rng, n, [True, False]),
    "date32": lambda rng, n: pa.array(rng.integers(-9000, 9000, n), pa.int32()).cast(pa.date32()),
    "date64": lambda rng, n: pa.array(rng.integers(-9, 9, n) * 86_400_000).cast(pa.date64()),
    "nanoseconds": lambda rng, n: _choice(rng, n, [-(2**62), 2**62 + 2**61, 7, None]).cast(
        pa.timestamp("ns", "Asia/Tokyo")
    ),
    "seconds": lambda rng, n: pa.array(_NOON + rng.integers(0, 99, n)).cast(pa.timestamp("s")),
    "time32": lambda rng, n: pa.array(rng.integers(0, 86_400, n), pa.int32()).cast(pa.time32("s")),
    "time64": lambda rng, n: pa.array(rng.integers(0, 86_400_000_000, n)).cast(pa.time64("us")),
    "duration": lambda rng, n: pa.array(rng.integers(-99, 99, n)).cast(pa.duration("ms")),
    "text": lambda rng, n: _choice(rng, n, ["f", "m", "", None]),
    "large text": lambda rng, n: _choice(rng, n, ["ä", "😀", "a\x00b", "x" * 300], pa.large_string()),
    "many categories": lambda rng, n: _choice(rng, n, [f"c{i}" for i in range(40)]),
    "categories": lambda rng, n: _categories(rng, n, ["z", "a", "unused in most"]),
    "duplicate and null categories": lambda rng, n: _categories(rng, n, ["a", "b", "a", None]),
    "ordered categories": lambda rng, n: _categories(rng, n, ["low", "mid", "high"], ordered=True),
    "categories of numbers": lambda rng, n: _categories(rng, n, [0.0, -0.0, 2.5, float("nan")]),
    "chunks": _in_chunks,
    "constant": lambda rng, n: pa.array(np.full(n, 0.1)),
    "one category": lambda rng, n: pa.array(["same"] * n),
    "all missing": lambda rng, n: pa.nulls(n, pa.float64()),
    "all missing texts": lambda rng, n: pa.nulls(n, pa.string()),
    "no type": lambda rng, n: pa.nulls(n),
}


@st.composite
def mixed_tables(draw, *, n_most=60):
    """Return a table of columns of any type, named by what they are, and a k that fits it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(2, 6))
    n = draw(st.sampled_from([k, k + 1, 2 * k - 1, 2 * k, 2 * k + 1]) | st.integers(k, n_most))
    names = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5, unique=True))
    return pa.table({name: COLUMNS[name](rng, n) for name in names}), k
