"""Steered microaggregation: figures 1 and 2 of the paper, its baselines, and the strict model too.

References
----------
Domingo-Ferrer, Soria-Comas (2017), "Steered microaggregation: a unified primitive for anonymization of data sets and
data streams".
"""

from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from papers.data_and_results import mcd
from papers.paper import Archived, Content, Paper, Run, bar, seed_option, switch
from papers.steered.baselines import BASELINES
from papers.steered.claims import SAID, claims
from papers.tables import table
from shoal import datasets
from shoal.constraints.bucket_steering import bucket_attribute, n_buckets
from shoal.constraints.enforce import enforce
from shoal.measures import loss
from shoal.methods import partition
from shoal.methods.steer import steer
from shoal.models import Codes, ModelOnColumn, TCloseness, encode
from shoal.typing import Labels, Matrix

K = 2


class Data(NamedTuple):
    """Quasi-identifiers of range 1 and a confidential column."""

    name: str
    X: Matrix
    column: Codes


class Result(NamedTuple):
    """EMD and loss of a partition; `weight` is None for the strict model."""

    data: str
    t: float
    weight: float | None
    max_emd: float
    mean_emd: float
    mse: float
    mae: float
    n_cells: int
    seconds: float


class Order(NamedTuple):
    """The whole weight from which the procedure keeps t, with the records in a given order; None if there is none."""

    data: str
    t: float
    order: str
    kept_from: float | None


class Baseline(NamedTuple):
    """EMD and loss of an algorithm that section VI-C compares with."""

    baseline: str
    data: str
    t: float
    max_emd: float
    mean_emd: float
    mse: float
    mae: float
    n_cells: int
    seconds: float


def measure(run: Run, full: bool, seed: int) -> None:
    """Run the procedure at each weight and in other orders, the strict model, and the baselines."""
    run.begin(seed=seed)
    for data, t in cases():
        attribute = bucket_attribute(data.X, data.column.codes, n_buckets(len(data.X), K, t))
        with bar(f"{data.name:<8} t={t:<4g}", weights(data, t, full)) as found:
            run.add("results", [procedure(data, t, weight, attribute) for weight in found])
        run.add("results", [strict(data, t, seed)])
    for data, t in figures():
        run.add("orders", in_orders(data, t, 20 if full else 3, seed))
        run.add("baselines", baselines(data, t) if full or data.name == "MCD" else [])


def tables(content: Content) -> str:
    """Format the numbers as text, with the weight from which t is kept, and the baselines."""
    results, of = content["results"], {"data": "<9", "t": ">5g"}
    emd = {"max EMD": ">8.4f", "mean EMD": ">8.4f", "MSE": ">7.4f", "MAE": ">7.4f", "cells": ">6"}
    parts = []
    for data, t in dict.fromkeys((result.data, result.t) for result in results):
        some = [result for result in results if (result.data, result.t) == (data, t)]
        rows = [(data, t, "strict" if r.weight is None else f"{r.weight:g}", *r[3:8]) for r in some]
        parts += [table({**of, "weight": ">7", **emd}, rows) + kept_from(some), ""]
    return "\n".join(
        [*parts, table({"section VI-C": "<20", **of, **emd}, [line[:-1] for line in content["baselines"]])]
    )


def cases() -> Iterator[tuple[Data, float]]:
    """Yield the data sets of the figures, and the one with one record more, on which the procedure fails."""
    for n in (1000, 1001):
        for t in (0.1, 0.05):
            yield perfectly_correlated(n), t
    yield moderately_correlated(), 0.1


def figures() -> list[tuple[Data, float]]:
    """Return the data sets of figures 1 and 2."""
    return [(perfectly_correlated(1000), 0.1), (perfectly_correlated(1000), 0.05), (moderately_correlated(), 0.1)]


def perfectly_correlated(n: int) -> Data:
    """Return the records (i, i): PCD has 1001 of them in the paper's text; its results are those of 1000."""
    return Data(f"PCD-{n}", np.arange(n)[:, None] / (n - 1), Codes(np.arange(n), n, True))


def moderately_correlated() -> Data:
    """Return TAXINC and POTHVAL of Census, with FEDTAX confidential."""
    census = datasets.census()
    tax = census.X[:, census.columns.index("FEDTAX")]
    return Data("MCD", np.ascontiguousarray(mcd()), encode(pa.array(tax), ordered=True))


