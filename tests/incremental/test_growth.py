import numpy as np
import pyarrow as pa
import pytest

from shoal.columns.schema import ColumnSettings, Roles, Schema
from shoal.incremental.growth import extended
from shoal.space.space import Space


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none"])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_a_late_missing_value_is_as_far_as_one_of_the_base_would_be(scaling, weight):
    numbers = np.random.default_rng(1).normal(size=200)
    base, late = pa.table({"x": numbers}), pa.table({"x": pa.array([None, 1.0])})
    schema = Schema.of(base.schema, Roles(quasi_identifiers=("x",)), {"x": ColumnSettings(weight=weight)})
    space = extended(Space.fit(base, schema, scaling), base, late, scaling)
    from_the_start = Space.fit(pa.table({"x": pa.array([*numbers, None])}), schema, scaling)

    assert space.axes[0].apart == pytest.approx(from_the_start.axes[0].apart)
