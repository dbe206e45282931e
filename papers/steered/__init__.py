"""Steered microaggregation: figures 1 and 2 of the paper, its baselines, and the strict model too.

References
----------
Domingo-Ferrer, Soria-Comas (2017), "Steered microaggregation: a unified primitive for anonymization of data sets and
data streams".
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import click
import numpy as np

from papers.claims import as_text
from papers.data_and_results import drawn, make_folder, save
from papers.steered.baselines import BASELINES
from papers.steered.claims import claims
from shoal import datasets
from shoal.constraints.bucket_steering import bucket_attribute, n_buckets
from shoal.constraints.enforce import enforce
from shoal.measures import loss
from shoal.methods import partition
from shoal.methods.steer import steer
from shoal.models import Codes, ModelOnColumn, TCloseness, encode
from shoal.typing import Labels, Matrix

__all__ = ["claims", "command"]

# The weight at which the paper reaches t, its bound |B1|, and the bound |B1| sqrt(m) of its proposition 1.
SAID = {("PCD-1000", 0.1): 199, ("PCD-1000", 0.05): 99, ("MCD", 0.1): 215}
K = 2

EXAMPLES = """\b
Examples:
  python -m papers steered
  python -m papers steered --full --output steered-full
"""


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


@click.command(epilog=EXAMPLES)
@click.option("--full", is_flag=True, help="Every whole weight up to the bound, as in the figures, and 20 orders.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Repeats the strict model's search."
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/steered"),
    show_default=True,
    help="Folder for the pictures and the numbers.",
)
def command(full: bool, seed: int, output: Path) -> None:
    """Compare figures 1 and 2 of the paper on steering with ours.

    Largest and mean distance (EMD) between a cell and the table, MSE and MAE against the weight of the bucket
    attribute, for the paper's procedure by MDAV on perfectly correlated data (PCD) of 1000 and 1001 records and on
    moderately correlated ones (MCD: Census); the strict model of shoal on the same; the weight from which t is kept
    when the records are in another order; and the three baselines of section VI-C.
    """
    make_folder(output)
    results: list[Result] = []
    for data, t in cases():
        with click.progressbar(weights(data, t, full), label=f"{data.name:<8} t={t:<4g}", file=sys.stderr) as bar:
            attribute = bucket_attribute(data.X, data.column.codes, n_buckets(len(data.X), K, t))
            results += [procedure(data, t, weight, attribute) for weight in bar]
        results.append(strict(data, t, seed))
    orders = [order for data, t in figures() for order in in_orders(data, t, 20 if full else 3, seed)]
    compared = [line for data, t in figures() if full or data.name == "MCD" for line in baselines(data, t)]
    content = {
        "seed": seed,
        "results": [result._asdict() for result in results],
        "orders": [order._asdict() for order in orders],
        "baselines": compared,
    }
    save(output / "steered.json", content)
    click.echo(text(results))
    click.echo(baselines_text(compared))
    click.echo(as_text(claims(content)))
    click.echo(drawn(_draw_function, output, results), err=True)


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
    columns = list(census.columns)
    X = census.X[:, [columns.index("TAXINC"), columns.index("POTHVAL")]]
    unit = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    return Data("MCD", np.ascontiguousarray(unit), codes_of(census.X[:, columns.index("FEDTAX")]))


def codes_of(values: Matrix) -> Codes:
    """Return the ranks of numbers."""
    import pyarrow as pa

    return encode(pa.array(values), ordered=True)


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


def baselines(data: Data, t: float) -> Iterator[dict[str, Any]]:
    """Run the three algorithms that section VI-C compares with."""
    for name, baseline in BASELINES.items():
        begin = perf_counter()
        labels = baseline(data.X, data.column, K, t)
        result = _result(data, t, None, labels, perf_counter() - begin)
        yield {"baseline": name, **{key: value for key, value in result._asdict().items() if key != "weight"}}


def baselines_text(lines: Sequence[dict[str, Any]]) -> str:
    """Format the baselines as text."""
    rows = [f"{'section VI-C':<20} {'data':<9} {'t':>5} {'max EMD':>8} {'MSE':>7} {'MAE':>7} {'cells':>6}"]
    rows += [
        f"{line['baseline']:<20} {line['data']:<9} {line['t']:>5g} {line['max_emd']:>8.4f} {line['mse']:>7.4f}"
        f" {line['mae']:>7.4f} {line['n_cells']:>6}"
        for line in lines
    ]
    return "\n".join(["", *rows, ""])


def strict(data: Data, t: float, seed: int) -> Result:
    """Run the model that keeps t."""
    begin = perf_counter()
    labels = enforce(data.X, None, K, [ModelOnColumn(TCloseness("confidential", t=t), *data.column)], seed=seed)
    return _result(data, t, None, labels, perf_counter() - begin)


def _result(data: Data, t: float, weight: float | None, labels: Labels, seconds: float) -> Result:
    reached = TCloseness("confidential", t=t).measure(labels, data.column)
    lost = loss(data.X, labels)
    return Result(data.name, t, weight, reached.value, reached.mean, lost.mse, lost.mae, int(labels.max()) + 1, seconds)


def text(results: Sequence[Result]) -> str:
    """Format the numbers as text, with the weight from which t is kept."""
    lines = [f"{'data':<9} {'t':>5} {'weight':>7} {'max EMD':>8} {'mean EMD':>8} {'MSE':>7} {'MAE':>7} {'cells':>6}"]
    for data, t in dict.fromkeys((result.data, result.t) for result in results):
        some = [result for result in results if (result.data, result.t) == (data, t)]
        lines += ["", *(_line(result) for result in some), kept_from(some)]
    return "\n".join(lines)


def _line(result: Result) -> str:
    weight = "strict" if result.weight is None else f"{result.weight:g}"
    numbers = f"{result.max_emd:>8.4f} {result.mean_emd:>8.4f} {result.mse:>7.4f} {result.mae:>7.4f}"
    return f"{result.data:<9} {result.t:>5g} {weight:>7} {numbers} {result.n_cells:>6}"


def kept_from(results: Sequence[Result]) -> str:
    """Return the weight from which the procedure keeps t, and that of the paper, in words."""
    steered = [result for result in results if result.weight is not None]
    last_broken = max((i for i, result in enumerate(steered) if result.max_emd > result.t), default=-1)
    said = SAID.get((results[0].data, results[0].t))
    paper = f" (the paper: {said})" if said else ""
    if last_broken == len(steered) - 1:
        return f"The procedure does not keep t={results[0].t:g} with any of these weights{paper}."
    return f"The procedure keeps t={results[0].t:g} from weight {steered[last_broken + 1].weight:g} on{paper}."


def _draw_function() -> Callable[..., object]:
    """Import what draws, which needs matplotlib."""
    from papers.steered.pictures import draw

    return draw
