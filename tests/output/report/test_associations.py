import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from shoal.columns.schema import Roles, Schema
from shoal.output.report.associations import MOST_COLUMNS, correlations
from strategies import problems


def compared(before, after=None, k=2):
    after = before if after is None else after
    return correlations(Schema.of(before.schema, Roles(quasi_identifiers=tuple(before.column_names))), before, after, k)


def naive(x, y):
    """Correlate what both have, from the definition."""
    both = ~(np.isnan(x) | np.isnan(y))
    x, y = x[both] - x[both].mean(), y[both] - y[both].mean()
    return (x @ y) / np.sqrt((x @ x) * (y @ y))


@given(problem=problems())
def test_correlations_lie_between_minus_1_and_1_whatever_the_numbers(problem):
    X, k = problem
    found = compared(pa.table({f"c{i}": x for i, x in enumerate(X.T)}), k=k)
    if found is not None:
        values = [value for row in found["before"] for value in row if value is not None]
        assert all(-1 <= value <= 1 for value in values)
        assert found["before"] == found["after"]


def test_correlations_are_pearsons_over_the_records_that_have_both():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(70_000, 3)) @ rng.normal(size=(3, 3)) * [1, 1e9, 1e-9] + [0, 1e12, 0]
    X[rng.random(X.shape) < 0.1] = np.nan
    found = compared(pa.table({name: pa.array(x, from_pandas=True) for name, x in zip("abc", X.T, strict=True)}))

    assert np.array(found["before"]) == pytest.approx(np.array([[naive(x, y) for y in X.T] for x in X.T]), abs=0.0006)


def test_a_constant_column_and_one_that_few_records_have_correlate_with_nothing():
    table = pa.table({"a": range(20), "b": [*range(19), 3], "same": [3.3] * 20, "few": [1, 5, 2] + [None] * 17})
    found = compared(table, k=2)

    assert found["columns"] == ["a", "b"]


def test_a_pair_that_few_records_have_both_of_has_no_correlation():
    table = pa.table({"a": range(20), "b": [*range(10), *[None] * 10], "c": [*[None] * 9, *range(11)]})
    found = compared(table, k=2)

    assert found["before"][1] == [1.0, 1.0, None]


def test_the_columns_that_changed_most_are_shown():
    rng = np.random.default_rng(4)
    before = {f"c{i}": rng.normal(size=500) for i in range(20)}
    after = before | {"c17": before["c3"]}
    found = compared(pa.table(before), pa.table(after))

    assert len(found["columns"]) == MOST_COLUMNS
    assert found["left_out"] == 20 - MOST_COLUMNS
    assert {"c3", "c17"} <= set(found["columns"])
    assert found["largest_change"] > 0.9


def test_dates_take_part():
    days = pa.array(range(18000, 18050), pa.int32())
    found = compared(
        pa.table(
            {"day": days.cast(pa.date32()), "n": range(50), "when": days.cast(pa.int64()).cast(pa.timestamp("ns"))}
        )
    )

    assert found["before"][0] == [1.0, 1.0, 1.0]


def test_one_number_alone_has_no_map():
    assert compared(pa.table({"a": [1, 2, 3]})) is None
