"""Lists: what the registries hold, written into the docs. `python tools/lists.py` rewrites; `--check` only compares.

A list stands between ``<!-- list: NAME -->`` and ``<!-- end of list -->``.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from shoal.cli.json_schemas import OBJECTS, Shape
from shoal.distribution import install
from shoal.engines.blocks.limits import LIMITS
from shoal.job.engine_facts import ENGINES
from shoal.methods import ALGORITHMS
from shoal.models import MODELS, Model
from shoal.models.serialization import settings_in
from shoal.sources import DATABASES, KINDS, Reading
from shoal.sources.databases.connection import Database
from shoal.sources.format import Format
from shoal.sources.reading import OF_ANY_SOURCE

DOCS = Path(__file__).parents[1] / "docs"
BENCHMARKS = DOCS.parent / "benchmarks" / "results"
_LIST = re.compile(r"(<!-- list: (\w+) -->\n)(.*?)(<!-- end of list -->)", re.DOTALL)


def formats() -> str:
    """One row for each format of files."""
    rows = [
        f"| {kind.title} | {_endings(kind)} | {kind.comes_back} | "
        f"{kind.loses} | {f'`{install(kind.extra)}`' if kind.extra else ''} |"
        for kind in KINDS
    ]
    heads = ["| format | endings | what comes back | what it cannot keep | needs |", "|---|---|---|---|---|"]
    return "\n".join([*heads, *rows])


def _endings(kind: Format) -> str:
    """Return the extensions of a format, those of compressed files as an addition."""
    plain = [ending for ending in kind.endings if ending.count(".") == 1]
    packed = [ending for ending in kind.endings if ending.startswith(plain[0]) and ending.count(".") == 2]
    told = " ".join(f"`{ending}`{_read(kind, ending)}" for ending in plain)
    also = " ".join(f"`{ending.removeprefix(plain[0])}`{_read(kind, ending)}" for ending in packed)
    return f"{told}, each also with {also}" if packed else told


def _read(kind: Format, ending: str) -> str:
    return " (read)" if ending in kind.read_only else ""


def reading() -> str:
    """One row for each option of reading."""
    takes = {
        name: [kind.title for kind in (*KINDS, *DATABASES) if name in kind.options] for name in Reading.model_fields
    }
    rows = [
        f"| `{name}` | {_takers(name, takes[name])} | {about.description} |"
        for name, about in Reading.model_fields.items()
    ]
    return "\n".join(["| option | for | what it is |", "|---|---|---|", *rows])


def _takers(name: str, formats: list[str]) -> str:
    if name in OF_ANY_SOURCE:
        return "anything whose records have an order" if name == "skip_rows" else "anything"
    return ", ".join(formats) or "standard input"


def databases() -> str:
    """One row for each database."""
    rows = [
        f"| {each.title} | {' '.join(f'`{address}`' for address in _addresses(each))} | {each.comes_back} | "
        f"`{install(each.extra)}` |"
        for each in DATABASES
    ]
    return "\n".join(["| database | addresses | what comes back | needs |", "|---|---|---|---|", *rows])


def _addresses(database: Database) -> list[str]:
    if not database.endings:
        return [f"{scheme}://HOST/NAME" for scheme in database.schemes]
    return [*(f"FILE{ending}" for ending in database.endings), *(f"{scheme}:///FILE" for scheme in database.schemes)]


def methods() -> str:
    """One row for each algorithm."""
    rows = [f"| `{name}` | {algorithm.summary} |" for name, algorithm in ALGORITHMS.items()]
    return "\n".join(["| method | what it does |", "|---|---|", *rows])


def models() -> str:
    """One row for each privacy model."""
    rows = [f"| `shoal.{_call(model)}` | {_summary(model)} | `--{name} COLUMN=...` |" for name, model in MODELS.items()]
    return "\n".join(["| model | guarantee for every class | on the command line |", "|---|---|---|", *rows])


def _call(model: type[Model]) -> str:
    return f"{model.__name__}(column, {', '.join(f'{setting.name}=' for setting in settings_in(model)[1:])})"


def _summary(thing: type) -> str:
    return (thing.__doc__ or "").strip().partition("\n")[0]


def engines() -> str:
    """One row for each engine."""
    rows = [f"| `{name}` | {facts.summary} | {facts.reads} | {facts.writes} |" for name, facts in ENGINES.items()]
    return "\n".join(["| engine | records | reads | writes |", "|---|---|---|---|", *rows])


def limits() -> str:
    """One row for each thing that blocks cannot do."""
    rows = [f"| {limit.what} | {limit.why} |" for limit in LIMITS]
    return "\n".join(["| what is refused | the reason |", "|---|---|", *rows])


def peers() -> str:
    """One row for each table and cell size on which sdcMicro was measured."""
    rows = json.loads((BENCHMARKS / "peers.json").read_text("utf-8"))["rows"]
    problems: dict[tuple[str, int, int], dict[str, dict[str, Any]]] = {}
    for row in rows:
        problems.setdefault((row["data"], row["n"], row["k"]), {})[row["contender"]] = row
    lines = ["| records | k | sdcMicro, `mdav` | shoal, `mdav` | | shoal, `auto` | |", "|---|---:|---|---|---|---|---|"]
    for (data, n, k), found in problems.items():
        theirs, *ours = found.values()
        told = [f"{100 * each['il']:.2f} % | {_factor(theirs['cpu_seconds'] / each['cpu_seconds'])}" for each in ours]
        lines.append(f"| {data}, {n:,} | {k} | {100 * theirs['il']:.2f} % | {' | '.join(told)} |")
    return "\n".join(lines)


def _factor(ratio: float) -> str:
    """Return how many times as fast something is, in two digits."""
    return f"{ratio:.2g} x" if ratio >= 1 else f"1/{1 / ratio:.2g}"


def json_objects() -> str:
    """Make a table of the keys of each object that commands print as JSON."""
    return "\n\n".join(_object(one) for one in OBJECTS)


def _object(one: type[Shape]) -> str:
    rows = [
        f"| `{name}` | {_type(key.annotation)}{'' if key.is_required() else ', or absent'} | {key.description or ''} |"
        for name, key in one.model_fields.items()
    ]
    return "\n".join([f"### {one.__name__}", "", _summary(one), "", "| key | value | |", "|---|---|---|", *rows])


_JSON = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any", type(None): "null"}


def _type(annotation: Any) -> str:
    """Return the type of a value in words, with links to objects."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is dict:
        return f"object of {_type(parts[1])}"
    if origin in (list, tuple):
        return f"list of {_type(parts[0])}"
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if parts:
        return ", or ".join(_type(part) for part in parts)
    return _JSON.get(annotation) or f"[{annotation.__name__}](#{annotation.__name__.lower()})"


LISTS = {
    **{"formats": formats, "reading": reading, "databases": databases, "methods": methods, "models": models},
    **{"engines": engines, "limits": limits, "json": json_objects, "peers": peers},
}


def filled(page: str) -> str:
    """Return the text of a page with its lists as they are today."""
    return _LIST.sub(lambda found: f"{found[1]}\n{LISTS[found[2]]()}\n\n{found[4]}", page)


def main() -> None:
    """Rewrite the pages, or exit with 1 if one is not up to date."""
    stale = [page for page in sorted(DOCS.rglob("*.md")) if filled(text := page.read_text("utf-8")) != text]
    if "--check" in sys.argv:
        sys.exit(f"Run python tools/lists.py: {', '.join(map(str, stale))}" if stale else 0)
    for page in stale:
        page.write_text(filled(page.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
