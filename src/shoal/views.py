"""Views: a result as a frame, or as a small table of HTML for notebooks, in the names and units of its JSON.

A frame has a row for each thing that was measured: a column, a choice, or the whole release.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

import narwhals as nw
import pyarrow as pa

from shoal.sources.clean import printable

Frame = nw.DataFrame[pa.Table]
"""A frame of narwhals, for whatever library: ``to_pandas()``, ``to_polars()``, ``to_arrow()``."""


def as_frame(rows: Iterable[Mapping[str, Any]]) -> Frame:
    """Return rows as a frame; what a row lacks is missing there.

    Examples
    --------
    >>> as_frame([{"k": 3, "loss": 0.25}, {"k": 5}]).rows()
    [(3, 0.25), (5, None)]
    """
    known = [dict(row) for row in rows]
    names = list(dict.fromkeys(name for row in known for name in row))
    return nw.from_native(pa.table({name: [row.get(name) for row in known] for name in names}), eager_only=True)


def as_row(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values as one row, each named by its path; lists and what is not known are left out.

    Examples
    --------
    >>> as_row({"k": 3, "risk": {"dld": 0.5, "matching": None}, "names": ["age"]})
    {'k': 3, 'risk.dld': 0.5}
    """
    return dict(_leaves(values, ""))


def _leaves(values: Mapping[str, Any], at: str) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{at}{name}.")
        elif value is not None and not isinstance(value, list | tuple):
            yield f"{at}{name}", value


def as_html(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """Return a table, and lines below it, in the notebook's own colours: no styles, no scripts, all texts escaped.

    Without heads the first text of a row is its head.
    """
    top = f"<thead><tr>{''.join(f'<th>{_safe(head)}</th>' for head in heads)}</tr></thead>" if heads else ""
    body = "".join(f"<tr>{_cells(row, not heads)}</tr>" for row in rows)
    below = "".join(f"<p>{_safe(note)}</p>" for note in notes)
    return f"<table><caption>{_safe(caption)}</caption>{top}<tbody>{body}</tbody></table>{below}"


def _cells(row: Sequence[str], with_head: bool) -> str:
    tags = ["th" if with_head and place == 0 else "td" for place in range(len(row))]
    return "".join(f"<{tag}>{_safe(text)}</{tag}>" for tag, text in zip(tags, row, strict=True))


def _safe(text: str) -> str:
    return escape(printable(text))
