from fractions import Fraction

import numpy as np
import pytest

from shoal.aggregate import Cells, RandomAggregation, aggregate
from shoal.auditing.k_minus_one import differential
from shoal.columns.coarse import Ranges, Sets
from shoal.columns.schema import Roles, Schema
from shoal.methods import partition

pa = pytest.importorskip("pyarrow")


def scattered(X, labels, rho):
    table = pa.table({str(j): column for j, column in enumerate(X.T)})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)))
    made = aggregate(table, schema, Cells(labels), randomized=RandomAggregation(rho, 1))
    return np.column_stack([np.asarray(column) for column in made.values()])


@pytest.fixture(scope="module")
def problem():
    X = np.random.default_rng(0).normal(size=(300, 3))
    return X, partition(X, 5, "mdav")


def test_the_last_record_of_a_published_mean_is_always_recovered(problem):
    X, labels = problem
    found = differential(X, scattered(X, labels, 0.0), labels)

    assert found.recovered == 1.0
    assert found.rmse < 1e-9
    assert found.n_tried == 300


def test_the_more_noise_the_less_is_recovered_but_more_than_without_the_release(problem):
    X, labels = problem
    found = [differential(X, scattered(X, labels, rho), labels, rho) for rho in (0.1, 0.5, 1.0)]

    assert found[0].recovered > found[1].recovered > found[2].recovered > found[2].blind
    assert found[0].rmse < found[1].rmse < found[2].rmse < found[2].blind_rmse


def test_constant_columns_and_large_tables_are_no_trouble(problem):
    X, labels = problem
    X = np.column_stack([X, np.ones(len(X))])
    found = differential(X, X, labels, most=20, seed=1)

    assert found.n_tried == 20


@pytest.mark.parametrize("numbers", [[1e308, -1e308, 1e308, 0.0], [1e-320, 0.0, 2e-320, 0.0], [7.0, 7.0, 7.0, 7.0]])
def test_numbers_of_any_size_are_no_trouble(numbers):
    X = np.array(numbers)[:, None]
    Y = np.repeat(X[::2] / 2 + X[1::2] / 2, 2, axis=0)

    assert differential(X, Y, np.array([0, 0, 1, 1])).recovered == 1.0


def test_a_blind_guess_is_the_value_nearest_to_the_mean_of_the_others_and_the_lower_of_two():
    x = np.random.default_rng(4).integers(0, 10, 150)
    labels = np.arange(150) // 3
    found = differential(x[:, None], x[:, None], labels)
    right = 0
    for i in range(150):
        mean = Fraction(int(x[labels == labels[i]].sum() - x[i]), 2)
        right += min(set(x.tolist()), key=lambda value: (abs(value - mean), value)) == x[i]

    assert found.blind == pytest.approx(right / 150)


def naive_guesses(x, labels, lows, highs):
    """Guess each value as the lower median of those in the column with which the cell would show the same interval."""
    shown = sorted(set(lows)), sorted(set(highs))
    guesses = []
    for i in range(len(x)):
        known = [x[j] for j in range(len(x)) if labels[j] == labels[i] and j != i]

        def interval(z, known=known):
            least, most = min([*known, z]), max([*known, z])
            return max(low for low in shown[0] if low <= least), min(high for high in shown[1] if high >= most)

        possible = sorted(z for z in x if lows[i] <= z <= highs[i] and interval(z) == (lows[i], highs[i]))
        guesses.append(possible[(len(possible) - 1) // 2])
    return np.array(guesses)


@pytest.mark.parametrize("seed", range(4))
def test_ends_of_an_interval_that_the_others_do_not_explain_are_those_of_the_last_record(seed):
    x = np.random.default_rng(seed).integers(0, 60, 80).astype(float)
    labels = partition(x[:, None], 4, "mdav") if seed % 2 else np.arange(80) % 20
    cells = [x[labels == label] for label in labels]
    lows, highs = np.array([[c.min() // 5 * 5, c.max() // 5 * 5 + 4] for c in cells]).T
    found = differential(x[:, None], x[:, None], labels, coarse={"0": Ranges(lows, highs, np.zeros(80, dtype=bool))})
    right = np.abs(naive_guesses(x, labels, lows, highs) - x) <= 0.05 * x.std()

    assert found.recovered == pytest.approx(right.mean())
    assert found.recovered > differential(x[:, None], ((lows + highs) / 2)[:, None], labels).recovered


def test_a_member_of_a_set_that_the_others_do_not_have_is_that_of_the_last_record():
    x = np.array([1.0, 5.0, 9.0, 2.0, 2.0, 2.0, 7.0, 7.0, 7.0])
    sets = Sets.of(["{1, 5, 9}", "{2}", "{7}"]).take(np.arange(9) // 3)

    assert differential(x[:, None], x[:, None], np.arange(9) // 3, coarse={"0": sets}).recovered == 1.0
