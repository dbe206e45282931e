"""Pictures as data: panels with lines, drawn the same way for every paper."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure


class Line(NamedTuple):
    """Points joined by a line; those without a value are left out."""

    label: str
    points: Iterable[tuple[float, float | None]]
    colour: str | None = None
    style: str = ".-"


class Panel(NamedTuple):
    """A coordinate system, and what `matplotlib.axes.Axes.set` sets of it."""

    title: str
    x: str
    y: str
    lines: Sequence[Line] = ()
    settings: dict[str, Any] = {}  # noqa: RUF012 - never changed
    more: Callable[[Axes], object] = lambda axes: None
    """Draws what is not a line."""


def figure(
    panels: Sequence[Panel], columns: int, size: tuple[float, float] = (4.2, 3.4), legend: str = "each", **shared: Any
) -> Figure:
    """Draw panels of a size, row by row; the legend is in each panel, or that of the first `below` them all."""
    n_rows = -(-len(panels) // columns)
    whole = Figure(figsize=(max(size[0] * columns, 5.0), size[1] * n_rows), layout="constrained")
    places = list(whole.subplots(n_rows, columns, squeeze=False, **shared).flat)
    for axes, panel in zip(places, panels, strict=False):
        for line in panel.lines:
            points = [(x, y) for x, y in line.points if y is not None]
            if points:
                axes.plot(*zip(*points, strict=True), line.style, color=line.colour, label=line.label, markersize=4)
        panel.more(axes)
        axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y, **panel.settings)
        axes.grid(alpha=0.3)
        if legend == "each" and axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=7)
    for axes in places[len(panels) :]:
        axes.axis("off")
    if legend == "below":
        whole.legend(*places[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=7)
    return whole


def in_order(names: Iterable[str]) -> list[str]:
    """Return each name once, in order of appearance."""
    return list(dict.fromkeys(names))
