"""Values with labels in a column that the file declares as amounts."""

import numpy as np

from shoal.columns.schema import Kind
from shoal.findings.column_view import ColumnView
from shoal.findings.finding import HIDDEN, Finding, Remedy
from shoal.sources import ColumnLabels


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
            Remedy("column", view.name, {"kind": "nominal"}),
            Remedy("column", view.name, {"kind": "ordinal"}),
            Remedy("column", view.name, {"kind": "numeric"}),
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
