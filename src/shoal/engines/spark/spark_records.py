"""Spark records: the published records of a release stay on the cluster until they are written.

DataFrame -> checks -> blueprint -> cells and published records -> recount -> release
"""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from shoal import spelling
from shoal.columns.schema import Schema
from shoal.engines.blocks.block_records import carried
from shoal.engines.blocks.limits import schema_in_blocks
from shoal.engines.blocks.measure import release_in_blocks
from shoal.engines.spark.engine import ORDER, Made, make, recounted
from shoal.engines.spark.sessions import at_work, named, session, speaking
from shoal.engines.spark.spark_frames import (
    Frame,
    check_names,
    digest_of_records,
    fingerprint,
    quoted,
    types_of,
    without_skipped,
)
from shoal.engines.spark.spark_tables import CatalogueTable, Folder, digest_of
from shoal.errors import FileError, GuaranteeError, ParameterError
from shoal.files import replacing_all
from shoal.job import Job, Order
from shoal.job.engine_facts import beyond
from shoal.measures.recount import Verdict
from shoal.output.destination import CatalogueAt, Destination, FolderAt
from shoal.output.release import Release, Written
from shoal.sources import Reading
from shoal.sources.left_out import Skipping, without_positions
from shoal.sources.reading import OF_ANY_SOURCE
from shoal.typing import Progress

T = TypeVar("T")

PARQUET = (".parquet", ".pq")


