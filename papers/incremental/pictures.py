"""The figures of the thesis, drawn from our runs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.incremental.formulas import CRITICAL_HEAD_START, critical_share, earliest, optimal_share
from papers.incremental.variant_runs import Result
from shoal.incremental.planning import Arrivals

COLOURS = {
    "2MDAV": "#2171b5",
    "NN": "#9a9a9a",
    "NN split-mid": "#fd8d3c",
    "NN split-end": "#d95f0e",
    "NN split-mid, inertial": "#9e9ac8",
    "NN split-end, inertial": "#54278f",
    "ours": "#238b45",
}
SHADES = ("#9ecae1", "#4292c6", "#08306b")


def draw(results: Sequence[Result], folder: Path) -> None:
    """Write each picture into `folder` as PNG."""
    for name, figure in {
        "figure-3.3": arrivals(),
        "figures-4.1-to-4.5": planner(),
        "figures-5.1-5.2": times_of_two_steps(results),
        "figure-5.3": losses_over_dims(results),
        "figures-5.4-to-5.6": losses_of_nearest(results),
        "figures-5.7-5.8": times_of_splits(results),
        "figures-5.9-5.10": comparison(results),
        "figure-6.3": advice(results),
    }.items():
        figure.savefig(folder / f"incremental-{name}.png", dpi=110, metadata={"Software": None})


def _panels(n: int, rows: int = 1, height: float = 3.4) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(4.2 * n, height * rows), layout="constrained")
    return figure, list(figure.subplots(rows, n, squeeze=False).flat)


def arrivals() -> Figure:
    """Draw three rates of arrival and the head start that they give (figure 3.3)."""
    times = np.linspace(0, 1, 101)
    curves = {"even": times, "most early": times**0.5, "most late": times**2}
    figure, panels = _panels(3)
    for panel, (name, shares) in zip(panels, curves.items(), strict=True):
        curve = Arrivals(tuple(times), tuple(shares))
        late = np.linspace(0, 1, 101)
        panel.plot(late, [curve.head_start(nu) for nu in late], color=SHADES[2])
        panel.set_title(name)
        _label(panel, "head start, in collections")
    return figure


def planner() -> Figure:
    """Draw the critical share, the optimal share, the gain, the earliest end and the discriminant (4.1 to 4.5)."""
    s = np.linspace(0, 4, 401)
    figure, panels = _panels(3, rows=2)
    panels[0].plot(s, [critical_share(x) for x in s], color=SHADES[2], label="critical share")
    panels[0].plot(s, 1 / (2 + s), "--", color=COLOURS["NN split-end"], label="1 / (2 + s)")
    panels[1].plot(s, [optimal_share(x) for x in s], color=SHADES[2], label="optimal share")
    for shade, head_start in zip(SHADES, (0.1, CRITICAL_HEAD_START, 2), strict=True):
        nu = np.linspace(0, 1, 201)
        gain = np.minimum(nu * (2 + head_start - nu), 1) - nu**2
        panels[2].plot(nu, gain, color=shade, label=f"s = {head_start:.2g}")
    panels[3].plot(s, [earliest(x) for x in s], color=SHADES[2], label="earliest end")
    panels[4].plot(s, [(2 + x) ** 2 - 8 * (1 - earliest(x)) for x in s], color=SHADES[2], label="discriminant")
    panels[5].axis("off")
    for panel in panels[:5]:
        panel.set_xlabel("head-start coefficient s")
        panel.legend(fontsize=8)
        panel.grid(alpha=0.3)
    panels[2].set_xlabel("late share nu")
    panels[2].set_ylabel("relative time gain")
    return figure


def times_of_two_steps(results: Sequence[Result]) -> Figure:
    """Draw tau_0 + tau_+ and tau_+ of 2MDAV, plain NumPy and shoal's kernels (figures 5.1 and 5.2)."""
    return _times(results, ("2MDAV",))


def times_of_splits(results: Sequence[Result]) -> Figure:
    """Draw the same for nearest neighbours with splits (figures 5.7 and 5.8)."""
    return _times(results, ("NN split-mid", "NN split-end"))


def _times(results: Sequence[Result], lines: Sequence[str]) -> Figure:
    data = _data(results)
    figure, panels = _panels(len(data), rows=2)
    nu = np.linspace(0, 1, 101)
    for column, name in enumerate(data):
        above, below = panels[column], panels[len(data) + column]
        for line in lines:
            for k, style in zip(sorted({r.k for r in results}), ("-", "--"), strict=False):
                mine = [r for r in _widest(results, name) if (r.line, r.k) == (line, k)]
                _line(above, mine, lambda r: _sum(r.plain_tau_0, r.plain_tau_plus), style, f"{line}, k={k}, plain")
                _line(below, mine, lambda r: r.plain_tau_plus, style, f"{line}, k={k}, plain")
                if k == 10:
                    _line(below, mine, lambda r: r.tau_plus, ":", f"{line}, k={k}, shoal's kernels")
        below.plot(nu, nu**2, color="black", linewidth=0.7, label="nu squared")
        below.plot(nu, 1 - (1 - nu) ** 2 + nu, color="black", linewidth=0.7, linestyle=":", label="bound, s = 1")
        below.set_ylim(0, 2)
        above.set_title(name)
        _label(above, "tau_0 + tau_+")
        _label(below, "tau_+")
        below.legend(fontsize=7)
    return figure


