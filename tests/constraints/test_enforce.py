"""Enforce: several models at once, many strata, subjects; near the best there is, and nothing merged without need."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_models as naive
from model_cases import as_codes
from shoal import GuaranteeError, ParameterError, kernels, partition
from shoal.constraints.enforce import enforce
from shoal.constraints.guarded_refine import guarded_refine
from shoal.measures import loss
from shoal.models import LDiversity, TCloseness, measure

TINY = {
    "t and t": lambda a, b: [(TCloseness("a", t=0.3), *a), (TCloseness("b", t=0.3), *b)],
    "t and l": lambda a, b: [(TCloseness("a", t=0.3), *a), (LDiversity("b", l=2), *b)],
    "l and l": lambda a, b: [(LDiversity("a", l=2), *a), (LDiversity("b", l=2), *b)],
    "t": lambda a, b: [(TCloseness("a", t=0.25), *a)],
    "entropy": lambda a, b: [(LDiversity("b", l=2, kind="entropy"), *b)],
}


@st.composite
def tiny_problems(draw, n_most=9):
    """Return records that can be gone through in all partitions, and models of two of their columns."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(4, n_most))
    X = rng.normal(size=(n, draw(st.integers(1, 2))))
    first = as_codes((X[:, 0] + rng.normal(size=n)).round(draw(st.integers(0, 1))), draw(st.booleans()))
    second = as_codes(np.where(rng.random(n) < 0.7, X[:, -1] > 0, rng.integers(0, 3, n)), ordered=False)
    return X, TINY[draw(st.sampled_from(sorted(TINY)))](first, second)


def keeper(models, n):
    """Return what says whether some records as one cell keep every model of a table."""

    def keeps(members):
        labels = np.ones(n, dtype=np.int64)
        labels[members] = 0
        return all(off[0] == 0 for off in (veto.excess(labels, 2) for veto in vetoes))

    vetoes = [kernels.Guarantees() for _ in models]
    for veto, (model, codes, n_values, ordered, *_) in zip(vetoes, models, strict=True):
        model.guard(veto, as_codes(codes, ordered), np.bincount(codes, minlength=n_values))
    return keeps


def enforced_or_none(X, k, models):
    try:
        return enforce(X, None, k, models, seed=1)
    except GuaranteeError:
        return None


@settings(max_examples=40)
@given(problem=tiny_problems())
def test_a_partition_is_found_whenever_there_is_one_and_is_near_the_best(problem):
    X, models = problem
    best = naive.best_partition(X, 2, keeper(models, len(X)))
    labels = enforced_or_none(X, 2, models)

    assert (labels is None) == np.isinf(best)
    if labels is not None:
        assert best - 1e-9 <= loss(X, labels).sse <= 2.5 * best + 1e-9


def test_on_average_almost_nothing_is_lost_against_the_best_of_all_partitions():
    ratios = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(9, 2))
        salary, diagnosis = as_codes(X[:, 0] + rng.normal(size=9)), as_codes(X[:, 1] > 0, ordered=False)
        models = [(TCloseness("salary", t=0.3), *salary), (LDiversity("diagnosis", l=2), *diagnosis)]
        labels = enforced_or_none(X, 2, models)
        if labels is not None:
            ratios.append(loss(X, labels).sse / naive.best_partition(X, 2, keeper(models, 9)))

    assert len(ratios) > 40
    assert np.mean(ratios) < 1.02


@settings(max_examples=40)
@given(problem=tiny_problems(n_most=14))
def test_no_cell_could_be_cut_in_two_that_keep_everything(problem):
    X, models = problem
    labels = enforced_or_none(X, 2, models)
    if labels is None:
        return
    keeps = keeper(models, len(X))

    assert not any(naive.can_be_cut(list(np.flatnonzero(labels == c)), 2, keeps) for c in range(labels.max() + 1))


def test_cells_that_can_be_mended_are_not_merged():
    # Two groups with one value each: every cell has to take as many from one as from the other, and pairs will do.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1)) + np.repeat([0.0, 5.0], 30)[:, None]
    diagnosis = as_codes(np.repeat([0, 1], 30), ordered=False)
    labels = enforce(X, None, 2, [(TCloseness("diagnosis", t=0.01), *diagnosis)], seed=1)

    assert np.bincount(labels).tolist() == [2] * 30


def test_thousands_of_strata_are_each_kept_and_those_without_need_left_alone():
    rng = np.random.default_rng(0)
    strata = np.repeat(np.arange(3_000), 12)
    X = rng.normal(size=(len(strata), 2))
    start = strata * 2 + np.tile(np.repeat([0, 1], 6), 3_000)
    column = as_codes(rng.integers(0, 7, len(strata)), ordered=False)
    model = LDiversity("c", l=3)
    labels = enforce(X, start, 4, [(model, *column)], strata=strata)
    failing = np.isin(start, np.flatnonzero(model.measure(start, column).values < 3))
    fine = ~np.isin(strata, strata[failing])

    assert 10 < failing.sum() < len(X) / 2
    assert model.measure(labels, column).holds
    assert np.unique(np.column_stack([labels, strata]), axis=0).shape[0] == labels.max() + 1
    assert np.unique(np.column_stack([labels, start])[fine], axis=0).shape[0] == len(np.unique(start[fine]))


