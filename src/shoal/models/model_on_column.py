"""A model and the confidential column that it constrains."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.models.codes import Codes
from shoal.models.model import Model
from shoal.typing import Labels, Vector


class ModelOnColumn(NamedTuple):
    """A model and the column it is about, as `shoal.models.encode` gives it."""

    model: Model
    codes: Labels
    n_values: int
    ordered: bool

    @property
    def column(self) -> Codes:
        """The column alone."""
        return Codes(self.codes, self.n_values, self.ordered)

    def part(self, records: Labels) -> "ModelOnColumn":
        """Return the same for some of the records."""
        return self._replace(codes=np.ascontiguousarray(self.codes[records]))

    def counts(self) -> Labels:
        """Count the records of each value, shape (n_values,)."""
        return np.bincount(self.codes, minlength=self.n_values)


def vetoes_of(models: Sequence[ModelOnColumn], counts: Sequence[Labels] | None = None) -> kernels.Guarantees:
    """Return what forbids steps of a search after which a cell violates one of the models.

    `counts` has the values of the whole table for each model, where `models` are about a part of it.
    """
    vetoes = kernels.Guarantees()
    for each, whole in zip(models, counts or [each.counts() for each in models], strict=True):
        each.model.guard(vetoes, each.column, whole)
    return vetoes


def excess_of(vetoes: kernels.Guarantees, labels: Labels) -> Vector:
    """Return by how much each cell violates the models in sum, 0 where it satisfies them; shape (n_cells,)."""
    return np.asarray(vetoes.excess(labels, int(labels.max()) + 1))
