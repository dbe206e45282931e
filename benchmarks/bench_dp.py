"""Measure differentially private releases of Census beside the alternatives, at equal epsilon and bounds.

Errors are in shares of the public range of a column: 0.1 is a tenth of it.
"""

import json
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from time import perf_counter

import click
import numpy as np
import opendp.prelude as od
import pyarrow as pa
from scipy.optimize import linear_sum_assignment

from bench_partition import ROOT, circumstances
from measure import say
from shoal import datasets, dp
from shoal.dp.budget import Budget
from shoal.dp.declared import GRID
from shoal.typing import Matrix

RESULTS = ROOT / "benchmarks" / "results" / "dp.json"
SCRATCH = ROOT / "out" / "bench" / "dp.json"
# Round numbers that clip no value, the same for all measurements. A real release takes them from documentation.
BOUNDS = {
    "AFNLWGT": (0, 1_000_000),
    "AGI": (0, 100_000),
    "EMCONTRB": (0, 10_000),
    "FEDTAX": (0, 50_000),
    "PTOTVAL": (0, 200_000),
    "STATETAX": (0, 20_000),
    "TAXINC": (0, 100_000),
    "POTHVAL": (0, 200_000),
    "INTVAL": (0, 50_000),
    "PEARNVAL": (0, 100_000),
    "FICA": (0, 10_000),
    "WSALVAL": (0, 100_000),
    "ERNVAL": (0, 100_000),
}
N_QUANTILES = (1, 3, 5, 9)


@dataclass(frozen=True)
class Row:
    """A mechanism at an epsilon; means over the repetitions."""

    what: str
    epsilon: float
    sorted_rmse: float
    """Root mean square difference of the sorted columns, all columns together."""
    matched_rmse: float | None
    """Root mean square distance after the best matching of records, by column; for joint records."""
    correlation: float | None
    """Mean absolute difference of the correlations; for joint records. A constant column counts as uncorrelated."""
    seconds: float


def census() -> tuple[pa.Table, Matrix]:
    """Return the records as a table, and as shares of the public ranges."""
    data = datasets.census()
    highs = np.array([BOUNDS[name][1] for name in data.columns], dtype=float)
    return pa.table(dict(zip(data.columns, data.X.T, strict=True))), data.X / highs


def shares(table: pa.Table) -> Matrix:
    return np.column_stack([np.asarray(table[name]) / BOUNDS[name][1] for name in BOUNDS])


def middle(X: Matrix) -> Matrix:
    return np.full_like(X, 0.5)


def quantiles(X: Matrix, epsilon: float, number: int) -> Matrix:
    """Release noisy quantiles of each column by OpenDP's exponential mechanism; lines between them and the bounds."""
    n, m = X.shape
    od.enable_features("contrib")
    domain, candidates = od.vector_domain(od.atom_domain(T="i64"), size=n), list(range(0, 1001))
    levels = np.arange(1, number + 1) / (number + 1)
    out = np.empty_like(X)
    for j in range(m):
        records = np.rint(X[:, j] * 1000).astype(int).tolist()
        found = []
        for level in levels:
            # Replacing a record is a distance of 2 between the tables as sets.
            mechanism = od.m.make_private_quantile(
                domain,
                od.symmetric_distance(),
                od.max_divergence(),
                candidates=candidates,
                alpha=float(level),
                scale=2 * number * m / epsilon,
            )
            assert mechanism.map(2) <= epsilon / (number * m) * (1 + 1e-9)
            found.append(mechanism(records) / 1000)
        out[:, j] = np.interp((np.arange(n) + 0.5) / n, [0, *levels, 1], [0, *np.sort(found), 1])
    return out


def record_laplace(X: Matrix, epsilon: float) -> Matrix:
    """Add noise to every value of every record: replacing one changes all of its columns by their whole ranges."""
    codes = np.rint(X * GRID).astype(np.int64)
    noisy = Budget(epsilon).laplace(("columns", "records"), codes.ravel(), GRID * X.shape[1], Fraction(1))
    return np.clip(noisy.reshape(X.shape) / GRID, 0, 1)


def fixed_order(X: Matrix, epsilon: float, n_cells: int) -> Matrix:
    """Cut the records, sorted by their sums, into cells of fixed sizes: a record may shift one record in every cell."""
    codes = np.rint(X * GRID).astype(np.int64)
    cells = np.array_split(np.argsort(codes.sum(axis=1), kind="stable"), n_cells)
    sums = np.concatenate([codes[cell].sum(axis=0) for cell in cells])
    noisy = (
        Budget(epsilon)
        .laplace(("columns", "sums"), sums, GRID * X.shape[1] * n_cells, Fraction(1))
        .reshape(n_cells, -1)
    )
    means = [np.clip(row / len(cell) / GRID, 0, 1) for row, cell in zip(noisy, cells, strict=True)]
    return np.repeat(means, [len(cell) for cell in cells], axis=0)


