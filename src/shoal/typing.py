"""Types shared by all modules."""

from collections.abc import Callable, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
"""Records in the space: shape (n_records, n_dims)."""

Labels = NDArray[np.int64]
"""Cell number of each record, from 0 and without gaps."""

Vector = NDArray[np.float64]
"""A number for each record, cell or point."""

Seed = int | None
"""Makes a result reproducible; None takes entropy from the operating system."""

Progress = Callable[[int, int], None]
"""Called a few times a second with the number of records done and the total number."""

Names = Sequence[str] | str
"""Names of columns; a single name may stand without a list."""

# What registries hold, for editors and type checkers; a test compares them.

Method = Literal[
    "auto",
    "mdav",
    "mdav+",
    "blocks",
    "tfrp",
    "diameter",
    "diameter+",
    "centroid",
    "centroid+",
    "vmdav",
    "vmdav+",
    "topdown",
    "topdown+",
    "mst",
    "univariate",
]
"""A method of `shoal.methods.ALGORITHMS`."""

Engine = Literal["memory", "disk", "spark"]
"""An engine of `shoal.job.engine_facts.ENGINES`."""

KindName = Literal["numeric", "ordinal", "nominal", "date"]
"""What the values of a column are: `shoal.columns.schema.Kind`."""

BoundEffort = Literal["cheap", "strong"]
"""How much is spent on a lower bound of the loss."""

ReportFormat = Literal["html", "json", "terminal"]
"""A format of `shoal.output.report.FORMATS`."""


def holds(annotation: Any, wanted: type) -> bool:
    """Return whether a type is the wanted one, possibly in a union or with checks."""
    if get_origin(annotation) is Annotated:
        return holds(get_args(annotation)[0], wanted)
    if annotation is wanted or get_origin(annotation) is wanted:
        return True
    is_choice = get_origin(annotation) in (Union, UnionType)
    return is_choice and any(holds(part, wanted) for part in get_args(annotation))
