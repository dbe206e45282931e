"""Sessions: where Spark comes from, its Python workers, and its errors in the words of shoal."""

import os
import re
import secrets
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import shoal.errors
from shoal.distribution import DISTRIBUTION, install
from shoal.errors import OutageError, ParameterError, ShoalError
from shoal.interrupts import held
from shoal.spelling import setting

T = TypeVar("T")

OLDEST_JAVA = 17

SHIPPING = (
    f"Install {DISTRIBUTION} on every node of the cluster, or ship an environment that holds it: "
    "`venv-pack -o environment.tar.gz`, then `spark-submit --archives environment.tar.gz#environment` with "
    "PYSPARK_PYTHON=environment/bin/python. In local mode, set PYSPARK_PYTHON to this interpreter before the session "
    "is created."
)
"""How Python workers get shoal."""

_DESCRIPTION, _GROUP = "spark.job.description", "spark.jobGroup.id"
"""Properties of a thread that Spark's user interface shows of its jobs."""


def session() -> Any:
    """Return the session that there is, as it is, or make one from Spark's own configuration."""
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise ParameterError(f"The Spark engine needs PySpark: {install('spark')}.") from error
    with suppress(PySparkException):
        return SparkSession.active()
    if "SPARK_REMOTE" not in os.environ:
        check_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with held():  # a Java process that PySpark abandons while it starts never ends
        return SparkSession.builder.appName("shoal").getOrCreate()


def check_java() -> None:
    """Raise unless there is a Java that Spark can run on."""
    found = java_version()
    if found is None or found < OLDEST_JAVA:
        there = "no Java was found" if found is None else f"Java {found} was found"
        raise ParameterError(
            f"The Spark engine needs Java {OLDEST_JAVA} or newer, but {there}. Install it (Debian, Ubuntu: apt install "
            "default-jre-headless; macOS: brew install openjdk) or set JAVA_HOME. A table on one machine needs neither "
            f"Spark nor Java: {setting('engine', 'disk')}."
        )


def java_version() -> int | None:
    """Return the version of the Java that Spark would start, or None if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        return None
    try:
        # On macOS, `java` exists without a Java behind it.
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else None


def at_work(spark: Any, work: Callable[[], T]) -> T:
    """Return what some work with Spark returns; if the wait for it is interrupted, its jobs are cancelled.

    The work has a thread of its own, and with it a connection to Java. PySpark closes one that is interrupted while it
    waits for an answer: the job behind it goes on, and what should be freed or removed is not.
    """
    from pyspark import InheritableThread

    tag, done = f"shoal-{secrets.token_hex(8)}", Future[T]()

    def act() -> None:
        spark.addTag(tag)
        try:
            with speaking(), this_interpreter(spark):
                done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    thread = InheritableThread(target=act, session=spark)
    thread.start()
    try:
        thread.join()
    except BaseException:
        while thread.is_alive():  # it may be about to start another job
            spark.interruptTag(tag)
            thread.join(0.2)
        raise
    return done.result()


def check_versions(ours: str, theirs: Collection[str]) -> None:
    """Raise if Python workers have another version of shoal than the driver."""
    if set(theirs) != {ours}:
        raise ParameterError(
            f"The driver has shoal {ours}, but Python workers of the cluster have {', '.join(sorted(theirs))}. "
            "Install the same version everywhere, since another version may make other cells."
        )


@contextmanager
def this_interpreter(spark: Any) -> Iterator[None]:
    """Let the Python workers of a local session use this interpreter, unless the user chose another."""
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none
    if context is None or not context.master.startswith("local") or "PYSPARK_PYTHON" in os.environ:
        yield
        return
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        yield
    finally:
        context.pythonExec = before


@contextmanager
def named(spark: Any, stage: str) -> Iterator[None]:
    """Name the jobs of a stage in Spark's user interface: by their description and group, or by a tag of Spark Connect.

    A group that the user has set stays: it may be there to cancel what belongs to it.
    """
    context, name = getattr(spark, "_sc", None), f"shoal: {stage}"
    if context is None:
        spark.addTag(name)
        try:
            yield
        finally:
            spark.removeTag(name)
        return
    before = {each: context.getLocalProperty(each) for each in (_DESCRIPTION, _GROUP)}
    context.setLocalProperty(_DESCRIPTION, name)
    context.setLocalProperty(_GROUP, before[_GROUP] or "shoal")
    try:
        yield
    finally:
        for each, value in before.items():
            context.setLocalProperty(each, value)


@contextmanager
def speaking() -> Iterator[None]:
    """Raise what a Python worker refused as the error that it was, and explain workers without shoal."""
    from pyspark.errors import PySparkException

    try:
        with warnings.catch_warnings():
            # It warns of pandas objects, and shoal makes none.
            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
            yield
    except PySparkException as error:
        raise _in_words(str(error)) or error from None


def _in_words(said: str) -> ShoalError | None:
    """Return the error of shoal in what Spark said, or None if there is none."""
    raised = re.findall(r"^shoal\.errors\.(\w+): (.*)$", said, re.MULTILINE)
    if raised:
        name, message = raised[-1]
        kind: type[ShoalError] = getattr(shoal.errors, name)
        return kind(message)
    missing = re.search(r"No module named '(shoal|pyarrow|numpy)", said)
    if missing:
        return OutageError(f"The Python workers of Spark cannot import {missing[1]}. {SHIPPING}")
    if "PYTHON_VERSION_MISMATCH" in said:
        return OutageError(f"The Python workers of Spark run another version of Python than the driver. {SHIPPING}")
    return None
