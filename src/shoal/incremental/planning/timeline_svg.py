"""The plan as a self-contained SVG, like figures 1.2, 6.1 and 6.2 of the thesis."""

from collections.abc import Callable

from markupsafe import Markup

from shoal.incremental.planning import Plan
from shoal.incremental.planning.durations import spoken
from shoal.output.report.svg import element, file_of, line, rect, text

WIDTH, HEIGHT = 860, 290
_LEFT, _RIGHT = 30, WIDTH - 30
# Keeps text readable in front of a line.
_HALO = {"stroke": "white", "stroke_width": 4, "paint_order": "stroke"}
_BLUE, _ORANGE, _GREY, _RED = "#2171b5", "#d95f0e", "#9a9a9a", "#cb181d"


def timeline(plan: Plan) -> str:
    """Return the plan as the text of a self-contained SVG file."""
    at = _scale(plan)
    base_end = plan.start + plan.base_seconds
    late_start = max(base_end, 0.0)
    shapes = [
        _bar(at(-plan.collection), at(0), 40, "#e8eef5", "records arrive", ink="#333"),
        _bar(at(0), at(plan.ordinary), 80, _GREY, f"ordinary job, {spoken(plan.ordinary)}"),
        _mark(at(0), "collection ends", "#333", 28),
        _mark(at(plan.finish), f"ready after {spoken(plan.finish)}", _BLUE, 236),
    ]
    if plan.late_share > 0:
        arrived = f"{1 - plan.late_share:.1%} arrived, head start {spoken(-plan.start)}"
        shapes += [
            _bar(at(plan.start), at(base_end), 130, _BLUE, f"base, {spoken(plan.base_seconds)}"),
            _bar(at(late_start), at(late_start + plan.late_seconds), 170, _ORANGE, _late(plan)),
            _mark(at(plan.start), arrived, _BLUE, 212),
        ]
    if plan.deadline is not None:
        shapes.append(_mark(at(plan.deadline), f"deadline {spoken(plan.deadline)}", _RED, 260))
    background = rect(0, 0, WIDTH, HEIGHT, fill="white")
    title = element("title", _title(plan))
    return file_of(WIDTH, HEIGHT, title, background, *shapes, font_family="sans-serif", font_size=13)


def _title(plan: Plan) -> str:
    return f"Ready {spoken(plan.finish)} after the collection instead of {spoken(plan.ordinary)}"


def _late(plan: Plan) -> str:
    return f"late {plan.late_share:.1%}, {spoken(plan.late_seconds)}"


def _scale(plan: Plan) -> Callable[[float], float]:
    """Return the x coordinate as a function of time; times long before the start are clipped at the left."""
    last = max(plan.finish, plan.ordinary, plan.deadline or 0.0)
    first = max(-plan.collection, min(plan.start, 0.0) - 0.25 * (last - plan.start))
    span = max(last - first, 1e-9)
    return lambda moment: _LEFT + (max(moment, first) - first) / span * (_RIGHT - _LEFT)


def _bar(begin: float, end: float, y: float, colour: str, label: str, ink: str = "white") -> Markup:
    width = max(end - begin, 2.0)
    # A label that does not fit is placed after the bar, or before it if there is no room.
    room = 7.2 * len(label)
    if room < width:
        x, anchor = begin + 8, "start"
    elif end + 6 + room < WIDTH:
        x, anchor, ink = end + 6, "start", "#333"
    else:
        x, anchor, ink = begin - 6, "end", "#333"
    return rect(begin, y, width, 26, rx=3, fill=colour) + text(label, x, y + 18, text_anchor=anchor, fill=ink)


def _mark(x: float, label: str, colour: str, y: float) -> Markup:
    anchor = "end" if x > WIDTH / 2 else "start"
    shift = -5 if anchor == "end" else 5
    rule = line(x, 32, x, HEIGHT - 20, stroke=colour, stroke_dasharray="4 3")
    return rule + text(label, x + shift, y, text_anchor=anchor, fill=colour, **_HALO)
