import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import DeltaDisclosure, LDiversity, TCloseness
from shoal.columns.equivalence import class_ids
from shoal.constraints.enforce import enforce
from shoal.constraints.joined_classes import joined_where_alike
from shoal.models import ModelOnColumn
from shoal.models.model_on_column import excess_of, vetoes_of


def rounded_means(X, strata):
    """Return what publishes the means of cells, rounded, beside their strata."""

    def published(labels):
        sizes = np.bincount(labels)
        means = np.column_stack([np.bincount(labels, column) / sizes for column in X.T]).round()
        return pa.table({"by": strata, **{str(j): means[labels, j] + 0.0 for j in range(X.shape[1])}})

    return published


def test_cells_published_alike_that_break_a_model_as_one_join_others():
    # In each of the first two cells one person has the value 0 and one has 1; those with 0 are the same person.
    X, strata = np.array([[1.0], [1.0], [1.0], [1.0], [2.0], [2.0]]), np.zeros(6, dtype=np.int64)
    model = LDiversity("c", l=2, kind="entropy")
    kept = [ModelOnColumn(model, np.array([0, 1, 0, 1, 0, 2]), 3, False, np.array([0, 1, 0, 2, 3, 4]))]
    labels = np.array([0, 0, 1, 1, 2, 2])
    assert not excess_of(vetoes_of(kept), labels).any()

    assert joined_where_alike(X, labels, strata, kept, rounded_means(X, strata)).tolist() == [0] * 6


@pytest.mark.parametrize(
    "model", [TCloseness("c", t=0.3), LDiversity("c", l=2, kind="entropy"), DeltaDisclosure("c", delta=2.0)]
)
@given(seed=st.integers(0, 2**32))
def test_classes_keep_every_model_with_persons_counted_once(model, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 60))
    X, strata = rng.integers(0, 4, (n, 2)).astype(float), np.sort(rng.integers(0, 2, n) // 2)
    codes = np.unique(rng.integers(0, 3, n), return_inverse=True)[1]
    subjects = np.unique(rng.integers(0, 12, n), return_inverse=True)[1]
    kept = [ModelOnColumn(model, codes, int(codes.max()) + 1, False, subjects)]
    if excess_of(vetoes_of(kept), strata).any():
        return
    labels = enforce(X, None, 2, kept, "mdav", strata=strata)
    found = joined_where_alike(X, labels, strata, kept, rounded_means(X, strata))

    assert model.measure(class_ids(rounded_means(X, strata)(found)), kept[0].column).holds
    assert len(np.unique(found * n + labels)) == len(np.unique(labels))
