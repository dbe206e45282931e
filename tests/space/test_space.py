import statistics
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal import GuaranteeError, ParameterError, SchemaError
from shoal.arrays import as_cell_size, as_k, as_matrix, standardize
from shoal.columns.prepare import prepare
from shoal.columns.schema import Roles, Schema, as_settings
from shoal.datasets import census
from shoal.space.space import Space
from strategies import mixed_tables

NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.floats(-1e100, 1e100, allow_subnormal=False),
)


def exact_zscores(column: list[float]) -> list[float]:
    """The definition: deviation from the mean in units of the population standard deviation, in exact arithmetic."""
    mean = statistics.mean(map(Fraction, column))
    sd = Fraction(statistics.pstdev(column))
    return [float((Fraction(x) - mean) / sd) if sd else 0.0 for x in column]


@given(st.lists(NUMBERS, min_size=1, max_size=30))
@example([0.1, 0.1, 0.1])
@example([1e9, 1e9 + 1, 1e9 + 3])
@example([1e15 + 0.125, 1e15, 1e15])
def test_a_column_becomes_its_deviations_in_standard_deviations(column):
    Z = standardize(np.array(column).reshape(-1, 1))

    np.testing.assert_allclose(Z[:, 0], exact_zscores(column), rtol=1e-12, atol=1e-12)


def test_columns_are_scaled_each_on_its_own():
    X = np.array([[1.0, 1e6], [2.0, 3e6], [6.0, 2e6], [4.0, 7e6]])
    Z = standardize(X)

    np.testing.assert_allclose(Z.T, [exact_zscores(list(column)) for column in X.T], rtol=1e-14)


@pytest.mark.parametrize("offset", [0.0, 1e9, -1e12])
def test_an_offset_changes_nothing(offset):
    X = np.arange(24.0).reshape(8, 3) ** 2

    np.testing.assert_allclose(standardize(X + offset), standardize(X), rtol=1e-14, atol=1e-14)


def test_unix_timestamps_a_second_apart_keep_their_differences():
    seconds = np.arange(1_700_000_000, 1_700_000_000 + 10_001)
    Z = standardize(seconds.reshape(-1, 1))

    # n equally spaced numbers have the variance (n^2 - 1) / 12.
    np.testing.assert_allclose(np.diff(Z[:, 0]), (12 / (10_001**2 - 1)) ** 0.5, rtol=1e-10)


@pytest.mark.parametrize("power", [-1070, -500, 500, 1015])
def test_a_power_of_two_changes_not_a_bit(power):
    X = np.array([[1.0, -3.0], [2.0, 0.0], [7.0, 5.0], [0.0, 8.0]])

    np.testing.assert_array_equal(standardize(np.ldexp(X, power)), standardize(X))


def test_columns_as_wide_as_floats_go_are_no_exception():
    widest = np.finfo(np.float64).max
    Z = standardize([[-widest, 5e-324], [widest, 0.0]])

    np.testing.assert_array_equal(Z, [[-1.0, 1.0], [1.0, -1.0]])


@pytest.mark.parametrize("value", [0.0, 0.1, -1.7e9 / 3, 5e-324, 1.7e308])
@pytest.mark.parametrize("n_records", [1, 2, 3, 1000])
def test_a_constant_column_becomes_zeros(value, n_records):
    X = np.column_stack([np.full(n_records, value), np.arange(n_records)])
    Z = standardize(X)

    assert not Z[:, 0].any()


def test_equal_entries_stay_equal():
    X = np.random.default_rng(5).integers(0, 4, size=(500, 3)) / 7 + 1e8
    Z = standardize(X)

    assert all(len(np.unique(z)) == len(np.unique(x)) for z, x in zip(Z.T, X.T, strict=True))


def test_the_census_set_gets_mean_0_and_deviation_1_in_every_column():
    Z = standardize(census().X)

    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-14)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, rtol=1e-14)


def test_the_input_is_unchanged_and_not_shared():
    X = np.array([[1.0, 5.0], [2.0, 5.0]])
    Z = standardize(X)
    Z[:] = 9.0

    np.testing.assert_array_equal(X, [[1.0, 5.0], [2.0, 5.0]])


def test_no_records_give_no_records():
    X = np.empty((0, 3))
    Z = standardize(X)

    assert Z.shape == (0, 3)
    assert Z is not X


@pytest.mark.parametrize("values", [[[1, 2], [3, 4]], [[True, False]], np.ones((2, 2), np.float32)])
def test_real_numbers_of_any_kind_become_a_float64_matrix(values):
    matrix = as_matrix(values)

    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    assert matrix.tolist() == np.asarray(values).tolist()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0], [2.0, 3.0]], "rows have different lengths"),
        ([["4711"]], "must hold real numbers"),
        ([[1j]], "must hold real numbers"),
        ([4711.0, 2.0], "two dimensions, records by columns; it has 1"),
        (np.empty((3, 0)), "3 records but no columns"),
        ([[4711.0, 1.0], [4711.0, np.nan], [np.inf, 1.0]], r"2 entries .* column\(s\) 0, 1, the first at index 1"),
    ],
)
def test_what_is_not_a_matrix_is_refused_without_showing_its_values(values, message):
    with pytest.raises(ParameterError, match=message) as refusal:
        standardize(values)

    assert "4711" not in str(refusal.value)


