"""Figures: the counts among the facts, drawn as SVG.

Colours come from the page, so that a figure follows its light or dark mode. No information is in colour alone: before
is an outline and after is filled, a negative correlation has its sign. Long names are cut; tooltips show them in full.
"""

from collections.abc import Mapping, Sequence
from math import cos, sin, sqrt
from typing import Any

from markupsafe import Markup

from shoal.output.report.binning import round_step
from shoal.output.report.formatting import counted, number, percent, shortened, shown, tick
from shoal.output.report.frequencies import bin_range
from shoal.output.report.svg import drawing, element, line, path, rect, text

CARD = 340
"""Width of a full-width picture, in units of about one pixel."""

_SIDES = {"before": "before", "after": "published"}
_GOLDEN_ANGLE = 2.399963


def distribution_figure(distribution: Mapping[str, Any]) -> Markup | None:
    """Return the picture of one column, or None if there is nothing to draw."""
    draw = {"histogram": histogram, "bars": bars}.get(distribution["figure"])
    return draw(distribution) if draw else None


def histogram(distribution: Mapping[str, Any]) -> Markup:
    """Draw counts in bins: published values as filled bars, the original as an outline over them."""
    bins = distribution["bins"]
    sides = [side for side in _SIDES if side in bins[0]]
    shares = {side: _shares([bin[side] for bin in bins]) for side in sides}
    units = [bin["units"] for bin in bins]
    tallest = max(share / unit for side in sides for share, unit in zip(shares[side], units, strict=True))
    height = 148
    bottom, scale = height - 22.0, (CARD - 12) / sum(units)
    lefts = [6.0 + scale * sum(units[:i]) for i in range(len(bins) + 1)]

    def top(side: str, i: int) -> float:
        return float(bottom - (bottom - 8) * shares[side][i] / units[i] / tallest)

    drawn = [
        rect(lefts[i] + 0.5, top("after", i), lefts[i + 1] - lefts[i] - 1, bottom - top("after", i), class_="after")
        for i in range(len(bins))
    ]
    if "before" in sides:
        steps = [
            point
            for i in range(len(bins))
            for point in ((lefts[i], top("before", i)), (lefts[i + 1], top("before", i)))
        ]
        drawn.append(path([(lefts[0], bottom), *steps, (lefts[-1], bottom)], class_="before"))
    # Invisible rectangles on top, as high as the picture, which carry the tooltips.
    drawn += [
        rect(lefts[i], 4, lefts[i + 1] - lefts[i], bottom - 4, _bin_title(bins, shares, i), class_="touch")
        for i in range(len(bins))
    ]
    marks = [*(bin["from"] for bin in bins), bins[-1]["to"]]
    # The upper edge of the last bin is not part of it: for whole numbers it would be one too many.
    n_marks = len(marks) - (distribution["scale"] == "whole")
    return drawing(
        CARD,
        height,
        f"Distribution of {shown(distribution['name'])}",
        f"{counted(len(bins), 'bin')} from {marks[0]} to {marks[-1]}"
        + (", before and after." if "before" in sides else "."),
        *drawn,
        line(6, bottom, CARD - 6, bottom, class_="axis"),
        *_axis_labels(lefts[:n_marks], marks[:n_marks], bottom + 15),
    )


def _shares(counts: Sequence[int]) -> list[float]:
    total = sum(counts) or 1
    return [count / total for count in counts]


def _bin_title(bins: Sequence[Mapping[str, Any]], shares: Mapping[str, list[float]], i: int) -> str:
    told = ", ".join(f"{percent(shares[side][i])} {_SIDES[side]}" for side in shares)
    return f"{bin_range(bins, i)}: {told}"


