from dataclasses import replace
from datetime import date
from importlib import import_module

import numpy as np
import pyarrow as pa
import pytest

from shoal.aggregate import Cells, aggregate
from shoal.columns.aggregates import AGGREGATES, default_aggregate
from shoal.columns.coarse import read_coarse
from shoal.columns.coarse.completed import with_coarse_values
from shoal.columns.coarse.exposure import n_exposed
from shoal.columns.hierarchy import hierarchy_of
from shoal.columns.schema import ColumnSettings, Kind, Roles, Schema

CELLS = Cells(np.array([0, 0, 0, 1, 1, 1]))


def published(values, cells=CELLS, weights=None, k=3, **settings):
    """Return what each cell publishes."""
    table = pa.table({"x": values})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)), {"x": ColumnSettings(**settings)})
    found = aggregate(table, with_coarse_values(schema, table, k), cells, weights)["x"].to_pylist()
    assert found[0] == found[1] == found[2]
    return [found[0], found[3]]


def test_every_kind_has_one_default_of_each_sort_and_every_entry_a_function():
    for entry in AGGREGATES.values():
        file, function = entry.publish.split(".")
        assert callable(getattr(import_module(f"shoal.aggregate.{file}"), function))
        assert {*entry.default_of, *entry.default_of_trees} <= set(entry.kinds) <= set(Kind)
    for kind in Kind:
        for true in (False, True):
            assert sum(kind in entry.default_of for entry in AGGREGATES.values() if entry.is_true == true) == 1
            assert AGGREGATES[default_aggregate(kind, true, has_tree=True)].is_true == true


def test_intervals_end_at_multiples_of_the_step():
    assert published([31, 32, 38, 40, 41, 45], aggregate="interval", step=5) == ["[30, 39]", "[40, 49]"]
    assert published([0.31, 0.32, 0.5, 0.7, 0.7, 0.7], aggregate="interval", step=0.1) == [
        "[0.20, 0.59]",  # two steps from the lowest one hold three records, one does not
        "[0.70, 0.79]",
    ]
    assert published([-7, -3, -1, 0, 1, 2], aggregate="interval", step=5) == ["[-10, -1]", "[0, 4]"]


def test_coded_extremes_leave_intervals_open():
    found = published([20, 20, 23, 70, 90, 90], aggregate="interval", step=10, top=90, bottom=20)

    assert found == ["(-inf, 49]", "[50, inf)"]  # two records beyond a code are too few for an end of their own
    assert published([20, 20, 20, 70, 90, 90], aggregate="interval", step=10, top=90, bottom=20)[0] == "(-inf, 20]"


def test_missing_values_are_part_of_what_is_said():
    ages = {"aggregate": "interval", "step": 5, "k": 2}
    assert published([31, None, 38, None, None, None], **ages) == ["[30, 39] or missing", None]
    assert published(["a", None, "b", None, None, None], aggregate="set") == ["{a, b, missing}", None]
    zips = {"aggregate": "ancestor", "hierarchy": "prefix:2", "k": 2}
    assert published(["43001", None, "43002", "50", None, "50"], **zips) == [
        "43* or missing",
        "50 or missing",
    ]


def test_sets_list_every_value_in_the_order_of_the_column():
    assert published(["b", "a", "b", "c", "c", "c"], aggregate="set") == ["{a, b}", "{c}"]
    assert published(["mid", "low", "mid", "high", "low", "mid"], aggregate="set", order=("low", "mid", "high")) == [
        "{low, mid}",
        "{low, mid, high}",
    ]
    assert published([2, 1, 2, 3, 3, 3], aggregate="set") == ["{1, 2}", "{3}"]
    assert published(["a, b", "{x}", "missing", '"', " ", ""], aggregate="set") == [
        '{"a, b", "missing", "{x}"}',
        '{"", " ", """"}',
    ]


def test_ancestors_are_as_low_as_the_cell_allows_and_not_below_the_level():
    zips = ["43001", "43001", "43002", "43001", "50001", "50002"]

    assert published(zips, aggregate="ancestor", hierarchy="prefix:2,4") == ["4300*", "*"]
    assert published(zips, aggregate="ancestor", hierarchy="prefix:2,4", level=2) == ["43***", "*"]
    assert published([17, 18, 19, 20, 20, 20], aggregate="ancestor", hierarchy="steps:5,10") == ["[15, 20)", "20"]


def test_periods_are_the_finest_that_hold_all_dates_or_the_one_asked_for():
    days = [date(2024, 5, 1), date(2024, 5, 31), date(2024, 5, 7), date(2019, 1, 1), date(2012, 1, 1), date(2015, 1, 1)]
    apart = [
        date(2024, 4, 1),
        date(2024, 5, 31),
        date(2024, 5, 7),
        date(2019, 1, 1),
        date(2022, 1, 1),
        date(2015, 1, 1),
    ]

    assert published(days, aggregate="period") == ["2024-05", "2010s"]
    assert published(apart, aggregate="period") == ["2024-Q2", "2015-Q1/2022-Q2"]
    assert published(apart, aggregate="period", precision="year") == ["2024", "2015/2023"]
    assert published(pa.array(days).cast(pa.timestamp("ns")), aggregate="period", precision="quarter") == [
        "2024-Q2",
        "2010-Q1/2019-Q4",
    ]


