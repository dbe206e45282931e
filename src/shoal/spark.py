"""Spark: `shoal.spark.anonymize` makes a release of a DataFrame on its cluster."""

from typing import Any

from shoal.engines.spark.spark_frames import Frame
from shoal.output.release import Release
from shoal.release import anonymize as anonymize_any

__all__ = ["anonymize"]


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
