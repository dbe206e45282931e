"""The naive twin of the stream kernel: tuples in a list, sorted by distance. It is the definition."""

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tuple:
    position: int
    time: float
    x: tuple
    codes: tuple
    tags: tuple


@dataclass
class Window:
    """A window on a stream: k, and when tuples are due, and what a cell has to hold."""

    k: int
    delay: float = math.inf
    max_age: float = math.inf
    order_weight: float = 0.0
    max_cell: int | None = None
    code_weights: tuple = ()
    least: tuple = ()
    held: list = field(default_factory=list)
    n_in: int = 0
    clock: float = -math.inf

    def push(self, X, times, codes=None, tags=None):
        """Take tuples in, one after the other; return the cells and the refused, both by arrival number."""
        cells, side = [], []
        for i, x in enumerate(X):
            self.clock = max(self.clock, float(times[i]))
            row_codes = tuple(int(c) for c in codes[i]) if codes is not None else ()
            row_tags = tuple(int(t) for t in tags[i]) if tags is not None else ()
            self.held.append(Tuple(self.n_in, self.clock, tuple(map(float, x)), row_codes, row_tags))
            self.n_in += 1
            self._let_go(cells, side)
        return cells, side

    def advance(self, now):
        """Let go what is due at this time."""
        cells, side = [], []
        self.clock = max(self.clock, float(now))
        self._let_go(cells, side)
        return cells, side

    def flush(self):
        """End the stream: let go of everything."""
        cells, side = [], []
        while self.held:
            self._close(cells, side, self._nothing_comes)
        return cells, side

    def _let_go(self, cells, side):
        while self.held and self._is_due(self.held[0]):
            self._close(cells, side, self._comes_before)

    def _is_due(self, oldest):
        return oldest.position <= self.n_in - 1 - self.delay or oldest.time + self.max_age <= self.clock

    def _comes_before(self, oldest):
        return 0 if self._is_due(oldest) else oldest.position + self.delay - (self.n_in - 1)

    def _nothing_comes(self, oldest):
        return 0

    def _close(self, cells, side, comes_before):
        due = self.held[0]
        order = sorted(self.held, key=lambda other: (self.distance(due, other), other.position))
        cell, reason = self._gather(order)
        if reason is not None:
            self.held.remove(due)
            side.append((due.position, reason))
            return
        for member in cell:
            self.held.remove(member)
        while self.held and self._is_lost(self.held[0], comes_before):
            cell.append(self.held.pop(0))
        cells.append(sorted(member.position for member in cell))

    def distance(self, a, b):
        """Return the squared distance: columns in order, then codes that differ, then the position."""
        total = 0.0
        for p, q in zip(b.x, a.x, strict=True):
            total += (p - q) * (p - q)
        for p, q, weight in zip(b.codes, a.codes, self.code_weights, strict=True):
            total += weight if p != q else 0.0
        if self.order_weight:
            step = float(b.position - a.position) * self.order_weight
            total += step * step
        return total

    def _missing(self, cell):
        """Say how many different values each requirement still lacks."""
        return [max(0, n - len({member.tags[j] for member in cell})) for j, n in enumerate(self.least)]

    def _gather(self, order):
        """Take the k nearest, then the nearest that add what is missing, then, if allowed, those that are close."""
        cell = []
        for candidate in order:
            adds = any(
                missing and candidate.tags[j] not in {member.tags[j] for member in cell}
                for j, missing in enumerate(self._missing(cell))
            )
            if len(cell) < self.k or adds:
                cell.append(candidate)
        if len(cell) < self.k:
            return cell, 0
        for j, missing in enumerate(self._missing(cell)):
            if missing:
                return cell, 1 + j
        self._extend(cell, [candidate for candidate in order if candidate not in cell])
        return cell, None

    def _extend(self, cell, order):
        """Take on whatever is not much nearer to one that stays than to the tuple that is due."""
        while len(cell) < (self.max_cell or self.k) and len(order) > 1:
            nearest = min(self.distance(order[0], other) for other in order[1:])
            if not self.distance(cell[0], order[0]) < 1.5 * nearest:
                break
            cell.append(order.pop(0))

    def _is_lost(self, oldest, comes_before):
        """Tell whether a tuple can no longer find a cell, whatever comes before it is due."""
        comes = comes_before(oldest)
        if len(self.held) + comes < self.k:
            return True
        return any(len({t.tags[j] for t in self.held}) + comes < n for j, n in enumerate(self.least))
