"""Rows: records that are unlike the others as records: totals among the data, headings, notes below them, doubles.

A record is suspected by what it says (a word for a total, the names of the columns), by what it lacks (most of what the
others have) and by what it adds up (the records above it, or all others). Messages give numbers of records, never a
value.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.arrays import times_power_of_two
from shoal.columns.equivalence import class_ids
from shoal.columns.prepare import decoded, one_missing
from shoal.columns.schema import is_text, natural_kind, value_type
from shoal.findings.finding import HIDDEN, Finding, Remedy
from shoal.findings.forms import says_missing
from shoal.sources import Receipt, Table
from shoal.sources.left_out import all_skipped
from shoal.spelling import as_listed
from shoal.typing import Labels, Vector

TOTALS, ODD, HEADINGS, DOUBLES = "total-records", "odd-records", "heading-records", "double-records"
"""The names of the findings."""

OF_RECORDS = (TOTALS, ODD, HEADINGS, DOUBLES)

LABEL = r"(?i)^\W*({})\W*([0-9]{{1,4}}\W*)?$".format(
    "|".join(
        [
            *("totals?", "sub-?totals?", "grand total", "sum", "average", "mean"),
            *("summe", "zwischensumme", "gesamtsumme", "gesamt", "insgesamt", "durchschnitt", "mittelwert"),
            *("somme", "sous-total", "total général", "moyenne", "ensemble", "suma", "promedio", "soma", "média"),
            *("minimum", "maximum", "median", "médiane", "standard deviation", "std\\. ?dev", "écart[- ]type"),
            *("standardabweichung", "standardabw", "std\\.? ?abw", "stabw", "std ?dev", "stdev", "s\\.d\\."),
            *("avg", "ø", "übertrag", "anzahl", "effectif", "count"),
            *("totale", "somma", "totaal", "gemiddelde", "razem", "ogółem", "celkem", "összesen"),
        ]
    )
)
"""Texts that are a word for a total or a mean, perhaps with a number or a year after it."""

_SHORT = r"(?i)^\W*(min|max|mw|sd|std|mittel|moy|mean|avg)\W*$"
"""Texts that are such a word or a name: they count where a table ends, beside another or with the numbers to match."""

_HEAD, _TAIL = 2, 8  # records at the ends of a table
_LEAST_RECORDS = 8
_FULL = 0.9  # of the records: a column that nearly all fill
_FEW, _SHARE = 5, 0.01  # records that may be unlike the others
_VANISHING = 1e-7
_LEAST_SUMMED, _SURELY_SUMMED = 3, 6  # records of a sum, with other evidence and without
_MOST_SUMS = 1000
_LARGER = 1.5  # times what is usual
_SHOWN = 5
_MANY = 0.1  # of the records: headings may be repeated on each page
_NUMBERS = 0.9  # of the texts: a column of numbers
_RULE = r"^([-=_*~.#]{2,}|\x{2014}+|\x{2500}+)$"
_NEARLY_ALL = 0.9  # different values per record, where doubles are a surprise

_WHY_TOTALS = "A total is released like the record of a person, and enters the means of others"
_WHY_HEADINGS = "Headings among the records make columns of numbers text, and are released like the records of persons"
_WHY_ODD = "Notes and blank lines of a sheet are released like the records of persons"

Load = Callable[[str], pa.ChunkedArray]


class Suspect(NamedTuple):
    """Some records and what is suspicious about them: ``column`` and the end of a sentence."""

    places: Labels
    column: str
    what: str


def record_findings(table: Table, names: Sequence[str], show_values: bool = False) -> list[Finding]:
    """Return the findings about records of a table that are unlike the others, in some of its columns."""
    compared = [name for name in names if natural_kind(table.types.field(name).type) is not None]
    has_order = table.origin is None
    return row_findings(compared, table.column, table.n_records, table.receipt, show_values, has_order)


def row_findings(
    names: Sequence[str],
    load: Load,
    n_records: int,
    receipt: Receipt,
    show_values: bool = False,
    has_order: bool = True,
) -> list[Finding]:
    """Return the findings about single records: totals among the data, and records that lack most values.

    Parameters
    ----------
    names : sequence of str
        The columns to look at; those of numbers are added up.
    load : callable
        Returns one of them.
    n_records : int
    receipt : Receipt
        How the table was read; it knows the number of a record in its source.
    show_values : bool
        Whether remedies may name values of the table.
    has_order : bool
        Whether its records can be named by number.
    """
    if n_records < _LEAST_RECORDS:
        return []
    names = list(names)
    looks = _Looks.at(names, load, n_records)
    empty, headings = looks.mostly_empty(), looks.headings()
    hinted = np.unique(np.concatenate([np.empty(0, np.int64), empty, *looks.labelled.values()]))
    adding = {name: _sums(_plain(load(name)), hinted) for name in looks.numeric}
    sums = [Suspect(places, name, "the sum of others") for name, places in adding.items() if len(places)]
    said = [
        Suspect(places, name, "a word for a total")
        for name, places in looks.labelled.items()
        if len(places) <= _few(n_records) or _are_larger(places, map(load, looks.numeric))
    ]
    sums += _means(looks.numeric, load, n_records)
    said += _short_words(looks, said, load, n_records)
    found: list[Finding] = []
    if len(headings):
        found.append(
            Finding(
                HEADINGS,
                names[0],
                f"{_numbers(headings, receipt)} {'holds' if len(headings) == 1 else 'hold'} names of columns, lines or "
                "words where the others hold something else",
                _WHY_HEADINGS,
                _leaving_out(HEADINGS, names[0], headings, receipt),
                question=True,
            )
        )
    if sums or said:
        found.append(_totals(said, sums, empty, looks.first_text, n_records, receipt, show_values, load))
    known = [headings, *(each.places for each in (*sums, *said))]
    odd = np.setdiff1d(empty, np.concatenate(known))
    if len(odd):
        found.append(
            Finding(
                ODD,
                names[0],
                f"{_numbers(odd, receipt)} {'lacks' if len(odd) == 1 else 'lack'} at least half of the values that "
                f"nearly all others have, in {looks.n_full} columns",
                _WHY_ODD,
                _leaving_out(ODD, names[0], odd, receipt),
                question=True,
            )
        )
    return found if has_order else [_without_numbers(finding) for finding in found]


@dataclass
class _Looks:
    """What one look at each column says of the records."""

    n_records: int
    n_full: int = 0
    first_text: str | None = None
    labelled: dict[str, Labels] = field(default_factory=dict)
    short: dict[str, Labels] = field(default_factory=dict)
    numeric: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lacking = np.zeros(self.n_records, dtype=np.int32)
        self.heads = np.zeros(self.n_records, dtype=np.int32)
        """The number of columns in which a record lacks a value that nearly all have, or has that of a heading."""
        self.n_heads = 0
        self.has_first_text = np.zeros(self.n_records, dtype=bool)

    @staticmethod
    def at(names: Iterable[str], load: Load, n_records: int) -> "_Looks":
        """Look at each column once."""
        looks = _Looks(n_records)
        for name in names:
            looks.add(name, load(name))
        return looks

    def add(self, name: str, values: pa.ChunkedArray) -> None:
        """Look at a column."""
        if _is_number(values.type):
            self.numeric.append(name)
        if is_text(value_type(values.type)):
            if self.first_text is None and not self.n_full and not self.numeric:
                self.has_first_text = np.asarray(one_missing(decoded(values)).is_valid())
            self.first_text = self.first_text or name
            texts, codes = _listed(values)
            for found, pattern in ((self.labelled, LABEL), (self.short, _SHORT)):
                is_label = np.asarray(pc.match_substring_regex(texts, pattern), dtype=bool)
                if is_label.any():
                    found[name] = np.flatnonzero(np.append(is_label, False)[codes])
            self._add_heads(name, texts, codes)
        values = one_missing(decoded(values))
        if values.null_count <= (1 - _FULL) * self.n_records:
            self.n_full += 1
            self.lacking += np.asarray(values.is_null()) if values.null_count else 0

    def _add_heads(self, name: str, texts: pa.Array, codes: Labels) -> None:
        """Count the records with the name of the column, a line, or a word where all others have numbers."""
        heads = pa.array([name.strip().lower()])
        trimmed = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
        is_head = pc.or_(pc.is_in(trimmed, value_set=heads), pc.match_substring_regex(trimmed, _RULE))
        counts = np.bincount(codes, minlength=len(texts) + 1)[: len(texts)]
        is_number = np.asarray(pc.match_substring_regex(trimmed, r"^[^\pL]*[0-9][^\pL]*$"), dtype=bool)
        found = np.asarray(is_head, dtype=bool)
        if counts[is_number].sum() >= _NUMBERS * counts.sum():
            is_word = pc.match_substring_regex(trimmed, r"^[^0-9]*\pL{2}[^0-9]*$")
            found |= np.asarray(is_word, dtype=bool) & ~says_missing(trimmed)
        if 0 < counts[found].sum() <= max(_FEW, _MANY * self.n_records):
            self.n_heads += 1
            self.heads += np.append(found, False)[codes]

    def mostly_empty(self) -> Labels:
        """Return the few records that lack half of what nearly all others have, or more with a first text alone."""
        found = np.flatnonzero(self.lacking >= max(2, self.n_full / 2))
        if len(found) <= _few(self.n_records):
            return found
        # The heading of a group has a text in the first column, and nothing else.
        alone = np.flatnonzero((self.lacking >= max(2, self.n_full - 1)) & self.has_first_text)
        return alone if len(alone) <= _MANY * self.n_records else found[:0]

    def headings(self) -> Labels:
        """Return the records that have what a heading has in half of the columns where any record has it."""
        found = np.flatnonzero(self.heads >= max(2, self.n_heads / 2))
        return found if len(found) <= max(_FEW, _MANY * self.n_records) else found[:0]


def _short_words(looks: _Looks, said: Sequence[Suspect], load: Load, n_records: int) -> list[Suspect]:
    """Return the records at the ends of a table that a short word calls a total, if others or its numbers agree."""
    found = []
    for name, places in looks.short.items():
        at_end = places[(places < _HEAD) | (places >= n_records - _TAIL)]
        beside = [each.places for each in said if each.column == name]
        places = np.setdiff1d(at_end, np.concatenate([np.empty(0, np.int64), *beside]))
        words = pc.utf8_lower(load(name).take(pa.array(places)).cast(pa.string()))
        if len(pc.unique(words)) + len(beside) < 2:
            places = np.array([place for place in places if _is_extreme(place, map(load, looks.numeric))], np.int64)
        if len(places):
            found.append(Suspect(places, name, "a word for a total"))
    return found


def _is_extreme(place: int, columns: Iterable[pa.ChunkedArray]) -> bool:
    """Return whether the numbers of a record are the smallest or the largest of all columns, or no record has them."""
    found = []
    for values in columns:
        numbers = _plain(values)
        rest = np.delete(numbers, place)
        found.append(numbers[place] <= rest.min() or numbers[place] >= rest.max())
    return bool(found) and all(found)


def _without_numbers(finding: Finding) -> Finding:
    return replace(finding, remedies=tuple(each for each in finding.remedies if "skip_rows" not in each.settings))


def total_findings(
    counted: Mapping[str, tuple[pa.Array, Labels]], n_records: int, summed: Iterable[str] = ()
) -> list[Finding]:
    """Return the findings about totals from what is known of columns alone.

    `counted` are the values of columns and how often each occurs, and `summed` the columns with a grand total.
    """
    found = []
    for name, (values, counts) in counted.items():
        n_labelled = int(counts[_are_labels(values)].sum()) if is_text(value_type(values.type)) else 0
        if 0 < n_labelled <= _few(n_records):
            looks = "1 record looks like a total" if n_labelled == 1 else f"{n_labelled:,} records look like totals"
            found.append(_unnumbered(name, f"{looks}, with a word for a total"))
    return [*found, *(_unnumbered(name, "1 record looks like a total, with the sum of all others") for name in summed)]


def heading_findings(counted: Mapping[str, tuple[pa.Array, Labels]], n_records: int) -> list[Finding]:
    """Return the finding about headings from what is known of columns alone: texts that are the name of a column."""
    named: dict[str, str] = {}
    for name, (values, counts) in counted.items():
        if is_text(value_type(values.type)):
            is_name = pc.equal(pc.utf8_lower(pc.utf8_trim_whitespace(values.cast(pa.string()))), name.strip().lower())
            is_name = np.asarray(is_name.fill_null(False), dtype=bool)
            if 0 < counts[is_name].sum() <= max(_FEW, _MANY * n_records):
                named[name] = str(values.filter(pa.array(is_name))[0].as_py())
    if len(named) < 2:
        return []
    first = next(iter(named))
    remedies = (
        Remedy("rows", first, {"skip_where": [f"{as_listed(first)}={as_listed(named[first])}"]}),
        Remedy("accept", first, {"accept": [f"{first}={HEADINGS}"]}),
    )
    what = f"records hold the names of columns, in {' and '.join(map(repr, named))}"
    return [Finding(HEADINGS, first, what, _WHY_HEADINGS, remedies, question=True)]


def empty_findings(names: Sequence[str], load: Load, n_records: int) -> list[Finding]:
    """Return the finding about records that lack most values, where records have no number."""
    if n_records < _LEAST_RECORDS:
        return []
    looks = _Looks.at(names, load, n_records)
    empty = looks.mostly_empty()
    if not len(empty):
        return []
    name = next(name for name in names if load(name).is_null().take(pa.array(empty[:1]))[0].as_py())
    remedies = (
        Remedy("rows", name, {"skip_where": [f"{as_listed(name)}="]}),
        Remedy("accept", name, {"accept": [f"{name}={ODD}"]}),
    )
    what = (
        f"{len(empty):,} of {n_records:,} records {'lacks' if len(empty) == 1 else 'lack'} at least half of the values "
        f"that nearly all others have, in {looks.n_full} columns"
    )
    return [Finding(ODD, name, what, _WHY_ODD, remedies, question=True)]


def _unnumbered(name: str, what: str) -> Finding:
    remedies = (
        Remedy("rows", name, {"skip_where": [f"{as_listed(name)}={HIDDEN}"]}),
        Remedy("accept", name, {"accept": [f"{name}={TOTALS}"]}),
    )
    return Finding(TOTALS, name, what, _WHY_TOTALS, remedies, question=True)


def table_doubles(table: Table) -> list[Finding]:
    """Return the finding about records that are in a table twice, after a look at how many values each column has."""
    most, told_apart = 0.0, None
    for name in table.names:
        if natural_kind(table.types.field(name).type) is None:
            continue
        values = one_missing(decoded(table.column(name)))
        if pa.types.is_null(values.type):
            continue
        n_present = len(values) - values.null_count
        n_different = pc.count_distinct(values, mode="only_valid").as_py()
        if n_different == len(values):
            return []
        if n_present and n_different / n_present > most:
            most, told_apart = n_different / n_present, name
    if told_apart is None or most < _NEARLY_ALL:
        return []
    codes = class_ids(table.load([told_apart]))
    return double_findings(table.names, table.column, codes, most, table.receipt, table.origin is None)


def double_findings(
    names: Sequence[str], load: Load, codes: Labels, variety: float, receipt: Receipt, has_order: bool = True
) -> list[Finding]:
    """Return the finding about records that are in a table twice, though a column tells nearly all of them apart.

    `codes` are those of the column with most different values, and `variety` their number per record.
    """
    if not _NEARLY_ALL <= variety < 1:
        return []
    repeated = np.flatnonzero(np.bincount(codes)[codes] > 1)
    rows = pa.table({name: load(name).take(pa.array(repeated)) for name in names})
    classes = class_ids(rows)
    first = np.unique(classes, return_index=True)[1]
    later = np.sort(np.delete(repeated, first))
    if not len(later):
        return []
    found = Finding(
        DOUBLES,
        names[0],
        f"{_numbers(later, receipt)} {'repeats' if len(later) == 1 else 'repeat'} a record above in every column",
        "A person who is in the table twice counts as two, and hides among fewer persons than k",
        _leaving_out(DOUBLES, names[0], later, receipt),
    )
    return [found if has_order else _without_numbers(found)]


def _totals(
    said: Sequence[Suspect],
    sums: Sequence[Suspect],
    empty: Labels,
    first_text: str | None,
    n_records: int,
    receipt: Receipt,
    show_values: bool,
    load: Load,
) -> Finding:
    """Return the finding about records that are totals."""
    suspects = [*said, *sums]
    places = np.unique(np.concatenate([each.places for each in suspects]))
    told = [f"{_numbers(each.places, receipt)} with {each.what} in {each.column!r}" for each in suspects]
    lacking = np.intersect1d(places, empty)
    if len(lacking):
        told.append(f"{_numbers(lacking, receipt)} without most values")
    ends = np.intersect1d(places, [0, n_records - 1])
    column = suspects[0].column
    remedies = _leaving_out(TOTALS, column, places, receipt)
    if len(places) > _FEW and said:
        values = load(said[0].column).take(pa.array(said[0].places)).unique().to_pylist() if show_values else [HIDDEN]
        conditions = [f"{as_listed(said[0].column)}={value}" for value in values]
        remedies = (Remedy("rows", column, {"skip_where": conditions}), *remedies)
    return Finding(
        TOTALS,
        column,
        f"{len(places):,} {'record looks' if len(places) == 1 else 'records look'} like totals: {'; '.join(told)}",
        _WHY_TOTALS,
        remedies,
        question=bool(sums or len(lacking) or len(ends)) or any(each.column == first_text for each in said),
    )


def _leaving_out(name: str, column: str, places: Labels, receipt: Receipt) -> tuple[Remedy, ...]:
    """Return the remedies: to leave these records out, beside those that are left out already, or to accept them."""
    numbers = [receipt.number_of(place) for place in places.tolist()]
    return (
        Remedy("rows", column, {"skip_rows": all_skipped(receipt.given.skip_rows, numbers)}),
        Remedy("accept", column, {"accept": [f"{column}={name}"]}),
    )


def _numbers(places: Labels, receipt: Receipt) -> str:
    """Return the numbers of some records in words."""
    shown = ", ".join(str(receipt.number_of(place)) for place in places[:_SHOWN].tolist())
    more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
    return f"record{'' if len(places) == 1 else 's'} {shown}{more}"


def _few(n_records: int) -> float:
    return max(_FEW, _SHARE * n_records)


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_))


def _plain(values: pa.ChunkedArray) -> Vector:
    """Return numbers as floats, 0 where there is none."""
    found = np.asarray(values.cast(pa.float64(), safe=False).fill_null(0))
    return np.where(np.isfinite(found), found, 0.0)


def _listed(values: pa.ChunkedArray) -> tuple[pa.Array, Labels]:
    """Return the different texts of a column, and the place of each value among them; after all others if missing."""
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    values = values.unify_dictionaries()
    listed = values.chunk(0).dictionary if values.num_chunks else pa.array([], pa.string())
    codes = [np.asarray(chunk.indices.fill_null(len(listed)), dtype=np.int64) for chunk in values.chunks]
    return listed, np.concatenate([np.empty(0, np.int64), *codes])


def _are_labels(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts are a word for a total."""
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, LABEL), False), dtype=bool)


