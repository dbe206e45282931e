"""True or close: what intervals, their middles and draws from them keep of Census, beside means; and two pictures.

Writes benchmarks/results/truthful.json, docs/img/truthful-classes.svg and docs/img/truthful-statistics.svg.
"""

import json
from pathlib import Path
from typing import Any

import click
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import shoal
from bench_partition import ROOT, circumstances
from shoal import datasets
from shoal.auditing.k_minus_one import differential
from shoal.typing import Matrix

RESULTS = ROOT / "benchmarks" / "results" / "truthful.json"
SCRATCH = ROOT / "out" / "bench" / "truthful.json"
IMAGES = ROOT / "docs" / "img"
SIZES = (3, 5, 10, 25)
SEEDS = 20
COLORS = {"mean": "#1e5a7d", "middle": "#c2410c", "draw": "#4d7c0f"}
EXAMPLE, N_CLASSES = "AGI", 14


def releases(k: int) -> tuple[shoal.Release, shoal.Release]:
    """Return the release of Census by means, and the one by intervals, of the same cells."""
    names = list(datasets.census().columns)
    settings = {"k": k, "quasi_identifiers": names, "seed": 1}
    return tuple(shoal.anonymize(datasets.path("census"), truthful=true, **settings) for true in (False, True))


def columns_of(release: shoal.Release, name: str, seed: int | None = None) -> Matrix:
    """Return one column: the means, or the middles of intervals, or draws from them."""
    published = release.table[name]
    if release.job.truthful:
        ranges = shoal.read_published(published)
        return ranges.midpoint if seed is None else ranges.draw(seed)
    return np.asarray(published.to_numpy())


def kept(before: Matrix, after: Matrix) -> dict[str, float]:
    """Return mean changes over the columns: of means (absolute, in standard deviations), deviations, correlations."""
    change = after.std(axis=0) / before.std(axis=0) - 1
    pairs = np.triu_indices(before.shape[1], 1)
    moved = np.abs(np.corrcoef(after.T) - np.corrcoef(before.T))[pairs]
    shift = np.abs(after.mean(axis=0) - before.mean(axis=0)) / before.std(axis=0)
    return {"average": float(shift.mean()), "sd": 100 * float(change.mean()), "correlation": float(moved.mean())}


def measured(k: int) -> dict[str, Any]:
    """Measure one cell size."""
    close, true = releases(k)
    names = [column.name for column in close.schema.quasi]
    before = np.column_stack([np.asarray(close.original[name]) for name in names])
    ranges = [shoal.read_published(true.table[name]) for name in names]
    exact = [_exact(before[:, j], true.labels) for j in range(before.shape[1])]
    widths = [(r.high - r.low) / np.ptp(before[:, j]) for j, r in enumerate(ranges)]
    means = np.column_stack([columns_of(close, name) for name in names])
    draws = [np.column_stack([columns_of(true, name, seed) for name in names]) for seed in range(SEEDS)]
    drawn = [kept(before, draw) for draw in draws]
    return {
        "k": k,
        "true_means": 100 * float((means == before).mean()),
        "false_intervals": sum(found.n_false for found in true.verdict.truth),
        "ncp": 100 * float(np.mean(exact)),
        **at_plain_steps(true),
        "ncp_published": 100 * float(np.mean(widths)),
        "exposed": sum(found.n_exposed for found in true.verdict.truth),
        "known": known(true),
        "mean": kept(before, means),
        "middle": kept(before, np.column_stack([columns_of(true, name) for name in names])),
        "draw": {name: float(np.mean([one[name] for one in drawn])) for name in drawn[0]},
    }


