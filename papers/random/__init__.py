"""Random aggregation: the paper's figures 4 to 7, and the attack that it discusses.

References
----------
Yang, "Random aggregation: differential privacy in k-anonymity".
Song, Ma, Tian, Al-Rodhaan (2019), "A new method of privacy protection: random k-anonymous".
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple

import click
import numpy as np
import pyarrow as pa

from papers.claims import as_text
from papers.data_and_results import Missing, data_folder, drawn, make_folder, save
from papers.random.claims import claims
from papers.random.methods import METHODS, partitioned
from shoal import datasets
from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.auditing.differential import WITHIN, differential
from shoal.columns.schema import Roles, Schema
from shoal.measures.linkage import linkage
from shoal.measures.loss import loss
from shoal.methods import partition
from shoal.typing import Labels, Matrix

__all__ = ["claims", "command"]

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

EXAMPLES = """\b
Examples:
  python -m papers random
  python -m papers random -k 3,5,10 --repeats 3
  SHOAL_DATA=~/data python -m papers random --output random
"""


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


def _sizes(context: click.Context, parameter: click.Parameter, text: str) -> tuple[int, ...]:
    try:
        sizes = tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 3,5,10.") from None
    if min(sizes) < 2:
        raise click.BadParameter("k is at least 2.")
    return sizes


@click.command(epilog=EXAMPLES)
@click.option(
    "-k",
    "ks",
    default="3,4,5,6,7,8,9,10,11,12",
    show_default=True,
    callback=_sizes,
    metavar="K,K,...",
    help="Cell sizes.",
)
@click.option("-c", "c", type=click.IntRange(min=1), default=10, show_default=True, help="Parts to start from.")
@click.option("--repeats", type=click.IntRange(min=1), default=10, show_default=True, help="Seeds to take means over.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/random"),
    show_default=True,
    help="Folder for the pictures and the numbers.",
)
def command(ks: tuple[int, ...], c: int, repeats: int, seed: int, output: Path) -> None:
    """Compare the figures of random aggregation with ours.

    Time and loss of the top-down and the bottom-up partition, loss and linkage of random aggregation against k and rho,
    and what an intruder learns who knows all records of a cell but one. The paper shows curves and no numbers; its
    claims about them are checked. The two data sets are searched in the folder that SHOAL_DATA names, or in shared/data
    in or beside the current folder; without both, Census and Tarragona are used.
    """
    make_folder(output)
    cuts: list[Partitioned] = []
    spread: list[Scattered] = []
    seeds = range(seed, seed + repeats)
    for source in at_hand():
        with click.progressbar(ks, label=source[0], file=sys.stderr) as sizes:
            for k in sizes:
                cuts += partitions(*source, k, c, seeds)
                spread += scattered(*source, k, seeds)
    content = {
        "seed": seed,
        "repeats": repeats,
        "c": c,
        "within": WITHIN,
        "partitions": [line._asdict() for line in cuts],
        "scattered": [line._asdict() for line in spread],
    }
    save(output / "random.json", content)
    click.echo(texts(cuts, spread))
    click.echo("")
    click.echo(as_text(claims(content)))
    click.echo(drawn(_draw_function, output, cuts, spread), err=True)


def at_hand() -> list[tuple[str, Matrix]]:
    """Return the available data sets, and report missing ones; without any, use shipped ones."""
    found = []
    for source in sources():
        if isinstance(source, Missing):
            click.echo(f"Without {source.name}: {source.reason}.", err=True)
        else:
            found.append(source)
    if found:
        return found
    click.echo(f"Neither set is at hand; these stand in: {', '.join(STAND_INS)}.", err=True)
    return [(name, _unit(load().X)) for name, load in STAND_INS.items()]


def sources() -> Iterable[tuple[str, Matrix] | Missing]:
    """Yield the two data sets, columns scaled to [0, 1], or the reason why one is not available."""
    folder = data_folder()
    for name, (file, columns) in FILES.items():
        if folder is None or not (folder / file).is_file():
            yield Missing(name, f"{file} not found; SHOAL_DATA may name the folder of data files")
            continue
        X = np.genfromtxt(folder / file, delimiter=",", skip_header=1)[:, columns]
        X = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)  # 16 measurements of Breast Cancer are missing
        yield name, _unit(X)


def _unit(X: Matrix) -> Matrix:
    """Scale each column to [0, 1]."""
    return np.asarray((X - X.min(axis=0)) / np.ptp(X, axis=0))


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
            start = process_time()
            labels = make(seed)
            seconds.append(process_time() - start)
            ils.append(loss(X, labels).il)
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


def texts(cuts: Sequence[Partitioned], spread: Sequence[Scattered]) -> str:
    """Return the tables: for each set, one line for each k."""
    tables = []
    for data in dict.fromkeys(line.data for line in cuts):
        methods = [line for line in cuts if line.data == data]
        rhos = [(f"rho {line.rho:g}", line) for line in spread if line.data == data]
        tables += [
            _table(f"{data}: processor seconds (figure 4)", [(line.method, line.k, line.seconds) for line in methods]),
            _table(f"{data}: IL in % (figure 5)", [(line.method, line.k, line.il) for line in methods]),
            _table(f"{data}: IL in % (figure 6)", [(rho, line.k, line.il) for rho, line in rhos]),
            _table(
                f"{data}: DLD in %, own original among the two nearest (figure 7)",
                [(rho, line.k, 100 * line.dld_within_2) for rho, line in rhos],
            ),
            _table(
                f"{data}: % of the values of the last record recovered to {WITHIN:g} sd, k - 1 known",
                [("unseen", line.k, 100 * line.blind) for _, line in rhos[:: len(RHOS)]]
                + [(rho, line.k, 100 * line.recovered) for rho, line in rhos],
            ),
        ]
    return "\n\n".join(tables)


def _table(title: str, values: Sequence[tuple[str, int, float]]) -> str:
    """Return numbers by column and k as a table."""
    columns = list(dict.fromkeys(column for column, _, _ in values))
    found = {(column, k): value for column, k, value in values}
    lines = [title, f"{'k':>4}" + "".join(f"{column:>12}" for column in columns)]
    lines += [
        f"{k:>4}" + "".join(f"{found[column, k]:>12.4f}" for column in columns)
        for k in sorted({k for _, k, _ in values})
    ]
    return "\n".join(lines)


def _draw_function() -> Callable[..., object]:
    """Import what draws, which needs matplotlib."""
    from papers.random.pictures import draw

    return draw
