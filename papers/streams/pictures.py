"""Figure 3, drawn from our numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from papers.streams import Point


def draw(points: "Sequence[Point]", folder: Path) -> None:
    """Write the figure into `folder` as PNG."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    shown = [point for point in points if point.weight <= 0.05]
    weights = [point.weight for point in shown]
    left.plot(weights, [point.mse for point in shown], color="#d95f0e", label="MSE")
    left.plot(weights, [point.mae for point in shown], color="#4292c6", label="MAE")
    left.set_ylabel("loss, columns from 0 to 1")
    right.plot(weights, [point.displacement_max for point in shown], color="#d95f0e", label="ranks moved, largest")
    right.plot(weights, [point.displacement_mean for point in shown], color="#d95f0e", ls="--", label="mean")
    right.plot(weights, [point.spread_max for point in shown], color="#8c8c8c", label="spread of a cell, largest")
    right.set_ylabel("positions")
    for panel in (left, right):
        panel.set_xlabel("weight of one position")
        panel.legend(frameon=False)
    figure.savefig(folder / "streams-figure-3.png", dpi=130)
