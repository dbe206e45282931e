import numpy as np

from shoal.engines.blocks.forest import Forest, grow, main_direction

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2_000, 3)) * [3.0, 2.0, 1.0]
ONES = np.ones(len(X))


def test_leaves_are_no_larger_than_asked_and_cover_all_points():
    tree = grow(X, ONES, 300)
    leaves = tree.assign(X)

    assert np.bincount(leaves, minlength=tree.n_leaves).max() <= 300
    assert np.bincount(leaves, minlength=tree.n_leaves).min() > 0


def test_where_a_point_goes_does_not_depend_on_the_points_beside_it():
    tree = grow(X, ONES, 100)
    together = tree.assign(X)

    assert [int(tree.assign(X[i : i + 1])[0]) for i in range(50)] == together[:50].tolist()


def test_the_order_of_the_sample_does_not_matter_for_the_direction():
    order = RNG.permutation(len(X))

    assert (main_direction(X, ONES) == main_direction(X[order], ONES)).all()


def test_equal_points_are_not_cut():
    assert grow(np.ones((50, 2)), np.ones(50), 10).n_leaves == 1


def test_forests_of_two_rounds_cut_in_different_places():
    strata, sizes = np.zeros(len(X), dtype=np.int64), np.array([len(X)])
    first, second = (Forest.grown(X, ONES, strata, sizes, 500, axis, share) for axis, share in ((0, 0.5), (1, 0.36)))

    assert not (first.trees[0].directions[0] == second.trees[0].directions[0]).all()


def test_small_strata_share_a_leaf_and_large_ones_have_trees():
    strata = np.repeat([0, 1, 2], [1_600, 200, 200])
    forest = Forest.grown(X, ONES, strata, np.bincount(strata), 500)
    leaves = forest.assign(X, strata)

    assert len(set(leaves[strata == 0])) == 4
    assert len(set(leaves[strata > 0])) == 1
    assert set(leaves[strata == 0]) & set(leaves[strata > 0]) == set()


def test_small_leaves_are_joined_with_their_neighbours():
    forest = Forest.grown(X, ONES, np.zeros(len(X), dtype=np.int64), np.array([len(X)]), 300)
    counts = np.full(forest.n_leaves, 100)
    counts[[0, -1]] = 1
    counts[2] = 0
    blocks = forest.blocks(counts, 50)

    assert blocks[2] == -1
    assert blocks[0] == blocks[1]
    assert np.bincount(blocks[blocks >= 0], counts[blocks >= 0]).min() >= 50
