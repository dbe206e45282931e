"""Measure what it costs to publish again next year: loss, who is withheld, what two releases tell, and time.

The second table has the people of the first but 5 %, and 10 % newcomers; values as they were, or, for one person in
five, one column as another person has it. Cells are made again, or kept in several ways, or by `after`.
`shoal.measures.series_risk` runs the attacks.
"""

import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pyarrow as pa

import shoal
from bench_partition import ROOT, circumstances
from materials import Source, census, gaussian
from measure import say
from problems import sample
from shoal import datasets
from shoal.arrays import standardize
from shoal.incremental import join
from shoal.measures.series_risk import OUT, Edition, recount_series
from shoal.methods import partition
from shoal.typing import Labels, Matrix

RESULTS = ROOT / "benchmarks" / "results" / "series.json"
K = 10
LEAVE, COME, CHANGE = 0.05, 0.10, 0.2
WITHHOLD = 0.02


def main_sets(quick: bool) -> dict[str, Matrix]:
    if quick:
        return {"gaussian 500 x 15": sample(gaussian(), 500).X}
    n = 50_000
    sets = {"census (bundled)": standardize(datasets.census().X), f"gaussian {n:,} x 15": sample(gaussian(), n).X}
    real = census(204_309)
    if isinstance(real, Source):
        sets[f"gov_census {n:,} x 9"] = sample(real, n).X
    return sets


def second_wave(X: Matrix, changed: bool) -> tuple[Labels, Labels, Matrix]:
    """Return who is in the first wave, who in the second, and everybody's values in the second."""
    rng = np.random.default_rng(3)
    order = rng.permutation(len(X))
    n_new, n_gone = round(COME * len(X)), round(LEAVE * len(X))
    first, second = np.sort(order[n_new:]), np.sort(order[: len(X) - n_gone])
    later = X.copy()
    if changed:
        who = rng.choice(len(X), round(CHANGE * len(X)), replace=False)
        for i in who:
            column = rng.integers(X.shape[1])
            later[i, column] = X[rng.integers(len(X)), column]
    return first, second, later


class Strategy(NamedTuple):
    """How the second wave is made."""

    k_first: int
    """Cell size of the first wave; more than k is a reserve for those who leave."""
    variant: str | None
    """Variant by which newcomers join the cells of the first wave; None partitions all records again."""
    repeats: bool = False
    """Whether remaining cells repeat their published values instead of the means of the remaining people."""