def _sums(numbers: Vector, hinted: Labels) -> Labels:
    """Return the records whose number is the sum of all others, or of those above it back to the last such record."""
    if (numbers < 0).any():
        return np.empty(0, dtype=np.int64)
    # Below 1, so that no sum overflows. What vanishes beside the largest would make it the sum of nothing.
    numbers = times_power_of_two(numbers, -np.frexp(numbers.max())[1])
    numbers = np.where(numbers > _VANISHING, numbers, 0.0)
    if np.count_nonzero(numbers) <= _SURELY_SUMMED:
        return np.empty(0, dtype=np.int64)
    is_hinted = np.zeros(len(numbers), dtype=bool)
    is_hinted[hinted] = True
    above = np.concatenate([[0.0], np.cumsum(numbers)])
    n_above = np.concatenate([[0], np.cumsum(numbers > 0)])
    found: list[int] = []
    start = 0
    while len(found) < _MOST_SUMS:
        n_summed = n_above[start:-1] - n_above[start]
        enough = n_summed >= np.where(is_hinted[start:], _LEAST_SUMMED, _SURELY_SUMMED)
        is_sum = enough & _are_equal(numbers[start:], above[start:-1] - above[start])
        if not is_sum.any():
            break
        found.append(start + int(is_sum.argmax()))
        start = found[-1] + 1
    rest = numbers.copy()
    rest[found] = 0.0
    # What adds up all that is no sum itself, wherever it stands: the grand total.
    whole = np.flatnonzero(_are_equal(2 * rest, np.full(len(rest), rest.sum())) & (rest > 0))
    if found:
        plain = np.concatenate([[0.0], np.cumsum(rest)])
        below = np.flatnonzero(_are_equal(numbers, plain[:-1]) & (numbers > 0) & (np.arange(len(rest)) >= found[0]))
        found += below.tolist()
    return np.unique(np.array([*found, *whole.tolist()], dtype=np.int64))