def smartnoise(X: Matrix, epsilon: float, python: Path) -> Matrix:
    """Let SmartNoise's MST make records, in a separate Python; (epsilon, 1e-9), which is a weaker guarantee."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(Path(folder) / name) for name in ("in.npy", "out.npy")]
        np.save(paths[0], X)
        script = Path(__file__).with_name("smartnoise_records.py")
        subprocess.run([python, script, *paths, "mst", str(epsilon)], check=True, capture_output=True)
        return np.load(paths[1])


def matched(X: Matrix, Y: Matrix) -> float:
    cost = np.square(X[:, None] - Y[None]).sum(axis=2)
    return float(np.sqrt(cost[linear_sum_assignment(cost)].mean() / X.shape[1]))


def correlations(X: Matrix) -> Matrix:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.nan_to_num(np.corrcoef(X.T))[np.triu_indices(X.shape[1], 1)]


def measure(what: str, epsilon: float, X: Matrix, make: Callable[[], Matrix], repeats: int, whole: bool) -> Row:
    """Release repeatedly, and return the mean errors."""
    start = perf_counter()
    made = [make() for _ in range(repeats)]
    seconds = (perf_counter() - start) / repeats
    ranked = np.sort(X, axis=0)
    row = Row(
        what=what,
        epsilon=epsilon,
        sorted_rmse=float(np.mean([np.sqrt(np.square(np.sort(Y, axis=0) - ranked).mean()) for Y in made])),
        matched_rmse=float(np.mean([matched(X, Y) for Y in made])) if whole else None,
        correlation=float(np.mean([np.abs(correlations(X) - correlations(Y)).mean() for Y in made])) if whole else None,
        seconds=seconds,
    )
    rest = f", matched {row.matched_rmse:.4f}, correlations {row.correlation:.3f}" if whole else ""
    say(f"epsilon {epsilon:g}: {what}: sorted columns {row.sorted_rmse:.4f}{rest}")
    return row


@click.command()
@click.option("--quick", is_flag=True, help="Two repetitions at one epsilon. Checks that it works.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
@click.option(
    "--smartnoise", "python", type=click.Path(path_type=Path), help="A Python with smartnoise-synth, to compare."
)
def main(quick: bool, output: Path | None, python: Path | None) -> None:
    """Measure marginals and joint releases of Census."""
    output = output or (SCRATCH if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    table, X = census()
    rows: list[Row] = []
    repeats = 2 if quick else 20
    for epsilon in (1.0,) if quick else (0.5, 1.0, 4.0):
        alone: dict[str, Callable[[], Matrix]] = {
            "marginals": lambda e=epsilon: shares(dp.marginals(table, e, BOUNDS).published),
            "middle of the bounds": lambda: middle(X),
            **{
                f"noisy quantiles, {number}": lambda e=epsilon, q=number: quantiles(X, e, q)
                for number in (N_QUANTILES[:1] if quick else N_QUANTILES)
            },
        }
        whole: dict[str, Callable[[], Matrix]] = {
            "joint": lambda e=epsilon: shares(dp.joint(table, e, BOUNDS).published),
            "marginals, taken for records": alone["marginals"],
            "one order, 2 fixed cells": lambda e=epsilon: fixed_order(X, e, 2),
            "one order, 4 fixed cells": lambda e=epsilon: fixed_order(X, e, 4),
            "noise on every record": lambda e=epsilon: record_laplace(X, e),
            "middle of the bounds": lambda: middle(X),
        }
        rows += [measure(what, epsilon, X, make, repeats, False) for what, make in alone.items()]
        rows += [measure(what, epsilon, X, make, max(repeats // 4, 1), True) for what, make in whole.items()]
        if python is not None:
            rows.append(
                measure("SmartNoise MST, delta 1e-9", epsilon, X, partial(smartnoise, X, epsilon, python), 1, True)
            )
    missing = [] if python else ["SmartNoise: no Python with smartnoise-synth was named"]
    for reason in missing:
        say(f"Left out: {reason}")
    results = {**circumstances(quick), "bounds": BOUNDS, "rows": [asdict(row) for row in rows], "missing": missing}
    output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    say(f"Written to {output}")


if __name__ == "__main__":
    main()
