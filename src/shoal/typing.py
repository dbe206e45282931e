"""Types shared by all modules."""

from collections.abc import Callable

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