def _axis_labels(places: Sequence[float], labels: Sequence[str], y: float) -> list[Markup]:
    """Return as many labels as fit side by side, the first and the last among them."""
    widths = [6.2 * len(label) for label in labels]
    last = len(labels) - 1
    right = min(places[last] + widths[last] / 2, CARD - 2)
    end = right - widths[last]
    chosen = [text(labels[last], right, y, class_="tick", text_anchor="end")]
    edge = -1.0
    for place, label, width in zip(places[:last], labels[:last], widths[:last], strict=True):
        left = place if edge < 0 else place - width / 2
        if left >= edge and left + width + 8 <= end:
            chosen.append(text(label, place, y, class_="tick", text_anchor="start" if edge < 0 else "middle"))
            edge = left + max(width + 12, 46)
    return chosen


def bars(distribution: Mapping[str, Any]) -> Markup:
    """Draw the share of each category: published as a filled bar, before as an outline above it."""
    rows = [(row["category"], row, "") for row in distribution["bars"]]
    others = distribution.get("others")
    if others:
        rows.append((f"other ({counted(others['categories'], 'category')})", others, " pooled"))
    sides = [side for side in _SIDES if side in rows[0][1]]
    totals = {side: sum(row[side] for _, row, _ in rows) or 1 for side in sides}
    most = max((row[side] / totals[side] for _, row, style in rows for side in sides if not style), default=1.0)
    pitch = 24.0 if len(sides) == 2 else 19.0
    drawn: list[Markup] = []
    for i, (name, row, style) in enumerate(rows):
        shares = {side: row[side] / totals[side] for side in sides}
        drawn += _bar_row(name, shares, most, 4 + i * pitch, pitch, style)
    return drawing(
        CARD,
        8 + pitch * len(rows),
        f"Distribution of {shown(distribution['name'])}",
        f"{counted(len(distribution['bars']), 'bar')}" + (", and one of all other categories." if others else "."),
        *drawn,
    )


def _bar_row(name: str, shares: Mapping[str, float], most: float, y: float, pitch: float, style: str) -> list[Markup]:
    left, room = 126.0, 118.0
    told = " → ".join(percent(share) for share in shares.values())
    title = f"{shown(name)}: " + ", ".join(f"{percent(share)} {_SIDES[side]}" for side, share in shares.items())
    drawn = [
        text(shortened(name, 19), left - 8, y + pitch / 2 + 4, class_="label" + style, text_anchor="end"),
        text(told, CARD - 2, y + pitch / 2 + 4, class_="tick", text_anchor="end"),
    ]
    middle, touch = y + pitch / 2, rect(0, y, CARD, pitch, title, class_="touch")
    if style:  # many categories together would dwarf the bars of single ones: shown as numbers only
        return [*drawn, touch]
    if "before" in shares:
        drawn.append(rect(left, middle - 7, max(room * shares["before"] / most, 1), 5, class_="before"))
        drawn.append(rect(left, middle, max(room * shares["after"] / most, 1), 7, class_="after"))
    else:
        drawn.append(rect(left, middle - 5, max(room * shares["after"] / most, 1), 10, class_="after"))
    return [*drawn, touch]


def class_size_figure(
    sizes: Sequence[Mapping[str, Any]], k: int | None, width: int = 1040, height: int = 250
) -> Markup:
    """Draw the number of groups of each size; those below k are highlighted."""
    tallest = max(bar["classes"] for bar in sizes)
    left, bottom = 48.0, height - 38.0
    step = (width - left - 8) / len(sizes)
    rise = (bottom - 20) / tallest
    marks, drawn = _count_marks(tallest), []
    for mark in marks:
        y = bottom - rise * mark
        drawn += [
            line(left, y, width - 4, y, class_="grid"),
            text(tick(mark), left - 8, y + 4, class_="tick", text_anchor="end"),
        ]
    for i, bar in enumerate(sizes):
        x, y = left + i * step, bottom - rise * bar["classes"]
        held = f"{counted(bar['classes'], 'group')}, {counted(bar['records'], 'record')} in all"
        title = f"{_size_label(bar)} records: {held}"
        gap = max(min(step * 0.14, 6), step / 2 - 60)
        drawn.append(rect(x + gap, y, step - 2 * gap, bottom - y, title, class_="bad" if bar["below_k"] else "after"))
    if k is not None and sizes[-1]["to"] >= k:
        place = left + step * sum(bar["below_k"] for bar in sizes)
        drawn.append(line(place, 10, place, bottom + 4, class_="limit"))
        drawn.append(text(f"k = {k:,}", place + 6, 18, class_="limit-label"))
    places = [left + (i + 0.5) * step for i in range(len(sizes))]
    return drawing(
        width,
        height,
        "Sizes of the groups",
        f"Of {counted(sum(bar['classes'] for bar in sizes), 'group')}, how many have how many records.",
        *drawn,
        line(left, bottom, width - 4, bottom, class_="axis"),
        *_centred_labels(places, [_size_label(bar) for bar in sizes], bottom + 16),
        text("records in a group", (left + width) / 2, height - 4, class_="tick", text_anchor="middle"),
    )


