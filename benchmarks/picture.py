"""Draw loss and time of every method, from the results of bench_partition.py: docs/img/methods.png."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from contenders import shoal

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "partition.json"
PICTURE = ROOT / "docs" / "img" / "methods.png"
SECTION = "algorithms"
OURS = shoal("")
K = 10
# Left out: one is for a single column and would compress the scale of the others; the other equals MDAV here.
LEFT_OUT = (shoal("univariate"), shoal("blocks"))


def panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each data set at k = 10, methods of shoal only."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        ours = row["method"].startswith(OURS) and row["method"] not in LEFT_OUT
        if row["section"] == SECTION and row["k"] == K and ours:
            found.setdefault(f"{row['data']}, {row['n']:,} x {row['dims']}", []).append(row)
    return found


def draw(axes: Axes, title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Draw one data set: time to the right, loss upwards."""
    axes.set_title(title, fontsize=10)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.set_ylabel("information loss in %")
    for place, row in enumerate(sorted(rows, key=lambda row: (row["il"], row["method"]))):
        name = row["method"].removeprefix(OURS)
        best = name == "auto"
        at = (1e3 * row["seconds"], row["il"])
        axes.plot(*at, "o", color="#c2410c" if best else "#1e5a7d", markersize=7 if best else 5)
        beside = (6, 3) if place % 2 else (-6, -9)
        axes.annotate(
            name, at, xytext=beside, textcoords="offset points", fontsize=8, ha="left" if place % 2 else "right"
        )
    axes.margins(0.15)
    axes.grid(alpha=0.25)


@click.command()
def main() -> None:
    """Draw the picture of the methods."""
    found = panels(json.loads(RESULTS.read_text(encoding="utf-8"))["rows"])
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    for axes, (title, rows) in zip(figure.subplots(2, 2).flat, found.items(), strict=True):
        draw(axes, title, rows)
    figure.suptitle(f"k = {K}, one thread: down and to the left is better", fontsize=11)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
