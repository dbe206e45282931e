"""Tables as text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]], title: str = "", missing: str = "") -> str:
    """Lay rows out in columns of a width and a format each; an empty row is an empty line.

    Examples
    --------
    >>> print(table({"data": "<6", "n": ">7,", "IL": ">6.2f"}, [("a", 1000, 0.5), (), ("b", 20, None)], "Losses"))
    Losses
    data         n     IL
    a        1,000   0.50
    <BLANKLINE>
    b           20
    """
    widths = ["".join(re.findall(r"^([<>])\+?(\d+)", format_)[0]) for format_ in columns.values()]
    lines = [" ".join(f"{head:{width}}" for head, width in zip(columns, widths, strict=True))]
    for row in rows:
        formats = zip(row, widths, columns.values(), strict=bool(row))
        lines.append(
            " ".join(f"{missing:{width}}" if cell is None else f"{cell:{format_}}" for cell, width, format_ in formats)
        )
    return "\n".join([*([title] if title else []), *(line.rstrip() for line in lines), ""])


def crossed(
    key: str,
    points: Iterable[tuple[Any, str, Any]],
    form: str,
    title: str = "",
    missing: str = "",
    key_form: str = ">8",
) -> str:
    """Lay values out by a key, one row each, and by the name of their column.

    Examples
    --------
    >>> print(crossed("k", [(3, "mdav", 1.0), (3, "auto", 0.5), (5, "mdav", 2.0)], ">6.1f"))
           k   mdav   auto
           3    1.0    0.5
           5    2.0
    """
    found = {(row, column): value for row, column, value in points}
    names = list(dict.fromkeys(column for _, column in found))
    rows = [(row, *(found.get((row, name)) for name in names)) for row in dict.fromkeys(row for row, _ in found)]
    return table({key: key_form, **dict.fromkeys(names, form)}, rows, title, missing)
