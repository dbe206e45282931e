"""Release: from a Spark DataFrame to one that may be published.

DataFrame -> checks -> blueprint -> cells and published records -> recount -> SparkRelease
"""

import os
import secrets
import warnings as python_warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

from shoal.columns.schema import Schema, as_names
from shoal.engines.blocks.block_records import carried, check_column_names
from shoal.engines.blocks.block_release import BlockRelease
from shoal.engines.blocks.limits import check_limits
from shoal.engines.spark.catalogue_table import CatalogueTable
from shoal.engines.spark.engine import ORDER, Made, make, recounted
from shoal.engines.spark.parquet_folder import INTERNAL, PUBLIC, Folder, digest_of
from shoal.engines.spark.sessions import at_work, named
from shoal.engines.spark.spark_frames import Frame, digest_of_records, fingerprint, quoted, types_of
from shoal.errors import GuaranteeError, ParameterError, SchemaError, ShoalWarning
from shoal.files import replacing_all
from shoal.job import Job
from shoal.job.checks import check_job, check_late, check_memory
from shoal.measures.recount import Verdict
from shoal.models import Model
from shoal.output.manifest import as_text, internal_manifest, public_manifest
from shoal.output.places import check_reports
from shoal.output.report import FORMATS, Form, gather
from shoal.typing import Names, Progress, Seed


def anonymize(
    frame: Frame,
    *,
    k: int,
    quasi_identifiers: Names = (),
    identifiers: Names = (),
    confidential: Names = (),
    other: Names = (),
    by: Names = (),
    subject: str | None = None,
    weights: str | None = None,
    columns: Mapping[str, Any] | None = None,
    models: Sequence[Model] | Model = (),
    accept: Names = (),
    scaling: str = "zscore",
    missing: str = "error",
    seed: Seed = None,
) -> "SparkRelease":
    """Make a Spark DataFrame k-anonymous by microaggregation, on its cluster.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
        The table, classic or of Spark Connect. Not changed. Its records must be the same each time that Spark reads
        them.
    k, quasi_identifiers, identifiers, confidential, other, by, subject, weights, columns, models, accept, scaling, \
missing, seed
        As in `shoal.anonymize`.

    Returns
    -------
    SparkRelease
        The published DataFrame with its verdict, loss and risk. It is persisted on the cluster until it is closed.

    Raises
    ------
    ParameterError, SchemaError, GuaranteeError
        As in `shoal.anonymize`; also if `frame` is no DataFrame or a streaming one, or if a setting is asked for that
        cannot be kept in blocks (`shoal.engines.blocks.limits.LIMITS`).
    OutageError
        If the Python workers of the cluster cannot import shoal.

    Notes
    -----
    The records never come to the driver; it holds statistics and a sample. Takes O(n log n) time in records. With the
    same seed, the published records are those of the disk engine, whatever the cluster.
    """
    roles = {
        "quasi_identifiers": as_names(quasi_identifiers),
        "identifiers": as_names(identifiers),
        "confidential": as_names(confidential),
        "other": as_names(other),
        "by": as_names(by),
        "subject": subject,
        "weights": weights,
    }
    job = Job.of(
        k=k,
        scaling=scaling,
        missing=missing,
        seed=seed,
        roles=roles,
        columns=dict(columns or {}),
        models=models,
        accept=as_names(accept),
    )
    return execute_job(job, frame)


def execute_job(job: Job, frame: Frame, progress: Progress | None = None) -> "SparkRelease":
    """Make the release that a job describes from a DataFrame.

    Progress is reported once all records were counted, once their cells are made, and once these were recounted: Spark
    itself shows how far a stage is. It is reported from the thread that works, not from that of the caller.
    """
    schema = check_spark_job(job, frame)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    release = at_work(frame.sparkSession, lambda: _released(job, frame, schema, progress))
    for text in release.warnings:
        python_warnings.warn(text, ShoalWarning, stacklevel=3)
    return release