def _means(names: Sequence[str], load: Load, n_records: int) -> list[Suspect]:
    """Return the first or last record if its numbers are the means of all others, in two columns or with a fraction."""
    found = []
    for place in (0, n_records - 1):
        agreeing, fractions = [], []
        for name in names:
            values = load(name)
            numbers = _plain(values)
            rest = np.delete(numbers, place)
            if not values[place].is_valid or rest.max() / 2 - rest.min() / 2 <= _ROUNDED / 2:  # no range overflows
                continue
            if abs(numbers[place] / 2 - (rest / len(rest)).sum() / 2) > _ROUNDED / 2:
                break
            agreeing.append(name)
            if numbers[place] % 1 and not (rest % 1).any():
                fractions.append(name)
        else:
            if len(agreeing) > 1 or fractions:
                found.append(Suspect(np.array([place]), agreeing[0], "the mean of all others"))
    return found


_ROUNDED = 0.0051  # as far as two decimals may be from a mean


def _are_equal(numbers: Vector, others: Vector) -> NDArray[np.bool_]:
    """Return which numbers are equal but for the rounding of a sum."""
    close: NDArray[np.bool_] = np.abs(numbers - others) <= 1e-9 * np.abs(others)
    return close & (numbers > 0)


def _are_larger(places: Labels, columns: Iterable[pa.ChunkedArray]) -> bool:
    """Return whether the numbers of these records are usually larger than those of the others, in some column."""
    for values in columns:
        numbers = _plain(values)
        usual = float(np.median(np.delete(numbers, places)))
        if float(np.median(numbers[places])) > _LARGER * usual > 0:
            return True
    return False