def test_an_ancestor_that_too_few_have_a_value_below_is_not_published():
    zips = ["43001", None, None, "43002", "43003", "50001"]

    assert published(zips, aggregate="ancestor", hierarchy="prefix:2", k=3) == ["43*** or missing", "*"]
    assert published(zips, aggregate="ancestor", hierarchy="prefix:2", k=4) == ["* or missing", "*"]


@pytest.mark.parametrize("precision", [None, "month", "quarter", "year", "decade"])
def test_k_people_have_a_date_in_the_period_at_which_a_range_ends(precision):
    rng = np.random.default_rng(7)
    days = [date(1901, 2, 3), *(date(1960 + i % 40, 1 + int(i) % 12, 5) for i in rng.integers(0, 480, 59))]
    cells, k = rng.permutation(60) // 5, 5
    settings = {} if precision is None else {"precision": precision}
    values = pa.chunked_array([days])
    table = pa.table({"x": values})
    schema = Schema.of(
        table.schema, Roles(quasi_identifiers=("x",)), {"x": ColumnSettings(aggregate="period", **settings)}
    )
    schema = with_coarse_values(schema, table, k)
    found = aggregate(table, schema, Cells(cells))["x"]
    ranges = read_coarse(found, "period")

    assert ranges.holds(values).all()
    assert n_exposed(found, schema["x"], values, k, None) == 0
    # Nobody is alone at the century's beginning: the first end holds at least k.
    months = np.array([day.year * 12 + day.month - 1 for day in days])
    for low in set(ranges.low):
        nearest = min((high for high in ranges.high if high >= low), default=np.inf)
        assert ((low <= months) & (months <= nearest)).sum() >= k


def naive_medoid(distances):
    return int(np.argmin(np.square(distances).sum(axis=1)))


def test_the_medoid_is_the_value_nearest_to_all_others():
    numbers = [1, 2, 9, 4, 4, 7]
    apart = np.subtract.outer(np.array(numbers[:3]), np.array(numbers[:3]))

    assert published(numbers, aggregate="medoid") == [numbers[naive_medoid(apart)], 4]
    assert published(
        ["low", "high", "mid", "low", "low", "high"], aggregate="medoid", order=("low", "mid", "high")
    ) == [
        "mid",
        "low",
    ]
    assert published(["b", "a", "b", "c", "c", "d"], aggregate="medoid") == ["b", "c"]


def test_the_medoid_of_a_hierarchy_is_that_of_its_tree_and_is_the_default():
    cells = Cells(np.array([0, 0, 0, 0, 0, 1]))
    table = ["431", "432", "433", "501", "501", "501"]

    # 501 is the mode, but three of five values are in the other branch.
    assert published(table, cells, aggregate="mode")[0] == "501"
    assert published(table, cells, hierarchy="prefix:1,2")[0] == "431"


def test_survey_weights_decide_the_medoid_of_a_hierarchy():
    cells = Cells(np.array([0, 0, 0, 0, 0, 1]))
    weights = np.array([0.1, 0.1, 0.1, 5.0, 5.0, 1.0])

    assert published(["431", "432", "433", "501", "501", "501"], cells, weights, hierarchy="prefix:1,2")[0] == "501"


@pytest.mark.parametrize("distance", ["path", "information"])
def test_the_medoid_of_a_hierarchy_has_the_least_sum_of_squared_distances(distance):
    from shoal.space.space import Space

    rng = np.random.default_rng(5)
    codes = [f"{a}{b}{c}" for a, b, c in rng.integers(1, 4, (40, 3))]
    table = pa.table({"x": codes})
    given = {"x": ColumnSettings(hierarchy="prefix:1,2", distance=distance)}
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("x",)), given)
    column = replace(schema["x"], hierarchy=hierarchy_of("prefix:1,2", table["x"], "x"))
    schema = replace(schema, columns=(column,))
    labels = np.repeat(np.arange(8), 5)
    found = aggregate(table, schema, Cells(labels))["x"].to_pylist()
    axis = Space.fit(table, schema).axes[0]
    number = axis.codes(table["x"])

    for cell in range(8):
        inside = np.flatnonzero(labels == cell)
        sums = [axis.squared_apart(np.full(5, number[i]), number[inside]).sum() for i in inside]
        own = inside[[codes[i] == found[inside[0]] for i in inside]]
        assert sums[list(inside).index(own[0])] == pytest.approx(min(sums))
