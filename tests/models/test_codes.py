"""Codes: ascending, without gaps, with missing as a value of its own."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from shoal import ParameterError
from shoal.models import encode


@pytest.mark.parametrize(
    ("column", "codes", "n_values"),
    [
        (pa.array([30, 10, 30]), [1, 0, 1], 2),
        (pa.array([2.5, None, float("nan"), -1.0]), [1, 2, 2, 0], 3),
        (pa.array(["b", "a", None]), [1, 0, 2], 3),
        (pa.array(["b", "a", "b"]).dictionary_encode(), [1, 0, 1], 2),
        (pa.chunked_array([["b"], ["a", "c"]]), [1, 0, 2], 3),
        (pa.array([datetime.date(2020, 1, 2), datetime.date(2019, 1, 2)]), [1, 0], 2),
        (pa.array([True, False]), [1, 0], 2),
        (pa.array([None, None], pa.int64()), [0, 0], 1),
        (pa.chunked_array([], pa.int64()), [], 0),
    ],
)
def test_values_are_numbered_in_ascending_order(column, codes, n_values):
    found = encode(column, ordered=True)

    np.testing.assert_array_equal(found.codes, codes)
    assert (found.codes.dtype, found.n_values) == (np.int64, n_values)


def test_categories_give_the_order():
    sizes = pa.array(["large", "small", None, "medium"])
    found = encode(sizes, ordered=True, categories=["small", "medium", "large"])

    np.testing.assert_array_equal(found.codes, [2, 0, 3, 1])


def test_values_outside_of_the_categories_are_counted_and_not_named():
    with pytest.raises(ParameterError, match="2 records") as raised:
        encode(pa.array(["a", "secret", "secret"]), ordered=True, categories=["a"])

    assert "secret" not in str(raised.value)
