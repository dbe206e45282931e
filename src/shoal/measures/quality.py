"""Quality: the measures by which ARX and the papers on generalisation compare releases, one function each.

Each has the value of its definition, and the loss on the scale of ARX: 0 for the original and 1 for a table that tells
nothing. ARX shows 1 minus this loss.

References
----------
Bayardo, Agrawal (2005), "Data privacy through optimal k-anonymization": discernibility.
LeFevre, DeWitt, Ramakrishnan (2006), "Mondrian multidimensional k-anonymity": average class size.
Iyengar (2002), "Transforming data to satisfy privacy constraints": granularity.
De Waal, Willenborg (1999), "Information loss through global recoding and local suppression"; Gionis, Tassa (2009),
"k-Anonymization with minimal loss of information": non-uniform entropy.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from shoal.columns.equivalence import class_ids, value_codes
from shoal.columns.schema import Schema
from shoal.space.ncp_weights import Categories, Numbers, Tree, ncp_columns
from shoal.typing import Labels, Vector


@dataclass(frozen=True)
class Quality:
    """One measure of a release.

    Attributes
    ----------
    value : float
        As the measure is defined.
    loss : float
        From 0, the original, to 1, all records in one class of which nothing is known.
    columns : dict of str to float
        The loss of each quasi-identifier, if the measure is one of columns.
    """

    value: float
    loss: float
    columns: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the measure as plain values, for JSON."""
        return asdict(self)


class Compared(NamedTuple):
    """A release and the records it was made of."""

    original: pa.Table
    """The prepared records."""

    replaced: pa.Table
    """The published values of their quasi-identifiers."""

    schema: Schema
    cells_of: Mapping[str, Labels]
    """The cell of each record, for each quasi-identifier."""

    classes: Labels
    """The equivalence class of each record in the release."""

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.classes)

    @property
    def sizes_before(self) -> Labels:
        """Number of records in each class of the original."""
        return np.bincount(class_ids(self.original.select(self.schema.quasi_names)))


def discernibility(found: Compared) -> Quality:
    """Return the sum over the records of the number of records they cannot be told from."""
    before, after = (_pairs(sizes) for sizes in (found.sizes_before, np.bincount(found.classes)))
    return Quality(after, _scaled(before, after, float(found.n_records) ** 2))


def _pairs(sizes: Labels) -> float:
    return float(np.square(sizes.astype(np.float64)).sum())


def average_class_size(found: Compared) -> Quality:
    """Return the mean size of a class."""
    before, after = (found.n_records / len(sizes) for sizes in (found.sizes_before, np.bincount(found.classes)))
    return Quality(after, _scaled(before, after, found.n_records))


def granularity(found: Compared) -> Quality:
    """Return the mean share of the values of a column that a class covers: of its range, or of its categories.

    On the scale from 0 to 1 it is the normalised certainty penalty (`shoal.measures.ncp`).
    """
    shares, losses = {}, {}
    for name, column in ncp_columns(found.original, found.schema).items():
        sizes = np.bincount(found.cells_of[name])
        penalties = column.ncp_of(found.cells_of[name], len(sizes))
        losses[name] = float((penalties * sizes).sum() / sizes.sum())
        shares[name] = float((_covered(column, penalties) * sizes).sum() / sizes.sum())
    return Quality(_mean(shares), _mean(losses), losses)


def _covered(column: Numbers | Categories | Tree, penalties: Vector) -> Vector:
    """Return the share of the values of a column that each class covers."""
    if isinstance(column, Numbers):
        return penalties
    n_values = column.n_values if isinstance(column, Categories) else len(column.nodes)
    return np.asarray((penalties * (n_values - 1) + 1) / n_values)


def non_uniform_entropy(found: Compared) -> Quality:
    """Return how many bits of each value a reader lacks who knows what is published for it, over records and columns.

    The loss is the share of all bits of a column, its entropy in the original. Where a value is always published in the
    same way, this is the measure of ARX.
    """
    bits, losses = {}, {}
    for column in found.schema.quasi:
        before, after = value_codes(found.original[column.name]), value_codes(found.replaced[column.name])
        both = np.unique(after * (int(before.max(initial=0)) + 1) + before, return_inverse=True)[1]
        whole = _bits(before)
        bits[column.name] = max(_bits(both) - _bits(after), 0.0)
        losses[column.name] = bits[column.name] / whole if whole else 0.0
    return Quality(float(sum(bits.values())), _mean(losses), losses)


def _bits(codes: Labels) -> float:
    """Return the entropy of some codes, in bits, times their number."""
    counts = np.bincount(codes)
    counts = counts[counts > 0]
    return float(len(codes) * np.log2(len(codes)) - (counts * np.log2(counts)).sum()) if len(codes) else 0.0


def _scaled(least: float, value: float, most: float) -> float:
    return (value - least) / (most - least) if most > least else 0.0


def _mean(values: Mapping[str, float]) -> float:
    return float(np.mean(list(values.values()))) if values else 0.0


QUALITIES: dict[str, Callable[[Compared], Quality]] = {
    "discernibility": discernibility,
    "average_class_size": average_class_size,
    "granularity": granularity,
    "non_uniform_entropy": non_uniform_entropy,
}
"""The measures by name. A new one is a function and a line here."""


def table_quality(found: Compared) -> dict[str, Quality]:
    """Return every measure of a release."""
    return {name: measure(found) for name, measure in QUALITIES.items()}
