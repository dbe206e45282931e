"""Column receipt: how a column was read, in one line, the same in `inspect`, in a release, its report and the app."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from shoal.columns.schema import Column, ColumnSettings, Kind, Role, Schema, is_text, natural_kind, value_type
from shoal.findings.column_view import ColumnView
from shoal.sources import FieldReading, Reading
from shoal.sources.reading import Receipt

DecidedBy = Literal["settings", "file", "default"]
"""Who decided what a column is: the person, by a setting; the file, by its types or its labels; or nobody."""

_WORDS = {"settings": "as set", "file": "as the file says", "default": "by default"}
_NOTHING = ColumnSettings()
_MOST_DECIMALS = 6


@dataclass(frozen=True)
class ColumnReceipt:
    """How a column was read.

    Attributes
    ----------
    name : str
    read_as : str
        What its values are, such as "whole number" or "date (%d.%m.%Y)".
    label : str or None
        What the file calls the column.
    special : tuple of str
        What was done to read it: marks of numbers, texts that were folded.
    decided_by : {"settings", "file", "default"}
    n_missing, n_different : int or None
        Records without a value and different values, where they were counted; not for the public.
    n_decimals : int or None
        Decimals of a column of numbers, as far as they are few.
    missing_by : tuple of str
        What stands for a missing value beside an empty field; not for the public, since it may be a value.
    """

    name: str
    read_as: str
    label: str | None = None
    special: tuple[str, ...] = ()
    decided_by: DecidedBy = "default"
    n_missing: int | None = None
    n_different: int | None = None
    n_decimals: int | None = None
    missing_by: tuple[str, ...] = ()

    @property
    def public(self) -> str:
        """The line without what could tell a value."""
        return "; ".join([self.read_as, *self.special, *([repr(self.label)] if self.label else [])])

    @property
    def line(self) -> str:
        """The whole line."""
        told = [f"{self.public} ({_WORDS[self.decided_by]})"]
        if self.n_different is not None:
            told.append(f"{self.n_different:,} different")
        if self.n_missing:
            by = f" ({', '.join(self.missing_by)} or empty)" if self.missing_by else ""
            told.append(f"{self.n_missing:,} missing{by}")
        return ", ".join(told)

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as plain values, for JSON."""
        return {
            **vars(self),
            "special": list(self.special),
            "missing_by": list(self.missing_by),
            "public": self.public,
            "line": self.line,
        }


def receipts_of(
    schema: Schema,
    given: Mapping[str, ColumnSettings],
    views: Mapping[str, ColumnView],
    view_of: Callable[[str], ColumnView],
) -> list[ColumnReceipt]:
    """Return how each column of a release was read, by the settings given for it.

    `view_of` returns the columns that are not among `views`.
    """

    def receipt(column: Column) -> ColumnReceipt:
        if column.role is Role.IDENTIFIER:
            return ColumnReceipt(column.name, "not published", decided_by="settings")
        view = views[column.name] if column.name in views else view_of(column.name)
        return receipt_of(view, column, given.get(column.name, ColumnSettings()))

    return [receipt(column) for column in schema.columns]


def receipt_of(
    view: ColumnView,
    column: Column | None = None,
    settings: ColumnSettings = _NOTHING,
    kind: Kind | None = None,
) -> ColumnReceipt:
    """Return how a column was read.

    Parameters
    ----------
    view : ColumnView
        Its values, prepared if it is one of a release.
    column : Column, optional
        What it is in a release.
    settings : ColumnSettings, optional
        What was set for it.
    kind : Kind, optional
        What the file says that it is, where there is no `column`.
    """
    kind = kind if column is None else column.kind
    own, found = _given(view.receipt, view.name), view.receipt.found.fields.get(view.name, FieldReading())
    return ColumnReceipt(
        view.name,
        _read_as(view, view.values.type if column is None else column.type, kind, found),
        view.label,
        _special(view, found, settings),
        _decided_by(view, own, settings),
        view.n_missing,
        _n_different(view),
        _n_decimals(view) if kind is Kind.NUMERIC or (kind is None and view.kind is Kind.NUMERIC) else None,
        _missing_by(view, settings),
    )


