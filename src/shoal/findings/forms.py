"""Forms: a column of texts has a distribution of forms, and what deviates from it may not be what the column is about.

The findings that know what the usual form is (numbers, dates) say so in its words; `other_forms` is for all others.
"""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy
from shoal.sources.text_values import FORM
from shoal.spelling import as_listed

_SAMPLE = 500  # different texts that decide whether all are examined
_MOST = 0.5
_FEW = 5  # different texts, or forms, that may deviate
_MANY = 25  # different texts
_RARE = 0.1  # share of the records that may deviate by many texts
_STRAY = 0.05  # the same, where nothing says what the usual form means
_RARER = 0.2  # how often a deviating text occurs, compared with the others
_SINGLE = 3  # records that have a text which is a label or a remark, on average
_LEAST_RECORDS = 20
_SHOWN = 3

_WORDS = "|".join(
    [
        "na|n/a|n\\.a\\.|#n/a|nan|null|nil|missing|unknown|refused|don'?t know|no answer|not (available|applicable)",
        "k\\. ?a\\.|unbekannt|(keine|ohne) angaben?|verweigert|wei(ß|ss) nicht|entfällt|trifft nicht zu",
        "inconnue?|nsp|n\\.r\\.|non (renseignée?|réponse|applicable|disponible)|ne sait pas|refus|sans objet",
        "desconocido|no sabe|sconosciuto|onbekend",
    ]
)
_MISSING = f"(?i)^({_WORDS})$|^#[A-Z]+(/0|/A)?[!?]?$"
_NUMBER = r"^-?([0178]|9+)$"  # that stands for a missing word
_MISREAD = r"[\x{C2}\x{C3}][\x{80}-\x{BF}]|\x{FFFD}"  # UTF-8 that was read as Latin-1
_SIGNS = rf"[*\x{{2020}}\x{{2021}}#?~^|{{}}\[\]@\\!=]|{_MISREAD}"


class Covered(NamedTuple):
    """Number of records that a form covers, and the texts that it does not."""

    n_records: int
    odd: NDArray[np.int64]  # indices of the texts that it does not cover, the most frequent first

    @staticmethod
    def of(view: ColumnView, fits: pa.Array) -> "Covered":
        """Return what the texts that fit cover."""
        mask = np.asarray(fits.fill_null(False), dtype=bool)
        odd = np.flatnonzero(~mask)
        return Covered(int(view.text_counts[mask].sum()), odd[np.argsort(-view.text_counts[odd], kind="stable")])

    def joined(self, view: ColumnView, other: "Covered") -> "Covered":
        """Return what two forms cover together."""
        odd = self.odd[np.isin(self.odd, other.odd)]
        return Covered(int(view.text_counts.sum() - view.text_counts[odd].sum()), odd)

    def n_odd(self, view: ColumnView) -> int:
        """Return the number of records that are not covered."""
        return int(view.text_counts[self.odd].sum())

    def odd_forms(self, view: ColumnView) -> list[str]:
        """Return the forms of the texts that are not covered, the most frequent first."""
        found: list[str] = pc.unique(view.forms.take(pa.array(self.odd))).to_pylist()
        return found

    def is_mostly(self, view: ColumnView) -> bool:
        """Return whether most records or texts are covered, and the others have few texts or, if rare, few forms."""
        if self.n_records < _MOST * view.n_present or len(view.texts) <= 2:
            return len(self.odd) <= _FEW and len(view.texts) >= _MANY
        is_rare = self.n_odd(view) <= _RARE * view.n_present
        return len(self.odd) <= _FEW or (is_rare and len(self.odd_forms(view)) <= _FEW)


def may_be(texts: pa.Array, pattern: str, least: float = 0.4) -> bool:
    """Return whether about half of the first different texts match a pattern, so that all should be examined."""
    first = texts.slice(0, _SAMPLE)
    return len(first) > 0 and (pc.sum(pc.match_substring_regex(first, pattern)).as_py() or 0) >= least * len(first)


def are_some(texts: pa.Array, pattern: str) -> bool:
    """Return whether a pattern is found in any text."""
    return bool(pc.any(pc.match_substring_regex(texts, pattern)).as_py())


def in_the_way(view: ColumnView, covered: Covered) -> str:
    """Say how many records hold something else."""
    if not len(covered.odd):
        return ", all of those that have a text"
    others = "one other text" if len(covered.odd) == 1 else f"{len(covered.odd)} other texts"
    return f", and {covered.n_odd(view):,} of {view.n_records:,} hold {others}{_of_forms(covered.odd_forms(view))}"


def _of_forms(forms: list[str]) -> str:
    """Name forms: a stands for letters, 9 for digits."""
    more = f" and {len(forms) - _SHOWN} more" if len(forms) > _SHOWN else ""
    signs = [told for sign, told in (("a", "a: letters"), ("9", "9: digits")) if any(sign in form for form in forms)]
    legend = f"; {', '.join(signs)}" if signs else ""
    return f" (form {', '.join(map(repr, forms[:_SHOWN]))}{more}{legend})"


