"""Frames: the operations of Spark that the engine uses. Functions of Arrow tables are sent to the records.

No result depends on how Spark splits, orders or repeats the work: functions see single batches, whose order and sizes
do not matter, or whole groups.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any, Self

import numpy as np
import pyarrow as pa

from shoal import kernels
from shoal.errors import SchemaError
from shoal.sources import Reading
from shoal.sources.left_out import Skipping

Frame = Any
"""A Spark DataFrame, classic or of Spark Connect."""

AT_ONCE = 1 << 16
"""Records that a function of batches sees at once, at most."""

_STATE = "state binary"
_FAN_IN = (64, 8)


class Held:
    """Frames that are persisted until the end of a ``with`` statement, whatever the end is."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in self._frames:
            frame.unpersist()

    def __call__(self, frame: Frame) -> Frame:
        """Persist a frame."""
        self._frames.append(frame)
        return frame.persist()

    def free(self, frame: Frame) -> None:
        """Free a frame before the end."""
        self.keep(frame)
        frame.unpersist()

    def keep(self, frame: Frame) -> None:
        """Leave a frame persisted after the end."""
        self._frames = [each for each in self._frames if each is not frame]


def check_names(frame: Frame) -> None:
    """Refuse columns that Spark cannot pass to Python by their names."""
    for name in frame.columns:
        if "." in name or "`" in name:
            raise SchemaError(
                f"Column {name!r} has a dot or a backtick in its name, which Spark cannot pass to Python. Rename it: "
                "withColumnRenamed."
            )
    lowered = [name.lower() for name in frame.columns]
    twice = [name for name in frame.columns if lowered.count(name.lower()) > 1]
    if twice:
        raise SchemaError(f"Spark does not tell these columns apart: {', '.join(map(repr, twice))}. Rename them.")


def types_of(frame: Frame) -> pa.Schema:
    """Return the columns of a frame as Arrow types."""
    types = frame.limit(0).toArrow().schema
    return pa.schema([field.with_nullable(True) for field in types])


def without_skipped(frame: Frame, how: Reading) -> tuple[Frame, int]:
    """Return a frame without the records that are to be left out, and how many they are."""
    if not how.skips:
        return frame, 0
    types = types_of(frame)
    total = Skipping(how, types.names)

    def counted_in(part: pa.Table) -> pa.Table:
        skipping = Skipping(how, types.names)
        skipping.kept(part)
        return pa.table({"counts": [list(skipping.counts)]})

    def kept(part: pa.Table) -> pa.Table:
        return Skipping(how, types.names).kept(part)

    counts = pa.schema([("counts", pa.list_(pa.int64()))])
    found = mapped(frame.select(*map(quoted, total.columns)), counted_in, counts).toArrow()
    total.add(np.array(found["counts"].to_pylist()).reshape(-1, len(total.counts)).sum(axis=0).tolist())
    total.check()
    return mapped(frame, kept, types), total.n_left_out


def mapped(frame: Frame, function: Callable[[pa.Table], pa.Table], types: pa.Schema) -> Frame:
    """Return the results of a function for each batch of records."""

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with kernels.using(1):
            for table in tables(batches):
                yield from function(table).cast(types).to_batches()

    return frame.mapInArrow(of_batches, spark_schema(types))


def grouped(
    frame: Frame, by: str, function: Callable[[Any, pa.Table], pa.Table], types: pa.Schema, n_tasks: int
) -> Frame:
    """Return the results of a function for each group of records; it gets the value of `by` and the group.

    The number of tasks is given: Spark's own, 200, is too small for many groups, and for few most tasks are empty.
    """

    def of_group(key: tuple[pa.Scalar, ...], group: pa.Table) -> pa.Table:
        # Spark runs a task on each core.
        with kernels.using(1):
            return function(key[0].as_py(), group).cast(types)

    return frame.repartition(n_tasks, by).groupBy(by).applyInArrow(of_group, spark_schema(types))


def counted(frame: Frame, column: str) -> dict[int, int]:
    """Return how many records have each value of a column of numbers."""
    found = frame.groupBy(column).count().toArrow()
    return dict(zip(found[column].to_pylist(), found["count"].to_pylist(), strict=True))


def looked_up(column: str, values: Sequence[int]) -> str:
    """Return an expression: the value at the place that a column of numbers gives, null if there is none."""
    # A text, which Spark turns into an array once, and not one expression for each value.
    return f"get(CAST(split('{','.join(map(str, values))}', ',') AS ARRAY<BIGINT>), CAST({column} AS INT))"


def hashed(frame: Frame, columns: list[str], n: int, name: str) -> Frame:
    """Return the frame with another column: a number below `n`, the same for records that agree in some columns."""
    from pyspark.sql.functions import lit, pmod, xxhash64

    return frame.withColumn(name, pmod(xxhash64(*map(quoted, columns)), lit(n)))


def quoted(name: str) -> str:
    """Return the name of a column as Spark reads it in expressions."""
    return f"`{name}`"


def fingerprint(frame: Frame, names: list[str]) -> tuple[Any, ...]:
    """Return the number of records, and the sum of their hashes, which does not depend on their order."""
    kinds = dict(frame.dtypes)
    # Spark does not hash maps.
    columns = [f"to_json(struct({quoted(name)}))" if "map<" in kinds[name] else quoted(name) for name in names]
    hashed = frame.selectExpr(f"xxhash64({', '.join(columns)}) AS hash")
    # In three parts of at most 22 bits, whose sums do not overflow; sums of decimals take many times longer.
    parts = [f"sum(shiftrightunsigned(hash, {at}) & {(1 << 22) - 1}) AS part_{at}" for at in (0, 22, 44)]
    return tuple(hashed.selectExpr("count(*) AS n", *parts).toArrow().to_pylist()[0].values())


def digest_of_records(fingerprint: tuple[Any, ...]) -> str:
    """Return a SHA-256 of the fingerprint of records."""
    return sha256(repr(fingerprint).encode()).hexdigest()


def gathered(frame: Frame, measure: Callable[[pa.Table], Any], merge: Callable[[list[Any]], Any]) -> list[Any]:
    """Measure batches of records where they are, merge on the workers, and return what is left: at most eight parts.

    `merge` does not depend on the order of the parts, nor on which are merged first.
    """

    def of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        state = None
        with kernels.using(1):
            for table in tables(batches):
                found = measure(table)
                state = found if state is None else merge([state, found])
        if state is not None:
            yield _packed(state)

    def of_states(table: pa.Table) -> pa.Table:
        if len(table) == 1:  # often, since few partitions make many groups
            return table
        return pa.Table.from_batches([_packed(merge(_unpacked(table)))])

    states = frame.mapInArrow(of_batches, _STATE)
    for number in _FAN_IN:
        states = states.groupBy((_hash("state") % number).alias("group")).applyInArrow(of_states, _STATE)
    return _unpacked(states.toArrow())


def tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join small batches, since each call of a function has a cost of its own."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(len(each) for each in waiting) >= AT_ONCE:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if sum(len(each) for each in waiting):
        yield pa.Table.from_batches(waiting)


def _packed(state: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"state": pa.array([pickle.dumps(state)], pa.binary())})


def _unpacked(table: pa.Table) -> list[Any]:
    return [pickle.loads(state) for state in table["state"].to_pylist()]


def _hash(name: str) -> Any:
    from pyspark.sql import functions

    return functions.xxhash64(name)


def spark_schema(types: pa.Schema) -> Any:
    """Return Arrow types as those of Spark."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(types, True)  # a time without a zone stays one
