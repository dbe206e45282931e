"""A model and the confidential column that it constrains."""

from typing import NamedTuple

import numpy as np

from shoal.models.codes import Codes
from shoal.models.model import Model
from shoal.typing import Labels


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
