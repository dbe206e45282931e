"""MDAV: the cells of the plain float64 algorithm, and the losses that the literature prints."""

import numpy as np
import pytest

import reference
from sharing import everything_shared
from shoal import datasets, kernels, partition
from shoal.arrays import standardize
from shoal.measures import loss
from strategies import FAMILIES, RUNNABLE, draw_problem


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family):
    """Hundreds of problems of each family, on each instruction set in turn and on one thread or two."""
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(300):
        X, k = draw_problem(rng, family)
        with kernels.using(1 + number % 2, simd=RUNNABLE[number % len(RUNNABLE)]):
            labels = kernels.mdav(X, k)

        np.testing.assert_array_equal(labels, reference.mdav(X, k), err_msg=f"problem {number}: {X.shape}, k={k}")


@pytest.mark.parametrize("exponent", [-160, -150, -100, 100, 150])
@pytest.mark.parametrize("family", ["gaussian", "rounded", "heavy tails", "one far outlier"])
def test_very_small_and_very_large_numbers_do_not_matter(family, exponent):
    rng = np.random.default_rng(exponent + 500)
    for _ in range(20):
        X, k = draw_problem(rng, family)
        X = X * 10.0**exponent
        if not np.isfinite(X).all():
            continue

        np.testing.assert_array_equal(partition(X, k, "mdav"), reference.mdav(X, k))


@pytest.mark.parametrize("n_dims", [1, 64, 65, 200])
def test_few_and_many_columns(n_dims):
    X = np.random.default_rng(n_dims).normal(size=(150, n_dims))

    np.testing.assert_array_equal(partition(X, 4, "mdav"), reference.mdav(X, 4))


@pytest.mark.parametrize("k", [3, 10, 150, 999, 1000, 1999, 2000])
def test_small_and_large_cells_of_some_thousand_records(k):
    rng = np.random.default_rng(k)
    X = np.concatenate([rng.normal(size=(1000, 6)), rng.integers(0, 4, (1000, 6))])

    np.testing.assert_array_equal(partition(X, k, "mdav"), reference.mdav(X, k))


@pytest.mark.parametrize(("n", "cells"), [(5, [5]), (9, [9]), (10, [5, 5]), (11, [5, 6]), (15, [5, 5, 5])])
def test_left_over_records_form_a_cell_or_join_one(n, cells):
    X = np.random.default_rng(n).normal(size=(n, 2))

    assert sorted(np.bincount(partition(X, 5, "mdav"))) == cells


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_do_not_change_a_label_where_they_share_the_work(family):
    rng = np.random.default_rng(3)
    for _ in range(5):
        X, k = draw_problem(rng, family, n_most=2_000)
        alone = partition(X, k, "mdav", threads=1)
        with everything_shared():
            for threads in (2, 3, 16):
                np.testing.assert_array_equal(partition(X, k, "mdav", threads=threads), alone)


PRINTED = {
    datasets.census: [5.6922, 7.4947, 9.0884, 14.1559],
    datasets.tarragona: [16.9326, 19.5458, 22.4613, 33.1929],
    datasets.eia: [0.4829, 0.6713, 1.6667, 3.8397],
}


@pytest.mark.parametrize("load", PRINTED, ids=lambda load: load.__name__)
def test_the_losses_that_the_literature_prints(load):
    X = standardize(load().X)
    losses = [100 * loss(X, partition(X, k, "mdav")).il for k in (3, 4, 5, 10)]

    assert np.round(losses, 4).tolist() == PRINTED[load]


@pytest.mark.parametrize("load", PRINTED, ids=lambda load: load.__name__)
def test_real_data_give_the_cells_of_the_naive_twin(load):
    X = standardize(load().X)[:1500]

    np.testing.assert_array_equal(partition(X, 3, "mdav"), reference.mdav(X, 3))


def test_progress_grows_and_ends_with_all_records():
    seen = []
    X = np.random.default_rng(0).normal(size=(60_000, 20))
    partition(X, 3, "mdav", progress=lambda done, n_records: seen.append((done, n_records)))

    assert seen == sorted(seen)
    assert len(seen) > 1
    assert seen[-1] == (len(X), len(X))


def test_an_exception_in_the_callback_ends_the_work():
    def enough(done, n_records):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        partition(np.random.default_rng(0).normal(size=(1000, 3)), 5, "mdav", progress=enough)
