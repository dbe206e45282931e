"""Texts that are something else: numbers, dates, values of single persons, or the same word spelled twice."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.name_topics import is_code
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import Finding, Remedy
from shoal.findings.forms import Covered, are_some, as_category, as_missing, in_the_way, may_be, says_missing
from shoal.sources.csv_types import offsets
from shoal.sources.text_values import as_dates, grouped_pattern, pattern_of, split_unit

_MOST = 0.5
_ALL = 0.9
_LEAST_ALONE = 10  # records: smaller tables are not checked

_MARKS = [("\x00", "."), ("\x00", ","), (",", "."), (".", ","), (" ", ","), (" ", "."), ("'", "."), ("\u2019", ".")]
_DATES = [
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%d%b%Y", "%d-%b-%y"),
    *("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M:%S", "%Y-%m-%d %H:%M:%S"),
]
_ZONED = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9:.]+(Z|[-+][0-9]{2}(:?[0-9]{2})?)$"
_NO_THOUSANDS = r"(^|[^0-9])[0-9]*\.[0-9]{1,2}($|[^0-9])|\.[0-9]{4}|^-?0\.|^-?[0-9]{4,}\."
_CODE = r"^[-+]?0[0-9]|^\+[0-9]|^[-+]?[0-9]{17}"
_DATE = r"^[0-9]{1,2}[-./][0-9]{1,2}[-./][0-9]{2,4}$"
_ERROR = r"^#[A-Z]+/0!$"  # the one error of Excel that has a digit
_OPEN = r"^[<>]=? ?[0-9.,]+$|^[0-9.,]+ ?\+$"
_MANY = 20  # different numbers
_RARE = 0.05  # share of the records whose texts do not make a column one of codes
_FEW_FORMS = 3
_NO_UNIT = r"^[-+<>=.,:/]*$|^(st|nd|rd|th|e|er|ème|ª|º)$"  # grades, open classes, ordinal numbers
_WHY = (
    "Read as text, it is a category: similar values are not grouped, and a cell publishes one person's exact text "
    "instead of a mean"
)


def numbers_as_text(view: ColumnView) -> Finding | None:
    """Find a column of texts that are numbers, except for a few."""
    texts = view.trimmed
    if is_code(view.name) or not may_be(texts, r"^[-+]?[0-9]") or _have_codes(texts):
        return None  # a postcode is text for good reason
    settings, covered = _as_numbers(view, texts)
    if not (covered.is_mostly(view) or _alternates(view, covered)) or _are_codes(view, covered):
        return None
    if set(texts.to_pylist() if len(texts) <= _MOST_UNITS else []) >= {"0", "1"} and _are_words(
        texts.take(covered.odd)
    ):
        return None  # answers, for which a word is another spelling
    readings = [settings]
    if not settings and decimal_of_file(view) == "," and are_some(texts, r"[0-9]\.[0-9]"):
        readings = [{"decimal": "."}]
        if not are_some(texts, _NO_THOUSANDS):
            readings.insert(0, {"thousands": ".", "decimal": ","})
    elif not settings and are_some(texts, r"^\+[0-9]"):
        readings = [{"decimal": "."}]  # a number with a plus is read where a column is said to hold numbers
    told = _marks_in_words(readings[0])
    what = f"{view.share(covered.n_records)} of the records hold a number{told}{in_the_way(view, covered)}"
    as_read = [remedy for each in readings for remedy in as_missing(view, covered, each)]
    remedies = [*as_read, as_category(view)]
    if covered.n_records < (1 - _RARE) * view.n_present and any("9" in form for form in covered.odd_forms(view)):
        remedies.reverse()
    return Finding("numbers-as-text", view.name, what, _WHY, tuple(remedies), question=True)


def _have_codes(texts: pa.Array) -> bool:
    """Return whether a text is a code or a telephone number: no stray date, nor a plus where others have a minus."""
    if are_some(texts, r"^[-\x{2212}][0-9]") or _are_amounts(texts):
        texts = pc.replace_substring_regex(texts, r"^\+", "")
    return are_some(pc.replace_substring_regex(texts, _DATE, ""), _CODE)


def _are_words(texts: pa.Array) -> bool:
    """Return whether all texts are words, none of which says that a value is missing."""
    is_word = pc.match_substring_regex(texts, r"^\pL+$")
    return bool(pc.all(is_word).as_py()) and not says_missing(texts).any()


def _are_amounts(texts: pa.Array) -> bool:
    """Return whether most numbers have a plus and few digits, the first of which differ, unlike those of telephones."""
    signed = texts.filter(pc.match_substring_regex(texts, r"^\+[0-9]{1,6}([.,][0-9]+)?$"))
    return len(signed) >= _MOST * len(texts) and len(pc.unique(pc.utf8_slice_codeunits(signed, 0, 2))) > 2


def _alternates(view: ColumnView, covered: Covered) -> bool:
    """Return whether most texts are numbers, and all others words or of very few forms, as (12) and 12- are."""
    if covered.n_records < _MOST * view.n_present or len(view.texts) - len(covered.odd) < _MANY:
        return False
    forms = covered.odd_forms(view)
    return len(forms) <= _FEW_FORMS or not any("9" in form for form in forms)


def numbers_with_unit(view: ColumnView) -> Finding | None:
    """Find a column of texts most of which are numbers with a unit, the same or several: 26 %, € 12, 12 kg."""
    texts = view.trimmed
    if is_code(view.name) or not may_be(texts, r"[0-9]") or _have_codes(texts):
        return None
    bare = pc.replace_substring_regex(texts, r"^[(\[](.*)[)\]]$", r"\1")
    covered, plain = _as_numbers(view, bare)[1], _as_numbers(view, texts)[1]
    if covered.is_mostly(view) and covered.n_records - plain.n_records > _MOST * view.n_present:
        what = f"{view.share(covered.n_records)} of the records hold a number in brackets"
        why = f"{_WHY}. A number in brackets may be negative or an estimate: write it as it is meant"
        return Finding("numbers-with-unit", view.name, what, why, (as_category(view),), question=True)
    for side in ("after", "before"):
        numbers, units = split_unit(texts, side)
        counts = {
            unit: int(view.text_counts[_mask(units, unit)].sum()) for unit in pc.unique(units).to_pylist() if unit
        }
        named = {unit: count for unit, count in counts.items() if _is_unit(unit, side)}
        if not named or len(pc.unique(numbers.drop_null())) < _LEAST_NUMBERS:
            continue
        finding = _with_unit(view, numbers, units, side, named)
        if finding is not None:
            return finding
    return None


_LEAST_NUMBERS = 4
_MOST_UNITS = 5


def _with_unit(
    view: ColumnView, numbers: pa.Array, units: pa.Array, side: str, named: dict[str, int]
) -> Finding | None:
    """Return what was found if most texts are numbers with one of these units, or without one."""
    n_named = sum(named.values())
    if n_named < _MOST * view.n_present and max(map(len, named)) == 1 and "".join(named).isalpha():
        return None  # house numbers
    is_read = pc.or_(pc.equal(units, ""), pc.is_in(units, value_set=pa.array([*named], pa.string())))
    settings, covered = _as_numbers(view, pc.if_else(is_read, numbers, pa.repeat("", len(numbers))))
    if n_named <= _RARE * view.n_present or not covered.is_mostly(view) or len(named) > _MOST_UNITS:
        return None
    share = f"{view.share(covered.n_records)} of the records hold a number{_marks_in_words(settings)}"
    if len(named) > 1:
        if not _KNOWN.issuperset(named) and pc.all(pc.match_substring_regex(view.trimmed, r"^[\pL0-9]+$")).as_py():
            return None  # codes
        what = f"{share}, with {len(named)} different units {side} them{in_the_way(view, covered)}"
        why = f"{_WHY}. Convert them to one unit first"
        return Finding("numbers-with-unit", view.name, what, why, (as_category(view),), question=True)
    bare = covered.n_records - n_named
    without = f", {view.share(bare)} of them without it" if bare else ""
    what = f"{share} with a unit {side} it{without}{in_the_way(view, covered)}"
    remedies = (*as_missing(view, covered, {"unit": side, **settings}), as_category(view))
    return Finding("numbers-with-unit", view.name, what, _WHY, remedies, question=True)


def _is_unit(unit: str, side: str) -> bool:
    """Return whether what is beside numbers may be a unit; letters before a number make it a code, as in A12."""
    if re.search(_NO_UNIT, unit) or len(unit) > _LONGEST_UNIT:
        return False
    is_sign = not any(letter.isalpha() for letter in unit)
    return side == "after" or is_sign or unit in _BEFORE


_LONGEST_UNIT = 20
_KNOWN = frozenset(
    [
        "kg",
        "g",
        "mg",
        "lb",
        "lbs",
        "oz",
        "st",
        "km",
        "m",
        "cm",
        "mm",
        "ft",
        "in",
        "l",
        "ml",
        "cl",
        "h",
        "hr",
        "hrs",
        "std",
        "min",
        "s",
        "sec",
        "ms",
        "d",
        "w",
        "wk",
        "mo",
        "months",
        "y",
        "yr",
        "yrs",
        "years",
        "jahre",
        "j",
        "monate",
        "mois",
        "jours",
        "eur",
        "usd",
        "gbp",
        "chf",
        "k",
    ]
)
_BEFORE = frozenset(
    [
        "ca.",
        "ca",
        "approx.",
        "circa",
        "env.",
        "eur",
        "usd",
        "chf",
        "gbp",
        "cad",
        "aud",
        "jpy",
        "sek",
        "nok",
        "dkk",
        "pln",
        "czk",
        "huf",
        "fr.",
        "fr",
        "rs",
        "rs.",
        "kr",
        "kr.",
        "us$",
        "r$",
    ]
)


def _mask(units: pa.Array, unit: str) -> NDArray[np.bool_]:
    return np.asarray(pc.equal(units, unit).fill_null(False), dtype=bool)


def _as_numbers(view: ColumnView, texts: pa.Array) -> tuple[dict[str, str], Covered]:
    """Return the marks by which most texts are numbers, other than a decimal point, and what they cover."""
    found = [(marks, Covered.of(view, pc.match_substring_regex(texts, grouped_pattern(*marks)))) for marks in _MARKS]
    (thousands, decimal), covered = max(found, key=lambda one: one[1].n_records)
    settings: dict[str, str] = {}
    if thousands != "\x00":
        settings["thousands"] = thousands
    if decimal != "." and are_some(texts, r",[0-9]"):
        settings["decimal"] = decimal
    return settings, covered


def _marks_in_words(settings: dict[str, str]) -> str:
    words = {
        ("thousands", ""): "thousands separators",
        ("decimal", ","): "a decimal comma",
        ("decimal", "."): "a decimal point, where the file has decimal commas",
    }
    told = [text for (name, mark), text in words.items() if name in settings and mark in ("", settings[name])]
    return " with " + " and ".join(told) if told else ""


def decimal_of_file(view: ColumnView) -> str:
    """Return the decimal mark of the file that a column is from."""
    return view.receipt.found.decimal or "."


def dates_as_text(view: ColumnView) -> Finding | None:
    """Find a column of texts that are dates, except for a few."""
    texts = view.trimmed
    if may_be(texts, _ZONED):
        return _times_of_several_zones(view, texts)
    if not may_be(texts, r"^[0-9]{1,4}[-./ ]?[0-9A-Za-z]{1,9}[-./ ]|^[A-Z][a-z]{2,8} [0-9]{1,2},"):
        return None
    likely = [form for form in _DATES if may_be(texts, pattern_of(form), _SOME)]
    found = [(form, Covered.of(view, pc.is_valid(as_dates(texts, form)))) for form in likely]
    if not found:
        return None
    form, covered = max(found, key=lambda one: one[1].n_records)
    if not covered.is_mostly(view):
        return _dates_in_two_forms(view, form, covered, found)
    alike = [other for other, also in found if also.n_records == covered.n_records and other != form]
    order = "a date whose day or month may come first" if alike else f"a date ({_spelled(form)})"
    what = f"{view.share(covered.n_records)} of the records hold {order}{in_the_way(view, covered)}"
    readings = [remedy for each in (form, *alike) for remedy in as_missing(view, covered, {"date_format": each})]
    return Finding("dates-as-text", view.name, what, _WHY, (*readings, as_category(view)), question=True)


_SOME = 0.03  # of the different texts: a second format of dates


def _dates_in_two_forms(
    view: ColumnView, form: str, covered: Covered, found: list[tuple[str, Covered]]
) -> Finding | None:
    """Return what was found if two formats together are those of most texts, though none of them is alone."""
    beside = [(other, covered.joined(view, also)) for other, also in found if other != form]
    if not beside:
        return None
    other, both = max(beside, key=lambda one: one[1].n_records)
    if both.n_records < _ALL * view.n_present:
        return None
    shares = [view.share(covered.n_records), view.share(both.n_records - covered.n_records)]
    what = f"{shares[0]} of the records hold a date ({_spelled(form)}), and {shares[1]} one ({_spelled(other)})"
    why = f"{_WHY}. A column is read by one format: write all of its dates in the same"
    return Finding("dates-as-text", view.name, what, why, (as_category(view),), question=True)


def _times_of_several_zones(view: ColumnView, texts: pa.Array) -> Finding | None:
    covered = Covered.of(view, pc.match_substring_regex(texts, _ZONED))
    n_zones = len(offsets(texts))
    if n_zones < 2 or not covered.is_mostly(view):
        return None
    what = f"{view.share(covered.n_records)} of the records hold a time, with {n_zones} different offsets from UTC"
    why = (
        "On which day or in which month it is depends on the offset, and a column has one. Write all times in one "
        "zone, or each as local time without an offset; read as text, they are categories"
    )
    return Finding("dates-as-text", view.name, what, why, (as_category(view),), question=True)


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


def _are_codes(view: ColumnView, covered: Covered) -> bool:
    """Return whether other texts have digits too, as codes such as 12A do.

    Errors of Excel do not count; open classes, such as <5, are codes among few numbers, and stand in the way of many;
    so do texts with digits that few records have, unless they are letters and digits alone.
    """
    others = view.trimmed.take(pa.array(covered.odd))
    has_digit = pc.match_substring_regex(others, "[0-9]")
    n_numbers = len(view.texts) - len(covered.odd)
    ignored = _ERROR if n_numbers < _MANY else f"{_ERROR}|{_OPEN}"
    coded = np.asarray(pc.and_(has_digit, pc.invert(pc.match_substring_regex(others, ignored))), dtype=bool)
    is_plain = np.asarray(pc.match_substring_regex(others, r"^[\pL0-9]+$"), dtype=bool)
    n_coded, n_plain = (int(view.text_counts[covered.odd[mask]].sum()) for mask in (coded, coded & is_plain))
    most = _RARE * view.n_present
    if n_plain:
        return n_numbers < _MANY or n_plain > most / 2
    is_of_few = len(covered.odd) <= _MOST_UNITS or len(covered.odd_forms(view)) <= _FEW_FORMS
    return n_coded > most and (n_numbers < _MANY or not is_of_few)


def _spelled(date_format: str) -> str:
    """Return a format of dates in words."""
    words = {"%d": "day", "%m": "month", "%b": "month", "%B": "month", "%Y": "year", "%y": "year of two digits"}
    places = sorted((date_format.index(part), word) for part, word in words.items() if part in date_format)
    return ", ".join(word for _, word in places)
