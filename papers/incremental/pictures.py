"""The figures of the thesis, drawn from our runs."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.incremental.formulas import CRITICAL_HEAD_START, critical_share, earliest, optimal_share
from papers.incremental.variant_runs import Result, total
from papers.paper import Content
from papers.pictures import Line, Panel, figure, in_order
from shoal.incremental.planning import Arrivals

Value = Callable[[Result], float | None]

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


LATE, SHARES = "late share nu", np.linspace(0, 1, 101)


def figures(content: Content) -> Iterator[tuple[str, Figure]]:
    """Draw each picture."""
    results: Sequence[Result] = content["results"]
    sets = {name: _widest([r for r in results if r.data == name]) for name in in_order(r.data for r in results)}
    yield "figure-3.3", arrivals()
    yield "figures-4.1-to-4.5", planner()
    yield "figures-5.1-5.2", times(sets, ("2MDAV",))
    yield "figure-5.3", losses_over_dims(results)
    yield "figures-5.4-to-5.6", losses_of_nearest(sets)
    yield "figures-5.7-5.8", times(sets, ("NN split-mid", "NN split-end"))
    yield "figures-5.9-5.10", comparison(sets)
    yield "figure-6.3", advice(sets)


def delta(result: Result) -> float | None:
    """Return the relative extra loss."""
    return result.delta


def plain_late(result: Result) -> float | None:
    """Return tau_+ of plain NumPy."""
    return result.plain_tau_plus


def late(result: Result) -> float | None:
    """Return tau_+ of shoal's kernels."""
    return result.tau_plus


def arrivals() -> Figure:
    """Draw three rates of arrival and the head start that they give (figure 3.3)."""
    panels = []
    for name, shares in {"even": SHARES, "most early": SHARES**0.5, "most late": SHARES**2}.items():
        curve = Arrivals(tuple(SHARES), tuple(shares))
        line = Line("", [(nu, curve.head_start(nu)) for nu in SHARES], SHADES[2], "-")
        panels.append(Panel(name, LATE, "head start, in collections", [line]))
    return figure(panels, 3)


def planner() -> Figure:
    """Draw the critical share, the optimal share, the gain, the earliest end and the discriminant (4.1 to 4.5)."""
    s = np.linspace(0, 4, 401)
    curves: dict[str, Callable[[float], float]] = {
        "critical share": critical_share,
        "optimal share": optimal_share,
        "earliest end": earliest,
        "discriminant": lambda x: (2 + x) ** 2 - 8 * (1 - earliest(x)),
    }
    first, second, *rest = (
        Panel("", "head-start coefficient s", "", [Line(label, [(x, curve(x)) for x in s], SHADES[2], "-")])
        for label, curve in curves.items()
    )
    approximate = Line("1 / (2 + s)", [(x, 1 / (2 + x)) for x in s], COLOURS["NN split-end"], "--")
    gains = [
        Line(f"s = {x:.2g}", [(nu, min(nu * (2 + x - nu), 1) - nu**2) for nu in SHARES], shade, "-")
        for shade, x in zip(SHADES, (0.1, CRITICAL_HEAD_START, 2), strict=True)
    ]
    first = first._replace(lines=[*first.lines, approximate])
    return figure([first, second, Panel("", LATE, "relative time gain", gains), *rest], 3)


def times(sets: dict[str, list[Result]], lines: Sequence[str]) -> Figure:
    """Draw tau_0 + tau_+ and tau_+ of some variants, plain NumPy and shoal's kernels (figures 5.1, 5.2, 5.7, 5.8)."""
    above, below = [], []
    limits = [
        Line("nu squared", [(nu, nu**2) for nu in SHARES], "black", "-"),
        Line("bound, s = 1", [(nu, 1 - (1 - nu) ** 2 + nu) for nu in SHARES], "black", ":"),
    ]
    for name, results in sets.items():
        styles = dict(zip(sorted({r.k for r in results}), (".-", ".--"), strict=False))
        upper, lower = (
            [_line(results, of, line, k, style, "plain") for line in lines for k, style in styles.items()]
            for of in (total, plain_late)
        )
        kernels = [_line(results, late, line, 10, ":", "shoal's kernels") for line in lines]
        above.append(Panel(name, LATE, "tau_0 + tau_+", upper))
        below.append(Panel(name, LATE, "tau_+", [*lower, *kernels, *limits], {"ylim": (0, 2)}))
    return figure([*above, *below], len(sets))


