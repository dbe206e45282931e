"""Release: from a Spark DataFrame to one that may be published.

DataFrame -> checks -> blueprint -> cells and published records -> recount -> SparkRelease
"""

import os
import secrets
import warnings as python_warnings
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from shoal.auditing import Verdict
from shoal.blocks.block_records import carried, check_column_names
from shoal.blocks.block_release import BlockRelease
from shoal.blocks.limits import check_limits
from shoal.columns.schema import Schema, as_names
from shoal.errors import GuaranteeError, ParameterError, SchemaError, ShoalWarning
from shoal.files import replacing_all
from shoal.job import Job
from shoal.job_checks import check_job, check_late
from shoal.manifest import as_text, internal_manifest, public_manifest
from shoal.models import Model
from shoal.output_places import check_reports
from shoal.report import FORMATS, Form, gather
from shoal.spark.engine import ORDER, Made, fitted, made, recounted
from shoal.spark.parquet_folder import Folder, digest_of
from shoal.spark.sessions import speaking, use_this_interpreter
from shoal.spark.spark_frames import Frame, fingerprint, quoted, types_of
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
        cannot be kept in blocks (`shoal.blocks.limits.LIMITS`).
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
    itself shows how far a stage is.
    """
    schema = check_spark_job(job, frame)
    use_this_interpreter(frame.sparkSession)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    with speaking():
        wanted = frame.select(*map(quoted, carried(schema)))
        blueprint = fitted(wanted, job, schema)
        n_records = blueprint.n_records
        report = progress or (lambda done, total: None)
        report(0, n_records)
        parts = made(wanted, blueprint)
        report(n_records * 9 // 10, n_records)
        try:
            release = SparkRelease(parts, recounted(parts.published, parts.blueprint))
            report(n_records, n_records)
            release.verdict.require()
            release.review()
        except BaseException:
            parts.published.unpersist()
            raise
    for text in release.warnings:
        python_warnings.warn(text, ShoalWarning, stacklevel=3)
    return release


def check_spark_job(job: Job, frame: Frame) -> Schema:
    """Return the schema of a DataFrame, or raise if the job cannot be done on it, whatever its records are."""
    _check_frame(frame)
    if job.memory is not None:
        raise ParameterError("memory limits the engine 'disk', but the engine 'spark' is asked for. Leave one out.")
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

    def __init__(self, parts: Made, verdict: Verdict) -> None:
        super().__init__(parts.blueprint, parts.measured)
        self._parts, self._verdict = parts, verdict

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
        path: str,
        *,
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
        """Write the release as a folder of Parquet files, with its two manifests and, optionally, its report.

        Parameters
        ----------
        path : str
            The folder, on any file system that Spark can write to. Beside it are ``PATH.public.json``, which may be
            published with the data, and ``PATH.internal.json``, which must be kept private.
        partition_by : sequence of str
            Published columns that split the folder.
        report, json, save_job : path, optional
            HTML and JSON file for the report, and TOML file for the job with its seed, on the machine of the driver.
        form, title, author, date
            As in `shoal.Release.write`.
        force : bool
            Overwrite an existing release; Spark removes it first.

        Returns
        -------
        list of str
            The paths, the folder first.

        Raises
        ------
        FileError
            If something exists already or cannot be written.
        GuaranteeError
            If the files, read back, do not hold the records that were recounted. They are removed.
        """
        split = as_names(partition_by)
        self._check_split(split)
        check_reports(report, json, form, title=title, author=author, date=date)
        reports = {name: Path(each) for name, each in (("html", report), ("json", json)) if each is not None}
        facts = (
            gather(self, form, title=title, author=author, date=date, file=path.rsplit("/", 1)[-1]) if reports else {}
        )
        local = [*reports.values(), *([] if save_job is None else [Path(save_job)])]
        folder = Folder(self._parts.published.sparkSession, path)
        # What stays on this machine appears with the manifests, or not at all.
        private = local if form == "internal" else local[len(reports) :]
        with speaking(), replacing_all(local, force, private) as beside:
            folder.write(self._sorted(*split), split, force=force)
            try:
                self._recount(folder)
                digests = folder.digests()
                output = digest_of(digests)
                texts = [FORMATS[name]({**facts, "sha256": output}) for name in reports]
                for temporary, text in zip(beside, [*texts, self.job.to_toml()], strict=False):
                    temporary.write_text(text, encoding="utf-8")
                written = folder.write_beside(self._manifests(output, digests), [".internal.json"], force=force)
            except BaseException:
                folder.remove()
                raise
            folder.mark()
        return [path, *written, *map(str, local)]

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

    def _recount(self, folder: Folder) -> None:
        """Raise unless the files, read back, hold the records of the release and keep every guarantee."""
        names = [column.name for column in self.schema.published]
        written = folder.read(self._parts.published.select(*map(quoted, names)).schema)
        if fingerprint(written, names) != fingerprint(self._parts.published, names):
            raise GuaranteeError(
                "The written files, read back, do not hold the records that were recounted. They were removed, and "
                "nothing was released. Check the storage, and that the input gives the same records each time that it "
                "is read."
            )
        # The same records belong to the same persons, which the files do not name.
        recounted(written, self._blueprint).require()

    def _manifests(self, output: str, digests: Mapping[str, str]) -> dict[str, str]:
        """Return the texts of both manifests, by the ends of their names."""
        files = {"files": dict(digests)}
        public = public_manifest(self.job, output, self.verdict, self.codebook)
        source = sha256(repr(self._parts.content).encode()).hexdigest()
        internal = internal_manifest(self.job, source, output, None, None, self.verdict, self.measures)
        return {".public.json": as_text(public | files), ".internal.json": as_text(internal | files)}
