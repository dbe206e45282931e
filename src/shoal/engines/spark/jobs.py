"""Jobs: a job with the engine "spark", from the files it reads to those it writes."""

import os
from collections.abc import Mapping
from typing import Any

from shoal.columns.schema import Schema
from shoal.engines.spark.sessions import named, session, speaking
from shoal.engines.spark.spark_frames import Frame
from shoal.engines.spark.spark_release import SparkRelease, check_spark_job, execute_job
from shoal.errors import FileError, ParameterError
from shoal.job import Job, Output
from shoal.output.places import check_reports
from shoal.typing import Progress

PARQUET = (".parquet", ".pq")


def execute_on_spark(
    job: Job,
    table: Any,
    reading: Mapping[str, Any],
    *,
    threads: int | None = None,
    progress: Progress | None = None,
) -> SparkRelease:
    """Make the release that a job describes.

    Parameters
    ----------
    job : Job
        With ``engine = "spark"``.
    table : path or pyspark.sql.DataFrame
        A Parquet file or a folder of Parquet files, on any file system that Spark can read, or a DataFrame.
    reading : mapping
        Options for reading a file; Parquet has none.
    threads : int, optional
        Must be left out, since Spark decides how many cores work.
    progress : callable, optional
        As in `shoal.anonymize`.
    """
    if threads is not None:
        raise ParameterError("threads has no effect on the engine 'spark', where Spark decides. Leave it out.")
    return execute_job(job, frame_of(table, reading), progress)


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


def run_on_spark(
    job: Job,
    table: Any,
    reading: Mapping[str, Any],
    *,
    save_job: str | os.PathLike[str] | None,
    force: bool,
    threads: int | None,
    progress: Progress | None,
) -> SparkRelease:
    """Make the release of a job and write it where the job says; it is closed if it was written."""
    if job.output is not None:
        spark_files(job.output, save_job)
    release = execute_on_spark(job, table, reading, threads=threads, progress=progress)
    out = job.output
    if out is not None:
        with release:
            told = {
                "manifest": out.manifest,
                "report": out.report,
                "form": out.form,
                "json": out.json_file,
                **out.said(),
            }
            release.write(out.path, **told, save_job=save_job, force=force)
    return release


def spark_files(output: Output, save_job: str | os.PathLike[str] | None = None) -> list[str]:
    """Return the paths that a job writes."""
    if output.to_table is not None or output.to_format is not None:
        raise ParameterError(
            "A job on the engine 'spark' writes a folder of Parquet files, so that to_table and to_format have no "
            "effect. Leave them out. A table of Spark's catalogue is written in Python: "
            'release.write(to_table="db.people").'
        )
    check_reports(output.report, output.json_file, output.form, **output.said())
    path = output.path.rstrip("/")
    local = [output.manifest or f"{path}.internal.json", output.report, output.json_file, save_job]
    return [path, f"{path}.public.json", *(str(each) for each in local if each is not None)]


def planned(job: Job, table: Any, reading: Mapping[str, Any]) -> tuple[Schema, Frame]:
    """Return the schema and the DataFrame of a job, having checked what can be checked without reading records."""
    frame = frame_of(table, reading)
    return check_spark_job(job, frame), frame
