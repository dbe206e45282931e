"""The paper's figures 1 and 2, drawn from our numbers."""

from collections.abc import Iterator
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.paper import Content
from papers.pictures import Line, Panel, figure

LINES = {
    "max_emd": ("largest EMD", "#d95f0e", "-"),
    "mean_emd": ("mean EMD", "#d95f0e", "--"),
    "mse": ("MSE", "#4292c6", "-"),
    "mae": ("MAE", "#4292c6", "--"),
}


def figures(content: Content) -> Iterator[tuple[str, Figure]]:
    """Draw a picture for each data set and t: indicators against the weight, the strict model's as points."""
    results = content["results"]
    for data, t in dict.fromkeys((result.data, result.t) for result in results):
        some = [result for result in results if (result.data, result.t) == (data, t)]
        last = max(result.weight or 0 for result in some)
        lines = []
        for field, (label, colour, style) in LINES.items():
            steered = [(r.weight, getattr(r, field)) for r in some if r.weight is not None]
            strict = [(last, getattr(r, field)) for r in some if r.weight is None]
            lines += [Line(label, steered, colour, style), Line("", strict, colour, "o")]
        title = f"{data}, t = {t:g} (points: the strict model)"
        panel = Panel(title, "weight of the bucket attribute", "", lines, more=partial(_mark, t))
        yield f"{data.lower()}-t{t:g}", figure([panel], 1, (7, 4))


def _mark(t: float, axes: Axes) -> None:
    """Draw where t is."""
    axes.axhline(t, color="#8c8c8c", linewidth=0.8)
