"""The pictures of random aggregation: figures 4 to 7, and the intruder who knows k - 1 records."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from papers.random import Partitioned, Scattered

Point = tuple[str, str, int, float]
"""A point: data set, curve, k and value."""


def draw(cuts: Sequence[Partitioned], spread: Sequence[Scattered], folder: Path) -> None:
    """Write each picture into `folder` as PNG."""
    rhos = [(line, f"rho = {line.rho:g}") for line in spread]
    pictures: dict[tuple[str, str], list[Point]] = {
        ("time", "processor seconds"): [(line.data, line.method, line.k, line.seconds) for line in cuts],
        ("partitions", "IL in %"): [(line.data, line.method, line.k, line.il) for line in cuts],
        ("loss", "IL in %"): [(line.data, rho, line.k, line.il) for line, rho in rhos],
        ("dld", "DLD (within two)"): [(line.data, rho, line.k, line.dld_within_2) for line, rho in rhos],
        ("attack", "share recovered, k - 1 known"): [(line.data, rho, line.k, line.recovered) for line, rho in rhos],
    }
    for (name, label), points in pictures.items():
        _curves(points, label).savefig(folder / f"random-{name}.png", dpi=120)


def _curves(points: Sequence[Point], label: str) -> Figure:
    """Draw curves against k, one panel for each data set."""
    data = list(dict.fromkeys(point[0] for point in points))
    figure = Figure(figsize=(4.2 * len(data), 3.4), layout="constrained")
    for panel, name in zip(figure.subplots(1, len(data), squeeze=False)[0], data, strict=True):
        for curve in dict.fromkeys(point[1] for point in points):
            here = [(k, value) for where, title, k, value in points if (where, title) == (name, curve)]
            panel.plot(*zip(*here, strict=True), marker="o", markersize=3, label=curve)
        panel.set(title=name, xlabel="k", ylabel=label, ylim=(0, None))
        panel.legend(fontsize=7)
    return figure
