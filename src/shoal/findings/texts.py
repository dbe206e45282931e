"""Texts that are something else: numbers, dates, values of single persons, or the same word spelled twice."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.name_topics import is_code
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy
from shoal.sources.csv_types import offsets
from shoal.sources.text_values import as_dates, grouped_pattern, pattern_of

_SAMPLE = 500  # different texts that decide whether all are examined
_MOST = 0.5
_FEW = 5  # different texts that may be neither numbers nor dates
_LEAST_ALONE = 10  # records: smaller tables are not checked

_MARKS = [("\x00", "."), ("\x00", ","), (",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("\u2019", ".")]
_DATES = [
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%d%b%Y", "%d-%b-%y"),
    *("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S"),
]
_ZONED = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(Z|[-+][0-9]{2}(:?[0-9]{2})?)$"
_CODE = r"^[-+]?0[0-9]|^\+[0-9]|^[-+]?[0-9]{17}"
_ERROR = r"^#[A-Z]+/0!$"  # the one error of Excel that has a digit
_OPEN = r"^[<>]=? ?[0-9.,]+$|^[0-9.,]+ ?\+$"
_MANY = 20  # different numbers
_WHY = (
    "Read as text, it is a category: similar values are not grouped, and a cell publishes one person's exact text "
    "instead of a mean"
)


class _Covered(NamedTuple):
    """Number of records that a format covers, and the texts that it does not."""

    n_records: int
    odd: NDArray[np.int64]  # indices of the texts that it does not cover, the most frequent first


def numbers_as_text(view: ColumnView) -> Finding | None:
    """Find a column of texts that are numbers, except for a few."""
    texts = pc.utf8_trim_whitespace(view.texts)
    if is_code(view.name) or not _may_be(texts, r"^[-+]?[0-9]") or _some(texts, _CODE):
        return None  # a postcode is text for good reason
    found = [(marks, _covered(view, pc.match_substring_regex(texts, grouped_pattern(*marks)))) for marks in _MARKS]
    (thousands, decimal), covered = max(found, key=lambda one: one[1].n_records)
    if not _mostly(view, covered) or _are_codes(texts, covered.odd):
        return None
    settings: dict[str, str] = {}
    if thousands != "\x00":
        settings["thousands"] = thousands
    if decimal != "." and _some(texts, r",[0-9]"):
        settings["decimal"] = decimal
    marks = {"thousands": "thousands separators", "decimal": "a decimal comma"}
    told = " with " + " and ".join(marks[name] for name in settings) if settings else ""
    what = f"{view.share(covered.n_records)} of the records hold a number{told}{_in_the_way(view, covered)}"
    return Finding("numbers-as-text", view.name, what, _WHY, _remedies(view, covered, settings), question=True)


def dates_as_text(view: ColumnView) -> Finding | None:
    """Find a column of texts that are dates, except for a few."""
    texts = pc.utf8_trim_whitespace(view.texts)
    if _may_be(texts, _ZONED):
        return _times_of_several_zones(view, texts)
    if not _may_be(texts, r"^[0-9]{1,4}[-./ ]?[0-9A-Za-z]{1,9}[-./ ]|^[A-Z][a-z]{2,8} [0-9]{1,2},"):
        return None
    likely = [form for form in _DATES if _may_be(texts, pattern_of(form))]
    found = [(form, _covered(view, pc.is_valid(as_dates(texts, form)))) for form in likely]
    if not found:
        return None
    form, covered = max(found, key=lambda one: one[1].n_records)
    if not _mostly(view, covered):
        return None
    alike = [other for other, also in found if also.n_records == covered.n_records and other != form]
    order = "a date whose day or month may come first" if alike else f"a date ({_spelled(form)})"
    what = f"{view.share(covered.n_records)} of the records hold {order}{_in_the_way(view, covered)}"
    remedies = _remedies(view, covered, *({"date_format": each} for each in (form, *alike)))
    return Finding("dates-as-text", view.name, what, _WHY, remedies, question=True)


def _times_of_several_zones(view: ColumnView, texts: pa.Array) -> Finding | None:
    covered = _covered(view, pc.match_substring_regex(texts, _ZONED))
    n_zones = len(offsets(texts))
    if n_zones < 2 or not _mostly(view, covered):
        return None
    what = f"{view.share(covered.n_records)} of the records hold a time, with {n_zones} different offsets from UTC"
    why = (
        "On which day or in which month it is depends on the offset, and a column has one. Write all times in one "
        "zone, or each as local time without an offset; read as text, they are categories"
    )
    remedy = Remedy("column", view.name, {"kind": "nominal"})
    return Finding("dates-as-text", view.name, what, why, (remedy,), question=True)


def near_unique_text(view: ColumnView) -> Finding | None:
    """Find a column of texts most of which occur in one record only."""
    alone = int(np.count_nonzero(view.text_counts == 1))
    if alone < _LEAST_ALONE or alone <= _MOST * view.n_present:
        return None
    return Finding(
        "near-unique-text",
        view.name,
        f"{view.share(alone)} of the records are the only ones with their text",
        "No two records of a cell agree in it, so each cell would publish one person's own text",
        (
            Remedy("role", view.name, {"identifiers": [view.name]}),
            Remedy("column", view.name, {"aggregate": "withhold"}),
        ),
        question=True,
    )


def spelling_variants(view: ColumnView) -> Finding | None:
    """Find texts that differ only in case or blanks."""
    if len(view.texts) < 2 or (view.text_counts == 1).mean() > _MOST:
        return None
    folded = pc.utf8_lower(pc.utf8_trim_whitespace(pc.replace_substring_regex(view.texts, r"\s+", " ")))
    n_different = len(pc.unique(folded))
    if n_different == len(folded):
        return None
    return Finding(
        "spelling-variants",
        view.name,
        f"of {len(folded):,} different texts {len(folded) - n_different:,} differ from another only in case or blanks",
        "They count as different values, so records that are alike are kept apart",
        (Remedy("column", view.name, {"fold": True}),),
    )


def _may_be(texts: pa.Array, pattern: str) -> bool:
    """Return whether about half of the first different texts match a pattern, so that all should be examined."""
    first = texts.slice(0, _SAMPLE)
    return len(first) > 0 and (pc.sum(pc.match_substring_regex(first, pattern)).as_py() or 0) >= 0.4 * len(first)


def _some(texts: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def _covered(view: ColumnView, fits: pa.Array) -> _Covered:
    mask = np.asarray(fits.fill_null(False), dtype=bool)
    odd = np.flatnonzero(~mask)
    return _Covered(int(view.text_counts[mask].sum()), odd[np.argsort(-view.text_counts[odd], kind="stable")])


def _mostly(view: ColumnView, covered: _Covered) -> bool:
    return covered.n_records >= _MOST * view.n_present and len(covered.odd) <= _FEW and len(view.texts) > 2


def _are_codes(texts: pa.Array, odd: NDArray[np.int64]) -> bool:
    """Return whether other texts have digits too, as codes such as 12A do, except for errors of Excel and open classes.

    An open class, such as <5, is a code among few numbers, and stands in the way of many.
    """
    if len(odd) == 0:
        return False
    others = texts.take(pa.array(odd))
    ignored = _ERROR if len(texts) - len(odd) < _MANY else f"{_ERROR}|{_OPEN}"
    return _some(others.filter(pc.invert(pc.match_substring_regex(others, ignored))), "[0-9]")


def _in_the_way(view: ColumnView, covered: _Covered) -> str:
    if not len(covered.odd):
        return ", all of those that have a text"
    others = "one other text" if len(covered.odd) == 1 else f"{len(covered.odd)} other texts"
    return f", and {view.share(int(view.text_counts[covered.odd].sum()))} hold {others}"


def _remedies(view: ColumnView, covered: _Covered, *readings: dict[str, str]) -> tuple[Remedy, ...]:
    """Return the remedies: to parse the column, if it comes from a text file, or to keep it as text."""
    as_it_is = Remedy("column", view.name, {"kind": "nominal"})
    if not view.has_fields:
        return (as_it_is,)
    odd = [str(text).strip() for text in view.texts.take(pa.array(covered.odd)).to_pylist()]
    shown = {"null_values": odd if view.show_values else [HIDDEN] * len(odd)} if odd else {}
    return (*(Remedy("field", view.name, {**settings, **shown}) for settings in readings), as_it_is)


def _spelled(date_format: str) -> str:
    """Return a format of dates in words."""
    words = {"%d": "day", "%m": "month", "%b": "month", "%B": "month", "%Y": "year", "%y": "year of two digits"}
    places = sorted((date_format.index(part), word) for part, word in words.items() if part in date_format)
    return ", ".join(word for _, word in places)
