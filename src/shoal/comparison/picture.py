"""Picture: the risk-utility map as self-contained SVG, light or dark as the reader's screen is."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from markupsafe import Markup

from shoal.output.report.binning import round_step
from shoal.output.report.svg import element, file_of, line, path, rect, text

if TYPE_CHECKING:
    from shoal.comparison import Choice, Comparison


class Frame(NamedTuple):
    """Places in a picture: where its axes are, and where its legend begins."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    legend: tuple[int, int]
    legend_columns: int = 1


WIDE = Frame(820, 500, 74, 640, 56, 438, (676, 64))
NARROW = Frame(360, 440, 58, 346, 44, 300, (20, 366), 2)
"""For the screen of a telephone, on which the letters of the wide one would be too small; its legend stands below."""

# Colour and shape together distinguish methods, also for colour-blind readers.
_COLOURS = 6
_PITCH = 24  # between the lines of a legend
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
    return file_of(
        WIDE.width,
        WIDE.height,
        element("style", STYLE),
        rect(0, 0, WIDE.width, WIDE.height, fill="var(--paper)"),
        *_drawn(comparison, WIDE),
        class_="map",
        aria_label=f"Risk-utility map of {len(comparison.choices)} choices",
    )


def map_of(comparison: "Comparison", link: str, frame: Frame = WIDE) -> Markup:
    """Return the map as a part of a page that has `STYLE`, each choice a link; `link` has a place for its number."""
    n_rows = -(-(_n_methods(comparison) + 1) // frame.legend_columns)
    height = max(frame.height, frame.legend[1] + _PITCH * n_rows)
    return element(
        "svg",
        *_drawn(comparison, frame, link),
        viewBox=f"0 0 {frame.width} {height}",
        class_="map",
        role="group",
        aria_label=f"Risk-utility map of {len(comparison.choices)} choices",
    )


def _n_methods(comparison: "Comparison") -> int:
    return len({choice.name for choice in comparison.choices})


def _drawn(comparison: "Comparison", frame: Frame, link: str | None = None) -> list[Markup]:
    x = scale([100 * choice.risk for choice in comparison.choices], frame.left, frame.right)
    y = scale([100 * choice.loss for choice in comparison.choices], frame.bottom, frame.top)
    methods = list(dict.fromkeys(choice.name for choice in comparison.choices))
    numbered = sorted(enumerate(comparison.choices), key=lambda each: each[1].undominated)
    return [
        text("Risk and loss of each choice", 24, frame.top - 26, class_="title"),
        *_axes(x, y, frame),
        _front(comparison.undominated, x, y),
        *(_point(choice, methods, x, y, link and link.format(number)) for number, choice in numbered),
        *_numbers(comparison.undominated, x, y),
        *_legend(methods, frame),
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


def _axes(x: Scale, y: Scale, frame: Frame) -> list[Markup]:
    middle, centre = (frame.top + frame.bottom) / 2, (frame.left + frame.right) / 2
    turned = f"translate({frame.left - 50 if frame is WIDE else 16} {middle}) rotate(-90)"
    parts = [
        text("risk: records linked to their original, %", centre, frame.bottom + 46, text_anchor="middle"),
        text("information loss, %", 0, 0, transform=turned, text_anchor="middle"),
    ]
    for tick in x.ticks:
        at = x.place(tick)
        parts.append(line(at, frame.top, at, frame.bottom, class_="grid"))
        parts.append(text(f"{tick:g}", at, frame.bottom + 20, class_="soft", text_anchor="middle"))
    for tick in y.ticks:
        at = y.place(tick)
        parts.append(line(frame.left, at, frame.right, at, class_="grid"))
        parts.append(text(f"{tick:g}", frame.left - 10, at, class_="soft", dy=4, text_anchor="end"))
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


def _legend(methods: list[str], frame: Frame) -> list[Markup]:
    left, top = frame.legend
    step = (frame.right - left) / frame.legend_columns

    def place(number: int) -> tuple[float, float]:
        return left + step * (number % frame.legend_columns), top + _PITCH * (number // frame.legend_columns)

    parts = []
    for number, method in enumerate(methods):
        x, y = place(number)
        parts += [_mark(number, x, y), text(method, x + 16, y, dy=4.5)]
    x, y = place(len(methods))
    y += 14 if frame.legend_columns == 1 else 0
    parts.append(element("circle", class_="undominated", cx=x, cy=y, r=5.5, fill="none"))
    parts.append(text("undominated", x + 16, y, class_="soft", dy=4.5))
    return parts
