"""Spark query: a stream as an operator of Spark Structured Streaming, which keeps its state and repeats what failed.

Tuples are dealt to shards; each shard is a `shoal.stream.Stream` of its own, in the state of the query. Tuples travel
as Arrow data in one binary column, so that Spark converts them once on the way in, and once on the way out. PySpark is
imported on first use.
"""
