"""Records: the lowest losses on the reference data sets of the literature, beside published losses and the bound."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click

from papers.claims import Claim, as_text, untested
from papers.data_and_results import save
from papers.tfrp.printed import TABLE_2
from shoal import datasets
from shoal.arrays import standardize
from shoal.errors import ParameterError
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Matrix

PUBLISHED = {
    "census": {3: 5.69, 4: 7.49, 5: 9.09, 10: 14.16},
    "tarragona": {3: 16.93, 4: 19.55, 5: 22.46, 10: 33.19},
    "eia-11": {3: 0.48, 4: 0.67, 5: 1.67, 10: 3.84},
}
"""Published losses of MDAV in percent, by data set and k."""

EXAMPLES = """\b
Examples:
  python -m papers records
  python -m papers records --seconds 60 --bound
  python -m papers records -k 3,5
"""


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


@click.command(epilog=EXAMPLES)
@click.option("-k", "ks", default="3,5,10", show_default=True, metavar="K,K,...", help="Smallest cell sizes.")
@click.option("--seconds", type=click.FloatRange(min=0), default=10.0, show_default=True, help="Budget of the search.")
@click.option("--bound", "with_bound", is_flag=True, help="Prove a lower bound too; takes about a minute a line.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Repeats the search.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file for the numbers.")
def command(ks: str, seconds: float, with_bound: bool, seed: int, output: Path | None) -> None:
    """Print the lowest losses on Census, Tarragona and EIA.

    Information loss in percent on standardised columns (EIA is the one of eleven columns), with the seconds that each
    took: exact MDAV, the default method, and the default with effort "best"; before them MDAV as published, and both
    phases of TFRP as its paper prints them.
    """
    try:
        sizes = [int(part) for part in ks.split(",")]
    except ValueError:
        raise ParameterError(f"{ks!r} is not a list of whole numbers such as 3,5,10.") from None
    bound = "lower bound" if with_bound else ""
    published = f"{'published':>9} {'TFRP':>7}"
    click.echo(
        f"{'':<10}{'k':>3}  {published}  {'MDAV':>16}  {'auto':>16}  {f'best, {seconds:g} s':>16}  {bound:>12}".rstrip()
    )
    lines = []
    for line in measure(sizes, seconds, with_bound, seed):
        lines.append(line._asdict())
        cells = [(line.mdav, line.mdav_time), (line.auto, line.auto_time), (line.best, line.best_time)]
        text = "  ".join(f"{il:>7.4f} {f'{time:.3g} s':>8}" for il, time in cells)
        proven = "" if line.bound is None else f"{line.bound:>12.4f}"
        click.echo(f"{line.name:<10}{line.k:>3}  {_printed(line)}  {text}  {proven}".rstrip())
    content = {"seed": seed, "seconds": seconds, "records": lines}
    click.echo("")
    click.echo(as_text(claims(content)))
    if output:
        save(output, content)


def _printed(line: Line) -> str:
    """Return the published losses for the set and k, of MDAV and of both phases of TFRP; blank where there is none."""
    mdav, tfrp = PUBLISHED[line.name].get(line.k), _tfrp(line.name, line.k)
    return f"{'' if mdav is None else f'{mdav:.2f}':>9} {'' if tfrp is None else f'{tfrp:.3f}':>7}"


def _tfrp(name: str, k: int) -> float | None:
    """Return the value of TFRP's table 2; its EIA set is a different one, with ten columns."""
    place = {"tarragona": 1, "census": 3}.get(name)
    return TABLE_2[k][place] if place is not None and k in TABLE_2 else None


def claims(content: Mapping[str, Any]) -> list[Claim]:
    """Check the published losses against a result file."""
    found = []
    for line in (Line(**line) for line in content["records"]):
        printed = PUBLISHED[line.name].get(line.k)
        says = f"{line.name}, k={line.k}: MDAV loses {printed} %"
        if printed is None:
            found.append(untested("MDAV literature", f"{line.name}, k={line.k}: MDAV's loss", "none printed"))
        else:
            found.append(Claim("MDAV literature", says, f"{line.mdav:.4f} %", round(line.mdav, 2) == printed))
    return found


def measure(sizes: list[int], seconds: float, with_bound: bool, seed: int) -> Iterator[Line]:
    """Run every method on every data set and yield each line as soon as it is complete."""
    for load in (datasets.census, datasets.tarragona, datasets.eia):
        data = load()
        X = standardize(data.X)
        for k in sizes:
            yield Line(
                data.name,
                k,
                *_timed(X, k, "mdav", seed),
                *_timed(X, k, "auto", seed),
                *_timed(X, k, "auto", seed, effort="best", seconds=seconds),
                _bound(X, k) if with_bound else None,
            )


def _timed(X: Matrix, k: int, method: str, seed: int, **options: Any) -> tuple[float, float]:
    begin = perf_counter()
    labels = partition(X, k, method, seed, threads=1, **options)
    return loss(X, labels).il, perf_counter() - begin


def _bound(X: Matrix, k: int) -> float:
    from shoal.measures.bound import lower_bound

    return lower_bound(X, k, effort="strong").il
