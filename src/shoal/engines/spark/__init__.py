"""Spark: releases of Spark DataFrames, made where their records are. The stages are those of `shoal.engines.blocks`.

PySpark is imported on first use, so that this package can be imported without it.
"""

from shoal.engines.spark.spark_release import SparkRelease, anonymize

__all__ = ["SparkRelease", "anonymize"]