def execute_on_spark(
    job: Job,
    table: Any,
    reading: Mapping[str, Any],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Release:
    """Make the release that a job describes of a DataFrame, or of Parquet files on a file system that Spark can read.

    Progress is reported once all records were counted, once their cells are made, and once these were recounted: Spark
    itself shows how far a stage is. It is reported from the thread that works, not from that of the caller.
    """
    if threads is not None:
        raise ParameterError(
            f"{spelling.named('threads')} has no effect on the engine 'spark', where Spark decides. Leave it out."
        )
    schema, frame = planned(job, table, reading)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    how = _skipping(reading)
    parts, records = at_work(frame.sparkSession, lambda: _made(job, frame, schema, progress, how))
    return release_in_blocks(parts.blueprint, parts.measured, records)


def _made(
    job: Job, frame: Frame, schema: Schema, progress: Progress | None, how: Reading
) -> "tuple[Made, SparkRecords]":
    frame, n_left_out = without_skipped(frame, how)
    parts = make(job, frame.select(*map(quoted, carried(schema))), schema, progress)
    n_records = parts.blueprint.n_records
    report = progress or (lambda done, total: None)
    try:
        report(n_records * 9 // 10, n_records)
        verdict = recounted(parts.published, parts.blueprint)
        report(n_records, n_records)
        verdict.require()
    except BaseException:
        parts.published.unpersist()
        raise
    return parts, SparkRecords(frame, parts, verdict, n_left_out)


def frame_of(table: Any, reading: Mapping[str, Any]) -> Frame:
    """Return a table as a DataFrame."""
    others = [name for name in reading if name not in OF_ANY_SOURCE]
    if others:
        raise ParameterError(
            f"{spelling.named(*others)} cannot be given for the engine 'spark', which reads Parquet. Leave it "
            "out, or read the file with Spark and pass the DataFrame to shoal.spark.anonymize."
        )
    if not isinstance(table, str | os.PathLike):
        return table
    path = os.fspath(table)
    ending = os.path.splitext(path.rstrip("/"))[1].lower()
    if ending and ending not in PARQUET:
        raise ParameterError(
            f"The engine 'spark' reads Parquet files and folders of them; the name of the input ends in {ending!r}. "
            "Read it with Spark and pass the DataFrame to shoal.spark.anonymize, or use "
            f"{spelling.setting('engine', 'disk')}."
        )
    from pyspark.errors import AnalysisException

    spark = session()
    try:
        with speaking(), named(spark, "read"):
            return spark.read.parquet(path)
    except AnalysisException as error:
        raise FileError(f"The table {path!r} cannot be read: {error.getCondition()}.") from None


def _skipping(reading: Mapping[str, Any]) -> Reading:
    """Return which records are to be left out; raise if they are named by number."""
    how = Reading.of(reading, frozenset(), "the engine 'spark'")
    if how.skip_rows:
        raise without_positions("the engine 'spark'")
    return how


def planned(job: Job, table: Any, reading: Mapping[str, Any]) -> tuple[Schema, Frame]:
    """Return the schema and the DataFrame of a job, having checked what can be checked without reading records."""
    frame = frame_of(table, reading)
    _check_frame(frame)
    Skipping(_skipping(reading), frame.columns)
    return check_spark_job(job, frame), frame


def check_spark_job(job: Job, frame: Frame) -> Schema:
    """Return the schema of a DataFrame, or raise if the job cannot be done on it, whatever its records are."""
    _check_frame(frame)
    return schema_in_blocks(job, types_of(frame), "spark")


def _check_frame(frame: Frame) -> None:
    """Refuse what is no DataFrame, and what Spark cannot process in the way that is needed."""
    if not hasattr(frame, "mapInArrow"):
        raise ParameterError(
            f"shoal.spark.anonymize takes a Spark DataFrame; got {type(frame).__name__}. Use shoal.anonymize for other "
            "tables, or spark.createDataFrame."
        )
    if frame.isStreaming:
        raise ParameterError(
            "A streaming DataFrame was given, but a release needs all of its records at once. Use shoal.spark.stream "
            "for records that never end, or read the table without readStream."
        )
    check_names(frame)


class SparkSource(NamedTuple):
    """The DataFrame that was read, the sums of the hashes of its records, in any order, and how many were left out."""

    frame: Frame
    content: tuple[int, ...]
    n_left_out: int = 0

    @property
    def sha256(self) -> str:
        """SHA-256 of the records."""
        return digest_of_records(self.content)

    def check_unchanged(self) -> None:
        """Do nothing: records that change while Spark reads them are noticed when what was written is read back."""


class SparkRecords:
    """The published records, persisted on the cluster; see `shoal.output.release.Records`."""

    engine = "spark"
    is_counted = True
    series = None
    arrow = cells = None

    def __init__(self, frame: Frame, parts: Made, verdict: Verdict, n_left_out: int = 0) -> None:
        self.source, self.verdict = SparkSource(frame, parts.content, n_left_out), verdict
        self._parts, self._spark = parts, parts.published.sparkSession
        self._names = [column.name for column in parts.blueprint.schema.published]

    def close(self) -> None:
        """Free the records that are persisted on the cluster; `table` is made anew if it is used later."""
        self._parts.published.unpersist()

    def at_work(self, work: Callable[[], T]) -> T:
        """Return what some work with Spark returns."""
        return at_work(self._spark, work)

    @property
    def table(self) -> Frame:
        """The published DataFrame. In each partition, records are in the order of a hash of their published values."""
        return self._sorted()

    def _sorted(self, *first: str) -> Frame:
        keys = [*map(quoted, first), *ORDER]
        sorted_ones = self._parts.published.repartition(ORDER[0]).sortWithinPartitions(*keys)
        return sorted_ones.select(*map(quoted, self._names))

    def batches(self) -> NoReturn:
        """Raise: `table` has the records."""
        raise beyond(self.engine, "the published records in batches", "they stay on the cluster, as a DataFrame")

    def rows(self, order: Order) -> None:
        """Return nothing: the records are sorted while they are written."""

    @contextmanager
    def begun(self, destination: Destination) -> Iterator[tuple[Folder | CatalogueTable, dict[Path, Path]]]:
        """Yield the table to write and the temporary path of each file of this machine."""
        job, paths, force = self._parts.blueprint.job, destination.paths, destination.force
        place = self._place(destination)
        place.check_free(self.source.frame)
        inputs = [*job.files, *([] if job.input is None else [job.input.path])]
        # What stays on this machine appears before the release does, or not at all.
        commit = partial(place.commit, partial(self._read_back, place))
        with (
            self._removing(place),
            replacing_all(paths, force, destination.private, inputs, commit=commit) as temporaries,
        ):
            yield place, dict(zip(paths, temporaries, strict=True))

    def _place(self, destination: Destination) -> Folder | CatalogueTable:
        asked = destination.table
        assert isinstance(asked, FolderAt | CatalogueAt)
        self._check_split(asked.partition_by)
        if isinstance(asked, FolderAt):
            return Folder(self._spark, asked, destination.force)
        return CatalogueTable(self._spark, asked, destination.force)

    def _check_split(self, split: tuple[str, ...]) -> None:
        for name in split:
            if name not in self._names:
                raise ParameterError(
                    f"The folder is to be split by column {name!r}, which is not published. Published columns: "
                    f"{', '.join(self._names)}."
                )
        if len(split) == len(self._names):
            raise ParameterError("The folder is to be split by all columns, so that no column is left for its files.")

    @contextmanager
    def _removing(self, place: Folder | CatalogueTable) -> Iterator[None]:
        """Let Spark write; unless all goes well, nothing stays."""
        with named(self._spark, "publish what was written"):
            try:
                yield
            except BaseException:
                self._spark.clearTags()  # by which jobs are cancelled
                place.remove()
                raise

    def write(self, table: Folder | CatalogueTable, rows: Any) -> None:
        """Write the published table."""
        with named(self._spark, "write"):
            table.write(self._sorted(*table.asked.partition_by))

    def recount(self, table: Folder | CatalogueTable, rows: Any) -> Written:
        """Recount the guarantees; raise unless what was written, read back, holds the records of the release."""
        with named(self._spark, "recount what was written"):
            written = self._read_back(table)
            # The same records belong to the same persons, which are not named there.
            recounted(written, self._parts.blueprint).require()
            digests = table.digests()
        return Written(digest_of(digests) if digests else digest_of_records(self._fingerprint), digests)

    @cached_property
    def _fingerprint(self) -> tuple[Any, ...]:
        return fingerprint(self._parts.published, self._names)

    def _read_back(self, place: Folder | CatalogueTable) -> Frame:
        """Return what was written; raise unless it holds the records of the release."""
        written = place.read(self._parts.published.select(*map(quoted, self._names)).schema)
        if fingerprint(written, self._names) != self._fingerprint:
            raise GuaranteeError(
                "What was written, read back, does not hold the records that were recounted. It was removed, and "
                "nothing was released. Check the storage, that the input gives the same records each time that it is "
                "read, and, for a table with partition_by, that the catalogue keeps partitions when a table is renamed."
            )
        return written
