"""Unit ranges: the width that counts as one unit of distance in each column with numeric positions.

Ranges are declared, or learned from the tuples that wait when the first one is due (without extra delay) and then
frozen or slowly adapted.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

EPOCH = 10_000
"""Number of tuples after which adapting ranges move, unless the delay is longer."""


@dataclass
class UnitRanges:
    """Lows and highs of columns; NaN where not yet known."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    declared: NDArray[np.bool_]
    adapt: float
    seen_low: NDArray[np.float64] = field(init=False)
    seen_high: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin a new epoch."""
        self.seen_low = np.full(len(self.low), np.inf)
        self.seen_high = np.full(len(self.low), -np.inf)

    def as_lists(self) -> list[list[float]]:
        """Return the state that changes during a stream, for a checkpoint."""
        return [part.tolist() for part in (self.low, self.high, self.seen_low, self.seen_high)]

    def take_lists(self, parts: list[list[float]]) -> None:
        """Restore what `as_lists` returned."""
        self.low, self.high, self.seen_low, self.seen_high = (np.array(part, dtype=np.float64) for part in parts)

    @property
    def known(self) -> bool:
        """Return whether every column has a range."""
        return not np.isnan(self.low).any()

    def note(self, values: list[NDArray[np.float64]]) -> None:
        """Update the limits of the current epoch, for ranges that adapt."""
        if self.adapt:
            self.seen_low = np.fmin(self.seen_low, [np.fmin.reduce(column, initial=np.inf) for column in values])
            self.seen_high = np.fmax(self.seen_high, [np.fmax.reduce(column, initial=-np.inf) for column in values])

    def learn(self, values: list[NDArray[np.float64]]) -> None:
        """Learn the ranges that were not declared from these tuples; a column without a value gets 0 to 0."""
        present = [column[~np.isnan(column)] for column in values]
        low = np.array([column.min() if len(column) else 0.0 for column in present])
        high = np.array([column.max() if len(column) else 0.0 for column in present])
        self.low = np.where(self.declared, self.low, low)
        self.high = np.where(self.declared, self.high, high)

    def move(self) -> None:
        """End an epoch: move the ranges by a share towards the limits of the epoch."""
        moves = ~self.declared & (self.seen_low <= self.seen_high)
        # A weighted sum, since the difference of two numbers may overflow float64.
        self.low[moves] = (1 - self.adapt) * self.low[moves] + self.adapt * self.seen_low[moves]
        self.high[moves] = (1 - self.adapt) * self.high[moves] + self.adapt * self.seen_high[moves]
        self.forget()
