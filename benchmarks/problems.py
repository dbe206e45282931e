"""The inputs of the contenders: seeded Gaussian records, and samples of real ones, columns standardised."""

import gzip
from typing import NamedTuple

import numpy as np

from materials import Missing, Source, data_folder
from shoal.arrays import standardize
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
CALIFORNIA = "california_housing.csv.gz"
CALIFORNIA_COLUMNS = (
    "longitude",
    "latitude",
    "housing_median_age",
    "total_rooms",
    "total_bedrooms",
    "population",
    "households",
    "median_income",
    "median_house_value",
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
    """Return the 13 numeric columns of the flights without missing values."""
    return _complete_records("flights", FLIGHTS, FLIGHTS_COLUMNS)


def california() -> Source | Missing:
    """Return the nine numeric columns of the housing blocks without missing values."""
    return _complete_records("california", CALIFORNIA, CALIFORNIA_COLUMNS)


def jittered(source: Source, n: int) -> Problem:
    """Return `n` records drawn from a source with replacement and slightly perturbed, so that any number can be had."""
    assert source.records is not None
    rng = np.random.default_rng([1, n])
    drawn = standardize(source.records[rng.integers(len(source.records), size=n)])
    return Problem(f"{source.name} jittered", drawn + rng.normal(scale=0.05, size=drawn.shape))


def _complete_records(name: str, file: str, columns: tuple[str, ...]) -> Source | Missing:
    """Read some columns of the records without missing values in them."""
    folder = data_folder()
    if folder is None:
        return Missing(name, "no data folder found; SHOAL_DATA may name one")
    if not (folder / file).is_file():
        return Missing(name, f"{file} not in the data folder")
    with gzip.open(folder / file, "rt", encoding="utf-8") as lines:
        header = lines.readline().strip().split(",")
        where = [header.index(column) for column in columns]
        fields = (line.strip().split(",") for line in lines)
        complete = (",".join(row[j] for j in where) for row in fields if all(row[j] for j in where))
        records = np.loadtxt(complete, delimiter=",", dtype=np.float64)
    return Source(name, file, len(where), records)
