"""Reading: how a table is read, as it was asked for and as it was done.

The Python call, the command line, a job and the app take their options from `Reading`; a format declares which of them
it understands. They are checked here, once, and readers trust them. What a reader decides by itself it states in the
same words, in a `Receipt`.
"""

import operator
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from shoal.errors import ParameterError
from shoal.settings import Number, Settings, Whole, validated
from shoal.sources.clean import check_wanted
from shoal.sources.text_values import FORM, pattern_of
from shoal.spelling import as_listed, name_and_value, named

Decider = Literal["column", "file", "reader"]
"""Who decided on a setting: the caller, for one column or for the whole file, or the reader, by what it found."""


def _refused(why: str) -> PydanticCustomError:
    return PydanticCustomError("reading", "{why}", {"why": why})


def _strings(given: object) -> object:
    # A single string would be split into letters, and a table into its keys.
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise _refused("it should be a list of strings, as in ['NA']")
    return tuple(given)


def _one_character(given: str) -> str:
    if len(given.encode()) != 1 or given in ("\n", "\r"):
        raise _refused(f"it should be one ASCII character, not {given!r}")
    return given


def _decimal(given: str) -> str:
    if given not in (".", ","):
        raise _refused(f"it should be '.' or ',', not {given!r}")
    return given


def _thousands(given: str, others: ValidationInfo) -> str:
    if len(given) != 1 or given.isalnum() or given in "+-" or given == others.data.get("decimal"):
        raise _refused(
            f"it should be one character such as ',' or '.' and differ from the decimal mark, which {given!r} does not"
        )
    return given


def _date_format(given: str) -> str:
    try:
        pattern_of(given)
    except ParameterError as error:
        raise _refused(error.marked.rstrip(".")) from None
    return given


def _path(given: object) -> object:
    return os.fspath(given) if isinstance(given, os.PathLike) else given


def _rows(given: object) -> str:
    """Return numbers of records as ``1-3,812``, in ascending order; each is a number, a range or a list of them."""
    ends: list[list[int]] = []
    for first, last in sorted(_ranges(given)):
        if ends and first <= ends[-1][1] + 1:
            ends[-1][1] = max(ends[-1][1], last)
        else:
            ends.append([first, last])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)


def _ranges(given: object) -> list[tuple[int, int]]:
    if isinstance(given, str):
        found = [re.fullmatch(r"\s*([0-9]{1,18})\s*(?:-\s*([0-9]{1,18})\s*)?", part) for part in given.split(",")]
        ends = [(int(part[1]), int(part[2] or part[1])) for part in found if part is not None]
        if len(ends) < len(found) or any(not 1 <= first <= last for first, last in ends):
            raise _refused("it should be numbers of records from 1 on and ranges of them, as in '1-3,812'")
        return ends
    if hasattr(given, "__index__") and not isinstance(given, bool):
        return _ranges(str(operator.index(given)))
    if isinstance(given, Iterable) and not isinstance(given, Mapping) and (several := list(given)):
        return [ends for part in several for ends in _ranges(part)]
    raise _refused("it should be numbers of records, as in '1-3,812' or [1, 2, 3, 812]")


def _conditions(given: object) -> object:
    """Return conditions as a list of ``COLUMN=VALUE``; a mapping has one value or a list of them by column."""
    if isinstance(given, Mapping):
        pairs = [(name, v) for name, values in given.items() for v in (values if _is_listed(values) else [values])]
        given = [f"{as_listed(str(name))}={'' if value is None else value}" for name, value in pairs]
    found = (given,) if isinstance(given, str) else _strings(given)
    if any(not isinstance(text, str) or name_and_value(text) is None for text in found):  # type: ignore[attr-defined]
        raise _refused("it should be COLUMN=VALUE, or a list of such")
    return found


