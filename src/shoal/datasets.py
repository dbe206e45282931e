"""The three CASC reference sets that the microaggregation literature reports on, and an invented file of an office.

Each function gives the numeric matrix of the papers' tables; `path` gives the file, for those who want the table.
Where the data come from and on what terms is in ``data/NOTICE.md``, beside the files.
"""

import csv
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from shoal.errors import ParameterError
from shoal.typing import Matrix

NAMES = ("census", "tarragona", "eia", "office")
"""What `path` knows."""

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
    """A numeric data set: what it is called, its columns, its records.

    Attributes
    ----------
    name : str
        The name used in tables of results, such as ``eia-11``.
    columns : tuple of str
        Column names, in the order of the columns of `X`.
    X : ndarray of shape (n_records, n_columns), float64
        The records in original units; `shoal.arrays.standardize` brings them to the papers' protocol.
    note : str
        One sentence on what the records are and where they come from.
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
        A fresh copy, yours to change.

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
        A fresh copy, yours to change. Two of its records repeat earlier ones.

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
    """Return the CASC *EIA* set: 4092 records, in either of the two readings found in the literature.

    Parameters
    ----------
    n_columns : {11, 10}
        11, the MDAV literature's reading: UTILITYID and the ten revenue and sales columns. 10, the reading behind
        TFRP's table: the ten without UTILITYID. The file's other columns (see `path`) are in neither.

    Returns
    -------
    Dataset
        A fresh copy, yours to change, named ``eia-11`` or ``eia-10``.

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
            f"EIA is read with n_columns=11 (UTILITYID and ten measures) or n_columns=10 (the measures alone), "
            f"not {n_columns!r}. For other columns read the file at shoal.datasets.path('eia')."
        )
    note = "Monthly revenue and sales of U.S. electric utilities in 1996, from the Energy Information Administration."
    columns = _EIA_MEASURES if n_columns == 10 else ("UTILITYID", *_EIA_MEASURES)
    return _dataset(f"eia-{len(columns)}", "eia", columns, note)


def path(name: str) -> Path:
    """Return where the CSV file of a data set lies: all its columns, one header line, no missing values.

    Parameters
    ----------
    name : {"census", "tarragona", "eia"}
        Which set.

    Returns
    -------
    pathlib.Path
        The file as installed. It belongs to the package: read it, and write elsewhere.

    Raises
    ------
    ParameterError
        If there is no set of that name.

    Examples
    --------
    >>> path("eia").name
    'eia.csv'
    """
    if name not in NAMES:
        raise ParameterError(f"There is no data set {name!r}. Data sets: {', '.join(NAMES)}.")
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
