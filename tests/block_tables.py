"""Tables for the tests of blocks: every kind of column, in batches of any size and order."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from shoal.job import Job

ROLES = {
    "quasi_identifiers": ("age", "income", "born", "city", "grade"),
    "by": ("region",),
    "confidential": ("illness",),
    "other": ("note",),
    "identifiers": ("name",),
}


def people(n=1_200, seed=0):
    """Return a table with numbers, a date, categories, ranks, strata and missing values; every tenth record twice."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, n)
    income = np.round(rng.lognormal(10, 1, n), 2)
    table = pa.table(
        {
            "name": [f"person {i % (n * 9 // 10)}" for i in range(n)],
            "age": age,
            "income": pa.array(income, mask=rng.random(n) < 0.05),
            "born": pa.array((rng.integers(0, 20_000, n)).astype(np.int32)).cast(pa.date32()),
            "city": pa.array(rng.choice(["Turin", "Bari", "Como", "Pisa"], n, p=[0.5, 0.3, 0.15, 0.05])),
            "grade": pa.array(rng.choice(["low", "mid", "high"], n)),
            "region": pa.array(rng.choice(["north", "south"], n)),
            "illness": pa.array(rng.choice(["flu", "cold", "none"], n)),
            "note": pa.array(rng.integers(0, 50, n)),
        }
    )
    return pa.concat_tables([table.slice(0, n * 9 // 10), table.slice(0, n - n * 9 // 10)])


def job(**given):
    settings = {
        "k": 5,
        "seed": 7,
        "missing": "own-value",
        "columns": {"grade": {"categories": ("low", "mid", "high")}},
        "roles": ROLES,
        **given,
    }
    return Job.of(**settings)


def batches(table, n_batches, shuffled=None):
    """Split a table, its records in another order if a seed is given."""
    if shuffled is not None:
        table = table.take(pa.array(np.random.default_rng(shuffled).permutation(table.num_rows)))
    ends = np.linspace(0, table.num_rows, n_batches + 1).astype(int)
    return [table.slice(start, end - start) for start, end in pairwise(ends)]


def multiset(table):
    """Return the records of a table without their order."""
    return sorted(map(repr, table.to_pylist()))
