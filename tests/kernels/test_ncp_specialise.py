import numpy as np
import pytest

import reference
from kernels.test_ncp_search import FAMILIES, NODES, SIZES, draw_columns, table_of
from shoal import kernels

ORDER = ["numbers", "tree", "categories"]


def cut(columns, k):
    return kernels.ncp_specialise(table_of(columns), k)


def tree(leaves):
    return "tree", np.asarray(leaves), NODES, SIZES


@pytest.mark.parametrize("family", FAMILIES)
def test_cuts_are_those_of_the_plain_definition(family):
    rng = np.random.default_rng(1)
    for _ in range(12):
        n, k = int(rng.integers(2, 120)), int(rng.integers(1, 6))
        columns = sorted(draw_columns(rng, n, family), key=lambda column: ORDER.index(column[0]))
        labels = cut(columns, min(k, n))

        assert np.bincount(labels).min() >= min(k, n)
        assert labels.tolist() == reference.specialised(columns, min(k, n)).tolist()


def test_groups_are_cut_along_the_hierarchy():
    labels = cut([tree([0, 1, 2, 3] * 3)], 3)

    assert len(np.unique(labels)) == 4
    assert all(len(set(labels[leaf::4])) == 1 for leaf in range(4))


def test_leaves_of_fewer_than_k_records_stay_together_below_their_ancestor():
    leaves = np.array([0] * 2 + [1] * 2 + [2] * 4)

    assert cut([tree(leaves)], 3).tolist() in ([0] * 4 + [1] * 4, [1] * 4 + [0] * 4)


def test_records_that_are_all_alike_are_one_cell():
    assert (cut([tree(np.zeros(30, dtype=np.int64)), ("numbers", np.ones(30), 0.0)], 3) == 0).all()


def test_a_column_of_many_small_categories_is_cut_at_once_and_not_one_by_one():
    codes = np.repeat(np.arange(100), 3)

    assert cut([("categories", codes, 100)], 3).tolist() == (99 - codes).tolist()


def test_cuts_of_many_categories_are_those_of_the_plain_definition():
    rng = np.random.default_rng(2)
    columns = [tree(rng.integers(0, 6, 600)), ("categories", (150 * rng.random(600) ** 2).astype(np.int64), 150)]

    assert cut(columns, 3).tolist() == reference.specialised(columns, 3).tolist()
