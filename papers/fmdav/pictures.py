"""The pictures of F-MDAV's experiments: bars of speed-up, and times of sorting and selecting."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from papers.fmdav.ablation import KERNEL, PAPERS_BEST, STRATEGIES, TOGETHER, Result
from papers.fmdav.sorting import Timing

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


def draw(ablation: Sequence[Result], sorting: Sequence[Timing], folder: Path) -> None:
    """Write each picture into `folder` as PNG."""
    _save(alone(ablation), folder / "fmdav-alone.png")
    _save(together(ablation), folder / "fmdav-together.png")
    if sorting:
        _save(sorting_times(sorting), folder / "fmdav-sorting.png")
        _save(sorting_times_per_number(sorting), folder / "fmdav-sorting-per-number.png")


def alone(ablation: Sequence[Result]) -> Figure:
    """Draw the speed-up of each strategy alone, one panel per data set (figures 6 to 8)."""
    data = _in_order(result.data for result in ablation)
    figure = Figure(figsize=(3.6 * len(data), 3.6), layout="constrained")
    panels = figure.subplots(1, len(data), sharey=True, squeeze=False)[0]
    titles = list(STRATEGIES.values())
    for panel, name in zip(panels, data, strict=True):
        _bars(
            panel, [[r for r in ablation if (r.data, r.variant) == (name, title)] for title in titles], _sizes(ablation)
        )
        _mark_paper(panel, [PAPERS_BEST[title] for title in titles])
        panel.set_xticks(range(len(titles)), [title.replace(" ", "\n") for title in titles], fontsize=7)
        panel.set_title(name)
    panels[0].set_ylabel("speed-up over traditional MDAV")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def together(ablation: Sequence[Result]) -> Figure:
    """Draw the speed-up of all five strategies together (figure 11), and of shoal's kernel beside it."""
    data = _in_order(result.data for result in ablation)
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for panel, variant, title in zip(
        panels, (TOGETHER, KERNEL), ("all five, NumPy", "shoal's kernel, one thread"), strict=True
    ):
        _bars(
            panel, [[r for r in ablation if (r.data, r.variant) == (name, variant)] for name in data], _sizes(ablation)
        )
        panel.set_xticks(range(len(data)), [name.replace(", ", "\n") for name in data])
        panel.set_title(title)
    _mark_paper(panels[0], [PAPERS_BEST[TOGETHER]] * len(data))
    panels[0].set_ylabel("speed-up over traditional MDAV")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def sorting_times(sorting: Sequence[Timing]) -> Figure:
    """Draw the time of each way against the length of the list, both logarithmic (figure 9)."""
    figure, panel = _sorting_panel(sorting, per_number=False)
    panel.set_yscale("log")
    panel.set_ylabel("time t (s)")
    return figure


def sorting_times_per_number(sorting: Sequence[Timing]) -> Figure:
    """Draw the time per number against the length of the list, that axis logarithmic (figure 10)."""
    figure, panel = _sorting_panel(sorting, per_number=True)
    longer = [timing.seconds / timing.n * 1e9 for timing in sorting if timing.n >= 300]
    if longer:  # below that the call itself takes most of the time
        panel.set_ylim(0, 1.1 * max(longer))
    panel.set_ylabel("time per number t/n (ns)")
    return figure


def _sorting_panel(sorting: Sequence[Timing], per_number: bool) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(5.4, 3.8), layout="constrained")
    panel = figure.subplots()
    for method, (colour, style) in LINES.items():
        points = [timing for timing in sorting if timing.method == method]
        times = [p.seconds / p.n * 1e9 if per_number else p.seconds for p in points]
        panel.plot([p.n for p in points], times, style, color=colour, label=method, marker=".", markersize=4)
    panel.set_xscale("log")
    panel.set_xlabel("numbers in the list n")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=7)
    return figure, panel


def _sizes(ablation: Sequence[Result]) -> list[int]:
    return sorted({result.n for result in ablation})


def _bars(panel: Axes, groups: Sequence[Sequence[Result]], sizes: Sequence[int]) -> None:
    """Draw one group of bars per list, one bar per size; a size that a list lacks leaves a gap."""
    width = 0.8 / max(1, len(sizes))
    for i, n in enumerate(sizes):
        heights = [next((r.speedup for r in group if r.n == n), np.nan) for group in groups]
        offsets = np.arange(len(groups)) + (i - (len(sizes) - 1) / 2) * width
        panel.bar(offsets, heights, width, color=BLUES[i % len(BLUES)], label=f"n = {n:,}")
    panel.axhline(1, color="black", linewidth=0.6)


def _mark_paper(panel: Axes, heights: Sequence[float]) -> None:
    """Mark the paper's largest speed-up over each group."""
    middles = np.arange(len(heights))
    panel.hlines(heights, middles - 0.42, middles + 0.42, color=PAPER_COLOUR, label="paper, up to")


def _in_order(names: Iterable[str]) -> list[str]:
    """Return each name once, in order of appearance."""
    return list(dict.fromkeys(names))


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=110, metadata={"Software": None})
