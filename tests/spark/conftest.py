"""Spark for tests: sessions on this machine, and a cluster on the loopback interface."""

import importlib.util
import os
import shutil
import sys
from contextlib import contextmanager

import pytest

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def why_not():
    """Return why there is no Spark on this machine, or None if there is."""
    if importlib.util.find_spec("pyspark") is None:
        return "the Spark engine was not tested: pyspark is not installed (.venv/bin/pip install 'pyspark>=4')"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "the Spark engine was not tested: there is no Java on this machine (17 or newer)"
    return None


@contextmanager
def session(master):
    """Yield a Spark session of its own."""
    from pyspark.sql import SparkSession

    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    builder = SparkSession.builder.master(master)
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


@pytest.fixture(scope="session")
def sessions():
    """Return the function that makes sessions; skip where there is no Spark."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    return session


@pytest.fixture(scope="module")
def spark(sessions):
    with sessions("local[2]") as spark:
        yield spark
