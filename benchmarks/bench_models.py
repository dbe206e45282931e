"""Measure the privacy models: what they reach, and their cost in loss and time relative to a run without them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, NamedTuple

import click
import numpy as np
import pyarrow.csv

from materials import CENSUS_COLUMNS, data_folder, machine
from papers.steered import bound, cases, procedure
from shoal import kernels, partition
from shoal.arrays import standardize
from shoal.constraints.bucket_steering import bucket_attribute, n_buckets
from shoal.constraints.enforce import enforce
from shoal.measures import loss
from shoal.models import Codes, LDiversity, Model, TCloseness, encode
from shoal.typing import Matrix

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "models.json"
SCRATCH = ROOT / "out" / "bench" / "models.json"


class Case(NamedTuple):
    """Records, a k, and a model of a column."""

    data: str
    X: Matrix
    k: int
    model: Model
    column: Codes


@click.command()
@click.option("--quick", is_flag=True, help="Small data only; written to out/bench.")
def main(quick: bool) -> None:
    """Run every case, print a line for each, and save all."""
    rows = [*map(paper_row, cases()), *map(row, small_cases())]
    if quick:
        path = SCRATCH
    else:
        path = RESULTS
        for case in large_cases():
            rows.append(row(case))
            if case.data == "adult" and isinstance(case.model, TCloseness):
                rows.append(procedure_row(case, case.model))
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine(), "date": datetime.now(UTC).isoformat(timespec="seconds"), "rows": rows}
    path.write_text(json.dumps(content, indent=1) + "\n")
    click.echo(f"written: {path.relative_to(ROOT)}", err=True)


def small_cases() -> Iterator[Case]:
    """Yield the cases that need no file: the data sets of the paper."""
    for data, t in cases():
        yield Case(data.name, data.X, 2, TCloseness("confidential", t=t), data.column)


def large_cases() -> Iterator[Case]:
    """Yield the cases on real data, where the files are available, and one on generated data."""
    folder = data_folder()
    if folder is None:
        click.echo("Without adult and gov_census: no data folder found; SHOAL_DATA may name one.", err=True)
    else:
        adult = pyarrow.csv.read_csv(folder / "adult.csv.gz")
        X = standardize(matrix(adult, ("age", "education_num", "hours_per_week")))
        for name, ordered in (("capital_gain", True), ("occupation", False)):
            column = encode(adult[name], ordered=ordered)
            for t in (0.05, 0.1, 0.2, 0.3):
                yield Case("adult", X, 5, TCloseness(name, t=t), column)
        yield Case("adult", X, 5, LDiversity("occupation", l=3), encode(adult["occupation"], ordered=False))
        yield Case(
            "adult", X, 5, LDiversity("occupation", l=3, kind="entropy"), encode(adult["occupation"], ordered=False)
        )
        census = pyarrow.csv.read_csv(folder / "gov_census.csv.gz")
        others = tuple(name for name in CENSUS_COLUMNS if name != "salary")
        salary = encode(census["salary"], ordered=True)
        yield Case("gov_census", standardize(matrix(census, others)), 10, TCloseness("salary", t=0.15), salary)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 5))
    values = np.unique((X[:, 0] + 2 * rng.normal(size=len(X))).round(2), return_inverse=True)[1].astype(np.int64)
    yield Case("gaussian", X, 10, TCloseness("confidential", t=0.15), Codes(values, int(values.max()) + 1, True))


def matrix(table: Any, columns: tuple[str, ...]) -> Matrix:
    return np.column_stack([table[name].to_numpy() for name in columns]).astype(np.float64)


def paper_row(case: tuple[Any, float]) -> dict[str, Any]:
    """Measure the paper's procedure above its bound."""
    data, t = case
    attribute = bucket_attribute(data.X, data.column.codes, n_buckets(len(data.X), 2, t))
    return {"method": "the paper's procedure", **procedure(data, t, np.ceil(bound(data, t) + 1), attribute)._asdict()}


def procedure_row(case: Case, model: TCloseness) -> dict[str, Any]:
    """Measure the paper's procedure above its bound on a case of ours, loss and t as for ours."""
    n = len(case.X)
    weight = float(np.ceil(-(-n // n_buckets(n, case.k, model.t)) * np.sqrt(case.X.shape[1])) + 1)
    begin = perf_counter()
    steering = TCloseness(model.column, t=model.t, weight=weight)
    labels = enforce(case.X, None, case.k, [(steering, *case.column)], "mdav")
    seconds = perf_counter() - begin
    reached = model.measure(labels, case.column)
    result = {
        "method": "the paper's procedure",
        "data": case.data,
        "model": str(model),
        "weight": weight,
        "reached": reached.value,
        "holds": reached.holds,
        "mse": loss(case.X, labels).mse,
        "il": 100 * loss(case.X, labels).il,
        "cells": int(labels.max()) + 1,
        "seconds": seconds,
    }
    click.echo(
        f"  the paper's procedure, weight {weight:g}: reached {reached.value:.4f}{'' if reached.holds else ' (broken)'}"
        f"  IL {result['il']:.3f} %  MSE {result['mse']:.4f}  {seconds:.2f} s"
    )
    return result


def row(case: Case) -> dict[str, Any]:
    """Measure a run without the model and one with it, both on one thread."""
    begin, cpu = perf_counter(), process_time()
    without = partition(case.X, case.k, seed=1, threads=1)
    base, base_cpu = perf_counter() - begin, process_time() - cpu
    begin, cpu = perf_counter(), process_time()
    with kernels.using(threads=1):
        labels = enforce(case.X, without, case.k, [(case.model, *case.column)], seed=1)
    seconds, cpu = perf_counter() - begin, process_time() - cpu
    reached = case.model.measure(labels, case.column)
    assert reached.holds
    result = {
        "method": "shoal",
        "data": case.data,
        "n": len(case.X),
        "k": case.k,
        "model": str(case.model),
        "reached": reached.value,
        "mse": loss(case.X, labels).mse,
        "il": 100 * loss(case.X, labels).il,
        "il_without": 100 * loss(case.X, without).il,
        "cells": int(labels.max()) + 1,
        "cells_without": int(without.max()) + 1,
        "seconds": base + seconds,
        "seconds_without": base,
        "times": (base_cpu + cpu) / base_cpu,
    }
    click.echo(
        f"{case.data:<11} {case.model!s:<60} reached {reached.value:.4f}  IL {result['il_without']:.3f} -> "
        f"{result['il']:.3f} %  MSE {result['mse']:.4f}  {base:.2f} -> {base + seconds:.2f} s "
        f"({result['times']:.1f} times the processor time)"
    )
    return result


if __name__ == "__main__":
    main()
