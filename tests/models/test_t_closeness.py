"""t-closeness: the distance is equation 1, the veto is exact, and what is enforced holds at a low loss."""

import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_models as naive
from model_cases import as_codes, columns_in_cells, guarded_problems
from shoal import GuaranteeError, ParameterError, datasets, kernels, partition
from shoal.constraints.enforce import enforce
from shoal.measures import loss
from shoal.models import Codes, TCloseness, measure
from shoal.models.t_closeness import nominal_work, ordered_work
from strategies import RUNNABLE

distances = {True: (naive.ordered_distance, ordered_work), False: (naive.nominal_distance, nominal_work)}


def unit(X):
    return np.ascontiguousarray((X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)))


def perfectly_correlated(n):
    """PCD: one quasi-identifier, equal to the confidential column."""
    return np.arange(n)[:, None] / (n - 1), Codes(np.arange(n), n, True)


def moderately_correlated():
    """MCD: TAXINC and POTHVAL of Census, with FEDTAX confidential."""
    data = datasets.census()
    columns = list(data.columns)
    X = unit(data.X[:, [columns.index("TAXINC"), columns.index("POTHVAL")]])
    return X, as_codes(data.X[:, columns.index("FEDTAX")])


@given(case=columns_in_cells())
def test_the_recount_is_equation_one_in_every_class(case):
    column, labels = case
    naive_distance, work = distances[column.ordered]
    found = work(labels, column.codes, column.counts())
    expected = [
        naive_distance(column.codes, column.codes[labels == c], column.n_values) for c in range(labels.max() + 1)
    ]

    assert [Fraction(w, a) if a else 0 for w, a in zip(*found, strict=True)] == expected


def test_the_recount_needs_more_than_64_bits_for_large_tables_and_has_them():
    rng = np.random.default_rng(0)
    codes = rng.permutation(2_200_000)
    work, whole = ordered_work(np.zeros(len(codes), dtype=np.int64), codes, np.bincount(codes))

    assert (work, whole) == ([0], [len(codes) ** 2 * (len(codes) - 1)])


@given(case=columns_in_cells(), t=st.sampled_from(["0.05", "0.1", "0.25", "0.3", "0.5", "1"]))
def test_the_veto_is_the_exact_comparison_with_t(case, t):
    column, labels = case
    naive_distance, _ = distances[column.ordered]
    vetoes = kernels.Guarantees()
    TCloseness("c", t=float(t)).guard(vetoes, column, np.bincount(column.codes))
    excess = vetoes.excess(labels, int(labels.max()) + 1)

    for cell, off in enumerate(excess):
        distance = naive_distance(column.codes, column.codes[labels == cell], column.n_values)
        assert (off == 0) == (distance <= Fraction(t))


def test_a_distance_of_exactly_three_tenths_keeps_t_of_0_3():
    # The float 0.3 is a little less than three tenths.
    codes = np.array([0] * 7 + [1] * 3 + [0] * 10, dtype=np.int64)
    labels = np.array([0] * 10 + [1] * 10)
    found = measure(TCloseness("c", t=0.15), labels, codes, 2, True)

    assert (found.value, found.holds) == (0.15, True)


@given(problem=guarded_problems(), t=st.sampled_from([0.02, 0.1, 0.3]))
def test_whatever_is_enforced_is_kept_with_cells_of_at_least_k(problem, t):
    X, k, column = problem
    model = TCloseness("c", t=t)
    labels = enforce(X, None, k, [(model, *column)], seed=1)

    assert np.bincount(labels).min() >= k
    assert model.measure(labels, column).holds


@pytest.mark.parametrize(("t", "most"), [(0.1, 0.0745), (0.05, 0.0813)])
@pytest.mark.parametrize("n", [1000, 1001])
def test_perfectly_correlated_data_reach_the_loss_of_the_prototype(n, t, most):
    X, column = perfectly_correlated(n)
    model = TCloseness("c", t=t)
    labels = enforce(X, None, 3, [(model, *column)], seed=1)

    assert model.measure(labels, column).holds
    assert loss(X, labels).mse <= most


def test_moderately_correlated_data_lose_18_percent_less_than_by_the_papers_procedure():
    X, column = moderately_correlated()
    model = TCloseness("FEDTAX", t=0.1)
    labels = enforce(X, None, 3, [(model, *column)], seed=1)

    assert model.measure(labels, column).holds
    assert loss(X, labels).mse <= 0.0551


def test_cells_are_not_merged_without_need():
    X, column = moderately_correlated()
    labels = enforce(X, None, 3, [(TCloseness("FEDTAX", t=0.1), *column)], seed=1)

    # One of 25 records for each bucket of ten would be a waste.
    assert labels.max() + 1 >= len(X) // 25
    assert np.bincount(labels).max() <= 50


def test_a_partition_that_keeps_t_is_returned_as_it_is():
    X = np.random.default_rng(0).normal(size=(200, 2))
    column = as_codes(np.random.default_rng(1).integers(0, 2, 200))
    labels = partition(X, 20, "mdav")
    model = TCloseness("c", t=1.0)

    np.testing.assert_array_equal(enforce(X, labels, 20, [(model, *column)]), labels)