def losses_over_dims(results: Sequence[Result]) -> Figure:
    """Draw delta of 2MDAV for several numbers of columns, k = 10 (figure 5.3)."""
    data = _data(results)
    figure, panels = _panels(len(data))
    for panel, name in zip(panels, data, strict=True):
        mine = [r for r in results if (r.data, r.k, r.line) == (name, 10, "2MDAV")]
        for shade, dims in zip(SHADES, sorted({r.dims for r in mine}), strict=False):
            _line(panel, [r for r in mine if r.dims == dims], lambda r: r.delta, "-", f"{dims} columns", shade)
        panel.set_title(name)
        _label(panel, "delta")
        panel.legend(fontsize=8)
    return figure


def losses_of_nearest(results: Sequence[Result]) -> Figure:
    """Draw delta without splits, with splits, and with inertia (figures 5.4 to 5.6)."""
    data = _data(results)
    figure, panels = _panels(3, rows=len(data))
    for row, name in enumerate(data):
        mine = _widest(results, name)
        without, splits, inertia = panels[3 * row : 3 * row + 3]
        for k, style in zip(sorted({r.k for r in mine}), ("-", "--"), strict=False):
            _line(without, [r for r in mine if (r.line, r.k) == ("NN", k)], lambda r: r.delta, style, f"NN, k={k}")
        for panel, lines in (
            (splits, ("NN split-mid", "NN split-end")),
            (inertia, ("NN split-mid", "NN split-mid, inertial", "NN split-end", "NN split-end, inertial")),
        ):
            for line in lines:
                _line(panel, [r for r in mine if (r.line, r.k) == (line, 10)], lambda r: r.delta, "-", line)
        for panel in (without, splits, inertia):
            panel.set_title(name)
            _label(panel, "delta")
            panel.legend(fontsize=7)
    return figure


def comparison(results: Sequence[Result]) -> Figure:
    """Draw time and loss of 2MDAV, NN split-end and ours, k = 10 (figures 5.9 and 5.10)."""
    data = _data(results)
    figure, panels = _panels(2, rows=len(data))
    for row, name in enumerate(data):
        mine = [r for r in _widest(results, name) if r.k == 10]
        for line in ("2MDAV", "NN split-end", "ours"):
            some = [r for r in mine if r.line == line]
            _line(panels[2 * row], some, lambda r: r.plain_tau_plus, "-", f"{line}, plain")
            _line(panels[2 * row], some, lambda r: r.tau_plus, ":", f"{line}, shoal's kernels")
            _line(panels[2 * row + 1], some, lambda r: r.delta, "-", line)
        panels[2 * row].set_ylim(0, 2)
        for panel, text in ((panels[2 * row], "tau_+"), (panels[2 * row + 1], "delta")):
            panel.set_title(name)
            _label(panel, text)
            panel.legend(fontsize=7)
    return figure


def advice(results: Sequence[Result]) -> Figure:
    """Draw which variant is the fastest, and which loses least, at each share (figure 6.3)."""
    data = _data(results)
    figure, panels = _panels(len(data), height=2.8)
    for panel, name in zip(panels, data, strict=True):
        mine = [r for r in _widest(results, name) if r.k == 10]
        rows = {
            "less time, plain": (lambda r: r.plain_tau_plus, ("2MDAV", "NN split-end")),
            "less loss": (lambda r: r.delta, ("2MDAV", "NN split-end")),
            "least loss, with ours": (lambda r: r.delta, ("2MDAV", "NN split-end", "ours")),
        }
        shares = sorted({r.nu for r in mine})
        for y, (of, lines) in enumerate(rows.values()):
            for nu in shares:
                best = _best([r for r in mine if r.nu == nu and r.line in lines], of)
                if best is not None:
                    panel.scatter(nu, y, s=120, marker="s", color=COLOURS[best])
        panel.set_yticks(range(len(rows)), list(rows), fontsize=8)
        panel.set_ylim(-0.6, len(rows) - 0.4)
        panel.set_xlabel("late share nu")
        panel.set_title(name)
        for line in ("2MDAV", "NN split-end", "ours"):
            panel.scatter([], [], marker="s", color=COLOURS[line], label=line)
        panel.legend(fontsize=7, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.3))
    return figure


def _best(results: Sequence[Result], of: Callable[[Result], float | None]) -> str | None:
    known = [(value, r.line) for r in results if (value := of(r)) is not None]
    return min(known)[1] if known else None


def _data(results: Sequence[Result]) -> list[str]:
    return list(dict.fromkeys(r.data for r in results))


def _widest(results: Sequence[Result], data: str) -> list[Result]:
    mine = [r for r in results if r.data == data]
    return [r for r in mine if r.dims == max(other.dims for other in mine)]


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _line(
    panel: Axes,
    results: Sequence[Result],
    of: Callable[[Result], float | None],
    style: str,
    label: str,
    colour: str | None = None,
) -> None:
    points = [(r.nu, value) for r in results if (value := of(r)) is not None]
    if points:
        colour = colour or COLOURS[results[0].line]
        panel.plot(*zip(*points, strict=True), style, color=colour, label=label, marker=".", markersize=4)


def _label(panel: Axes, text: str) -> None:
    panel.set_xlabel("late share nu")
    panel.set_ylabel(text)
    panel.grid(alpha=0.3)
