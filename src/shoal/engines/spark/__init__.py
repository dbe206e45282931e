"""Spark: releases of Spark DataFrames, made where their records are. The stages are those of `shoal.engines.blocks`.

PySpark is imported on first use, so that this package can be imported without it.
"""