def _is_listed(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


Rows = Annotated[str, BeforeValidator(_rows)]
Conditions = Annotated[tuple[str, ...], BeforeValidator(_conditions)]


def _without_forms(given: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if given and any(entry.startswith(FORM) for entry in given):
        raise _refused("a form (form:..) is given for one column, as in COLUMN=form:a 9")
    return given


Side = Literal["before", "after"]
"""Where the unit of a number is."""

Blanks = Literal["strip", "keep"]
"""What becomes of blanks beside a delimiter."""

Strings = Annotated[tuple[str, ...], BeforeValidator(_strings)]
Character = Annotated[str, AfterValidator(_one_character)]
Quote = Annotated[str, AfterValidator(lambda given: given and _one_character(given))]
DecimalMark = Annotated[str, AfterValidator(_decimal)]
Thousands = Annotated[str, AfterValidator(_thousands)]
DateFormat = Annotated[str, AfterValidator(_date_format)]
FilePath = Annotated[str, BeforeValidator(_path)]


class FieldReading(Settings):
    """How the texts of one column are read.

    Attributes
    ----------
    null_values : tuple of str
        Strings that mean a missing value, quoted or not; ``form:a 9`` means all strings of this form
        (`shoal.sources.text_values.forms_of`).
    decimal, thousands : str
        Decimal mark and thousands separator of numbers.
    date_format : str
        Format of dates, as in ``%d.%m.%Y``. Dates in ISO 8601 need none.
    unit : {"before", "after"}
        On which side of the numbers their unit is; it has to be the same for all that have one.
    """

    null_values: Strings | None = Field(None, description="texts that stand for a missing value, or form:a 9")
    decimal: DecimalMark | None = Field(None, description="decimal point or comma")
    thousands: Thousands | None = Field(None, description="mark between thousands")
    date_format: DateFormat | None = Field(None, description="format of dates, such as %d.%m.%Y")
    unit: Side | None = Field(None, description="side of the numbers on which their unit is, before or after")

    @property
    def is_number(self) -> bool:
        """Whether it specifies how numbers are written."""
        return not (self.decimal is None and self.thousands is None and self.unit is None)

    @property
    def is_typed(self) -> bool:
        """Whether it specifies the type, number or date, and not only null values."""
        return self.is_number or self.date_format is not None

    @property
    def decimal_mark(self) -> str | None:
        """The decimal mark, given or implied by the thousands separator."""
        return self.decimal or (None if self.thousands is None else "," if self.thousands == "." else ".")

    def over(self, whole_file: "FieldReading") -> "FieldReading":
        """Return these settings, completed by those of the whole file."""
        given: dict[str, Any] = {name: value for name, value in self if value}
        if "decimal" in given and "thousands" not in given and whole_file.thousands == given["decimal"]:
            given["thousands"] = None
        if "thousands" in given and "decimal" not in given and whole_file.decimal == given["thousands"]:
            given["decimal"] = None
        return whole_file.model_copy(update=given)


class Reading(Settings):
    """How a table is read. Settings left out are detected; the page on tables lists them with their formats."""

    delimiter: Character | None = Field(
        None, description="between the fields of a CSV file; detected if it is a comma, a semicolon, a tab or a bar"
    )
    encoding: str | None = Field(
        None,
        description="of a text file that is not UTF-8, or of an SPSS, Stata or SAS file that does not name its own",
    )
    decimal: DecimalMark | None = Field(None, description="decimal point or comma of a CSV file")
    quote: Quote | None = Field(
        None,
        description="around fields of a CSV file that hold the delimiter; empty if none is, by default a double quote",
    )
    null_values: Annotated[Strings | None, AfterValidator(_without_forms)] = Field(
        None,
        description="texts of a CSV, Excel or NDJSON file that mean missing, beside an empty field; of one column also "
        "form:a 9, for all texts of letters, a blank and digits",
    )
    header: bool | None = Field(
        None, description="the first line of a CSV file is a header though it looks like a record"
    )
    names: Strings | None = Field(
        None, description="the columns of a CSV file or sheet without a header, or in place of the header that is named"
    )
    thousands: Thousands | None = Field(
        None, description="mark between the thousands of numbers in a CSV file: , . ' or a space"
    )
    date_format: DateFormat | None = Field(
        None, description="format of dates in a CSV file, such as %d.%m.%Y, beside ISO 8601"
    )
    unit: Side | None = Field(
        None, description="unit of numbers in a CSV file, which is the same in a column: before or after them"
    )
    fields: dict[str, FieldReading] = Field(
        {},
        description="null_values, decimal, thousands, date_format, unit of a column, all of whose values have to match",
    )
    fill_keys: bool | None = Field(None, description="keys that some lines of an NDJSON file lack are missing values")
    sheet: str | None = Field(None, description="sheet of an Excel workbook; by default its only visible one")
    header_row: Whole | None = Field(
        None,
        ge=1,
        description="line of a CSV file, or row of a sheet as Excel counts, that names the columns; what is above it "
        "is not read",
    )
    comment: Character | None = Field(
        None, description="lines of a CSV file that begin with it are not read, such as #"
    )
    blanks: Blanks | None = Field(
        None,
        description="beside the delimiters of a CSV file: strip them, or keep them as parts of the fields; stripped if "
        "the header or every field has them",
    )
    catalog: FilePath | None = Field(None, description="catalogue (.sas7bcat) with the labels of a SAS file")
    format: str | None = Field(
        None, description="of standard input (-), by extension: csv, csv.gz, ndjson, xlsx ..; detected by default"
    )
    max_unpacked_gb: Number | None = Field(
        None, gt=0, description="GB to which a compressed file, Parquet or a workbook may unpack; 2 by default"
    )
    skip_rows: Rows | None = Field(
        None, description="records to leave out, by number, such as 1-3,812; the first below the header is 1"
    )
    skip_where: Conditions | None = Field(
        None, description="records to leave out, by the value of a column, COLUMN=VALUE; without VALUE, a missing one"
    )
    table: str | None = Field(None, description="table or view of a database, NAME or SCHEMA.NAME")
    query: str | None = Field(None, description="SELECT statement for a database, in place of a table")

    @staticmethod
    def of(options: Mapping[str, Any], understood: frozenset[str], what: str) -> "Reading":
        """Return the options given for a source; raise if one has no effect on it, is unknown or cannot be used."""
        given = {name: value for name, value in options.items() if value is not None and (name != "fields" or value)}
        unused = sorted(set(given) & set(Reading.model_fields) - understood - OF_ANY_SOURCE)
        if unused:
            raise ParameterError(f"{named(*unused)} cannot be given for {what}, only for other formats. Leave it out.")
        return validated(Reading, given)

    @property
    def skips(self) -> bool:
        """Whether records are to be left out."""
        return bool(self.skip_rows or self.skip_where)

    @property
    def given(self) -> dict[str, Any]:
        """The options that are set, as plain values."""
        found = {name: value for name, value in self.model_dump(exclude_none=True).items() if name != "fields"}
        fields = {name: how.model_dump(exclude_none=True) for name, how in self.fields.items()}
        return found | ({"fields": fields} if fields else {})

    @property
    def of_all(self) -> FieldReading:
        """The settings of the fields of all columns."""
        return FieldReading.model_construct(**{name: getattr(self, name) for name in FieldReading.model_fields})

    def of_columns(self, names: Sequence[str]) -> dict[str, FieldReading]:
        """Return the settings of the fields of each column, empty where none are given; raise if one is not there."""
        check_wanted(list(self.fields), names)
        nothing = FieldReading()
        return {name: self.fields.get(name, nothing) for name in names}


def as_reading(given: object) -> dict[str, Any]:
    """Return reading options as an argument of Python, or raise if they are no mapping.

    Examples
    --------
    >>> as_reading(None), as_reading({"delimiter": ";"})
    ({}, {'delimiter': ';'})
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"reading is of type {type(given).__name__}, and should be a dict of reading options, such as "
            "{'delimiter': ';'}."
        )
    return dict(given)


OF_ANY_SOURCE = frozenset({"skip_rows", "skip_where"})
"""Options that every source understands, also frames (`shoal.sources.left_out`)."""


def number_after(place: int, left_out: NDArray[np.int64]) -> int:
    """Return the number, from 1, of a record by its place among those that were not left out."""
    before = left_out - np.arange(len(left_out))
    return place + 1 + int(np.searchsorted(before, place, side="right"))


@dataclass(frozen=True)
class Receipt:
    """How a table was read, and who decided it.

    Attributes
    ----------
    given : Reading
        The options given.
    found : Reading
        The settings that had an effect, given or not: of the file, and in `fields` those of each column that has any,
        such as the format of its dates. A column of dates without a format was in ISO 8601, or holds dates by itself.
    mixed : mapping of str to (mapping of str to int)
        Columns that hold values of several types, and the number of values of each.
    thousandths : frozenset of str
        Columns all of whose numbers are written with one to three digits, a decimal mark and three digits.
    notes : tuple of str
        Notes of the reader on what the records do not show, such as hidden rows.
    left_out : ndarray of int64
        Places, from 0, of the records that were left out, in ascending order.
    """

    given: Reading = field(default_factory=Reading)
    found: Reading = field(default_factory=Reading)
    mixed: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: MappingProxyType({}))
    thousandths: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    left_out: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64), compare=False)

    def number_of(self, place: int) -> int:
        """Return the number, from 1, that the record at a place of the table has in its source.

        Examples
        --------
        >>> receipt = Receipt(left_out=np.array([0, 2]))
        >>> [receipt.number_of(place) for place in range(3)]
        [2, 4, 5]
        """
        return number_after(place, self.left_out)

    def decided_by(self, setting: str, column: str | None = None) -> Decider | None:
        """Return who decided on a setting of the file or of a column; None where it had no effect.

        Examples
        --------
        >>> whole, own = Reading(decimal=","), {"born": FieldReading(date_format="%d.%m.%Y")}
        >>> receipt = Receipt(whole, whole.model_copy(update={"delimiter": ";", "fields": own}))
        >>> receipt.decided_by("decimal"), receipt.decided_by("delimiter"), receipt.decided_by("date_format", "born")
        ('file', 'reader', 'reader')
        """
        own = None if column is None else self.given.fields.get(column)
        found = self.found if column is None else self.found.fields.get(column)
        if found is None or getattr(found, setting) is None:
            return None
        if own is not None and getattr(own, setting) is not None:
            return "column"
        return "file" if getattr(self.given, setting) is not None else "reader"