def _size_label(bar: Mapping[str, Any]) -> str:
    return f"{bar['from']:,}" if bar["from"] == bar["to"] else f"{bar['from']:,}-{bar['to']:,}"


def _count_marks(tallest: int) -> list[float]:
    step = round_step(tallest / 4, whole=True)
    return [step * i for i in range(1, int(tallest / step) + 1)]


def _centred_labels(places: Sequence[float], labels: Sequence[str], y: float) -> list[Markup]:
    """Return as many labels as fit side by side, each below its bar; the last one is among them."""
    chosen: list[Markup] = []
    edge = float("inf")
    for place, label in zip(reversed(places), reversed(labels), strict=True):
        half = 3.3 * len(label)
        if place + half + 6 <= edge:
            # The last one may be long: it is aligned with the end of the picture.
            chosen.append(text(label, place, y, class_="tick", text_anchor="middle" if chosen or half < 24 else "end"))
            edge = place - (half if len(chosen) > 1 or half < 24 else 2 * half)
    return chosen


def correlation_figures(correlations: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Draw the correlations before, after, and their change, each with its caption."""
    names, before, after = (correlations[key] for key in ("columns", "before", "after"))
    change = [
        [None if b is None or a is None else round(a - b, 3) for b, a in zip(*rows, strict=True)]
        for rows in zip(before, after, strict=True)
    ]
    most = max((abs(value) for row in change for value in row if value is not None), default=0.0)
    return [
        ("Before", _matrix(names, before, 1.0, "Correlations before")),
        ("Published", _matrix(names, after, 1.0, "Correlations in the published table")),
        (f"Change, at most {number(most, 2)}", _matrix(names, change, max(most, 0.05), "Change of the correlations")),
    ]


def _matrix(names: Sequence[str], values: Sequence[Sequence[float | None]], full: float, title: str) -> Markup:
    """Draw the lower half of a matrix: the stronger the colour, the larger the number, which is written in the cell."""
    n = len(names)
    left, size = 104.0, (CARD - 104.0) / max(n - 1, 1)
    size = min(size, 52.0)
    drawn: list[Markup] = []
    for i in range(1, n):
        y = (i - 1) * size
        drawn.append(text(shortened(names[i], 15), left - 8, y + size / 2 + 4, class_="label", text_anchor="end"))
        drawn += [
            part for j in range(i) for part in _cell(left + j * size, y, size, values[i][j], full, (names[i], names[j]))
        ]
    bottom = (n - 1) * size
    for j in range(n - 1):
        x = left + (j + 0.5) * size
        turned = {"transform": f"rotate(-55 {x:.1f} {bottom + 12:.1f})"}
        drawn.append(text(shortened(names[j], 15), x + 3, bottom + 13, class_="label", text_anchor="end", **turned))
    return drawing(CARD, bottom + 92, title, f"Of {counted(n, 'column')}, from -1 to 1.", *drawn)


def _cell(x: float, y: float, size: float, value: float | None, full: float, names: tuple[str, str]) -> list[Markup]:
    told = "not known" if value is None else f"{value:+.2f}"
    title = f"{shown(names[0])} and {shown(names[1])}: {told}"
    if value is None:
        return [rect(x + 0.5, y + 0.5, size - 1, size - 1, title, class_="unknown")]
    strength = min(abs(value) / full, 1.0)
    sign = "negative" if value < 0 else "positive"
    drawn = [
        rect(x + 0.5, y + 0.5, size - 1, size - 1, class_="cell"),
        rect(x + 0.5, y + 0.5, size - 1, size - 1, class_=sign, fill_opacity=0.06 + 0.94 * strength),
    ]
    written = f"{value:.2f}".replace("0.", ".")
    if written in (".00", "-.00"):
        written = "0"
    strong = " strong" if strength > 0.55 else ""
    font = min(11.0, size * 0.42)
    drawn.append(
        text(
            written,
            x + size / 2,
            y + size / 2 + font * 0.36,
            class_="in-cell" + strong,
            text_anchor="middle",
            font_size=font,
        )
    )
    return [*drawn, rect(x, y, size, size, title, class_="touch")]


def share_bar(share: float, title: str, style: str = "after") -> Markup:
    """Draw a share of 1 as a bar across the width of its container."""
    return element(
        "svg",
        element("title", title),
        rect(0, 0, 100, 8, class_="track"),
        rect(0, 0, min(max(100 * share, 0.6 if share > 0 else 0), 100), 8, class_=style),
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        role="img",
        aria_label=title,
        class_="bar",
    )


def gauge(loss: float, bound: float) -> Markup:
    """Draw the information loss beside its lower bound, both from 0 to 1, in percent."""
    loss, bound = 100 * loss, 100 * bound
    full = max(loss, bound, 1e-12) * 1.12
    start, room = 6.0, CARD - 12.0
    at_bound, at_loss = (start + room * value / full for value in (bound, loss))
    return drawing(
        CARD,
        78,
        "Information loss beside its lower bound",
        f"Lost {number(loss)}%, where no release can lose less than {number(bound)}%.",
        rect(start, 30, room, 12, class_="track", rx=6),
        rect(start, 30, at_bound - start, 12, class_="bound"),
        rect(at_bound, 30, at_loss - at_bound, 12, class_="after"),
        line(at_bound, 26, at_bound, 48, class_="axis"),
        line(at_loss, 24, at_loss, 46, class_="limit"),
        text(f"bound {number(bound, 3)}%", min(max(at_bound, 60), CARD - 60), 64, class_="tick", text_anchor="middle"),
        text(f"lost {number(loss, 3)}%", min(at_loss, CARD - 6), 17, class_="label", text_anchor="end"),
    )


def shoal_figure(n_fish: int, holds: bool) -> Markup:
    """Draw one fish for each record of the smallest group, one of them highlighted; at most sixty."""
    n_drawn = min(max(n_fish, 1), 60)
    spread = 13.5 if n_drawn > 12 else 17.0
    # Arranged like the seeds of a sunflower: evenly spread whatever their number.
    places = [
        (1.75 * spread * sqrt(i + 0.4) * cos(i * _GOLDEN_ANGLE), spread * sqrt(i + 0.4) * sin(i * _GOLDEN_ANGLE))
        for i in range(n_drawn)
    ]
    reach = spread * sqrt(n_drawn) + 14
    scale = min(80 / reach, 1.5, 146 / (1.75 * (reach - 14) + 18))
    looked_for = "fish sought" if holds else "fish lost"
    fish = [
        _fish(150 + scale * x, 84 + scale * y, scale, looked_for if i == 0 else "fish")
        for i, (x, y) in enumerate(places)
    ]
    said = f"One fish among {n_fish:,}" if holds else "A fish that does not hide well enough"
    return drawing(300, 168, said, "One record and those that look like it.", *fish, class_="shoal")


def _fish(x: float, y: float, scale: float, class_: str) -> Markup:
    scale *= 1.3
    body = "M-11 0C-6 -6.5 4 -6.5 10 0C4 6.5 -6 6.5 -11 0ZM-10 0L-17 -5.5L-15 0L-17 5.5Z"
    return element("path", d=body, class_=class_, transform=f"translate({x:.1f} {y:.1f}) scale({scale:.2f})")
