"""Two forms: texts of two sorts in one column that may say the same, and that a release would keep apart."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.findings.column_view import ColumnView
from shoal.findings.finding import Finding, Remedy
from shoal.findings.forms import Covered, as_category, as_missing, say_missing

_LEAST_RECORDS = 20
_FEW = 12  # different texts that are categories
_SOME = 0.05  # of the records: a second sort, rather than a stray
_MOST = 0.5
_WHY = "Texts that mean the same count as different ones, so records that are alike are kept apart. Write them alike"

_RUNS = r"^9([^9a]+9)+$"
_TIMES = r"^([0-9]+) ?[xXhH\x{D7}] ?([0-9]+)$"  # 90x120, 12h30
_PAIR = r"^9 ?[/x] ?9$|^9([,;/|&] ?9){2,}$"  # 1/2, 120/80, 90x120, and answers such as 1,3,5
_SIGNED = "^9[-+]$"  # 2- and 3+
_MONTHS = "jan|feb|m[a\u00e4]r|mrz|apr|ma[iy]|jun|jul|aug|sep|o[kc]t|nov|de[zc]|janv|f\u00e9v|avr|juin|juil|ao\u00fb"
_OF_SHEET = rf"(?i)^[0-9]{{1,2}}[-. ]{{1,2}}({_MONTHS})\.?$|^({_MONTHS})\.?[- ][0-9]{{2}}$"  # 09. Jan, Sep-10
_NUMBER = r"^-?9([.,]9)?$"

_SAME = tuple(
    tuple(frozenset(meaning.split()) for meaning in meanings)
    for meanings in (
        ("ja j yes y oui o si sì sí s sim tak t wahr true vrai x", "nein n no non não nie falsch false faux f"),
        (
            "m male man mann männlich maennlich homme masculin h hombre maschio",
            "f w female woman frau weiblich femme féminin feminin mujer femmina",
            "d divers diverse x other andere autre",
        ),
    )
)
"""Words of the same meaning: yes and no, sexes."""


def two_forms(view: ColumnView) -> Finding | None:
    """Find texts of two sorts: words and numbers, 12:30 and 12.30, 120/80 among numbers, yes and y."""
    if len(view.texts) < 2 or view.n_present < _LEAST_RECORDS:
        return None
    forms = _forms(view)
    looks = (_words_and_numbers, _other_marks, _pairs, _signs, _lists, _days_of_sheets, _synonyms, _slips)
    return next((found for look in looks if (found := look(view, forms)) is not None), None)


def _words_and_numbers(view: ColumnView, forms: pa.Array) -> Finding | None:
    if len(view.texts) > _FEW:
        return None
    is_number = _fits(forms, _NUMBER)
    is_word = _fits(forms, r"^a( a)*$") & ~say_missing(view)
    n_numbers, n_words = _n_records(view, is_number), _n_records(view, is_word)
    if min(n_numbers, n_words) < _SOME * view.n_present:
        return None
    return _finding(view, f"{n_words:,} of {view.n_records:,} records hold a word, and {n_numbers:,} a number", ())


def _other_marks(view: ColumnView, forms: pa.Array) -> Finding | None:
    """Return what was found if the same number of runs of digits has different marks between them."""
    different = pc.unique(forms)
    if len(different) > _FEW:
        return None
    counts = np.bincount(np.asarray(pc.index_in(forms, value_set=different)), view.text_counts).astype(np.int64)
    of_runs: dict[int, dict[str, int]] = {}
    for form, count in zip(different.to_pylist(), counts.tolist(), strict=True):
        if re.match(_RUNS, form):
            n_runs = form.replace("9:9:9", "9:9").count("9")  # seconds may be left out
            of_runs.setdefault(n_runs, {})[form] = count
    for counted in of_runs.values():
        if len(counted) < 2 or sum(counted.values()) < _MOST * view.n_present:
            continue
        usual = max(counted, key=lambda form: counted[form])
        others = [form for form in counted if form != usual]
        odd = np.asarray(pc.is_in(forms, value_set=pa.array(others)), dtype=bool)
        told = ", ".join(f"{counted[form]:,} {form!r}" for form in others)
        what = f"{counted[usual]:,} of {view.n_records:,} records hold the form {usual!r}, and {told} (9: digits)"
        return _finding(view, what, as_missing(view, Covered.of(view, pa.array(~odd)), {}))
    return None


def _pairs(view: ColumnView, forms: pa.Array) -> Finding | None:
    is_pair, is_number = _fits(forms, _PAIR), _fits(forms, _NUMBER)
    n_pairs, n_numbers = _n_records(view, is_pair), _n_records(view, is_number)
    if not n_pairs or n_numbers < _MOST * view.n_present:
        return None
    what = f"{n_numbers:,} of {view.n_records:,} records hold a number, and {n_pairs:,} two of them or a fraction"
    return _finding(view, what, as_missing(view, Covered.of(view, pa.array(~is_pair)), {}))


def _signs(view: ColumnView, forms: pa.Array) -> Finding | None:
    """Return what was found if some numbers have a sign after them; the last of some classes may have one, as in 5+."""
    is_signed, is_number = _fits(forms, _SIGNED), _fits(forms, _NUMBER)
    n_signed, n_numbers = _n_records(view, is_signed), _n_records(view, is_number)
    if is_signed.sum() < 2 or n_numbers < _MOST * view.n_present:
        return None
    return _finding(
        view, f"{n_numbers:,} of {view.n_records:,} records hold a number, and {n_signed:,} one with a sign", ()
    )


def _lists(view: ColumnView, forms: pa.Array) -> Finding | None:
    """Return what was found if some texts list others, as J45;E11 does."""
    if len(view.texts) > _MOST_LISTED:
        return None
    texts = view.trimmed.to_pylist()
    known = {text for text in texts if not re.search(_BETWEEN, text)}
    parts = ([part.strip() for part in re.split(_BETWEEN, text)] for text in texts)
    is_list = np.array([len(each) > 1 and known.issuperset(each) for each in parts], dtype=bool)
    n_lists = _n_records(view, is_list)
    if not 0 < n_lists < _MOST * view.n_present:
        return None
    what = f"{n_lists:,} of {view.n_records:,} records hold several of the texts that others have alone"
    why = "Each list counts as a value of its own, unlike any of its parts. Give each part a column, or a record"
    return Finding("two-forms", view.name, what, why, (as_category(view),))


_BETWEEN = r"[;|,/+&]"
_MOST_LISTED = 5000


def _slips(view: ColumnView, forms: pa.Array) -> Finding | None:
    """Return what was found if a rare word differs from a frequent one by one letter, as femal does from female."""
    if len(view.texts) > _MOST_WORDS:
        return None
    words = pc.utf8_lower(view.trimmed).to_pylist()
    counts = dict(zip(words, view.text_counts.tolist(), strict=True))
    usual = {word for word in counts if len(word) >= _LONG and word.isalpha()}
    slips = [
        word
        for word in usual
        if any(counts[word] <= _RARE * counts[other] and _is_slip(word, other) for other in usual - {word})
    ]
    if not slips:
        return None
    n_slips = sum(counts[word] for word in slips)
    return _finding(
        view, f"{n_slips:,} of {view.n_records:,} records hold a word one letter away from a frequent one", ()
    )


_MOST_WORDS, _LONG, _RARE = 40, 4, 0.1


def _is_slip(word: str, other: str) -> bool:
    """Return whether one letter was left out, added or replaced, or two neighbours exchanged."""
    if abs(len(word) - len(other)) > 1:
        return False
    same = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    rest, others = word[same:], other[same:]
    swapped = len(rest) > 1 and rest[1] + rest[0] + rest[2:] == others
    return rest[1:] == others[1:] or rest[1:] == others or rest == others[1:] or swapped


def _days_of_sheets(view: ColumnView, forms: pa.Array) -> Finding | None:
    """Return what was found if some texts are a day and a month, which a sheet makes of 9-1 and of SEP10."""
    is_day = np.asarray(pc.match_substring_regex(view.trimmed, _OF_SHEET), dtype=bool)
    n_days = _n_records(view, is_day)
    if not 0 < n_days < _MOST * view.n_present:
        return None
    what = f"{n_days:,} of {view.n_records:,} records hold a day and a month, or a month and a year, unlike the others"
    why = "A sheet makes a date of what looks like one, such as 9-10. Write them as they were, in cells of texts"
    remedies = as_missing(view, Covered.of(view, pa.array(~is_day)), {})
    return Finding("two-forms", view.name, what, why, (*remedies, as_category(view)))


def _synonyms(view: ColumnView, forms: pa.Array) -> Finding | None:
    if len(view.texts) > _FEW:
        return None
    texts = set(pc.utf8_lower(view.trimmed).to_pylist()) - {""}
    for meanings in _SAME:
        meant = [texts & meaning for meaning in meanings]
        if len(frozenset().union(*meant)) == len(texts) > sum(map(bool, meant)) >= 2:
            what = f"its {len(texts)} different texts are words of {sum(map(bool, meant))} meanings"
            return _finding(view, what, ())
    return None


def _finding(view: ColumnView, what: str, remedies: tuple[Remedy, ...]) -> Finding:
    return Finding("two-forms", view.name, what, _WHY, (*remedies, as_category(view)))


def _forms(view: ColumnView) -> pa.Array:
    """Return the forms of the texts, with x in place of the letter of 90x120 and 12h30."""
    is_product = pc.match_substring_regex(view.trimmed, _TIMES)
    return pc.if_else(is_product, pc.replace_substring(view.forms, "a", "x"), view.forms)


def _fits(forms: pa.Array, pattern: str) -> NDArray[np.bool_]:
    return np.asarray(pc.match_substring_regex(forms, pattern), dtype=bool)


def _n_records(view: ColumnView, mask: NDArray[np.bool_]) -> int:
    return int(view.text_counts[mask].sum())
