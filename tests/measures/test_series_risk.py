"""Several releases of overlapping people: the recount agrees with a slow twin, and counts what an intruder could do."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import GuaranteeError, LDiversity, ParameterError, SchemaError, audit_series, partition
from shoal.incremental import join
from shoal.measures.series_risk import OUT, Edition, Told, recount_series
from shoal.models import TCloseness, encode

K = 3


def edition(labels, values=None, shown=None):
    """A release of people by their classes; class numbers are what is shown, unless something else is."""
    labels = np.asarray(labels)
    people = np.flatnonzero(labels != OUT)
    classes = np.unique(labels[people], return_inverse=True)[1]
    shown = labels if shown is None else np.asarray(shown)
    columns = {}
    if values is not None:
        mine = np.asarray(values)[people]
        codes = encode(pa.array(mine), ordered=False)
        columns["diagnosis"] = Told(codes, codes, mine.astype(np.uint64))
    return Edition(people, classes, {"age": shown[people].astype(np.uint64)}, columns)


def by_hand(releases, values, model):
    """Groups, subtraction and common values, by the definitions alone."""
    n = len(releases[0])
    history = [tuple(labels[i] for labels in releases) for i in range(n)]
    size = [history.count(history[i]) for i in range(n)]
    cells = [{c: {i for i in range(n) if labels[i] == c} for c in set(labels) - {OUT}} for labels in releases]
    computed = set()
    for one, other in combinations(range(len(releases)), 2):
        for a in cells[one].values():
            for b in cells[other].values():
                if a & b and 0 < len(a ^ b) < K:
                    computed |= a ^ b
        for mine, theirs in ((one, other), (other, one)):
            for b in cells[theirs].values():
                held = set().union(*(a for a in cells[mine].values() if a <= b))
                if held and 0 < len(b - held) < K:
                    computed |= b - held
    common, failing = [], []
    for i in range(n):
        at = [t for t in range(len(releases)) if releases[t][i] != OUT]
        supports = [{values[t][j] for j in cells[t][releases[t][i]]} for t in at]
        common.append(len(set.intersection(*supports)) if at else 0)
        group = [j for j in range(n) if history[j] == history[i]]
        few = any(len({values[t][j] for j in group}) < model.l for t in at)
        failing.append(few or (len(at) > 1 and common[i] < model.l))
    return size, computed, common, failing


waves = st.integers(2, 3).flatmap(
    lambda t: st.integers(1, 14).flatmap(
        lambda n: st.tuples(
            st.lists(st.lists(st.integers(-1, 3), min_size=n, max_size=n), min_size=t, max_size=t),
            st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), min_size=t, max_size=t),
        )
    )
)


@settings(max_examples=200)
@given(waves)
def test_the_recount_agrees_with_its_definition(given):
    releases, values = given
    in_some = [any(labels[i] != OUT for labels in releases) for i in range(len(releases[0]))]
    if not all(in_some):  # nobody knows of people who are in no release
        releases = [[c for c, kept in zip(labels, in_some, strict=True) if kept] for labels in releases]
        values = [[v for v, kept in zip(row, in_some, strict=True) if kept] for row in values]
    if not releases[0] or any(set(labels) <= {OUT} for labels in releases):
        return
    model = LDiversity("diagnosis", l=2)
    size, computed, common, failing = by_hand(releases, values, model)
    found = recount_series([edition(*both) for both in zip(releases, values, strict=True)], K, [model])
    for side, present in ((found.present, True), (found.left, False)):
        mine = [i for i in range(len(size)) if (releases[-1][i] != OUT) == present]

        assert side.n_people == len(mine)
        assert side.n_below == sum(size[i] < K for i in mine)
        assert side.n_alone == sum(size[i] == 1 for i in mine)
        assert side.n_failing[str(model)] == sum(failing[i] for i in mine)
        several = [i for i in mine if sum(labels[i] != OUT for labels in releases) > 1]
        assert side.n_determined["diagnosis"] == sum(common[i] == 1 for i in several)
        if all(np.bincount(np.array(labels)[np.array(labels) != OUT]).min(initial=K) >= K for labels in releases):
            assert side.n_computed == len(computed & set(mine))


def test_the_same_release_twice_tells_nothing_new():
    X = np.random.default_rng(0).normal(size=(200, 3))
    cells = partition(X, 5, "mdav")
    found = recount_series([edition(cells), edition(cells)], 5)

    assert found.holds
    assert found.present.smallest == 5


def test_a_newcomer_to_an_old_cell_is_computed_from_the_difference_of_sums():
    X = np.random.default_rng(1).normal(size=(101, 3))
    before = np.append(partition(X[:100], 5, "mdav"), OUT)
    after = join(X, before[:100], 5, "nearest")
    cell = after[100]
    members = np.flatnonzero(before == cell)
    # What is published: size and mean of the cell, twice.
    computed = X[after == cell].mean(axis=0) * (len(members) + 1) - X[members].mean(axis=0) * len(members)
    found = recount_series([edition(before), edition(after, shown=after + 1000)], 5)

    assert (found.present.n_computed, found.present.n_alone) == (1, 1)
    np.testing.assert_allclose(computed, X[100])
    with pytest.raises(GuaranteeError, match="Nothing was released"):
        found.require()


def test_values_that_are_repeated_leave_nothing_to_subtract():
    before, after = [0, 0, 0, 0, 1, 1, 1], [0, 0, 0, OUT, 1, 1, 1]

    assert recount_series([edition(before), edition(after)], K).left.n_computed == 0
    assert recount_series([edition(before), edition(after, shown=[9] * 7)], K).left.n_computed == 1
    listed = recount_series([edition(before, [0, 1] * 3 + [0]), edition(after, [0, 1] * 3 + [0])], K)
    assert listed.left.n_computed == 1  # by the list of diagnoses
    assert not listed.holds
    listed.require(of_those_who_left=False)


def test_newcomers_in_cells_of_their_own_tell_nothing():
    X = np.random.default_rng(1).normal(size=(120, 3))
    before = np.append(partition(X[:100], 5, "mdav"), [OUT] * 20)

    assert recount_series([edition(before), edition(join(X, before[:100], 5, "two-step"))], 5).holds


def test_fresh_cells_leave_many_alone():
    X = np.random.default_rng(2).normal(size=(1_000, 8))
    before, after = np.full(1_000, OUT), np.full(1_000, OUT)
    before[:900], after[100:] = partition(X[:900], 5, "mdav"), partition(X[100:], 5, "mdav")

    assert recount_series([edition(before), edition(after)], 5).present.n_below > 300


def test_a_group_is_compared_with_the_whole_release_by_t_closeness():
    before, after = [0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 1, 1]
    values = [0, 0, 0, 1, 1, 1]
    found = recount_series([edition(before, values), edition(after, values)], K, [TCloseness("diagnosis", t=0.4)])

    assert list(found.present.n_failing.values()) == [6]
    assert recount_series([edition(before, values)] * 2, K, [TCloseness("diagnosis", t=0.4)]).holds


def release(ids, ages, **others):
    return pa.table({"id": ids, "age": ages, **others})


def test_files_are_counted_whatever_their_order_and_the_type_of_their_keys():
    first = release([1, 2, 3, 4, 5, 6], [30.0, 30.0, 30.0, 50.0, 50.0, 50.0])
    second = release(["6", "5", "4", "3 ", "2", "1"], [50, 50, 50, 30, 30, 30])
    asked = {"key": "id", "quasi_identifiers": "age", "k": 3}

    assert audit_series([first, second], **asked).holds
    assert not audit_series([first, second.slice(0, 5)], **asked).holds
    assert audit_series([first, second.slice(0, 3)], **asked).left.smallest == 3


@pytest.mark.parametrize(
    ("second", "error", "words"),
    [
        (release([7, 8], [1, 1]), ParameterError, "Nobody is in two"),
        (release([1, 1], [1, 1]), SchemaError, "keys repeat"),
        (release([1, None], [1, 1]), SchemaError, "missing or blank in 1 records"),
        (pa.table({"age": [1, 1]}), SchemaError, "no column 'id'"),
        (pa.table({"id": [1, 2]}), SchemaError, "no column 'age'"),
        (release([1, 2], [1, 1]).slice(0, 0), ParameterError, "no records"),
    ],
)
def test_releases_that_cannot_be_compared_are_refused(second, error, words):
    with pytest.raises(error, match=words):
        audit_series([release([1, 2], [1, 1]), second], key="id", quasi_identifiers="age", k=2)


def test_one_release_is_not_a_series():
    with pytest.raises(ParameterError, match="at least two"):
        audit_series([release([1, 2], [1, 1])], key="id", quasi_identifiers="age", k=2)


def test_new_values_of_few_people_of_a_class_are_computed():
    def of(shown, own):
        return edition([0] * 5, shown=shown)._replace(own={"age": np.array(own, dtype=np.uint64)})

    first = of([7] * 5, [1, 2, 3, 4, 5])

    assert recount_series([first, of([8] * 5, [9, 9, 3, 4, 5])], K).present.n_computed == 2
    assert recount_series([first, of([7] * 5, [9, 9, 3, 4, 5])], K).present.n_computed == 0
    assert recount_series([first, of([8] * 5, [9, 9, 9, 4, 5])], K).present.n_computed == 0
