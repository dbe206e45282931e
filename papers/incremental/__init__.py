"""Incremental microaggregation: table 5.2, figures 3.3, 4.1 to 4.5, 5.1 to 5.10 and 6.3, with our results beside them.

`docs/incremental.md` compares the thesis with what we found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import click

from papers.data_and_results import Missing, census
from papers.incremental import reference_times
from papers.incremental.claims import claims
from papers.incremental.variant_runs import LINES, Problem, Result, census_problem, gaussian_problem, measure
from papers.paper import RESUME, Archived, Content, Paper, Run, bar, count, seed_option, switch, without
from papers.tables import table


class Scale(NamedTuple):
    """How much is measured."""

    n: int
    shares: tuple[float, ...]
    sizes: tuple[int, ...]


SMALL = Scale(6_000, (0.1, 0.3, 0.5, 0.7, 0.9), (10, 100))
THESIS = Scale(50_000, tuple(round(0.05 * i, 2) for i in range(1, 20)), (10, 100))
GAUSSIAN_DIMS = (5, 10, 15)
CENSUS_DIMS = (3, 6, 9)


def run(run: Run, full: bool, n: int | None, without_plain: bool, plain_up_to: int, seed: int) -> None:
    """Measure every set, and with all of the thesis's sizes the absolute times too."""
    scale = THESIS if full else SMALL
    scale = scale._replace(n=n or scale.n)
    run.begin(seed=seed, n=scale.n, plain=not without_plain)
    fill(run, problems(scale, seed), scale.shares)
    if full:
        fill_table(run, 0 if without_plain else plain_up_to)


def problems(scale: Scale, seed: int) -> list[Problem]:
    """Return all data sets, and report those that are not available."""
    found = [gaussian_problem(scale.n, dims, k, seed) for k in scale.sizes for dims in GAUSSIAN_DIMS]
    source = census(scale.n)
    if isinstance(source, Missing):
        without(source.name, source.reason)
    elif not source.holds(scale.n) or source.records is None:
        without(source.name, f"{source.origin} has fewer records")
    else:
        records = source.records
        found += [census_problem(records, scale.n, dims, k, seed) for k in scale.sizes for dims in CENSUS_DIMS]
    return found


def fill(run: Run, sets: Sequence[Problem], shares: Sequence[float]) -> None:
    """Measure what is missing; plain NumPy only with all columns, as in the figures of times."""
    widest = {data: max(p.X.shape[1] for p in sets if p.data == data) for data in {p.data for p in sets}}
    done = {(r.data, r.dims, r.k, r.nu) for r in run.content["results"]}
    todo = [
        (problem, [nu for nu in shares if (problem.data, problem.X.shape[1], problem.k, nu) not in done])
        for problem in sets
    ]
    with bar("Incremental", length=sum(len(rest) for _, rest in todo)) as shown:
        for problem, rest in todo:
            plain = run.content["plain"] and problem.X.shape[1] == widest[problem.data]
            for results in measure(problem, rest, plain):
                run.add("results", results)
                shown.update(1)


def fill_table(run: Run, plain_up_to: int) -> None:
    """Measure the missing lines of table 5.2."""

    def make(data: str, n: int, k: int, dims: int) -> Problem | None:
        if data == "gaussian":
            return gaussian_problem(n, dims, k, run.content["seed"])
        source = census(n)
        if isinstance(source, Missing) or source.records is None:
            return None
        return census_problem(source.records, n, dims, k, run.content["seed"])

    for row in reference_times.rows(make, list(run.content["table_5_2"]), plain_up_to):
        run.add("table_5_2", [row])
        click.echo(f"Table 5.2: {row.data}, {row.n:,} records, {row.dims} columns, k={row.k} done.", err=True)


def tables(content: Content) -> str:
    """Return table 5.2, if it was measured, and the losses: a line for each set and variant, a column for each nu."""
    results: Sequence[Result] = content["results"]
    shares = sorted({r.nu for r in results})
    delta = {(r.data, r.dims, r.k, r.line, r.nu): 100 * r.delta for r in results}
    rows = [
        (f"{data} x {dims}, k={k}", line, *(delta[data, dims, k, line, nu] for nu in shares))
        for data, dims, k in dict.fromkeys((r.data, r.dims, r.k) for r in results)
        for line in LINES
    ]
    losses = table({"delta in %": "<22", "": "<24", **{f"nu={nu:.0%}": ">9.2f" for nu in shares}}, rows)
    times = content["table_5_2"]
    return "\n".join([*([reference_times.as_text(times)] if times else []), losses])


PAPER = Paper(
    "Incremental k-anonymous microaggregation, the thesis behind Rebollo-Monedero et al. 2018",
    "table 5.2, figures 3.3, 4.1 to 4.5, 5.1 to 5.10 and 6.3",
    "about a minute",
    "--full: about 30 minutes",
    """Compare the incremental variants with MDAV of everything.

    Relative loss and time of 2MDAV, nearest neighbours with and without splits and inertia, and ours, over the share of
    late records, on Gaussian records of 5, 10 and 15 columns and on census records of 3, 6 and all columns, k = 10 and
    100; the curves of the planner; and with --full the absolute times of table 5.2. Census records are searched in
    the folder that SHOAL_DATA names.
    """,
    ("", "--n 20000", "--full --output incremental-full", "--full --output incremental-full --resume"),
    "--n 3000",
    (
        switch("--full", "The thesis's sizes: 50000 records, 19 shares. Takes half an hour or more."),
        count("--n", "Records of each set.  [default: 6000; 50000 with --full]", 400),
        switch("--without-plain", "Leave out the times of plain NumPy, which take longest."),
        count(
            "--plain-up-to",
            "Largest line of table 5.2 for plain NumPy: 500000 records take about an hour, 1000000 four.",
            default=50_000,
        ),
        RESUME,
        seed_option(),
    ),
    {"results": Result, "table_5_2": reference_times.Row},
    run,
    tables,
    claims,
    "papers.incremental.pictures",
    (Archived("incremental.json", "incremental --full"),),
)
