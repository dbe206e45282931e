"""SPSS (.sav, .zsav, .por) and Stata (.dta) files, with variable and value labels.

Stata counts time in milliseconds; SPSS counts it in seconds since 1582, as a float64 that is exact to about 2
microseconds today. So timestamps are written in milliseconds, and those of SPSS are read in steps of 10 microseconds.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import ParameterError
from shoal.sources.clean import check_finite, with_columns
from shoal.sources.format import About, Content, Format
from shoal.sources.labelled_files import labels_for, overwrite, pyreadstat_for, read_labelled, write_labelled
from shoal.sources.reading import Reading
from shoal.spelling import setting


def read_sav(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read an SPSS file. User-defined missing values are kept and listed in the labels."""
    if path.suffix.lower() == ".por":
        if reading.encoding is not None:
            raise ParameterError(f"{setting('encoding')} cannot be given for a .por file, which is read as UTF-8.")
        table, receipt, labels = read_labelled(pyreadstat_for(path).read_por, path, columns, reading)
        receipt = replace(receipt, notes=("Values that the .por file declares missing are read as missing.",))
    else:
        reader = pyreadstat_for(path).read_sav
        table, receipt, labels = read_labelled(reader, path, columns, reading, user_missing=True)
    return Content.of(_times_rounded(table, 10), receipt, labels)


def read_dta(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read a Stata file. Missing values, including extended ones (.a to .z), become null."""
    reader = pyreadstat_for(path).read_dta
    return Content.of(*read_labelled(reader, path, columns, reading, expands=False, user_missing=True))


def write_sav(table: pa.Table, path: Path, ending: str = ".sav", like: About | None = None) -> None:
    """Write an SPSS file, with the input labels that still apply."""
    labels = labels_for(like, table)
    ranges = {name: [{"lo": low, "hi": high} for low, high in found] for name, found in labels.missing.items()}
    options = {
        "variable_value_labels": labels.values,
        "missing_ranges": ranges,
        "variable_measure": labels.measures,
        "compress": ending == ".zsav",
    }
    write_labelled(pyreadstat_for(path).write_sav, _times_rounded(table, 1000), path, labels, options)
    # Date and time of writing, at a fixed offset in the header.
    overwrite(path, 92, b"01 Jan 7000:00:00")


def write_dta(table: pa.Table, path: Path, ending: str = ".dta", like: About | None = None) -> None:
    """Write a Stata file, with the input labels that still apply."""
    check_finite(table, "Stata")
    labels = labels_for(like, table)
    options = {"variable_value_labels": labels.values}
    write_labelled(pyreadstat_for(path).write_dta, _times_rounded(table, 1000), path, labels, options)
    with open(path, "rb") as file:
        start = file.read(1024)
    mark = b"<timestamp>\x11"
    if mark in start:
        overwrite(path, start.index(mark) + len(mark), b"01 Jan 1970 00:00")


def _times_rounded(table: pa.Table, microseconds: int) -> pa.Table:
    """Return the table with its timestamps rounded to the nearest multiple of some microseconds."""
    times = [field.name for field in table.schema if pa.types.is_timestamp(field.type)]
    return with_columns(table, {name: pc.round_temporal(table[name], microseconds, "microsecond") for name in times})


SPSS = Format(
    "sav",
    "SPSS",
    (".sav", ".zsav", ".por"),
    read_sav,
    write_sav,
    "the same, with labels",
    options=frozenset({"encoding", "max_unpacked_gb"}),
    extra="spss",
    tells_empty=False,
    read_only=(".por",),
    loses="integers beyond 2^53, decimals of more than 15 digits, time zones, parts of milliseconds; an empty text is "
    "missing",
)
STATA = Format(
    "dta",
    "Stata",
    (".dta",),
    read_dta,
    write_dta,
    "the same, with labels",
    options=frozenset({"encoding"}),
    extra="spss",
    tells_empty=False,
    loses="integers beyond 2^53, decimals of more than 15 digits, time zones, parts of milliseconds, extended missing "
    "values; an empty text is missing",
)
