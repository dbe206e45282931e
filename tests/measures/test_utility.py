import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError, kernels, partition
from shoal.arrays import standardize
from shoal.datasets import census
from shoal.measures import loss, nominal_utility, numeric_utility

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3).map(lambda x: round(x, 3)))
MISSING = st.one_of(NUMBERS, st.just(np.nan))


def mean(values, weights):
    return sum(w * v for v, w in zip(values, weights, strict=True)) / sum(weights)


def variance(values, weights):
    center = mean(values, weights)
    return mean([(v - center) ** 2 for v in values], weights)


def covariance(a, b, weights):
    return mean([(x - mean(a, weights)) * (y - mean(b, weights)) for x, y in zip(a, b, strict=True)], weights)


def exact(values, weights):
    """The values that are there, as fractions, and their weights."""
    there = [(Fraction(float(v)), Fraction(float(w))) for v, w in zip(values, weights, strict=True) if v == v]
    return [v for v, _ in there], [w for _, w in there]


@st.composite
def tables(draw, n_columns=2, values=MISSING):
    n_records = draw(st.integers(2, 15))
    offset = draw(st.sampled_from([0.0, 1.7e9]))
    rows = st.lists(st.lists(values, min_size=n_columns, max_size=n_columns), min_size=n_records, max_size=n_records)
    weights = draw(st.none() | st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=n_records, max_size=n_records))
    return np.array(draw(rows)) + offset, np.array(draw(rows)) + offset, weights


@given(tables())
def test_the_changes_of_a_column_are_their_definitions(table):
    before, after, weights = table
    found = numeric_utility(before, after, weights)
    w = weights or [1.0] * len(before)
    sums = []
    for j, change in enumerate(found.columns.values()):
        x, y = before[:, j], after[:, j]
        originals, original_weights = exact(x, w)
        released, released_weights = exact(y, w)
        if not originals or not released or variance(originals, original_weights) == 0:
            continue
        unit = math.sqrt(variance(originals, original_weights))
        shift = mean(released, released_weights) - mean(originals, original_weights)
        ratio = variance(released, released_weights) / variance(originals, original_weights)
        moved = [(abs(Fraction(a) - Fraction(b)), v) for a, b, v in zip(x, y, w, strict=True) if a == a and b == b]
        sums.append((float(sum(m * Fraction(v) for m, v in moved)) / unit / math.sqrt(2), sum(v for _, v in moved)))

        assert change.mean == pytest.approx(float(shift) / unit, rel=1e-9, abs=1e-9)
        assert change.variance == pytest.approx(float(ratio) - 1, rel=1e-9, abs=1e-9)
        assert change.il1s == pytest.approx(sums[-1][0] / sums[-1][1] if sums[-1][1] else 0, rel=1e-9, abs=1e-9)
        assert change.removed == pytest.approx(
            sum(v for a, b, v in zip(x, y, w, strict=True) if a == a and b != b)
            / sum(v for a, v in zip(x, w, strict=True) if a == a)
        )
    if len(sums) == before.shape[1] and sum(count for _, count in sums):
        assert found.il1s == pytest.approx(sum(s for s, _ in sums) / sum(n for _, n in sums), rel=1e-9, abs=1e-9)


@given(tables(n_columns=3, values=NUMBERS))
def test_correlations_and_eigenvalues_are_their_definitions(table):
    before, after, weights = table
    found = numeric_utility(before, after, weights)
    w = [Fraction(v) for v in weights or [1.0] * len(before)]
    sides = [[[Fraction(v) for v in column] for column in side.T] for side in (before, after)]
    if any(variance(column, w) == 0 for side in sides for column in side):
        return

    def correlation(a, b):
        return float(covariance(a, b, w)) / math.sqrt(variance(a, w) * variance(b, w))

    changes = [
        abs(correlation(sides[1][i], sides[1][j]) - correlation(sides[0][i], sides[0][j]))
        for i in range(3)
        for j in range(i)
    ]
    units = [math.sqrt(variance(column, w)) for column in sides[0]]
    for side, values in zip(sides, (found.eigenvalues_before, found.eigenvalues_after), strict=True):
        matrix = [[float(covariance(side[i], side[j], w)) / units[i] / units[j] for j in range(3)] for i in range(3)]
        expected = np.linalg.eigvalsh(matrix)[::-1]

        np.testing.assert_allclose(values, expected, rtol=1e-7, atol=1e-7 * expected[0])
    assert found.correlation_max == pytest.approx(max(changes), abs=1e-7)
    assert found.correlation_mean == pytest.approx(np.mean(changes), abs=1e-7)


def test_nothing_has_changed_where_nothing_was_changed():
    X = census().X
    found = numeric_utility(X, X)

    assert (found.il1s, found.correlation_max, found.correlation_mean) == (0, 0, 0)
    assert np.abs(list(found.columns.values())).max() < 1e-12
    np.testing.assert_array_equal(found.eigenvalues_before, found.eigenvalues_after)


