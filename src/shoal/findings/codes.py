"""Codes: numbers that name categories rather than count or measure, by their name, their gaps and how often they occur.

Strong evidence is the question `codes`. Numbers that may as well be counts are the note `perhaps-codes`.
"""

import numpy as np
from numpy.typing import NDArray

from shoal.columns.name_topics import is_code, is_count
from shoal.columns.schema import Kind
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import Finding, kinds

_FEW_CODES = 8
_FEW_WITH_GAPS = 12
_GAPS = 0.2  # share of the whole numbers between the smallest and the largest that do not occur
_OFTEN, _OFTEN_WITH_GAPS = 5, 3  # records with a code, on average
_LEAST_RECORDS = 20

_MOST_WITHOUT_GAPS, _MOST = 24, 60  # different numbers that may be codes
_MANY_GAPS, _SOME_GAPS = 0.5, 0.2
_BULK = (0.05, 0.95)  # of the records: the tails of what is measured have gaps, too
_GRIDS = (1, 10, 100)  # decimals of codes such as 1.1 or 62.01

_WHY = "Codes are averaged like amounts: a cell of codes 1 and 4 would publish 2.5"


def codes(view: ColumnView) -> Finding | None:
    """Find whole numbers that are codes of categories rather than counts or measurements."""
    if not _may_have_codes(view):
        return None
    named = is_code(view.name)
    values = _few_whole(view, _FEW_WITH_GAPS)
    if values is None:
        return _codes(view, "many", ", and its name suggests codes", True) if named and view.are_whole else None
    is_one_or_none = set(values) <= {0.0, 1.0}
    if len(values) == 1 or is_one_or_none:
        return None
    if named:
        return _codes(view, str(len(values)), ", and its name suggests codes", 0.0 not in values)
    has_gaps = _has_gaps(values) and len(view.numbers) >= _OFTEN * len(values)
    if is_count(view.name):
        return _codes(view, str(len(values)), ", with gaps between them", False) if has_gaps else None
    if len(values) == 2 or has_gaps:
        return _codes(view, str(len(values)), ", with gaps between them" if has_gaps else "", 0.0 not in values)
    return _codes(view, str(len(values)), "", False) if 2 < len(values) <= _FEW_CODES else None


def perhaps_codes(view: ColumnView) -> Finding | None:
    """Find numbers that may be codes: each occurs often, and they are few, or have gaps where most records are."""
    if not _may_have_codes(view) or is_count(view.name):
        return None
    if len(np.unique(view.numbers[:1000])) > _MOST:
        return None
    values, counts = view.different
    if not 2 < len(values) <= _MOST:
        return None
    grid = next((grid for grid in _GRIDS if np.abs(values * grid - np.rint(values * grid)).max() < 1e-6), None)
    below = np.cumsum(counts) / counts.sum()
    bulk = np.rint(values[np.searchsorted(below, _BULK[0]) : np.searchsorted(below, _BULK[1]) + 1] * (grid or 1))
    is_whole = values == np.rint(values)
    if grid is None or len(bulk) < 3 or (grid > 1 and is_whole.sum() > len(values) / 2):
        return None
    steps = np.diff(bulk)
    share = 1 - len(bulk) / (np.ptp(bulk) + 1)
    is_even = len(set(steps)) == 1
    n_gaps = np.count_nonzero(steps > steps.min())  # one alone may be that of zeros
    if grid == 1 and is_even and steps[0] == 1 and len(values) <= _MOST_WITHOUT_GAPS and counts.mean() >= _OFTEN:
        shape = "without gaps, which may be codes of categories as well as counts"
    elif (
        n_gaps >= _SOME_GAPS * len(steps)
        and n_gaps > 1
        and share >= (_MANY_GAPS if grid == 1 else _GAPS)
        and counts.mean() >= _OFTEN_WITH_GAPS
    ):
        shape = "with gaps between them, as codes of categories have"
    else:
        return None
    what = "whole numbers" if grid == 1 else "numbers with decimals"
    often = f"it holds {len(values)} different {what}, each in {counts.mean():.0f} records on average"
    return Finding(
        "perhaps-codes", view.name, f"{often}, {shape}", _WHY, kinds(view.name, "nominal", "ordinal", "numeric")
    )


def _may_have_codes(view: ColumnView) -> bool:
    if view.kind is not Kind.NUMERIC or len(view.numbers) < _LEAST_RECORDS:
        return False
    return view.description is None or view.description.measure not in ("nominal", "ordinal")


def _codes(view: ColumnView, n_different: str, told: str, question: bool) -> Finding:
    return Finding(
        "codes",
        view.name,
        f"it holds {n_different} different whole numbers that look like codes of categories{told}",
        _WHY,
        kinds(view.name, "nominal", "ordinal", "numeric"),
        question=question,
    )


def _few_whole(view: ColumnView, most: int) -> NDArray[np.float64] | None:
    """Return the different values if they are few and whole."""
    if len(np.unique(view.numbers[:1000])) > most or not view.are_whole:
        return None
    found = view.different[0]
    return found if len(found) <= most else None


def _has_gaps(values: NDArray[np.float64]) -> bool:
    """Return whether many whole numbers between few do not occur, though they are not steps such as 10, 20, 30."""
    steps = np.diff(values)
    return bool(
        (steps.max() > 1 and 1 - len(values) / (np.ptp(values) + 1) >= _GAPS and len(set(steps)) > 1)
        or (len(values) == 2 and steps[0] > 1)
    )