def losses_over_dims(results: Sequence[Result]) -> Figure:
    """Draw delta of 2MDAV for several numbers of columns, k = 10 (figure 5.3)."""
    panels = []
    for name in in_order(r.data for r in results):
        mine = [r for r in results if r.data == name]
        lines = [
            _line([r for r in mine if r.dims == dims], delta, "2MDAV")._replace(label=f"{dims} columns", colour=shade)
            for shade, dims in zip(SHADES, sorted({r.dims for r in mine}), strict=False)
        ]
        panels.append(Panel(name, LATE, "delta", lines))
    return figure(panels, len(panels))


def losses_of_nearest(sets: dict[str, list[Result]]) -> Figure:
    """Draw delta without splits, with splits, and with inertia (figures 5.4 to 5.6)."""
    panels = []
    splits = ("NN split-mid", "NN split-end")
    inertial = ("NN split-mid", "NN split-mid, inertial", "NN split-end", "NN split-end, inertial")
    for name, results in sets.items():
        styles = zip(sorted({r.k for r in results}), (".-", ".--"), strict=False)
        without = [_line(results, delta, "NN", k, style) for k, style in styles]
        some = [[_line(results, delta, line) for line in lines] for lines in (splits, inertial)]
        panels += [Panel(name, LATE, "delta", lines) for lines in (without, *some)]
    return figure(panels, 3)


def comparison(sets: dict[str, list[Result]]) -> Figure:
    """Draw time and loss of 2MDAV, NN split-end and ours, k = 10 (figures 5.9 and 5.10)."""
    panels = []
    for name, results in sets.items():
        lines = ("2MDAV", "NN split-end", "ours")
        times = [_line(results, plain_late, line, what="plain") for line in lines]
        times += [_line(results, late, line, style=":", what="shoal's kernels") for line in lines]
        panels.append(Panel(name, LATE, "tau_+", times, {"ylim": (0, 2)}))
        panels.append(Panel(name, LATE, "delta", [_line(results, delta, line) for line in lines]))
    return figure(panels, 2)


def advice(sets: dict[str, list[Result]]) -> Figure:
    """Draw which variant is the fastest, and which loses least, at each share (figure 6.3)."""
    panels = [
        Panel(name, LATE, "", more=partial(_best_variants, [r for r in results if r.k == 10]))
        for name, results in sets.items()
    ]
    return figure(panels, len(panels), legend="below")


def _best_variants(results: Sequence[Result], axes: Axes) -> None:
    lines = ("2MDAV", "NN split-end", "ours")
    rows: dict[str, tuple[Value, Sequence[str]]] = {
        "less time, plain": (plain_late, lines[:2]),
        "less loss": (delta, lines[:2]),
        "least loss, with ours": (delta, lines),
    }
    for y, (of, mine) in enumerate(rows.values()):
        for nu in sorted({r.nu for r in results}):
            known = [(value, r.line) for r in results if r.nu == nu and r.line in mine and (value := of(r)) is not None]
            if known:
                axes.scatter(nu, y, s=120, marker="s", color=COLOURS[min(known)[1]])
    axes.set_yticks(range(len(rows)), list(rows), fontsize=8)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    for line in lines:
        axes.scatter([], [], marker="s", color=COLOURS[line], label=line)


def _widest(results: list[Result]) -> list[Result]:
    return [r for r in results if r.dims == max(other.dims for other in results)]


def _line(results: Sequence[Result], of: Value, line: str, k: int = 10, style: str = ".-", what: str = "") -> Line:
    """Return one value of a variant over the shares."""
    points = [(r.nu, of(r)) for r in results if (r.line, r.k) == (line, k)]
    return Line(", ".join(part for part in (line, f"k={k}", what) if part), points, COLOURS[line], style)
