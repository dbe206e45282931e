"""TFRP: the paper's table of losses, its figures 5 to 13, and its claims about them.

References
----------
Chang, Li, Huang (2007), "TFRP: an efficient microaggregation algorithm for statistical disclosure control".
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from papers.claims import as_text
from papers.data_and_results import Missing, drawn, make_folder, save, timed
from papers.tfrp.claims import claims, in_text
from papers.tfrp.images import NAMES, block_sets
from papers.tfrp.methods import METHODS, SMALL_LIMIT, Limit, Result, measure
from papers.tfrp.printed import SIZES, table_2
from shoal import datasets
from shoal.arrays import standardize
from shoal.datasets import Dataset
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Matrix

__all__ = ["claims", "command"]


class Scale(NamedTuple):
    """How much is measured."""

    side: int
    """Pixels across a picture."""

    image_sizes: tuple[int, ...]
    """The k of figures 8, 9, 11 and 12."""

    records: tuple[int, ...]
    """The n of figure 13."""

    limit: Limit = SMALL_LIMIT
    """Limits up to which the plain twins are run."""


SMALL = Scale(256, (10, 20, 40, 80), (1_000, 2_000, 4_000, 8_000, 16_000))
PAPERS = Scale(
    512,
    tuple(range(10, 81, 10)),
    (1_000, 2_000, 4_000, 8_000, *range(10_000, 120_001, 10_000)),
    Limit(pairs=6e10, records=17_000),
)
SCALABILITY_K = 50

EXAMPLES = """\b
Examples:
  python -m papers tfrp
  python -m papers tfrp --without-images
  python -m papers tfrp --full --output tfrp-full
