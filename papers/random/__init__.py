"""Random aggregation: the paper's figures 4 to 7, and the attack that it discusses.

References
----------
Yang, "Random aggregation: differential privacy in k-anonymity".
Song, Ma, Tian, Al-Rodhaan (2019), "A new method of privacy protection: random k-anonymous".
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa

from papers.data_and_results import Missing, data_folder, timed, unit
from papers.paper import Archived, Content, Paper, Run, bar, count, counts, seed_option, without
from papers.random.claims import claims
from papers.random.methods import METHODS, partitioned
from papers.tables import crossed
from shoal import datasets
from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.auditing.k_minus_one import WITHIN, differential
from shoal.columns.schema import Roles, Schema
from shoal.measures.linkage import linkage
from shoal.measures.loss import loss
from shoal.methods import partition
from shoal.typing import Labels, Matrix

RHOS = (0.0, 0.5, 0.8, 1.0)
FILES = {
    "Breast Cancer": (
        "breast_cancer_wisconsin.csv",
        slice(1, 10),
    ),  # nine measurements, without the sample number and the class
    "Diabetes": ("pima_diabetes.csv", slice(0, 8)),
}
STAND_INS = {"Census (stand-in)": datasets.census, "Tarragona (stand-in)": datasets.tarragona}
"""Shipped data sets of about the same size, used if neither file is available."""

SHOAL = "shoal"


class Partitioned(NamedTuple):
    """A partition of a set, means over the repeats: figures 4 and 5."""

    data: str
    method: str
    k: int
    seconds: float
    il: float


class Scattered(NamedTuple):
    """Random aggregation of a set, means over the repeats: figures 6 and 7, and the intruder with k - 1 records."""

    data: str
    rho: float
    k: int
    il: float
    dld: float
    dld_within_2: float
    recovered: float
    blind: float


def measure(run: Run, k: tuple[int, ...], c: int, repeats: int, seed: int) -> None:
    """Measure every data set at every k."""
    if min(k) < 2:
        raise click.BadParameter("k is at least 2.", param_hint="-k")
    run.begin(seed=seed, repeats=repeats, c=c, within=WITHIN)
    seeds = range(seed, seed + repeats)
    for source in at_hand():
        with bar(source[0], k) as sizes:
            for size in sizes:
                run.add("partitions", partitions(*source, size, c, seeds))
                run.add("scattered", scattered(*source, size, seeds))


def at_hand() -> list[tuple[str, Matrix]]:
    """Return the available data sets, and report missing ones; without any, use shipped ones."""
    found = []
    for source in sources():
        if isinstance(source, Missing):
            without(source.name, source.reason)
        else:
            found.append(source)
    if found:
        return found
    click.echo(f"Neither set is at hand; these stand in: {', '.join(STAND_INS)}.", err=True)
    return [(name, unit(load().X)) for name, load in STAND_INS.items()]


def sources() -> Iterable[tuple[str, Matrix] | Missing]:
    """Yield the two data sets, columns scaled to [0, 1], or the reason why one is not available."""
    folder = data_folder()
    for name, (file, columns) in FILES.items():
        if folder is None or not (folder / file).is_file():
            yield Missing(name, f"{file} not found; SHOAL_DATA may name the folder of data files")
            continue
        X = np.genfromtxt(folder / file, delimiter=",", skip_header=1)[:, columns]
        X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)  # 16 measurements of Breast Cancer are missing
        yield name, unit(X)


def partitions(data: str, X: Matrix, k: int, c: int, seeds: Iterable[int]) -> list[Partitioned]:
    """Time both partitions of the paper, and shoal's top-down beside them."""
    ways: dict[str, Callable[[int], Labels]] = {
        name: partial(partitioned, X, k, c, cut=cut) for name, cut in METHODS.items()
    }
    ways[SHOAL] = partial(partition, X, k, "topdown", threads=1, c=c)
    found = []
    for name, make in ways.items():
        seconds, ils = [], []
        for seed in seeds:
            labels, taken = timed(make, seed)
            seconds.append(taken)
            ils.append(100 * loss(X, labels).il)
        found.append(Partitioned(data, name, k, float(np.mean(seconds)), float(np.mean(ils))))
    return found


