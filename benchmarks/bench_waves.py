"""Measure the disclosure of a release that is repeated next year, with fresh cells or frozen cells of the first wave.

The second wave has the people of the first but 5 %, and 10 % newcomers; values as they were, or moved by a tenth of a
standard deviation. `shoal.measures.histories` runs the attacks.
"""

import json
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from bench_partition import ROOT, circumstances
from materials import Source, census, gaussian
from measure import say
from problems import sample
from shoal import datasets
from shoal.arrays import standardize
from shoal.incremental import join
from shoal.measures.histories import OUT, Edition, recount_series
from shoal.methods import partition
from shoal.typing import Labels, Matrix

RESULTS = ROOT / "benchmarks" / "results" / "waves.json"
K = 10
LEAVE, COME, MOVE = 0.05, 0.10, 0.1


def main_sets(quick: bool) -> dict[str, Matrix]:
    if quick:
        return {"gaussian 500 x 15": sample(gaussian(), 500).X}
    n = 50_000
    sets = {"census (bundled)": standardize(datasets.census().X), f"gaussian {n:,} x 15": sample(gaussian(), n).X}
    real = census(204_309)
    if isinstance(real, Source):
        sets[f"gov_census {n:,} x 9"] = sample(real, n).X
    return sets


def second_wave(X: Matrix, moved: bool) -> tuple[Labels, Labels, Matrix]:
    """Return who is in the first wave, who in the second, and everybody's values in the second."""
    rng = np.random.default_rng(3)
    order = rng.permutation(len(X))
    n_new, n_gone = round(COME * len(X)), round(LEAVE * len(X))
    first, second = np.sort(order[n_new:]), np.sort(order[: len(X) - n_gone])
    later = X + MOVE * rng.normal(size=X.shape) if moved else X
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


def information_loss(
    strategy: Strategy, X: Matrix, later: Matrix, second: Labels, before: Labels, after: Labels
) -> float:
    """Return the information loss of the published values relative to those of the second wave, in percent."""
    published = _means(later, after)
    if strategy.repeats:
        again = kept(before, second) != OUT
        published[again] = _means(X, before)[again]
    lost = np.square(later[second] - published[second]).sum()
    return float(100 * lost / np.square(later[second] - later[second].mean(axis=0)).sum())


def _means(X: Matrix, labels: Labels) -> Matrix:
    inside = labels != OUT
    sizes = np.bincount(labels[inside])
    sums = np.stack([np.bincount(labels[inside], column[inside]) for column in X.T], axis=1)
    means = np.zeros_like(X)
    means[inside] = (sums / np.maximum(sizes, 1)[:, None])[labels[inside]]
    return means


def attacked(strategy: Strategy, before: Labels, after: Labels) -> dict[str, float]:
    """Run both attacks. Where values are repeated there are no two sums to subtract."""
    found = recount_series([_edition(before), _edition(after, None if strategy.repeats else len(before))], K)
    both = (before != OUT) & (after != OUT)
    sizes = np.unique(before[both] * len(after) + after[both], return_inverse=True, return_counts=True)
    common = sizes[2][sizes[1]]
    return {
        "smallest": int(common.min()),
        "below_k": float(np.mean(common < K)),
        "alone": float(np.mean(common == 1)),
        "n_computed": found.present.n_computed + found.left.n_computed,
    }


def _edition(labels: Labels, first: int | None = None) -> Edition:
    """Return a wave as it is published; values that are not those of the wave before have words of their own."""
    people = np.flatnonzero(labels != OUT)
    classes = np.unique(labels[people], return_inverse=True)[1]
    return Edition(people, classes, (labels[people] + (first or 0)).astype(np.uint64), {})


@click.command()
@click.option("--quick", is_flag=True, help="Small sets.")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="JSON file to write.")
def main(quick: bool, output: Path | None) -> None:
    """Attack a repeated release, made in several ways."""
    rows = []
    for name, X in main_sets(quick).items():
        for moved in (False, True):
            first, second, later = second_wave(X, moved)
            for title, strategy in STRATEGIES.items():
                before = np.full(len(X), OUT)
                before[first] = partition(np.ascontiguousarray(X[first]), strategy.k_first, seed=0)
                after = second_cells(strategy, later, second, before)
                il = information_loss(strategy, X, later, second, before, after)
                attack = attacked(strategy, before, after)
                rows.append({"data": name, "values_moved": moved, "strategy": title, "il_percent": il, **attack})
                say(json.dumps(rows[-1]))
    output = output or (ROOT / "out" / "bench" / "waves.json" if quick else RESULTS)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps({**circumstances(quick), "k": K, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    say(f"Written to {output}")


if __name__ == "__main__":
    main()
