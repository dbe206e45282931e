"""Streams: figure 3 and proposition 2 of steered microaggregation (Domingo-Ferrer and Soria-Comas, 2017).

Figure 3 shows loss and reordering against the weight of the position, on MCD (TAXINC and POTHVAL of Census, min-max
scaled), k = 10, delay 100. Proposition 2 gives the weight from which the order of tuples is kept; adversarial streams
find the exact threshold.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from papers.data_and_results import mcd
from papers.paper import Archived, Content, Paper, Run
from papers.streams.claims import PRINTED, K, claims, mean_difference
from papers.tables import table
from shoal.stream import Stream
from shoal.typing import Labels, Matrix

DELAY = 100
WEIGHTS = (0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.1, 0.2, 0.325, 1.0)


class Point(NamedTuple):
    """One weight of figure 3."""

    weight: float
    mse: float
    mae: float
    spread_max: int
    spread_mean: float
    difference_mean: float
    """Mean difference between the positions of two tuples of a cell, as section VI-B defines reordering."""
    displacement_max: int
    displacement_mean: float
    delay_mean: float


class Threshold(NamedTuple):
    """The weight per position from which no adversarial stream moved a tuple, and that of the proof."""

    k: int
    m: int
    found: float
    proved: float


def measure(run: Run) -> None:
    """Measure both."""
    run.begin()
    run.add("figure_3", figure_3())
    run.add("proposition_2", proposition_2())


def tables(content: Content) -> str:
    """Return both as text: position differences within a cell (largest, mean of pairs), and ranks moved."""
    columns = {"weight": ">8g", "MSE": ">8.4f", "MAE": ">8.4f", "within": ">8", "mean": ">6.1f", "moved": ">7"}
    columns |= {"mean moved": ">10.1f", "paper": ">12"}
    rows = [
        (p.weight, p.mse, p.mae, p.spread_max, p.difference_mean, p.displacement_max, p.displacement_mean, said)
        for p in content["figure_3"]
        for said in ["{} / {}".format(*PRINTED[p.weight]) if p.weight in PRINTED else ""]
    ]
    found = {"k": ">4", "m": ">4", "found": ">12.6f", "sqrt(m/(2k-1))": ">18.6f"}
    title = "Proposition 2: the least weight per position at which no tuple changes its place"
    return "\n".join(
        [
            table(
                columns, rows, f"MCD, k = {K}, delay {DELAY}: differences within a cell (largest, mean), ranks moved"
            ),
            table(found, content["proposition_2"], title),
        ]
    )


def figure_3(weights: Sequence[float] = WEIGHTS) -> Iterator[Point]:
    """Run the stream at each weight."""
    X = mcd()
    table = pa.table({"taxinc": X[:, 0], "pothval": X[:, 1], "position": np.arange(len(X))})
    for weight in weights:
        ranges = {"taxinc": (0, 1), "pothval": (0, 1)}
        stream = Stream(K, delay=DELAY, order_weight=weight, ranges=ranges, other=["position"])
        released = pa.concat_tables([stream.push(table), stream.flush()])
        summary = stream.summary()
        measured = {name: getattr(summary, name) for name in Point._fields if hasattr(summary, name)}
        yield Point(weight, difference_mean=mean_difference(cells_of(released)), **measured)


def cells_of(released: pa.Table) -> Labels:
    """Return the cell of each position: tuples are released cell after cell, and those of a cell look the same."""
    values = np.column_stack([released["taxinc"], released["pothval"]])
    new = np.concatenate([[False], (values[1:] != values[:-1]).any(axis=1)])
    cells = np.empty(len(values), dtype=np.int64)
    cells[np.asarray(released["position"])] = np.cumsum(new)
    return cells


def proposition_2(cases: Sequence[tuple[int, int]] = ((2, 1), (3, 2), (5, 3), (10, 2), (10, 5))) -> Iterator[Threshold]:
    """Bisect for the threshold until it is known to six digits."""
    for k, m in cases:
        low, high = 0.0, 2.0 * np.sqrt(m)
        while high - low > 1e-7:
            middle = (low + high) / 2
            low, high = (middle, high) if _can_be_made_to_move(k, m, middle) else (low, middle)
        yield Threshold(k, m, high, float(np.sqrt(m / (2 * k - 1))))


def _can_be_made_to_move(k: int, m: int, weight: float) -> bool:
    """Try worst-case streams: corners of the cube, with the due tuple's natural neighbours just out of reach."""
    rng = np.random.default_rng(0)
    worst = np.zeros((k + 1, m))
    worst[k - 1] = 1.0
    tries = [worst, *(rng.integers(0, 2, (4 * k, m)).astype(float) for _ in range(3))]
    return any(_moves(X, k, weight) for X in tries)


def _moves(X: Matrix, k: int, weight: float) -> bool:
    stream = Stream(k, delay=k, order_weight=weight, ranges=[(0, 1)] * X.shape[1])
    stream.push(X)
    return stream.summary().spread_max > k - 1


PAPER = Paper(
    "Steered microaggregation, Domingo-Ferrer, Soria-Comas 2017: streams",
    "figure 3, proposition 2",
    "seconds",
    "",
    "Reproduce figure 3 and proposition 2 of steered microaggregation.",
    ("", "--output out"),
    "",
    (),
    {"figure_3": Point, "proposition_2": Threshold},
    measure,
    tables,
    claims,
    "papers.streams.pictures",
    (Archived("streams.json", "streams"),),
)
