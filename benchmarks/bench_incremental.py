"""Benchmark of late records joining a base, compared with the thesis."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeVar

import click
import numpy as np
import pyarrow as pa

from bench_partition import ROOT, circumstances
from materials import CENSUS_COLUMNS, Source, census, covertype, gaussian
from measure import say
from problems import Problem, flights, sample, whole
from shoal import LDiversity, ShoalWarning, TCloseness, anonymize
from shoal.incremental import VARIANTS, join
from shoal.incremental.collection import begin
from shoal.incremental.reopen import neighbours_of
from shoal.measures import loss
from shoal.methods import partition
from shoal.typing import Labels

RESULTS = ROOT / "benchmarks" / "results" / "incremental.json"
SCRATCH = ROOT / "out" / "bench" / "incremental.json"
K = 10
T = TypeVar("T")


class Bench:
    """Results so far."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self.results: dict[str, Any] = {"rows": [], "claims": [], "missing": []}

    def row(self, **numbers: Any) -> None:
        """Record and print a measurement."""
        self.results["rows"].append(numbers)
        say(
            "  ".join(
                f"{name} {value:.4g}" if isinstance(value, float) else str(value) for name, value in numbers.items()
            )
        )

    def claim(self, what: str, value: float, unit: str, **aim: float) -> None:
        """Record a number and its goal in a full run: `at_least`, `at_most`."""
        met = value >= aim.get("at_least", -np.inf) and value <= aim.get("at_most", np.inf)
        self.results["claims"].append(
            {"what": what, "value": value, "unit": unit, **({} if self.quick else {**aim, "met": bool(met)})}
        )
        say(f"-> {what}: {value:.3g} {unit}" + ("" if self.quick else f" ({'met' if met else 'NOT MET'}: {aim})"))


def timed(task: Callable[[], T]) -> tuple[T, float]:
    """Run with one thread and return the processor time, which other load on the machine affects least."""
    start = process_time()
    result = task()
    return result, process_time() - start


def thesis(bench: Bench) -> None:
    """Relative loss and time of every variant over MDAV of everything, Gaussian 50,000 x 15, one thread."""
    n = 2_000 if bench.quick else 50_000
    losses: dict[tuple[str, float], list[float]] = {}
    for draw in range(1 if bench.quick else 3):
        X = np.random.default_rng([draw, n]).normal(size=(n, 15))
        everything, seconds = timed(lambda X=X: partition(X, K, "mdav", threads=1))
        reference = loss(X, everything).sse
        for nu in (0.1, 0.3, 0.5):
            n_base = round(n * (1 - nu))
            for variant in VARIANTS:
                method = "auto" if variant == "reopen" else "mdav"
                base, base_seconds = timed(
                    lambda X=X, n_base=n_base, method=method: partition(X[:n_base], K, method, seed=0, threads=1)
                )
                labels, late_seconds = timed(
                    lambda X=X, base=base, variant=variant: join(X, base, K, variant, seed=0, threads=1)
                )
                delta = 100 * (loss(X, labels).sse / reference - 1)
                losses.setdefault((variant, nu), []).append(delta)
                bench.row(
                    section="thesis", draw=draw, n=n, nu=nu, variant=variant, base=method, delta_percent=delta,
                    tau_0=base_seconds / seconds, tau_plus=late_seconds / seconds, mdav_seconds=seconds,
                )  # fmt: skip
    bench.claim("two-step at 10 %: loss over MDAV", mean(losses["two-step", 0.1]), "%", at_least=4.5, at_most=5.1)
    bench.claim("split-end at 10 %: loss over MDAV", mean(losses["split-end", 0.1]), "%", at_least=1.8, at_most=2.4)
    for nu in (0.1, 0.3, 0.5):
        bench.claim(f"reopen at {nu:.0%}: loss over MDAV", max(losses["reopen", nu]), "%", at_most=0.0)


def same_method(bench: Bench) -> None:
    """Reopen at nu = 10 % against the default method on everything: loss and time, one thread, best of several runs."""
    aims = {"gaussian": 25.0}
    sources: list[Source | Any] = [census(204_309), covertype(286_048), flights()]
    for missing in (source for source in sources if not isinstance(source, Source)):
        bench.results["missing"].append(f"{missing.name}: {missing.reason}")
    problems = [sample(gaussian(), 10_000 if bench.quick else 300_000)]
    problems += [
        sample(source, 10_000) if bench.quick else whole(source) for source in sources if isinstance(source, Source)
    ]
    for problem in problems:
        one_problem(bench, problem, aims.get(problem.data, 50.0))