def test_means_of_cells_keep_the_means_and_lose_the_variance_that_loss_counts():
    X = standardize(census().X)
    labels = partition(X, 5, "mdav")
    Y = (kernels.cell_sums(X, labels, labels.max() + 1) / np.bincount(labels)[:, None])[labels]
    changes = np.array(list(numeric_utility(X, Y).columns.values()))

    assert np.abs(changes[:, 0]).max() < 1e-12
    assert -changes[:, 1].mean() == pytest.approx(loss(X, labels).il)


@pytest.mark.parametrize("scale", [1e-290, 1e290])
def test_any_magnitude_has_the_same_utility(scale):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3))
    Y = X + rng.normal(size=(50, 3)) / 4
    found, expected = numeric_utility(X * scale, Y * scale), numeric_utility(X, Y)

    assert found.il1s == pytest.approx(expected.il1s)
    np.testing.assert_allclose(list(found.columns.values()), list(expected.columns.values()), atol=1e-12)
    np.testing.assert_allclose(found.eigenvalues_after, expected.eigenvalues_after)


def test_a_constant_column_has_no_unit_to_change_in():
    flat = np.full(6, 0.1)
    found = numeric_utility({"kept": flat, "moved": flat}, {"kept": flat, "moved": flat + np.arange(6)})

    assert found.columns["kept"] == (0, 0, 0, 0)
    assert found.columns["moved"] == (math.inf, math.inf, math.inf, 0)
    assert found.il1s == math.inf
    assert len(found.eigenvalues_before) == 0


def test_a_column_that_was_removed_is_said_to_be():
    x = np.arange(5.0)
    found = numeric_utility({"a": x, "b": x}, {"a": np.full(5, np.nan), "b": x})

    assert found.columns["a"].removed == 1
    assert found.columns["b"].removed == 0
    assert found.il1s == 0


def test_a_column_without_values_changes_nothing():
    missing = np.full(5, np.nan)

    assert numeric_utility({"a": missing}, {"a": missing}).columns["a"] == (0, 0, 0, 0)


def test_records_without_weight_do_not_count():
    found = numeric_utility({"a": [1.0, 2.0, 9.0]}, {"a": [1.0, 2.0, 0.0]}, weights=[1, 1, 0])

    assert found.columns["a"] == pytest.approx((0, 0, 0, 0))


def test_the_report_holds_plain_numbers():
    report = numeric_utility(census().X, np.round(census().X, -3)).to_dict()

    assert json.loads(json.dumps(report, allow_nan=False)) == report


def test_the_threads_of_blas_and_of_shoal_change_no_digit():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40_000, 5))
    Y = X + rng.normal(size=X.shape) / 3
    weights = rng.random(len(X))
    found = []
    for threads in (1, 2):
        with threadpoolctl.threadpool_limits(threads), kernels.using(threads):
            found.append([numeric_utility(X, Y, each).to_dict() for each in (None, weights)])

    assert found[0] == found[1]


WORDS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcd"), st.sampled_from([1, 2])), min_size=1)


@given(WORDS)
def test_nominal_changes_are_their_definitions(rows):
    before, after, weights = zip(*rows, strict=True)
    total = sum(weights)
    p = [sum(w for value, w in zip(before, weights, strict=True) if value == v) / total for v in "abcd"]
    q = [sum(w for value, w in zip(after, weights, strict=True) if value == v) / total for v in "abcd"]
    found = nominal_utility({"x": before}, {"x": after}, weights)["x"]

    assert found.changed == pytest.approx(sum(w for a, b, w in rows if a != b) / total)
    assert found.total_variation == pytest.approx(sum(abs(a - b) for a, b in zip(p, q, strict=True)) / 2)
    assert found.hellinger == pytest.approx(
        math.sqrt(sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(p, q, strict=True)) / 2), abs=1e-9
    )


def test_missing_codes_are_codes_like_others():
    assert nominal_utility({"x": [np.nan, 1.0]}, {"x": [np.nan, np.nan]})["x"].changed == 0.5


@pytest.mark.parametrize("measure", [numeric_utility, nominal_utility])
@pytest.mark.parametrize(
    ("before", "after", "weights", "message"),
    [
        ({"a": [1.0]}, {"b": [1.0]}, None, "found 'a' before and 'b' after"),
        ({"a": [1.0], "b": [1.0]}, {"a": [1.0], "b": [1.0, 2.0]}, None, "'b' has 1 before and 2 after"),
        ({}, {}, None, "no values"),
        ({"a": []}, {"a": []}, None, "no values"),
        ({"a": [1.0]}, {"a": [1.0]}, [1.0, 2.0], "each of the 1 records"),
        ({"a": [1.0]}, {"a": [1.0]}, [0.0], "All weights are 0"),
        ({"a": [None]}, {"a": [1.0]}, None, "'a'"),
    ],
)
def test_what_does_not_fit_is_refused(measure, before, after, weights, message):
    with pytest.raises(ParameterError, match=message):
        measure(before, after, weights)
