"""SAS files: .sas7bdat, which is read, and .xpt (transport), which is read and written."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import FileError, ParameterError, listed
from shoal.sources.clean import check_finite, not_storable, nulled
from shoal.sources.format import About, Content, Format
from shoal.sources.labelled_files import ValueLabels, labels_for, pyreadstat_for, read_labelled, write_labelled
from shoal.sources.reading import Reading
from shoal.spelling import named, setting

_TIME_OF_WRITING = re.compile(rb"\d\d[A-Z]{3}\d\d(:\d\d){3}")
_WIDTH = re.compile(r"(?<!\d)(\d++(\.\d*)?|\.)$")
_OWN_FORMATS = re.compile(
    r"\$?(|CHAR|BEST|F|D|E|Z|COMMA[X]?|DOLLAR[X]?|PERCENT[N]?|NUMX|HEX|DATE|DATETIME|DTDATE|TIME|TIMEAMPM|TOD|HHMM|"
    r"DDMMYY[BCDNPS]?|MMDDYY[BCDNPS]?|YYMMDD[BCDNPS]?|YYMM[CDNPS]?|MMYY[CDNPS]?|YYMON|MONYY|MONNAME|MONTH|YEAR|YYQ|"
    r"QTR|WEEKDATE|WEEKDAY|WORDDATE|JULIAN|DAY|DOWNAME|E8601D[ANTZ]|E8601[DLT][TZ]?|B8601D[ANTZ])\d*(\.\d*)?",
    re.IGNORECASE,
)
"""Formats that SAS itself defines; others get their labels from a catalogue."""

_SMALLEST, _LARGEST = 1e-78, 7e75


def read_sas(path: Path, columns: Sequence[str] | None, reading: Reading) -> Content:
    """Read a SAS file. Missing values, including special ones (.A to .Z, ._), become null."""
    pyreadstat, catalog = pyreadstat_for(path), reading.catalog
    if path.suffix.lower() == ".xpt":
        if catalog is not None:
            raise ParameterError(
                f"{named('catalog')} cannot be given for a .xpt file, which has no formats of its own."
            )
        table, receipt, labels = read_labelled(pyreadstat.read_xport, path, columns, reading)
    else:
        table, receipt, labels = read_labelled(pyreadstat.read_sas7bdat, path, columns, reading, user_missing=True)
        if catalog is not None:
            labels = _labelled_by(_catalogue(pyreadstat, catalog, reading.encoding), labels)
    return Content.of(table, replace(receipt, notes=tuple(_notes(labels, catalog))), labels)


def write_xpt(table: pa.Table, path: Path, ending: str = ".xpt", like: About | None = None) -> None:
    """Write a SAS transport file, with the labels of the variables.

    It has version 5, which most programs read, unless a name, label or text is too long for that; then version 8.
    """
    check_finite(table, "SAS")
    _check_range(table)
    labels = labels_for(like, table)
    options = {
        "file_format_version": 5 if _fits_version_5(table, labels) else 8,
        "variable_format": {name: form for name, form in labels.formats.items() if _is_kept(form, table[name].type)},
    }
    write_labelled(pyreadstat_for(path).write_xport, table, path, labels, options)
    content = path.read_bytes()
    path.write_bytes(_TIME_OF_WRITING.sub(b"01JAN70:00:00:00", content[:800]) + content[800:])


def _check_range(table: pa.Table) -> None:
    """Raise if a number is one that a transport file, whose floats have an exponent of 7 bits, cannot hold."""
    for name in table.column_names:
        if pa.types.is_floating(table[name].type):
            sizes = pc.abs(table[name].cast(pa.float64()))
            ends = pc.min_max(nulled(sizes, pc.equal(sizes, 0))).as_py()
            if ends["max"] is not None and not (ends["min"] >= _SMALLEST and ends["max"] <= _LARGEST):
                odd = f"numbers above {_LARGEST:g} or closer to zero than {_SMALLEST:g}"
                raise not_storable(name, odd, "SAS transport files", "Scale them")


def _catalogue(pyreadstat: Any, path: str, encoding: str | None) -> dict[str, dict[Any, str]]:
    """Return the labels of values by the name of their format."""
    if not Path(path).is_file():
        raise FileError(f"The catalogue {str(path)!r} does not exist or is not a regular file.")
    try:
        return pyreadstat.read_sas7bcat(path, encoding=encoding)[1].value_labels  # type: ignore[no-any-return]
    except Exception:  # on damaged files pyreadstat raises whatever its conversions do
        raise FileError(
            f"The catalogue {Path(path).name!r} cannot be read: it is truncated, damaged or of another format. Export "
            f"it from SAS again, or leave {setting('catalog')} out."
        ) from None


def _labelled_by(catalogue: dict[str, dict[Any, str]], labels: ValueLabels) -> ValueLabels:
    """Return the labels with those that a catalogue has for the formats of the columns."""
    names = {name: _WIDTH.sub("", form).upper() for name, form in labels.formats.items()}
    found = {name: catalogue[form] for name, form in names.items() if form in catalogue}
    return replace(labels, values={**labels.values, **found})


def _notes(labels: ValueLabels, catalog: str | None) -> list[str]:
    """Say which special missing values and which formats a reader of the table may miss."""
    notes = []
    if labels.special:
        notes.append(
            f"Special missing values (.A to .Z, ._) in {listed(labels.special)} are read as missing; which of them a "
            "record has is not kept."
        )
    own = [name for name, form in labels.formats.items() if not _OWN_FORMATS.fullmatch(form)]
    unlabelled = [name for name in own if name not in labels.values]
    if unlabelled and catalog is None:
        notes.append(
            f"Formats of {listed(unlabelled)} may have labels in a catalogue (.sas7bcat), which is not read. Give it "
            "as the catalog."
        )
    return notes


def _is_kept(form: str, kind: pa.DataType) -> bool:
    """Return whether a column of numbers is written with a format: not with one that only a catalogue explains."""
    return bool(_OWN_FORMATS.fullmatch(form)) and (pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _fits_version_5(table: pa.Table, labels: ValueLabels) -> bool:
    """Return whether names have at most 8 characters, labels 40 and texts 200 bytes."""
    names = all(len(name) <= 8 and name.isascii() for name in table.column_names)
    texts = [
        pc.max(pc.binary_length(column.cast(pa.large_string()))).as_py() or 0
        for column in table.columns
        if pa.types.is_string(column.type)
        or pa.types.is_large_string(column.type)
        or pa.types.is_dictionary(column.type)
    ]
    return (
        names and max(texts, default=0) <= 200 and all(len(text.encode()) <= 40 for text in labels.variables.values())
    )


SAS = Format(
    "sas",
    "SAS",
    (".sas7bdat", ".xpt"),
    read_sas,
    write_xpt,
    "`.xpt`, with the labels of the variables",
    options=frozenset({"encoding", "catalog", "max_unpacked_gb"}),
    extra="spss",
    tells_empty=False,
    read_only=(".sas7bdat",),
    loses="labels of values (SAS has them in a catalogue), special missing values, time zones, integers beyond "
    "2^53; an empty text is missing",
)
