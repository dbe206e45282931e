"""A standalone Spark cluster on the loopback interface: a master and workers, each a process of its own.

The processes end with the tests, even if those are killed: each is started by a shell that kills its process group when
the pipe from the tests is closed.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Self

LOOPBACK = "127.0.0.1"
PATIENCE = 180.0
"""Seconds after which a process that has not started is an error."""

UNTIL_THE_PIPE_CLOSES = '"$@" < /dev/null & cat > /dev/null; kill -9 0'


def spark_home():
    """Return the folder of PySpark, which need not be installed where this file is imported."""
    import pyspark

    return Path(pyspark.__file__).parent


class Node(NamedTuple):
    """The process of a master or a worker, and its log."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(cls, log: Path, role: str, *arguments: str) -> Self:
        """Start `org.apache.spark.deploy.ROLE` on a free port."""
        command = [spark_home() / "bin" / "spark-class", f"org.apache.spark.deploy.{role}", *arguments]
        settings = {
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["/bin/sh", "-c", UNTIL_THE_PIPE_CLOSES, "sh", *command, "--host", LOOPBACK, "--port", "0"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **settings},
                start_new_session=True,
            )
        return cls(process, log)

    def wait_for(self, pattern: str) -> str:
        """Return the first group of a pattern as soon as it is in the log."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = re.search(pattern, self.log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[1]
            time.sleep(0.05)
        raise TimeoutError(f"{pattern!r} is not in {self.log} after {PATIENCE:g} seconds.")

    def kill(self) -> None:
        """Kill the process, its executors and their Python workers."""
        self.process.stdin.close()
        self.process.wait()


class Cluster:
    """A master and its workers; a context manager."""

    def __init__(self, folder: Path, n_workers: int = 2, memory: str = "1g") -> None:
        self._folder, self._n_workers, self._memory = folder, n_workers, memory

    def __enter__(self) -> Self:
        self._master = Node.start(self._folder / "master.log", "master.Master", "--webui-port", "0")
        self.workers: list[Node] = []
        try:
            self.url = self._master.wait_for(r"Starting Spark master at (spark://\S+)")
            self.workers = [self._worker(number) for number in range(self._n_workers)]
            for worker in self.workers:
                worker.wait_for(r"(Successfully registered) with master")
        except BaseException:
            self.__exit__()
            raise
        return self

    def _worker(self, number: int) -> Node:
        name = f"worker-{number}"
        options = [
            "--webui-port",
            "0",
            "--cores",
            "1",
            "--memory",
            self._memory,
            "--work-dir",
            str(self._folder / name),
        ]
        return Node.start(self._folder / f"{name}.log", "worker.Worker", *options, self.url)

    def __exit__(self, *_: object) -> None:
        for node in [*self.workers, self._master]:
            node.kill()
