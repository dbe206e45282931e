"""Each kernel against its naive twin, and what kernels promise to the rest of the process."""

import math
import signal
import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from sharing import everything_shared
from shoal import kernels
from strategies import FAMILIES, RELEASES, RUNNABLE, draw_problem, problems


def scaled(X, point):
    """Return matrix and point as the kernels compare them: times an exact power of two."""
    scale = reference.unit_scale(X)
    return X * scale, point * scale


@given(problem=problems())
def test_distances_add_the_squares_in_column_order(problem):
    X, _ = problem

    np.testing.assert_array_equal(kernels.distances(X, X[0]), reference.distances(X, X[0]))


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_records_removed_together_are_gone_from_every_answer_that_follows(threads):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 3))
    left = np.arange(len(X))
    with kernels.using(threads):
        remaining = kernels.Remaining(X)
    with everything_shared():
        for n_leaving in (1, 700, 64, 3, 1_000, 500):
            # Of a few neighbourhoods, so that blocks lose many records at once.
            near = left[np.argsort(np.abs(X[left, 0] - rng.normal()), kind="stable")]
            remaining.remove(near[:n_leaving])
            left = np.setdiff1d(left, near[:n_leaving])
            point = X[near[0]]
            assert remaining.nearest(point, 9)[0].tolist() == reference.nearest(*scaled(X, point), 9, left).tolist()
            assert remaining.farthest(point) == reference.farthest(*scaled(X, point), left)
            np.testing.assert_array_equal(remaining.centroid(), [math.fsum(X[left, j]) / len(left) for j in range(3)])


def test_records_are_found_removed_and_counted():
    remaining = kernels.Remaining(np.array([[1.0], [9.0], [2.0], [8.0]]))
    records, squared = remaining.nearest(np.array([0.0]), 2)
    remaining.remove(records)

    assert (records.tolist(), squared.tolist()) == ([0, 2], [1.0, 4.0])
    assert (len(remaining), 1 in remaining, 2 in remaining) == (2, True, False)
    assert (remaining.farthest(np.array([0.0])), remaining.centroid().tolist()) == (1, [8.5])


def test_labels_are_of_the_type_that_numpy_calls_int64():
    # Another one of 64 bits is printed differently.
    assert repr(kernels.mdav(np.zeros((4, 1)), 4)) == "array([0, 0, 0, 0])"


@given(problem=problems(), number=st.integers(0, 10**6))
def test_the_nearest_are_those_of_the_twin(problem, number):
    X, k = problem
    point = X[number % len(X)] + 0.1
    expected = reference.nearest(*scaled(X, point), k, np.arange(len(X)))

    np.testing.assert_array_equal(kernels.Remaining(X).nearest(point, k)[0], expected)