def fitted(table, scaling="zscore", **columns):
    schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)), as_settings(columns))
    prepared = prepare(table, schema, "own-value")
    return Space.fit(prepared, schema, scaling), prepared


def test_numeric_columns_alone_are_the_standardised_matrix():
    X = census().X
    space, table = fitted(pa.table(dict(zip(census().columns, X.T, strict=True))))

    np.testing.assert_allclose(space.encode(table), standardize(X), rtol=1e-12, atol=1e-12)


def one_hot(values):
    """Return one-hot columns in which the column as a whole has unit variance."""
    codes = np.unique(values, return_inverse=True)[1]
    matrix = np.eye(codes.max() + 1)[codes]
    return matrix / np.sqrt(matrix.var(axis=0).sum())


@pytest.mark.parametrize("n_categories", [2, 6, 17])
def test_distances_between_mixed_records_are_those_of_one_hot_columns(n_categories):
    rng = np.random.default_rng(7)
    numbers, texts = rng.normal(size=80), np.array([f"c{i:02}" for i in rng.integers(0, n_categories, 80)])
    space, table = fitted(pa.table({"x": numbers, "y": texts}))
    X = space.encode(table)
    H = np.hstack([standardize(numbers[:, None]), one_hot(texts)])

    np.testing.assert_allclose(distances(X), distances(H), atol=1e-10)


def distances(X):
    return np.square(X[:, None] - X[None]).sum(axis=2)


@given(mixed_tables(), st.sampled_from(["zscore", "minmax"]))
def test_every_column_has_its_own_coordinates_and_all_are_finite(problem, scaling):
    table, _ = problem
    space, prepared = fitted(table, scaling)
    X = space.encode(prepared)
    dims = [dim for part in space.dims() for dim in range(X.shape[1])[part]]

    assert dims == list(range(X.shape[1]))
    assert np.isfinite(X).all()
    for axis, part in zip(space.axes, space.dims(), strict=True):
        np.testing.assert_array_equal(X[:, part], axis.encode(prepared[axis.column.name]))


def test_more_records_than_are_written_at_once_are_all_written():
    rng = np.random.default_rng(3)
    space, table = fitted(pa.table({"x": rng.normal(size=20_000), "y": rng.choice(["a", "b", "c"], 20_000)}))
    X = space.encode(table)

    np.testing.assert_array_equal(X[:, :1], space.axes[0].encode(table["x"]))
    np.testing.assert_array_equal(X[:, 1:], space.axes[1].encode(table["y"]))


def test_eight_nominal_columns_of_a_hundred_categories_take_128_coordinates():
    values = [f"c{i:03}" for i in range(100)]
    space, table = fitted(pa.table({f"q{j}": values for j in range(8)}))

    assert space.encode(table).shape == (100, 128)


def test_columns_that_carry_no_distance_are_named():
    space, _ = fitted(pa.table({"a": [1, 1], "b": ["x", "y"], "c": pa.nulls(2, pa.int8())}))

    assert space.constant == ["a", "c"]


def test_a_fixed_space_places_other_records_and_refuses_what_it_cannot_place():
    space, _ = fitted(pa.table({"x": [0.0, 10.0], "y": ["a", "b"]}), "minmax")

    assert space.encode(pa.table({"x": [20.0], "y": ["a"]}))[0, 0] == 2.0
    with pytest.raises(SchemaError, match="'y' has categories that did not occur"):
        space.encode(pa.table({"x": [20.0], "y": ["s3cr3t"]}))


@pytest.mark.parametrize("k", [True, np.True_, "3", 3.0, None, [3]])
def test_k_is_a_whole_number_and_nothing_that_looks_like_one(k):
    with pytest.raises(ParameterError, match="k must be a whole number, not"):
        as_k(k)


def test_k_fits_the_records():
    assert as_cell_size(np.int32(3), 3) == 3
    with pytest.raises(ParameterError, match="at least 2"):
        as_cell_size(1, 10)
    with pytest.raises(GuaranteeError, match="only 2 records"):
        as_cell_size(3, 2)


def test_more_records_than_the_kernels_can_number_are_refused_before_anything_is_copied():
    endless = np.lib.stride_tricks.as_strided(np.zeros(1), (2**31, 1), (0, 0))

    with pytest.raises(ParameterError, match=r"2,147,483,648 records, and at most 2,147,483,647"):
        as_matrix(endless)
    with pytest.raises(ParameterError, match=r"2,147,483,648 records, and at most 2,147,483,647"):
        Space(()).encode(pa.table({"x": pa.nulls(2**31)}))
