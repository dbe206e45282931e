"""Figure 3, drawn from our numbers."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from papers.paper import Content
from papers.pictures import Line, Panel, figure

SIDES = {
    "loss, columns from 0 to 1": {"mse": ("MSE", "#d95f0e", "-"), "mae": ("MAE", "#4292c6", "-")},
    "positions": {
        "displacement_max": ("ranks moved, largest", "#d95f0e", "-"),
        "displacement_mean": ("mean", "#d95f0e", "--"),
        "spread_max": ("spread of a cell, largest", "#8c8c8c", "-"),
    },
}


def figures(content: Content) -> Iterator[tuple[str, Figure]]:
    """Draw the figure."""
    shown = [point for point in content["figure_3"] if point.weight <= 0.05]
    panels = [
        Panel(
            "",
            "weight of one position",
            side,
            [
                Line(label, [(point.weight, getattr(point, name)) for point in shown], colour, style)
                for name, (label, colour, style) in lines.items()
            ],
        )
        for side, lines in SIDES.items()
    ]
    yield "figure-3", figure(panels, 2)
