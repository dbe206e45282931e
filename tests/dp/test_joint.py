from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import neighbours

from shoal import ParameterError, SchemaError
from shoal.dp import joint
from shoal.dp.declared import GRID, Nominal
from shoal.dp.joint import DEEPEST, balance, best_depth, cell_counts, centred_sums

RNG = np.random.default_rng(0)
LEVEL = RNG.uniform(0, 1, 2000)
PEOPLE = pa.table(
    {"age": 20 + 60 * LEVEL, "pay": 1000 * LEVEL, "sex": np.where(LEVEL < 0.5, "f", "m"), "name": ["x"] * 2000}
)
PUBLIC = {"bounds": {"age": (0, 120), "pay": (0, 1000)}, "categories": {"sex": ["f", "m"]}, "identifiers": ["name"]}


def test_one_record_changes_the_balance_of_one_cell_by_two_or_of_two_cells_by_one():
    candidates = np.arange(-1, 5)
    for middle in range(4):
        for table, other, _ in neighbours(4, (0, 1, 3)):
            moves = [
                np.abs(balance(table[side(table)], candidates) - balance(other[side(other)], candidates)).max()
                for side in (lambda scores, m=middle: scores < m, lambda scores, m=middle: scores >= m)
            ]
            assert tuple(moves) in {(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2)}


def test_one_record_changes_the_sums_of_all_cells_by_the_grid_at_most():
    for table, other, _ in neighbours(3, (0, GRID // 2, GRID)):
        for labels in product((0, 1, 2), repeat=3):
            for place, cell in product(range(3), repeat=2):
                # The record that is replaced may move to any cell; all others stay in theirs.
                if (np.flatnonzero(table != other) == place).all():
                    moved = np.array(labels)
                    moved[place] = cell
                    sums = [centred_sums(table, np.array(labels), 3), centred_sums(other, moved, 3)]
                    assert np.abs(sums[0] - sums[1]).sum() <= GRID


def test_one_record_changes_the_counts_of_all_cells_by_two_at_most():
    column = Nominal("x", pa.array(["a"]))
    for table, other, _ in neighbours(3, (0, 1)):
        for place, cell in product(range(3), range(2)):
            if (np.flatnonzero(table != other) == place).all():
                labels = np.array([0, 1, 0])
                moved = labels.copy()
                moved[place] = cell
                counts = [cell_counts(table, labels, 2, column), cell_counts(other, moved, 2, column)]
                assert np.abs(counts[0] - counts[1]).sum() <= 2


def test_the_release_has_as_many_records_and_spends_no_more_than_epsilon():
    release = joint(PEOPLE, 1.0, **PUBLIC)

    assert release.table.num_rows == 2000
    assert release.table.column_names == ["age", "pay", "sex"]
    assert 0.99 < release.total_spent <= 1.0


def test_with_much_epsilon_the_relation_between_columns_stays():
    release = joint(PEOPLE, 1e5, **PUBLIC, depth=4)
    age, pay = (np.asarray(release.table[name]) for name in ("age", "pay"))

    assert np.corrcoef(age, pay)[0, 1] > 0.99
    women = np.asarray(release.table["sex"]) == "f"
    assert pay[women].mean() < pay[~women].mean() - 300


def test_few_kinds_of_records_are_published():
    release = joint(PEOPLE, 10.0, **PUBLIC, depth=3)

    assert len(set(release.table["age"].to_pylist())) <= 8


def test_without_a_cut_nothing_is_spent_on_cuts():
    release = joint(PEOPLE, 1.0, **PUBLIC, depth=0)

    assert set(release.spent["columns"]) == {"age", "pay", "sex"}
    assert release.spent["cells"] == {}


def test_columns_named_like_steps_are_paid_for_beside_them():
    names = ["sizes", "cuts of level 1"]
    release = joint(PEOPLE.select(["age", "pay"]).rename_columns(names), 1.0, dict.fromkeys(names, (0, 1000)), depth=1)

    assert set(release.spent["columns"]) == set(names)
    assert set(release.spent["cells"]) == set(names)
    assert release.manifest["spent"] == release.spent
    assert 0.99 < release.total_spent <= 1.0


@given(st.integers(1, 10**9), st.floats(1e-9, 1e9), st.integers(1, 1000))
def test_the_depth_needs_only_what_is_public(n, epsilon, n_columns):
    assert 0 <= best_depth(n, epsilon, n_columns) <= DEEPEST


@pytest.mark.parametrize("depth", [-1, 13, 1.5, True])
def test_a_depth_that_cannot_be_is_refused(depth):
    with pytest.raises(ParameterError, match="depth"):
        joint(PEOPLE, 1.0, **PUBLIC, depth=depth)


def test_without_numbers_there_is_no_order():
    with pytest.raises(SchemaError, match="Use marginals"):
        joint(PEOPLE, 1.0, categories={"sex": ["f", "m"]}, identifiers=["name", "age", "pay"])
