"""Jobs: a job on Spark, from the DataFrame or the Parquet files that it reads to the release.

DataFrame -> checks -> blueprint -> cells and published records -> recount -> release
"""

import os
import secrets
from collections.abc import Mapping
from typing import Any

from shoal.columns.schema import Schema
from shoal.engines.blocks.block_records import carried
from shoal.engines.blocks.limits import schema_in_blocks
from shoal.engines.blocks.measure import release_in_blocks
from shoal.engines.spark.engine import Made, make, recounted
from shoal.engines.spark.sessions import at_work, named, session, speaking
from shoal.engines.spark.spark_frames import Frame, quoted, types_of
from shoal.engines.spark.spark_records import SparkRecords
from shoal.errors import FileError, ParameterError, SchemaError
from shoal.job import Job
from shoal.output.release import Release
from shoal.typing import Progress

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
        raise ParameterError("threads has no effect on the engine 'spark', where Spark decides. Leave it out.")
    schema, frame = planned(job, table, reading)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    parts, records = at_work(frame.sparkSession, lambda: _made(job, frame, schema, progress))
    return release_in_blocks(parts.blueprint, parts.measured, records)


def _made(job: Job, frame: Frame, schema: Schema, progress: Progress | None) -> tuple[Made, SparkRecords]:
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
    return parts, SparkRecords(frame, parts, verdict)


def frame_of(table: Any, reading: Mapping[str, Any]) -> Frame:
    """Return a table as a DataFrame."""
    if reading:
        raise ParameterError(
            f"{', '.join(reading)} cannot be given for the engine 'spark', which reads Parquet. Leave it out, or read "
            "the file with Spark and pass the DataFrame to shoal.spark.anonymize."
        )
    if not isinstance(table, str | os.PathLike):
        return table
    path = os.fspath(table)
    ending = os.path.splitext(path.rstrip("/"))[1].lower()
    if ending and ending not in PARQUET:
        raise ParameterError(
            f"The engine 'spark' reads Parquet files and folders of them; the name of the input ends in {ending!r}. "
            'Read it with Spark and pass the DataFrame to shoal.spark.anonymize, or use engine="disk".'
        )
    from pyspark.errors import AnalysisException

    spark = session()
    try:
        with speaking(), named(spark, "read"):
            return spark.read.parquet(path)
    except AnalysisException as error:
        raise FileError(f"The table {path!r} cannot be read: {error.getCondition()}.") from None


def planned(job: Job, table: Any, reading: Mapping[str, Any]) -> tuple[Schema, Frame]:
    """Return the schema and the DataFrame of a job, having checked what can be checked without reading records."""
    frame = frame_of(table, reading)
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
            "A streaming DataFrame was given, but a release needs all of its records at once. Use `shoal stream` or "
            "shoal.Stream for records that never end, or read the table without readStream."
        )
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
