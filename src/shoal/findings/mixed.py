"""Columns whose cells are of several types, such as numbers and texts in one column of a sheet."""

import pyarrow.compute as pc

from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy

_FEW = 5  # different texts that may stand for missing values
_TYPED = r"^-?[0-9][0-9.]*(e[-+]?[0-9]+)?$|^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?$"


def mixed_types(view: ColumnView) -> Finding | None:
    """Find a column that was made text, since its cells have several types."""
    if not view.mixed:
        return None
    counts = sorted(view.mixed.items(), key=lambda one: (-one[1], one[0]))
    listed = " and ".join(f"{count:,} {kind}" for kind, count in counts)
    return Finding(
        "mixed-types",
        view.name,
        f"it holds {listed}",
        "A column of several types is read as text, and its numbers or dates are categories",
        (*_null_values(view, counts[0][0]), Remedy("column", view.name, {"kind": "nominal"})),
        question=True,
    )


def _null_values(view: ColumnView, main: str) -> list[Remedy]:
    """Return the texts as null values, where they are few among numbers or dates."""
    if set(view.mixed) not in ({"numbers", "texts"}, {"dates", "texts"}) or main == "texts":
        return []
    trimmed = pc.utf8_trim_whitespace(view.texts)
    odd = pc.unique(trimmed.filter(pc.invert(pc.match_substring_regex(trimmed, _TYPED)))).to_pylist()
    if not 0 < len(odd) <= _FEW:
        return []
    return [Remedy("field", view.name, {"null_values": odd if view.show_values else [HIDDEN] * len(odd)})]
