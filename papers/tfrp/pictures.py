"""The paper's figures 5 to 13, drawn from our numbers."""

from collections.abc import Iterator, Sequence
from typing import Any

from matplotlib.figure import Figure

from papers.paper import Content
from papers.pictures import Line, Panel, figure
from papers.tfrp.images import NAMES
from papers.tfrp.methods import METHODS, Result
from papers.tfrp.printed import table_2

Settings = dict[str, Any]
STYLES = {
    "Diameter": ("#8c8c8c", "-"),
    "Diameter+": ("#8c8c8c", "--"),
    "Centroid": ("#4292c6", "-"),
    "Centroid+": ("#4292c6", "--"),
    "TFRP_I": ("#d95f0e", "-"),
    "TFRP": ("#d95f0e", "--"),
}
SMALL, LARGE = range(10), range(10, 1000)
LOSSES = {5: ("tarragona",), 6: ("census",), 7: ("eia-10", "eia-11")}


LOSS, TIME = ("il", "information loss (%)"), ("seconds", "time (s)")
LOG = {"yscale": "log"}


def figures(content: Content) -> Iterator[tuple[str, Figure]]:
    """Draw each figure for which there are numbers."""
    results: Sequence[Result] = content["results"]
    growing: Sequence[Result] = content["scalability"]
    for number, sets in LOSSES.items():
        pairs = [(data, sizes) for data in sets for sizes in (SMALL, LARGE)]
        panels = [
            _panel(data, [r for r in results if r.data == data and r.k in sizes], LOSS, _printed(data, sizes))
            for data, sizes in pairs
        ]
        yield f"figure-{number}", _figure(panels, 2)
    yield "figure-10", _sets(results, ("tarragona", "census", "eia-10"), TIME, LOG)
    for number, name in enumerate(NAMES):
        pictures = (f"{name}-2x2", f"{name}-4x4")
        if any(result.data in pictures for result in results):
            yield f"figure-{8 + number}", _sets(results, pictures, LOSS)
            yield f"figure-{11 + number}", _sets(results, pictures, TIME, LOG)
    if growing:
        title = f"{' and '.join(NAMES)}, 2x2, k = {growing[0].k}"
        yield "figure-13", _figure([_panel(title, growing, TIME, settings={**LOG, "xscale": "log"}, across="n")], 1)


def _sets(results: Sequence[Result], sets: Sequence[str], up: tuple[str, str], settings: Settings = {}) -> Figure:  # noqa: B006
    """Draw one panel for each data set."""
    panels = [_panel(data, [r for r in results if r.data == data], up, settings=settings) for data in sets]
    return _figure(panels, len(panels))


def _panel(
    title: str,
    results: Sequence[Result],
    up: tuple[str, str],
    marks: Sequence[Line] = (),
    settings: Settings = {},  # noqa: B006
    across: str = "k",
) -> Panel:
    """Draw one line for each method."""
    field, label = up
    lines = [
        Line(
            method,
            sorted((getattr(r, across), getattr(r, field)) for r in results if r.method == method),
            *STYLES[method],
        )
        for method in METHODS
    ]
    return Panel(title, across, label, [*lines, *marks], settings)


def _printed(data: str, sizes: range) -> list[Line]:
    """Mark the values of table 2 for both phases."""
    points = [(entry.k, entry.il) for entry in table_2() if entry.data == data and entry.k in sizes]
    return [Line("table 2", points, "black", "x")]


def _figure(panels: Sequence[Panel], columns: int) -> Figure:
    return figure(panels, columns, (3.6, 3.2), "below")
