import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError
from shoal.arrays import standardize
from shoal.datasets import eia
from shoal.measures import Loss, loss

# TFRP's figure 1: nine records A B C D E F H I J, and their cells before and after phase II with k = 3.
NINE = np.array([[11, 9], [11, 8], [12, 6], [9, 6], [8, 10], [5, 4], [4, 3], [2, 5], [1, 3]], dtype=np.float64)
PHASE_1 = [0, 0, 0, 2, 2, 2, 1, 1, 1]
PHASE_2 = [0, 0, 0, 0, 0, 1, 1, 1, 1]


def naive_loss(X, labels) -> Loss:
    """The definitions, written out in exact arithmetic."""
    records = [[Fraction(x) for x in record] for record in np.asarray(X, dtype=np.float64).tolist()]
    labels = [int(label) for label in labels]
    cells = [[x for x, label in zip(records, labels, strict=True) if label == c] for c in range(max(labels) + 1)]
    means = [mean(cell) for cell in cells]
    gse = [sum(squared_distance(x, center) for x in cell) for cell, center in zip(cells, means, strict=True)]
    sst = sum(squared_distance(x, mean(records)) for x in records)
    distances = [math.sqrt(squared_distance(x, means[label])) for x, label in zip(records, labels, strict=True)]
    return Loss(
        sse=float(sum(gse)),
        sst=float(sst),
        il=float(sum(gse) / sst) if sst else 0.0,
        mse=float(sum(gse) / len(records)),
        mae=math.fsum(distances) / len(records),
        gse=np.array([float(share) for share in gse]),
    )


def mean(records):
    return [sum(column) / len(records) for column in zip(*records, strict=True)]


def squared_distance(x, y):
    return sum((a - b) ** 2 for a, b in zip(x, y, strict=True))


def assert_same_loss(found: Loss, expected: Loss, rel: float = 1e-12) -> None:
    for name in ("sse", "sst", "il", "mse", "mae", "gse"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rel, atol=1e-300, err_msg=name)


@st.composite
def labelled_matrices(draw, offsets=(0.0,)):
    """Small matrices with ties, repeated records and constant columns, cut into cells of any size."""
    n_records, n_dims = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    numbers = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e6, 1e6, allow_subnormal=False))
    rows = st.lists(numbers, min_size=n_dims, max_size=n_dims)
    X = np.array(draw(st.lists(rows, min_size=n_records, max_size=n_records))) + draw(st.sampled_from(offsets))
    labels = draw(st.lists(st.integers(0, 5), min_size=n_records, max_size=n_records))
    return X, np.unique(labels, return_inverse=True)[1]


@given(labelled_matrices(offsets=(0.0, 1e9, -1.7e9, 1e15)))
def test_every_number_is_its_definition_offset_or_not(problem):
    X, labels = problem

    assert_same_loss(loss(X, labels), naive_loss(X, labels))


def test_cells_far_apart_keep_the_digits_of_their_own_spread():
    X = np.array([[1e15], [1e15 + 1], [1e15 + 3], [-1e15], [-1e15 - 2]])

    assert loss(X, [0, 0, 0, 1, 1]).gse == pytest.approx([14 / 3, 2], rel=1e-14)


def test_the_nine_points_of_tfrp_have_the_printed_group_errors():
    before, after = loss(NINE, PHASE_1), loss(NINE, PHASE_2)

    assert before.gse.round(2).tolist() == [5.33, 7.33, 27.33]
    assert before.sse == pytest.approx(40)
    assert after.gse == pytest.approx([23.6, 12.75])


def test_four_records_worked_out_by_hand():
    found = loss([[0.0, 0.0], [6.0, 8.0], [3.0, 4.0], [3.0, 4.0]], [0, 0, 1, 1])

    assert found.sse == 50
    assert found.sst == 50
    assert found.il == 1
    assert found.mse == 12.5
    assert found.mae == 2.5
    assert found.gse.tolist() == [50, 0]


def test_standardized_columns_have_a_total_of_records_times_columns():
    X = standardize(eia().X)

    assert loss(X, np.arange(len(X)) // 3).sst == pytest.approx(4092 * 11, rel=1e-12)


@given(labelled_matrices(offsets=(0.0, 1e9)))
def test_one_cell_of_everything_loses_exactly_everything(problem):
    X, _ = problem
    found = loss(X, np.zeros(len(X), dtype=int))

    assert found.sse == found.sst
    assert found.il == (1 if np.ptp(X, axis=0).any() else 0)


def test_cells_of_one_record_lose_nothing():
    X = np.random.default_rng(1).normal(size=(50, 3)) + 1e9
    found = loss(X, np.arange(50))

    assert (found.sse, found.il, found.mse, found.mae) == (0, 0, 0, 0)
    assert found.sst > 0


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3, 1.7e308, 5e-324])
def test_records_that_are_all_the_same_have_an_information_loss_of_0(value):
    found = loss(np.full((7, 2), value), [0, 0, 0, 1, 1, 1, 1])

    assert (found.sse, found.sst, found.il, found.mae) == (0, 0, 0, 0)
    assert found.gse.tolist() == [0, 0]


