import math
import sys
from fractions import Fraction
from itertools import count as counting
from itertools import pairwise

import numpy as np
import pytest

from shoal import GuaranteeError, ParameterError, partition
from shoal.arrays import standardize
from shoal.datasets import census, eia, tarragona
from shoal.measures import Bound, loss, lower_bound
from shoal.measures.bound import relaxation
from shoal.measures.bound.inequalities import count, separate
from shoal.measures.bound.relaxation import State, lagrangian
from strategies import FAMILIES

SIDE = math.sqrt(0.5)
# Four records, each at distance 1 from the three others.
TETRAHEDRON = SIDE * np.eye(4)


@pytest.fixture(autouse=True)
def a_second_is_a_round(monkeypatch):
    """Let the clock move on by a second in each round, since how far the strong bound gets depends on the machine."""
    monkeypatch.setattr(relaxation, "perf_counter", counting().__next__)


def tiny_problems(n_each, *, n_most=8):
    """Matrices of a few records from every family, each with a k that allows at least two cells."""
    for number, family in enumerate(FAMILIES):
        rng = np.random.default_rng(number)
        for _ in range(n_each):
            k = int(rng.integers(2, 5))
            n = int(rng.integers(2 * k, max(2 * k, n_most) + 1))
            yield FAMILIES[family](rng, (n, int(rng.integers(1, 4)))), k


def optimal_sse(X, k):
    """The smallest SSE of all partitions into cells of at least k: exhaustive, and in exact arithmetic."""
    n_records = len(X)
    unit = max(Fraction(x).denominator for x in X.ravel().tolist())
    rows = [[int(Fraction(x) * unit) for x in row] for row in X.tolist()]
    # Whole numbers throughout: 2520 is divisible by every cell size up to 10.
    assert n_records <= 10
    pairs = [0] * (1 << n_records)
    for cell in range(1, 1 << n_records):
        first, *others = members(cell)
        pairs[cell] = pairs[cell & (cell - 1)] + sum(
            sum((a - b) ** 2 for a, b in zip(rows[first], rows[other], strict=True)) for other in others
        )
    cost = {
        cell: pairs[cell] * (2520 // cell.bit_count()) for cell in range(1, 1 << n_records) if cell.bit_count() >= k
    }
    best = {0: 0}
    for records in range(1, 1 << n_records):
        options = [
            cost[cell] + best[records ^ cell] for cell in cells_with_the_first(records, k) if records ^ cell in best
        ]
        if options:
            best[records] = min(options)
    return Fraction(best[(1 << n_records) - 1], 2520 * unit**2)


def members(cell):
    return [record for record in range(cell.bit_length()) if cell >> record & 1]


def cells_with_the_first(records, k):
    """All subsets of at least k of the records that hold the first of them."""
    first = records & -records
    rest = records ^ first
    subset = rest
    while True:
        if subset.bit_count() + 1 >= k:
            yield subset | first
        if subset == 0:
            return
        subset = (subset - 1) & rest


def partitions(records, k):
    """All partitions of a set of records (as bits) into cells of at least k."""
    if records == 0:
        yield []
    else:
        for cell in cells_with_the_first(records, k):
            for others in partitions(records ^ cell, k):
                yield [cell, *others]


def optimal_sse_of_a_column(x, k):
    """The same for one column: cells are runs of the sorted numbers (Hansen and Mukherjee 2003)."""
    x = np.sort(x) - x.mean()
    sums, squares = (np.concatenate([[0.0], np.cumsum(y)]) for y in (x, x * x))
    best = np.full(len(x) + 1, np.inf)
    best[0] = 0
    for end in range(k, len(x) + 1):
        start = np.arange(max(0, end - 2 * k + 1), end - k + 1)
        cost = squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start)
        best[end] = (best[start] + cost).min()
    return best[-1]


def exact_sst(X):
    rows = [[Fraction(x) for x in row] for row in X.tolist()]
    return sum(
        sum((x - sum(column) / len(column)) ** 2 for x in column) for column in map(list, zip(*rows, strict=True))
    )


