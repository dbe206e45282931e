"""Picture: the risk-utility map as self-contained SVG, light or dark as the reader's screen is."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from shoal.output.report.binning import round_step
from shoal.output.report.svg import element, file_of, line, path, rect, text

if TYPE_CHECKING:
    from shoal.comparison import Choice, Comparison

WIDTH, HEIGHT = 820, 500
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 640, 56, 438

# Colour and shape together distinguish methods, also for colour-blind readers.
_COLOURS = 6
_CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-5, -5), (5, -5), (5, 5), (-5, 5)],
    "triangle": [(0, -6.5), (6, 5), (-6, 5)],
    "diamond": [(0, -7), (7, 0), (0, 7), (-7, 0)],
}
_SHAPES = ("circle", "square", "triangle", "diamond")

STYLE = """
.map { --paper: #ffffff; --ink: #1c2430; --soft: #5f6b7a; --line: #e3e7ec;
  --c0: #2563a8; --c1: #b4530a; --c2: #2e7d4f; --c3: #9b2f6d; --c4: #6b5bb5; --c5: #7a6a14; }
@media (prefers-color-scheme: dark) { .map { --paper: #14181e; --ink: #e6eaf0; --soft: #9aa6b4; --line: #2b323c;
  --c0: #6fa8e8; --c1: #f09a52; --c2: #6cc592; --c3: #e386bb; --c4: #a99cf0; --c5: #cdbb57; } }
.map text { font: 13px system-ui, sans-serif; fill: var(--ink); }
.map .title { font-size: 17px; font-weight: 600; }
.map .soft { fill: var(--soft); }
.map .grid { stroke: var(--line); }
.map .front { fill: none; stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 2 4; stroke-linecap: round; }
.map .dominated { opacity: .4; }
.map .undominated { stroke: var(--ink); stroke-width: 1.6; }
"""


class Scale(NamedTuple):
    """Positions of numbers along an axis."""

    ticks: list[float]
    place: Callable[[float], float]


def svg(comparison: "Comparison") -> str:
    """Draw the map: risk to the right, loss upwards, the best choices at the lower left."""
    background = rect(0, 0, WIDTH, HEIGHT, fill="var(--paper)")
    return file_of(
        WIDTH,
        HEIGHT,
        element("style", STYLE),
        background,
        *_drawn(comparison),
        class_="map",
        aria_label=f"Risk-utility map of {len(comparison.choices)} choices",
    )


def map_of(comparison: "Comparison", link: str) -> Markup:
    """Return the map as a part of a page that has `STYLE`, each choice a link; `link` has a place for its number."""
    return element(
        "svg",
        *_drawn(comparison, link),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        class_="map",
        role="group",
        aria_label=f"Risk-utility map of {len(comparison.choices)} choices",
    )


def _drawn(comparison: "Comparison", link: str | None = None) -> list[Markup]:
    x = scale([100 * choice.risk for choice in comparison.choices], _LEFT, _RIGHT)
    y = scale([100 * choice.loss for choice in comparison.choices], _BOTTOM, _TOP)
    methods = list(dict.fromkeys(choice.name for choice in comparison.choices))
    numbered = sorted(enumerate(comparison.choices), key=lambda each: each[1].undominated)
    return [
        text("Risk and loss of each choice", 24, 30, class_="title"),
        *_axes(x, y),
        _front(comparison.undominated, x, y),
        *(_point(choice, methods, x, y, link and link.format(number)) for number, choice in numbered),
        *_numbers(comparison.undominated, x, y),
        *_legend(methods),
    ]


def scale(numbers: Sequence[float], begin: float, end: float) -> Scale:
    """Return an axis from zero to a round number above the largest.

    Examples
    --------
    >>> scale([3.0, 17.0], 0, 100).ticks
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    largest = max(numbers, default=0.0)
    if largest < 1e-300:  # too small to be divided
        largest = 1.0
    step = round_step(largest / 4)
    n_steps = math.ceil(largest / step - 1e-9)
    top = n_steps * step
    return Scale([i * step for i in range(n_steps + 1)], lambda number: begin + (end - begin) * number / top)


def _axes(x: Scale, y: Scale) -> list[Markup]:
    middle = (_TOP + _BOTTOM) / 2
    parts = [
        text("risk: records linked to their original, %", (_LEFT + _RIGHT) / 2, _BOTTOM + 46, text_anchor="middle"),
        text("information loss, %", 0, 0, transform=f"translate(24 {middle}) rotate(-90)", text_anchor="middle"),
    ]
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(line(at, _TOP, at, _BOTTOM, class_="grid"))
        parts.append(text(f"{tick:g}", at, _BOTTOM + 20, class_="soft", text_anchor="middle"))
    for tick in y.ticks:
        at = y.place(tick)
        parts.append(line(_LEFT, at, _RIGHT, at, class_="grid"))
        parts.append(text(f"{tick:g}", _LEFT - 10, at, class_="soft", dy=4, text_anchor="end"))
    return parts


def _front(choices: "Sequence[Choice]", x: Scale, y: Scale) -> Markup:
    return path([(x.place(100 * c.risk), y.place(100 * c.loss)) for c in choices], class_="front")


def _point(choice: "Choice", methods: list[str], x: Scale, y: Scale, link: str | None = None) -> Markup:
    title = f"{choice.name}, k = {choice.k}: loss {100 * choice.loss:.2f} %, risk {100 * choice.risk:.2f} %"
    title += "" if choice.k_anonymous else "; not k-anonymous"
    at = x.place(100 * choice.risk), y.place(100 * choice.loss)
    mark = _mark(methods.index(choice.name), *at)
    drawn = element("g", mark, element("title", title), class_="undominated" if choice.undominated else "dominated")
    if link is None:
        return drawn
    around = element("circle", cx=at[0], cy=at[1], r=13, class_="touch")  # large enough for a finger
    return element("a", around, drawn, href=link, aria_label=title)


def _mark(number: int, x: float, y: float) -> Markup:
    """Draw the marker of a method."""
    fill = f"var(--c{number % _COLOURS})"
    shape = _SHAPES[(number // _COLOURS) % len(_SHAPES)]
    if shape == "circle":
        return element("circle", cx=x, cy=y, r=5.5, fill=fill)
    return element("polygon", points=" ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in _CORNERS[shape]), fill=fill)


def _numbers(choices: "Sequence[Choice]", x: Scale, y: Scale) -> list[Markup]:
    """Write each k once, below its choice of least loss: that one is undominated, so there is room."""
    best = {choice.k: choice for choice in sorted(choices, key=lambda choice: -choice.loss)}
    return [
        text(f"k = {k}", x.place(100 * choice.risk), y.place(100 * choice.loss) + 21, text_anchor="middle")
        for k, choice in best.items()
    ]


def _legend(methods: list[str]) -> list[Markup]:
    parts = []
    for number, method in enumerate(methods):
        at = _TOP + 8 + 24 * number
        parts += [_mark(number, 676.0, float(at)), text(method, 692, at, dy=4.5)]
    at = _TOP + 8 + 24 * len(methods) + 14
    parts.append(element("circle", class_="undominated", cx=676, cy=at, r=5.5, fill="none"))
    parts.append(text("undominated", 692, at, class_="soft", dy=4.5))
    return parts
