import sys
from fractions import Fraction

import numpy as np
import pytest

from shoal import ParameterError
from shoal.dp import budget as budget_module
from shoal.dp.budget import Budget, total


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, True])
def test_an_epsilon_that_protects_nothing_or_is_none_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        Budget(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 1 / 3, 7])
def test_shares_never_add_up_to_more_than_there_is(epsilon):
    budget = Budget(epsilon)
    for number in range(13):
        budget.laplace(("columns", f"column {number}"), np.array([0]), 2**20, Fraction(1, 13))

    assert total(budget.spent) <= Fraction(epsilon)
    assert float(total(budget.spent)) == pytest.approx(epsilon)


def test_a_step_that_is_paid_for_twice_is_a_fault():
    budget = Budget(1.0)
    budget.laplace(("columns", "x"), np.array([0]), 1, Fraction(1, 4))

    with pytest.raises(AssertionError, match="twice"):
        budget.laplace(("columns", "x"), np.array([0]), 1, Fraction(1, 4))


def test_spending_more_than_there_is_is_a_fault():
    budget = Budget(1.0)
    budget.laplace(("columns", "first"), np.array([0]), 1, Fraction(2, 3))

    with pytest.raises(AssertionError, match="More epsilon"):
        budget.laplace(("columns", "second"), np.array([0]), 1, Fraction(2, 3))


def test_the_noise_has_the_scale_that_its_price_says():
    noisy = Budget(0.5).laplace(("columns", "zeros"), np.zeros(20_000, dtype=np.int64), 10, Fraction(1))

    # Discrete Laplace of scale 20: the mean size of the noise is about 20.
    assert np.abs(noisy).mean() == pytest.approx(20, rel=0.05)
    assert abs(np.median(noisy)) <= 1


def test_noise_has_no_seed():
    np.random.seed(0)  # noqa: NPY002
    first = Budget(1.0).laplace(("columns", "x"), np.zeros(50, dtype=np.int64), 1000, Fraction(1))
    np.random.seed(0)  # noqa: NPY002
    second = Budget(1.0).laplace(("columns", "x"), np.zeros(50, dtype=np.int64), 1000, Fraction(1))

    assert not np.array_equal(first, second)


def test_a_high_score_is_chosen_more_often():
    budget = Budget(1000.0)
    scores = [np.array([0] * 50 + [9] + [0] * 50)] * 5

    assert budget.choose(("cells", "places"), scores, Fraction(1)) == [50] * 5


def test_noise_that_would_not_fit_is_refused():
    with pytest.raises(ParameterError, match="64-bit"):
        Budget(1e-12).laplace(("columns", "x"), np.array([0]), 2**20, Fraction(1))


def test_without_opendp_the_extra_is_named(monkeypatch):
    budget_module._opendp.cache_clear()
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)

    with pytest.raises(ParameterError, match=r"pip install 'shoal-privacy\[dp\]'"):
        Budget(1.0)
    budget_module._opendp.cache_clear()
