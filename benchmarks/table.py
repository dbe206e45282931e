"""Turn results into tables, and put them into pages of the project between their markers."""

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from math import floor
from pathlib import Path
from typing import Any

import click

from contenders import TITLES, with_threads

ROOT = Path(__file__).resolve().parents[1]
START, END = "<!-- bench:start -->", "<!-- bench:end -->"

CONTEST_NOTE = """\
*Shoal faster by*: the time of that line over the time of the last line for the same records. *Same cells*: share of
records whose cell consists of exactly the same records as in the reference. *In matrices*: peak memory over the size of
the float64 matrix, with / without the interpreter and its imports."""

Results = dict[str, Any]
Row = dict[str, Any]


def for_readme(results: Results) -> str:
    """Return the tables of the README."""
    rows = [*_largest(_of(results, "side-by-side")), *_of(results, "yardstick")]
    rows += [*_of(results, "threads"), *_of(results, "million")]
    parts = [_measured(results), _contest(rows), _growth(results["growth"]), _import(results)]
    return "\n\n".join(part for part in parts if part)


def for_auto(results: Results) -> str:
    """Return the tables of docs/auto.md: `auto` beside MDAV, and how its time and memory grow."""
    rows = _of(results, "near linear")
    with_mdav = {_problem(row) for row in rows if row["method"] == "shoal mdav"}
    beside = [row for row in rows if _problem(row) in with_mdav]
    growing = [row for row in rows if row["method"] == "shoal auto"]
    parts = [_measured(results), _less_loss([*_of(results, "less loss"), *beside])]
    return "\n\n".join(part for part in [*parts, _near_linear(growing, results["growth"])] if part)


def for_paper(results: Results) -> str:
    """Return the table of the paper: `auto` beside MDAV."""
    return "\n\n".join([_measured(results), _less_loss(_of(results, "less loss"))])


PAGES = {"README.md": for_readme, "docs/auto.md": for_auto, "paper/paper.md": for_paper}


def everything(results: Results) -> str:
    """Return all tables: those of the README, every algorithm, goals, skipped parts."""
    parts = [for_readme(results), _algorithms(_of(results, "algorithms")), _claims(results["claims"])]
    left_out = "\n".join(f"- left out: {reason}" for reason in results["missing"])
    return "\n\n".join(part for part in [*parts, left_out] if part)


def fill(page: str, content: str) -> str:
    """Replace the text between the markers of the page by the content."""
    if page.count(START) != 1 or page.count(END) != 1:
        raise click.ClickException(f"The page must hold {START} and {END} once each, to know where the table goes.")
    before, rest = page.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n{content}\n{END}{after}"


def _measured(results: Results) -> str:
    """Return date, commit, machine and versions as a sentence."""
    machine = results["machine"]
    commit = f"commit {results['commit'][:9]}" if results["commit"] else "no commit"
    changed = " with uncommitted changes" if results["uncommitted"] else ""
    quick = "A quick run on small samples, to check that it works. " if results["quick"] else ""
    used = f"{machine['threads_at_most']} of " if machine["threads_at_most"] < machine["cores"] else ""
    return (
        f"{quick}Measured {results['date'][:10]} at {commit}{changed}: {machine['cpu']}, "
        f"{used}{machine['cores']} cores, {machine['system']}, Python {machine['python']}, NumPy {machine['numpy']}, "
        f"shoal {machine['shoal']}. Times are those of the best run."
    )


def _contest(rows: Sequence[Row]) -> str:
    """Format the measurements as a table; the last of each group is shoal, with all its threads."""
    lines = []
    for (_, problem), group in groupby(rows, key=lambda row: (row["section"], _problem(row))):
        contenders = list(group)
        for number, row in enumerate(contenders):
            ratio = row["seconds"] / contenders[-1]["seconds"]
            factor = f"{_digits(ratio)} x" if row is not contenders[-1] else ""
            lines.append(
                [
                    "" if number else problem,
                    _title(row),
                    _duration(row["seconds"]),
                    factor,
                    _same_cells(row),
                    f"{row['il']:.4f}",
                    f"{row['peak_mb']:.0f} MB",
                    f"{row['peak_mb'] / row['matrix_mb']:.1f} / "
                    f"{(row['peak_mb'] - row['bare_mb']) / row['matrix_mb']:.1f}",
                ]
            )
    head = ["records", "method", "time", "shoal faster by", "same cells", "IL %", "peak memory", "in matrices"]
    return "\n\n".join([_table(head, lines, right=6), CONTEST_NOTE]) if lines else ""


def _growth(entries: Sequence[Row]) -> str:
    lines = [
        [entry["data"], _title(entry), f"{entry['n_from']:,} to {entry['n_to']:,}", f"n^{entry['exponent']:.2f}"]
        for entry in entries
    ]
    return _table(["data", "method", "records", "time grows as"], lines, right=2)


def _less_loss(rows: Sequence[Row]) -> str:
    """Format the loss and the time of `auto` beside those of MDAV, a line for each data set."""
    sizes = sorted({row["k"] for row in rows})
    found: dict[str, dict[int, dict[str, Row]]] = {}
    for row in rows:
        records = f"{row['data']}, {row['n']:,} x {row['dims']}"
        found.setdefault(records, {}).setdefault(row["k"], {})[row["method"]] = row
    lines = [[records, *(_against_mdav(of_k.get(k)) for k in sizes)] for records, of_k in found.items()]
    head = ["MDAV's loss -> auto's, and time of auto in times of MDAV's", *(f"k = {k}" for k in sizes)]
    return _table(head, lines, right=0)


