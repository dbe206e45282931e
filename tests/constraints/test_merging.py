import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.constraints.merging import join_until_kept
from shoal.methods.cell_building import members_of
from shoal.models import LDiversity, ModelOnColumn


@st.composite
def poor_cells(draw):
    """Cells in strata, with a column that has at least l values in every stratum."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_values, n_strata = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    n = n_strata * draw(st.integers(2 * n_values, 30))
    strata = np.arange(n) % n_strata
    codes = rng.integers(0, n_values, n)
    codes[: n_strata * n_values] = np.repeat(np.arange(n_values), n_strata)
    labels = np.unique(strata * 100 + rng.integers(0, 8, n), return_inverse=True)[1]
    model = LDiversity("diagnosis", l=n_values)
    return rng.normal(size=(n, 2)), labels, strata, [ModelOnColumn(model, codes, n_values, ordered=False)]


@given(poor_cells())
def test_whole_cells_are_joined_within_strata_until_the_models_are_kept(problem):
    X, labels, strata, guarded = problem
    found = join_until_kept(X, labels, strata, guarded)

    assert guarded[0].model.measure(found, guarded[0].column).holds
    assert all(len(set(found[labels == cell])) == 1 for cell in set(labels))
    assert all(len(set(strata[found == cell])) == 1 for cell in set(found))


def test_cells_that_keep_the_models_are_left_alone():
    labels = np.array([0, 0, 1, 1])
    guarded = [ModelOnColumn(LDiversity("diagnosis", l=2), np.array([0, 1, 1, 0]), 2, ordered=False)]

    assert join_until_kept(np.zeros((4, 1)), labels, np.zeros(4, dtype=np.int64), guarded) is labels


def test_the_members_of_a_cell_are_in_record_order():
    assert [list(members) for members in members_of(np.array([1, 0, 1, 0]))] == [[1, 3], [0, 2]]