def one_problem(bench: Bench, problem: Problem, aim: float) -> None:
    order = np.random.default_rng(1).permutation(len(problem.X))
    X = np.ascontiguousarray(problem.X[order])
    n_base = round(0.9 * len(X))
    base = partition(X[:n_base], K, seed=0)
    neighbours = neighbours_of(X[:n_base], base, K)  # as a collection does while waiting
    times: dict[str, list[float]] = {"everything": [], "reopen": [], "one round": []}
    labels: dict[str, Labels] = {}
    for _ in range(1 if bench.quick else 3):
        for name, task in {
            "everything": lambda: partition(X, K, seed=0, threads=1),
            "reopen": lambda: join(X, base, K, seed=0, threads=1, neighbours=neighbours),
            "one round": lambda: join(X, base, K, seed=0, threads=1, neighbours=neighbours, rounds=1),
        }.items():
            labels[name], seconds = timed(task)
            times[name].append(seconds)
    il = {name: 100 * loss(X, cells).il for name, cells in labels.items()}
    share = 100 * min(times["reopen"]) / min(times["everything"])
    extra = 100 * (il["reopen"] / il["everything"] - 1)
    bench.row(
        section="same method", data=problem.data, n=len(X), dims=X.shape[1], nu=0.1, il_everything=il["everything"],
        il_reopen=il["reopen"], seconds_everything=min(times["everything"]), seconds_reopen=min(times["reopen"]),
        il_one_round=il["one round"], seconds_one_round=min(times["one round"]),
    )  # fmt: skip
    bench.claim(f"{problem}: reopen's loss over the same method's", extra, "%", at_most=1.0)
    bench.claim(f"{problem}: reopen's time of the same method's", share, "%", at_most=aim)


def models(bench: Bench) -> None:
    """Compare a collection with a model, 10 % late, with one release of everything: loss and time, one thread."""
    source = census(204_309)
    if not isinstance(source, Source) or source.records is None:
        bench.results["missing"].append(f"{source.name}: no records")
        return
    n = 3_000 if bench.quick else 50_000
    rows = np.random.default_rng([2, n]).choice(len(source.records), n, replace=False)
    table = pa.table(dict(zip(CENSUS_COLUMNS, source.records[rows].T, strict=True)))
    roles = {"quasi_identifiers": [c for c in CENSUS_COLUMNS if c != "salary"], "confidential": ["salary"]}
    for model in (TCloseness("salary", t=0.1), TCloseness("salary", t=0.2), LDiversity("salary", l=5)):
        settings: dict[str, Any] = {"k": K, "seed": 0, "models": [model], "threads": 1, **roles}
        everything, seconds = timed(lambda settings=settings: anonymize(table, **settings))
        with TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", ShoalWarning)
            collection = begin(Path(folder) / "c", table.slice(0, round(0.9 * n)), **settings)
            collection.add(table.slice(round(0.9 * n)))
            late, late_seconds = timed(lambda collection=collection: collection.finish(threads=1))
        bench.row(
            section="models", model=str(model), n=n, nu=0.1, il_everything=100 * everything.loss.il,
            il_collection=100 * late.loss.il, seconds_everything=seconds, seconds_finish=late_seconds,
        )  # fmt: skip


SECTIONS = {"thesis": thesis, "same-method": same_method, "models": models}


@click.command()
@click.option("--quick", is_flag=True, help="Small sizes, single runs. Checks that it works.")
@click.option("--only", multiple=True, type=click.Choice(list(SECTIONS)), help="A section; may be given several times.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, only: tuple[str, ...], output: Path | None) -> None:
    """Measure late records joining a base."""
    output = output or (SCRATCH if quick or only else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    bench = Bench(quick)
    about = circumstances(quick)
    for name in only or SECTIONS:
        say(f"\n{name}: {SECTIONS[name].__doc__}")
        SECTIONS[name](bench)
        output.write_text(json.dumps({**about, **bench.results}, indent=1) + "\n", encoding="utf-8")
    say(f"\nWritten to {output}")


if __name__ == "__main__":
    main()
