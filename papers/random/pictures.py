"""The pictures of random aggregation: figures 4 to 7, and the intruder who knows k - 1 records."""

from collections.abc import Iterator

from matplotlib.figure import Figure

from papers.paper import Content
from papers.pictures import Line, Panel, figure, in_order

Point = tuple[str, str, int, float]
"""A point: data set, curve, k and value."""


def figures(content: Content) -> Iterator[tuple[str, Figure]]:
    """Draw each picture: curves against k, one panel for each data set."""
    cuts, rhos = content["partitions"], [(line, f"rho = {line.rho:g}") for line in content["scattered"]]
    pictures: dict[tuple[str, str], list[Point]] = {
        ("time", "processor seconds"): [(line.data, line.method, line.k, line.seconds) for line in cuts],
        ("partitions", "IL in %"): [(line.data, line.method, line.k, line.il) for line in cuts],
        ("loss", "IL in %"): [(line.data, rho, line.k, line.il) for line, rho in rhos],
        ("dld", "DLD (within two)"): [(line.data, rho, line.k, line.dld_within_2) for line, rho in rhos],
        ("attack", "share recovered, k - 1 known"): [(line.data, rho, line.k, line.recovered) for line, rho in rhos],
    }
    for (name, label), points in pictures.items():
        panels = []
        for data in in_order(point[0] for point in points):
            lines = [
                Line(curve, [(k, value) for where, title, k, value in points if (where, title) == (data, curve)])
                for curve in in_order(point[1] for point in points)
            ]
            panels.append(Panel(data, "k", label, lines, {"ylim": (0, None)}))
        yield name, figure(panels, len(panels))
