"""Frames: pandas, polars, pyarrow, DuckDB and whatever else narwhals or the Arrow C stream interface supports.

Each conversion returns the Arrow table and a function that converts a released table back to the kind of the input.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import pyarrow as pa
from narwhals import dependencies

from shoal.errors import ParameterError, SchemaError
from shoal.sources.clean import check_names, check_wanted

Back = Callable[[pa.Table], Any]
KNOWN = (
    "a path, pandas, polars, pyarrow (table, batch or dataset), a DuckDB relation, or an object with __arrow_c_stream__"
)


@dataclass(frozen=True)
class Frame:
    """A frame as Arrow, with its kind, the conversion back, and the columns of its index."""

    arrow: pa.Table
    kind: str
    back: Back
    index: tuple[str, ...] = ()


def from_frame(source: Any, columns: Sequence[str] | None = None) -> Frame:
    """Convert a frame to Arrow; raise if `source` is not a frame."""
    if isinstance(source, nw.DataFrame | nw.LazyFrame):
        inner = from_frame(source.to_native(), columns)
        return replace(inner, back=_Narwhals(inner.back))
    if dependencies.is_pandas_dataframe(source):
        return _from_pandas(source, columns)
    frame = _from_other(_only_wanted(source, columns))
    check_names(frame.arrow.column_names)
    if columns is None:
        return frame
    return replace(frame, arrow=frame.arrow.select(check_wanted(columns, frame.arrow.column_names)))


def _only_wanted(source: Any, columns: Sequence[str] | None) -> Any:
    """Return a frame that is not in memory yet with the wanted columns only, so that the others are not read."""
    if columns is not None and _is_dataset(source):
        check_names(source.schema.names)
        return _as_dataset(source.to_table(columns=check_wanted(columns, source.schema.names)))
    if columns is not None and dependencies.is_polars_lazyframe(source):
        return source.select(check_wanted(columns, source.collect_schema().names()))
    return source


def without_types(back: Back) -> Back:
    """Return a conversion back that does not restore the dtypes of the input frame."""
    if isinstance(back, _Narwhals):
        return _Narwhals(without_types(back.inner))
    return replace(back, dtypes={}) if isinstance(back, _Pandas) else back


@dataclass(frozen=True)
class _Narwhals:
    """Conversion back to a narwhals frame."""

    inner: Back

    def __call__(self, arrow: pa.Table) -> Any:
        """Return a released table as a narwhals frame."""
        return nw.from_native(self.inner(arrow))


def _from_other(source: Any) -> Frame:
    if isinstance(source, pa.Table):
        return Frame(source, "pyarrow", _same)
    if _is_dataset(source):
        return Frame(source.to_table(), "pyarrow dataset", _as_dataset)
    if isinstance(source, pa.RecordBatch):
        return Frame(pa.Table.from_batches([source]), "record batch", _as_batch)
    if dependencies.is_polars_lazyframe(source):
        return Frame(source.collect().to_arrow(), "polars lazy", _as_lazy)
    if dependencies.is_polars_dataframe(source):
        return Frame(source.to_arrow(), "polars", _as_polars)
    if dependencies.is_duckdb_relation(source):
        return Frame(source.to_arrow_table(), "duckdb", _as_duckdb)
    if dependencies.is_into_dataframe(source):
        eager = nw.from_native(source, eager_only=True)
        return Frame(eager.to_arrow(), str(eager.implementation), _by_narwhals(eager.implementation))
    if hasattr(source, "__arrow_c_stream__"):
        # A single column also has this interface, but is not a table.
        with suppress(pa.ArrowInvalid):
            return Frame(pa.table(source), "arrow stream", _same)
    raise ParameterError(f"A table cannot be made from {type(source).__name__}. Pass {KNOWN}.")


def _same(arrow: pa.Table) -> pa.Table:
    return arrow


def _as_batch(arrow: pa.Table) -> pa.RecordBatch:
    batches = arrow.unify_dictionaries().combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], arrow.schema)


def _as_polars(arrow: pa.Table) -> Any:
    """Return a polars frame; ordered categories become an Enum, which polars itself recognises by metadata only."""
    import polars

    frame = polars.DataFrame(polars.from_arrow(arrow))
    ordered = [field.name for field in arrow.schema if pa.types.is_dictionary(field.type) and field.type.ordered]
    enums = {name: polars.Enum(arrow[name].unify_dictionaries().chunk(0).dictionary.to_pylist()) for name in ordered}
    return frame.cast(enums) if enums else frame


def _is_dataset(source: Any) -> bool:
    """Return whether a source is a pyarrow dataset; the module is not imported for others."""
    module = sys.modules.get("pyarrow.dataset")
    return module is not None and isinstance(source, module.Dataset)


def _as_dataset(arrow: pa.Table) -> Any:
    import pyarrow.dataset

    return pyarrow.dataset.dataset(arrow)


def _as_lazy(arrow: pa.Table) -> Any:
    return _as_polars(arrow).lazy()


def _as_duckdb(arrow: pa.Table) -> Any:
    import duckdb

    return duckdb.from_arrow(arrow)


def _by_narwhals(backend: Any) -> Back:
    return lambda arrow: nw.from_arrow(arrow, backend=backend).to_native()


def _from_pandas(frame: Any, columns: Sequence[str] | None) -> Frame:
    """Convert a pandas frame; an informative index becomes columns, and column names become strings."""
    if frame.columns.nlevels > 1:
        raise SchemaError(
            f"The columns have names of {frame.columns.nlevels} levels. Flatten them: "
            "frame.columns = ['_'.join(map(str, levels)) for levels in frame.columns]."
        )
    original = {str(name): name for name in frame.columns}
    check_names([str(name) for name in frame.columns])
    index = _index_names(frame)
    taken = [name for name in index if name in original]
    if taken:
        raise SchemaError(f"The index and a column are both called {taken[0]!r}. Rename one, or drop the index.")
    levels = {name: frame.index.get_level_values(i).to_series() for i, name in enumerate(index)}
    series = levels | {name: frame[own] for name, own in original.items()}
    wanted = check_wanted(columns, list(series))
    arrow = pa.table({name: _as_arrow(name, series[name]) for name in wanted})
    dtypes = {name: series[name].dtype for name in wanted}
    own_index = dict(zip(index, frame.index.names, strict=True)) if index else {}
    back = _Pandas(arrow.schema, dtypes, original, own_index)
    return Frame(arrow, "pandas", back, tuple(name for name in index if name in wanted))


def _index_names(frame: Any) -> list[str]:
    """Return the names of the index levels; none for a default index, which has no name."""
    import pandas

    index = frame.index
    if isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None:
        return []
    if index.nlevels == 1:
        return ["index" if index.name is None else str(index.name)]
    return [f"level_{i}" if name is None else str(name) for i, name in enumerate(index.names)]


def _as_arrow(name: str, series: Any) -> pa.ChunkedArray:
    """Convert one pandas column to Arrow; raise if it has no single type."""
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # The message of that error contains a value.
        raise SchemaError(
            f"Column {name!r} (dtype {series.dtype}) mixes several types, or has one that Arrow does not support. "
            "Convert it, with astype(str) for instance, or leave it out."
        ) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


@dataclass(frozen=True)
class _Pandas:
    """Conversion back to a pandas frame."""

    schema: pa.Schema
    dtypes: dict[str, Any]
    original: dict[str, Any]
    index: dict[str, Any]

    def __call__(self, arrow: pa.Table) -> Any:
        """Return a released table as a pandas frame."""
        import pandas

        frame = pandas.DataFrame({name: self._series(name, arrow.column(name)) for name in arrow.column_names})
        if self.index and set(self.index) <= set(arrow.column_names):
            frame = frame.set_index(list(self.index))
            frame.index.names = list(self.index.values())
        elif not arrow.column_names:
            frame = pandas.DataFrame(index=range(arrow.num_rows))
        return frame.rename(columns=self.original)

    def _series(self, name: str, column: pa.ChunkedArray) -> Any:
        """Return a column in its input dtype, unless the release has changed its type."""
        import pandas

        dtype = self.dtypes.get(name)
        if isinstance(dtype, pandas.ArrowDtype):
            return pandas.Series(pandas.arrays.ArrowExtensionArray(column))
        series = column.to_pandas(types_mapper=_nullable_integer if column.null_count else None)
        if dtype is None or dtype == series.dtype or isinstance(dtype, pandas.CategoricalDtype):
            return series
        if _same_type(self.schema.field(name).type, column.type):
            return series.astype(dtype)
        nullable = isinstance(dtype, pandas.api.extensions.ExtensionDtype) and dtype.na_value is pandas.NA
        return series.astype("Float64") if nullable and pa.types.is_floating(column.type) else series


def _nullable_integer(kind: pa.DataType) -> Any:
    """Return the nullable pandas dtype for an integer type; None for other types."""
    import pandas

    return (
        pandas.api.types.pandas_dtype(str(kind).replace("int", "Int").replace("u", "U"))
        if pa.types.is_integer(kind)
        else None
    )


def _same_type(one: pa.DataType, other: pa.DataType) -> bool:
    text = (pa.types.is_string, pa.types.is_large_string)
    return bool(one == other or (any(is_text(one) for is_text in text) and any(is_text(other) for is_text in text)))
