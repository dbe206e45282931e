"""Catalogue table: a release as a new table of Spark's catalogue.

It is written under a hidden name, read back and recounted there, gets its public manifest among its properties, and its
own name last. A table that it replaces keeps its records until then.
"""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shoal.engines.spark.parquet_folder import PUBLIC
from shoal.engines.spark.spark_frames import Frame, quoted
from shoal.errors import DatabaseError, ParameterError

MANIFEST = "shoal.output.manifest"
"""Property of a table that holds its public manifest."""

_PART = r"(?:`(?:[^`]|``)+`|[^`.]+)"
_TABLES = ("MANAGED", "EXTERNAL")


class CatalogueTable:
    """A table that Spark writes, reads back and names."""

    def __init__(self, spark: Any, name: str) -> None:
        if re.fullmatch(rf"{_PART}(?:\.{_PART})*", name) is None:
            raise ParameterError(
                f"{name!r} is not the name of a table. Give TABLE, DATABASE.TABLE or CATALOG.DATABASE.TABLE; a part "
                "that holds a dot or a backtick stands in backticks, as in Spark: `a.b`."
            )
        *self._where, last = (each if each[0] == "`" else quoted(each) for each in re.findall(_PART, name))
        self._spark, self.title, self._asked = spark, last[1:-1].replace("``", "`"), f"The table {name!r}"
        self._name, self._hidden = last, quoted(f"_shoal_{secrets.token_hex(8)}")

    def _sql(self, name: str) -> str:
        return ".".join([*self._where, name])

    def check_free(self, source: Frame, force: bool) -> None:
        """Refuse a name that is taken, unless its table is to be replaced and is not what the source reads."""
        if not self._exists(self._name):
            return
        name = self._sql(self._name)
        if self._spark.catalog.getTable(name).tableType not in _TABLES:
            raise DatabaseError(f"{self._asked} exists as a view. Choose another name.")
        if not force:
            raise DatabaseError(f"{self._asked} exists. Choose another name, or overwrite it: force=True.")
        if set(self._spark.table(name).inputFiles()) & set(source.inputFiles()):
            raise DatabaseError(f"{self._asked} is the input, which would be lost. Choose another name for the output.")

    def write(self, frame: Frame, partition_by: Sequence[str], *, force: bool) -> None:
        """Write the records under a hidden name, in the format that Spark gives to tables.

        The table is there before its records: of one that is made with them, a failure would leave a folder behind.
        """
        from pyspark.errors import AnalysisException

        self._force = force
        try:
            for records in (frame.limit(0), frame):
                writer = records.write.mode("append").partitionBy(*partition_by)
                writer.saveAsTable(self._sql(self._hidden))
        except AnalysisException as error:
            raise DatabaseError(f"{self._asked} cannot be written: {error.getCondition()}.") from None

    def read(self, schema: Any) -> Frame:
        """Return the records as the catalogue returns them."""
        name = self._hidden if self._exists(self._hidden) else self._name
        return self._spark.table(self._sql(name)).select(*map(quoted, schema.names))

    def _exists(self, name: str) -> bool:
        return bool(self._spark.catalog.tableExists(self._sql(name)))

    def digests(self) -> dict[str, str]:
        """Return nothing: a table is known by its records, not by its files."""
        return {}

    def describe(self, texts: Mapping[str, str], *, force: bool) -> list[str]:
        """Keep the public manifest among the properties of the table."""
        # JSON has another spelling of what ends a raw text of SQL, and of what Spark takes for a variable.
        text = texts[PUBLIC].replace("'", r"\u0027").replace("$", r"\u0024")
        self._spark.sql(f"ALTER TABLE {self._sql(self._hidden)} SET TBLPROPERTIES ('{MANIFEST}' = r'{text}')")
        return []

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