def scattered(data: str, X: Matrix, k: int, seeds: Iterable[int]) -> list[Scattered]:
    """Apply random aggregation to top-down cells for each rho, and measure loss, linkage and the intruder's success."""
    total = float(np.square(X - X.mean(axis=0)).sum())
    found = []
    for rho in RHOS:
        lines = []
        for seed in seeds:
            labels = partition(X, k, "topdown", seed)
            Y = scatter(X, labels, rho, seed)
            linked = linkage(X, Y)
            known = differential(X, Y, labels, rho, most=100, seed=seed)
            il = 100 * float(np.square(X - Y).sum()) / total
            lines.append((il, linked.dld, linked.dld_within_2, known.recovered, known.blind))
        found.append(Scattered(data, rho, k, *(float(mean) for mean in np.mean(lines, axis=0))))
    return found


def scatter(X: Matrix, labels: Labels, rho: float, seed: int) -> Matrix:
    """Return the records after random aggregation."""
    table = pa.table({str(j): column for j, column in enumerate(X.T)})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)))
    made = aggregate(table, schema, Cells(labels), randomized=RandomAggregation(rho, seed))
    return np.column_stack([np.asarray(column) for column in made.values()])


def tables(content: Content) -> str:
    """Return the tables: for each set, one line for each k."""
    parts = []
    for data in dict.fromkeys(line.data for line in content["partitions"]):
        cuts = [line for line in content["partitions"] if line.data == data]
        rhos = [(line, f"rho {line.rho:g}") for line in content["scattered"] if line.data == data]
        unseen = [(line.k, "unseen", 100 * line.blind) for line, _ in rhos[:: len(RHOS)]]
        recovered = [(line.k, rho, 100 * line.recovered) for line, rho in rhos]
        points = {
            "processor seconds (figure 4)": [(line.k, line.method, line.seconds) for line in cuts],
            "IL in % (figure 5)": [(line.k, line.method, line.il) for line in cuts],
            "IL in % (figure 6)": [(line.k, rho, line.il) for line, rho in rhos],
            "DLD in %, own original among the two nearest (figure 7)": [
                (line.k, rho, 100 * line.dld_within_2) for line, rho in rhos
            ],
            f"% of the values of the last record recovered to {WITHIN:g} sd, k - 1 known": unseen + recovered,
        }
        parts += [crossed("k", values, ">12.4f", f"{data}: {title}") for title, values in points.items()]
    return "\n".join(parts)


PAPER = Paper(
    title="Random aggregation: differential privacy in k-anonymity, Yang",
    covers="figures 4 to 7, and the attack of section 1",
    takes="about 2 minutes",
    about="""Compare the figures of random aggregation with ours.

    Time and loss of the top-down and the bottom-up partition, loss and linkage of random aggregation against k and rho,
    and what an intruder learns who knows all records of a cell but one. The paper shows curves and no numbers; its
    claims about them are checked. The two data sets are searched in the folder that SHOAL_DATA names, or in shared/data
    in or beside the current folder; without both, Census and Tarragona are used.
    """,
    examples=("", "-k 3,5,10 --repeats 3"),
    quick="-k 3,5,10 --repeats 1",
    options=(
        counts("-k", "Cell sizes.", default="3,4,5,6,7,8,9,10,11,12"),
        count("-c", "Parts to start from.", 1, default=10),
        count("--repeats", "Seeds to take means over.", 1, default=10),
        seed_option(help="The first seed."),
    ),
    rows={"partitions": Partitioned, "scattered": Scattered},
    measure=measure,
    tables=tables,
    claims=claims,
    pictures="papers.random.pictures",
    archived=(Archived("random.json", "random --repeats 3"),),
)
