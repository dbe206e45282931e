from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from block_tables import ROLES, batches, job, people
from shoal.columns.prepare import prepare
from shoal.columns.schema import Schema
from shoal.engines.blocks import sample
from shoal.engines.blocks.blueprint import TableSummary
from shoal.engines.blocks.exact_sums import UNIT, exact_sums
from shoal.errors import SchemaError
from shoal.space.space import Space

NUMBERS = st.one_of(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20).map(np.array),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20).map(lambda x: np.array(x, dtype=np.int64)),
)


@given(NUMBERS)
def test_sums_are_exact(numbers):
    exact = [Fraction(number) for number in numbers.tolist()]
    found = exact_sums(numbers)

    assert Fraction(found.total, 1 << UNIT) == sum(exact)
    assert Fraction(found.squares, 1 << 2 * UNIT) == sum(number**2 for number in exact)


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none"])
def test_the_space_is_that_of_all_records_in_memory(scaling):
    table, asked = people(400), job()
    schema = Schema.of(table.schema, asked.roles, asked.columns)
    summary = TableSummary.merged([TableSummary.of(batch, schema, 1) for batch in batches(table, 5, shuffled=2)])
    found = summary.statistics.space(summary.statistics.settled(schema), scaling)
    original = prepare(table, schema, "own-value")

    assert found.encode(original) == pytest.approx(Space.fit(original, schema, scaling).encode(original), abs=1e-9)
    assert found.constant == []


def test_summaries_do_not_depend_on_the_split(monkeypatch):
    monkeypatch.setattr(sample, "SAMPLE", 50)
    table, asked = people(300), job()
    schema = Schema.of(table.schema, asked.roles, asked.columns)
    one, two = (
        TableSummary.merged([TableSummary.of(batch, schema, 1) for batch in split])
        for split in (batches(table, 2), batches(table, 9, shuffled=4))
    )

    assert one.sample.records.equals(two.sample.records)
    assert one.statistics.numbers["income"].sums == two.statistics.numbers["income"].sums
    assert one.statistics.distribution(schema["city"]).counts.tolist() == (
        two.statistics.distribution(schema["city"]).counts.tolist()
    )


def test_ordered_categories_that_are_listed_differently_are_refused():
    def batch(listed):
        values = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(listed), ordered=True)
        return pa.table({"grade": values})

    schema = Schema.of(batch(["low", "high"]).schema, job(roles={"quasi_identifiers": ("grade",)}, columns={}).roles)
    parts = [TableSummary.of(batch(listed), schema, 1) for listed in (["low", "high"], ["high", "low"])]
    with pytest.raises(SchemaError, match="not listed in the same way"):
        TableSummary.merged(parts)


def test_roles_of_the_tables_are_those_of_the_jobs():
    assert set(ROLES["quasi_identifiers"]) <= set(people(10).column_names)
