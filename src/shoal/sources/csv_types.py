"""Type inference for CSV columns, based on all values of a column.

A column gets a type only if every value has that type and the conversion is lossless: codes with a leading zero or
plus and integers of more than 64 bits stay text.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.errors import FileError, listed
from shoal.sources.clean import nulled
from shoal.sources.reading import FieldReading, Side
from shoal.sources.text_values import as_dates, grouped_pattern, split_unit, ungrouped, without_nulls
from shoal.spelling import setting

_WHOLE = r"^-?[0-9]+$"
_BOOLEAN = r"^(true|false|True|False|TRUE|FALSE)$"
_AFTER_ZERO = np.frombuffer(b"0123456789xX", dtype=np.uint8)
_N_FIRST = 100
_N_EARLY = _N_FIRST * _N_FIRST  # records among which they are looked for first


class Values(NamedTuple):
    """Values as one type, and what was seen among them that decides on the type for all values together."""

    column: pa.ChunkedArray
    seen: frozenset[str] = frozenset()


MARK, FINITE, NOT_WHOLE, BEYOND = "decimal mark", "finite number", "not a whole number", "whole number beyond 64 bits"
NOT_THREE = "not one to three digits, before a mark and three more if there is one"
_UNIT = "unit "  # before a unit that was seen
_THREE = r"^-?([1-9][0-9]{0,2}[.,][0-9]{3}|[0-9]{1,3})$"
_SHORT = 1000  # below it, numbers have no mark between thousands


@dataclass(frozen=True, eq=False)
class Attempt:
    """A type to try on the values of a column."""

    read: Callable[[pa.ChunkedArray], Values | None]
    """Returns None if a value is not of the type."""

    holds: Callable[[frozenset[str]], bool] = lambda seen: True
    """Whether what was seen among all values permits the type."""

    mark: str = ""
    """Decimal mark of the values that have one."""

    reads_wholes: bool = False
    """Whether it reads what `_wholes` reads."""

    thousands: str | None = None
    """Thousands separator that the values may have."""

    date_format: str | None = None
    """Format of the dates, if one was given."""

    unit: Side | None = None
    """Side of the numbers on which their unit is."""

    def read_all(self, text: pa.ChunkedArray) -> Values | None:
        """Return all values of a column, None if they are not of the type."""
        found = self.read(text)
        return found if found is not None and self.holds(found.seen) else None

    def by(self, seen: frozenset[str]) -> FieldReading:
        """Return the marks and the format by which values are read; the decimal mark only if one of them has it."""
        decimal = self.mark if MARK in seen else None
        return FieldReading(decimal=decimal, thousands=self.thousands, date_format=self.date_format, unit=self.unit)


class ReadBy(NamedTuple):
    """How the values of a column were read: marks, format of dates; and whether all numbers are like 7.920."""

    settings: FieldReading = FieldReading()
    are_thousandths: bool = False

    @staticmethod
    def of(attempt: Attempt, seen: frozenset[str]) -> "ReadBy":
        """Return how an attempt has read values among which this was seen."""
        return ReadBy(attempt.by(seen), MARK in seen and NOT_THREE not in seen and attempt.thousands is None)


class Typed(NamedTuple):
    """A typed column, and how its values were read."""

    column: pa.ChunkedArray
    by: ReadBy = ReadBy()


class TypesFound(NamedTuple):
    """What was decided for a table: its decimal mark, given or detected, and how the fields of columns were read."""

    decimal: str
    fields: dict[str, FieldReading]
    thousandths: frozenset[str]


def infer(
    table: pa.Table,
    whole_file: FieldReading,
    own: Mapping[str, FieldReading],
    path: str,
    *,
    is_whole: bool = True,
    number_of: Callable[[int], int],
) -> tuple[pa.Table, TypesFound]:
    """Return the table with a type for each column, and what was decided.

    Whether a format for all columns has an effect is only known if the table is the whole file, and not some of its
    columns.
    """

    def typed_column(name: str) -> Typed:
        how = own[name]
        found = _typed(without_nulls(table[name], how.null_values), _attempts(how, whole_file))
        if how.is_typed:
            _refuse_unread([found.column], how, name, number_of)
        return found

    typed = _by_column(typed_column, table.column_names)
    by = {name: found.by for name, found in typed.items()}
    n_records = table.num_rows if is_whole else 0
    return pa.table({name: found.column for name, found in typed.items()}), _found(by, whole_file, own, path, n_records)


class Types:
    """The types of a table that is seen in parts: those that `infer` gives it as a whole."""

    def __init__(self, whole_file: FieldReading, own: Mapping[str, FieldReading]) -> None:
        self._whole_file, self._own, self.n_records = whole_file, own, 0
        self._columns = {name: _ColumnType(_attempts(how, whole_file)) for name, how in own.items()}

    def see(self, texts: pa.Table) -> None:
        """Take the next records."""
        _by_column(lambda name: self._columns[name].see(self._text(texts, name)), texts.column_names)
        self.n_records += texts.num_rows

    def decide(
        self, path: str, texts: Callable[[list[str]], Iterator[pa.Table]], number_of: Callable[[int], int]
    ) -> tuple[pa.Schema, TypesFound]:
        """Return the types, and what was decided; read the texts again of a column that does not match its options."""
        for name, column in self._columns.items():
            column.decide()
            if self._own[name].is_typed and column.attempt is None:
                parts = (self._text(part, name) for part in texts([name]))
                _refuse_unread(parts, self._own[name], name, number_of)
        types = pa.schema([(name, column.type) for name, column in self._columns.items()])
        by = {name: column.by for name, column in self._columns.items()}
        return types, _found(by, self._whole_file, self._own, path, self.n_records)

    def typed(self, texts: pa.Table) -> pa.Table:
        """Return records with the types of the table."""
        return pa.table(_by_column(lambda name: self._columns[name].typed(self._text(texts, name)), texts.column_names))

    def _text(self, texts: pa.Table, name: str) -> pa.ChunkedArray:
        return without_nulls(texts[name], self._own[name].null_values)


def _found(
    read_by: Mapping[str, ReadBy], whole_file: FieldReading, own: Mapping[str, FieldReading], path: str, n_records: int
) -> TypesFound:
    """Return what was decided; raise if columns contradict each other, or a format for all of them has no effect."""
    by = {name: found.settings for name, found in read_by.items()}
    of_all = {name: found for name, found in by.items() if not own[name].is_typed}
    thousandths = frozenset(name for name, found in read_by.items() if found.are_thousandths)
    mark = _one_mark({name: found.decimal for name, found in of_all.items()}, thousandths, whole_file, path)
    if whole_file.date_format and n_records and not any(found.date_format for found in of_all.values()):
        raise FileError(
            f"{setting('date_format', whole_file.date_format)} has no effect: no column of {path!r} without a format "
            "of its own has only values that match it. Correct it, or leave it out: dates in ISO 8601 need none. If "
            f"some values stand for missing ones, give {setting('null_values', [...])}."
        )
    fields = {name: found.model_copy(update={"null_values": own[name].null_values}) for name, found in by.items()}
    nothing = FieldReading()
    return TypesFound(mark, {name: found for name, found in fields.items() if found != nothing}, thousandths)


class _ColumnType:
    """The type of a column whose values are seen in parts."""

    def __init__(self, attempts: Iterable[Attempt]) -> None:
        self._seen: dict[Attempt, frozenset[str]] = dict.fromkeys(attempts, frozenset())
        self._first: list[str] = []
        self._n_records, self._is_late = 0, False
        self.attempt: Attempt | None = None
        self.type, self.by = pa.string(), ReadBy()

    def see(self, text: pa.ChunkedArray) -> None:
        """Rule out types by the next values."""
        text = _without_empty(text)
        self._see_first(text)
        first, is_whole, of_wholes = _first(text), False, frozenset[str]()
        for attempt in list(self._seen) if len(first) else ():
            if is_whole and attempt.reads_wholes:
                self._seen[attempt] |= {FINITE, *of_wholes}
                continue
            found = None if attempt.read(first) is None else attempt.read(text)
            if found is None:
                del self._seen[attempt]
                continue
            self._seen[attempt] |= found.seen
            if attempt.read is _wholes:
                is_whole, of_wholes = True, found.seen

    def _see_first(self, text: pa.ChunkedArray) -> None:
        """Keep what `_first` returns of the whole column."""
        n_early = max(_N_EARLY - self._n_records, 0)
        self._keep_first(text.slice(0, n_early))
        if len(text) > n_early and (self._is_late or not self._first):
            self._is_late = True
            self._keep_first(text.slice(n_early))
        self._n_records += len(text)

    def _keep_first(self, text: pa.ChunkedArray) -> None:
        n_missing = _N_FIRST - len(self._first)
        if n_missing:
            self._first += text.drop_null().slice(0, n_missing).to_pylist()

    def decide(self) -> None:
        """Choose the first type that is left."""
        first = pa.chunked_array([self._first], pa.string())
        for attempt, seen in self._seen.items() if self._first else ():
            begin = attempt.read_all(first)
            if begin is not None and attempt.holds(seen):
                self.attempt, self.by = attempt, ReadBy.of(attempt, seen)
                self.type = pa.float64() if MARK in seen else begin.column.type
                return

    def typed(self, text: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return values with the type that was chosen."""
        if self.attempt is None:
            return text
        text = _without_empty(text)
        if text.null_count == len(text):
            return pa.chunked_array([pa.nulls(len(text), self.type)])
        found = self.attempt.read(text)
        if found is None:
            raise FileError(
                "A column has other values than when the file was opened: the file has changed while it was in use. "
                "Nothing was written. Start again when no other program writes to it, or use a copy."
            )
        # Of grouped numbers, parts without a decimal mark are integers.
        return found.column.cast(self.type, safe=False)