def test_several_columns_are_kept_at_once():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 2))
    first, second = as_codes((X[:, 0] + rng.normal(size=400)).round(1)), as_codes(X[:, 1] > 0.5, ordered=False)
    models = [(TCloseness("a", t=0.15), *first), (TCloseness("b", t=0.15), *second)]
    labels = enforce(X, None, 5, models, seed=1)

    assert labels.max() > 5
    for (model, *_), column in zip(models, (first, second), strict=True):
        assert model.measure(labels, column).holds


def test_thousands_of_records_go_the_fast_way_and_keep_t():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8_000, 3))
    column = as_codes((X[:, 0] + 0.5 * rng.normal(size=8_000)).round(2))
    model = TCloseness("c", t=0.1)
    labels = enforce(X, None, 5, [(model, *column)], seed=1)

    assert model.measure(labels, column).holds
    assert labels.max() + 1 >= 8_000 / 40


def test_the_same_seed_repeats_the_result():
    X, column = moderately_correlated()
    first, second = (enforce(X, None, 3, [(TCloseness("c", t=0.2), *column)], seed=5) for _ in range(2))

    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("simd", RUNNABLE)
def test_all_instruction_sets_take_the_same_steps(simd):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3_000, 4))
    column = as_codes((X[:, 0] + rng.normal(size=3_000)).round(1))
    vetoes = kernels.Guarantees()
    TCloseness("c", t=0.2).guard(vetoes, column, np.bincount(column.codes))
    start = partition(X, 5, "mdav")
    ends = []
    for loops in ("generic", simd):
        with kernels.using(threads=1, simd=loops):
            ends.append(kernels.guarded_search(X, start, 5, vetoes, kernels.Effort(3, 20, 0.0, at_any_cost=True)))

    np.testing.assert_array_equal(*ends)


def test_strata_unlike_the_table_are_refused_in_counts():
    X = np.random.default_rng(0).normal(size=(40, 1))
    column = as_codes(np.repeat([0, 1], 20))

    with pytest.raises(GuaranteeError, match=r"20 records of a stratum, .* t=0\.1 .* 'c'"):
        enforce(X, None, 3, [(TCloseness("c", t=0.1), *column)], strata=np.repeat([0, 1], 20))


def test_strata_like_the_table_are_kept_apart():
    rng = np.random.default_rng(0)
    X, strata = rng.normal(size=(200, 2)), np.repeat([0, 1], 100)
    column = as_codes(rng.integers(0, 5, 200))
    model = TCloseness("c", t=0.2)
    labels = enforce(X, None, 3, [(model, *column)], seed=1, strata=strata)

    assert model.measure(labels, column).holds
    assert set(labels[:100]) & set(labels[100:]) == set()


def test_a_constant_column_holds_and_the_note_says_what_that_means():
    found = measure(TCloseness("c", t=0.1), np.array([0, 0, 1, 1]), np.zeros(4, dtype=np.int64), 1, True)

    assert (found.value, found.holds) == (0.0, True)
    assert "has a single value" in found.note


def test_a_weight_below_the_bound_trades_t_for_loss_and_promises_nothing():
    X, column = moderately_correlated()
    free, bound = (
        enforce(X, None, 3, [(TCloseness("c", t=0.1, weight=weight), *column)], "mdav") for weight in (0, 400)
    )
    reached = [TCloseness("c", t=0.1, weight=1).measure(labels, column) for labels in (free, bound)]

    assert not reached[0].model.promised
    assert reached[1].value < reached[0].value
    assert loss(X, free).mse < loss(X, bound).mse


def test_two_models_with_a_weight_are_refused():
    X, column = perfectly_correlated(20)
    models = [(TCloseness(name, t=0.1, weight=1), *column) for name in "ab"]

    with pytest.raises(ParameterError, match="only one model can steer"):
        enforce(X, None, 2, models)


@pytest.mark.parametrize("t", [0, -0.1, 1.01, float("nan")])
def test_a_t_outside_of_0_to_1_is_refused(t):
    with pytest.raises(ParameterError, match="t must be"):
        TCloseness("c", t=t)


@pytest.mark.parametrize("weight", [-1, float("inf"), float("nan")])
def test_a_weight_that_is_none_is_refused(weight):
    with pytest.raises(ParameterError, match="weight"):
        TCloseness("c", t=0.1, weight=weight)


@pytest.mark.parametrize("codes", [np.zeros(3, dtype=np.int64), np.array([0, 1, 2, 5]), np.array([0, -1, 0, 0])])
def test_codes_that_do_not_fit_the_records_are_refused(codes):
    with pytest.raises(ParameterError, match="codes of column 'c'"):
        enforce(np.zeros((4, 1)), None, 2, [(TCloseness("c", t=0.1), codes, 3, True)])


def test_the_module_of_enforce_is_not_shadowed():
    assert sys.modules["shoal.constraints.enforce"].enforce is enforce
