"""F-MDAV: the paper's five ways to make MDAV cheaper, and its experiments on them.

`numpy_mdav` is MDAV with the five as switches; ``python -m papers fmdav`` times them.

References
----------
Rodriguez-Hoyos, Estrada-Jimenez, Rebollo-Monedero, Mohamad Mezher, Parra-Arnau, Forne (2020), "The fast maximum
distance to average vector (F-MDAV): an algorithm for k-anonymous microaggregation in big data".
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import click
import numpy as np

from papers.claims import as_text
from papers.data_and_results import Missing, Source, census, covertype, drawn, gaussian, make_folder, save
from papers.fmdav.ablation import (
    KERNEL,
    N_SAMPLES,
    TOGETHER,
    TRADITIONAL,
    Result,
    Task,
    ablate,
    ablation_table,
    variants,
)
from papers.fmdav.claims import claims
from papers.fmdav.sorting import Timing, compare_sorting, list_lengths, sorting_table
from papers.fmdav.switches import numpy_mdav
from shoal.errors import ParameterError

__all__ = ["claims", "command", "numpy_mdav"]

SMALL_SIZES, PAPERS_SIZES = (5_000, 10_000, 20_000), (10_000, 70_000, 150_000)
SMALL_LIST, PAPERS_LIST = 10**6, 10**7

# Rough cost of each relative to a traditional run, for the progress bar and the estimate only.
COSTS = {TRADITIONAL: 1.0, TOGETHER: 0.2, KERNEL: 0.05}
ALONE_COST = 0.8


def _sizes(context: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Read ``2000,5000`` as numbers."""
    if text is None:
        return None
    try:
        sizes = tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 2000,5000.") from None
    return tuple(sorted(set(sizes)))


EXAMPLES = """\b
Examples:
  python -m papers fmdav
  python -m papers fmdav --n 20000 --longest 0
  SHOAL_DATA=~/data python -m papers fmdav --full --output fmdav-full
  python -m papers fmdav --full --jobs 16 --output fmdav-full
  python -m papers fmdav --full --samples 1 --output fmdav-full --resume
"""


@click.command(epilog=EXAMPLES)
@click.option(
    "--full",
    is_flag=True,
    help="The paper's sizes: n = 10000, 70000, 150000, lists up to 10^7. Takes more than an hour.",
)
@click.option(
    "--n", "sizes", callback=_sizes, metavar="N,N,...", help="Records in a sample.  [default: 5000,10000,20000]"
)
@click.option("-k", "k", type=click.IntRange(min=2), default=10, show_default=True, help="Smallest cell size.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Repeats the random samples.")
@click.option("--longest", type=click.IntRange(min=0), help="Longest list to sort; 0 for none.  [default: 1000000]")
@click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=N_SAMPLES,
    show_default=True,
    help="Random samples that times are means of; the paper takes three.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Runs of the ablation at the same time; on as many idle cores, --full takes minutes.",
)
@click.option("--resume", is_flag=True, help="Resume an interrupted run from what is in the folder.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/fmdav"),
    show_default=True,
    help="Folder for the pictures and the numbers.",
)
def command(
    full: bool,
    sizes: tuple[int, ...] | None,
    k: int,
    seed: int,
    longest: int | None,
    samples: int,
    jobs: int,
    resume: bool,
    output: Path,
) -> None:
    """Time F-MDAV's five strategies beside shoal's kernel.

    The paper's ablation, each alone and all together (its figures 6 to 8 and 11), on Gaussian, covertype and census
    records, and its comparison of a full sort with a selection (figures 9 and 10), as tables, pictures and JSON. The
    real data are searched in the folder that SHOAL_DATA names, or in shared/data in or beside the current folder.
    """
    sizes = sizes or (PAPERS_SIZES if full else SMALL_SIZES)
    longest = longest if longest is not None else (PAPERS_LIST if full else SMALL_LIST)
    if min(sizes) < 2 * k:
        raise ParameterError(f"With k={k} a sample needs at least {2 * k} records; n={min(sizes)} was asked for.")
    report = Report(output, k, seed, resume)
    tasks = [task for task in _tasks(sizes) if not report.holds(*task)]
    click.echo(_forecast(tasks, k, samples, jobs), err=True)
    _run_ablation(tasks, report, samples, jobs)
    click.echo(ablation_table(report.ablation))
    if list_lengths(longest):
        _run_sorting(longest, report)
        click.echo(sorting_table(report.sorting))
    click.echo(as_text(claims(report.content())))
    click.echo(drawn(_draw_function, report.folder, report.ablation, report.sorting), err=True)


