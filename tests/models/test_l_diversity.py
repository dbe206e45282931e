"""l-diversity and its kin: counted as defined, mended at a low loss, refused where impossible."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_models as naive
from model_cases import as_codes, columns_in_cells, guarded_problems
from shoal import GuaranteeError, ParameterError, kernels, partition
from shoal.constraints.enforce import enforce
from shoal.measures import loss
from shoal.models import MODELS, AlphaK, BetaLikeness, DeltaDisclosure, LDiversity, PSensitive, TCloseness, measure

MODELS_AND_TWINS = [
    (LDiversity("c", l=2), lambda codes, cell, n: naive.is_distinct(cell, 2)),
    (LDiversity("c", l=3), lambda codes, cell, n: naive.is_distinct(cell, 3)),
    (LDiversity("c", l=2, kind="entropy"), lambda codes, cell, n: naive.is_entropic(cell, 2)),
    (LDiversity("c", l=3, kind="entropy"), lambda codes, cell, n: naive.is_entropic(cell, 3)),
    (LDiversity("c", l=2, kind="recursive", c=1.5), lambda codes, cell, n: naive.is_recursive(cell, 2, 1.5)),
    (LDiversity("c", l=3, kind="recursive", c=0.7), lambda codes, cell, n: naive.is_recursive(cell, 3, 0.7)),
    (PSensitive("c", p=2), lambda codes, cell, n: naive.is_distinct(cell, 2)),
    (DeltaDisclosure("c", delta=0.9), lambda codes, cell, n: naive.is_delta_private(codes, cell, n, 0.9)),
    (AlphaK("c", alpha=0.5), lambda codes, cell, n: naive.is_alpha_rare(cell, 0.5)),
    (AlphaK("c", alpha=0.34), lambda codes, cell, n: naive.is_alpha_rare(cell, 0.34)),
    (BetaLikeness("c", beta=0.5), lambda codes, cell, n: naive.is_beta_like(codes, cell, n, 0.5)),
    (
        BetaLikeness("c", beta=1.5, kind="enhanced"),
        lambda codes, cell, n: naive.is_beta_like(codes, cell, n, 1.5, "enhanced"),
    ),
]


@pytest.mark.parametrize(
    ("model", "keeps"), MODELS_AND_TWINS, ids=lambda item: "" if callable(item) else str(item)[:50]
)
@given(case=columns_in_cells(n_most=40))
def test_recount_and_veto_are_the_definition(model, keeps, case):
    column, labels = case
    n_cells = int(labels.max()) + 1
    vetoes = kernels.Guarantees()
    model.guard(vetoes, column, np.bincount(column.codes))
    expected = [keeps(column.codes, list(column.codes[labels == c]), column.n_values) for c in range(n_cells)]

    assert (vetoes.excess(labels, n_cells) == 0).tolist() == expected
    assert model.measure(labels, column).n_failing == n_cells - sum(expected)


@pytest.mark.parametrize(
    ("model", "keeps"), MODELS_AND_TWINS, ids=lambda item: "" if callable(item) else str(item)[:50]
)
@given(problem=guarded_problems())
def test_a_model_is_kept_or_refused(model, keeps, problem):
    X, k, column = problem
    possible = model.measure(np.zeros(len(X), dtype=np.int64), column).holds
    if not possible:
        with pytest.raises(GuaranteeError, match=f"{len(X)} records"):
            enforce(X, None, k, [(model, *column)], seed=1)
        return
    labels = enforce(X, None, k, [(model, *column)], seed=1)

    assert np.bincount(labels).min() >= k
    assert model.measure(labels, column).holds


def test_one_swap_is_preferred_to_a_merger():
    # Two tight groups; the second has one value only.
    X = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    column = as_codes([0, 1, 0, 2, 2, 2])
    labels = enforce(X, np.array([0, 0, 0, 1, 1, 1]), 3, [(LDiversity("c", l=2), *column)])

    assert labels.max() == 1


def test_a_few_homogeneous_cells_cost_little_to_mend():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    column = as_codes(np.where((X[:, 0] > 1) & (rng.random(600) < 0.9), 9, rng.integers(0, 9, 600)))
    start = partition(X, 5, "auto", 1)
    model = LDiversity("c", l=3)
    labels = enforce(X, start, 5, [(model, *column)], seed=1)

    assert not model.measure(start, column).holds
    assert model.measure(labels, column).holds
    assert loss(X, labels).sse < 1.4 * loss(X, start).sse


def test_diversity_and_closeness_go_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    salary, diagnosis = as_codes(X[:, 0].round(1)), as_codes(rng.integers(0, 6, 300), ordered=False)
    models = [(LDiversity("diagnosis", l=3, kind="entropy"), *diagnosis), (TCloseness("salary", t=0.2), *salary)]
    labels = enforce(X, None, 5, models, seed=1)

    assert all(measure(model, labels, *column[:3]).holds for model, *column in models)


def test_too_few_values_are_counted_and_not_named():
    with pytest.raises(GuaranteeError, match="have 2 different values in column 'c'") as raised:
        enforce(np.zeros((9, 1)), None, 3, [(LDiversity("c", l=3), *as_codes([70001, 70002, 70002] * 3))])

    assert "7000" not in str(raised.value)


def test_too_little_entropy_is_said():
    with pytest.raises(GuaranteeError, match=r"entropy of 1\.\d+ equally frequent values"):
        enforce(np.zeros((20, 1)), None, 3, [(LDiversity("c", l=2, kind="entropy"), *as_codes([0] * 19 + [1]))])


def test_every_model_is_registered_under_its_name():
    assert all(model.name == name for name, model in MODELS.items())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: LDiversity("c", l=1), "l must be"),
        (lambda: LDiversity("c", l=2.5), "l must be"),
        (lambda: LDiversity("c", l=2, kind="positive"), "kind"),
        (lambda: LDiversity("c", l=2, c=1.0), "recursive"),
        (lambda: LDiversity("c", l=2, kind="recursive"), "recursive"),
        (lambda: LDiversity("c", l=2, kind="recursive", c=0), "c must be"),
        (lambda: PSensitive("c", p=1), "p must be"),
        (lambda: DeltaDisclosure("c", delta=0), "delta must be"),
        (lambda: AlphaK("c", alpha=1), "alpha must be"),
        (lambda: BetaLikeness("c", beta=0), "beta must be"),
        (lambda: BetaLikeness("c", beta=1, kind="better"), "kind must be one of basic, enhanced"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(make, said):
    with pytest.raises(ParameterError, match=said):
        make()


@given(cells=st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_equally_frequent_values_reach_exactly_their_number(cells):
    # The entropy of l equally frequent values is log(l), whatever floating point makes of it.
    l = len(cells) + 1  # noqa: E741
    codes = np.repeat(np.arange(l), cells[0])
    model = LDiversity("c", l=l, kind="entropy")

    assert model.measure(np.zeros(len(codes), dtype=np.int64), as_codes(codes)).holds