def test_the_order_of_the_records_and_the_names_of_the_cells_do_not_matter():
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(60, 4)), np.arange(60) % 7
    order, names = rng.permutation(60), rng.permutation(7)
    found = loss(X[order], names[labels[order]])

    assert_same_loss(found, Loss(**{**vars(loss(X, labels)), "gse": loss(X, labels).gse[np.argsort(names)]}))


@pytest.mark.parametrize("power", [-490, -350, -200, 200, 350, 490])
def test_a_power_of_two_scales_every_number_exactly(power):
    plain, scaled = loss(NINE, PHASE_1), loss(np.ldexp(NINE, power), PHASE_1)

    assert scaled.il == plain.il
    assert scaled.mae == math.ldexp(plain.mae, power)
    assert (scaled.sse, scaled.sst, scaled.mse) == tuple(
        math.ldexp(value, 2 * power) for value in (plain.sse, plain.sst, plain.mse)
    )
    np.testing.assert_array_equal(scaled.gse, np.ldexp(plain.gse, 2 * power))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_tiny_and_huge_numbers_have_the_loss_of_their_definition(scale):
    X = np.random.default_rng(2).normal(size=(30, 3)) * scale
    labels = np.arange(30) % 4
    found, expected = loss(X, labels), naive_loss(X / scale, labels)

    assert found.sse == pytest.approx(expected.sse * scale**2, rel=1e-12, abs=0)
    assert found.mae == pytest.approx(expected.mae * scale, rel=1e-12, abs=0)
    assert found.il == pytest.approx(expected.il, rel=1e-12, abs=0)


@pytest.mark.parametrize("power", [-1070, 1018])
def test_squares_beyond_float64_become_0_or_infinity_while_il_and_mae_stay_right(power):
    plain, extreme = loss(NINE, PHASE_1), loss(np.ldexp(NINE, power), PHASE_1)
    limit = 0.0 if power < 0 else math.inf

    assert (extreme.sse, extreme.sst, extreme.mse) == (limit, limit, limit)
    assert extreme.gse.tolist() == [limit] * 3
    assert extreme.il == plain.il
    assert extreme.mae == pytest.approx(math.ldexp(plain.mae, power), abs=5e-324)


def test_the_widest_range_of_all_is_measured():
    widest = np.finfo(np.float64).max
    found = loss([[-widest], [widest], [widest], [-widest]], [0, 1, 1, 0])

    assert found.sst == math.inf
    assert (found.sse, found.il, found.mae) == (0, 0, 0)


def test_a_constant_column_of_any_size_does_not_hide_a_small_one():
    small = NINE * 1e-170
    found = loss(np.column_stack([np.full(9, 1.7e308), small, np.full(9, -0.1)]), PHASE_1)

    assert found.il == pytest.approx(loss(NINE, PHASE_1).il, rel=1e-12, abs=0)
    assert found.mae == pytest.approx(loss(NINE, PHASE_1).mae * 1e-170, rel=1e-12, abs=0)


def test_a_narrow_cell_beside_a_very_wide_one_keeps_its_own_error():
    found = loss([[1e160], [-1e160], [1e-10], [3e-10]], [0, 0, 1, 1])

    assert found.sse == math.inf
    assert found.gse[1] == pytest.approx(2e-20, rel=1e-12, abs=0)


def test_the_input_is_unchanged():
    X, labels = NINE.copy(), np.array(PHASE_1)
    loss(X, labels)

    np.testing.assert_array_equal(X, NINE)
    np.testing.assert_array_equal(labels, PHASE_1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
def test_labels_of_any_integer_type_will_do(dtype):
    assert loss(NINE, np.array(PHASE_1, dtype=dtype)).sse == loss(NINE, PHASE_1).sse


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (PHASE_1[:-1], r"each of the 9 records; its shape is \(8,\)"),
        ([PHASE_1], r"each of the 9 records; its shape is \(1, 9\)"),
        (0, r"each of the 9 records; its shape is \(\)"),
        (np.array(PHASE_1, dtype=float), "whole numbers; their dtype is float64"),
        (np.array(PHASE_1) == 0, "whole numbers; their dtype is bool"),
        (list("aaabbbccc"), "whole numbers; their dtype is <U1"),
        ([0, 0, 0, 1, -1, 1, -1, 2, 2], "2 records have a negative label, the first is at index 4"),
        ([0, 0, 0, 3, 3, 3, 1, 1, 1], "without gaps; the largest is 3 but only 3 different labels occur"),
        ([1, 1, 1, 1, 1, 1, 1, 1, 1], "without gaps; the largest is 1 but only 1 different labels occur"),
        ([0, 0, 0, 0, 0, 0, 0, 0, 10**12], "without gaps; the largest is 1000000000000"),
        (np.array([0] * 8 + [2**64 - 1], dtype=np.uint64), "without gaps"),
    ],
)
def test_labels_that_do_not_number_the_cells_are_refused(labels, message):
    with pytest.raises(ParameterError, match=message):
        loss(NINE, labels)


def test_nothing_at_all_has_no_loss_to_speak_of():
    with pytest.raises(ParameterError, match="no records"):
        loss(np.empty((0, 2)), np.empty(0, dtype=int))


def test_a_matrix_that_is_none_is_refused():
    with pytest.raises(ParameterError, match="1 entries are NaN or infinite"):
        loss([[1.0], [np.nan]], [0, 0])
