"""The paper's figures 1 and 2, drawn from our numbers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

LINES = {
    "max_emd": ("largest EMD", "#d95f0e", "-"),
    "mean_emd": ("mean EMD", "#d95f0e", "--"),
    "mse": ("MSE", "#4292c6", "-"),
    "mae": ("MAE", "#4292c6", "--"),
}


def draw(results: Sequence[Any], folder: Path) -> None:
    """Write a picture for each data set and t: indicators against the weight, the strict model's as points."""
    for data, t in dict.fromkeys((result.data, result.t) for result in results):
        some = [result for result in results if (result.data, result.t) == (data, t)]
        figure = Figure(figsize=(7, 4), layout="constrained")
        panel = figure.subplots()
        steered = [result for result in some if result.weight is not None]
        for field, (label, colour, style) in LINES.items():
            panel.plot(
                [result.weight for result in steered],
                [getattr(result, field) for result in steered],
                color=colour,
                linestyle=style,
                label=label,
            )
            strict = [getattr(result, field) for result in some if result.weight is None]
            panel.plot([steered[-1].weight] * len(strict), strict, "o", color=colour, fillstyle="none")
        panel.axhline(t, color="#8c8c8c", linewidth=0.8)
        panel.set(xlabel="weight of the bucket attribute", title=f"{data}, t = {t:g} (points: the strict model)")
        panel.legend()
        figure.savefig(folder / f"{data.lower()}-t{t:g}.png", dpi=150)