@given(problem=problems(), number=st.integers(0, 10**6))
def test_the_farthest_is_that_of_the_twin(problem, number):
    X, _ = problem
    point = X[number % len(X)]

    assert kernels.Remaining(X).farthest(point) == reference.farthest(*scaled(X, point), np.arange(len(X)))


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_stay_exact_while_records_are_removed(family):
    rng = np.random.default_rng(11)
    for _ in range(5):
        X, _ = draw_problem(rng, family, n_most=900)
        remaining = kernels.Remaining(X)
        left = np.arange(len(X))
        Z = X * reference.unit_scale(X)
        while len(left) > 4:
            point = X[rng.integers(len(X))] * rng.choice([1.0, 0.5, 3.0])
            _, p = scaled(X, point)
            records, squared = remaining.nearest(point, 4)

            np.testing.assert_array_equal(records, reference.nearest(Z, p, 4, left))
            np.testing.assert_allclose(squared, reference.distances(X[records], point), rtol=1e-14)
            assert remaining.farthest(point) == reference.farthest(Z, p, left)
            assert remaining.farthest_from_centroid() == reference.farthest(Z, reference.centroid(Z[left]), left)
            np.testing.assert_array_equal(remaining.centroid() * reference.unit_scale(X), reference.centroid(Z[left]))

            gone = rng.choice(left, size=min(len(left) // 2, 1 + len(left) // 9), replace=False)
            remaining.remove(gone)
            left = np.setdiff1d(left, gone)
            assert len(remaining) == len(left)
            assert left[0] in remaining
            assert gone[0] not in remaining


@pytest.mark.parametrize("family", FAMILIES)
def test_gathered_and_grown_cells_are_those_of_the_twin(family):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for _ in range(10):
        X, k = draw_problem(rng, family)
        X = X * reference.unit_scale(X)
        remaining, left = kernels.Remaining(X), np.arange(len(X))
        while len(left) >= k:
            record = int(rng.choice(left))
            if rng.integers(2):
                found = remaining.grow(record, k)
                expected = reference.grow(X, record, k, left)
            else:
                found = remaining.gather(record, k)
                expected = [record, *reference.nearest(X, X[record], k - 1, left[left != record])]

            assert found.tolist() == expected
            left = np.setdiff1d(left, found)
            assert len(remaining) == len(left)


def as_counted(originals):
    """Stop counting at two, as the kernel does."""
    ahead, ties = originals
    return np.minimum(ahead, 2), np.where(ahead < 2, ties, 0)


def assert_linked_as_by_the_twin(X, points, labels, threads=2, simd=""):
    with kernels.using(threads, simd=simd):
        found = kernels.linkage(X, points, labels)
    originals, released = reference.linkage(X, points, labels)

    np.testing.assert_array_equal(found[0], as_counted(originals))
    np.testing.assert_array_equal(found[1], released)


@given(problem=problems(), seed=st.integers(0, 10**6), released=st.sampled_from(sorted(RELEASES)))
def test_ranks_by_distance_are_those_of_the_twin(problem, seed, released):
    X, k = problem

    assert_linked_as_by_the_twin(X, *RELEASES[released](np.random.default_rng(seed), X, k))


@pytest.mark.parametrize("simd", RUNNABLE)
@pytest.mark.parametrize("family", FAMILIES)
def test_ranks_by_distance_need_several_blocks_and_any_instruction_set(family, simd):
    rng = np.random.default_rng(sorted(FAMILIES).index(family))
    for threads in (1, 2, 3):
        X, k = draw_problem(rng, family, n_most=1200)
        labels = kernels.mdav(X, k)
        points = kernels.cell_sums(X, labels, labels.max() + 1) / np.bincount(labels)[:, None]

        assert_linked_as_by_the_twin(X, points, labels, threads, simd)


@pytest.mark.parametrize("simd", RUNNABLE)
def test_ranks_by_distance_are_those_of_the_twin_where_a_few_columns_exclude_most_pairs(simd):
    rng = np.random.default_rng(8)
    X = np.round(rng.normal(size=(1000, 27)) * 1.4 ** -rng.permutation(27), 1)  # rounded, so that some are as near
    labels = kernels.mdav(X, 3)
    points = kernels.cell_sums(X, labels, labels.max() + 1) / np.bincount(labels)[:, None]

    assert_linked_as_by_the_twin(X, points, labels, 2, simd)


def correlated(rng, n, n_dims):
    """Return records with most of their variance along a few axes, so that the last ones are left out."""
    return rng.normal(size=(n, 6)) @ rng.normal(size=(6, n_dims)) + 0.1 * rng.normal(size=(n, n_dims))


HARD_TO_LINK = {
    "ties": lambda rng: rng.integers(0, 3, (500, 9)).astype(float),
    "nominal columns": lambda rng: np.eye(7)[rng.integers(0, 7, (500, 3))].reshape(500, 21),
    "duplicates": lambda rng: rng.normal(size=(500, 8))[rng.integers(0, 100, 500)],
    "one column": lambda rng: np.round(rng.normal(size=(500, 1)), 1),
    "constant columns": lambda rng: rng.normal(size=(500, 12)) * (np.arange(12) % 3 == 0),
    "axes left out": lambda rng: correlated(rng, 500, 40),
    "more columns than are turned": lambda rng: correlated(rng, 300, 70),
    "strata": lambda rng: np.column_stack([rng.normal(size=(500, 6)), 1e3 * rng.integers(0, 4, 500)]),
    "a far outlier": lambda rng: np.vstack([rng.normal(size=(499, 6)), np.full(6, 1e5)]),
    "tiny": lambda rng: rng.normal(size=(300, 7)) * 1e-150,
    "huge": lambda rng: rng.normal(size=(300, 7)) * 1e150,
    "tiny beside huge": lambda rng: rng.normal(size=(300, 7)) * np.where(np.arange(7) % 2, 1e-150, 1e150),
}


@pytest.mark.parametrize("simd", RUNNABLE)
@pytest.mark.parametrize("hard", HARD_TO_LINK)
def test_ranks_by_distance_are_those_of_the_twin_where_codes_or_axes_may_mislead(hard, simd):
    rng = np.random.default_rng(sorted(HARD_TO_LINK).index(hard))
    X = HARD_TO_LINK[hard](rng)
    labels = np.sort(rng.integers(0, len(X) // 5, len(X)))[np.argsort(np.argsort(X[:, 0], kind="stable"))]
    labels = np.unique(labels, return_inverse=True)[1]
    points = np.stack([X[labels == cell][0] for cell in range(labels.max() + 1)])  # own distances of 0, and far cells

    assert_linked_as_by_the_twin(X, points, labels, 2, simd)


@pytest.mark.parametrize("n_dims", [3, 9, 40])
def test_ranks_by_distance_do_not_depend_on_the_number_of_threads_or_on_who_is_asked(n_dims):
    rng = np.random.default_rng(5)
    X = correlated(rng, 3_000, n_dims)
    labels = np.arange(3_000) // 10
    points = X[::10] + 0.5
    asked = np.sort(rng.choice(3_000, 300, replace=False))
    found = []
    with everything_shared():
        for threads in (1, 2, 3, 16):
            with kernels.using(threads):
                found.append(np.concatenate(kernels.linkage(X, points, labels))[:, asked])
                found.append(np.concatenate(kernels.linkage(X, points, labels, asked)))
    one, *others = found

    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n_columns", [1, 2, 9, 40])
@pytest.mark.parametrize("n_words", [1, 3, 5_000, 2**63])
@pytest.mark.parametrize("n_records", [0, 1, 64, 65, 20_000])
def test_records_agree_as_in_the_definition(n_records, n_words, n_columns):
    rng = np.random.default_rng(7)
    columns = rng.integers(-(n_words // 2), n_words - n_words // 2, (n_columns, n_records))
    again = columns[:, rng.permutation(n_records)]
    both = list(np.hstack([columns, again]))

    assert kernels.agreeing_records(both).tolist() == reference.agreeing_records(both)


def test_records_that_differ_in_the_last_bit_of_one_column_do_not_agree():
    columns = [np.zeros(256, dtype=np.int64) for _ in range(4)]
    columns[2] = np.arange(256) % 2
    columns[3] = np.where(np.arange(256) < 128, 0, np.int64(-(2**63)))

    assert kernels.agreeing_records(columns).tolist() == [0, 1] * 64 + [2, 3] * 64


@pytest.mark.parametrize("threads", [1, 2, 3, 16])
def test_numbers_inside_intervals_are_those_of_the_definition(threads):
    rng = np.random.default_rng(5)
    numbers, own = rng.integers(-9, 9, 1_000) / 4, rng.integers(0, 30, 1_000)
    low, centre = rng.integers(-9, 9, (2, 30)) / 4
    low[3] = np.nan
    intervals = kernels.Intervals(low, low + 1, centre, 0.5)

    with everything_shared(), kernels.using(threads):
        found = kernels.inside_intervals(numbers, -3, 0.25, own, intervals)

    assert found == reference.inside_intervals(numbers, -3, 0.25, own, intervals)


@pytest.mark.parametrize("n_codes", [1, 7, 3_000])
@pytest.mark.parametrize("n_records", [0, 1, 2_000])
def test_first_places_are_those_of_the_definition(n_records, n_codes):
    codes = np.random.default_rng(3).integers(0, n_codes, n_records)

    assert kernels.first_places(codes, n_codes).tolist() == reference.first_places(codes, n_codes)


@given(problem=problems())
def test_cell_sums_are_correctly_rounded(problem):
    X, k = problem
    labels = np.arange(len(X)) % k

    np.testing.assert_array_equal(kernels.cell_sums(X, labels, k), reference.cell_sums(X, labels, k))


@pytest.mark.parametrize(
    "column",
    [
        [1e100, 1.0, -1e100],
        [1.0, 2.0**-53, 2.0**-80],
        [1.0, 2.0**-53, -(2.0**-80)],
        [-1.0, -(2.0**-53), -(2.0**-1000)],
        [2.0**-1074, 2.0**-1074, -(2.0**-1070)],
        [0.1] * 10,
        [-0.0, 0.0, 0.0],
    ],
)
def test_sums_are_rounded_once_whatever_cancels(column):
    X = np.array(column).reshape(-1, 1)

    np.testing.assert_array_equal(kernels.cell_sums(X, np.zeros(len(X), np.int64), 1), [[math.fsum(column)]])


@given(problem=problems())
def test_cell_spread_is_the_squared_distance_from_the_means(problem):
    X, k = problem
    X = X * reference.unit_scale(X)
    labels = np.arange(len(X)) % k

    np.testing.assert_allclose(
        kernels.cell_spread(X, labels, k), reference.cell_spread(X, labels, k), rtol=1e-12, atol=1e-30
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_records", [1, 7, 300, 1000])
def test_co_moments_are_their_definition_in_any_unit(n_records, weighted):
    rng = np.random.default_rng(n_records)
    columns = [rng.integers(-50, 50, n_records) * unit for unit in (1.0, 2.0**1023 / 64, 2.0**-1070)]
    weights = rng.integers(1, 9, n_records).astype(float) if weighted else None
    exponents, origins = [0, -1023, 1070], [3.0, 0.25, 7.0]
    means, covariance = kernels.co_moments(columns, exponents, origins, weights)
    exact = [
        [Fraction(v) * Fraction(2) ** exponent - Fraction(origin) for v in column]
        for column, exponent, origin in zip(columns, exponents, origins, strict=True)
    ]
    expected = reference.co_moments(exact, [1] * n_records if weights is None else list(map(Fraction, weights)))

    np.testing.assert_allclose(means, np.array(expected[0], dtype=float), rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(covariance, np.array(expected[1], dtype=float), rtol=1e-12, atol=1e-12)


def test_co_moments_are_the_same_bits_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    columns, weights = list(rng.normal(size=(3, 100_000)) * 1e6), rng.random(100_000)
    found = []
    with everything_shared():
        for threads in (1, 2, 3, 16):
            with kernels.using(threads):
                found += [np.vstack(kernels.co_moments(columns, [0, 0, -3], [0.0, 1e6, 0.0], weights))]

    assert all(np.array_equal(one, found[0]) for one in found)


def test_equal_values_far_from_the_others_have_no_covariance():
    columns = [np.full(50_000, 0.1), np.random.default_rng(2).normal(size=50_000)]
    _, covariance = kernels.co_moments(columns, [0, 0], [0.1, 0.0])

    assert (covariance[0] == 0).all()
    assert (covariance[:, 0] == 0).all()


def test_loops_that_this_machine_lacks_are_refused():
    with pytest.raises(ValueError, match="cannot run"), kernels.using(simd="abacus"):
        kernels.mdav(np.zeros((4, 1)), 2)


def test_other_threads_of_python_go_on_meanwhile():
    X = np.random.default_rng(0).normal(size=(150_000, 20))

    def n_hundredths_of_a_second_with_a_turn():
        worker = threading.Thread(target=kernels.mdav, args=(X, 3))
        worker.start()
        turns = set()
        while worker.is_alive():
            turns.add(int(100 * time.monotonic()))
        return len(turns)

    # Again where this thread slept all the while, on a busy machine.
    assert any(n_hundredths_of_a_second_with_a_turn() > 10 for _ in range(10))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_interrupts_a_long_run():
    script = textwrap.dedent("""
        import numpy as np, shoal
        X = np.random.default_rng(0).normal(size=(400_000, 60))
        print("started", flush=True)
        shoal.partition(X, 2)
        print("finished")
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "started\n"
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert "KeyboardInterrupt" in stderr
    assert "finished" not in stdout
