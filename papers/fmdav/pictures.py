"""The pictures of F-MDAV's experiments: bars of speed-up, and times of sorting and selecting."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.fmdav.ablation import KERNEL, PAPERS_BEST, STRATEGIES, TOGETHER, Result
from papers.fmdav.sorting import Timing
from papers.paper import Content
from papers.pictures import Line, Panel, figure, in_order

BLUES = ("#9ecae1", "#4292c6", "#08519c", "#08306b")
PAPER_COLOUR = "#d95f0e"
LINES = {
    "sort": ("#d95f0e", "-"),
    "stable sort": ("#8c2d04", "--"),
    "select k=5": ("#c6dbef", "-"),
    "select k=10": ("#6baed6", "-"),
    "select k=20": ("#2171b5", "-"),
    "select k=50": ("#08306b", "-"),
    "min": ("#636363", ":"),
}


Group = tuple[str, Sequence[Result], float | None]
"""Bars that stand together: their name, and the largest speed-up that the paper reports."""


def figures(content: Content) -> Iterator[tuple[str, Figure]]:
    """Draw each picture."""
    yield "alone", alone(content["ablation"])
    yield "together", together(content["ablation"])
    if content["sorting"]:
        yield "sorting", sorting_times(content["sorting"])
        yield "sorting-per-number", sorting_times_per_number(content["sorting"])


def alone(ablation: Sequence[Result]) -> Figure:
    """Draw the speed-up of each strategy alone, one panel per data set (figures 6 to 8)."""
    groups: dict[str, list[Group]] = {
        data: [
            (
                title.replace(" ", "\n"),
                [r for r in ablation if (r.data, r.variant) == (data, title)],
                PAPERS_BEST[title],
            )
            for title in STRATEGIES.values()
        ]
        for data in in_order(result.data for result in ablation)
    }
    return _speed_ups(ablation, groups, True)


def together(ablation: Sequence[Result]) -> Figure:
    """Draw the speed-up of all five strategies together (figure 11), and of shoal's kernel beside it."""
    data = in_order(result.data for result in ablation)
    groups: dict[str, list[Group]] = {
        title: [
            (name.replace(", ", "\n"), [r for r in ablation if (r.data, r.variant) == (name, variant)], printed)
            for name in data
        ]
        for title, variant, printed in (
            ("all five, NumPy", TOGETHER, PAPERS_BEST[TOGETHER]),
            ("shoal's kernel, one thread", KERNEL, None),
        )
    }
    return _speed_ups(ablation, groups, False)


def _speed_ups(ablation: Sequence[Result], groups: dict[str, list[Group]], same_scale: bool) -> Figure:
    sizes = sorted({result.n for result in ablation})
    panels = [
        Panel(title, "", "speed-up over traditional MDAV", more=partial(_bars, some, sizes))
        for title, some in groups.items()
    ]
    return figure(panels, len(panels), (3.6, 3.6), "below", sharey=same_scale)


def sorting_times(sorting: Sequence[Timing]) -> Figure:
    """Draw the time of each way against the length of the list, both logarithmic (figure 9)."""
    lines = [
        Line(method, [(t.n, t.seconds) for t in sorting if t.method == method], *style)
        for method, style in LINES.items()
    ]
    return figure([_sorting_panel("time t (s)", lines, {"yscale": "log"})], 1, (5.4, 3.8))


def sorting_times_per_number(sorting: Sequence[Timing]) -> Figure:
    """Draw the time per number against the length of the list, that axis logarithmic (figure 10)."""
    per_number = [(t.method, t.n, t.seconds / t.n * 1e9) for t in sorting]
    lines = [
        Line(method, [(n, time) for way, n, time in per_number if way == method], *style)
        for method, style in LINES.items()
    ]
    # Below that the call itself takes most of the time.
    longer = [time for _, n, time in per_number if n >= 300]
    settings = {"ylim": (0, 1.1 * max(longer))} if longer else {}
    return figure([_sorting_panel("time per number t/n (ns)", lines, settings)], 1, (5.4, 3.8))


def _sorting_panel(label: str, lines: Sequence[Line], settings: Mapping[str, object]) -> Panel:
    return Panel("", "numbers in the list n", label, lines, {"xscale": "log", **settings})


def _bars(groups: Sequence[Group], sizes: Sequence[int], axes: Axes) -> None:
    """Draw the bars of each group, one per size, and the paper's; a size that a group lacks leaves a gap."""
    width, middles = 0.8 / max(1, len(sizes)), np.arange(len(groups))
    for i, n in enumerate(sizes):
        heights = [next((r.speedup for r in results if r.n == n), np.nan) for _, results, _ in groups]
        offsets = middles + (i - (len(sizes) - 1) / 2) * width
        axes.bar(offsets, heights, width, color=BLUES[i % len(BLUES)], label=f"n = {n:,}")
    axes.axhline(1, color="black", linewidth=0.6)
    printed = {middle: said for middle, (_, _, said) in enumerate(groups) if said is not None}
    if printed:
        at = np.array([*printed])
        axes.hlines([*printed.values()], at - 0.42, at + 0.42, color=PAPER_COLOUR, label="paper, up to")
    axes.set_xticks(middles, [name for name, _, _ in groups], fontsize=7)
