"""A model and the confidential column that it constrains."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal import kernels
from shoal.models.codes import Codes
from shoal.models.model import Model
from shoal.typing import Labels, Vector


class ModelOnColumn(NamedTuple):
    """A model and the column it constrains, as encoded by `shoal.models.encode`."""

    model: Model
    codes: Labels
    n_values: int
    ordered: bool
    subjects: Labels | None = None
    whole: Labels | None = None

    @property
    def column(self) -> Codes:
        """The column alone."""
        return Codes(self.codes, self.n_values, self.ordered, self.subjects, self.whole)

    def part(self, records: Labels) -> "ModelOnColumn":
        """Return the same for some of the records."""
        subjects = None if self.subjects is None else self.subjects[records]
        return self._replace(codes=np.ascontiguousarray(self.codes[records]), subjects=subjects)


def counting_persons(models: Sequence[ModelOnColumn], subjects: Labels) -> list[ModelOnColumn]:
    """Return the models whose recount changes if every person counts once for each value, counting that way."""
    found = [each._replace(subjects=subjects) for each in models if each.model.by_frequency]
    return [each for each in found if len(each.column.pairs()[1]) < len(subjects)]  # some person has a value twice


def vetoes_of(models: Sequence[ModelOnColumn], counts: Sequence[Labels] | None = None) -> kernels.Guarantees:
    """Return the vetoes against search steps after which a cell violates one of the models.

    `counts` holds the value counts of the whole table for each model, if `models` cover a part of it.
    """
    vetoes = kernels.Guarantees()
    for each, whole in zip(models, counts or [each.column.counts() for each in models], strict=True):
        each.model.guard(vetoes, each.column, whole)
        if each.subjects is not None:
            vetoes.persons_once(*each.column.pairs())
    return vetoes


def excess_of(vetoes: kernels.Guarantees, labels: Labels) -> Vector:
    """Return the total violation of the models by each cell, 0 if it satisfies them all; shape (n_cells,)."""
    return vetoes.excess(labels, int(labels.max()) + 1)
