import numpy as np
import pytest

from shoal.arrays import times_power_of_two


@pytest.mark.parametrize("exponent", [-1100, -1000, -999, -30, 0, 7, 999, 1000, 1100])
def test_a_product_by_a_power_of_two_is_what_ldexp_returns(exponent):
    values = np.array([0.0, -0.0, 1.0, -1 / 3, 5e-324, 1e-300, 1e300, np.inf, np.nan])
    with np.errstate(over="ignore", under="ignore"):
        found, expected = times_power_of_two(values, exponent), np.ldexp(values, exponent)

    np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))


def test_each_column_has_its_own_power_of_two():
    found = times_power_of_two(np.array([[1.0, 3.0], [5.0, 7.0]]), np.array([-1, 2]))

    np.testing.assert_array_equal(found, [[0.5, 12.0], [2.5, 28.0]])
