import numpy as np
import pyarrow as pa
import pytest

import reference
from shoal import kernels
from shoal.columns.hierarchy import Hierarchy
from shoal.columns.schema import Column, ColumnSettings, Kind, Role
from shoal.space.ncp_weights import Categories, Numbers, Tree, ncp_column

JOBS = Hierarchy.of_rows(
    [
        ("nurse", "health", "*"),
        ("doctor", "health", "*"),
        ("cook", "food", "*"),
        ("baker", "food", "*"),
        ("judge", "law", "*"),
    ]
)


def column(kind, hierarchy=None, **settings):
    given = {"hierarchy": "jobs.csv"} if hierarchy else {}
    return Column("c", Role.QUASI, kind, pa.string(), ColumnSettings(**settings, **given), hierarchy=hierarchy)


def penalty(values, *about, **settings):
    return ncp_column(pa.chunked_array([pa.array(values)]), column(*about, **settings))


def penalties(found, labels):
    return found.ncp_of(np.array(labels), max(labels) + 1).tolist()


def test_a_number_counts_by_the_range_of_its_class():
    assert penalties(penalty([10, 20, 30, 50], Kind.NUMERIC), [0, 0, 1, 1]) == [0.25, 0.5]


def test_an_ordinal_value_counts_by_its_rank():
    found = penalty(["low", "high", "mid", "mid"], Kind.ORDINAL, order=("low", "mid", "high"))

    assert penalties(found, [0, 0, 1, 1]) == [1.0, 0.0]
    assert penalties(found, [0, 1, 0, 1]) == [0.5, 0.5]


def test_a_category_counts_by_the_number_of_different_ones():
    assert penalties(penalty(["a", "b", "c", "c"], Kind.NOMINAL), [0, 0, 0, 1]) == [1.0, 0.0]
    assert penalties(penalty(["a", "b", "c", "c"], Kind.NOMINAL), [0, 0, 1, 1]) == [0.5, 0.0]


def test_a_value_with_a_hierarchy_counts_by_the_leaves_below_the_ancestor():
    found = penalty(["nurse", "doctor", "cook", "judge"], Kind.NOMINAL, JOBS)

    assert penalties(found, [0, 0, 1, 2]) == [0.25, 0.0, 0.0]
    assert penalties(found, [0, 1, 0, 1]) == [1.0, 1.0]


def test_the_lowest_level_that_is_published_counts_even_for_equal_values():
    found = penalty(["nurse", "nurse", "judge", "judge"], Kind.NOMINAL, JOBS, level=1)

    assert penalties(found, [0, 0, 1, 1]) == [0.25, 0.0]


def test_a_column_counts_as_it_is_published():
    assert isinstance(penalty([1, 2], Kind.NUMERIC), Numbers)
    assert isinstance(penalty([1, 2], Kind.NUMERIC, aggregate="set"), Categories)
    assert isinstance(penalty(["cook", "judge"], Kind.NOMINAL, JOBS, aggregate="set"), Categories)
    assert isinstance(penalty(["cook", "judge"], Kind.NOMINAL, JOBS), Tree)


def test_missing_is_a_category_of_its_own_and_leaves_nothing_known_of_numbers_and_ancestors():
    assert penalties(penalty(["a", None, "b", None], Kind.NOMINAL), [0, 0, 1, 1]) == [0.5, 0.5]
    assert penalties(penalty([1, None, 1, 9, None, None], Kind.NUMERIC), [0, 0, 1, 1, 2, 2]) == [1.0, 1.0, 0.0]
    assert penalties(penalty(["cook", None, None, None], Kind.NOMINAL, JOBS), [0, 0, 1, 1]) == [1.0, 0.0]


def test_a_column_of_equal_or_missing_values_has_no_penalty():
    for values in ([7, 7, 7], [None, None, None]):
        found = penalty(pa.array(values, pa.int64()), Kind.NUMERIC)

        assert penalties(found, [0, 0, 0]) == [0.0]
        assert np.isfinite(found.encode()).all()
    assert penalties(penalty(["a", "a"], Kind.NOMINAL), [0, 0]) == [0.0]


def test_numbers_as_large_as_can_be_keep_their_ranges():
    assert penalties(penalty([-1.7e308, 1.7e308, 0.0, 0.0], Kind.NUMERIC), [0, 0, 1, 1]) == [1.0, 0.0]
    assert penalties(penalty([2**60, 2**60 + 1, 2**60 + 4], Kind.NUMERIC), [0, 0, 1]) == [0.25, 0.0]


@pytest.mark.parametrize("kind", ["numbers", "missing", "categories", "tree"])
def test_the_search_counts_the_same(kind):
    rng = np.random.default_rng(1)
    values = {
        "numbers": rng.normal(size=60),
        "missing": pa.array(rng.integers(0, 9, 60), mask=rng.random(60) < 0.2),
        "categories": rng.choice(list("abcdefg"), 60),
        "tree": rng.choice(JOBS.leaves, 60),
    }[kind]
    about = {"categories": (Kind.NOMINAL,), "tree": (Kind.NOMINAL, JOBS)}.get(kind, (Kind.NUMERIC,))
    found, labels = penalty(values, *about), rng.permutation(np.arange(60) // 4)
    table = kernels.NcpTable(60)
    found.add_to(table, np.arange(60))

    assert table.loss(labels) == pytest.approx(4 * sum(penalties(found, labels)))


def test_two_records_are_as_far_apart_as_their_penalty_says():
    numbers = penalty([0, 5, 10], Kind.NUMERIC, weight=2.0).encode()
    categories = penalty(list("abcd"), Kind.NOMINAL).encode()
    jobs = penalty(["nurse", "doctor", "cook"], Kind.NOMINAL, JOBS).encode()

    assert np.abs(np.diff(numbers[:, 0])).tolist() == [1.0, 1.0]
    assert reference.distances(categories, categories[0]) == pytest.approx([0, *[(1 / 3) ** 1.5] * 3])
    assert reference.distances(jobs, jobs[0]) == pytest.approx([0, 0.25**1.5, 1])
