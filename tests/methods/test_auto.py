"""The default: less loss than MDAV, the same result for the same seed, a budget that is kept."""

import numpy as np
import pytest

from sharing import everything_shared
from shoal import ParameterError, datasets, kernels, partition
from shoal.arrays import standardize
from shoal.measures import loss
from shoal.methods.auto import SMALL
from shoal.methods.blocks import BLOCK_RECORDS, cut

# What the default has to reach at least, for k = 3, 5, 10, in percent.
REACHED = {
    datasets.census: [5.20, 8.05, 12.3],
    datasets.tarragona: [14.9, 20.9, 30.8],
    datasets.eia: [0.390, 0.800, 2.06],
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("load", REACHED, ids=lambda load: load.__name__)
def test_the_reference_sets_lose_far_less_than_by_mdav(load, seed):
    X = standardize(load().X)
    losses = np.array([100 * loss(X, partition(X, k, seed=seed)).il for k in (3, 5, 10)])

    assert (losses <= REACHED[load]).all(), losses


@pytest.mark.parametrize("n", [SMALL + 1, 30_000])
def test_larger_tables_lose_less_than_by_mdav(n):
    X = np.random.default_rng(0).normal(size=(n, 6))

    assert loss(X, partition(X, 10)).sse < loss(X, partition(X, 10, "mdav")).sse


def test_large_tables_start_from_blocks_and_keep_k():
    X = np.random.default_rng(1).normal(size=(BLOCK_RECORDS + 1, 3))
    labels = partition(X, 10)

    assert np.bincount(labels).min() >= 10
    assert loss(X, labels).sse < 0.95 * loss(X, partition(X, 10, "blocks")).sse


def test_a_longer_search_finds_less_loss():
    X = standardize(datasets.tarragona().X)
    losses = [loss(X, partition(X, 5, seed=3, effort="best", seconds=seconds)).il for seconds in (0.05, 2)]

    assert losses[1] < losses[0] < loss(X, partition(X, 5, "mdav")).il


def test_a_budget_of_nothing_gives_the_refined_start():
    X = standardize(datasets.census().X)
    labels = partition(X, 5, effort="best", seconds=0)

    assert np.bincount(labels).min() >= 5
    assert loss(X, labels).sse < loss(X, partition(X, 5, "mdav")).sse


def stop_after(n_reports):
    """Return a progress callback that does what Ctrl-C does, after a number of reports."""
    reports = iter(range(n_reports))

    def progress(done, total):
        if next(reports, None) is None:
            raise KeyboardInterrupt

    return progress


def test_an_interrupted_search_gives_the_best_so_far_where_that_is_asked_for():
    X = standardize(datasets.tarragona().X)
    labels = partition(X, 5, effort="best", seconds=100, interrupt="keep", progress=stop_after(8))

    assert np.bincount(labels).min() >= 5
    assert loss(X, labels).sse < loss(X, partition(X, 5, "mdav")).sse


def test_otherwise_an_interrupt_is_an_interrupt():
    X = standardize(datasets.tarragona().X)
    with pytest.raises(KeyboardInterrupt):
        partition(X, 5, effort="best", seconds=100, progress=stop_after(8))


def test_records_that_are_all_the_same_lose_nothing():
    X = np.full((50, 2), 3.0)

    assert loss(X, partition(X, 3, effort="best", seconds=0.01)).il == 0


def test_fewer_distinct_records_than_cells_lose_nothing():
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 2)), 30, axis=0)

    assert loss(X, partition(X, 5, seed=0)).sse == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"effort": "heroic"}, "effort"),
        ({"seconds": 5}, "the effort 'best'"),
        ({"effort": "best", "seconds": -1}, "seconds"),
        ({"effort": "best", "seconds": float("nan")}, "seconds"),
        ({"interrupt": "ignore"}, "interrupt"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, said):
    with pytest.raises(ParameterError, match=said):
        partition(np.zeros((10, 1)), 2, **options)


def test_progress_goes_from_stage_to_stage_up_to_the_end():
    seen = []
    X = np.random.default_rng(0).normal(size=(60_000, 15))
    partition(X, 5, progress=lambda done, total: seen.append(done / total))

    assert seen == sorted(seen)
    assert seen[-1] == 1


def test_blocks_are_cut_in_halves_and_hold_every_record_once():
    X = np.random.default_rng(0).normal(size=(1000, 3)) * [10, 1, 1]
    parts = list(cut(X, 300))

    assert [len(part) for part in parts] == [250] * 4
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), np.arange(1000))
    for part in parts:
        # The widest column is the one that is cut.
        assert np.ptp(X[part, 0]) < 0.8 * np.ptp(X[:, 0])


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
@pytest.mark.parametrize("outliers", [0, 16], ids=["as sampled", "sampled records unlike the others"])
def test_halves_are_those_of_a_sort_for_any_number_of_threads(threads, outliers):
    X = np.random.default_rng(0).integers(0, 50, (131_072, 2)).astype(float)
    if outliers:
        X[::outliers] += 1_000
    some = np.arange(1, len(X), 3)
    order = some[np.lexsort([some, X[some, 0]])]
    with everything_shared(), kernels.using(threads):
        low, high = kernels.halves(X, some, np.array([1.0, 0.0]), kernels.unit_scale(X))

    for half, records in ((low, order[: len(some) // 2]), (high, order[len(some) // 2 :])):
        np.testing.assert_array_equal(half, np.sort(records))


def test_blocks_of_the_largest_numbers_are_cut_as_those_of_small_ones():
    X = np.random.default_rng(0).uniform(0.5, 1, (300, 3))
    large, small = (cut(Z, 50) for Z in (np.ldexp(X, 1024 - 1) * 1.9, X * 1.9))

    assert [block.tolist() for block in large] == [block.tolist() for block in small]


@pytest.mark.parametrize("seconds", [1e300, -1, float("inf"), float("nan")])
def test_a_budget_that_cannot_be_meant_is_refused(seconds):
    with pytest.raises(ParameterError, match="seconds must be a number from 0 to 1,000,000,000"):
        partition(np.ones((9, 1)), 3, effort="best", seconds=seconds)
