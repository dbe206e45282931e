"""Picture: the risk-utility map as SVG that needs nothing else, light or dark as the reader's screen is."""

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from shoal.comparison import Choice, Comparison

WIDTH, HEIGHT = 820, 500
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 640, 56, 438

# Colour and shape together tell methods apart, also for those who see few colours.
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
    """Where numbers stand along an axis."""

    ticks: list[float]
    place: Callable[[float], float]


def svg(comparison: "Comparison") -> str:
    """Draw the map: risk to the right, loss upwards, the best choices at the lower left."""
    x = scale([100 * choice.risk for choice in comparison.choices], _LEFT, _RIGHT)
    y = scale([choice.loss for choice in comparison.choices], _BOTTOM, _TOP)
    methods = list(dict.fromkeys(choice.name for choice in comparison.choices))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="map" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Risk-utility map of {len(comparison.choices)} choices">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--paper)"/>',
        '<text class="title" x="24" y="30">Risk and loss of each choice</text>',
        *_axes(x, y),
        _front(comparison.undominated, x, y),
        *(_point(choice, methods, x, y) for choice in sorted(comparison.choices, key=lambda c: c.undominated)),
        *_numbers(comparison.undominated, x, y),
        *_legend(methods),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def scale(numbers: Sequence[float], begin: float, end: float) -> Scale:
    """Return an axis from zero to a round number above the largest.

    Examples
    --------
    >>> scale([3.0, 17.0], 0, 100).ticks
    [0.0, 5.0, 10.0, 15.0, 20.0]
    """
    largest = max(numbers, default=0.0) or 1.0
    rough = largest / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999999)
    n_steps = math.ceil(largest / step - 1e-9)
    top = n_steps * step
    return Scale([i * step for i in range(n_steps + 1)], lambda number: begin + (end - begin) * number / top)


def _axes(x: Scale, y: Scale) -> list[str]:
    parts = []
    for tick in x.ticks:
        at = f"{x.place(tick):.1f}"
        parts.append(f'<line class="grid" x1="{at}" x2="{at}" y1="{_TOP}" y2="{_BOTTOM}"/>')
        parts.append(f'<text class="soft" x="{at}" y="{_BOTTOM + 20}" text-anchor="middle">{tick:g}</text>')
    for tick in y.ticks:
        at = f"{y.place(tick):.1f}"
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_RIGHT}" y1="{at}" y2="{at}"/>')
        parts.append(f'<text class="soft" x="{_LEFT - 10}" y="{at}" dy="4" text-anchor="end">{tick:g}</text>')
    middle = (_TOP + _BOTTOM) / 2
    parts.append(
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_BOTTOM + 46}" text-anchor="middle">'
        "risk: records linked to their original, %</text>"
    )
    parts.append(
        f'<text transform="translate(24 {middle}) rotate(-90)" text-anchor="middle">information loss, %</text>'
    )
    return parts


def _front(choices: "Sequence[Choice]", x: Scale, y: Scale) -> str:
    points = " ".join(f"{x.place(100 * c.risk):.1f},{y.place(c.loss):.1f}" for c in choices)
    return f'<polyline class="front" points="{points}"/>'


def _point(choice: "Choice", methods: list[str], x: Scale, y: Scale) -> str:
    told = f"{choice.name}, k = {choice.k}: loss {choice.loss:.2f} %, risk {100 * choice.risk:.2f} %"
    told += "" if choice.k_anonymous else "; not k-anonymous"
    mark = _mark(methods.index(choice.name), x.place(100 * choice.risk), y.place(choice.loss))
    css = "undominated" if choice.undominated else "dominated"
    return f'<g class="{css}">{mark}<title>{escape(told)}</title></g>'


def _mark(number: int, x: float, y: float) -> str:
    """Draw the mark of a method."""
    fill = f'fill="var(--c{number % _COLOURS})"'
    shape = _SHAPES[(number // _COLOURS) % len(_SHAPES)]
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" {fill}/>'
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in _CORNERS[shape])
    return f'<polygon points="{points}" {fill}/>'


def _numbers(choices: "Sequence[Choice]", x: Scale, y: Scale) -> list[str]:
    """Write each k once, below its choice of least loss: nothing dominates that one, so there is room."""
    best = {choice.k: choice for choice in sorted(choices, key=lambda choice: -choice.loss)}
    places = {k: (x.place(100 * choice.risk), y.place(choice.loss) + 21) for k, choice in best.items()}
    return [
        f'<text x="{at:.1f}" y="{below:.1f}" text-anchor="middle">k = {k}</text>' for k, (at, below) in places.items()
    ]


def _legend(methods: list[str]) -> list[str]:
    parts = []
    for number, method in enumerate(methods):
        at = _TOP + 8 + 24 * number
        parts.append(_mark(number, 676, at))
        parts.append(f'<text x="692" y="{at}" dy="4.5">{escape(method)}</text>')
    at = _TOP + 8 + 24 * len(methods) + 14
    parts.append(f'<circle class="undominated" cx="676" cy="{at}" r="5.5" fill="none"/>')
    parts.append(f'<text class="soft" x="692" y="{at}" dy="4.5">undominated</text>')
    return parts
