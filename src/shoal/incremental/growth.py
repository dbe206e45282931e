"""Growth of the space: new categories and missing values in late records, and drift relative to the base.

The space is fixed when the collection begins. A category that occurs only in late records gets a separate dimension,
at the same distance from the others as they have from one another; so do missing values that occur only in late
records. The coordinates of the base do not change.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.columns.categories import category_codes, sorted_categories
from shoal.columns.prepare import decoded
from shoal.columns.schema import Column, Kind
from shoal.errors import SchemaError
from shoal.space.axes import NominalAxis, NumberAxis, Scaling, missing_apart
from shoal.space.space import Space
from shoal.typing import Matrix

MOST_NEW_DIMS = 16
"""Maximum number of new dimensions per column; further new categories get random directions within these."""

FEWEST = 30
"""Smallest number of late records for which drift is tested."""

SHIFT, SPREAD, SHARES = 0.5, 2.0, 0.25
"""Drift thresholds: shift of the mean in standard deviations, ratio of standard deviations, total variation."""


def extended(space: Space, base: pa.Table, late: pa.Table, scaling: Scaling) -> Space:
    """Return the space extended by what occurs only in late records; the coordinates of the base do not change."""
    columns = ((axis, base[axis.column.name], late[axis.column.name]) for axis in space.axes)
    return Space(tuple(_extended(axis, before, after, scaling) for axis, before, after in columns))


def _extended(
    axis: NumberAxis | NominalAxis, base: pa.ChunkedArray, late: pa.ChunkedArray, scaling: Scaling
) -> NumberAxis | NominalAxis:
    if isinstance(axis, NominalAxis):
        return _with_categories(axis, late)
    if axis.order is not None:
        refuse_new_ranks(axis.column, late, axis.order)
    if axis.apart or not late.null_count:
        return axis
    # The same distance as if a value had been missing in the base; see `NumberAxis.fit`.
    coordinates = axis.encode(base)[:, 0] / axis.column.settings.weight
    return replace(axis, apart=missing_apart(coordinates - coordinates.mean(), scaling))


def _with_categories(axis: NominalAxis, late: pa.ChunkedArray) -> NominalAxis:
    new = new_categories(axis, late)
    if len(new) == 0:
        return axis
    counts = np.bincount(category_codes(late, new) + 1, minlength=len(new) + 1)[1:]
    places = np.zeros((len(new), min(len(new), MOST_NEW_DIMS)))
    by_count = np.argsort(-counts, kind="stable")
    places[by_count[: places.shape[1]]] = np.eye(places.shape[1])
    directions = np.random.default_rng(2).standard_normal((len(new) - places.shape[1], places.shape[1]))
    places[by_count[places.shape[1] :]] = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    # Two points on different axes are sqrt(2) times as far apart as each is from the origin.
    places *= axis.apart / np.sqrt(2)
    old = len(axis.categories)
    points = np.zeros((old + len(new), axis.points.shape[1] + places.shape[1]))
    points[:old, : axis.points.shape[1]] = axis.points
    points[old:, axis.points.shape[1] :] = places
    return replace(axis, categories=pa.concat_arrays([axis.categories, new]), points=points)


def new_categories(axis: NominalAxis, late: pa.ChunkedArray) -> pa.Array:
    """Return the categories of late records that the axis does not have, in ascending order."""
    found = sorted_categories(late).cast(axis.categories.type)
    return found.filter(pc.equal(pc.fill_null(pc.index_in(found, value_set=axis.categories), -1), -1))


def refuse_new_ranks(column: Column, late: pa.ChunkedArray, order: pa.Array) -> None:
    """Raise if late records have categories that are not in the order, whose place would be that of their arrival."""
    unknown = pc.and_(pc.is_valid(late), pc.invert(pc.is_in(decoded(late).cast(order.type), value_set=order)))
    count = pc.sum(unknown).as_py() or 0
    if count:
        raise SchemaError(
            f"Column {column.name!r} is ordinal, and {count:,} late records have categories that did not occur when "
            "the collection began, so their rank is unknown. Begin again with an order that lists all categories."
        )


def moved(X: Matrix, space: Space, wider: Space) -> Matrix:
    """Return points of a space as points of the wider one, with zeros in the new dimensions."""
    if [axis.n_dims for axis in space.axes] == [axis.n_dims for axis in wider.axes]:
        return X
    result = np.zeros((len(X), sum(axis.n_dims for axis in wider.axes)))
    for old, new in zip(space.dims(), wider.dims(), strict=True):
        result[:, new.start : new.start + old.stop - old.start] = X[:, old]
    return result


def category_warnings(space: Space, late: pa.Table) -> Iterator[str]:
    """Yield a warning for each nominal column with new categories; it gives their number, not their values."""
    for axis in space.axes:
        if isinstance(axis, NominalAxis) and (new := new_categories(axis, late[axis.column.name])):
            n_records = np.count_nonzero(axis.codes(late[axis.column.name].cast(_like(axis))) < 0)
            yield (
                f"Column {axis.column.name!r} has {len(new):,} categories that do not occur in the base, in "
                f"{n_records:,} late records; each gets a separate dimension."
            )


def _like(axis: NominalAxis) -> pa.DataType:
    return axis.categories.type


def drift(space: Space, base: pa.Table, late: pa.Table, scaling: Scaling) -> Iterator[str]:
    """Yield a warning for each column whose distribution differs between base and late records, without values."""
    if late.num_rows < FEWEST:
        return
    for axis in space.axes:
        values = base[axis.column.name], late[axis.column.name]
        if isinstance(axis, NominalAxis):
            yield from _drift_of_shares(axis.column, *values)
        else:
            yield from _drift_of_numbers(axis, *values)


def _drift_of_shares(column: Column, base: pa.ChunkedArray, late: pa.ChunkedArray) -> Iterator[str]:
    categories = sorted_categories(pa.chunked_array([*decoded(base).chunks, *decoded(late).chunks]))
    before, after = (
        np.bincount(category_codes(values, categories), minlength=len(categories)) / len(values)
        for values in (base, late)
    )
    apart = float(np.abs(before - after).sum() / 2)
    if apart > SHARES:
        yield (
            f"Column {column.name!r} drifts: {apart:.0%} of the late records would have to change category to have the "
            "shares of the base."
        )


def _drift_of_numbers(axis: NumberAxis, base: pa.ChunkedArray, late: pa.ChunkedArray) -> Iterator[str]:
    before, after = (_coordinates(axis, values) for values in (base, late))
    if len(before) == 0 or len(after) == 0:
        return
    sd = float(before.std())
    if sd == 0:
        if axis.column.kind is not Kind.NOMINAL and float(after.std()) > 0:
            yield f"Column {axis.column.name!r} was constant in the base and is not in the late records."
        return
    shift, spread = abs(float(after.mean() - before.mean())) / sd, float(after.std()) / sd
    if shift > SHIFT or not 1 / SPREAD <= spread <= SPREAD:
        yield (
            f"Column {axis.column.name!r} drifts: the mean of the late records lies {shift:.2f} standard deviations "
            f"from that of the base, and their standard deviation is {spread:.2f} times as large."
        )


def _coordinates(axis: NumberAxis, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the first coordinates of the values that are not missing."""
    present = pa.chunked_array([values.combine_chunks().drop_null()])
    # A column that is constant in the base has no scale; the values themselves are used.
    if axis.spread == 0:
        axis = replace(axis, spread=1.0)
    return axis.encode(present)[:, 0]
