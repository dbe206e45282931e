"""Top-down: the cells of the naive twin, and what the parts must not break."""

import numpy as np
import pytest

import reference
from shoal import ParameterError, datasets, kernels, partition
from shoal.arrays import standardize
from shoal.measures import loss
from strategies import FAMILIES, RUNNABLE, draw_problem


@pytest.mark.parametrize("family", FAMILIES)
def test_splits_are_those_of_the_naive_twin(family):
    """A hundred problems of each family, on each instruction set in turn and on one thread to three."""
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(100):
        X, k = draw_problem(rng, family, n_most=200)
        parts = np.arange(len(X)) // k % max(len(X) // (5 * k), 1)
        with kernels.using(1 + number % 3, simd=RUNNABLE[number % len(RUNNABLE)]):
            labels = kernels.split(X, parts, k)

        np.testing.assert_array_equal(
            labels, reference.split(X, parts, k), err_msg=f"problem {number}: {X.shape}, k={k}"
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family) + 100)
    for number in range(30):
        X, k = draw_problem(rng, family, n_most=120)
        c = int(rng.choice([1, 2, 5, 20]))

        np.testing.assert_array_equal(
            partition(X, k, "topdown", seed=number, c=c),
            reference.topdown(X, k, number, c),
            err_msg=f"problem {number}: {X.shape}, k={k}, c={c}",
        )


@pytest.mark.parametrize("exponent", [-160, -100, 100, 150])
@pytest.mark.parametrize("family", ["gaussian", "rounded", "heavy tails"])
def test_very_small_and_very_large_numbers_do_not_matter(family, exponent):
    rng = np.random.default_rng(exponent + 500)
    for number in range(10):
        X, k = draw_problem(rng, family, n_most=120)
        X = X * 10.0**exponent

        np.testing.assert_array_equal(partition(X, k, "topdown", seed=number, c=3), reference.topdown(X, k, number, 3))


@pytest.mark.parametrize("loops", RUNNABLE)
def test_assign_equals_reference(loops):
    rng = np.random.default_rng(0)
    for n_points in (1, 2, 63, 64, 65, 200):
        X, points = rng.integers(0, 4, (300, 3)) / 3, rng.integers(0, 4, (n_points, 3)) / 3

        with kernels.using(threads=2, simd=loops):
            np.testing.assert_array_equal(kernels.assign(X, points), reference.assign(X, points))


def test_cells_hold_k_to_2k_minus_1_records():
    X = np.random.default_rng(1).exponential(size=(3000, 4))
    for k in (2, 3, 10, 700, 1500, 3000):
        sizes = np.bincount(partition(X, k, "topdown", seed=0))

        assert k <= sizes.min() <= sizes.max() < 2 * k


def test_another_seed_gives_other_cells_and_one_part_needs_none():
    X = standardize(datasets.census().X)

    assert not np.array_equal(partition(X, 5, "topdown", seed=0), partition(X, 5, "topdown", seed=1))
    np.testing.assert_array_equal(partition(X, 5, "topdown", c=1), partition(X, 5, "topdown", c=1, seed=1))


@pytest.mark.parametrize("c", [2, 5, 100, 10_000])
def test_fewer_distinct_records_than_parts_are_enough(c):
    X = np.repeat([[0.0, 1.0], [2.0, 3.0], [9.0, 1.0]], [4, 5, 6], axis=0)
    labels = partition(X, 4, "topdown", seed=0, c=c)

    assert np.bincount(labels).min() >= 4
    if c > 2:
        np.testing.assert_array_equal(labels, np.repeat([0, 1, 2], [4, 5, 6]))


def test_small_parts_are_merged_into_the_nearest():
    """Four distinct records make four parts; the two of one record each are nearer to the second large one."""
    X = np.array([[0.0], [0.0], [0.0], [7.0], [9.0], [9.0], [9.0], [20.0]])
    labels = partition(X, 3, "topdown", seed=0, c=4)

    np.testing.assert_array_equal(labels, [0, 0, 0, 1, 1, 1, 1, 1])


def test_equal_records_are_halved_and_not_peeled():
    """A hundred thousand of them in one part would take minutes if every split took away only k."""
    sizes = np.bincount(partition(np.ones((100_000, 3)), 3, "topdown", c=1))

    assert sizes.min() == 3
    assert sizes.max() <= 5


@pytest.mark.parametrize("c", [0, -1, 2.5, "5"])
def test_a_number_of_parts_that_makes_no_sense_is_refused(c):
    with pytest.raises(ParameterError, match="c, the number of initial parts"):
        partition(np.zeros((5, 3)), 2, "topdown", c=c)


# From one part, and from as many as there are by default, with seed 0: k = 3, 4, 5, 10.
MEASURED = {
    datasets.census: ([8.85, 10.90, 12.12, 17.20], [6.98, 8.28, 9.68, 15.01]),
    datasets.tarragona: ([19.90, 22.06, 28.97, 38.85], [16.71, 20.30, 24.60, 34.22]),
    datasets.eia: ([1.24, 1.72, 2.05, 4.51], [0.42, 0.61, 0.85, 2.17]),
}


@pytest.mark.parametrize("load", MEASURED, ids=lambda load: load.__name__)
def test_the_losses_that_the_docs_print(load):
    X = standardize(load().X)
    losses = [[100 * loss(X, partition(X, k, "topdown", seed=0, c=c)).il for k in (3, 4, 5, 10)] for c in (1, None)]

    np.testing.assert_array_equal(np.round(losses, 2), MEASURED[load])


def test_progress_grows_and_ends_with_all_records():
    seen = []
    X = np.random.default_rng(0).normal(size=(50_000, 10))
    partition(X, 3, "topdown", c=1, progress=lambda done, n_records: seen.append((done, n_records)))

    assert seen == sorted(seen)
    assert seen[-1] == (len(X), len(X))


def test_an_exception_in_the_callback_ends_the_work():
    def enough(done, n_records):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        partition(np.random.default_rng(0).normal(size=(50_000, 10)), 3, "topdown", c=1, progress=enough)
