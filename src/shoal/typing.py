"""The few types that every module speaks."""

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
"""What repeats a result; None takes entropy from the operating system."""

Progress = Callable[[int, int], None]
"""Called now and then with the number of records done and the number of all."""
