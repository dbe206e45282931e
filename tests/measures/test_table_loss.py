import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given

import shoal
from shoal.aggregate import Cells, aggregate
from shoal.columns.prepare import prepare
from shoal.columns.schema import Roles, Schema, as_settings
from shoal.measures.loss import loss
from shoal.measures.table_loss import table_loss
from shoal.methods import partition
from shoal.space.space import Space
from strategies import mixed_tables


def measured(table, labels, scaling="zscore", **columns):
    schema = Schema.of(table.schema, Roles(quasi_identifiers=tuple(table.column_names)), as_settings(columns))
    prepared = prepare(table, schema, "own-value")
    space = Space.fit(prepared, schema, scaling)
    published = pa.table(aggregate(prepared, schema, Cells(labels)))
    return table_loss(space, prepared, published, dict.fromkeys(table.column_names, labels))


def one_hot(codes):
    """Return the categories as a real one-hot matrix with unit variance in all."""
    matrix = np.eye(codes.max() + 1)[codes]
    return matrix / np.sqrt(matrix.var(axis=0).sum())


@pytest.mark.parametrize("n_categories", [2, 5, 17, 120])
def test_a_nominal_column_loses_what_its_one_hot_matrix_loses(n_categories):
    rng = np.random.default_rng(n_categories)
    codes = np.unique(rng.integers(0, n_categories, 400), return_inverse=True)[1]
    labels = np.arange(400) // 4
    found = measured(pa.table({"x": [f"c{code:03}" for code in codes]}), labels)
    defined = loss(one_hot(codes), labels)

    assert found.il == pytest.approx(defined.il)
    assert found.sse == pytest.approx(defined.sse)
    assert found.sst == pytest.approx(400)


def test_numbers_lose_what_the_matrix_loses():
    X = np.random.default_rng(1).normal(size=(90, 3)) * [1, 100, 1e6] + 1e9
    labels = partition(X, 4, "mdav")
    found = measured(pa.table(dict(zip("abc", X.T, strict=True))), labels)
    defined = loss(shoal.arrays.standardize(X), labels)

    for name in ("il", "sse", "sst", "mse", "mae"):
        assert getattr(found, name) == pytest.approx(getattr(defined, name), rel=1e-6)


def test_columns_add_up_to_the_table():
    rng = np.random.default_rng(2)
    table = pa.table({"x": rng.normal(size=60), "y": rng.choice(["a", "b", "c"], 60), "z": rng.integers(0, 9, 60)})
    found = measured(table, np.arange(60) // 5)
    columns = found.columns.values()

    assert found.sse == pytest.approx(sum(column.sse for column in columns))
    assert found.sst == pytest.approx(3 * 60)
    assert found.il == pytest.approx(np.mean([column.il for column in columns]))
    assert found.mse == pytest.approx(sum(column.mse for column in columns))


def test_a_weight_counts_squared():
    rng = np.random.default_rng(3)
    table = pa.table({"x": rng.normal(size=40), "y": rng.choice(["a", "b"], 40)})
    labels = np.arange(40) // 4
    plain, heavy = measured(table, labels), measured(table, labels, x={"weight": 3.0}, y={"weight": 2.0})

    assert heavy.columns["x"].sse == pytest.approx(9 * plain.columns["x"].sse)
    assert heavy.columns["y"].sse == pytest.approx(4 * plain.columns["y"].sse)
    assert heavy.columns["y"].mse == pytest.approx(4 * plain.columns["y"].mse)


def test_changed_is_the_share_of_records_with_another_value():
    table = pa.table({"x": [1.0, 1.0, 2.0, 4.0], "y": ["a", "a", "a", "b"]})
    found = measured(table, np.array([0, 0, 1, 1]))

    assert found.columns["x"].changed == 0.5
    assert found.columns["y"].changed == 0.25


@given(mixed_tables())
def test_nothing_is_lost_when_every_record_is_its_own_cell(problem):
    table, _ = problem
    # A mean is a float64, which cannot tell these numbers apart.
    table = table.select([name for name in table.column_names if name != "uint64 extremes"])
    assume(table.num_columns)
    found = measured(table, np.arange(table.num_rows))

    assert found.il == pytest.approx(0, abs=1e-9)
    assert found.mse == pytest.approx(0, abs=1e-9)


@given(mixed_tables())
def test_everything_is_lost_in_one_cell_and_nothing_where_there_is_nothing(problem):
    table, _ = problem
    found = measured(table, np.zeros(table.num_rows, dtype=np.int64))

    for column in found.columns.values():
        assert column.il == pytest.approx(1 if column.sst > 0 else 0)


def test_a_loss_can_be_written_as_plain_values():
    content = measured(pa.table({"x": [1, 2, 3, 4]}), np.array([0, 0, 1, 1])).to_dict()

    assert set(content) == {"il", "sse", "sst", "mse", "mae", "columns"}
    assert content["columns"]["x"]["il"] == content["il"] == pytest.approx(0.2)
