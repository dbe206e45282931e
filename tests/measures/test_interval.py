import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import ParameterError
from shoal.measures import interval_disclosure

NUMBERS = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_subnormal=False), st.just(np.nan))


def naive_interval(x, y, width):
    """Count value by value."""
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if not np.isnan(a)]
    if not pairs:
        return (0.0, 0.0)
    values = np.array([a for a, _ in pairs])
    sd = np.std(values - values[0])
    by_rank = [b == b and sum(min(a, b) < v < max(a, b) for v in values) <= width * len(values) for a, b in pairs]
    by_sd = [b == b and abs(a - b) <= width * sd for a, b in pairs]
    return np.mean(by_rank), np.mean(by_sd)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30), st.sampled_from([0.01, 0.1, 0.5]))
def test_both_shares_are_their_definitions(pairs, width):
    x, y = np.array(pairs).T
    found = interval_disclosure({"x": x}, {"x": y}, width)["x"]

    assert found == pytest.approx(naive_interval(x, y, width))


def test_an_unchanged_column_is_disclosed_entirely_and_a_removed_one_not_at_all():
    x = np.random.default_rng(1).normal(size=50)
    found = interval_disclosure({"kept": x, "gone": x}, {"kept": x, "gone": np.full(50, np.nan)})

    assert found == {"kept": (1.0, 1.0), "gone": (0.0, 0.0)}


@pytest.mark.parametrize("offset", [0.0, 1.7e9, 1e15])
def test_seconds_at_any_time_have_the_same_shares(offset):
    x = np.random.default_rng(2).integers(0, 1000, 200).astype(float)
    y = np.round(x, -2)

    assert interval_disclosure({"x": x + offset}, {"x": y + offset}) == interval_disclosure({"x": x}, {"x": y})


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_any_magnitude_has_the_same_shares(scale):
    x = np.random.default_rng(2).normal(size=200)
    y = x + np.random.default_rng(3).normal(size=200) / 5

    assert interval_disclosure({"x": x * scale}, {"x": y * scale}) == interval_disclosure({"x": x}, {"x": y})


def test_one_value_for_all_discloses_the_middle_of_a_column_only():
    x = np.arange(101.0)
    found = interval_disclosure({"x": x}, {"x": np.full(101, 50.0)}, width=0.1)

    # The middle, and eleven on either side: ten lie between the outermost of them and the middle.
    assert found["x"].by_rank == pytest.approx(23 / 101)


def test_columns_of_a_matrix_go_by_their_numbers():
    assert list(interval_disclosure(np.ones((4, 2)), np.ones((4, 2)))) == ["0", "1"]


@pytest.mark.parametrize(
    ("before", "after", "width", "message"),
    [
        ({"a": [1.0]}, {"b": [1.0]}, 0.1, "found 'a' before and 'b' after"),
        ({"a": [1.0]}, {"a": [1.0, 2.0]}, 0.1, "'a' has 1 before and 2 after"),
        ({"a": ["x"]}, {"a": [1.0]}, 0.1, "'a' must hold one real number"),
        ({"a": [np.inf]}, {"a": [1.0]}, 0.1, "'a' has 1 infinite"),
        ([1.0, 2.0], [1.0, 2.0], 0.1, "mapping or a matrix"),
        ({"a": [1.0]}, {"a": [1.0]}, 0.0, "width"),
        ({"a": [1.0]}, {"a": [1.0]}, np.nan, "width"),
    ],
)
def test_what_does_not_fit_is_refused(before, after, width, message):
    with pytest.raises(ParameterError, match=message):
        interval_disclosure(before, after, width)
