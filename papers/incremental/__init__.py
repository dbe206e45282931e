"""Incremental microaggregation: table 5.2, figures 3.3, 4.1 to 4.5, 5.1 to 5.10 and 6.3, with our results beside them.

`docs/incremental.md` compares the thesis with what we found.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from papers.claims import as_text
from papers.data_and_results import Missing, census, drawn, make_folder, save
from papers.incremental import reference_times
from papers.incremental.claims import claims
from papers.incremental.variant_runs import LINES, Problem, Result, census_problem, gaussian_problem, measure
from shoal.errors import ParameterError

__all__ = ["claims", "command"]


class Scale(NamedTuple):
    """How much is measured."""

    n: int
    shares: tuple[float, ...]
    sizes: tuple[int, ...]


SMALL = Scale(6_000, (0.1, 0.3, 0.5, 0.7, 0.9), (10, 100))
THESIS = Scale(50_000, tuple(round(0.05 * i, 2) for i in range(1, 20)), (10, 100))
GAUSSIAN_DIMS = (5, 10, 15)
CENSUS_DIMS = (3, 6, 9)

EXAMPLES = """\b
Examples:
  python -m papers incremental
  python -m papers incremental --n 20000
  python -m papers incremental --full --output incremental-full
  python -m papers incremental --full --output incremental-full --resume
