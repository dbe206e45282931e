"""SVG: elements as text, everything escaped, numbers short. Used by `figures`, comparisons and plans."""

from functools import cache

from markupsafe import Markup, escape

Child = Markup | str


def element(tag: str, *children: Child, **attributes: object) -> Markup:
    """Return an element; in names of attributes a trailing underscore is dropped, others become hyphens.

    Examples
    --------
    >>> str(element("text", "a < b", x=1.25, text_anchor="end", class_="axis"))
    '<text x="1.25" text-anchor="end" class="axis">a &lt; b</text>'
    """
    written = "".join([f' {_hyphenated(name)}="{_written(value)}"' for name, value in attributes.items()])
    inner = "".join([escape(child) for child in children])
    return Markup(f"<{tag}{written}>{inner}</{tag}>" if children else f"<{tag}{written}/>")


@cache
def _hyphenated(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _written(value: object) -> str:
    if isinstance(value, float):
        text = f"{value:.2f}"
        return text.rstrip("0").rstrip(".")
    return str(escape(value))


def drawing(width: float, height: float, title: str, description: str, *children: Child, class_: str = "") -> Markup:
    """Return a picture with a title and a description for screen readers."""
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *children,
        viewBox=f"0 0 {_written(float(width))} {_written(float(height))}",
        role="img",
        aria_label=f"{title}. {description}",
        class_=f"figure {class_}".strip(),
    )


def rect(x: float, y: float, width: float, height: float, title: str | None = None, **attributes: object) -> Markup:
    """Return a rectangle, with a tooltip."""
    children = () if title is None else (element("title", title),)
    place = {"x": float(x), "y": float(y), "width": float(max(width, 0)), "height": float(max(height, 0))}
    return element("rect", *children, **place, **attributes)


def text(content: str, x: float, y: float, **attributes: object) -> Markup:
    """Return a line of text."""
    return element("text", content, x=float(x), y=float(y), **attributes)


def line(x1: float, y1: float, x2: float, y2: float, **attributes: object) -> Markup:
    """Return a straight line."""
    return element("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), **attributes)


def path(points: list[tuple[float, float]], **attributes: object) -> Markup:
    """Return a line through points."""
    steps = " ".join(f"{'L' if i else 'M'}{_written(float(x))} {_written(float(y))}" for i, (x, y) in enumerate(points))
    return element("path", d=steps, **attributes)


def file_of(width: float, height: float, *children: Child, **attributes: object) -> str:
    """Return the text of a self-contained SVG file."""
    about = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}", "role": "img"}
    return f"{element('svg', *children, **about, **attributes)}\n"
