"""Spark: `shoal.spark.anonymize` makes a release of a DataFrame on its cluster, `stream` one that goes on."""

import os
from typing import Any

from shoal.engines.spark.sessions import session
from shoal.engines.spark.spark_frames import Frame
from shoal.errors import ParameterError
from shoal.job import Job, SparkSettings
from shoal.output.release import Release
from shoal.release import anonymize as anonymize_any
from shoal.settings import validated
from shoal.spelling import named, setting
from shoal.stream import Stream
from shoal.stream.from_job import SPARK, options_of

__all__ = ["anonymize", "finish", "stream"]


def __dir__() -> list[str]:
    return sorted(__all__)


def anonymize(frame: Frame, *, k: int, **settings: Any) -> Release:
    """Make a Spark DataFrame k-anonymous by microaggregation, on its cluster.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The table, classic or of Spark Connect. Not changed. Its records must be the same each time that Spark reads
        them.
    k, **settings
        The arguments of `shoal.anonymize`.

    Returns
    -------
    Release
        The published DataFrame, `table`, with its verdict, loss and risk. It is persisted on the cluster until it is
        closed.

    Raises
    ------
    ParameterError, SchemaError, GuaranteeError
        As in `shoal.anonymize`; also if `frame` is no DataFrame or a streaming one, or if a setting is asked for that
        cannot be kept in blocks (`shoal.engines.blocks.limits.LIMITS`).
    OutageError
        If the Python workers of the cluster cannot import shoal.

    Notes
    -----
    The records never come to the driver; it holds statistics and a sample. Takes O(n log n) time in records. With the
    same seed, the published records are those of the disk engine, whatever the cluster.
    """
    return anonymize_any(frame, k=k, engine="spark", **settings)


def stream(frame: Frame, *, job: "Job | str | os.PathLike[str] | None" = None, **settings: Any) -> Frame:
    """Make a streaming DataFrame k-anonymous: an operator of Spark Structured Streaming.

    The DataFrame is split into shards, by a hash of the subject where there is one. Each shard is a `shoal.Stream` of
    its own, whose state Spark keeps in the checkpoint of the query.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        What ``spark.readStream`` returned. Not changed.
    job : Job or path, optional
        A job with ``engine = "spark"`` and a table ``[stream]``, in place of all settings.
    **settings
        The arguments of `shoal.Stream`, except `on_side` and `clock`, and those that follow.
    shards : int
        Number of shards, 16 by default. The delay counts the tuples of a shard.
    shard : str, optional
        Column whose values are the shards. By default the shard is a hash of the subject or, without one, of the
        columns of `order_by` or, without them, of all columns that are neither confidential nor other.
    order_by : sequence of str
        Columns that give the order of arrival within a batch, such as the partition and offset of Kafka. What follows
        is the order of a hash of the tuples.
    event_time : str, optional
        Column of event times, with a watermark, by which `max_age` counts; by default Spark's processing time.
    side : bool
        Return tuples that cannot be released too. They are unprotected. The columns are then ``belongs_to``
        (``"released"`` or ``"side"``), ``released`` and ``side``, of which one holds the tuple as a struct, the latter
        with its ``reason``.
    new_rules : {"refuse", "finish"}
        What happens if the state of a shard was made with other rules: the query fails, or the shard first releases
        all that waits, by its old rules.

    Returns
    -------
    pyspark.sql.DataFrame
        The released tuples. Write it in the output mode ``append``.

    Raises
    ------
    ParameterError, SchemaError
        As in `shoal.Stream`; also if a column is not there, a watermark is missing, or Spark cannot keep the state.

    Notes
    -----
    Figures of each batch are in the progress of the query, ``observedMetrics["shoal"]``. docs/spark_streams.md says
    what is promised.
    """
    from shoal.stream.spark_query.operator import released_of

    options = dict(settings) if job is None else _of_job(job, settings)
    split = {name: options.pop(name) for name in SparkSettings.model_fields if name in options}
    unused = sorted({"on_side", "clock"} & set(options))
    if unused:
        raise ParameterError(
            f"{named(*unused)} cannot be given for a stream on Spark. Ask for {setting('side', True)}, and take the "
            f"time from Spark: its own, or {setting('event_time')}."
        )
    return released_of(frame, Stream(**options).rules, validated(SparkSettings, split))


def _of_job(job: "Job | str | os.PathLike[str]", settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings in a job."""
    if settings:
        raise ParameterError(
            f"{named(*settings)} cannot be given beside a job. Put it into the job, or leave out the job."
        )
    given = job if isinstance(job, Job) else Job.load(job)
    options = options_of(given)
    if given.engine != SPARK:
        raise ParameterError(f"The job is not one for Spark. Say so in it: {setting('engine', SPARK)}.")
    assert given.stream is not None
    if given.stream.redis is not None:
        raise ParameterError("stream.redis is set in the job, which a stream on Spark does not use. Leave it out.")
    return {**options, **(given.stream.spark or SparkSettings()).model_dump()}


def finish(checkpoint: str | os.PathLike[str], *, side: bool = False, operator: int = 0) -> Frame:
    """End a stream whose query has stopped: release what waits in its checkpoint.

    Parameters
    ----------
    checkpoint : path
        The ``checkpointLocation`` of the query, on any file system that Spark reads.
    side : bool
        Return tuples that no cell can take too, unprotected, as `stream` does.
    operator : int
        Number of the operator in the query, if it has other states before this one.

    Returns
    -------
    pyspark.sql.DataFrame
        The last tuples; not a streaming DataFrame. The checkpoint stays as it is: do not start the query with it again,
        since it would release them a second time.

    Raises
    ------
    ParameterError
        If the query stopped in the middle of a batch.
    FileError
        If there is no such state.
    """
    from shoal.stream.spark_query.rest import rest_of

    return rest_of(session(), os.fspath(checkpoint), side, operator)
