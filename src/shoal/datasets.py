"""The three CASC reference data sets used in the microaggregation literature, and two invented files of people.

Each function returns the numeric matrix used in the papers; `path` returns the file with all columns. Source and terms
of the data are in ``data/NOTICE.md``.
"""

import csv
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from shoal.errors import ParameterError
from shoal.typing import Matrix

NAMES = ("census", "tarragona", "eia", "office", "people")
"""The data sets."""

_EIA_MEASURES = (
    "RESREVENUE",
    "RESSALES",
    "COMREVENUE",
    "COMSALES",
    "INDREVENUE",
    "INDSALES",
    "OTHREVENUE",
    "OTHRSALES",
    "TOTREVENUE",
    "TOTSALES",
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A numeric data set: its name, columns and records.

    Attributes
    ----------
    name : str
        The name used in tables of results, such as ``eia-11``.
    columns : tuple of str
        Column names, in the order of the columns of `X`.
    X : ndarray of shape (n_records, n_columns), float64
        The records in original units; `shoal.arrays.standardize` brings them to the papers' protocol.
    note : str
        One sentence on the records and their source.
    """

    name: str
    columns: tuple[str, ...]
    X: Matrix
    note: str

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}, {self.X.shape[0]} records x {self.X.shape[1]} columns)"


def census() -> Dataset:
    """Return the CASC *Census* set: 1080 records of 13 numeric columns.

    Returns
    -------
    Dataset
        A new copy, which may be changed.

    References
    ----------
    Brand, Domingo-Ferrer, Mateo-Sanz (2002), "Reference data sets to test and compare SDC methods for protection of
    numerical microdata", CASC project.

    Examples
    --------
    >>> census()
    Dataset('census', 1080 records x 13 columns)
    >>> census().columns[:3]
    ('AFNLWGT', 'AGI', 'EMCONTRB')
    """
    note = "Incomes and taxes of 1080 people, from the U.S. Census Bureau's public Data Extraction System."
    return _dataset("census", "census", _header("census"), note)


def tarragona() -> Dataset:
    """Return the CASC *Tarragona* set: 834 records of 13 numeric columns.

    Returns
    -------
    Dataset
        A new copy, which may be changed. Two of its records are duplicates.

    References
    ----------
    Brand, Domingo-Ferrer, Mateo-Sanz (2002), "Reference data sets to test and compare SDC methods for protection of
    numerical microdata", CASC project.

    Examples
    --------
    >>> tarragona()
    Dataset('tarragona', 834 records x 13 columns)
    """
    note = "Balance sheets of 834 companies in the Tarragona area, 1995."
    return _dataset("tarragona", "tarragona", _header("tarragona"), note)


def eia(n_columns: int = 11) -> Dataset:
    """Return the CASC *EIA* set: 4092 records, in either of the two versions found in the literature.

    Parameters
    ----------
    n_columns : {11, 10}
        11 for the version of the MDAV literature: UTILITYID and the ten revenue and sales columns. 10 for the version
        of the TFRP paper: the ten columns without UTILITYID. The other columns of the file (see `path`) are in neither.

    Returns
    -------
    Dataset
        A new copy, which may be changed, named ``eia-11`` or ``eia-10``.

    Raises
    ------
    ParameterError
        If `n_columns` is neither 11 nor 10.

    References
    ----------
    Brand, Domingo-Ferrer, Mateo-Sanz (2002), "Reference data sets to test and compare SDC methods for protection of
    numerical microdata", CASC project.
    Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control".

    Examples
    --------
    >>> eia()
    Dataset('eia-11', 4092 records x 11 columns)
    >>> eia(n_columns=10).columns[0]
    'RESREVENUE'
    """
    if n_columns not in (11, 10):
        raise ParameterError(
            f"n_columns must be 11 (UTILITYID and ten measures) or 10 (the measures alone); got {n_columns!r}. For "
            "other columns read the file at shoal.datasets.path('eia')."
        )
    note = "Monthly revenue and sales of U.S. electric utilities in 1996, from the Energy Information Administration."
    columns = _EIA_MEASURES if n_columns == 10 else ("UTILITYID", *_EIA_MEASURES)
    return _dataset(f"eia-{len(columns)}", "eia", columns, note)


def path(name: str) -> Path:
    """Return the path of the CSV file of a data set: all columns, one header line, no missing values.

    Parameters
    ----------
    name : {"census", "tarragona", "eia", "office", "people"}
        Name of the data set.

    Returns
    -------
    pathlib.Path
        The installed file. It belongs to the package; do not write to it.

    Raises
    ------
    ParameterError
        If the name is unknown.

    Examples
    --------
    >>> path("eia").name
    'eia.csv'
    """
    if name not in NAMES:
        raise ParameterError(f"Unknown data set {name!r}. Data sets: {', '.join(NAMES)}.")
    # Wheels with compiled code are always unpacked, so the resource is a plain file.
    return Path(str(resources.files("shoal") / "data" / f"{name}.csv"))


def _header(file: str) -> tuple[str, ...]:
    """Read the column names of a shipped file."""
    with path(file).open(encoding="utf-8", newline="") as lines:
        return tuple(next(csv.reader(lines)))


def _dataset(name: str, file: str, columns: tuple[str, ...], note: str) -> Dataset:
    """Read the named columns of a shipped file."""
    header = _header(file)
    X = np.loadtxt(
        path(file),
        delimiter=",",
        quotechar='"',
        comments=None,
        skiprows=1,
        usecols=[header.index(column) for column in columns],
        encoding="utf-8",
        ndmin=2,
    )
    return Dataset(name, columns, X, note)