def fractional_point(rng, n_records, k):
    """Links as a relaxation might give them: every record has about k-1 in all."""
    links = rng.random(n_records * (n_records - 1) // 2) * (rng.random() < 0.5)
    links += rng.random(len(links)) < rng.random()
    first, second = np.triu_indices(n_records, 1)
    return first * n_records + second, np.minimum(links, 1.0), rng.uniform(k / (2 * k - 1), 1, n_records)


def left_sides(cuts, links, shares):
    """What the cuts compare with their limits, given the links of their pairs."""
    pairs = np.bincount(cuts.pair_row, cuts.coefficient * links, len(cuts))
    return pairs + np.bincount(cuts.record_row, cuts.weight * shares[cuts.record], len(cuts))


def multipliers(rng, X, k):
    """A state with cuts that some point breaks, and with multipliers at random."""
    pairs, links, shares = fractional_point(rng, len(X), k)
    cuts = count(len(X), k).join(separate(pairs, links, shares, k))
    spread = np.ptp(X, axis=0).max() ** 2 / k
    alpha, beta = spread * rng.normal(0.1, 0.2, len(X)), spread * rng.exponential(0.05, len(cuts))
    return State(pairs[::2], links[::2], shares, alpha, cuts, beta)


def test_no_partition_of_hundreds_of_tiny_problems_is_below_the_bounds():
    n_close = 0
    for X, k in tiny_problems(25):
        optimum = optimal_sse(X, k)
        cheap, strong = lower_bound(X, k), lower_bound(X, k, effort="strong", seconds=6)
        sst = exact_sst(X)

        assert Fraction(cheap.sse) <= Fraction(strong.sse) <= optimum
        assert Fraction(strong.il) * sst <= optimum
        n_close += optimum > 0 and strong.sse > optimum / Fraction("1.05")

    # Five percent more would have been too much in many of these.
    assert n_close >= 60


def test_every_partition_obeys_every_cut():
    rng = np.random.default_rng(4)
    n_cuts = 0
    for _ in range(60):
        k = int(rng.integers(2, 5))
        n = int(rng.integers(2 * k, 10))
        pairs, links, shares = fractional_point(rng, n, k)
        cuts = count(n, k).join(separate(pairs, links, shares, k))
        n_cuts += len(cuts)
        at = np.searchsorted(pairs, cuts.pair)
        for cells in partitions((1 << n) - 1, k):
            share = np.empty(n)
            label = np.empty(n, dtype=int)
            for number, cell in enumerate(cells):
                share[members(cell)] = k / cell.bit_count()
                label[members(cell)] = number
            link = np.where(label[pairs // n] == label[pairs % n], share[pairs // n], 0.0)

            assert (left_sides(cuts, link[at], share) <= cuts.limit + 1e-12).all()
    assert n_cuts > 1000


def test_broken_cuts_are_broken():
    rng = np.random.default_rng(5)
    for _ in range(30):
        pairs, links, shares = fractional_point(rng, 12, 3)
        cuts = separate(pairs, links, shares, 3)
        left = left_sides(cuts, links[np.searchsorted(pairs, cuts.pair)], shares)

        assert (left > cuts.limit).all()
        assert len(np.unique(cuts.key)) == len(cuts)


def test_the_lagrangian_is_a_bound_at_any_multipliers_and_whatever_pairs_are_held():
    rng = np.random.default_rng(6)
    n_useful = 0
    for X, k in tiny_problems(20, n_most=7):
        scaled = np.ldexp(X - X.mean(axis=0), -int(np.frexp(np.ptp(X, axis=0).max())[1]))
        optimum = optimal_sse(scaled, k)
        for _ in range(5):
            value, _ = lagrangian(scaled, k, multipliers(rng, scaled, k))

            assert value <= optimum
            n_useful += value > 0
    assert n_useful > 20


def test_the_strong_bound_starts_from_multipliers_that_are_worth_the_cheap_one():
    for X, k in tiny_problems(10, n_most=40):
        cheap = lower_bound(X, k)

        assert lower_bound(X, k, effort="strong", seconds=0).sse >= cheap.sse


def test_a_negative_multiplier_of_a_cut_counts_as_0():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(8, 2))
    state = multipliers(rng, X, 2)
    negative = State(state.pairs, state.links, state.shares, state.alpha, state.cuts, -state.beta)
    none = State(state.pairs, state.links, state.shares, state.alpha, state.cuts, 0 * state.beta)

    assert lagrangian(X, 2, negative)[0] == lagrangian(X, 2, none)[0]


@pytest.mark.parametrize(("n_records", "k"), [(4, 2), (6, 3), (12, 3), (12, 4), (20, 5)])
@pytest.mark.parametrize("effort", ["cheap", "strong"])
def test_records_at_equal_distances_are_bounded_by_what_every_partition_costs(n_records, k, effort):
    X = SIDE * np.eye(n_records)
    cost = n_records / k * (k - 1) / 2

    assert cost * (1 - 1e-12) < lower_bound(X, k, effort=effort, seconds=20).sse <= cost


def test_cells_larger_than_k_are_paid_for_in_full_by_the_strong_bound():
    X = np.vstack([TETRAHEDRON + 100 * shift for shift in range(4)])
    cost = loss(X, np.repeat(np.arange(4), 4)).sse

    assert lower_bound(X, 3).sse == pytest.approx(cost * 8 / 9)
    assert cost * (1 - 1e-3) < lower_bound(X, 3, effort="strong", seconds=20).sse <= cost


def test_pairs_that_exclude_each_other_are_seen_by_the_strong_bound():
    # Every record has a neighbour at distance 1, but the one in the middle of three can please one of them only.
    X = np.array([[0.0], [1.0], [2.0], [50.0], [51.0], [52.0]])

    assert lower_bound(X, 2).sse == pytest.approx(1.5)
    assert 4 * (1 - 1e-3) < lower_bound(X, 2, effort="strong", seconds=20).sse <= 4


@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_of_one_column_the_strong_bound_is_just_below_the_optimum(draw, k):
    x = getattr(np.random.default_rng(k), draw)(size=100 + k)
    optimum = optimal_sse_of_a_column(x, k)

    assert lower_bound(x[:, None], k).sse < 0.95 * optimum
    assert 0.95 * optimum < lower_bound(x[:, None], k, effort="strong", seconds=20).sse < optimum * (1 + 1e-12)


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("data", [census, tarragona, eia])
def test_on_real_data_the_cheap_bound_stays_below_mdav(data, k):
    X = standardize(data().X)
    bound, found = lower_bound(X, k), loss(X, partition(X, k, "mdav"))

    assert 0 < bound.sse < found.sse
    assert 0 < bound.il < found.il
    assert bound.il == pytest.approx(bound.sse / found.sst, rel=1e-12)


# The limits: what a long search has found, and what a bound of links alone, without crowds, does not reach.
@pytest.mark.parametrize(
    ("data", "k", "rounds", "reached", "found"),
    [(census, 3, 15, 4.60, 4.732), (tarragona, 3, 15, 14.05, 14.505), (tarragona, 10, 15, 28.9, 30.133)],
)
def test_on_real_data_some_rounds_of_the_strong_bound_come_near_the_best_partition_known(
    data, k, rounds, reached, found
):
    bound = lower_bound(standardize(data().X), k, effort="strong", seconds=rounds)

    assert reached < 100 * bound.il < found
    assert bound.method == "relaxation"


@pytest.mark.parametrize("effort", ["cheap", "strong"])
def test_one_possible_cell_is_its_own_bound(effort):
    X = np.random.default_rng(8).normal(size=(7, 3)) + 1e9
    for k in (4, 5, 7):
        bound = lower_bound(X, k, effort=effort)

        assert bound.sse == pytest.approx(loss(X, np.zeros(7, dtype=int)).sse, rel=1e-12)
        assert Fraction(bound.sse) <= exact_sst(X)
        assert 1 - 1e-12 < bound.il <= 1
        assert bound.method == "one cell"


@pytest.mark.parametrize("effort", ["cheap", "strong"])
@pytest.mark.parametrize("value", [0.0, 0.1, 1.7e308, 5e-324])
def test_records_that_are_all_the_same_have_a_bound_of_0(value, effort):
    bound = lower_bound(np.full((9, 2), value), 3, effort=effort)

    assert (bound.sse, bound.il) == (0, 0)


@pytest.mark.parametrize("times", [3, 40])
@pytest.mark.parametrize("effort", ["cheap", "strong"])
def test_records_that_all_occur_k_times_have_a_bound_of_0(effort, times):
    X = np.repeat(np.random.default_rng(9).normal(size=(6, 2)), times, axis=0)

    assert lower_bound(X, 3, effort=effort, seconds=5).sse == 0
    assert lower_bound(X, times + 1, effort=effort, seconds=5).sse > 0


@pytest.mark.parametrize("power", [-400, -30, 30, 400])
def test_a_power_of_two_changes_the_unit_and_nothing_else(power):
    X = np.random.default_rng(10).normal(size=(30, 3))
    plain, scaled = lower_bound(X, 4), lower_bound(np.ldexp(X, power), 4)

    assert scaled.il == plain.il
    assert scaled.sse == math.ldexp(plain.sse, 2 * power)


@pytest.mark.parametrize("effort", ["cheap", "strong"])
@pytest.mark.parametrize("power", [-1000, 1020])
def test_squares_beyond_float64_leave_il_right(power, effort):
    X = np.random.default_rng(11).integers(-7, 8, size=(20, 2)).astype(float)
    plain, extreme = (lower_bound(Y, 3, effort=effort, seconds=0) for Y in (X, np.ldexp(X, power)))

    assert extreme.il == plain.il > 0
    assert extreme.sse == (0 if power < 0 else math.inf) or extreme.sse == np.finfo(float).max


def test_the_order_of_the_records_does_not_matter():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(60, 4))

    assert lower_bound(X[rng.permutation(60)], 5).sse == pytest.approx(lower_bound(X, 5).sse, rel=1e-14)


def test_the_input_is_unchanged():
    X = np.random.default_rng(13).normal(size=(20, 2))
    copy = X.copy()
    lower_bound(X, 3, effort="strong", seconds=0)

    np.testing.assert_array_equal(X, copy)


def test_no_time_at_all_still_gives_a_bound():
    X = np.random.default_rng(14).normal(size=(40, 2))

    assert lower_bound(X, 3, effort="strong", seconds=0).sse >= lower_bound(X, 3).sse > 0


def test_progress_goes_from_the_first_record_to_the_last():
    calls = []
    lower_bound(np.random.default_rng(15).normal(size=(9000, 2)), 3, progress=lambda *call: calls.append(call))

    assert calls[0] == (0, 9000)
    assert calls[-1] == (9000, 9000)
    assert all(before < after for (before, _), (after, _) in pairwise(calls))


@pytest.mark.parametrize("effort", ["cheap", "strong"])
def test_an_exception_in_progress_ends_the_work(effort):
    def stop(done, of):
        if effort == "cheap" or of == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lower_bound(np.random.default_rng(16).normal(size=(40, 2)), 3, effort=effort, seconds=50, progress=stop)


def test_the_gap_is_the_part_of_the_loss_that_might_be_avoidable():
    X = standardize(census().X)
    bound, found = lower_bound(X, 5), loss(X, partition(X, 5, "mdav"))

    assert bound.gap(found) == pytest.approx((found.sse - bound.sse) / found.sse)
    assert Bound(0.0, 0.0, "nearest").gap(loss([[1.0], [1.0]], [0, 0])) == 0


def test_a_loss_below_the_bound_is_refused():
    X = np.random.default_rng(17).normal(size=(20, 2))

    with pytest.raises(ParameterError, match="below the bound"):
        lower_bound(X, 5).gap(loss(X, np.arange(20)))


def test_without_scipy_the_strong_bound_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)

    with pytest.raises(ParameterError, match=r"shoal-privacy\[bound\]"):
        lower_bound(np.random.default_rng(18).normal(size=(20, 2)), 3, effort="strong")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 1}, "k=1"),
        ({"k": 2.5}, "whole number, not float"),
        ({"effort": "huge"}, "Efforts: cheap, strong"),
        ({"seconds": -1}, "seconds must be"),
        ({"seconds": math.inf}, "seconds must be"),
        ({"seconds": "60"}, "seconds must be"),
        ({"seed": "x"}, "seed must be"),
        ({"progress": 3}, "progress must be"),
        ({"X": [[math.nan]] * 9}, "finite"),
        ({"X": [1.0, 2.0]}, "two dimensions"),
    ],
)
def test_what_cannot_be_used_is_refused(options, message):
    with pytest.raises(ParameterError, match=message):
        lower_bound(**{"X": np.arange(12.0).reshape(6, 2), "k": 2, **options})


@pytest.mark.parametrize("n_records", [0, 2])
def test_too_few_records_have_no_partition_to_bound(n_records):
    with pytest.raises(GuaranteeError, match=f"only {n_records} records"):
        lower_bound(np.zeros((n_records, 2)), 3)