STRATEGIES = {
    "fresh": Strategy(K, None),
    "frozen, newcomers join": Strategy(K, "nearest"),
    "frozen, newcomers apart": Strategy(K, "two-step"),
    "frozen, apart, values repeated": Strategy(K, "two-step", repeats=True),
    "the same with a reserve of a half": Strategy(K + K // 2, "two-step", repeats=True),
}


def second_cells(strategy: Strategy, later: Matrix, second: Labels, before: Labels) -> Labels:
    """Return the cells of the second wave."""
    after = np.full(len(before), OUT)
    if strategy.variant is None:
        after[second] = partition(np.ascontiguousarray(later[second]), K, seed=0)
        return after
    inside = kept(before, second)
    stay = np.flatnonzero(inside != OUT)
    everybody = np.concatenate([stay, np.setdiff1d(second, stay)])
    base = np.unique(inside[stay], return_inverse=True)[1]
    after[everybody] = join(np.ascontiguousarray(later[everybody]), base, K, strategy.variant, seed=0)
    return after


def kept(before: Labels, second: Labels) -> Labels:
    """Return the cells of those who stay; cells that fall below k are dissolved, and their people count as new."""
    inside = np.full(len(before), OUT)
    inside[second] = before[second]
    sizes = np.bincount(inside[inside != OUT], minlength=before.max() + 1)
    inside[(inside != OUT) & (sizes[np.maximum(inside, 0)] < K)] = OUT
    return inside


def published(strategy: Strategy, X: Matrix, later: Matrix, second: Labels, before: Labels, after: Labels) -> Matrix:
    """Return the published values of the second wave."""
    values = _means(later, after)
    if strategy.repeats:
        again = kept(before, second) != OUT
        values[again] = _means(X, before)[again]
    return values


def information_loss(later: Matrix, shown: Matrix) -> float:
    """Return the information loss of published values, in percent."""
    return float(100 * np.square(later - shown).sum() / np.square(later - later.mean(axis=0)).sum())


def _means(X: Matrix, labels: Labels) -> Matrix:
    inside = labels != OUT
    sizes = np.bincount(labels[inside])
    sums = np.stack([np.bincount(labels[inside], column[inside]) for column in X.T], axis=1)
    means = np.zeros_like(X)
    means[inside] = (sums / np.maximum(sizes, 1)[:, None])[labels[inside]]
    return means


def attacked(before: Labels, after: Labels, repeats: bool) -> dict[str, Any]:
    """Run the attacks. Where values are repeated there are no two sums to subtract."""
    verdict = recount_series([_edition(before), _edition(after, 0 if repeats else len(before))], K)
    present, left = verdict.present, verdict.left
    return {
        "smallest": present.smallest,
        "below_k": present.n_below / present.n_people,
        "alone": present.n_alone / present.n_people,
        "n_computed": present.n_computed + left.n_computed,
    }


def _edition(labels: Labels, first: int = 0) -> Edition:
    """Return a wave as it is published; values that are not those of the wave before have words of their own."""
    people = np.flatnonzero(labels != OUT)
    classes = np.unique(labels[people], return_inverse=True)[1]
    return Edition(people, classes, {"all": (labels[people] + first).astype(np.uint64)}, {})


def by_hand(X: Matrix, first: Labels, second: Labels, later: Matrix) -> list[dict[str, Any]]:
    """Return the rows of all strategies."""
    rows = []
    for title, strategy in STRATEGIES.items():
        before = np.full(len(X), OUT)
        before[first] = partition(np.ascontiguousarray(X[first]), strategy.k_first, seed=0)
        after = second_cells(strategy, later, second, before)
        shown = published(strategy, X, later, second, before, after)
        il = information_loss(later[second], shown[second])
        rows.append({"strategy": title, "il_percent": il, **attacked(before, after, strategy.repeats)})
    return rows


def by_after(X: Matrix, first: Labels, second: Labels, later: Matrix, repeats: int) -> dict[str, Any]:
    """Return the row of `shoal.anonymize` with `after`, with its time beside that of a plain release."""

    def table(values: Matrix, ids: Labels) -> pa.Table:
        columns = {f"c{place}": column for place, column in enumerate(values[ids].T)}
        return pa.table({"id": ids, **columns})

    roles = {"quasi_identifiers": [f"c{place}" for place in range(X.shape[1])], "k": K, "seed": 0}
    before = shoal.anonymize(table(X, first), key="id", reserve=LEAVE, may_withhold=0.0, **roles)
    again = table(later, second)
    allowed = {"after": before, "may_withhold": 1.0, "leavers": "state"}
    after, seconds = _timed(lambda: shoal.anonymize(again, key="id", **allowed, **roles), repeats)
    plain, of_plain = _timed(lambda: shoal.anonymize(again, identifiers="id", **roles), repeats)
    present, left = after.series.verdict.present, after.series.verdict.left
    return {
        "strategy": "after, with reserve",
        "il_percent": 100 * after.loss.il,
        "il_of_a_plain_release_percent": 100 * plain.loss.il,
        "first_cells_of": before.verdict.smallest,
        "withheld": after.series.plan.n_withheld_in_all / len(second),
        "smallest": present.smallest,
        "below_k": present.n_below / present.n_people,
        "alone": present.n_alone / present.n_people,
        "n_computed": present.n_computed + left.n_computed,
        "left_below_k": left.n_below,
        "seconds": seconds,
        "seconds_of_a_plain_release": of_plain,
        "ratio": seconds / of_plain,
    }


def _timed(make: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return what is made, and the least processor time."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        made = make()
        times.append(time.process_time() - start)
    return made, min(times)


@click.command()
@click.option("--quick", is_flag=True, help="Small sets.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, output: Path | None) -> None:
    """Attack a repeated release, made in several ways."""
    warnings.simplefilter("ignore", shoal.ShoalWarning)
    rows = []
    for name, X in main_sets(quick).items():
        for changed in (False, True):
            first, second, later = second_wave(X, changed)
            found = [*by_hand(X, first, second, later), by_after(X, first, second, later, 1 if quick else 3)]
            for row in found:
                rows.append({"data": name, "values_changed": changed, **row})
                say(json.dumps(rows[-1]))
    output = output or (ROOT / "out" / "bench" / "series.json" if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**circumstances(quick), "k": K, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    say(f"Written to {output}")


if __name__ == "__main__":
    main()