def _given(receipt: Receipt, name: str) -> FieldReading:
    given: FieldReading = receipt.given.fields.get(name, FieldReading())
    return given


def _read_as(view: ColumnView, type_: pa.DataType, kind: Kind | None, found: FieldReading) -> str:
    if view.description is not None and view.description.values and kind in (Kind.NOMINAL, Kind.ORDINAL):
        return f"{'ordered ' if kind is Kind.ORDINAL else ''}category with labels"
    plain = value_type(type_)
    if pa.types.is_dictionary(type_):
        return "ordered levels" if type_.ordered else "levels"
    if is_text(plain):
        return "text, in an order" if kind is Kind.ORDINAL else "text"
    natural = natural_kind(plain)
    if natural is Kind.NUMERIC:
        return _number(view, plain) + {Kind.NOMINAL: ", as codes", Kind.ORDINAL: ", as ranks"}.get(
            kind or Kind.NUMERIC, ""
        )
    if natural is Kind.DATE:
        word = "date" if pa.types.is_date(plain) else "time"
        return f"{word} ({found.date_format})" if found.date_format else word
    return {"bool": "true or false", "null": "nothing"}.get(str(plain), str(plain))


def _number(view: ColumnView, type_: pa.DataType) -> str:
    if not len(view.numbers) and not pa.types.is_integer(type_):
        return "number"
    if view.are_whole:
        return "whole number"
    n_decimals = _n_decimals(view)
    return f"number with {n_decimals or 'many'} decimal{'' if n_decimals == 1 else 's'}"


def _n_decimals(view: ColumnView) -> int | None:
    """Return the number of decimals that all numbers fit into; None if they are many."""
    if view.are_whole:
        return 0
    values = view.different[0]
    for n_decimals in range(1, _MOST_DECIMALS):
        with np.errstate(over="ignore", invalid="ignore"):  # the largest numbers have no decimals to round to
            rests = np.abs(values - np.round(values, n_decimals))
        if rests.max() < 10.0 ** -(_MOST_DECIMALS + 3):
            return n_decimals
    return None


def _special(view: ColumnView, found: FieldReading, settings: ColumnSettings) -> tuple[str, ...]:
    told = {
        "decimal comma": found.decimal == ",",
        f"{found.thousands!r} between thousands": found.thousands is not None,
        f"unit {found.unit} the numbers removed": found.unit is not None,
        "case and blanks ignored": settings.fold,
        "smaller or larger values limited": settings.top is not None or settings.bottom is not None,
        f"made text: it held {' and '.join(view.mixed)}": bool(view.mixed),
    }
    return tuple(text for text, is_so in told.items() if is_so)


_DECIDING = {"kind", "categories", "missing_codes", "fold", "top", "bottom"}
"""Settings that say how values are read."""


def _decided_by(view: ColumnView, own: FieldReading, settings: ColumnSettings) -> DecidedBy:
    if settings.model_fields_set & _DECIDING or own.is_typed or own.null_values or _of_all(view):
        return "settings"
    is_described = view.description is not None and (view.description.values or view.description.measure is not None)
    return "file" if is_described or view.is_typed else "default"


def _of_all(view: ColumnView) -> bool:
    """Return whether a setting for the whole file decided how this column was read."""
    return any(view.receipt.decided_by(name, view.name) == "file" for name in ("decimal", "thousands", "date_format"))


def _missing_by(view: ColumnView, settings: ColumnSettings) -> tuple[str, ...]:
    whole: Reading = view.receipt.given
    texts = _given(view.receipt, view.name).null_values or whole.null_values or ()
    declared = ("declared missing by the file",) if view.description and view.description.missing else ()
    return (*texts, *map(str, settings.missing_codes), *declared)


def _n_different(view: ColumnView) -> int | None:
    if view.is_text:
        return len(view.texts)
    return len(view.different[0]) if view.kind in (Kind.NUMERIC, Kind.DATE) else None
