"""Soak: streams under random rules and random faults, for as long as asked; every tuple is accounted for all the time.

Each round draws rules, pushes batches with bad tuples among them, lets clocks jump, cuts the stream and goes on from
its state, tries damaged states, and compares with a stream that nothing happened to.
"""

from collections import Counter

import numpy as np
import pyarrow as pa

from shoal.errors import FileError
from shoal.stream import Stream


def draw_rules(rng):
    k = int(rng.integers(2, 12))
    return k, {
        "quasi_identifiers": ["x", "y", "c"],
        "other": ["n"],
        "columns": {"c": {"kind": "nominal"}},
        "subject": "who" if rng.integers(2) else None,
        "identifiers": [],
        "delay": int(k - 1 + rng.integers(0, 300)) if rng.integers(4) else None,
        "max_age": float(rng.integers(5, 100)),
        "order_weight": float(rng.choice([0, 0.01, 1])),
        "max_cell": int(2 * k - 1) if rng.integers(2) else None,
        "adapt": float(rng.choice([0, 0.3])),
        "missing": str(rng.choice(["error", "own-value"])),
        "on_error": "side",
    }


def draw_batch(rng, start, n, subjects):
    x = rng.normal(size=n)
    x[rng.random(n) < 0.01] = np.nan
    x[rng.random(n) < 0.005] = np.inf
    columns = {
        "x": x,
        "y": np.exp(rng.normal(size=n)),
        "c": rng.choice(list("abcd"), n),
        "n": np.arange(start, start + n),
    }
    if subjects:
        columns["who"] = rng.integers(0, 40, n)
    return pa.table(columns)


class Followed:
    """A stream, and everything that has come out of it."""

    def __init__(self, k, rules):
        self.released, self.aside = [], []
        self.stream = Stream(k, on_side=self.set_aside, clock=lambda: 0.0, **rules)

    def set_aside(self, rows, reasons):
        self.aside += rows["n"].to_pylist()

    def push(self, batch, now):
        self.released.append(self.stream.push(batch, now=now))
        self.check()

    def check(self):
        summary = self.stream.summary()
        assert summary.n_in == summary.n_released + summary.n_side + summary.n_buffered
        assert summary.n_released == sum(part.num_rows for part in self.released)
        assert summary.n_side == len(self.aside)

    def crash(self, rng):
        """Go on from the state, after a damaged one was refused."""
        content = self.stream.dump()
        damaged = bytearray(content)
        damaged[int(rng.integers(len(content)))] ^= int(rng.integers(1, 256))
        try:
            Stream.restore(bytes(damaged))
        except FileError:
            pass
        else:
            raise AssertionError("a damaged state was taken for a good one")
        self.stream = Stream.restore(content, on_side=self.set_aside, clock=lambda: 0.0)


def round_of(rng, folder):
    """Run one stream with faults and one without; return how many tuples went through."""
    k, rules = draw_rules(rng)
    faulty, calm = Followed(k, rules), Followed(k, rules)
    start, now = 0, 0.0
    for _ in range(int(rng.integers(1, 30))):
        batch = draw_batch(rng, start, int(rng.integers(1, 800)), rules["subject"])
        start += batch.num_rows
        now += float(rng.choice([0, 1, 1, 5, 200, -50]))
        faulty.push(batch, now)
        calm.push(batch, now)
        if rng.integers(2):
            faulty.crash(rng)
        if rng.integers(3) == 0:
            faulty.released.append(faulty.stream.advance(now))
            calm.released.append(calm.stream.advance(now))
    for one in (faulty, calm):
        one.released.append(one.stream.flush())
        one.check()
    out = pa.concat_tables(faulty.released)
    assert out.equals(pa.concat_tables(calm.released))
    assert sorted(out["n"].to_pylist() + faulty.aside) == list(range(start))
    if out.num_rows:
        assert out.group_by(["x", "y", "c"]).aggregate([("n", "count")])["n_count"].to_numpy().min() >= k
    return Counter(streams=1, tuples=start)
