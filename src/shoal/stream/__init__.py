"""Streams: tuples in, k-anonymous tuples out, within a bounded delay; every tuple is accounted for.

A tuple waits in a window until it is due; then it is released in a cell with its nearest neighbours. `Stream` is the
object to push batches through, `shoal.stream.pipe` the loop behind ``shoal stream``, `shoal.stream.redis_worker` the
same on Redis Streams, `shoal.stream.spark_query` the same as an operator of Spark.
"""

from shoal.stream.stream import Reason, Stream
from shoal.stream.summary import Summary

__all__ = ["Reason", "Stream", "Summary"]