def as_missing(view: ColumnView, covered: Covered, settings: dict[str, Any]) -> tuple[Remedy, ...]:
    """Return the remedies to read a column by settings, with the texts that are not covered as missing ones.

    They are named by their form, which shows no value, unless others share the form. If they are few and alone in the
    way, their records may also be left out.
    """
    if not view.has_fields:
        return ()
    null_values = _named(view, covered)
    as_null = Remedy("field", view.name, {**settings, **({"null_values": null_values} if null_values else {})})
    if settings or not null_values or covered.n_odd(view) > _RARE * view.n_present:
        return (as_null,)
    left_out = [f"{as_listed(view.name)}={entry}" for entry in null_values]
    return as_null, Remedy("rows", view.name, {"skip_where": left_out})


def _named(view: ColumnView, covered: Covered) -> list[str]:
    odd = [str(text) for text in view.trimmed.take(pa.array(covered.odd)).to_pylist()]
    if view.show_values:
        return odd
    usual = view.forms.filter(pa.array(~np.isin(np.arange(len(view.texts)), covered.odd)))
    shared = set(pc.unique(usual).to_pylist())
    return [HIDDEN if form in shared else FORM + form for form in covered.odd_forms(view)]


def as_category(view: ColumnView) -> Remedy:
    """Return the remedy to take a column as it was read: a category, withheld where it would tell single records."""
    n_alone = int(np.count_nonzero(view.text_counts == 1))
    withheld = {"aggregate": "withhold"} if n_alone > _ALONE * view.n_present else {}
    return Remedy("column", view.name, {"kind": "nominal", **withheld})


_ALONE = 0.1  # of the records: as many that are the only ones with their text are published of single records


def other_forms(view: ColumnView) -> Finding | None:
    """Find a few texts of another form than the rest: digits among words, words among codes, marks, signs, lengths."""
    if len(view.texts) < 2 or view.n_present < _LEAST_RECORDS:
        return None
    covered = Covered.of(view, pa.array(~_deviating(view)))
    if not len(covered.odd) or not covered.n_records:
        return None
    n_odd = covered.n_odd(view)
    missing = bool(say_missing(view)[covered.odd].all())
    what = (
        f"{n_odd:,} of {view.n_records:,} records have another form than the others{_of_forms(covered.odd_forms(view))}"
    )
    why = (
        "Such a text often stands for a missing value"
        if missing
        else "It may be a label, a remark or another spelling, and is a category of its own"
    )
    return Finding("other-forms", view.name, what, why, (*as_missing(view, covered, {}), as_category(view)))


def says_missing(texts: pa.Array) -> NDArray[np.bool_]:
    """Return which texts are words for a missing value."""
    return np.asarray(pc.match_substring_regex(texts, _MISSING), dtype=bool)


def say_missing(view: ColumnView) -> NDArray[np.bool_]:
    """Return which texts are words for a missing value, or marks alone."""
    found = says_missing(view.trimmed)
    found |= np.asarray(pc.match_substring_regex(view.forms, "^[^a9]+$"), dtype=bool)
    return found


def _deviating(view: ColumnView) -> NDArray[np.bool_]:
    """Return which texts deviate from the others, by features that nearly all or nearly no records have."""

    def has(pattern: str, texts: pa.Array = view.forms) -> NDArray[np.bool_]:
        return np.asarray(pc.match_substring_regex(texts, pattern), dtype=bool)

    digits, letters = has("9"), has("a")
    found = say_missing(view)
    if view.text_counts[found].sum() > _MOST * view.n_present:
        found[:] = False
    if view.text_counts[letters & ~digits].sum() >= (1 - _STRAY) * view.text_counts.sum():
        found |= has(_NUMBER, view.trimmed)
    rest = ~found
    features = [digits, letters, has("[^a9]$")]
    plain = rest & has("^9$")
    if view.text_counts[plain].sum() >= (1 - _STRAY) * view.text_counts[rest].sum():
        lengths = np.asarray(pc.utf8_length(view.trimmed))
        usual = np.bincount(lengths[plain], view.text_counts[plain]).argmax() if plain.any() else 0
        features.append(plain & (lengths != usual))
    for feature in features:
        found |= _minority(view, feature, rest, _SINGLE)
    return found | _minority(view, has(_SIGNS, view.trimmed), rest, _STRAY * view.n_present)


def _minority(view: ColumnView, feature: NDArray[np.bool_], among: NDArray[np.bool_], most: float) -> NDArray[np.bool_]:
    """Return the texts that have a feature or lack it, if nearly all records are on the other side."""
    n_all = view.text_counts[among].sum()
    for side, rest in ((feature & among, ~feature & among), (~feature & among, feature & among)):
        n_side, n_texts = view.text_counts[side].sum(), side.sum()
        if not 0 < n_side <= _STRAY * n_all:
            continue
        # Among names, each of which is rare, an odd one says little; one that many records have is a category.
        is_rarer = n_side / n_texts <= min(_RARER * view.text_counts[rest].mean(), most)
        if is_rarer and (n_texts <= _FEW or len(pc.unique(view.forms.filter(pa.array(side)))) <= 1):
            return side
    return np.zeros(len(feature), dtype=bool)
