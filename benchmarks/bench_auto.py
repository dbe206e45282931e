"""How the constants of the default method were chosen: each varied separately, on real and on generated records.

Loss in percent and processor time for every setting, on one thread. The last rows give the cost of a setting averaged
over all problems, relative to the one in use: the mean of the ratios of losses and of times.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import click
import numpy as np

from materials import Missing, census, covertype, gaussian, machine
from problems import Problem, california, flights, sample, whole
from shoal import datasets, kernels
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.methods.auto import SHORT_SEARCH
from shoal.methods.blocks import BLOCK_RECORDS, blocks
from shoal.methods.refine import refine
from shoal.typing import Labels, Matrix

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "auto.json"
SIZES = (8_000, 16_000, 32_000, BLOCK_RECORDS, 128_000)
NEIGHBOURS = (10, 15, 20, 30, 40)
LEAST_GAINS = (0.02, 0.01, 0.005, 0.002)
SEARCHES = (0, 300, SHORT_SEARCH, 3_000, 10_000)


class Setting(NamedTuple):
    """One constant and its value; the others have the values in use."""

    constant: str
    value: float
    used: bool
    run: Callable[[Matrix, int], Labels]


def settings() -> Iterator[Setting]:
    """Yield the settings for large inputs."""
    for size in SIZES:
        yield Setting(
            "block size", size, size == BLOCK_RECORDS, lambda X, k, size=size: refine(X, blocks(X, k, size=size), k)
        )
    for n in NEIGHBOURS:
        yield Setting("neighbours", n, n == 20, lambda X, k, n=n: refine(X, blocks(X, k), k, neighbours=n))
    for gain in LEAST_GAINS:
        yield Setting(
            "least gain", gain, gain == 0.005, lambda X, k, gain=gain: refine(X, blocks(X, k), k, least_gain=gain)
        )


def searches() -> Iterator[Setting]:
    """Yield the settings for small inputs: steps of the final search, per record."""
    for steps in SEARCHES:
        yield Setting("search", steps, steps == SHORT_SEARCH, lambda X, k, steps=steps: _searched(X, k, steps))


def _searched(X: Matrix, k: int, steps: int) -> Labels:
    refined = refine(X, blocks(X, k), k)
    if steps == 0:
        return refined
    schedule = kernels.Schedule(int(steps * len(X) * min(1.0, 10 / k)), hot=4, fall=7)
    return refine(X, kernels.anneal(X, refined, k, schedule, 1), k, least_gain=0.0)


def large(quick: bool) -> Iterator[Problem]:
    """Yield real records, noise, clusters and a plane in space."""
    rng = np.random.default_rng(7)
    n = 20_000 if quick else 200_000
    for source in (california(), covertype(92_962), census(204_309), covertype(286_048), flights()):
        if isinstance(source, Missing):
            click.echo(f"Left out: {source.name}: {source.reason}.", err=True)
        else:
            yield sample(source, 20_000) if quick else whole(source)
    yield sample(gaussian(), n)
    centres = rng.normal(scale=10, size=(200, 8))
    yield Problem("heaps", standardize(centres[rng.integers(200, size=n)] + rng.standard_t(3, size=(n, 8))))
    plane = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 12))
    yield Problem("plane", standardize(plane + rng.normal(scale=0.1, size=(n, 12))))


def small() -> Iterator[Problem]:
    """Yield the reference sets."""
    for dataset in (datasets.census(), datasets.tarragona(), datasets.eia()):
        yield Problem(dataset.name, standardize(dataset.X))


def tried(problem: Problem, tries: Iterator[Setting]) -> Iterator[dict[str, Any]]:
    """Yield loss and time of each setting."""
    for setting in tries:
        with kernels.using(1):
            start = process_time()
            labels = setting.run(problem.X, problem.k)
            seconds = process_time() - start
        il = 100 * loss(problem.X, labels).il
        click.echo(f"{problem}: {setting.constant} {setting.value:g}: {il:.4f} %, {seconds:.2f} s", err=True)
        yield {
            "problem": str(problem),
            "constant": setting.constant,
            "value": setting.value,
            "used": setting.used,
            "il": il,
            "seconds": seconds,
        }


def on_average(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return for each setting the mean ratio of its loss and time to those of the one in use."""
    used = {(row["problem"], row["constant"]): row for row in rows if row["used"]}
    means = []
    for constant, value in dict.fromkeys((row["constant"], row["value"]) for row in rows):
        some = [row for row in rows if (row["constant"], row["value"]) == (constant, value)]
        beside = [used[row["problem"], constant] for row in some]
        ratios = {
            name: float(np.exp(np.mean([np.log(a[name] / b[name]) for a, b in zip(some, beside, strict=True)])))
            for name in ("il", "seconds")
        }
        means.append({"constant": constant, "value": value, "used": some[0]["used"], **ratios})
    return means


@click.command()
@click.option("--quick", is_flag=True, help="Small samples, to check that it works; nothing is written.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), default=RESULTS, show_default=False)
def main(quick: bool, output: Path) -> None:
    """Vary the constants of the default method one by one. A full run takes about ten minutes."""
    rows = [row for problem in large(quick) for k in (5, 10) for row in tried(problem._replace(k=k), settings())]
    rows += [row for problem in small() for k in (3, 5, 10) for row in tried(problem._replace(k=k), searches())]
    means = on_average(rows)
    click.echo("\nOn average over all problems, relative to the settings in use:")
    for mean in means:
        mark = "  (used)" if mean["used"] else ""
        click.echo(
            f"  {mean['constant']:>10} {mean['value']:>8g}: loss x {mean['il']:.4f}, time x {mean['seconds']:.2f}{mark}"
        )
    if not quick:
        content = {"machine": machine(), "rows": rows, "on_average": means}
        output.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
