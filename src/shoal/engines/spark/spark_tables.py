"""Spark tables: what Spark writes a release to, a folder of Parquet files or a table of its catalogue."""

import secrets
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from shoal.engines.spark.spark_frames import Frame, quoted
from shoal.errors import DatabaseError, FileError
from shoal.files import replacing_all, write_text
from shoal.output.destination import INTERNAL, PUBLIC, CatalogueAt, FolderAt
from shoal.spelling import setting

MANIFEST = "shoal.output.manifest"
"""Property of a table that holds its public manifest."""

_TABLES = ("MANAGED", "EXTERNAL")
_MARKING = "mapreduce.fileoutputcommitter.marksuccessfuljobs"


class Folder:
    """A folder of Parquet files, on any file system that Spark can write to.

    Spark's committer makes the files appear together. The marker ``_SUCCESS`` appears last: after the files have been
    read back and recounted, and after the manifests. A folder without it is not a release.
    """

    def __init__(self, spark: Any, asked: FolderAt, force: bool) -> None:
        self._spark, self.asked, self.path, self._force = spark, asked, asked.path, force
        self._is_ours = False

    def check_free(self, source: Frame) -> None:
        """Refuse a path that is taken, unless it is to be replaced and is not what the source reads."""
        if not self._force and self.local is not None:
            self._refuse()
        if self._force and set(self._stored().inputFiles()) & set(source.inputFiles()):
            raise FileError(f"{self.path!r} holds the input, which would be lost. Choose another path for the output.")

    def _refuse(self) -> NoReturn:
        raise FileError(
            f"{self.path!r} exists. Choose another path, or overwrite it: {setting('force', True)}."
        ) from None

    def write(self, frame: Frame) -> None:
        """Write the files, without the marker."""
        from pyspark.errors import AnalysisException

        writer = frame.write.mode(self._mode).partitionBy(*self.asked.partition_by).option(_MARKING, "false")
        # Before the end, what is there may still be the release that is to be replaced.
        self._is_ours = not self._force and self._here is not None
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
        paths = [unquote(path).rsplit(f"/{self.asked.name}/", 1)[-1] for path in found["path"].to_pylist()]
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

    def describe(self, manifests: Mapping[str, str], output: str) -> None:
        """Write manifests beside the folder, by the ends of their names.

        On a file system that only Spark can reach, each is a folder with one text file, since Spark writes folders.
        """
        if self.local is None:
            for ending, text in manifests.items():
                one = self._spark.createDataFrame(pa.table({"value": [text]})).coalesce(1)
                one.write.mode(self._mode).option("lineSep", "").text(self.path + ending)
            return
        paths = {ending: self.local.with_name(self.local.name + ending) for ending in manifests}
        private = [paths[ending] for ending in (INTERNAL,) if ending in paths]
        with replacing_all(paths.values(), self._force, private) as temporaries:
            for text, temporary in zip(manifests.values(), temporaries, strict=True):
                write_text(temporary, text)

    @property
    def _mode(self) -> str:
        return "overwrite" if self._force else "error"

    @property
    def local(self) -> Path | None:
        """The folder, if it is on a file system of this machine and exists."""
        return self._here if self._here is not None and self._here.is_dir() else None

    @property
    def _here(self) -> Path | None:
        parts = urlsplit(self.path)
        path = Path(unquote(parts.path)) if parts.scheme == "file" else Path(self.path)
        return path if parts.scheme in ("", "file") else None


class CatalogueTable:
    """A new table of Spark's catalogue.

    It is written under a hidden name, read back and recounted there, gets its public manifest among its properties, and
    its own name last. A table that it replaces keeps its records until then.
    """

    def __init__(self, spark: Any, asked: CatalogueAt, force: bool) -> None:
        self._spark, self.asked, self._force = spark, asked, force
        *self._where, self._name = asked.parts
        self._hidden = quoted(f"_shoal_{secrets.token_hex(8)}")

    def _sql(self, name: str) -> str:
        return ".".join([*self._where, name])

    def check_free(self, source: Frame) -> None:
        """Refuse a name that is taken, unless its table is to be replaced and is not what the source reads."""
        if not self._exists(self._name):
            return
        name, asked = self._sql(self._name), f"The table {self.asked.asked!r}"
        if self._spark.catalog.getTable(name).tableType not in _TABLES:
            raise DatabaseError(f"{asked} exists as a view. Choose another name.")
        if not self._force:
            raise DatabaseError(f"{asked} exists. Choose another name, or overwrite it: {setting('force', True)}.")
        if set(self._spark.table(name).inputFiles()) & set(source.inputFiles()):
            raise DatabaseError(f"{asked} is the input, which would be lost. Choose another name for the output.")

    def write(self, frame: Frame) -> None:
        """Write the records under a hidden name, in the format that Spark gives to tables.

        The table is there before its records: of one that is made with them, a failure would leave a folder behind.
        """
        from pyspark.errors import AnalysisException

        try:
            for records in (frame.limit(0), frame):
                writer = records.write.mode("append").partitionBy(*self.asked.partition_by)
                writer.saveAsTable(self._sql(self._hidden))
        except AnalysisException as error:
            raise DatabaseError(f"The table {self.asked.asked!r} cannot be written: {error.getCondition()}.") from None

    def read(self, schema: Any) -> Frame:
        """Return the records as the catalogue returns them."""
        name = self._hidden if self._exists(self._hidden) else self._name
        return self._spark.table(self._sql(name)).select(*map(quoted, schema.names))

    def _exists(self, name: str) -> bool:
        return bool(self._spark.catalog.tableExists(self._sql(name)))

    def digests(self) -> dict[str, str]:
        """Return nothing: a table is known by its records, not by its files."""
        return {}

    def describe(self, manifests: Mapping[str, str], output: str) -> None:
        """Keep the public manifest among the properties of the table."""
        # JSON has another spelling of what ends a raw text of SQL, and of what Spark takes for a variable.
        text = manifests[PUBLIC].replace("'", r"\u0027").replace("$", r"\u0024")
        self._spark.sql(f"ALTER TABLE {self._sql(self._hidden)} SET TBLPROPERTIES ('{MANIFEST}' = r'{text}')")

    def commit(self, check: Callable[[], None]) -> None:
        """Give the table its name, and check it once more; one that has it is dropped afterwards, or gets it back.

        What leaves counts, and not every catalogue lets partitions follow their table.
        """
        older = quoted(f"{self._hidden[1:-1]}_older")
        try:
            if self._force and self._exists(self._name):
                self._rename(self._name, older)
            self._rename(self._hidden, self._name)
            check()
        except BaseException:
            if not self._exists(self._hidden):
                self._rename(self._name, self._hidden)
            if self._exists(older):
                self._rename(older, self._name)
            raise
        self._spark.sql(f"DROP TABLE IF EXISTS {self._sql(older)}")

    def _rename(self, name: str, other: str) -> None:
        # Without its database, where a table stays: not every catalogue accepts one here.
        self._spark.sql(f"ALTER TABLE {self._sql(name)} RENAME TO {other}")

    def remove(self) -> None:
        """Remove what was written."""
        self._spark.sql(f"DROP TABLE IF EXISTS {self._sql(self._hidden)}")


def digest_of(digests: Mapping[str, str]) -> str:
    """Return one SHA-256 for several files: that of the lines that ``sha256sum`` prints for them."""
    return sha256("".join(f"{digest}  {name}\n" for name, digest in digests.items()).encode()).hexdigest()
