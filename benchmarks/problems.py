"""What the contenders are given: seeded Gaussian records, and samples of real ones, columns standardised."""

import gzip
from typing import NamedTuple

import numpy as np

from shoal.reproduce.material import Missing, Source, data_folder
from shoal.space import standardize
from shoal.typing import Matrix

K = 10
FLIGHTS = "nycflights13_flights.csv.gz"
FLIGHTS_COLUMNS = (
    "dep_time",
    "sched_dep_time",
    "dep_delay",
    "arr_time",
    "sched_arr_time",
    "arr_delay",
    "flight",
    "air_time",
    "distance",
    "hour",
    "minute",
    "month",
    "day",
)


class Problem(NamedTuple):
    """Records to partition, and the smallest cell."""

    data: str
    X: Matrix
    k: int = K

    def __str__(self) -> str:
        n, n_dims = self.X.shape
        return f"{self.data}, {n:,} x {n_dims}, k = {self.k}"


def sample(source: Source, n: int) -> Problem:
    """Draw `n` records at random, the same ones each time."""
    return _problem(source, source.sample(n, np.random.default_rng([0, n])))


def whole(source: Source) -> Problem:
    """Take all records of a file, in its order."""
    assert source.records is not None
    return _problem(source, source.records)


def _problem(source: Source, records: Matrix) -> Problem:
    name = source.name if source.records is None else source.origin.removesuffix(".csv.gz")
    return Problem(name, standardize(records))


def flights() -> Source | Missing:
    """Return the 13 numeric columns of the flights that lack none of them."""
    folder = data_folder()
    if folder is None:
        return Missing("flights", "no data folder found; SHOAL_DATA may name one")
    if not (folder / FLIGHTS).is_file():
        return Missing("flights", f"{FLIGHTS} not in the data folder")
    with gzip.open(folder / FLIGHTS, "rt", encoding="utf-8") as lines:
        header = lines.readline().strip().split(",")
        where = [header.index(column) for column in FLIGHTS_COLUMNS]
        fields = (line.strip().split(",") for line in lines)
        complete = (",".join(row[j] for j in where) for row in fields if all(row[j] for j in where))
        records = np.loadtxt(complete, delimiter=",", dtype=np.float64)
    return Source("flights", FLIGHTS, len(where), records)
