"""Streams: figure 3 and proposition 2 of steered microaggregation (Domingo-Ferrer and Soria-Comas, 2017).

Figure 3 shows loss and reordering against the weight of the position, on MCD (TAXINC and POTHVAL of Census, min-max
scaled), k = 10, delay 100. Proposition 2 gives the weight from which the order of tuples is kept; adversarial streams
find the exact threshold.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import click
import numpy as np
import pyarrow as pa

from papers.claims import as_text
from papers.data_and_results import drawn, make_folder, save
from papers.streams.claims import claims, mean_difference
from shoal import datasets
from shoal.stream import Stream
from shoal.typing import Labels, Matrix

__all__ = ["claims", "command"]

K, DELAY = 10, 100
WEIGHTS = (0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.1, 0.2, 0.325, 1.0)
PRINTED = {0.0: (80, 25.0), 0.02: (12, 0.7)}
"""Reordering in the paper's text, largest and mean."""

EXAMPLES = """\b
Examples:
  python -m papers streams
  python -m papers streams --output out
"""


@dataclass(frozen=True)
class Point:
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


@dataclass(frozen=True)
class Threshold:
    """The weight per position from which no adversarial stream moved a tuple, and that of the proof."""

    k: int
    m: int
    found: float
    proved: float


@click.command(epilog=EXAMPLES)
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), default=Path("out"), show_default=True)
def command(output: Path) -> None:
    """Reproduce figure 3 and proposition 2 of steered microaggregation."""
    make_folder(output)
    points = list(figure_3())
    click.echo(f"MCD, k = {K}, delay {DELAY}: position differences within a cell (largest, mean of pairs), ranks moved")
    click.echo(f"{'weight':>8}{'MSE':>9}{'MAE':>9}{'within':>9}{'mean':>7}{'moved':>8}{'mean':>7}{'paper':>12}")
    for point in points:
        click.echo(
            f"{point.weight:>8g}{point.mse:>9.4f}{point.mae:>9.4f}{point.spread_max:>9}{point.difference_mean:>7.1f}"
            f"{point.displacement_max:>8}{point.displacement_mean:>7.1f}{_printed(point.weight):>12}"
        )
    click.echo("\nProposition 2: the least weight per position at which no tuple changes its place")
    click.echo(f"{'k':>4}{'m':>4}{'found':>12}{'sqrt(m/(2k-1))':>18}")
    thresholds = list(proposition_2())
    for line in thresholds:
        click.echo(f"{line.k:>4}{line.m:>4}{line.found:>12.6f}{line.proved:>18.6f}")
    content = {
        "figure_3": [asdict(p) for p in points],
        "proposition_2": [asdict(t) for t in thresholds],
    }
    save(output / "streams.json", content)
    click.echo("")
    click.echo(as_text(claims(content)))
    click.echo(drawn(_draw, output, points))


def _printed(weight: float) -> str:
    return "{} / {}".format(*PRINTED[weight]) if weight in PRINTED else ""


def _draw() -> Callable[..., object]:
    from papers.streams.pictures import draw

    return draw


def mcd() -> Matrix:
    """Return TAXINC and POTHVAL of Census, each from 0 to 1."""
    data = datasets.census()
    X: Matrix = data.X[:, [list(data.columns).index(name) for name in ("TAXINC", "POTHVAL")]]
    scaled: Matrix = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return scaled


def figure_3(weights: Sequence[float] = WEIGHTS) -> Iterator[Point]:
    """Run the stream at each weight."""
    X = mcd()
    table = pa.table({"taxinc": X[:, 0], "pothval": X[:, 1], "position": np.arange(len(X))})
    for weight in weights:
        ranges = {"taxinc": (0, 1), "pothval": (0, 1)}
        stream = Stream(K, delay=DELAY, order_weight=weight, ranges=ranges, other=["position"])
        released = pa.concat_tables([stream.push(table), stream.flush()])
        summary = stream.summary()
        measured = {name: getattr(summary, name) for name in Point.__dataclass_fields__ if hasattr(summary, name)}
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
