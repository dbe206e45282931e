"""What is said when Spark cannot work; nothing here starts it."""

import signal
import sys
import types

import pytest

from shoal.engines.spark import sessions
from shoal.errors import GuaranteeError, OutageError, ParameterError


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a function that puts a Java on an otherwise empty machine."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)

    def with_java(script):
        (tmp_path / "bin").mkdir()
        java = tmp_path / "bin" / "java"
        java.write_text(f"#!/bin/sh\n{script}\n")
        java.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    return with_java


def test_a_machine_without_java_is_told_what_to_install(machine):
    with pytest.raises(
        ParameterError, match=r"needs Java 17 or newer, but no Java was found\. Install it .*engine=.disk."
    ):
        sessions.check_java()


def test_a_java_that_is_too_old_is_named(machine):
    machine("""echo 'openjdk version "11.0.2" 2019-01-15' >&2""")

    with pytest.raises(ParameterError, match="Java 17 or newer, but Java 11 was found"):
        sessions.check_java()


def test_a_java_that_is_recent_enough_is_accepted(machine):
    machine("""echo 'openjdk version "21" 2023-09-19' >&2""")

    sessions.check_java()


def test_a_java_that_is_only_a_stub_is_none(machine):
    machine("echo 'Unable to locate a Java Runtime.' >&2; exit 1")

    assert sessions.java_version() is None


def test_without_pyspark_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)

    with pytest.raises(ParameterError, match=r"needs PySpark: pip install 'shoal-privacy\[spark\]'"):
        sessions.session()


class FromSparkError(Exception):
    """In place of an exception of PySpark, which may not be installed."""


@pytest.fixture
def errors(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.errors", types.SimpleNamespace(PySparkException=FromSparkError))


def raised(text):
    with sessions.speaking():
        raise FromSparkError(text)


def test_workers_without_shoal_are_explained_with_how_to_ship_it(errors):
    with pytest.raises(
        OutageError, match=r"cannot import shoal\. Install shoal-privacy on every node.*venv-pack.*PYSPARK"
    ):
        raised("Traceback ...\nModuleNotFoundError: No module named 'shoal'\n")


def test_workers_of_another_python_are_explained(errors):
    with pytest.raises(OutageError, match="another version of Python"):
        raised("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11")


def test_what_a_worker_refuses_is_raised_as_it_was_said(errors):
    with pytest.raises(GuaranteeError, match=r"^Too few records\. Lower k\.$"):
        raised(
            "Traceback ...\n  File ...\nshoal.errors.GuaranteeError: Too few records. Lower k.\n\n\tat org.apache..."
        )


def test_other_errors_of_spark_stay_as_they_are(errors):
    with pytest.raises(FromSparkError, match="disk is full"):
        raised("the disk is full")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_java_has_started_since_java_would_be_left_behind(errors, monkeypatch, number):
    steps = []

    class Builder:
        def appName(self, name):  # noqa: N802 - the name that PySpark gave it
            return self

        def getOrCreate(self):  # noqa: N802
            signal.raise_signal(number)
            steps.append("started")

    def stopped(*_):
        steps.append("stopped")
        raise KeyboardInterrupt

    spark = types.SimpleNamespace(active=lambda: raised("none"), builder=Builder())
    monkeypatch.setitem(sys.modules, "pyspark.sql", types.SimpleNamespace(SparkSession=spark))
    monkeypatch.setattr(sessions, "check_java", lambda: None)
    before = signal.signal(number, stopped)
    try:
        with pytest.raises(KeyboardInterrupt):
            sessions.session()
    finally:
        signal.signal(number, before)

    assert steps == ["started", "stopped"]