def _by_column(call: Callable[[str], Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the result for each column; if several fail, the error of the first of them, whatever the threads."""
    with ThreadPoolExecutor(kernels.n_threads()) as pool:
        return dict(zip(names, pool.map(call, names), strict=True))


def _one_mark(marks: Mapping[str, str | None], thousandths: frozenset[str], whole_file: FieldReading, path: str) -> str:
    """Return the decimal mark of a file; raise if its columns use both."""
    by_mark = {mark: [name for name, used in marks.items() if used == mark] for mark in ".,"}
    if by_mark["."] and by_mark[","]:
        raise FileError(
            f"{path!r} has decimal commas in {listed(by_mark[','], 5)} and decimal points in "
            f"{listed(by_mark['.'], 5)}. Say which columns have the mark that is rarer: "
            f"{_marks_of(by_mark)}.{_grouped_hint(by_mark, thousandths)}"
        )
    return whole_file.decimal or ("," if by_mark[","] else ".")


def _marks_of(by_mark: Mapping[str, list[str]]) -> str:
    """Return how to say the decimal mark of the columns that have one, the fewer of them first."""
    ways = []
    for mark, names in sorted(by_mark.items(), key=lambda each: (len(each[1]), each[0])):
        also = ", and the same for the others with it" if len(names) > 1 else ""
        ways.append(f"{setting('decimal', mark, column=names[0])}{also}")
    return "; or ".join(ways)


def _grouped_hint(by_mark: Mapping[str, list[str]], thousandths: frozenset[str]) -> str:
    """Return how to read numbers whose marks may separate thousands, where those of all others are decimal marks."""
    for mark, other in (".,", ",."):
        names = [name for name in by_mark[mark] if name in thousandths]
        if len(names) == len(by_mark[mark]) and not thousandths.intersection(by_mark[other]):
            also = ", and the same for the others" if len(names) > 1 else ""
            given = setting("thousands", mark, column=names[0])
            return f" If the marks in {listed(names, 5)} separate thousands: {given}{also}."
    return ""


def typed_field(
    name: str, text: pa.ChunkedArray, how: FieldReading, number_of: Callable[[int], int]
) -> pa.ChunkedArray:
    """Return a column of texts as numbers or dates, as its options specify; raise if a value does not match."""
    found = _typed(text, _attempts(how, FieldReading())).column
    _refuse_unread([found], how, name, number_of)
    return found


def with_iso_dates(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of texts as dates or timestamps if all of them are ISO 8601; otherwise unchanged."""
    first = text.drop_null().slice(0, _N_FIRST)
    for attempt in (_DATES, *_TIMESTAMPS) if len(first) else ():
        if attempt.read(first) is not None and (found := attempt.read(text)) is not None:
            return found.column
    return text


def _typed(text: pa.ChunkedArray, attempts: Sequence[Attempt]) -> Typed:
    present = _without_empty(text)
    first = _first(present)
    for attempt in attempts if len(first) else ():
        # The first few values rule out most types; only the remaining types are tried on all, where failing is slow.
        if attempt.read_all(first) is not None and (found := attempt.read_all(present)) is not None:
            return Typed(found.column, ReadBy.of(attempt, found.seen))
    return Typed(text)


def _without_empty(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts with null for an empty one: quoted, among numbers or dates, it can only mean a missing value."""
    is_empty = pc.equal(text, "")
    return nulled(text, is_empty) if _some(is_empty) else text


def _first(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the first values that are not missing."""
    found = text.slice(0, _N_EARLY).drop_null().slice(0, _N_FIRST)
    return found if len(found) else text.drop_null().slice(0, _N_FIRST)


def _attempts(own: FieldReading, whole_file: FieldReading) -> list[Attempt]:
    """Return the types to try on a column: those that its own options specify, or else all, those given first."""
    how = own.over(whole_file)
    if own.is_typed:
        return [*_dates_of(own), *(map(_signed, _numbers(how)) if own.is_number else ())]
    return [*_dates_of(how), *_numbers(how), Attempt(_booleans), _DATES, *_TIMESTAMPS]


def _dates_of(how: FieldReading) -> list[Attempt]:
    """Return the format of dates to try, if one is given."""
    return [Attempt(partial(_formatted_dates, how.date_format), date_format=how.date_format)] if how.date_format else []


def _numbers(how: FieldReading) -> list[Attempt]:
    """Return the types of numbers to try."""
    grouped = [_grouped(how.thousands, how.decimal_mark or ".")] if how.thousands else []
    plain = [*grouped, Attempt(_wholes), *(_reals(mark) for mark in how.decimal_mark or ".,")]
    return plain if how.unit is None else [*plain, *(_with_unit(attempt, how.unit) for attempt in plain)]


def _signed(attempt: Attempt) -> Attempt:
    """Return an attempt that also reads numbers with a plus, which in a column without settings make it codes."""
    return replace(attempt, read=lambda text: attempt.read(pc.replace_substring_regex(text, _PLUS, r"\1")))


_PLUS = r"^\s*\+([0-9.,])"


def _with_unit(attempt: Attempt, side: Side) -> Attempt:
    """Return an attempt to parse numbers with the same unit on one side of them, or none."""

    def read(text: pa.ChunkedArray) -> Values | None:
        numbers, units = split_unit(text, side)
        found = attempt.read(numbers) if numbers.null_count == text.null_count else None
        named = {_UNIT + unit for unit in pc.unique(units).drop_null().to_pylist() if unit}
        return None if found is None else Values(found.column, found.seen | named)

    def holds(seen: frozenset[str]) -> bool:
        units = frozenset(entry for entry in seen if entry.startswith(_UNIT))
        return len(units) <= 1 and attempt.holds(seen - units)

    return Attempt(read, holds, attempt.mark, thousands=attempt.thousands, unit=side)


def _refuse_unread(
    parts: Iterable[pa.ChunkedArray], how: FieldReading, name: str, number_of: Callable[[int], int]
) -> None:
    """Raise if the options given for a single column do not match all of its values; `number_of` numbers records."""
    n_odd = n_before = first = 0
    for values in parts:
        if not pa.types.is_string(values.type):
            return
        odd = np.asarray(pc.and_not(pc.is_valid(values), pc.fill_null(_fits(values, how), False)))
        if not n_odd and odd.any():
            first = n_before + int(odd.argmax())
        n_odd, n_before = n_odd + int(odd.sum()), n_before + len(odd)
    if not n_odd and how.unit is not None:
        raise FileError(
            f"Column {name!r} is specified to hold numbers with a unit {how.unit} them, but it holds several units. "
            "Convert its numbers to one unit first, or leave the setting out."
        )
    if n_odd:
        what = "dates of this format" if how.date_format else "numbers with these marks"
        what = what if how.unit is None else f"numbers with a unit {how.unit} them"
        raise FileError(
            f"Column {name!r} is specified to hold {what}, but {n_odd:,} of its values do not match, the first in "
            f"record {number_of(first)}. Give the right format or marks, or, if these values stand for missing ones, "
            f"{setting('null_values', [...], column=name)}."
        )


def _fits(text: pa.ChunkedArray, how: FieldReading) -> pa.ChunkedArray:
    """Return which values match the options of the column."""
    if how.date_format:
        return pc.is_valid(as_dates(text, how.date_format))
    trimmed = pc.utf8_trim_whitespace(text) if how.unit is None else split_unit(text, how.unit)[0]
    return pc.match_substring_regex(trimmed, grouped_pattern(how.thousands or " ", how.decimal_mark or "."))


def _formatted_dates(date_format: str, text: pa.ChunkedArray) -> Values | None:
    found = as_dates(text, date_format)
    return Values(found) if found.null_count == text.null_count else None


def _grouped(thousands: str, decimal: str) -> Attempt:
    """Return an attempt to parse numbers with a thousands separator."""

    def read(text: pa.ChunkedArray) -> Values | None:
        text = pc.utf8_trim_whitespace(text)
        if not _all(pc.match_substring_regex(text, grouped_pattern(thousands, decimal))):
            return None
        plain = ungrouped(text, thousands, decimal)
        if _has_codes(plain):
            return None
        marked = _some(pc.match_substring(plain, "."))
        found = None if marked else _cast(plain, pa.int64())
        if found is not None:
            return Values(found)
        found = _cast(plain, pa.float64())
        return None if found is None else Values(found, frozenset({MARK if marked else BEYOND}))

    return Attempt(read, lambda seen: MARK in seen or BEYOND not in seen, decimal, thousands=thousands)


def _wholes(text: pa.ChunkedArray) -> Values | None:
    found = _cast(text, pa.int64())
    if found is None:
        text = pc.ascii_trim_whitespace(text)
        found = _cast(text, pa.int64())
    return None if found is None or _has_codes(text) else Values(found, _of_short(found))


def _of_short(numbers: pa.ChunkedArray) -> frozenset[str]:
    """Return what is seen of numbers without a mark: whether all of them have at most three digits."""
    ends = pc.min_max(numbers).as_py()
    is_short = ends["min"] is None or -_SHORT < ends["min"] <= ends["max"] < _SHORT
    return frozenset() if is_short else frozenset({NOT_THREE})


def _reals(mark: str) -> Attempt:
    """Return an attempt to parse numbers with this decimal mark."""

    def read(text: pa.ChunkedArray) -> Values | None:
        given = text = pc.ascii_trim_whitespace(text)
        marked = _some(pc.match_substring(text, mark))
        if mark == ",":
            if _some(pc.match_substring(text, ".")):
                return None
            text = pc.replace_substring(text, ",", ".")
        found = _cast(text, pa.float64())
        if found is None or _has_codes(text):
            return None
        seen = {FINITE} if _some(pc.is_finite(found)) else set()
        seen |= _of_short(found) if not marked else set() if _are_thousandths(given) else {NOT_THREE}
        if marked:
            seen.add(MARK)
        elif not _all(pc.match_substring_regex(text, _WHOLE)):
            seen.add(NOT_WHOLE)
        elif _cast(text, pa.int64()) is None:
            seen.add(BEYOND)
        return Values(found, frozenset(seen))

    def holds(seen: frozenset[str]) -> bool:
        # Integers that do not fit into 64 bits, which a float would round, stay text.
        return FINITE in seen and (BEYOND not in seen or bool({MARK, NOT_WHOLE} & seen))

    return Attempt(read, holds, mark, reads_wholes=True)


def _are_thousandths(text: pa.ChunkedArray) -> bool:
    """Return whether all are written like 7.920; the first ones rule out most columns."""
    return all(_all(pc.match_substring_regex(part, _THREE)) for part in (text.slice(0, _N_EARLY), text))


def _has_codes(text: pa.ChunkedArray) -> bool:
    """Return whether any value has a leading plus, or a zero before another digit (or an x)."""
    return any(_has_code(chunk) for chunk in text.chunks)


def _has_code(text: pa.StringArray) -> bool:
    _, offsets, data = text.buffers()
    if data is None:
        return False
    letters = np.frombuffer(data, dtype=np.uint8)
    at = np.frombuffer(offsets, dtype=np.int32)[text.offset : text.offset + len(text) + 1]
    if at[0] == at[-1]:
        return False
    first = letters.take(at[:-1], mode="clip")  # an empty text at the end has no letter
    odd = np.flatnonzero((first == ord("+")) | (first == ord("-")) | (first == ord("0")))
    start, end = at[odd], at[odd + 1]
    start, end = start[end - start > 1], end[end - start > 1]
    if (letters[start] == ord("+")).any():
        return True
    start = start + (letters[start] == ord("-"))
    start = start[(end - start > 1) & (letters[start] == ord("0"))]
    return bool(np.isin(letters[start + 1], _AFTER_ZERO).any())


def _booleans(text: pa.ChunkedArray) -> Values | None:
    return Values(pc.cast(text, pa.bool_())) if _all(pc.match_substring_regex(text, _BOOLEAN)) else None


def _cast_to(kind: pa.DataType) -> Attempt:
    """Return an attempt to parse ISO 8601 dates, or timestamps without a zone."""

    def read(text: pa.ChunkedArray) -> Values | None:
        found = _cast(text, kind)
        return None if found is None else Values(found)

    return Attempt(read)


def _zoned(unit: str) -> Attempt:
    """Return an attempt to parse ISO 8601 timestamps at this unit, in the one zone that all of them have."""

    def read(text: pa.ChunkedArray) -> Values | None:
        found = _cast(text, pa.timestamp(unit, "UTC"))
        if found is None or len(zones := offsets(text)) != 1:
            return None
        # The day and the month of a time are those of its own zone, which a column has only one of.
        return Values(found.cast(pa.timestamp(unit, *zones)), frozenset(zones))

    return Attempt(read, lambda seen: len(seen) == 1)


def offsets(text: pa.ChunkedArray) -> set[str]:
    """Return the different offsets from UTC at the end of texts, such as ``+13:00``; one of zero is ``UTC``."""
    found = pc.struct_field(pc.extract_regex(text, r"(?P<zone>Z|[-+][0-9]{2}(?::?[0-9]{2})?)\s*$"), "zone")
    plain = {zone.replace(":", "").ljust(5, "0") for zone in pc.unique(found).drop_null().to_pylist()}
    return {"UTC" if zone[1:] == "0000" else f"{zone[:3]}:{zone[3:]}" for zone in plain}


_UNITS = ("s", "ms", "us", "ns")
_DATES = _cast_to(pa.date32())
# The coarsest lossless unit is used.
_TIMESTAMPS = [*(_cast_to(pa.timestamp(unit)) for unit in _UNITS), *map(_zoned, _UNITS)]


def _cast(text: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    try:
        return pc.cast(text, kind)
    except pa.ArrowInvalid:
        return None


def _some(mask: pa.ChunkedArray) -> bool:
    return bool(pc.any(mask).as_py())


def _all(mask: pa.ChunkedArray) -> bool:
    return bool(pc.all(mask).as_py())
