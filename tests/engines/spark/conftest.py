"""Spark for tests: sessions on this machine, and a cluster on the loopback interface."""

import importlib.util
import sys

import pytest

from shoal.engines.spark.sessions import OLDEST_JAVA, java_version

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.memory": "512m",
    # Tables are small here: to compile code takes longer than to run it once.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def why_not():
    """Return why there is no Spark on this machine, or None if there is."""
    if importlib.util.find_spec("pyspark") is None:
        return "PySpark is not installed, so releases on Spark were left out: pip install --group spark"
    if (java_version() or 0) < OLDEST_JAVA:
        return f"there is no Java {OLDEST_JAVA} or newer, so releases on Spark were left out"
    return None


def why_not_connect():
    """Return why there is no Spark Connect on this machine, or None if there is."""
    missing = [name for name in ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas") if not _is_installed(name)]
    if missing:
        return f"Spark Connect needs {', '.join(missing)}, so it was left out: pip install --group spark"
    return None


def _is_installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


@pytest.fixture(scope="session")
def spark_or_skip():
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def spark_settings(spark_or_skip):
    """Return the settings of a session, for one that a test starts in a process of its own."""
    return SETTINGS


@pytest.fixture(scope="session")
def connect_settings(spark_or_skip):
    """Return the settings of a session of Spark Connect, where there can be one."""
    reason = why_not_connect()
    if reason is not None:
        pytest.skip(reason)
    return SETTINGS


@pytest.fixture(scope="session")
def cluster(spark_or_skip, tmp_path_factory):
    """Yield a master and two workers, each a process of its own."""
    from cluster import Cluster

    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def spark(request, spark_or_skip):
    """Yield a session; another master than local[2] is a parameter."""
    from pyspark.sql import SparkSession

    master = getattr(request, "param", "local[2]")
    if master == "cluster":
        master = request.getfixturevalue("cluster").url
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master(master)
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        assert spark.sparkContext.master == master
        spark.sparkContext.setLogLevel("OFF")
        yield spark
        spark.stop()
