import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import GuaranteeError, partition
from shoal.constraints.enforce import enforce
from shoal.constraints.merging import join_until_kept
from shoal.constraints.subjects import k_subjects
from shoal.measures.loss import loss


def with_enough_subjects(X, labels, strata, subjects, k):
    return enforce(X, labels, k, [k_subjects(subjects, strata, k)], strata=strata)


@st.composite
def repeated(draw):
    """Records of which several may belong to one subject, in one or more strata with enough subjects each."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    k = draw(st.integers(2, 5))
    strata, subjects = [], []
    for stratum in range(draw(st.integers(1, 3))):
        n_subjects = draw(st.integers(k, 3 * k))
        n = n_subjects + draw(st.integers(0, 60))
        strata += [stratum] * n
        subjects += [*range(n_subjects), *rng.integers(0, n_subjects, n - n_subjects)]
    subjects = np.unique(subjects, return_inverse=True)[1]
    X = rng.normal(size=(subjects.max() + 1, 2))[subjects] + draw(st.sampled_from([0.0, 0.1, 3.0])) * rng.normal(
        size=(len(subjects), 2)
    )
    strata = np.array(strata)
    labels = np.empty(len(X), dtype=np.int64)
    n_cells = 0
    for stratum in range(strata.max() + 1):
        own = strata == stratum
        labels[own] = partition(X[own], k, "mdav") + n_cells
        n_cells = labels[own].max() + 1
    return X, labels, strata, subjects, k


@given(repeated())
def test_every_cell_gets_k_subjects_of_one_stratum(problem):
    X, labels, strata, subjects, k = problem
    found = with_enough_subjects(X, labels, strata, subjects, k)

    assert sorted(set(found)) == list(range(found.max() + 1))
    for cell in range(found.max() + 1):
        assert len(set(subjects[found == cell])) >= k
        assert len(set(strata[found == cell])) == 1


def test_cells_that_have_enough_are_left_alone():
    X = np.random.default_rng(1).normal(size=(60, 2))
    labels = partition(X, 4, "mdav")
    found = with_enough_subjects(X, labels, np.zeros(60, dtype=int), np.arange(60), 4)

    assert np.array_equal(found, labels)


@pytest.mark.parametrize("apart", [0.0, 0.2])
def test_people_who_stay_where_they_are_do_not_end_in_a_few_cells(apart):
    rng = np.random.default_rng(2)
    subjects = np.repeat(np.arange(100), 8)
    X = rng.normal(size=(100, 2))[subjects] + apart * rng.normal(size=(800, 2))
    labels, strata = partition(X, 5, "mdav"), np.zeros(800, dtype=int)
    found = with_enough_subjects(X, labels, strata, subjects, 5)
    joined = join_until_kept(X, labels, strata, [k_subjects(subjects, strata, 5)])

    assert loss(X, found).il < min(0.5 * loss(X, joined).il, 0.1)


def test_too_few_subjects_in_a_stratum_are_refused():
    X = np.zeros((6, 1))
    strata, subjects = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 3, 3, 4])

    with pytest.raises(GuaranteeError, match="only 2 subjects in a stratum"):
        with_enough_subjects(X, strata, strata, subjects, 3)
