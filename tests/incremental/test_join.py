"""Late records join a base: the variants of the thesis are what they say, and ours loses less."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from shoal import GuaranteeError, ParameterError, kernels, partition
from shoal.incremental import VARIANTS, join
from shoal.incremental.reopen import neighbours_of
from shoal.measures import loss
from shoal.methods import ALGORITHMS
from strategies import FAMILIES, RUNNABLE, draw_problem, problems


def with_base(X, k, n_base, method="mdav"):
    """Return the records and the partition of the first of them."""
    return X, partition(X[:n_base], k, method, seed=0)


def draw_late(rng, family):
    """Return a matrix of this family, a k and how many records came in time."""
    while True:
        X, k = draw_problem(rng, family, n_most=250)
        if len(X) > k:
            return X, k, int(rng.integers(k, len(X)))


@st.composite
def late_problems(draw):
    """Return a matrix, a k and the number of records of the base."""
    X, k = draw(problems())
    return X, k, draw(st.integers(k, len(X)))


@pytest.mark.parametrize("variant", VARIANTS)
@given(problem=late_problems())
def test_every_cell_holds_at_least_k_records_and_the_numbers_have_no_gaps(variant, problem):
    X, k, n_base = problem
    X, base = with_base(X, k, n_base)
    before = X.copy()
    labels = join(X, base, k, variant)

    assert labels.shape == (len(X),)
    assert np.bincount(labels).min() >= k
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_any_algorithm_can_make_the_base(variant, method):
    X = np.random.default_rng(3).normal(size=(90, 1 if method == "univariate" else 3))
    X, base = with_base(X, 4, 70, method)

    assert np.bincount(join(X, base, 4, variant, seed=0)).min() >= 4


@pytest.mark.parametrize("inertial", [False, True])
@pytest.mark.parametrize("split_mid", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_records_join_exactly_the_cells_that_the_naive_twin_says(family, split_mid, inertial):
    rng = np.random.default_rng(7)
    for _ in range(6):
        X, k, n_base = draw_late(rng, family)
        X, base = with_base(X, k, n_base)
        expected = reference.arrive(X, base, k, inertial, split_mid)
        labels = join(X, base, k, "split-mid" if split_mid else "nearest", inertial=inertial)

        np.testing.assert_array_equal(labels, expected)


@pytest.mark.parametrize("inertial", [False, True])
def test_an_index_of_many_centroids_finds_the_same_cells(inertial):
    X = np.random.default_rng(1).normal(size=(3_000, 4))
    X, base = with_base(X, 2, 1_500)
    for split_mid, variant in ((False, "nearest"), (True, "split-mid")):
        labels = join(X, base, 2, variant, inertial=inertial)

        np.testing.assert_array_equal(labels, reference.arrive(X, base, 2, inertial, split_mid))


@pytest.mark.parametrize("variant", [False, True])
def test_all_instruction_sets_and_thread_counts_give_the_same_cells(variant):
    X = np.random.default_rng(2).normal(size=(2_000, 5))
    base = partition(X[:1_200], 2, "mdav")
    found = []
    for simd in RUNNABLE:
        for threads in (1, 3):
            with kernels.using(threads, simd=simd):
                found.append(kernels.arrive(X, base, 2, inertial=variant, split_mid=variant))

    for one in found:
        np.testing.assert_array_equal(one, found[0])


@given(problem=late_problems())
def test_split_end_cuts_what_has_grown_to_2k(problem):
    X, k, n_base = problem
    X, base = with_base(X, k, n_base)
    labels = join(X, base, k, "split-end")
    expected = reference.split_large(X, reference.arrive(X, base, k), k) if n_base < len(X) else base

    assert same_cells(labels, expected)


def same_cells(labels, others):
    """Say whether two partitions have the same cells, whatever their numbers."""
    return {tuple(np.flatnonzero(labels == c)) for c in set(labels)} == {
        tuple(np.flatnonzero(others == c)) for c in set(others)
    }


@given(problem=late_problems())
def test_two_steps_keep_the_base_and_partition_the_rest(problem):
    X, k, n_base = problem
    X, base = with_base(X, k, n_base)
    labels = join(X, base, k, "two-step")
    n_late = len(X) - n_base
    late = base.max() + 1 + reference.mdav(X[n_base:], k) if n_late >= k else reference.arrive(X, base, k)[n_base:]

    np.testing.assert_array_equal(labels, np.concatenate([base, late]))


@pytest.mark.parametrize("variant", VARIANTS)
def test_without_late_records_the_base_comes_back(variant):
    X, base = with_base(np.random.default_rng(0).normal(size=(40, 2)), 4, 40)

    np.testing.assert_array_equal(join(X, base, 4, variant), base)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_single_late_record_finds_its_cell(variant):
    X, base = with_base(np.random.default_rng(0).normal(size=(41, 2)), 4, 40)

    assert np.bincount(join(X, base, 4, variant)).sum() == 41


@pytest.mark.parametrize("nu", [0.1, 0.3, 0.5])
def test_reopening_loses_less_than_mdav_of_everything_and_than_every_other_variant(nu):
    X = np.random.default_rng(5).normal(size=(6_000, 15))
    n_base = round(len(X) * (1 - nu))
    others = [
        loss(X, join(X, partition(X[:n_base], 10, "mdav"), 10, variant)).sse
        for variant in VARIANTS
        if variant != "reopen"
    ]
    ours = loss(X, join(X, partition(X[:n_base], 10, "auto", seed=0), 10)).sse

    assert ours < loss(X, partition(X, 10, "mdav")).sse
    assert ours < min(others)


@pytest.mark.parametrize("family", FAMILIES)
def test_reopening_takes_the_same_steps_on_all_instruction_sets(family):
    rng = np.random.default_rng(11)
    for _ in range(6):
        X, k, n_base = draw_late(rng, family)
        X, base = with_base(X, k, n_base)
        labels = reference.split_large(X, reference.arrive(X, base, k), k)
        touched = np.unique(labels[n_base:])
        none = np.empty(0, dtype=np.int64)
        ends = []
        for simd in RUNNABLE:
            with kernels.using(threads=1, simd=simd):
                hints = kernels.RefineHints(touched, none, none)
                ends.append(kernels.refine_around(X, labels, hints, k, 3, 20, 0.0))

        for end in ends:
            np.testing.assert_array_equal(end, ends[0])


@settings(max_examples=50)
@given(problem=late_problems())
def test_neighbours_that_were_found_before_keep_every_promise(problem):
    X, k, n_base = problem
    X, base = with_base(X, k, n_base)
    labels = join(X, base, k, neighbours=neighbours_of(X[:n_base], base, k))

    assert np.bincount(labels).min() >= k
    assert len(labels) == len(X)


def test_neighbours_that_were_found_before_cost_next_to_no_loss():
    X = np.random.default_rng(6).normal(size=(12_000, 8))
    X, base = with_base(X, 5, 10_800, "auto")
    known = loss(X, join(X, base, 5, neighbours=neighbours_of(X[:10_800], base, 5))).sse

    assert known < 1.01 * loss(X, join(X, base, 5)).sse


@pytest.mark.parametrize("neighbours", [np.zeros((3, 2), dtype=np.int64), np.full((8, 2), 8), np.zeros(8, dtype=int)])
def test_neighbours_of_something_else_are_refused(neighbours):
    X, base = with_base(np.random.default_rng(0).normal(size=(41, 2)), 5, 40)
    with pytest.raises(ParameterError, match="neighbours must"):
        join(X, base, 5, neighbours=neighbours)


@settings(max_examples=50)
@given(problem=late_problems())
def test_more_rounds_never_lose_more(problem):
    X, k, n_base = problem
    X, base = with_base(X, k, n_base)
    losses = [loss(X, join(X, base, k, rounds=rounds)).sse for rounds in (1, 2, 10)]

    assert losses[1] <= losses[0] * (1 + 1e-9) + 1e-300
    assert losses[2] <= losses[1] * (1 + 1e-9) + 1e-300


@pytest.mark.parametrize("threads", [1, 2])
def test_progress_reaches_the_end_and_an_error_in_it_stops_the_work(threads):
    X, base = with_base(np.random.default_rng(0).normal(size=(4_000, 3)), 3, 2_000)
    told = []
    join(X, base, 3, threads=threads, progress=lambda done, total: told.append(done / total))

    assert told == sorted(told)
    assert told[-1] == 1

    def stop(done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        join(X, base, 3, threads=threads, progress=stop)


def test_a_base_that_breaks_k_is_refused():
    with pytest.raises(GuaranteeError, match=r"k=3 .* smallest cell of the base has 2"):
        join(np.zeros((6, 1)), [0, 0, 0, 1, 1], 3)


@pytest.mark.parametrize("base", [[], [0.0, 0.0], [[0, 0]], [0] * 7, [-1, 0, 0], [1, 1, 1], [0, 0, 9]])
def test_a_base_that_numbers_no_cells_is_refused(base):
    with pytest.raises(ParameterError, match="base must"):
        join(np.zeros((6, 1)), base, 2)


def test_unknown_variants_and_options_are_refused():
    with pytest.raises(ParameterError, match="Unknown variant 'mdav'"):
        join(np.zeros((4, 1)), [0, 0], 2, "mdav")
    with pytest.raises(ParameterError, match=r"'reopen' has no option 'inertial'. It takes: rounds, neighbours"):
        join(np.zeros((4, 1)), [0, 0], 2, inertial=True)
    with pytest.raises(ParameterError, match="Unknown method"):
        join(np.zeros((4, 1)), [0, 0], 2, "two-step", method="none")
    with pytest.raises(ParameterError, match="rounds"):
        join(np.zeros((4, 1)), [0, 0], 2, rounds=0)
    with pytest.raises(ParameterError, match="seed"):
        join(np.zeros((4, 1)), [0, 0], 2, seed="1")


def test_options_of_each_variant_are_used():
    rng = np.random.default_rng(4)
    X, base = with_base(rng.normal(size=(400, 2)), 5, 200)

    assert not np.array_equal(join(X, base, 5, "nearest"), join(X, base, 5, "nearest", inertial=True))
    assert not np.array_equal(join(X, base, 5, "two-step"), join(X, base, 5, "two-step", method="tfrp"))
