from fractions import Fraction

import numpy as np
import pytest

from shoal.attacks.differential import differential
from shoal.cells.aggregate import Cells, RandomAggregation, aggregate
from shoal.columns.schema import Roles, Schema
from shoal.partition import partition

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
