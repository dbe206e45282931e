"""Records: the lowest losses on the reference data sets of the literature, beside published losses and the bound."""

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import click

from papers.claims import Claim, untested
from papers.paper import Archived, Content, Paper, Run, bar, counts, option, seed_option, switch
from papers.tables import table
from papers.tfrp.printed import TABLE_2
from shoal import datasets
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.measures.bound import lower_bound
from shoal.methods import partition
from shoal.typing import Matrix

PUBLISHED = {
    "census": {3: 5.69, 4: 7.49, 5: 9.09, 10: 14.16},
    "tarragona": {3: 16.93, 4: 19.55, 5: 22.46, 10: 33.19},
    "eia-11": {3: 0.48, 4: 0.67, 5: 1.67, 10: 3.84},
}
"""Published losses of MDAV in percent, by data set and k."""

SETS = (datasets.census, datasets.tarragona, datasets.eia)


class Line(NamedTuple):
    """A data set and a k, with losses in percent and times in seconds."""

    name: str
    k: int
    mdav: float
    mdav_time: float
    auto: float
    auto_time: float
    best: float
    best_time: float
    bound: float | None


def run(run: Run, ks: tuple[int, ...], seconds: float, with_bound: bool, seed: int) -> None:
    """Run every method on every data set."""
    run.begin(seed=seed, seconds=seconds)
    with bar("Records", length=len(SETS) * len(ks)) as done:
        for line in measure(ks, seconds, with_bound, seed):
            run.add("records", [line])
            done.update(1)


def tables(content: Content) -> str:
    """Return a line for each data set and k, with the losses printed for MDAV and for both phases of TFRP before it."""
    columns = {"": "<10", "k": ">3", "published": ">9.2f", "TFRP": ">7.3f"}
    columns |= {"MDAV": ">8.4f", "MDAV (s)": ">8.3g", "auto": ">8.4f", "auto (s)": ">8.3g"}
    columns |= {f"best, {content['seconds']:g} s": ">12.4f", "best (s)": ">8.3g", "lower bound": ">12.4f"}
    lines = content["records"]
    return table(
        columns, [(*line[:2], PUBLISHED[line.name].get(line.k), _tfrp(*line[:2]), *line[2:]) for line in lines]
    )


def _tfrp(name: str, k: int) -> float | None:
    """Return the value of TFRP's table 2; its EIA set is a different one, with ten columns."""
    place = {"tarragona": 1, "census": 3}.get(name)
    return TABLE_2[k][place] if place is not None and k in TABLE_2 else None


def claims(content: Content) -> list[Claim]:
    """Check the published losses against a result file."""
    found = []
    for line in content["records"]:
        printed = PUBLISHED[line.name].get(line.k)
        says = f"{line.name}, k={line.k}: MDAV loses {printed} %"
        if printed is None:
            found.append(untested("MDAV literature", f"{line.name}, k={line.k}: MDAV's loss", "none printed"))
        else:
            found.append(Claim("MDAV literature", says, f"{line.mdav:.4f} %", round(line.mdav, 2) == printed))
    return found


def measure(sizes: tuple[int, ...], seconds: float, with_bound: bool, seed: int) -> Iterator[Line]:
    """Run every method on every data set and yield each line as soon as it is complete."""
    for load in SETS:
        data = load()
        X = standardize(data.X)
        for k in sizes:
            yield Line(
                data.name,
                k,
                *_timed(X, k, "mdav", seed),
                *_timed(X, k, "auto", seed),
                *_timed(X, k, "auto", seed, effort="best", seconds=seconds),
                100 * lower_bound(X, k, effort="strong").il if with_bound else None,
            )


def _timed(X: Matrix, k: int, method: str, seed: int, **options: Any) -> tuple[float, float]:
    begin = perf_counter()
    labels = partition(X, k, method, seed, threads=1, **options)
    return 100 * loss(X, labels).il, perf_counter() - begin


PAPER = Paper(
    title="The literature's reference sets: Census, Tarragona, EIA",
    covers="losses of MDAV as published, of TFRP as printed, and the lowest of ours",
    takes="about 2 minutes",
    about="""Print the lowest losses on Census, Tarragona and EIA.

    Information loss in percent on standardised columns (EIA is the one of eleven columns), with the seconds that each
    took: exact MDAV, the default method, and the default with effort "best"; before them MDAV as published, and both
    phases of TFRP as its paper prints them.
    """,
    examples=("", "--seconds 60 --bound", "-k 3,5"),
    quick="--seconds 1",
    options=(
        counts("ks -k", "Smallest cell sizes.", default="3,5,10"),
        option("--seconds", "Budget of the search.", type=click.FloatRange(min=0), default=10.0),
        switch("with_bound --bound", "Prove a lower bound too; takes about a minute a line."),
        seed_option(1, "Repeats the search."),
    ),
    rows={"records": Line},
    measure=run,
    tables=tables,
    claims=claims,
    archived=(Archived("records.json", "records --bound"),),
)