class Report:
    """Results so far, saved after every step, so that an interrupted run keeps them."""

    def __init__(self, folder: Path, k: int, seed: int, resume: bool = False) -> None:
        make_folder(folder)
        self.folder = folder
        self.k = k
        self.seed = seed
        self.origins: dict[str, str] = {}
        self.ablation: list[Result] = []
        self.sorting: list[Timing] = []
        if resume:
            self._go_on()

    def _go_on(self) -> None:
        """Read the results of an earlier run, or raise if it cannot be continued."""
        file = self.folder / "fmdav.json"
        if not file.is_file():
            raise ParameterError(f"There is nothing to resume: {file} is not there. Run without --resume.")
        content = json.loads(file.read_text(encoding="utf-8"))
        if (content["k"], content["seed"]) != (self.k, self.seed):
            raise ParameterError(
                f"{file} was measured with k={content['k']} and seed {content['seed']}. Give the same ones."
            )
        self.origins = content["data"]
        self.ablation = [Result(**result) for result in content["ablation"]]
        self.sorting = [Timing(**timing) for timing in content["sorting"]]

    def holds(self, source: Source, n: int) -> bool:
        """Return whether a data set was measured at a size."""
        return any((result.data, result.n) == (source.name, n) for result in self.ablation)

    def content(self) -> dict[str, Any]:
        """Return what is saved."""
        return {
            "k": self.k,
            "seed": self.seed,
            "data": self.origins,
            "ablation": [result._asdict() for result in self.ablation],
            "sorting": [timing._asdict() for timing in self.sorting],
        }

    def save(self) -> None:
        """Write the numbers beside the pictures."""
        save(self.folder / "fmdav.json", self.content())


def _tasks(sizes: Sequence[int]) -> list[Task]:
    """Pair every available data set with every size it has, smallest first, and report what is left out."""
    tasks: list[Task] = []
    missing: dict[str, str] = {}
    for n in sizes:
        for source in (gaussian(), covertype(n), census(n)):
            if isinstance(source, Missing):
                missing[source.name] = source.reason
            elif source.holds(n):
                tasks.append((source, n))
            else:
                click.echo(f"Without {source.name} at n={n:,}: {source.origin} has fewer records.", err=True)
    for name, reason in missing.items():
        click.echo(f"Without {name}: {reason}.", err=True)
    return sorted(tasks, key=lambda task: task[1])


def _weight(source: Source, n: int) -> float:
    """Return the cost of one traditional run, in any unit."""
    return n * n * source.n_dims / 1000


def _total_cost(tasks: Iterable[Task], samples: int) -> float:
    per_sample = sum(COSTS.get(variant, ALONE_COST) for variant in variants())
    return samples * per_sample * sum(_weight(source, n) for source, n in tasks)


def _forecast(tasks: Iterable[Task], k: int, samples: int, jobs: int) -> str:
    """Time one small run and scale it up."""
    trial = gaussian()
    X = trial.sample(5_000 + 2 * k, np.random.default_rng(0))
    start = process_time()
    numpy_mdav(X, k)
    seconds = _total_cost(tasks, samples) * (process_time() - start) / _weight(trial, len(X)) / jobs
    if seconds < 600:
        return f"The ablation takes about {max(1, round(seconds / 60))} min."
    return (
        f"The ablation takes {seconds / 3600:.1f} hours or more: traditional MDAV is quadratic, and slower still once "
        "the data outgrow the processor's caches. Results are saved as they come; Ctrl-C stops."
    )


def _run_ablation(tasks: Sequence[Task], report: Report, samples: int, jobs: int) -> None:
    """Fill the report, with a progress bar weighted by the cost of each run."""
    with click.progressbar(length=round(_total_cost(tasks, samples)), label="Ablation", file=sys.stderr) as bar:

        def advance(task: Task, variant: str) -> None:
            bar.update(round(_weight(*task) * COSTS.get(variant, ALONE_COST)))

        results = ablate(tasks, report.k, report.seed, samples, jobs, advance)
        for (source, _), found in zip(tasks, results, strict=True):
            report.ablation += found
            report.origins[source.name] = source.origin
            report.save()


def _run_sorting(longest: int, report: Report) -> None:
    with click.progressbar(list_lengths(longest), label="Sorting", file=sys.stderr) as lengths:
        done = {timing.n for timing in report.sorting}
        for n in lengths:
            report.sorting += [] if n in done else compare_sorting(n, report.seed)
    report.save()


def _draw_function() -> Callable[..., object]:
    """Import what draws, which needs matplotlib."""
    from papers.fmdav.pictures import draw

    return draw
