"""What the file says of a column: that its cells are of several types, or that values of an amount have labels."""

import numpy as np
import pyarrow.compute as pc

from shoal.columns.schema import Kind
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy, kinds
from shoal.findings.forms import Covered, as_category, as_missing
from shoal.sources import ColumnLabels

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
        (*_null_values(view, counts[0][0]), as_category(view)),
        question=True,
    )


def _null_values(view: ColumnView, main: str) -> tuple[Remedy, ...]:
    """Return the texts as null values, where they are few among numbers or dates."""
    if set(view.mixed) not in ({"numbers", "texts"}, {"dates", "texts"}) or main == "texts":
        return ()
    covered = Covered.of(view, pc.match_substring_regex(view.trimmed, _TYPED))
    return as_missing(view, covered, {}) if 0 < len(covered.odd) <= _FEW else ()


def labelled_values(view: ColumnView) -> Finding | None:
    """Find numbers some of which have labels, where the file does not say that they are categories."""
    about = view.description
    if about is None or view.kind is not Kind.NUMERIC or about.measure in ("nominal", "ordinal"):
        return None
    occurring = [value for value in set(about.values) if not about.is_missing(value) and (view.numbers == value).any()]
    if not occurring or (is_labelled(view, about) and about.measure is None):
        return None
    shown = sorted(occurring) if view.show_values else [HIDDEN] * len(occurring)
    says = "scale" if about.measure == "scale" else "nothing"
    return Finding(
        "labelled-values",
        view.name,
        f"{len(occurring)} of its values have a label, and its measurement level says {says}",
        "A labelled value is a category or stands for a missing one, and would be averaged into the values of others",
        (
            Remedy("column", view.name, {"missing_codes": shown}),
            *kinds(view.name, "nominal", "ordinal", "numeric"),
        ),
        question=True,
    )


def is_labelled(view: ColumnView, about: ColumnLabels) -> bool:
    """Return whether every value that occurs and is not declared missing has a label."""
    if not about.values or not len(view.numbers):
        return False
    # Codes are few: the first records suffice for most columns.
    some = np.unique(view.numbers[:1000])
    values = some if len(some) > len(about.values) + 100 else np.unique(view.numbers)
    return all(value in about.values or about.is_missing(value) for value in values.tolist())
