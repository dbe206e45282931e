"""Plots by matplotlib: our SVG files, as PNG and PDF.

It draws what `shoal.output.report.svg` writes: rectangles, lines, paths of straight lines, polygons, circles and texts,
in the light colours of the style sheet inside. So a picture is defined once, and looks the same in every format.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from shoal.distribution import optional

_POINT = 72 / 96
"""Points in a pixel of CSS."""

_DOTS = 192
"""Dots per inch of a PNG."""

_NUMBER = r"-?[0-9.]+"


def save(picture: str, path: Path, format: str) -> None:
    """Draw the text of an SVG file into a file; the same picture gives the same bytes."""
    optional("matplotlib", "PNG and PDF files need matplotlib", "plots")
    from matplotlib.figure import Figure

    root = ElementTree.fromstring(picture)
    sheet = "".join(each.text or "" for each in root.iter() if _tag(each) == "style")
    style = Style(sheet, {f".{name}" for name in root.get("class", "").split()})
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    figure = Figure(figsize=(width / 96, height / 96), dpi=_DOTS, facecolor=style.value("var(--card, #ffffff)"))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for place, (each, looks) in enumerate(_shapes(root, style, {})):
        _draw(axes, each, looks, place)
    nothing = {"png": {"Software": None}, "pdf": {"CreationDate": None, "Producer": None, "Creator": None}}
    figure.savefig(path, format=format, metadata=nothing[format])


class Style:
    """The rules of a style sheet, as far as our pictures need them: one class or tag, and variables."""

    def __init__(self, sheet: str, roots: Collection[str]) -> None:
        light = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^}]*\})*[^}]*\}", "", sheet)
        self._variables: dict[str, str] = {}
        self._rules: list[tuple[str, dict[str, str]]] = []
        for rule in light.split("}")[:-1]:
            selectors, _, body = rule.partition("{")
            given = {
                name.strip(): value.strip() for name, _, value in (part.partition(":") for part in body.split(";"))
            }
            if "dark" not in selectors:
                self._variables |= {name: value for name, value in given.items() if name.startswith("--")}
            for *within, own in (selector.split() for selector in selectors.split(",") if ":" not in selector):
                if set(within) <= set(roots):
                    self._rules.append((own, given))

    def looks(self, tag: str, attributes: Mapping[str, str], inherited: Mapping[str, str]) -> dict[str, str]:
        """Return how an element looks: what it inherits, its attributes, and the rules of its tag and its classes."""
        classes = {*attributes.get("class", "").split(), ""}
        found = {**inherited, **{name: value for name, value in attributes.items() if name != "class"}}
        for selector, given in self._rules:
            first, *others = selector.split(".")
            if first in ("", tag) and set(others) <= classes and (first or others):
                found |= given
        return {name: self.value(value) for name, value in found.items()}

    def value(self, value: str) -> str:
        """Return a value with what its variable stands for."""
        found = re.fullmatch(r"var\((--[\w-]+)(?:, *([^)]*))?\)", value)
        return value if found is None else self._variables.get(found[1], found[2] or "none")


_INHERITED = ("fill", "stroke", "stroke-width", "opacity", "font-size", "font", "text-anchor")


def _shapes(
    parent: ElementTree.Element, style: Style, inherited: Mapping[str, str]
) -> Iterator[tuple[ElementTree.Element, dict[str, str]]]:
    for each in parent:
        looks = style.looks(_tag(each), each.attrib, inherited)
        if _tag(each) in ("g", "a"):
            yield from _shapes(each, style, {name: looks[name] for name in _INHERITED if name in looks})
        elif _tag(each) not in ("style", "title", "desc") and "touch" not in each.get("class", "").split():
            yield each, looks


def _tag(each: ElementTree.Element) -> str:
    return each.tag.rpartition("}")[2]


def _draw(axes: Any, each: ElementTree.Element, looks: Mapping[str, str], place: int) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, Polygon, Rectangle

    at = {name: float(looks[name]) for name in _PLACES if re.fullmatch(_NUMBER, looks.get(name, ""))}
    tag, painted = _tag(each), {**_painted(looks), "zorder": place}
    if tag == "rect":
        axes.add_patch(Rectangle((at["x"], at["y"]), at["width"], at["height"], **painted))
    elif tag == "circle":
        axes.add_patch(Circle((at["cx"], at["cy"]), at["r"], **painted))
    elif tag == "polygon":
        axes.add_patch(Polygon(_points(looks["points"]), **painted))
    elif tag == "path":
        axes.add_patch(Polygon(_points(looks["d"]), closed=False, **painted))
    elif tag == "line":
        ends = ((at["x1"], at["x2"]), (at["y1"], at["y2"]))
        style = {"color": painted["edgecolor"], "lw": painted["linewidth"], "ls": painted["linestyle"]}
        axes.add_line(Line2D(*ends, zorder=place, **style))
    elif tag == "text":
        _write(axes, each.text or "", looks, at, place)


_PLACES = ("x", "y", "width", "height", "cx", "cy", "r", "x1", "y1", "x2", "y2", "dy")


def _points(text: str) -> list[tuple[float, float]]:
    numbers = [float(number) for number in re.findall(_NUMBER, text)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def _painted(looks: Mapping[str, str]) -> dict[str, Any]:
    dashes = [float(dash) * _POINT for dash in re.findall(_NUMBER, looks.get("stroke-dasharray", ""))]
    fill, stroke = (looks.get(name, default) for name, default in (("fill", "#000000"), ("stroke", "none")))
    return {
        "facecolor": "none" if fill == "transparent" else fill,
        "edgecolor": stroke,
        "linewidth": float(looks.get("stroke-width", "1")) * _POINT if stroke != "none" else 0.0,
        "linestyle": (0, dashes) if dashes else "solid",
        "alpha": float(looks.get("opacity", looks.get("fill-opacity", "1"))),
    }


def _write(axes: Any, text: str, looks: Mapping[str, str], at: Mapping[str, float], place: int) -> None:
    x, y, turned = at.get("x", 0.0), at.get("y", 0.0) + at.get("dy", 0.0), 0.0
    moves = dict(re.findall(r"(translate|rotate)\(([^)]*)\)", looks.get("transform", "")))
    if "translate" in moves:
        right, down = map(float, moves["translate"].split())
        x, y = x + right, y + down
    if "rotate" in moves:
        turned = -float(moves["rotate"].split()[0])
    size = re.search(r"(?<![0-9.])([0-9.]+)px", looks.get("font", "")) or re.search(
        r"([0-9.]+)", looks.get("font-size", "13")
    )
    axes.text(
        x,
        y,
        text,
        fontsize=float(size[1]) * _POINT if size else 13 * _POINT,
        color=looks.get("fill", "#000000"),
        fontweight="bold" if looks.get("font-weight", "400") >= "600" else "normal",
        ha={"end": "right", "middle": "center"}.get(looks.get("text-anchor", ""), "left"),
        va="baseline",
        rotation=turned,
        rotation_mode="anchor",
        parse_math=False,
        zorder=place,
    )
