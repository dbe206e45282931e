import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import SchemaError
from shoal.columns.prepare import prepare
from shoal.columns.schema import Roles, Schema, as_settings
from shoal.space.axes import MOST_DIMS, NominalAxis, NumberAxis, fit_axis
from strategies import COLUMNS

SCALINGS = ["zscore", "minmax", "none"]


def fitted(values, scaling="zscore", **settings):
    table = pa.table({"x": values})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)), as_settings({"x": settings}))
    prepared = prepare(table, schema, "own-value")["x"]
    axis = fit_axis(prepared, schema["x"], scaling)
    return axis, axis.encode(prepared)


def squared(A):
    return np.square(A[:, None] - A[None]).sum(axis=2)


@given(st.lists(st.floats(-1e100, 1e100), min_size=2, max_size=20).filter(lambda x: len(set(x)) > 1))
def test_numbers_get_unit_variance_or_range_1(numbers):
    Z, U, N = (fitted(numbers, scaling)[1][:, 0] for scaling in SCALINGS)

    assert Z.mean() == pytest.approx(0, abs=1e-9)
    assert Z.std() == pytest.approx(1)
    assert (U.min(), U.max()) == (0, 1)
    assert N.tolist() == numbers


@pytest.mark.parametrize(
    ("values", "steps"),
    [
        ([-(2**63), 0, 2**63 - 1], [0, 0.5, 1]),
        (pa.array([2**64 - 1, 2**64 - 2, 2**64 - 3], pa.uint64()), [1, 0.5, 0]),
        (pa.array([2**64 - 1, 0], pa.uint64()), [1, 0]),
        ([2**62 + 1, 2**62, 2**62 + 2], [0.5, 0, 1]),
        ([1.7e308, -1.7e308, 0.0], [1, 0, 0.5]),
        ([5e-324, 0.0, 1e-323], [0.5, 0, 1]),
        ([1e15 + 0.125, 1e15, 1e15 + 0.25], [0.5, 0, 1]),
        (pa.array([-(2**63), 2**63 - 1]).cast(pa.timestamp("ns", "UTC")), [0, 1]),
        (pa.array([2**62, 2**62 + 1, 2**62 + 4]).cast(pa.duration("ns")), [0, 0.25, 1]),
        (pa.array([1, 2, 5]).cast(pa.decimal256(40, 20)), [0, 0.25, 1]),
    ],
)
def test_numbers_of_any_size_keep_their_digits(values, steps):
    np.testing.assert_allclose(fitted(values, "minmax")[1][:, 0], steps, rtol=1e-15)


def test_ranks_are_equally_far_apart_in_the_given_order():
    values = ["mid", "low", "high", "mid"]

    assert fitted(values, "minmax", categories=["low", "mid", "high"])[1].tolist() == [[0.5], [0], [1], [0.5]]


@pytest.mark.parametrize("scaling", ["zscore", "minmax"])
def test_missing_values_are_as_far_from_the_mean_as_two_records_from_one_another(scaling):
    values = [1.0, 2.0, None, 6.0, None]
    axis, X = fitted(values, scaling, weight=3.0)
    present = X[[0, 1, 3]]
    mean_square = squared(present).mean() if scaling == "zscore" else 9.0

    assert X[2].tolist() == X[4].tolist() == pytest.approx([present[:, 0].mean(), math.sqrt(mean_square)])
    assert axis.n_dims == 2
    assert present[:, 1].tolist() == [0, 0, 0]


@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize(
    ("values", "constant"),
    [
        ([0.1, 0.1, 0.1], True),
        ([0.1, 0.1, None], False),
        ([5e-324] * 3, True),
        (pa.nulls(3, pa.float64()), True),
        (pa.nulls(3, pa.timestamp("s")), True),
        (pa.nulls(3), True),
        (["a"] * 3, True),
        (["a", "a", None], False),
        ([2**64 - 1, 2**64 - 2], False),
    ],
)
def test_a_column_with_one_value_carries_no_distance(values, constant, scaling):
    values = pa.array(values, pa.uint64()) if values[0] == 2**64 - 1 else values
    if scaling == "none" and pa.array(values).type == pa.uint64():
        return  # as it is means as float64 has it
    axis, X = fitted(values, scaling)

    assert axis.is_constant is constant
    assert bool(squared(X).max() == 0) is constant
    assert np.isfinite(X).all()


@pytest.mark.parametrize("n_categories", [2, 3, 9, MOST_DIMS + 1])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_categories_are_all_equally_far_apart_as_long_as_the_dimensions_allow_it(n_categories, scaling):
    codes = np.random.default_rng(1).integers(0, n_categories, 100)
    codes[:n_categories] = np.arange(n_categories)
    _, X = fitted([f"c{code}" for code in codes], scaling, weight=2.0)
    one_hot = np.eye(n_categories)[codes]
    unit = 4 / one_hot.var(axis=0).sum() if scaling == "zscore" else 4 / 2

    np.testing.assert_allclose(squared(X), unit * squared(one_hot), atol=1e-12)
    assert X.shape[1] == n_categories - 1


def test_a_nominal_column_has_the_variance_of_a_numeric_one():
    _, X = fitted(["a", "a", "b", "c", "c", "c", None])

    assert X.var(axis=0).sum() == pytest.approx(1)


def test_more_categories_than_dimensions_are_so_far_apart_on_average_and_never_together():
    categories = [f"c{i:03}" for i in range(300)]
    axis, X = fitted(categories, "none")
    apart = np.array([np.square(a - b).sum() for a, b in itertools.combinations(X, 2)])

    assert X.shape == (300, MOST_DIMS)
    assert apart.mean() == pytest.approx(1, rel=0.02)
    assert apart.min() > 0.05
    assert np.array_equal(X, fitted(categories, "none")[1])
    assert axis.apart == 1


def test_the_frequent_categories_are_the_exact_ones():
    values = [f"c{i}" for i in range(40)] + [f"c{i}" for i in range(20, 37)] * 2
    _, X = fitted(values, "none")

    off_diagonal = squared(X[20:37])[~np.eye(17, dtype=bool)]
    np.testing.assert_allclose(off_diagonal, 1, atol=1e-12)


@pytest.mark.parametrize("name", COLUMNS)
def test_equal_values_have_equal_points_and_different_ones_different_points(name):
    values = COLUMNS[name](np.random.default_rng(6), 40)
    table = pa.table({"x": values})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)))
    prepared = prepare(table, schema, "own-value")["x"]
    X = fit_axis(prepared, schema["x"], "zscore").encode(prepared)

    assert len(np.unique(X, axis=0)) == len(set(map(repr, prepared.to_pylist())))


def test_a_space_that_was_fixed_refuses_what_it_does_not_know():
    numbers, _ = fitted([1.0, 2.0])
    texts, _ = fitted(["a", "b"])
    assert isinstance(numbers, NumberAxis)
    assert isinstance(texts, NominalAxis)

    with pytest.raises(SchemaError, match="'x' has missing values"):
        numbers.encode(pa.chunked_array([[1.0, None]]))
    with pytest.raises(SchemaError, match="'x' has categories"):
        texts.encode(pa.chunked_array([["a", "c"]]))


def test_records_beyond_those_that_fixed_the_space_are_placed_on_the_same_scale():
    axis, _ = fitted([2**63 - 1, 2**63 - 3], "minmax")

    assert axis.encode(pa.chunked_array([[-(2**63)]]))[0, 0] == pytest.approx(-(2.0**63))
