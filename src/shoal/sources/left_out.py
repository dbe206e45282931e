"""Left out: records that are not read on request, by their numbers or by the value of a column.

Record 1 is the first below the header, or the first row of a frame, before anything is left out. Of files of texts and
cells, records are left out before the types of columns are decided: a total does not make a column of numbers text.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.errors import ParameterError
from shoal.sources.clean import check_wanted
from shoal.sources.reading import Reading, Receipt, number_after
from shoal.sources.text_values import is_among
from shoal.spelling import name_and_value, named, number, setting


class Skipping:
    """The records that are left out in one pass over a source; `check` says at its end whether all of this had effect.

    Parameters
    ----------
    reading : Reading
        With `skip_rows` or `skip_where`, or neither.
    names : sequence of str
        The columns of the source.
    """

    def __init__(self, reading: Reading, names: Sequence[str]) -> None:
        self._rows = _ends(reading.skip_rows)
        self._where = [pair for text in reading.skip_where or () if (pair := name_and_value(text)) is not None]
        self._left: list[NDArray[np.int64]] = []
        self.counts = [0, 0] + [0] * len(self._where)
        """Records that were seen, those of them that were left out, and those that each condition leaves out."""
        self.columns = check_wanted(list(dict.fromkeys(column for column, _ in self._where)), names)
        """The columns that decide."""

    @property
    def is_asked(self) -> bool:
        """Whether anything is to be left out."""
        return bool(len(self._rows) or self._where)

    @property
    def n_left_out(self) -> int:
        """Number of records that were left out."""
        return self.counts[1]

    def add(self, counts: Sequence[int]) -> None:
        """Count the records of another part, which were seen elsewhere."""
        self.counts = [mine + more for mine, more in zip(self.counts, counts, strict=True)]

    def kept(self, part: pa.Table) -> pa.Table:
        """Return the next records without those that are left out."""
        keep = self.keep(part.num_rows, lambda name: part[name])
        return part if keep.all() else part.filter(pa.array(keep))

    def of_tables(self, read: Callable[[list[str]], Iterable[pa.Table]], wanted: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the wanted columns of parts of a source without these records; `read` also reads those that decide."""
        if not self.is_asked:
            yield from read(list(wanted))
            return
        for part in read(list(dict.fromkeys([*wanted, *self.columns]))):
            yield self.kept(part).select(list(wanted))

    def keep(self, n_records: int, values: Callable[[str], pa.ChunkedArray]) -> NDArray[np.bool_]:
        """Return which of the next records stay; `values` returns a column of them."""
        out = np.zeros(n_records, dtype=bool)
        for first, last in self._rows - self.counts[0]:
            out[max(first - 1, 0) : max(last, 0)] = True
        found = [_has(values(column), value) for column, value in self._where]
        for has_value in found:
            out |= has_value
        self._left.append(np.flatnonzero(out) + self.counts[0])
        self.add([n_records, len(self._left[-1]), *(int(np.count_nonzero(has_value)) for has_value in found)])
        return ~out

    def check(self) -> None:
        """Raise if there is no such record, or no other."""
        n_seen, n_left_out, *hits = self.counts
        if len(self._rows) and self._rows.max() > n_seen:
            raise ParameterError(
                f"{named('skip_rows')} names record {self._rows.max()}, but the table has {n_seen:,} records. "
                "Records are counted from 1, the first below the header. Correct it."
            )
        for (column, _), n_hits in zip(self._where, hits, strict=True):
            if not n_hits:
                raise ParameterError(
                    f"{named('skip_where')} leaves out no record: column {column!r} has nowhere the value that it "
                    "names. Values are compared as they are written, with capitals. Correct it, or leave it out."
                )
        if n_left_out and n_left_out == n_seen:
            raise ParameterError(f"{named('skip_rows', 'skip_where')} leave out all {n_seen:,} records. Correct them.")

    @property
    def left_out(self) -> NDArray[np.int64]:
        """The places of the records that were left out."""
        return np.concatenate([np.empty(0, np.int64), *self._left])

    def number_of(self, place: int) -> int:
        """Return the number in the source of a record that stays, by its place among these."""
        return number_after(place, self.left_out)

    def noted(self, receipt: Receipt) -> Receipt:
        """Return the receipt with what was left out."""
        return replace(receipt, left_out=self.left_out)


def all_skipped(rows: str | None, more: Sequence[int | str]) -> str:
    """Return numbers of records together with more of them.

    Examples
    --------
    >>> all_skipped("1-3", [4, 9])
    '1-4,9'
    """
    return Reading(skip_rows=[*([rows] if rows else []), *more]).skip_rows or ""


def are_skipped(rows: str | None, numbers: Sequence[int]) -> list[bool]:
    """Return which numbers of records are to be left out.

    Examples
    --------
    >>> are_skipped("1-3,9", [2, 4, 9])
    [True, False, True]
    """
    ends = _ends(rows)
    return [bool(((ends[:, 0] <= number) & (number <= ends[:, 1])).any()) for number in numbers]


def without_positions(what: str) -> ParameterError:
    """Return the refusal of numbers of records for a source whose records have no order."""
    return ParameterError(
        f"{named('skip_rows')} cannot be given for {what}, whose records have no order. Leave records out by the value "
        f"of a column, {setting('skip_where')}."
    )


def _ends(rows: str | None) -> NDArray[np.int64]:
    """Return the first and the last number of each range, shape (n_ranges, 2)."""
    parts = [part.split("-") for part in rows.split(",")] if rows else []
    return np.array([(int(part[0]), int(part[-1])) for part in parts], dtype=np.int64).reshape(-1, 2)


def _has(values: pa.ChunkedArray, value: str) -> NDArray[np.bool_]:
    """Return which values are this one: the same text or number; an empty one is missing."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    if not value.strip():
        missing = pc.is_null(values, nan_is_null=True)
        blank = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(values), ""), False) if is_text else missing
        return np.asarray(pc.or_(missing, blank))
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        wanted = number(value.strip())
        if isinstance(wanted, str):
            return np.zeros(len(values), dtype=bool)
        exact = pa.types.is_integer(values.type) and isinstance(wanted, int) and abs(wanted) < 2**63
        kind = values.type if exact and pa.types.is_uint64(values.type) else pa.int64() if exact else pa.float64()
        found = pc.equal(values.cast(kind, safe=False), pa.scalar(wanted, kind))
        return np.asarray(pc.fill_null(found, False))
    texts = values if is_text else _texts(values)
    return np.asarray(pc.fill_null(is_among(texts, [value.strip()]), False))


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # lists and structs
        return pa.chunked_array([pa.nulls(len(values), pa.string())])
