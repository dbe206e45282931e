"""Where several records belong to one person, each person counts once for each of their values in a class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_models as naive
from model_cases import columns_in_cells
from shoal import AlphaK, BetaLikeness, DeltaDisclosure, LDiversity, PSensitive, TCloseness, kernels
from shoal.models import Codes, ModelOnColumn
from shoal.models.model_on_column import excess_of, vetoes_of


def values_of_persons(column, records):
    """Return the values of some records, each person's values once."""
    pairs = {(int(column.subjects[i]), int(column.codes[i])) for i in records}
    return [value for _, value in pairs]


def keeps(model, column, cell):
    """Say whether a cell keeps a model, by the definition of the model on the values of persons."""
    table, own = values_of_persons(column, range(len(column.codes))), values_of_persons(column, cell)
    if isinstance(model, TCloseness):
        distance = naive.ordered_distance if column.ordered else naive.nominal_distance
        return distance(table, own, column.n_values) <= naive.Fraction(str(model.t))
    if isinstance(model, DeltaDisclosure):
        return naive.is_delta_private(table, own, column.n_values, model.delta)
    if isinstance(model, AlphaK):
        return naive.is_alpha_rare(own, model.alpha)
    if isinstance(model, BetaLikeness):
        return naive.is_beta_like(table, own, column.n_values, model.beta, model.kind)
    if isinstance(model, PSensitive):
        return naive.is_distinct(own, model.p)
    if model.kind == "recursive":
        return naive.is_recursive(own, model.l, model.c)
    return (naive.is_distinct if model.kind == "distinct" else naive.is_entropic)(own, model.l)


MODELS = [
    TCloseness("c", t=0.2),
    LDiversity("c", l=2),
    LDiversity("c", l=2, kind="entropy"),
    LDiversity("c", l=2, kind="recursive", c=2.0),
    PSensitive("c", p=2),
    DeltaDisclosure("c", delta=0.7),
    AlphaK("c", alpha=0.6),
    BetaLikeness("c", beta=0.4),
    BetaLikeness("c", beta=2.0, kind="enhanced"),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name} {getattr(model, 'kind', '')}".strip())
@given(problem=columns_in_cells(n_most=30), n_persons=st.integers(1, 12), seed=st.integers(0, 2**32))
def test_recount_and_veto_equal_the_definition_on_the_values_of_persons(model, problem, n_persons, seed):
    column, labels = problem
    subjects = np.random.default_rng(seed).integers(0, n_persons, len(labels))
    column = column._replace(subjects=np.unique(subjects, return_inverse=True)[1])
    defined = [keeps(model, column, np.flatnonzero(labels == cell)) for cell in range(labels.max() + 1)]
    found = model.measure(labels, column)

    assert found.n_failing == len(defined) - sum(defined)
    assert (excess_of(vetoes_of([ModelOnColumn(model, *column)]), labels) == 0).tolist() == defined


@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.name} {getattr(model, 'kind', '')}".strip())
@given(problem=columns_in_cells(n_most=30))
def test_persons_of_one_record_each_count_as_records_do(model, problem):
    column, labels = problem
    alone = column._replace(subjects=np.arange(len(labels))[::-1].copy())

    assert model.measure(labels, alone) == model.measure(labels, column)


def test_a_person_counts_once_for_each_value_in_each_class():
    column = Codes(np.array([0, 0, 1, 0, 0]), 2, False, np.array([0, 0, 0, 1, 0]))
    classes, codes = column.counted_once(np.array([0, 0, 0, 0, 1]))

    assert sorted(zip(classes.tolist(), codes.tolist(), strict=True)) == [(0, 0), (0, 0), (0, 1), (1, 0)]
    assert column.counts().tolist() == [2, 1]


@pytest.mark.parametrize(
    ("pairs", "values"),
    [
        ([0, 1], [0, 1, 1]),
        ([0, 1, 3], [0, 1, 1]),
        ([0, 1, -1], [0, 1, 1]),
        ([0, 1, 2], [0, 1, 2]),
        ([0, 1, 2], [1, 0, 1]),
    ],
)
def test_pairs_that_do_not_fit_the_records_are_refused_by_the_kernel(pairs, values):
    vetoes = kernels.Guarantees()
    with pytest.raises(ValueError, match="no guarantee"):
        vetoes.persons_once(np.array([0]), np.array([0]))
    LDiversity("c", l=2, kind="entropy").guard(vetoes, Codes(np.array([0, 1, 1]), 2, False), np.array([1, 2]))
    with pytest.raises(ValueError, match=r"out of range|order|length|records"):
        vetoes.persons_once(np.array(pairs), np.array(values))
