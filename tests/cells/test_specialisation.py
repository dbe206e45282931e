import numpy as np
import pytest

from shoal.cells.specialisation import specialised
from shoal.columns.penalty import Categories, Numbers, Tree

NODES = np.array([[0, 6, 9], [1, 6, 9], [2, 7, 9], [3, 7, 9], [4, 7, 9], [5, 8, 9]], dtype=np.int32)
SIZES = np.array([1, 1, 1, 1, 1, 1, 2, 3, 1, 6])


def tree(leaves):
    return Tree(np.asarray(leaves), NODES, SIZES, 1.0)


def test_groups_are_cut_along_the_hierarchy():
    labels = specialised([tree([0, 1, 2, 3] * 3)], 3)

    assert len(np.unique(labels)) == 4
    assert all(len(set(labels[leaf::4])) == 1 for leaf in range(4))


def test_leaves_of_fewer_than_k_records_stay_together_below_their_ancestor():
    leaves = np.array([0] * 2 + [1] * 2 + [2] * 4)

    assert specialised([tree(leaves)], 3).tolist() in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)


@pytest.mark.parametrize("seed", range(20))
def test_every_cell_keeps_k_records(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(2, 300)), int(rng.integers(2, 9))
    values = np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n))
    columns = [
        Numbers(values, 8.0, 1.0),
        Categories(rng.integers(0, 4, n), np.zeros((4, 1)), 2.0),
        tree(rng.integers(0, 6, n)),
    ]
    labels = specialised(columns, min(k, n))

    assert np.bincount(labels).min() >= min(k, n)


def test_records_that_are_all_alike_are_one_cell():
    columns = [tree(np.zeros(30, dtype=np.int64)), Numbers(np.ones(30), 0.0, 1.0)]

    assert (specialised(columns, 3) == 0).all()
