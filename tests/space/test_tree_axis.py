from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from shoal.columns.hierarchy import Hierarchy
from shoal.columns.schema import ColumnSettings, Roles, Schema
from shoal.measures.table_loss import table_loss
from shoal.space.axes import MOST_DIMS, NominalAxis
from shoal.space.space import Space
from shoal.space.tree_axis import TreeAxis

JOBS = Hierarchy.of_rows(
    [("nurse", "health", "*"), ("doctor", "health", "*"), ("cook", "food", "*"), ("none", "none", "*")]
)


def column_of(values, tree=JOBS, **settings):
    table = pa.table({"job": values})
    given = {"job": ColumnSettings(hierarchy="jobs.csv", **settings)}
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("job",)), given)
    return table, replace(schema, columns=(replace(schema["job"], hierarchy=tree),))


def squared(X):
    return np.square(X[:, None] - X[None]).sum(axis=2)


@pytest.mark.parametrize("scaling", ["zscore", "minmax", "none"])
def test_squared_distances_are_path_lengths(scaling):
    table, schema = column_of(["nurse", "doctor", "cook", "none", None])
    X = Space.fit(table, schema, scaling).encode(table)
    unit = squared(X)[0, 1]

    assert np.allclose(
        squared(X) / unit, [[0, 1, 2, 2, 2], [1, 0, 2, 2, 2], [2, 2, 0, 2, 2], [2, 2, 2, 0, 2], [2, 2, 2, 2, 0]]
    )


def test_information_content_sets_rare_branches_apart():
    table, schema = column_of([*["nurse"] * 6, *["doctor"] * 2, "cook", "none"], distance="information")
    X = Space.fit(table, schema, "none").encode(table)
    content = {name: -np.log(n / 10) for name, n in {"nurse": 6, "doctor": 2, "health": 8, "cook": 1}.items()}
    jiang_conrath = content["nurse"] + content["doctor"] - 2 * content["health"]

    assert squared(X)[0, 6] / squared(X)[0, 8] == pytest.approx(jiang_conrath / (content["nurse"] + content["cook"]))


def test_the_column_has_unit_variance_under_zscore():
    table, schema = column_of(["nurse", "nurse", "doctor", "cook", None])
    X = Space.fit(table, schema, "zscore").encode(table)

    assert np.square(X - X.mean(axis=0)).sum() / len(X) == pytest.approx(1.0)


def test_many_values_take_few_coordinates_and_keep_groups_apart():
    rows = [(f"{group}{i}", f"group {group}", "*") for group in "abcd" for i in range(30)]
    tree = Hierarchy.of_rows(rows)
    table, schema = column_of([row[0] for row in rows], tree)
    axis = TreeAxis.fit(table["job"], schema["job"], "none")
    found = squared(axis.points)
    group = np.repeat(np.arange(4), 30)
    same, other = group[:, None] == group, group[:, None] != group

    assert axis.n_dims <= MOST_DIMS
    assert found[other].min() > found[same].mean()
    assert found[other].mean() == pytest.approx(1.0, rel=0.05)
    assert found[same & ~np.eye(120, dtype=bool)].mean() == pytest.approx(0.5, rel=0.05)


def test_the_loss_is_that_of_the_tree_not_of_its_coordinates():
    values = ["nurse", "doctor", "cook", "none"]
    table, schema = column_of(values)
    space = Space.fit(table, schema, "none")
    labels = np.array([0, 0, 1, 1])
    found = table_loss(space, table, pa.table({"job": ["nurse", "nurse", "none", "none"]}), {"job": labels})
    X = space.encode(table)

    assert found.sse == pytest.approx(
        sum(np.square(X[labels == c] - X[labels == c].mean(axis=0)).sum() for c in (0, 1))
    )
    assert found.columns["job"].mse == pytest.approx((0 + 0.5 + 1 + 0) / 4)


def test_without_a_hierarchy_categories_stay_equally_far_apart():
    table = pa.table({"job": ["nurse", "doctor", "cook"]})
    schema = Schema.of(table.schema, Roles(quasi_identifiers=("job",)))

    assert type(Space.fit(table, schema).axes[0]) is NominalAxis
