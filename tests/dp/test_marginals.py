import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import neighbours

from shoal import ParameterError
from shoal.dp import marginals
from shoal.dp.declared import Nominal
from shoal.dp.marginals import cell_size, cell_sizes, cell_sums
from shoal.dp.totals import ascending, to_total

PEOPLE = pa.table({"age": np.arange(1000) % 80 + 10, "sex": ["f", "m", "m", None] * 250})
PUBLIC = {"bounds": {"age": (0, 120)}, "categories": {"sex": ["f", "m"]}}


@pytest.mark.parametrize(("n", "k"), [(1, 1), (3, 1), (4, 2), (5, 2), (5, 3), (6, 4)])
def test_replacing_one_record_moves_the_sums_of_the_cells_by_no_more_than_the_record_moved(n, k):
    for table, other, moved in neighbours(n, (0, 1, 3)):
        assert np.abs(cell_sums(table, k) - cell_sums(other, k)).sum() <= moved


@given(st.integers(1, 500), st.data())
def test_cells_are_fixed_by_n_and_k_and_none_is_short(n, data):
    k = data.draw(st.integers(1, n))
    sizes = cell_sizes(n, k)

    assert sizes.sum() == n
    assert sizes.min() >= k


def test_one_record_changes_two_counts_by_one():
    column = Nominal("x", pa.array(["a", "b"]))
    for table, other, _ in neighbours(4, (0, 1, 2)):
        counts = [np.bincount(codes, minlength=column.n_codes) for codes in (table, other)]
        assert np.abs(counts[0] - counts[1]).sum() <= 2


@given(st.integers(1, 10**9), st.floats(1e-300, 1e6))
def test_k_needs_only_n_and_epsilon_and_is_possible(n, epsilon):
    assert 1 <= cell_size(n, epsilon) <= n


def test_the_release_has_the_records_columns_and_epsilon_that_were_asked_for():
    release = marginals(PEOPLE, 2.0, **PUBLIC, shares={"age": 3})

    assert release.table.num_rows == 1000
    assert release.table.column_names == ["age", "sex"]
    assert release.spent["columns"]["age"] == pytest.approx(1.5)
    assert release.spent["columns"]["sex"] == pytest.approx(0.5)


def test_values_stay_within_the_bounds_and_categories():
    release = marginals(PEOPLE, 0.01, **PUBLIC)

    assert min(release.table["age"].to_pylist()) >= 0
    assert max(release.table["age"].to_pylist()) <= 120
    assert set(release.table["sex"].to_pylist()) <= {"f", "m", None}


def test_with_much_epsilon_the_marginals_come_close():
    release = marginals(PEOPLE, 1e5, **PUBLIC)
    before, after = (np.sort(np.asarray(table["age"]).astype(float)) for table in (PEOPLE, release.table))

    assert np.abs(before - after).mean() < 1
    assert release.table["sex"].value_counts().to_pylist() != []
    assert sorted(count["counts"] for count in release.table["sex"].value_counts().to_pylist()) == [250, 250, 500]


def test_records_are_not_in_the_order_of_their_ranks():
    values = np.asarray(marginals(PEOPLE, 1e5, **PUBLIC).table["age"])

    assert abs(np.corrcoef(values, np.asarray(PEOPLE["age"]))[0, 1]) < 0.2
    assert (np.diff(values) < 0).any()


def test_a_frame_comes_back_as_it_went_in():
    release = marginals(PEOPLE.to_pandas(), 1.0, **PUBLIC)

    assert isinstance(release.table, pd.DataFrame)


@pytest.mark.parametrize(
    "settings",
    [{"k": 0}, {"k": 1001}, {"k": 2.5}, {"shares": {"name": 1}}, {"shares": {"age": 0}}, {"shares": {"age": -1}}],
)
def test_what_cannot_be_is_refused(settings):
    with pytest.raises(ParameterError):
        marginals(PEOPLE, 1.0, **PUBLIC, **settings)


def test_a_seed_is_not_taken():
    with pytest.raises(TypeError, match="seed"):
        marginals(PEOPLE, 1.0, **PUBLIC, seed=1)


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=8), st.integers(0, 50))
def test_noisy_counts_are_brought_to_their_total(noisy, total):
    counts = to_total(np.array(noisy), total)

    assert counts.sum() == total
    assert counts.min() >= 0


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8))
def test_the_nearest_ascending_numbers_ascend_and_keep_the_mean(values):
    found = ascending(np.array(values), np.ones(len(values)))

    assert (np.diff(found) >= -1e-12).all()
    assert found.mean() == pytest.approx(np.mean(values), abs=1e-9)
