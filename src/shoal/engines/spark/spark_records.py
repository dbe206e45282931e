"""Spark records: the published records of a release stay on the cluster until they are written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

from shoal.engines.spark.engine import ORDER, Made, recounted
from shoal.engines.spark.sessions import at_work, named
from shoal.engines.spark.spark_frames import Frame, digest_of_records, fingerprint, quoted
from shoal.engines.spark.spark_tables import CatalogueTable, Folder, digest_of
from shoal.errors import GuaranteeError, ParameterError
from shoal.files import replacing_all
from shoal.job import Order
from shoal.job.engines import beyond
from shoal.measures.recount import Verdict
from shoal.output.destination import CatalogueAt, Destination, FolderAt
from shoal.output.release import Written

T = TypeVar("T")


class SparkSource(NamedTuple):
    """The DataFrame that was read, and the sums of the hashes of its records, in any order."""

    frame: Frame
    content: tuple[int, ...]

    @property
    def sha256(self) -> str:
        """SHA-256 of the records."""
        return digest_of_records(self.content)

    def check_unchanged(self) -> None:
        """Do nothing: records that change while Spark reads them are noticed when what was written is read back."""


class SparkRecords:
    """The published records, persisted on the cluster; see `shoal.output.release.Records`."""

    engine = "spark"
    is_counted = True
    arrow = cells = None

    def __init__(self, frame: Frame, parts: Made, verdict: Verdict) -> None:
        self.source, self.verdict = SparkSource(frame, parts.content), verdict
        self._parts, self._spark = parts, parts.published.sparkSession
        self._names = [column.name for column in parts.blueprint.schema.published]

    def close(self) -> None:
        """Free the records that are persisted on the cluster; `table` is made anew if it is used later."""
        self._parts.published.unpersist()

    def at_work(self, work: Callable[[], T]) -> T:
        """Return what some work with Spark returns."""
        return at_work(self._spark, work)

    @property
    def table(self) -> Frame:
        """The published DataFrame. In each partition, records are in the order of a hash of their published values."""
        return self._sorted()

    def _sorted(self, *first: str) -> Frame:
        keys = [*map(quoted, first), *ORDER]
        sorted_ones = self._parts.published.repartition(ORDER[0]).sortWithinPartitions(*keys)
        return sorted_ones.select(*map(quoted, self._names))

    def batches(self) -> NoReturn:
        """Raise: `table` has the records."""
        raise beyond(self.engine, "the published records in batches", "they stay on the cluster, as a DataFrame")

    def rows(self, order: Order) -> None:
        """Return nothing: the records are sorted while they are written."""

    @contextmanager
    def begun(self, destination: Destination) -> Iterator[tuple[Folder | CatalogueTable, dict[Path, Path]]]:
        """Yield the table to write and the temporary path of each file of this machine."""
        job, paths, force = self._parts.blueprint.job, destination.paths, destination.force
        place = self._place(destination)
        place.check_free(self.source.frame)
        inputs = [*job.files, *([] if job.input is None else [job.input.path])]
        # What stays on this machine appears before the release does, or not at all.
        commit = partial(place.commit, partial(self._read_back, place))
        with (
            self._removing(place),
            replacing_all(paths, force, destination.private, inputs, commit=commit) as temporaries,
        ):
            yield place, dict(zip(paths, temporaries, strict=True))

    def _place(self, destination: Destination) -> Folder | CatalogueTable:
        asked = destination.table
        assert isinstance(asked, FolderAt | CatalogueAt)
        self._check_split(asked.partition_by)
        if isinstance(asked, FolderAt):
            return Folder(self._spark, asked, destination.force)
        return CatalogueTable(self._spark, asked, destination.force)

    def _check_split(self, split: tuple[str, ...]) -> None:
        for name in split:
            if name not in self._names:
                raise ParameterError(
                    f"The folder is to be split by column {name!r}, which is not published. Published columns: "
                    f"{', '.join(self._names)}."
                )
        if len(split) == len(self._names):
            raise ParameterError("The folder is to be split by all columns, so that no column is left for its files.")

    @contextmanager
    def _removing(self, place: Folder | CatalogueTable) -> Iterator[None]:
        """Let Spark write; unless all goes well, nothing stays."""
        with named(self._spark, "publish what was written"):
            try:
                yield
            except BaseException:
                self._spark.clearTags()  # by which jobs are cancelled
                place.remove()
                raise

    def write(self, table: Folder | CatalogueTable, rows: Any) -> None:
        """Write the published table."""
        with named(self._spark, "write"):
            table.write(self._sorted(*table.asked.partition_by))

    def recount(self, table: Folder | CatalogueTable, rows: Any) -> Written:
        """Recount the guarantees; raise unless what was written, read back, holds the records of the release."""
        with named(self._spark, "recount what was written"):
            written = self._read_back(table)
            # The same records belong to the same persons, which are not named there.
            recounted(written, self._parts.blueprint).require()
            digests = table.digests()
        return Written(digest_of(digests) if digests else digest_of_records(self._fingerprint), digests)

    @cached_property
    def _fingerprint(self) -> tuple[Any, ...]:
        return fingerprint(self._parts.published, self._names)

    def _read_back(self, place: Folder | CatalogueTable) -> Frame:
        """Return what was written; raise unless it holds the records of the release."""
        written = place.read(self._parts.published.select(*map(quoted, self._names)).schema)
        if fingerprint(written, self._names) != self._fingerprint:
            raise GuaranteeError(
                "What was written, read back, does not hold the records that were recounted. It was removed, and "
                "nothing was released. Check the storage, that the input gives the same records each time that it is "
                "read, and, for a table with partition_by, that the catalogue keeps partitions when a table is renamed."
            )
        return written