def test_different_subjects_are_a_model_of_as_many_values_as_there_are_persons():
    rng = np.random.default_rng(0)
    persons = rng.permutation(20_000) // 2
    X = rng.normal(size=(10_000, 3))[persons] + 0.2 * rng.normal(size=(20_000, 3))
    start = partition(X, 5, "auto", 1)
    model = LDiversity("person", l=5)
    labels = enforce(X, start, 5, [(model, persons, 10_000, False)])

    assert not measure(model, start, persons, 10_000, ordered=False).holds
    assert measure(model, labels, persons, 10_000, ordered=False).holds
    assert loss(X, labels).sse < 1.2 * loss(X, start).sse


def test_a_step_that_breaks_a_model_is_refused_and_taken_without_it():
    X = np.array([[0.0], [9.0], [0.0], [9.0]])
    apart, together = np.array([0, 0, 1, 1]), [0, 1, 0, 1]
    veto = [(LDiversity("c", l=2), *as_codes([0, 1, 0, 1], ordered=False))]

    assert guarded_refine(X, apart, 2, []).tolist() == together
    assert guarded_refine(X, apart, 2, veto).tolist() == apart.tolist()


@given(seed=st.integers(0, 2**32), t=st.sampled_from([0.2, 0.4, 1.0]))
def test_refining_under_a_veto_keeps_the_model_and_never_raises_the_loss(seed, t):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 2))
    column = as_codes((X[:, 0] + rng.normal(size=120)).round(1))
    model = TCloseness("c", t=t)
    start = rng.permutation(120) // 20
    if not model.measure(start, column).holds:
        return
    refined = guarded_refine(X, start, 4, [(model, *column)])

    assert model.measure(refined, column).holds
    assert np.bincount(refined).min() >= 4
    assert loss(X, refined).sse <= loss(X, start).sse


def test_refining_is_the_same_for_any_number_of_threads():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4_000, 3))
    column = as_codes(rng.integers(0, 6, 4_000), ordered=False)
    start = rng.permutation(4_000) // 40
    models = [(TCloseness("c", t=0.3), *column)]
    ends = []
    for threads in (1, 3):
        with kernels.using(threads=threads):
            ends.append(guarded_refine(X, start, 5, models))

    np.testing.assert_array_equal(*ends)


@pytest.mark.parametrize(("n", "n_strata"), [(600, 1), (900, 6), (6_000, 1)])
def test_enforcing_is_the_same_for_any_number_of_threads(n, n_strata):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 2))
    models = [(TCloseness("c", t=0.25), *as_codes((X[:, 0] + rng.normal(size=n)).round(1), ordered=True))]
    ends = []
    for threads in (1, 2, 16):
        with kernels.using(threads=threads):
            ends.append(enforce(X, None, 5, models, seed=1, strata=np.arange(n) % n_strata))

    np.testing.assert_array_equal(ends[1], ends[0])
    np.testing.assert_array_equal(ends[2], ends[0])


def test_enforcing_changes_only_the_strata_that_violate_a_model():
    X = np.arange(16.0)[:, None]
    strata = np.repeat([0, 1], 8)
    column = as_codes([0, 1] * 4 + [0, 0, 1, 1] * 2)
    start = np.arange(16) // 2

    found = enforce(X, start, 2, [(LDiversity("c", l=2), *column)], strata=strata)

    np.testing.assert_array_equal(found[:8], start[:8])
    assert np.bincount(found).min() >= 2
    assert not set(found[:8]) & set(found[8:])


def test_enforcing_reports_progress_that_only_grows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 2))
    models = [(TCloseness("c", t=0.2), *as_codes(X[:, 0].round(1), ordered=True))]
    seen = []
    with kernels.using(2, progress=lambda done, total: seen.append(done / total)):
        enforce(X, np.arange(20_000) // 5, 5, models)

    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_refining_wants_a_partition_that_keeps_everything():
    X, column = np.arange(8.0)[:, None], as_codes([0, 0, 0, 0, 1, 1, 1, 1])
    models = [(LDiversity("c", l=2), *column)]

    with pytest.raises(GuaranteeError, match="2 of 2 cells of labels violate"):
        guarded_refine(X, np.repeat([0, 1], 4), 2, models)
    with pytest.raises(GuaranteeError, match="k=5"):
        guarded_refine(X, np.tile([0, 1], 4), 5, [])
    with pytest.raises(ParameterError, match="without gaps"):
        guarded_refine(X, np.tile([0, 2], 4), 2, [])


def test_refining_under_a_veto_refuses_codes_that_do_not_fit_the_records():
    X, labels = np.array([[1.0], [2.0], [8.0], [9.0]]), np.array([0, 0, 1, 1])
    for codes in (np.array([0, 1]), np.array([0, 1, 0, 7])):
        with pytest.raises(ParameterError, match="codes of column 'diagnosis'"):
            guarded_refine(X, labels, 2, [(LDiversity("diagnosis", l=2), codes, 2, False)])