"""


@click.command(epilog=EXAMPLES)
@click.option("--full", is_flag=True, help="The thesis's sizes: 50000 records, 19 shares. Takes half an hour or more.")
@click.option("--n", type=click.IntRange(min=400), help="Records of each set.  [default: 6000; 50000 with --full]")
@click.option("--without-plain", is_flag=True, help="Leave out the times of plain NumPy, which take longest.")
@click.option(
    "--plain-up-to",
    type=click.IntRange(min=0),
    default=50_000,
    show_default=True,
    metavar="N",
    help="Largest line of table 5.2 for plain NumPy: 500000 records take about an hour, 1000000 four.",
)
@click.option("--resume", is_flag=True, help="Resume an interrupted run from what is in the folder.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Repeats the random samples.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/incremental"),
    show_default=True,
    help="Folder for the pictures and the numbers.",
)
def command(
    full: bool, n: int | None, without_plain: bool, plain_up_to: int, resume: bool, seed: int, output: Path
) -> None:
    """Compare the incremental variants with MDAV of everything.

    Relative loss and time of 2MDAV, nearest neighbours with and without splits and inertia, and ours, over the share of
    late records, on Gaussian records of 5, 10 and 15 columns and on census records of 3, 6 and all columns, k = 10 and
    100; the curves of the planner; and with --full the absolute times of table 5.2. Census records are searched in
    the folder that SHOAL_DATA names.
    """
    scale = THESIS if full else SMALL
    scale = scale._replace(n=n or scale.n)
    report = Report(output, {"seed": seed, "n": scale.n, "plain": not without_plain}, resume)
    run(report, problems(scale, seed), scale.shares)
    if full:
        run_table(report, 0 if without_plain else plain_up_to)
        click.echo(reference_times.as_text(report.table))
    click.echo(table(report.results))
    click.echo(as_text(claims(report.content())))
    click.echo(drawn(_draw_function, report.folder, report.results), err=True)


class Report:
    """Results so far, saved after every share, so that an interrupted run can be resumed.

    Parameters
    ----------
    folder : Path
        Where numbers and pictures go.
    settings : dict
        Settings that must equal those of the resumed run: seed, n, plain.
    resume : bool
        Whether to resume from what is in the folder.
    """

    def __init__(self, folder: Path, settings: dict[str, int], resume: bool = False) -> None:
        make_folder(folder)
        self.folder = folder
        self.settings = settings
        self.results: list[Result] = []
        self.table: list[reference_times.Row] = []
        if resume:
            self._go_on()

    @property
    def file(self) -> Path:
        """The file with the numbers."""
        return self.folder / "incremental.json"

    def _go_on(self) -> None:
        """Read the results of an earlier run, or raise if it cannot be continued."""
        if not self.file.is_file():
            raise ParameterError(f"There is nothing to resume: {self.file} is not there. Run without --resume.")
        try:
            content = json.loads(self.file.read_text(encoding="utf-8"))
            settings = {name: content[name] for name in self.settings}
            self.results = [Result(**result) for result in content["results"]]
            self.table = [reference_times.Row(**row) for row in content.get("table_5_2", [])]
        except (ValueError, KeyError, TypeError):
            raise ParameterError(f"{self.file} is not a result file of a run. Run without --resume.") from None
        if settings != self.settings:
            said = ", ".join(f"{name} {value}" for name, value in settings.items())
            raise ParameterError(f"{self.file} was measured with other settings ({said}). Give the same ones.")

    def open_shares(self, problem: Problem, shares: Sequence[float]) -> list[float]:
        """Return the shares of a set that have not been measured."""
        mine = (problem.data, problem.X.shape[1], problem.k)
        done = {r.nu for r in self.results if (r.data, r.dims, r.k) == mine}
        return [nu for nu in shares if nu not in done]

    def add(self, results: Sequence[Result]) -> None:
        """Add all lines of a share, and write the numbers beside the pictures."""
        self.results += results
        save(self.file, self.content())

    def add_row(self, row: reference_times.Row) -> None:
        """Add a line of table 5.2."""
        self.table.append(row)
        save(self.file, self.content())

    def content(self) -> dict[str, Any]:
        """Return what is saved."""
        return {
            **self.settings,
            "results": [result._asdict() for result in self.results],
            "table_5_2": [row._asdict() for row in self.table],
        }


def problems(scale: Scale, seed: int) -> list[Problem]:
    """Return all data sets, and report those that are not available."""
    found = [gaussian_problem(scale.n, dims, k, seed) for k in scale.sizes for dims in GAUSSIAN_DIMS]
    source = census(scale.n)
    if isinstance(source, Missing):
        click.echo(f"Without {source.name}: {source.reason}.", err=True)
    elif not source.holds(scale.n) or source.records is None:
        click.echo(f"Without {source.name}: {source.origin} has fewer records.", err=True)
    else:
        records = source.records
        found += [census_problem(records, scale.n, dims, k, seed) for k in scale.sizes for dims in CENSUS_DIMS]
    return found


def run(report: Report, sets: Sequence[Problem], shares: Sequence[float]) -> None:
    """Measure what is missing; plain NumPy only with all columns, as in the figures of times."""
    widest = {data: max(p.X.shape[1] for p in sets if p.data == data) for data in {p.data for p in sets}}
    todo = [(problem, report.open_shares(problem, shares)) for problem in sets]
    with click.progressbar(length=sum(len(rest) for _, rest in todo), label="Incremental", file=sys.stderr) as bar:
        for problem, rest in todo:
            plain = bool(report.settings["plain"]) and problem.X.shape[1] == widest[problem.data]
            for results in measure(problem, rest, plain):
                report.add(results)
                bar.update(1)


def run_table(report: Report, plain_up_to: int) -> None:
    """Measure the missing lines of table 5.2."""

    def make(data: str, n: int, k: int, dims: int) -> Problem | None:
        if data == "gaussian":
            return gaussian_problem(n, dims, k, report.settings["seed"])
        source = census(n)
        if isinstance(source, Missing) or source.records is None:
            return None
        return census_problem(source.records, n, dims, k, report.settings["seed"])

    for row in reference_times.rows(make, report.table, plain_up_to):
        report.add_row(row)
        click.echo(f"Table 5.2: {row.data}, {row.n:,} records, {row.dims} columns, k={row.k} done.", err=True)


def table(results: Sequence[Result]) -> str:
    """Format the losses as text: one line for each set and variant, one column for each share."""
    shares = sorted({r.nu for r in results})
    lines = [f"{'delta in %':<46}" + "".join(f"{f'nu={nu:.0%}':>9}" for nu in shares)]
    for data, dims, k in dict.fromkeys((r.data, r.dims, r.k) for r in results):
        for line in LINES:
            delta = {r.nu: r.delta for r in results if (r.data, r.dims, r.k, r.line) == (data, dims, k, line)}
            name = f"{data} x {dims}, k={k}" if line == next(iter(LINES)) else ""
            lines.append(f"{name:<22}{line:<24}" + "".join(f"{100 * delta[nu]:>9.2f}" for nu in shares))
    return "\n".join([*lines, ""])


def _draw_function() -> Callable[..., object]:
    """Import what draws, which needs matplotlib."""
    from papers.incremental.pictures import draw

    return draw