def _released(job: Job, frame: Frame, schema: Schema, progress: Progress | None) -> "SparkRelease":
    parts = make(job, frame.select(*map(quoted, carried(schema))), schema, progress)
    n_records = parts.blueprint.n_records
    report = progress or (lambda done, total: None)
    try:
        report(n_records * 9 // 10, n_records)
        release = SparkRelease(frame, parts, recounted(parts.published, parts.blueprint))
        report(n_records, n_records)
        release.verdict.require()
        release.review()
    except BaseException:
        parts.published.unpersist()
        raise
    return release


def check_spark_job(job: Job, frame: Frame) -> Schema:
    """Return the schema of a DataFrame, or raise if the job cannot be done on it, whatever its records are."""
    _check_frame(frame)
    check_memory(job)
    check_late(job)
    schema = Schema.of(types_of(frame), job.roles, job.columns)
    check_job(job, schema)
    check_limits(job, schema, "spark")
    return schema


def _check_frame(frame: Frame) -> None:
    """Refuse what is no DataFrame, and what Spark cannot process in the way that is needed."""
    if not hasattr(frame, "mapInArrow"):
        raise ParameterError(
            f"shoal.spark.anonymize takes a Spark DataFrame; got {type(frame).__name__}. Use shoal.anonymize for other "
            "tables, or spark.createDataFrame."
        )
    if frame.isStreaming:
        raise ParameterError(
            "A streaming DataFrame was given, but a release needs all of its records at once. Use `shoal stream` or "
            "shoal.Stream for records that never end, or read the table without readStream."
        )
    check_column_names(frame.columns)
    for name in frame.columns:
        if "." in name or "`" in name:
            raise SchemaError(
                f"Column {name!r} has a dot or a backtick in its name, which Spark cannot pass to Python. Rename it: "
                "withColumnRenamed."
            )
    lowered = [name.lower() for name in frame.columns]
    twice = [name for name in frame.columns if lowered.count(name.lower()) > 1]
    if twice:
        raise SchemaError(f"Spark does not tell these columns apart: {', '.join(map(repr, twice))}. Rename them.")


class SparkRelease(BlockRelease):
    """A DataFrame that may be published, with its verdict and measures. A context manager, which closes it.

    Loss, classes and uniqueness are those of all records; linkage and utility are measured on a sample.
    """

    def __init__(self, source: Frame, parts: Made, verdict: Verdict) -> None:
        super().__init__(parts.blueprint, parts.measured)
        self._source, self._parts, self._verdict = source, parts, verdict

    def __repr__(self) -> str:
        verdict = self.verdict
        return (
            f"SparkRelease(k={self.job.k}, {'holds' if verdict.holds else 'does not hold'}: {verdict.n_records:,} "
            f"records x {len(self.schema.published)} columns in {verdict.n_classes:,} classes of at least "
            f"{verdict.smallest:,}, information loss {self.loss.il:.4g} %)"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the records that are persisted on the cluster; `table` is made anew if it is used later."""
        self._parts.published.unpersist()

    @property
    def verdict(self) -> Verdict:
        """The guarantees of the published records, recounted."""
        return self._verdict

    @property
    def table(self) -> Frame:
        """The published DataFrame. In each partition, records are in the order of a hash of their published values."""
        return self._sorted()

    def _sorted(self, *first: str) -> Frame:
        keys = [*map(quoted, first), *ORDER]
        sorted_ones = self._parts.published.repartition(ORDER[0]).sortWithinPartitions(*keys)
        return sorted_ones.select(*(quoted(column.name) for column in self.schema.published))

    def write(
        self,
        path: str | None = None,
        *,
        to_table: str | None = None,
        manifest: str | os.PathLike[str] | None = None,
        partition_by: Names = (),
        report: str | os.PathLike[str] | None = None,
        form: Form = "internal",
        json: str | os.PathLike[str] | None = None,
        title: str | None = None,
        author: str | None = None,
        date: str | None = None,
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
    ) -> list[str]:
        """Write the release as a folder of Parquet files or a table, with its manifests and, optionally, its report.

        Parameters
        ----------
        path : str, optional
            The folder, on any file system that Spark can write to. Beside it are ``PATH.public.json``, which may be
            published with the data, and ``PATH.internal.json``, which must be kept private.
        to_table : str, optional
            In place of a folder, a new table of Spark's catalogue, such as ``"db.people"``. Its property
            ``shoal.output.manifest`` holds the public manifest.
        manifest : path, optional
            JSON file for the internal manifest on the machine of the driver; by default beside the folder, and for a
            table ``TABLE.internal.json`` in the current folder.
        partition_by : sequence of str
            Published columns that split the folder or the table.
        report, json, save_job : path, optional
            HTML and JSON file for the report, and TOML file for the job with its seed, on the machine of the driver.
        form, title, author, date
            As in `shoal.Release.write`.
        force : bool
            Overwrite an existing release. Spark removes a folder before it writes; a table is replaced at the end. What
            Spark knows to be the input is never overwritten.

        Returns
        -------
        list of str
            The paths, the folder first.

        Raises
        ------
        FileError, DatabaseError
            If something exists already or cannot be written.
        GuaranteeError
            If the files or the table, read back, do not hold the records that were recounted. They are removed.
        """
        split = as_names(partition_by)
        self._check_split(split)
        check_reports(report, json, form, title=title, author=author, date=date)
        place = self._place(path, to_table)
        place.check_free(self._source, force)
        if manifest is None and to_table is not None:
            manifest = f"{place.title.replace(os.sep, '_')}.internal.json"
        reports = {name: Path(each) for name, each in (("html", report), ("json", json)) if each is not None}
        facts = gather(self, form, title=title, author=author, date=date, file=place.title) if reports else {}
        others = [Path(each) for each in (save_job, manifest) if each is not None]
        local = [*reports.values(), *others]
        private = local if form == "internal" else others
        inputs = [*self.job.files, *([] if self.job.input is None else [self.job.input.path])]

        def made_texts(output: str, manifests: dict[str, str]) -> list[str]:
            texts = [FORMATS[name]({**facts, "sha256": output}) for name in reports]
            texts += [self.job.to_toml()] if save_job is not None else []
            return texts + ([manifests.pop(INTERNAL)] if manifest is not None else [])

        def work() -> list[str]:
            # What stays on this machine appears before the release does, or not at all.
            commit = partial(place.commit, partial(self._read_back, place))
            with self._writing(place), replacing_all(local, force, private, inputs, commit=commit) as beside:
                with named(self._spark, "write"):
                    place.write(self._sorted(*split), split, force=force)
                with named(self._spark, "recount what was written"):
                    output, manifests = self._recounted(place)
                    for temporary, text in zip(beside, made_texts(output, manifests), strict=True):
                        temporary.write_text(text, encoding="utf-8")
                    return place.describe(manifests, force=force)

        written = at_work(self._spark, work)
        return [*([] if path is None else [path]), *written, *map(str, local)]

    @property
    def _spark(self) -> Any:
        return self._parts.published.sparkSession

    def _place(self, path: str | None, to_table: str | None) -> Folder | CatalogueTable:
        if path is None and to_table is not None:
            return CatalogueTable(self._spark, to_table)
        if path is not None and to_table is None:
            return Folder(self._spark, path)
        raise ParameterError(
            "A release on Spark goes either to a folder, write(PATH), or to a table of the catalogue, "
            'write(to_table="db.people"). Give one of them.'
        )

    @contextmanager
    def _writing(self, place: Folder | CatalogueTable) -> Iterator[None]:
        """Let Spark write; unless all goes well, nothing stays."""
        with named(self._spark, "publish what was written"):
            try:
                yield
            except BaseException:
                self._spark.clearTags()  # by which jobs are cancelled
                place.remove()
                raise

    def _check_split(self, split: list[str]) -> None:
        published = [column.name for column in self.schema.published]
        for name in split:
            if name not in published:
                raise ParameterError(
                    f"The folder is to be split by column {name!r}, which is not published. Published columns: "
                    f"{', '.join(published)}."
                )
        if len(split) == len(published):
            raise ParameterError("The folder is to be split by all columns, so that no column is left for its files.")

    @cached_property
    def _fingerprint(self) -> tuple[Any, ...]:
        return fingerprint(self._parts.published, [column.name for column in self.schema.published])

    def _read_back(self, place: Folder | CatalogueTable) -> Frame:
        """Return what was written; raise unless it holds the records of the release."""
        names = [column.name for column in self.schema.published]
        written = place.read(self._parts.published.select(*map(quoted, names)).schema)
        if fingerprint(written, names) != self._fingerprint:
            raise GuaranteeError(
                "What was written, read back, does not hold the records that were recounted. It was removed, and "
                "nothing was released. Check the storage, that the input gives the same records each time that it is "
                "read, and, for a table with partition_by, that the catalogue keeps partitions when a table is renamed."
            )
        return written

    def _recounted(self, place: Folder | CatalogueTable) -> tuple[str, dict[str, str]]:
        """Return a SHA-256 of what was written, and the texts of both manifests by the ends of their names.

        Raise unless what was written, read back, holds the records of the release and keeps every guarantee.
        """
        written = self._read_back(place)
        # The same records belong to the same persons, which are not named there.
        recounted(written, self._blueprint).require()
        digests = place.digests()
        output = digest_of(digests) if digests else digest_of_records(self._fingerprint)
        files = {"files": digests} if digests else {}
        public = public_manifest(self.job, output, self.verdict, self.codebook)
        source = digest_of_records(self._parts.content)
        internal = internal_manifest(self.job, source, output, None, None, self.verdict, self.measures)
        return output, {PUBLIC: as_text(public | files), INTERNAL: as_text(internal | files)}