def _against_mdav(pair: dict[str, Row] | None) -> str:
    if pair is None:
        return ""
    mdav, auto = pair["shoal mdav"], pair["shoal auto"]
    change = 100 * (auto["il"] / mdav["il"] - 1)
    amount = f"{abs(change):.{0 if abs(change) >= 1 else 1}f} % {'less' if change < 0 else 'more'}"
    return f"{mdav['il']:.3f} -> {auto['il']:.3f} ({amount}), {auto['seconds'] / mdav['seconds']:.1f}x"


def _near_linear(rows: Sequence[Row], growth: Sequence[Row]) -> str:
    """Format the time of `auto` for more and more records, a line for each data set."""
    numbers = sorted({row["n"] for row in rows})
    exponents = {entry["data"]: entry["exponent"] for entry in growth if entry["section"] == "near linear"}
    lines = []
    for data, exponent in exponents.items():
        # The first of each size; a later one was measured beside MDAV.
        by_size = {row["n"]: row for row in reversed(rows) if row["data"] == data}
        last = by_size[max(by_size)]
        times = [f"{by_size[n]['seconds']:.1f}" if n in by_size else "" for n in numbers]
        memory = f"{last['peak_mb'] / last['matrix_mb']:.1f} matrices"
        lines.append([f"{data} x {last['dims']}", *times, f"n^{exponent:.2f}", memory])
    head = ["auto, one thread, k = 10", *(f"seconds for {n:,}" for n in numbers)]
    return _table([*head, "time grows as", "peak memory at the largest"], lines, right=len(numbers) + 2)


def _import(results: Results) -> str:
    if "import" not in results:
        return ""
    best = results["import"]
    return (
        f"`import shoal` takes {best['shoal']:.2f} s, NumPy included; `import numpy` alone takes {best['numpy']:.2f} s."
    )


def _algorithms(rows: Sequence[Row]) -> str:
    lines = [
        [_problem(row), _title(row), f"{row['il']:.4f}", _duration(row["seconds"]), _same_cells(row)] for row in rows
    ]
    return _table(["records", "method", "IL %", "time", "same cells"], lines, right=3)


def _claims(claims: Sequence[Row]) -> str:
    lines = []
    for claim in claims:
        by_medians = f"{_digits(claim['by_medians'])} {claim['unit']}" if "by_medians" in claim else ""
        measured = f"{_digits(claim['value'])} {claim['unit']}"
        lines.append([claim["what"], measured, by_medians, *_verdict(claim)])
    return _table(["claim", "measured", "by medians", "aim", ""], lines, right=0)


def _verdict(claim: Row) -> tuple[str, str]:
    """Return a goal, and whether it was reached."""
    if claim.get("at_least") is not None:
        return f"at least {claim['at_least']:g}", "reached" if claim["value"] >= claim["at_least"] else "missed"
    if claim.get("at_most") is not None:
        return f"at most {claim['at_most']:g}", "reached" if claim["value"] <= claim["at_most"] else "missed"
    return "", ""


def _of(results: Results, section: str) -> list[Row]:
    return [row for row in results["rows"] if row["section"] == section]


def _largest(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["n"] == max(other["n"] for other in rows)]


def _problem(row: Row) -> str:
    return f"{row['data']}, {row['n']:,} x {row['dims']}, k = {row['k']}"


def _title(row: Row) -> str:
    """Name the method, and the threads where it can use several."""
    if row["method"] in TITLES:
        return TITLES[row["method"]]
    return with_threads(row["method"], row["threads"])


def _same_cells(row: Row) -> str:
    if row["same_cells"] is None:
        return "not compared"
    if row["same_as"] == with_threads(row["method"], row["threads"]):
        return "reference"
    # Rounded down: 100 % means all records.
    return f"{floor(row['same_cells'] * 10_000) / 100:g} %"


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 0.9995 else f"{seconds:#.3g} s".replace(". ", " ")


def _digits(value: float) -> str:
    """Write three digits, and no exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:#.3g}"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]], right: int) -> str:
    """Return a Markdown table whose last `right` columns are aligned to the right; nothing if there are no lines."""
    rule = ["---"] * (len(head) - right) + ["---:"] * right
    body = ["| " + " | ".join(cells) + " |" for cells in lines]
    return "\n".join(["| " + " | ".join(head) + " |", "|" + "|".join(rule) + "|", *body]) if body else ""


@click.command()
@click.option(
    "--results",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=ROOT / "benchmarks" / "results" / "partition.json",
    help="Results to show.  [default: benchmarks/results/partition.json]",
)
@click.option(
    "--project",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=ROOT,
    help="Folder with the pages to fill, README.md and docs/auto.md.  [default: this project]",
)
def main(source: Path, project: Path) -> None:
    """Write the results of bench_partition.py into README.md and docs/auto.md, and print what was written."""
    results = json.loads(source.read_text(encoding="utf-8"))
    contents = {project / page: content_of(results) for page, content_of in PAGES.items()}
    filled = {page: fill(page.read_text(encoding="utf-8"), content) for page, content in contents.items()}
    for page, text in filled.items():
        page.write_text(text, encoding="utf-8")
        click.echo(contents[page])


if __name__ == "__main__":
    main()
