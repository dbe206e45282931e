"""MST partitioning: the cells of the naive twin, and what the TFRP paper says of it."""

import numpy as np
import pytest

import reference
from papers.data_and_results import agreement
from shoal import datasets, partition
from shoal.arrays import standardize
from shoal.measures import loss
from strategies import FAMILIES, draw_problem


@pytest.mark.parametrize("family", FAMILIES)
def test_the_cells_are_those_of_the_naive_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for number in range(6):
        X, k = draw_problem(rng, family, n_most=40)
        labels = partition(X, k, "mst", threads=1 + number % 2)

        assert agreement(labels, reference.mst(X, k)) == 1.0, f"problem {number}: {X.shape}, k={k}"


def test_well_separated_clusters_become_the_cells():
    rng = np.random.default_rng(0)
    cluster = rng.permutation(np.repeat([0, 1, 2, 3], [5, 6, 7, 9]))
    X = 100.0 * cluster[:, None] + rng.random((len(cluster), 2))
    labels = partition(X, 5, "mst")

    assert agreement(labels, cluster) == 1.0


@pytest.mark.parametrize("load", [datasets.census, datasets.tarragona])
def test_without_natural_clusters_it_loses_more_than_diameter(load):
    X = standardize(load().X)

    assert loss(X, partition(X, 5, "mst")).il > loss(X, partition(X, 5, "diameter")).il


def test_with_natural_clusters_it_loses_less_than_diameter():
    X = standardize(datasets.eia().X)

    assert loss(X, partition(X, 5, "mst")).il < loss(X, partition(X, 5, "diameter")).il
