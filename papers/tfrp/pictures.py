"""The paper's figures 5 to 13, drawn from our numbers."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.tfrp.images import NAMES
from papers.tfrp.methods import METHODS, Result
from papers.tfrp.printed import table_2

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


def draw(results: Sequence[Result], scalability: Sequence[Result], folder: Path) -> None:
    """Write each figure for which there are numbers into `folder` as PNG."""
    for number, data in LOSSES.items():
        _save(losses_by_k(results, data), folder, number)
    _save(times(results, ("tarragona", "census", "eia-10")), folder, 10)
    for number, name in enumerate(NAMES):
        sets = (f"{name}-2x2", f"{name}-4x4")
        if any(result.data in sets for result in results):
            _save(losses(results, sets), folder, 8 + number)
            _save(times(results, sets), folder, 11 + number)
    if scalability:
        _save(growth(scalability), folder, 13)


def losses_by_k(results: Sequence[Result], sets: Sequence[str]) -> Figure:
    """Draw the loss against k, small k on the left and large k on the right (figures 5 to 7)."""
    figure, panels = _panels(len(sets), 2)
    for row, data in zip(panels, sets, strict=True):
        for panel, sizes in zip(row, (SMALL, LARGE), strict=True):
            _lines(panel, [result for result in results if result.data == data and result.k in sizes], "k", "il")
            _mark_paper(panel, data, sizes)
            panel.set_title(data)
            panel.set_ylabel("information loss (%)")
    return _with_legend(figure, panels[0][0])


def losses(results: Sequence[Result], sets: Sequence[str]) -> Figure:
    """Draw the loss against k, one panel for each data set (figures 8 and 9)."""
    figure, panels = _panels(1, len(sets))
    for panel, data in zip(panels[0], sets, strict=True):
        _lines(panel, [result for result in results if result.data == data], "k", "il")
        panel.set_title(data)
        panel.set_ylabel("information loss (%)")
    return _with_legend(figure, panels[0][0])


def times(results: Sequence[Result], sets: Sequence[str]) -> Figure:
    """Draw the time against k, logarithmic, one panel for each data set (figures 10 to 12)."""
    figure, panels = _panels(1, len(sets))
    for panel, data in zip(panels[0], sets, strict=True):
        _lines(panel, [result for result in results if result.data == data], "k", "seconds")
        panel.set_yscale("log")
        panel.set_title(data)
        panel.set_ylabel("time (s)")
    return _with_legend(figure, panels[0][0])


def growth(scalability: Sequence[Result]) -> Figure:
    """Draw the time against the number of records, both logarithmic (figure 13)."""
    figure, panels = _panels(1, 1)
    panel = panels[0][0]
    _lines(panel, scalability, "n", "seconds")
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_title(f"{' and '.join(NAMES)}, 2x2, k = {scalability[0].k}")
    panel.set_ylabel("time (s)")
    return _with_legend(figure, panel)


def _panels(n_rows: int, n_columns: int) -> tuple[Figure, list[list[Axes]]]:
    figure = Figure(figsize=(max(3.6 * n_columns, 5.0), 3.0 * n_rows + 0.6), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False).tolist()


def _lines(panel: Axes, results: Sequence[Result], across: str, up: str) -> None:
    """Draw one line for each method."""
    for method in METHODS:
        points = sorted((getattr(one, across), getattr(one, up)) for one in results if one.method == method)
        colour, style = STYLES[method]
        panel.plot(*zip(*points, strict=True), style, color=colour, label=method, marker=".", markersize=4)
    panel.set_xlabel(across)
    panel.grid(alpha=0.3)


def _mark_paper(panel: Axes, data: str, sizes: range) -> None:
    """Mark the values of table 2 for both phases."""
    printed = [entry for entry in table_2() if entry.data == data and entry.k in sizes]
    at, losses = [entry.k for entry in printed], [entry.il for entry in printed]
    panel.plot(at, losses, "o", color="black", fillstyle="none", markersize=6, markeredgewidth=0.6, label="table 2")


def _with_legend(figure: Figure, panel: Axes) -> Figure:
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=7, fontsize=7)
    return figure


def _save(figure: Figure, folder: Path, number: int) -> None:
    figure.savefig(folder / f"tfrp-figure-{number}.png", dpi=110, metadata={"Software": None})