def bound(data: Data, t: float) -> float:
    """Return the weight above which records of one bucket are never together: proposition 1."""
    n = len(data.X)
    return -(-n // n_buckets(n, K, t)) * float(np.sqrt(data.X.shape[1]))


def weights(data: Data, t: float, full: bool) -> list[float]:
    """Return the weights to try, with those at which the paper sees a change."""
    last = int(bound(data, t)) + 2
    said = SAID.get((data.name, t), 0)
    few = {*np.linspace(0, last, 21).round().astype(int).tolist(), *([said - 1, said] if said else [])}
    return [float(weight) for weight in (range(last + 1) if full else sorted(few))]


def procedure(data: Data, t: float, weight: float, attribute: Matrix) -> Result:
    """Run the paper's procedure, by MDAV."""
    n = n_buckets(len(data.X), K, t)
    begin = perf_counter()
    labels = partition(steer(data.X, attribute, weight), n, "mdav", threads=1)
    return _result(data, t, weight, labels, perf_counter() - begin)


def in_orders(data: Data, t: float, n_orders: int, seed: int) -> Iterator[Order]:
    """Find the weight from which t is kept, in record order and in random ones: steps 5a and 6b leave it open."""
    yield Order(data.name, t, "record order", kept_from_weight(data, t))
    for number in range(n_orders):
        order = np.random.default_rng([seed, number]).permutation(len(data.X))
        column = data.column._replace(codes=data.column.codes[order])
        shuffled = Data(data.name, np.ascontiguousarray(data.X[order]), column)
        yield Order(data.name, t, f"random, {number}", kept_from_weight(shuffled, t))


def kept_from_weight(data: Data, t: float) -> float | None:
    """Try whole weights downwards from above the bound until one violates t."""
    attribute = bucket_attribute(data.X, data.column.codes, n_buckets(len(data.X), K, t))
    kept = None
    for weight in range(int(bound(data, t)) + 2, -1, -1):
        if procedure(data, t, weight, attribute).max_emd > t:
            break
        kept = float(weight)
    return kept


def baselines(data: Data, t: float) -> Iterator[Baseline]:
    """Run the three algorithms that section VI-C compares with."""
    for name, baseline in BASELINES.items():
        begin = perf_counter()
        labels = baseline(data.X, data.column, K, t)
        result = _result(data, t, None, labels, perf_counter() - begin)
        yield Baseline(name, data.name, t, *result[3:])


def strict(data: Data, t: float, seed: int) -> Result:
    """Run the model that keeps t."""
    begin = perf_counter()
    labels = enforce(data.X, None, K, [ModelOnColumn(TCloseness("confidential", t=t), *data.column)], seed=seed)
    return _result(data, t, None, labels, perf_counter() - begin)


def _result(data: Data, t: float, weight: float | None, labels: Labels, seconds: float) -> Result:
    reached = TCloseness("confidential", t=t).measure(labels, data.column)
    lost = loss(data.X, labels)
    return Result(data.name, t, weight, reached.value, reached.mean, lost.mse, lost.mae, int(labels.max()) + 1, seconds)


def kept_from(results: Sequence[Result]) -> str:
    """Return the weight from which the procedure keeps t, and that of the paper, in words."""
    steered = [result for result in results if result.weight is not None]
    last_broken = max((i for i, result in enumerate(steered) if result.max_emd > result.t), default=-1)
    said = SAID.get((results[0].data, results[0].t))
    paper = f" (the paper: {said})" if said else ""
    if last_broken == len(steered) - 1:
        return f"The procedure does not keep t={results[0].t:g} with any of these weights{paper}."
    return f"The procedure keeps t={results[0].t:g} from weight {steered[last_broken + 1].weight:g} on{paper}."


PAPER = Paper(
    "Steered microaggregation, Domingo-Ferrer, Soria-Comas 2017: t-closeness",
    "figures 1 and 2, proposition 1, the baselines of section VI-C",
    "about a minute",
    "--full: about 5 minutes",
    """Compare figures 1 and 2 of the paper on steering with ours.

    Largest and mean distance (EMD) between a cell and the table, MSE and MAE against the weight of the bucket
    attribute, for the paper's procedure by MDAV on perfectly correlated data (PCD) of 1000 and 1001 records and on
    moderately correlated ones (MCD: Census); the strict model of shoal on the same; the weight from which t is kept
    when the records are in another order; and the three baselines of section VI-C.
    """,
    ("", "--full --output steered-full"),
    "",
    (
        switch("--full", "Every whole weight up to the bound, as in the figures, and 20 orders."),
        seed_option(1, "Repeats the strict model's search."),
    ),
    {"results": Result, "orders": Order, "baselines": Baseline},
    measure,
    tables,
    claims,
    "papers.steered.pictures",
    (Archived("steered.json", "steered"),),
)
