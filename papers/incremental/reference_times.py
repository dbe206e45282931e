"""Table 5.2 of the thesis: the absolute times of MDAV of everything, beside ours."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from papers.data_and_results import timed
from papers.fmdav.switches import numpy_mdav
from papers.incremental.variant_runs import Problem
from papers.tables import table
from shoal.methods import partition

PRINTED = {
    ("gaussian", 50_000, 10, 5): 22.41,
    ("gaussian", 50_000, 10, 10): 33.05,
    ("gaussian", 50_000, 10, 15): 46.12,
    ("gaussian", 50_000, 100, 5): 2.23,
    ("gaussian", 50_000, 100, 10): 3.38,
    ("gaussian", 50_000, 100, 15): 3.32,
    ("census", 50_000, 10, 3): 16.82,
    ("census", 50_000, 10, 6): 24.22,
    ("census", 50_000, 10, 13): 40.53,
    ("census", 50_000, 100, 3): 1.71,
    ("census", 50_000, 100, 6): 2.49,
    ("census", 50_000, 100, 13): 4.09,
    ("gaussian", 500_000, 10, 15): 47 * 60 + 30.0,
    ("gaussian", 1_000_000, 10, 15): (3 * 60 + 7) * 60.0,
}
"""Seconds by data, records, k and columns, one thread."""

SUBSTITUTES = {13: 9}
"""Column counts of the thesis's census, and the smaller ones of ours."""


class Row(NamedTuple):
    """A line of the table; processor seconds, one thread."""

    data: str
    n: int
    k: int
    dims: int
    """As in the thesis; the census here has 9 columns where the thesis has 13."""
    thesis: float
    kernel: float
    plain: float | None
    """None where it was not run: quadratic, hours for the two largest."""


def rows(make: Callable[[str, int, int, int], Problem | None], done: Sequence[Row], plain_up_to: int) -> Iterator[Row]:
    """Measure the missing lines; `make` returns the records of one, or None if they are not available."""
    there = {row[:4] for row in done}
    for (data, n, k, dims), thesis in PRINTED.items():
        problem = None if (data, n, k, dims) in there else make(data, n, k, SUBSTITUTES.get(dims, dims))
        if problem is None:
            continue
        kernel = timed(partition, problem.X, k, "mdav", threads=1)[1]
        plain = timed(numpy_mdav, problem.X, k)[1] if n <= plain_up_to else None
        yield Row(data, n, k, dims, thesis, kernel, plain)


def as_text(rows: Sequence[Row]) -> str:
    """Format the table as text."""
    columns = {"data": "<10", "n": ">9,", "k": ">4", "columns": ">8", "thesis": ">10,.2f"}
    columns |= {"plain NumPy": ">12.2f", "shoal": ">8.2f"}
    ours = {dims: f"{dims} ({fewer})" for dims, fewer in SUBSTITUTES.items()}
    cells = [(*row[:3], ours.get(row.dims, str(row.dims)), row.thesis, row.plain, row.kernel) for row in rows]
    return table(columns, cells, "Table 5.2: seconds for MDAV of everything, one thread\n", "not run")