"""


@click.command(epilog=EXAMPLES)
@click.option("--full", is_flag=True, help="The paper's sizes: whole pictures, up to 120000 records. Takes minutes.")
@click.option("--without-images", is_flag=True, help="Leave out the data sets made of pictures.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Repeats the random samples.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/tfrp"),
    show_default=True,
    help="Folder for the pictures and the numbers.",
)
def command(full: bool, without_images: bool, seed: int, output: Path) -> None:
    """Compare TFRP's table and figures with ours.

    Information loss and time of Diameter, Centroid and TFRP, each with and without its second phase, on the three
    reference sets (table 2, figures 5 to 7 and 10) and on blocks of pixels (figures 8, 9 and 11 to 13), as tables,
    pictures and JSON. The pictures come with scikit-image and are left out where that is not installed.
    """
    scale = PAPERS if full else SMALL
    report = Report(output, seed)
    sets: list[Dataset | Missing] = [*reference_sets()]
    if not without_images:
        sets += block_sets(scale.side)
    run(report, sets, scale)
    click.echo(texts(report))
    click.echo(drawn(_draw_function, report.folder, report.results, report.scalability), err=True)


def reference_sets() -> list[Dataset]:
    """Return the three data sets of the literature, EIA in both interpretations."""
    return [datasets.tarragona(), datasets.census(), datasets.eia(10), datasets.eia(11)]


class Report:
    """Results so far, saved after every data set, so that an interrupted run keeps them."""

    def __init__(self, folder: Path, seed: int) -> None:
        make_folder(folder)
        self.folder = folder
        self.seed = seed
        self.results: list[Result] = []
        self.scalability: list[Result] = []
        self.trees: list[dict[str, Any]] = []

    def content(self) -> dict[str, Any]:
        """Return what is saved."""
        return {
            "seed": self.seed,
            "results": [result._asdict() for result in self.results],
            "scalability": [result._asdict() for result in self.scalability],
            "trees": self.trees,
        }

    def save(self) -> None:
        """Write the numbers beside the pictures."""
        save(self.folder / "tfrp.json", self.content())


def run(report: Report, sets: Sequence[Dataset | Missing], scale: Scale, sizes: Sequence[int] = SIZES) -> None:
    """Fill the report: every set at every k, then samples of growing size."""
    for data in sets:
        if isinstance(data, Missing):
            click.echo(f"Without {data.name}: {data.reason}.", err=True)
            continue
        X = standardize(data.X)
        with click.progressbar(
            scale.image_sizes if _is_picture(data.name) else sizes, label=f"{data.name:<14}", file=sys.stderr
        ) as bar:
            for k in bar:
                report.results += measure(data.name, X, k, scale.limit)
                if not _is_picture(data.name):
                    report.trees.append(tree_line(data.name, X, k))
        report.save()
    _run_scalability(report, [data for data in sets if isinstance(data, Dataset)], scale)


def tree_line(data: str, X: Matrix, k: int) -> dict[str, Any]:
    """Compare MST partitioning with Diameter and Centroid (section 2.3)."""
    line: dict[str, Any] = {"data": data, "k": k}
    for method in ("mst", "diameter", "centroid"):
        labels, seconds = timed(partition, X, k, method, threads=1)
        line |= {method: loss(X, labels).il, f"{method}_seconds": seconds}
    return line


def _is_picture(name: str) -> bool:
    return name.startswith(NAMES)


def _run_scalability(report: Report, sets: Sequence[Dataset], scale: Scale) -> None:
    """Time samples of the two dense picture sets together (figure 13)."""
    dense = [data.X for data in sets if _is_picture(data.name) and data.name.endswith("2x2")]
    if not dense:
        return
    records = np.concatenate(dense)
    with click.progressbar(
        [n for n in scale.records if n <= len(records)], label="growing n     ", file=sys.stderr
    ) as bar:
        for n in bar:
            chosen = np.random.default_rng([report.seed, n]).choice(len(records), n, replace=False)
            report.scalability += measure("both-2x2", standardize(records[chosen]), SCALABILITY_K, scale.limit)
    report.save()


def texts(report: Report) -> str:
    """Format everything as text."""
    parts = [
        table_2_text(report.results),
        in_text_text(report.results),
        *(figures_text(report.results, what) for what in ("il", "plain_seconds", "seconds")),
        *(scalability_text(report.scalability, what) for what in ("plain_seconds", "seconds")),
        as_text(claims(report.content())),
    ]
    return "\n".join(part for part in parts if part)


def table_2_text(results: Sequence[Result]) -> str:
    """Compare each entry of table 2 with ours, and count those that agree to the printed digits."""
    ours = {(result.data, result.k, result.method): result.il for result in results}
    lines = ["Table 2: information loss in percent, the paper's | ours | difference", ""]
    agreeing = total = 0
    for data, k, phases, il in table_2():
        key = (data, k, "TFRP_I" if phases == 1 else "TFRP")
        if key not in ours:
            continue
        total += 1
        agreeing += round(ours[key], 3) == il
        lines.append(f"{data:<10} k={k:<3} {key[2]:<7} {il:>8.3f} {ours[key]:>8.3f} {ours[key] - il:>+9.4f}")
    return "\n".join([*lines, "", f"{agreeing} of {total} entries agree in every printed digit.", ""])


def in_text_text(results: Sequence[Result]) -> str:
    """Compare the losses given in the text with ours."""
    lines = ["Losses in the text: the paper's | ours | difference", ""]
    lines += [
        f"{data:<10} k={k:<3} {method:<10} {paper:>8.2f} {ours:>8.3f} {ours - paper:>+8.3f}"
        for data, k, method, paper, ours in in_text(results)
    ]
    return "\n".join([*lines, ""]) if len(lines) > 2 else ""


WHAT = {
    "il": "Figures 5 to 9: information loss in percent",
    "plain_seconds": "Figures 10 to 12: seconds of the plain twins, one thread",
    "seconds": "Figures 10 to 12: seconds of shoal's kernels, one thread",
}


def figures_text(results: Sequence[Result], what: str) -> str:
    """List the loss (figures 5 to 9) or the time (figures 10 to 12) of the six methods."""
    lines = [WHAT[what], "", f"{'data':<14} {'n':>7} {'k':>3} " + " ".join(f"{method:>10}" for method in METHODS)]
    cases = dict.fromkeys((result.data, result.n, result.k) for result in results)
    numbers = {(result.data, result.k, result.method): getattr(result, what) for result in results}
    lines += [
        f"{data:<14} {n:>7,} {k:>3} " + " ".join(_number(numbers[data, k, method]) for method in METHODS)
        for data, n, k in cases
    ]
    return "\n".join([*lines, ""])


def _number(value: float | None) -> str:
    return f"{'not run':>10}" if value is None else f"{value:>10.3f}"


def scalability_text(scalability: Sequence[Result], what: str = "seconds") -> str:
    """List the time of the six methods on growing samples (figure 13)."""
    if not scalability:
        return ""
    whose = "the plain twins" if what == "plain_seconds" else "shoal's kernels"
    lines = [f"Figure 13: seconds of {whose}, one thread, k={SCALABILITY_K}", ""]
    lines.append(f"{'n':>7} " + " ".join(f"{method:>10}" for method in METHODS))
    times = {(result.n, result.method): getattr(result, what) for result in scalability}
    lines += [
        f"{n:>7,} " + " ".join(_number(times[n, method]) for method in METHODS)
        for n in dict.fromkeys(result.n for result in scalability)
    ]
    return "\n".join([*lines, ""])


def _draw_function() -> Callable[..., object]:
    """Import what draws, which needs matplotlib."""
    from papers.tfrp.pictures import draw

    return draw
