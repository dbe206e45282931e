import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.output.report.binning import MOST_BINS, date_grid, joined, number_grid, round_step
from strategies import FAMILIES

DAY = 86400.0


@st.composite
def samples(draw):
    """Return ascending values and a k."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    family = FAMILIES[draw(st.sampled_from(sorted(FAMILIES)))]
    return np.sort(family(rng, (draw(st.integers(1, 300)), 2))[:, 0]), draw(st.integers(2, 12))


def naive_counts(edges, values):
    """Count value by value: what lies beyond the ends belongs to the end bins."""
    counts = [0] * (len(edges) - 1)
    for value in values:
        place = sum(value >= edge for edge in edges[1:-1])
        counts[place] += 1
    return counts


@given(sample=samples(), whole=st.booleans())
def test_bins_count_every_value_where_it_lies(sample, whole):
    values, k = sample
    grid = number_grid(values, k, whole)
    if grid is not None:
        assert grid.counts(values).tolist() == naive_counts(grid.edges, values)


@given(sample=samples(), other=samples(), whole=st.booleans())
def test_joined_bins_hold_k_values_of_every_side(sample, other, whole):
    values, k = sample
    grid = number_grid(values, k, whole)
    histogram = joined(grid, {"before": other[0], "after": values}, k) if grid is not None else None
    if histogram is not None:
        assert min(counts.min() for counts in histogram.sides.values()) >= k
        assert [counts.sum() for counts in histogram.sides.values()] == [len(other[0]), len(values)]
        assert histogram.starts[0] == 0
        assert histogram.starts[-1] == len(grid.edges) - 1


@given(sample=samples(), whole=st.booleans())
def test_the_outermost_k_minus_1_values_on_either_side_do_not_move_the_ends(sample, whole):
    values, k = sample
    grid = number_grid(values, k, whole)
    if grid is not None and grid.scale != "log":
        far = values.copy()
        far[: k - 1] -= 1e6
        far[len(far) - k + 1 :] += 1e6
        assert number_grid(far, k, whole).labels == grid.labels


def test_labels_are_round_numbers_and_not_values():
    grid = number_grid(np.sort(np.random.default_rng(1).normal(1234.567, 100, 1000)), 10, whole=False)

    assert all(float(label.replace(",", "")) % 20 == 0 for label in grid.labels)


def test_whole_numbers_lie_in_the_middle_of_their_bins():
    grid = number_grid(np.repeat(np.arange(10.0), 5), 5, whole=True)

    assert grid.edges[0] == -0.5
    assert grid.labels[0] == "0"
    assert len(grid.edges) == 11


def test_a_post_in_an_empty_plain_gets_a_logarithmic_axis():
    values = np.sort(np.concatenate([np.zeros(900), np.geomspace(100, 100_000, 100)]))
    grid = number_grid(values, 5, whole=True)

    assert grid.scale == "log"
    assert {"0", "100", "1,000", "10k"} <= set(grid.labels)
    assert np.count_nonzero(grid.counts(values)) > 6


def test_a_logarithmic_axis_has_two_sides_where_the_values_do():
    values = np.sort(np.concatenate([-np.geomspace(1, 1e6, 60), np.zeros(2000), np.geomspace(1, 1e6, 60)]))
    grid = number_grid(values, 5, whole=False)

    assert grid.scale == "log"
    assert grid.edges[0] < 0 < grid.edges[-1]


@pytest.mark.parametrize(
    "values",
    [np.ones(50), np.arange(7.0), np.array([]), np.array([-1.7e308] * 20 + [1.7e308] * 20), 1e16 + np.arange(40.0)],
    ids=["constant", "too few", "none", "too far apart", "too close"],
)
def test_what_cannot_be_drawn_is_not_drawn(values):
    grid = number_grid(np.sort(values), 5, whole=False)

    assert grid is None or len(grid.labels) == len(grid.edges)


@pytest.mark.parametrize("span", [60.0, 3600.0, DAY, 30 * DAY, 400 * DAY, 4000 * DAY, 40000 * DAY])
def test_dates_are_cut_at_calendar_steps(span):
    moments = np.sort(1e9 + span * np.random.default_rng(1).random(500))
    grid = date_grid(moments, 5)

    assert 4 <= len(grid.edges) <= 2 * MOST_BINS
    assert grid.edges[0] <= moments[4]
    assert grid.edges[-1] > moments[-5]
    assert grid.labels == tuple(sorted(grid.labels))


@given(st.floats(1e-200, 1e200), st.booleans())
def test_a_round_step_is_large_enough_and_not_much_larger(least, whole):
    step = round_step(least, whole)

    assert step >= least * (1 - 1e-9)
    assert step <= max(2.6 * least, 1.0 if whole else 0)


@given(st.floats(5e-324, 1e-290))
def test_a_round_step_exists_for_the_smallest_numbers(least):
    assert least <= round_step(least) * (1 + 1e-9)
