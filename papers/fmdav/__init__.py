"""F-MDAV: the paper's five ways to make MDAV cheaper, and its experiments on them.

`numpy_mdav` is MDAV with the five as switches; ``python -m papers fmdav`` times them.

References
----------
Rodriguez-Hoyos, Estrada-Jimenez, Rebollo-Monedero, Mohamad Mezher, Parra-Arnau, Forne (2020), "The fast maximum
distance to average vector (F-MDAV): an algorithm for k-anonymous microaggregation in big data".
"""

from collections.abc import Iterable, Sequence

import click
import numpy as np

from papers.data_and_results import Missing, Source, census, covertype, gaussian, timed
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
from papers.fmdav.claims import PAPERS_SIZES, claims
from papers.fmdav.sorting import Timing, compare_sorting, list_lengths, sorting_table
from papers.fmdav.switches import numpy_mdav
from papers.paper import RESUME, Archived, Content, Paper, Run, bar, count, counts, seed_option, switch, without
from shoal.errors import ParameterError

SMALL_SIZES = (5_000, 10_000, 20_000)
SMALL_LIST, PAPERS_LIST = 10**6, 10**7

# Rough cost of each relative to a traditional run, for the progress bar and the estimate only.
COSTS = {TRADITIONAL: 1.0, TOGETHER: 0.2, KERNEL: 0.05}
ALONE_COST = 0.8


def measure(
    run: Run, full: bool, n: tuple[int, ...] | None, k: int, seed: int, longest: int | None, samples: int, jobs: int
) -> None:
    """Run the ablation, then compare sorting with selecting."""
    sizes = n or (PAPERS_SIZES if full else SMALL_SIZES)
    longest = longest if longest is not None else (PAPERS_LIST if full else SMALL_LIST)
    if min(sizes) < 2 * k:
        raise ParameterError(f"With k={k} a sample needs at least {2 * k} records; n={min(sizes)} was asked for.")
    run.begin(k=k, seed=seed)
    origins = run.content.setdefault("data", {})
    there = {(result.data, result.n) for result in run.content["ablation"]}
    tasks = [(source, n) for source, n in _tasks(sizes) if (source.name, n) not in there]
    click.echo(_forecast(tasks, k, samples, jobs), err=True)
    with bar("Ablation", length=round(_total_cost(tasks, samples))) as shown:

        def advance(task: Task, variant: str) -> None:
            shown.update(round(_weight(*task) * COSTS.get(variant, ALONE_COST)))

        results = ablate(tasks, k, seed, samples, jobs, advance)
        for (source, _), found in zip(tasks, results, strict=True):
            origins[source.name] = source.origin
            run.add("ablation", found)
    done = {timing.n for timing in run.content["sorting"]}
    with bar("Sorting", list_lengths(longest)) as lengths:
        for length in lengths:
            run.add("sorting", [] if length in done else compare_sorting(length, seed))


def tables(content: Content) -> str:
    """Return the ablation, and the sorting test if it was run."""
    sorting = content["sorting"]
    return "\n".join([ablation_table(content["ablation"]), *([sorting_table(sorting)] if sorting else [])])


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
                without(f"{source.name} at n={n:,}", f"{source.origin} has fewer records")
    for name, reason in missing.items():
        without(name, reason)
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
    seconds = _total_cost(tasks, samples) * timed(numpy_mdav, X, k)[1] / _weight(trial, len(X)) / jobs
    if seconds < 600:
        return f"The ablation takes about {max(1, round(seconds / 60))} min."
    return (
        f"The ablation takes {seconds / 3600:.1f} hours or more: traditional MDAV is quadratic, and slower still once "
        "the data outgrow the processor's caches. Results are saved as they come; Ctrl-C stops."
    )


PAPER = Paper(
    "The fast maximum distance to average vector (F-MDAV), Rodriguez-Hoyos et al. 2020",
    "figures 6 to 11",
    "about 2 minutes",
    "--full: about 80 minutes, 7 with --jobs 16",
    """Time F-MDAV's five strategies beside shoal's kernel.

    The paper's ablation, each alone and all together (its figures 6 to 8 and 11), on Gaussian, covertype and census
    records, and its comparison of a full sort with a selection (figures 9 and 10), as tables, pictures and JSON. The
    real data are searched in the folder that SHOAL_DATA names, or in shared/data in or beside the current folder.
    """,
    ("", "--n 20000 --longest 0", "--full --jobs 16 --output fmdav-full", "--full --samples 1 --resume"),
    "--n 2000,5000 --samples 1 --longest 100000",
    (
        switch("--full", "The paper's sizes: n = 10000, 70000, 150000, lists up to 10^7. Takes more than an hour."),
        counts("--n", "Records in a sample.  [default: 5000,10000,20000]"),
        count("-k", "Smallest cell size.", 2, default=10),
        seed_option(),
        count("--longest", "Longest list to sort; 0 for none.  [default: 1000000]"),
        count("--samples", "Random samples that times are means of; the paper takes three.", 1, default=N_SAMPLES),
        count("--jobs", "Runs of the ablation at the same time; on idle cores, --full takes minutes.", 1, default=1),
        RESUME,
    ),
    {"ablation": Result, "sorting": Timing},
    measure,
    tables,
    claims,
    "papers.fmdav.pictures",
    (Archived("fmdav.json", "fmdav --full --jobs 16"),),
)