def at_plain_steps(true: shoal.Release) -> dict[str, float]:
    """Measure what intervals would be if no steps were joined: their width, and who would be alone at an end."""
    widths, alone = [], np.zeros(len(true.labels), dtype=bool)
    for column in true.schema.quasi:
        units, width = column.grid.units(true.original[column.name]), column.grid.width
        steps, counts = np.unique(units // width, return_counts=True)
        low, high = (np.full(true.labels.max() + 1, end) for end in (2**62, -(2**62)))
        np.minimum.at(low, true.labels, units // width)
        np.maximum.at(high, true.labels, units // width)
        widths.append((((high - low + 1) * width - column.grid.is_exact)[true.labels] / np.ptp(units)).mean())
        few = counts[np.searchsorted(steps, units // width)] == 1
        own = units // width
        alone |= few & ((own == low[true.labels]) | (own == high[true.labels]))
    return {"ncp_steps": 100 * float(np.mean(widths)), "alone": 100 * float(alone.mean())}


def known(true: shoal.Release) -> dict[str, float]:
    """Return the share of values that somebody recovers who knows all others of a class: by the middle, by the ends."""
    numbers = {column.name: np.asarray(true.original[column.name], float) for column in true.schema.quasi}
    ranges = {name: shoal.read_published(true.table[name]) for name in numbers}
    middles = {name: shown.midpoint for name, shown in ranges.items()}
    every = {"most": len(true.labels)}
    return {
        "middle": 100 * differential(numbers, middles, true.labels, **every).recovered,
        "ends": 100 * differential(numbers, numbers, true.labels, coarse=ranges, **every).recovered,
        "blind": 100 * differential(numbers, numbers, true.labels, coarse=ranges, **every).blind,
    }


def _exact(values: Matrix, labels: Matrix) -> float:
    """Return the mean width of the ranges of the cells, not rounded outwards, over the range of the column."""
    low, high = np.full(labels.max() + 1, np.inf), np.full(labels.max() + 1, -np.inf)
    np.minimum.at(low, labels, values)
    np.maximum.at(high, labels, values)
    return float(((high - low)[labels] / np.ptp(values)).mean())


def draw_classes(path: Path) -> None:
    """Draw some classes in one column: their published mean and their published interval. No record is drawn."""
    close, true = releases(10)
    pairs = zip(close.table[EXAMPLE].to_pylist(), true.table[EXAMPLE].to_pylist(), strict=True)
    classes = sorted(set(pairs))
    some = [classes[place] for place in np.linspace(0, len(classes) - 1, N_CLASSES).astype(int)]
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    for place, (mean, interval) in enumerate(some):
        ranges = shoal.read_published([interval])
        axes.plot(
            [ranges.low[0], ranges.high[0]], [place] * 2, color=COLORS["middle"], lw=6, solid_capstyle="butt", alpha=0.5
        )
        axes.plot(mean, place, "o", color=COLORS["mean"], ms=5)
    axes.set_yticks([])
    axes.set_ylabel("classes of at least 10 people")
    axes.set_xlabel(f"{EXAMPLE} (adjusted gross income, dollars)")
    axes.set_title("Close: the mean (dot). True: an interval that holds everybody (bar).", fontsize=10)
    figure.savefig(path, metadata={"Date": None})


def draw_statistics(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw what is left of standard deviations and correlations, by k."""
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    titles = {"sd": "change of standard deviations, %", "correlation": "mean change of correlations"}
    for axes, (measure, title) in zip(figure.subplots(1, 2), titles.items(), strict=True):
        for name, color in COLORS.items():
            axes.plot([row["k"] for row in rows], [row[name][measure] for row in rows], "o-", color=color, label=name)
        axes.axhline(0, color="#999999", lw=0.8)
        axes.set_xlabel("k")
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.25)
    figure.axes[0].legend(["mean of the class", "middle of the interval", "draw from the interval"], fontsize=8)
    figure.savefig(path, metadata={"Date": None})


@click.command()
@click.option("--quick", is_flag=True, help="One k, no pictures.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, output: Path | None) -> None:
    """Measure, and draw."""
    output = output or (SCRATCH if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    mpl.rcParams["svg.hashsalt"] = "shoal"
    rows = [measured(k) for k in (SIZES[:1] if quick else SIZES)]
    content = {**circumstances(quick), "data": "census", "draws": SEEDS, "rows": rows}
    output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    if not quick:
        draw_classes(IMAGES / "truthful-classes.svg")
        draw_statistics(rows, IMAGES / "truthful-statistics.svg")


if __name__ == "__main__":
    main()
