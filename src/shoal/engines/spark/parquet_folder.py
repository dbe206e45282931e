"""Parquet folder: a release as a folder of Parquet files, on any file system that Spark can write to.

Spark's committer makes the files appear together. The marker ``_SUCCESS`` appears last: after the files have been read
back and recounted, and after the manifests. A folder without it is not a release.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from shoal.engines.spark.spark_frames import Frame
from shoal.errors import FileError
from shoal.files import replacing_all

PUBLIC, INTERNAL = ".public.json", ".internal.json"
"""Ends of the names of the manifests."""

_MARKING = "mapreduce.fileoutputcommitter.marksuccessfuljobs"


class Folder:
    """A folder of Parquet files that Spark writes, reads back and marks as complete."""

    def __init__(self, spark: Any, path: str) -> None:
        self._spark = spark
        self.path = path.rstrip("/")
        self.title = self.path.rsplit("/", 1)[-1]
        self._is_ours = False

    def check_free(self, source: Frame, force: bool) -> None:
        """Refuse a path that is taken, unless it is to be replaced and is not what the source reads."""
        if not force and self.local is not None:
            self._refuse()
        if force and set(self._stored().inputFiles()) & set(source.inputFiles()):
            raise FileError(f"{self.path!r} holds the input, which would be lost. Choose another path for the output.")

    def _refuse(self) -> NoReturn:
        raise FileError(f"{self.path!r} exists. Choose another path, or overwrite it: force=True.") from None

    def write(self, frame: Frame, partition_by: Sequence[str], *, force: bool) -> None:
        """Write the files, without the marker."""
        from pyspark.errors import AnalysisException

        writer = frame.write.mode(_mode(force)).partitionBy(*partition_by).option(_MARKING, "false")
        # Before the end, what is there may still be the release that is to be replaced.
        self._is_ours = not force and self._here is not None
        try:
            writer.parquet(self.path)
        except AnalysisException as error:
            if error.getCondition() != "PATH_ALREADY_EXISTS":
                raise
            self._is_ours = False
            self._refuse()
        self._is_ours = True

    def read(self, schema: Any) -> Frame:
        """Return what is in the files, with the types that were written."""
        return self._spark.read.schema(schema).parquet(self.path)

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of each file, by its path within the folder."""
        found = self._stored().selectExpr("path", "sha2(content, 256) AS digest").toArrow()
        paths = [unquote(path).rsplit(f"/{self.title}/", 1)[-1] for path in found["path"].to_pylist()]
        return dict(sorted(zip(paths, found["digest"].to_pylist(), strict=True)))

    def _stored(self) -> Frame:
        return self._spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(self.path)

    def commit(self, check: Callable[[], None]) -> None:
        """Set the marker: a commit without records, which, split by a column, writes no file."""
        nothing = self._spark.range(0).selectExpr("id", "id AS part")
        nothing.write.mode("append").partitionBy("part").option(_MARKING, "true").parquet(self.path)

    def remove(self) -> None:
        """Remove the files; on a file system that only Spark can reach, an empty table replaces them."""
        if not self._is_ours:
            return
        if self._here is not None:
            shutil.rmtree(self._here, ignore_errors=True)
        else:
            empty = self._spark.read.parquet(self.path).limit(0).write.mode("overwrite").option(_MARKING, "false")
            empty.parquet(self.path)

    def describe(self, texts: Mapping[str, str], *, force: bool) -> list[str]:
        """Write texts beside the folder, by the ends of their names, and return their paths.

        On a file system that only Spark can reach, each is a folder with one text file, since Spark writes folders.
        """
        if self.local is None:
            for ending, text in texts.items():
                one = self._spark.createDataFrame(pa.table({"value": [text]})).coalesce(1)
                one.write.mode(_mode(force)).option("lineSep", "").text(self.path + ending)
            return [self.path + ending for ending in texts]
        paths = {ending: self.local.with_name(self.local.name + ending) for ending in texts}
        with replacing_all(
            paths.values(), force, [paths[ending] for ending in (INTERNAL,) if ending in paths]
        ) as temporaries:
            for text, temporary in zip(texts.values(), temporaries, strict=True):
                temporary.write_text(text, encoding="utf-8")
        return [str(path) for path in paths.values()]

    @property
    def local(self) -> Path | None:
        """The folder, if it is on a file system of this machine and exists."""
        return self._here if self._here is not None and self._here.is_dir() else None

    @property
    def _here(self) -> Path | None:
        parts = urlsplit(self.path)
        path = Path(unquote(parts.path)) if parts.scheme == "file" else Path(self.path)
        return path if parts.scheme in ("", "file") else None


def digest_of(digests: Mapping[str, str]) -> str:
    """Return one SHA-256 for several files: that of the lines that ``sha256sum`` prints for them."""
    return sha256("".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode()).hexdigest()


def _mode(force: bool) -> str:
    return "overwrite" if force else "error"
