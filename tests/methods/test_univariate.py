"""Univariate: on a line nothing is better, whatever the values are."""

import numpy as np
import pytest

import reference
from shoal import ParameterError, datasets, kernels, partition
from shoal.arrays import standardize
from shoal.measures import loss
from strategies import FAMILIES, draw_problem

WITHOUT_TIES = ["gaussian", "offset of 1e9", "one far outlier", "heavy tails", "two tight clusters"]


def exact_sse(values, labels):
    return sum(reference.sse(values[labels == cell]) for cell in range(labels.max() + 1))


@pytest.mark.parametrize("family", FAMILIES)
def test_no_partition_of_a_few_records_costs_less(family):
    """Of all partitions, with neighbours together or not; costs are compared as fractions, so equal means equal."""
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(40):
        k = int(rng.integers(2, 5))
        values = FAMILIES[family](rng, (int(rng.integers(k, 9)), 1))
        labels = partition(values, k, "univariate")

        assert exact_sse(values[:, 0], labels) == reference.least_sse(values[:, 0], k), f"problem {number}"


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cost_is_that_of_the_exact_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family) + 100)
    for number in range(40):
        X, k = draw_problem(rng, family, n_most=60)
        values = X[:, 0]
        labels, twins = partition(values[:, None], k, "univariate"), reference.univariate(values, k)

        assert exact_sse(values, labels) == exact_sse(values, twins), f"problem {number}: n={len(X)}, k={k}"
        if family in WITHOUT_TIES:
            np.testing.assert_array_equal(labels, twins)


@pytest.mark.parametrize("k", [2, 7, 40, 100, 101, 150, 299, 300])
def test_small_and_large_cells_of_some_hundred_records(k):
    values = np.random.default_rng(k).normal(size=300)

    np.testing.assert_array_equal(partition(values[:, None], k, "univariate"), reference.univariate(values, k))


@pytest.mark.parametrize("exponent", [-300, -150, 150, 300])
def test_very_small_and_very_large_numbers_do_not_matter(exponent):
    values = np.random.default_rng(0).normal(size=80)

    np.testing.assert_array_equal(
        partition(values[:, None] * 10.0**exponent, 3, "univariate"),
        reference.univariate(values * 10.0**exponent, 3),
    )


def test_an_outlier_at_the_low_end_leaves_the_other_cells_as_good_as_without_it():
    values = np.random.default_rng(0).normal(size=100)
    cells_of_outlier = partition(np.concatenate([[-1e90, -5.0, -5.0], values])[:, None], 3, "univariate")

    np.testing.assert_array_equal(cells_of_outlier[3:] - 1, partition(values[:, None], 3, "univariate"))


def test_equal_values_keep_the_order_of_the_records_and_make_the_last_cells_small():
    np.testing.assert_array_equal(partition(np.ones((10, 1)), 3, "univariate"), [0, 0, 0, 0, 1, 1, 1, 2, 2, 2])


def test_cells_hold_k_to_2k_minus_1_records():
    X = np.round(np.random.default_rng(1).exponential(size=(5000, 1)), 2)
    for k in (2, 3, 10, 64, 65, 700):
        sizes = np.bincount(partition(X, k, "univariate"))

        assert k <= sizes.min() <= sizes.max() < 2 * k


def test_the_halving_finds_what_looking_at_every_last_cell_finds():
    """Whole numbers, many of them equal; costs as the plain programme sums them up, in O(n k)."""
    values = np.sort(np.random.default_rng(2).integers(0, 3000, 4000).astype(float))
    for k in (5, 33, 200):
        least = plain_programme(values, k)
        labels = partition(values[:, None], k, "univariate")

        np.testing.assert_allclose(loss(values[:, None], labels).sse, least, rtol=1e-8)


def plain_programme(values, k):
    sums, squares = (np.concatenate([[0.0], np.cumsum(values**power)]) for power in (1, 2))
    least = np.full(len(values) + 1, np.inf)
    least[0] = 0.0
    for j in range(k, len(values) + 1):
        i = np.arange(max(0, j - 2 * k + 1), j - k + 1)
        least[j] = (least[i] + squares[j] - squares[i] - (sums[j] - sums[i]) ** 2 / (j - i)).min()
    return least[-1]


@pytest.mark.parametrize("load", [datasets.census, datasets.tarragona, datasets.eia], ids=lambda load: load.__name__)
def test_no_column_of_real_data_is_partitioned_better_by_mdav(load):
    for column in standardize(load().X).T:
        X = column[:, None]

        assert loss(X, partition(X, 5, "univariate")).sse <= loss(X, partition(X, 5, "mdav")).sse * (1 + 1e-12)


def test_several_columns_are_partitioned_along_their_principal_component():
    rng = np.random.default_rng(3)
    line = rng.normal(size=200)
    X = line[:, None] * [3.0, -2.0, 1.0] + 1e-6 * rng.normal(size=(200, 3))

    np.testing.assert_array_equal(partition(X, 4, "univariate"), partition(line[:, None], 4, "univariate"))


def test_the_principal_component_does_not_depend_on_offset_or_scale():
    X = np.round(np.random.default_rng(4).normal(size=(300, 3)) * 2.0**12) / 2.0**12
    labels = partition(X, 4, "univariate")

    np.testing.assert_array_equal(partition(X + np.array([2.0**30, 0.0, -4.0]), 4, "univariate"), labels)
    np.testing.assert_array_equal(partition(X * 2.0**500, 4, "univariate"), labels)


@pytest.mark.parametrize("axis", [0, 2, np.int64(1)])
def test_a_column_can_be_the_line(axis):
    X = np.random.default_rng(5).normal(size=(100, 3))

    np.testing.assert_array_equal(
        partition(X, 4, "univariate", axis=axis), partition(X[:, [axis]], 4, "univariate", axis="principal")
    )


@pytest.mark.parametrize("axis", [3, -1, "main", 1.0, True, None])
def test_an_axis_that_is_neither_is_refused(axis):
    with pytest.raises(ParameterError, match='axis must be "principal" or the number of a column, 0 to 2'):
        partition(np.zeros((5, 3)), 2, "univariate", axis=axis)


def test_the_kernel_gives_sizes_along_the_line():
    np.testing.assert_array_equal(kernels.univariate(np.array([1.0, 2.0, 3.0, 8.0, 9.0]), 2), [3, 2])


def test_progress_grows_and_ends_with_all_records():
    seen = []
    X = np.random.default_rng(0).normal(size=(1_000_000, 1))
    partition(X, 1000, "univariate", progress=lambda done, n_records: seen.append((done, n_records)))

    assert seen == sorted(seen)
    assert seen[-1] == (len(X), len(X))
