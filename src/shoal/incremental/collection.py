"""Collection: a release in preparation, on disk. Begin with the records that have arrived, add late ones, finish.

`begin` fixes columns, roles, k and the space, and partitions the base; `add` stores late records; `finish` joins them
and makes the release. There is only one, since two releases of overlapping records can be intersected; with a key, the
further ones are editions of a series after it (docs/incremental.md).
"""

import hashlib
import os
import secrets
import warnings
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal import kernels
from shoal.aggregate import Cells
from shoal.columns.prepare import CAST_ERRORS, listed_categories, prepare
from shoal.columns.schema import Role, Roles, Schema
from shoal.constraints.constraints import boundaries_of
from shoal.constraints.strata import strata_of
from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError, ShoalWarning, listed
from shoal.incremental import variant_of
from shoal.incremental.growth import category_warnings, drift, extended, moved, refuse_new_ranks
from shoal.incremental.repeats import content_of, overlap, record_keys
from shoal.incremental.store import Store
from shoal.incremental.two_stage_cells import ANY_SIZE, Task, all_cells, base_cells
from shoal.job import Job, Late, Writing
from shoal.job.checks import (
    Prepared,
    column_findings,
    column_views,
    prepared,
    published_unchanged,
    refuse_link,
    role_findings,
    survey_weights,
)
from shoal.methods import algorithm_of
from shoal.output.destination import Destination
from shoal.output.release import Release
from shoal.release import conclude, continue_series
from shoal.series.cells_file import CellsOfRelease
from shoal.series.part_of_series import IN_PYTHON, begun
from shoal.sources import Table, read
from shoal.sources.reading import as_reading
from shoal.space.space import Space
from shoal.spelling import named, setting
from shoal.typing import Progress

ARRAYS = ("cells", "groups", "neighbours")
"""Arrays that `base_cells` returns and `all_cells` takes."""


class Collection:
    """A collection in a folder; see `begin` and `Collection.open`.

    Examples
    --------
    >>> import tempfile
    >>> early = pa.table({"age": [20, 21, 40, 44], "party": ["a", "b", "a", "b"]})
    >>> late = pa.table({"age": [22, 42], "party": ["b", "a"]})
    >>> folder = Path(tempfile.mkdtemp()) / "collection"
    >>> collection = begin(folder, early, k=2, quasi_identifiers=["age"], confidential=["party"], seed=1)
    >>> collection.add(late)
    >>> release = Collection.open(folder).finish()
    >>> release.table["age"].to_pylist()
    [21.0, 21.0, 42.0, 42.0, 21.0, 42.0]
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.job = Job.from_toml(store.content["job"])

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> "Collection":
        """Open an existing collection."""
        return cls(Store.open(Path(path)))

    @property
    def variant(self) -> str:
        """Variant by which late records join."""
        return str(self._store.content["variant"])

    @property
    def inertial(self) -> bool:
        """Whether the inertial coefficient is used; False for collections of older versions."""
        return bool(self._store.content.get("inertial", False))

    @property
    def n_records(self) -> list[int]:
        """Number of records of the base and of each added batch."""
        return [batch["records"] for batch in self._store.content["batches"]]

    @property
    def is_partitioned(self) -> bool:
        """Whether the cells of the base have been made."""
        return self._store.has("cells.npy")

    @property
    def is_finished(self) -> bool:
        """Whether the release of all records has been made; without a key, no records can be added then."""
        return self._store.content["finished"] is not None

    @property
    def n_released(self) -> int:
        """Number of releases of a series that have been made."""
        return int(self._store.content.get("released", 0))

    def partition_base(self, *, threads: int | None = None, progress: Progress | None = None) -> None:
        """Partition the base unless that has been done; needed only if `begin` was interrupted."""
        with self._store.working():
            self._store.reload()
            if not self.is_partitioned:
                self._partition_base(threads, progress)

    def _partition_base(self, threads: int | None, progress: Progress | None) -> None:
        schema, X = self._schema(), self._store.array("encoded")
        table, space = self._fitted
        made = base_cells(Task(self.job, schema, self.variant, threads, progress, self.inertial), table, space, X)
        placed = made["cells"] >= 0
        sizes = np.bincount(made["cells"][placed])
        sums = kernels.cell_sums(np.ascontiguousarray(X[placed]), made["cells"][placed], len(sizes))
        with self._store.changing():
            self._store.save(arrays={**made, "centroids": sums / sizes[:, None], "sizes": sizes})

    def add(self, table: Any, /, *, allow_overlap: bool = False, **reading: Any) -> None:
        """Add late records.

        Parameters
        ----------
        table : path or frame
            Has the columns of the base, with the same kinds of values.
        allow_overlap : bool
            Take records though many of them, or all, are equal to records of the collection: they are about others.
        **reading
            Options for reading a file; see `shoal.sources.read`.

        Raises
        ------
        SchemaError
            If columns are missing, new or of another kind, or if subjects are already in the collection.
        FileError
            If the same records are already in the collection, in whatever order and file, if more of them are than
            chance explains and `allow_overlap` is not set, or if the collection is finished.

        Warns
        -----
        ShoalWarning
            If the distribution of the records differs from that of the base, or they have new categories.
        """
        source = read(table, **reading).seal()
        schema = self._schema()
        records = conforming(source.arrow, self._store.content_schema(), schema)
        original = self._prepared(records, schema)
        survey_weights(original, schema)
        with self._store.changing():
            secret = bytes.fromhex(self._store.content["secret"])
            keys = record_keys(records, secret)
            content = content_of(keys, secret)
            if self.is_finished and self.job.roles.key is None:
                raise FileError(
                    "The collection is finished: its release has been made. Begin a new collection for further "
                    "records; one that has a key can publish again."
                )
            self._refuse_known(source.sha256, original, schema)
            if source.n_records and not allow_overlap:
                self._refuse_repeats(content, keys)
            if source.n_records:
                self._look(original, schema)
                self._refuse_other_households(original, schema)
            batches = self._store.content["batches"]
            name = f"records-{len(batches):04d}"
            batch = {"records": source.n_records, "source_sha256": source.sha256, "content": content}
            source.check_unchanged()
            self._store.content["batches"] = [*batches, batch]
            if source.n_records:
                self._store.content["finished"] = None
            self._store.save(tables={name: records}, arrays={f"keys-{len(batches):04d}": keys})

    def finish(
        self,
        k: int | None = None,
        *,
        may_withhold: float = 0.0,
        output: str | os.PathLike[str] | Destination | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        save_job: str | os.PathLike[str] | None = None,
        force: bool = False,
        **writing: Any,
    ) -> Release:
        """Join the late records and make the release.

        Parameters
        ----------
        k : int, optional
            If given, must equal the k of the collection.
        may_withhold : float
            Of a collection with a key that was released before: largest share of people who may be withheld, as are
            newcomers in a stratum of fewer than k.
        output : path or Destination, optional
            Where to write the release. The collection is finished when all files are on the disk, just before they get
            their names: if they cannot be written, the collection is unchanged. Without it the collection is
            finished with this call.
        threads, progress
            As in `shoal.anonymize`.
        save_job, force, **writing
            As in `Release.write`.

        Returns
        -------
        Release
            The audited release. A second call returns the same release, unless records were added to a collection with
            a key: then it is a release after those before.
        """
        if k is not None and k != self.job.k:
            raise ParameterError(
                f"k={k} was asked for, but the collection began with k={self.job.k}, which cannot be changed later. "
                "Begin a new collection to change k."
            )
        if output is not None and not isinstance(output, Destination):
            asked = Writing.of(path=output, **writing)
            output = Destination.of(asked, save_job=save_job, force=force, has_cells=self.job.is_of_series)
        self.partition_base(threads=threads, progress=progress)
        with self._store.working(), self._store.changing():
            release = self._finish(may_withhold, threads, progress)
            cells = release.records.cells
            assert cells is not None
            done = {"labels_sha256": _digest(cells), "records": len(release.labels)}
            if self.is_finished and self._store.content["finished"] != done:
                raise FileError(
                    "The collection was finished before, and this time its cells are different. Nothing was released, "
                    "because two different releases of the same records can be intersected. Use the version of shoal "
                    "and of its kernels that made the first release."
                )
            if output is None:
                self._mark(done, release)
            else:
                release.write_to(output, before_publishing=lambda: self._mark(done, release))
        return release

    def _mark(self, done: dict[str, Any], release: Release) -> None:
        """Write down that the release has been made, with what later ones need to know of it."""
        if self.is_finished:
            return
        self._store.content["finished"] = done
        arrays = {}
        if release.series is not None:
            arrays[_cells_name(self.n_released)] = np.frombuffer(release.series.cells.to_bytes(), dtype=np.uint8)
            self._store.content["released"] = self.n_released + 1
        self._store.save(arrays=arrays)

    def _earlier(self) -> dict[str, CellsOfRelease]:
        """Return the releases before this one by the names that a job has for them."""
        names = map(_cells_name, range(self.n_released - self.is_finished))
        cells = [CellsOfRelease.of_bytes(self._store.array(name).tobytes(), name) for name in names]
        return {IN_PYTHON + each.identity: each for each in cells}

    def _finish(self, may_withhold: float, threads: int | None, progress: Progress | None) -> Release:
        earlier = self._earlier() if self.job.is_of_series else {}
        if may_withhold and not earlier:
            raise ParameterError(
                f"{setting('may_withhold', may_withhold)} is the share of people who may be withheld because of "
                "earlier releases, and the collection has made none. Leave it out."
            )
        schema = self._schema()
        job = self.job.model_copy(update={"after": tuple(earlier), "may_withhold": may_withhold})
        batches = [self._store.table(f"records-{i:04d}") for i in range(len(self._store.content["batches"]))]
        records = pa.concat_tables(batches).unify_dictionaries()
        original = self._prepared(records, schema)
        table = Table.of(records, "pyarrow")
        views = column_views(schema, original, table)
        unchanged = published_unchanged(schema, records.select)
        findings = [*column_findings(schema, views), *role_findings(schema, unchanged, job.k)]
        made = Prepared(schema, original, survey_weights(original, schema), findings, views, unchanged)
        start = begun(job, table, made, earlier)
        if earlier:
            assert start is not None
            return continue_series(job, table, made, start, threads=threads, progress=progress)
        base, first = self._fitted
        late = original.slice(len(base))
        space = extended(first, base, late, job.scaling)
        X = np.concatenate([moved(self._store.array("encoded"), first, space), space.encode(late)])
        for text in (*drift(first, base, late, job.scaling), *category_warnings(first, late)):
            warnings.warn(text, ShoalWarning, stacklevel=4)
        task = Task(job, schema, self.variant, threads, progress, self.inertial)
        cells = all_cells(task, original, space, X, self._base())
        return conclude(job, table, made, space, X, cells, threads, start=start)

    def _base(self) -> dict[str, Any]:
        """Return the arrays of the base; raise if they do not satisfy k."""
        base = {name: self._store.array(name) for name in ARRAYS if self._store.has(f"{name}.npy")}
        placed = base["cells"][base["cells"] >= 0]
        if len(placed) and np.bincount(placed).min() < self.job.k:
            raise FileError(f"A cell of the collection has fewer than k={self.job.k} records. Begin again.")
        return base

    def _schema(self) -> Schema:
        return Schema.of(self._store.content_schema(), self.job.roles, self.job.columns)

    def _prepared(self, records: pa.Table, schema: Schema) -> pa.Table:
        return prepare(records, schema, self.job.missing)

    def _refuse_known(self, digest: str, records: pa.Table, schema: Schema) -> None:
        """Raise if the same file or frame, or one of its subjects, is already in the collection."""
        for number, batch in enumerate(self._store.content["batches"]):
            if batch["source_sha256"] == digest:
                raise FileError(
                    f"The same records are already in the collection, as {_batch(number)}: nothing was added. Records "
                    "must not count twice."
                )
        name = schema.roles.subject or schema.roles.key
        if name is None:
            return
        subjects = pc.unique(records[name]).drop_null()
        for number in range(len(self._store.content["batches"])):
            there = pc.unique(self._store.table(f"records-{number:04d}")[name])
            both = pc.sum(pc.is_in(subjects, value_set=there)).as_py() or 0
            if both:
                raise SchemaError(
                    f"{both:,} persons (column {name!r}) are already in the collection. Nothing was added, since a "
                    "person must not be in two batches. Remove the records of these persons."
                )

    def _refuse_repeats(self, content: str, keys: Any) -> None:
        """Refuse the records of an earlier batch in another order or file, and ask about records that are there."""
        for number, batch in enumerate(self._store.content["batches"]):
            if batch["content"] == content:
                raise FileError(
                    f"The same records are already in the collection, as {_batch(number)}, in another order or file: "
                    f"nothing was added. Records must not count twice. {_OTHERS}"
                )
        there = [self._store.array(f"keys-{i:04d}") for i in range(len(self._store.content["batches"]))]
        found, by_chance = overlap(keys, np.concatenate(there))
        if found > by_chance:
            raise FileError(
                f"{found:,} of the {len(keys):,} records are equal to records of the collection, where chance explains "
                f"at most {by_chance:,}: nothing was added. Leave out those who have answered before. {_OTHERS}"
            )

    def _refuse_other_households(self, late: pa.Table, schema: Schema) -> None:
        """Raise if a late member of a household differs in a column that the household shares."""
        if schema.roles.household is None:
            return
        before = [self._store.table(f"records-{i:04d}") for i in range(len(self._store.content["batches"]))]
        there = [self._prepared(batch, schema) for batch in before]
        try:
            boundaries_of(pa.concat_tables([*there, late]).unify_dictionaries(), schema, ANY_SIZE)
        except SchemaError as error:
            raise SchemaError(
                f"With these records: {error} Nothing was added. Correct them, or begin again with a household level "
                "that lists only columns that all members share."
            ) from None

    @cached_property
    def _fitted(self) -> tuple[pa.Table, Space]:
        """The base, prepared, and its space. Neither changes in the life of a collection."""
        schema = self._schema()
        base = self._prepared(self._store.table("records-0000"), schema)
        return base, Space.fit(base, schema, self.job.scaling)

    def _look(self, late: pa.Table, schema: Schema) -> None:
        """Warn of drift and new categories; raise if the space cannot represent the records."""
        base, space = self._fitted
        extended(space, base, late, self.job.scaling)
        for column in schema.published:
            if pa.types.is_dictionary(column.type) and column.type.ordered:
                refuse_new_ranks(column, late[column.name], listed_categories(base[column.name]))
        for text in (*drift(space, base, late, self.job.scaling), *category_warnings(space, late)):
            warnings.warn(text, ShoalWarning, stacklevel=3)


def begin(
    path: str | os.PathLike[str],
    table: Any,
    job: Job | None = None,
    *,
    variant: str | None = None,
    inertial: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    reading: dict[str, Any] | None = None,
    **settings: Any,
) -> Collection:
    """Begin a collection with the records that have arrived: store them, fix the space and partition them.

    Parameters
    ----------
    path : path
        Folder to create, readable by its owner only.
    table : path or frame
        The base: at least k records.
    job : Job, optional
        Settings of the release; or the same as keywords: k, quasi_identifiers, identifiers, confidential, other, by,
        subject, household, household_level, weights, columns, models, scaling, missing, method, rho, seed, options.
    variant : str, optional
        One of `shoal.incremental.VARIANTS`: by default that of the job (`late.variant`), else "reopen".
    inertial : bool
        Multiply the squared distance to a cell of n records by n / (n + 1), so that small cells are preferred. For
        "nearest", "split-mid" and "split-end".
    threads, progress, reading
        As in `shoal.anonymize`.

    Returns
    -------
    Collection

    Raises
    ------
    GuaranteeError
        If the base has fewer than k records.
    FileError
        If the folder exists.

    Notes
    -----
    The records are on disk before the partition starts: if it is interrupted, `finish` or `partition_base` completes
    it. Values of dropped columns are not stored.
    """
    if job is not None and settings:
        raise ParameterError(
            f"{', '.join(sorted(settings))} cannot be given together with a job. Set them in the job, or leave it out."
        )
    job = job or _job_of(settings)
    variant, inertial = _joining(job, variant, inertial)
    algorithm_of(job.method, job.options)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    source = read(table, **as_reading(reading)).seal()
    if source.n_records < job.k:
        raise GuaranteeError(
            f"The base has {source.n_records} records, fewer than k={job.k}. Begin when more have arrived."
        )
    _refuse_steering(job)
    _refuse_truthful(job)
    _refuse_objective(job)
    refuse_link(job, "late records cannot join the histories of a collection")
    _refuse_series(job)
    schema, original, *_ = prepared(job, source)
    job = _with_household_level(job, original, schema)
    _refuse_lack(original, schema, job.k)
    records = without_identifiers(source.arrow, schema)
    X = Space.fit(original, schema, job.scaling).encode(original)
    secret = secrets.token_bytes(32)
    keys = record_keys(records, secret)
    batch = {"records": source.n_records, "source_sha256": source.sha256, "content": content_of(keys, secret)}
    content = {
        "job": job.to_toml(),
        "variant": variant,
        "inertial": inertial,
        "batches": [batch],
        "secret": secret.hex(),
        "finished": None,
    }
    arrays = {"encoded": X, "keys-0000": keys}
    source.check_unchanged()
    collection = Collection(Store.create(Path(path), content, {"records-0000": records}, arrays))
    collection.partition_base(threads=threads, progress=progress)
    return collection


_OTHERS = f"If they are about other people, say so: {setting('allow_overlap', True)}."


def _batch(number: int) -> str:
    return "the base" if number == 0 else f"batch {number}"


def _digest(cells: Cells) -> str:
    """Return the SHA-256 of the labels."""
    levels = [level for level in (cells.labels, cells.household_labels) if level is not None]
    return hashlib.sha256(b"".join(level.tobytes() for level in levels)).hexdigest()


def _job_of(settings: dict[str, Any]) -> Job:
    roles = {name: value for name, value in settings.items() if name in Roles.model_fields}
    rest = {name: value for name, value in settings.items() if name not in roles}
    return Job.of(**rest, roles={name: [value] if _one_name(name, value) else value for name, value in roles.items()})


def _one_name(role: str, value: Any) -> bool:
    return isinstance(value, str) and role not in ("subject", "household", "weights", "key", "keep_link")


def _joining(job: Job, variant: str | None, inertial: bool) -> tuple[str, bool]:
    """Return variant and inertial coefficient, from the call or from the job; raise if they cannot be used."""
    if job.late is not None and (variant is not None or inertial):
        raise ParameterError(
            "The job has the key late, and variant or inertial is given as well. Give them in one place only."
        )
    late = job.late or Late(variant=variant, inertial=inertial)
    chosen = late.variant or "reopen"
    variant_of(chosen, {"inertial": True} if late.inertial else {})
    return chosen, late.inertial


def _refuse_truthful(job: Job) -> None:
    """Raise if the job publishes what is true of every record, or uses hierarchies: late records are not matched so."""
    columns = [name for name, settings in job.columns.items() if settings.is_true or settings.hierarchy is not None]
    if job.truthful or columns:
        named = f" (column {columns[0]!r})" if columns else ""
        raise ParameterError(
            f"A collection makes no truthful releases and uses no hierarchies yet{named}. Leave them out, or make one "
            "release of all records."
        )


def _refuse_objective(job: Job) -> None:
    """Raise if cells are to be made for another objective: late records join by distance."""
    if job.objective != "sse":
        raise ParameterError(
            f"The objective {job.objective!r} was asked for, but a collection makes cells by distance, as late records "
            "join them. Leave the objective out, or make one release of all records."
        )


def _refuse_series(job: Job) -> None:
    """Raise if the job has earlier releases, or expects people to leave: a collection continues its own releases."""
    if job.after or job.reserve is not None:
        raise ParameterError(
            "A collection with a key continues the releases that it makes, nobody leaves it, and its cells have no "
            f"reserve. Leave {named('after', 'reserve')} out, or make one release of all records after the earlier "
            "ones."
        )


def _cells_name(number: int) -> str:
    return f"released-{number:04d}"


def _refuse_steering(job: Job) -> None:
    """Raise if the job steers the partition by weights: late records join by distance, which would undo it."""
    if job.steer:
        raise ParameterError(
            f"Steering by {listed(job.steer)} affects only the partition of the base; late records would "
            "not follow it. Leave it out, or make one release of all records."
        )
    for model in job.models:
        if not model.promised:
            raise ParameterError(
                f"{model.name} of column {model.column!r} has a weight, which affects only the partition of the base; "
                "late records would not follow it. Leave the weight out, and the model is enforced exactly."
            )


def _with_household_level(job: Job, records: pa.Table, schema: Schema) -> Job:
    """Store the columns that the households of the base share, so that later households cannot change them."""
    if schema.roles.household is None or schema.roles.household_level is not None:
        return job
    shared = tuple(boundaries_of(records, schema, ANY_SIZE).shared)
    return job.model_copy(update={"roles": job.roles.model_copy(update={"household_level": shared})})


def _refuse_lack(records: pa.Table, schema: Schema, k: int) -> None:
    """Raise if every stratum of the base is too small for a cell."""
    strata, households, _ = boundaries_of(records, schema, ANY_SIZE)
    what, whom = strata_of(records, schema, ANY_SIZE)[1], "records"
    if households is not None:
        strata, whom = strata[np.unique(households, return_index=True)[1]], "households"
    most = int(np.bincount(strata).max())
    if most < k:
        where = f"No stratum of the base ({what}) has" if what else f"The base has {most} {whom}, fewer than"
        raise GuaranteeError(f"{where} k={k}{f' {whom}' if what else ''}. Begin when more have arrived.")


def without_identifiers(records: pa.Table, schema: Schema) -> pa.Table:
    """Return the records with dropped columns set to null; helper columns such as the subject are kept."""
    for column in schema.having(Role.IDENTIFIER):
        if column.name not in schema.roles.helpers():
            place = records.schema.get_field_index(column.name)
            records = records.set_column(place, column.name, pa.nulls(records.num_rows, column.type))
    return records


def conforming(late: pa.Table, expected: pa.Schema, schema: Schema) -> pa.Table:
    """Return late records with the columns and types of the base; raise if they do not match."""
    missing = [name for name in expected.names if name not in late.column_names]
    strange = [name for name in late.column_names if name not in expected.names]
    if missing or strange:
        parts = [f"{listed(missing)} missing"] * bool(missing)
        parts += [f"{listed(strange)} new"] * bool(strange)
        raise SchemaError(f"The late records have other columns than the base: {'; '.join(parts)}. Nothing was added.")
    if late.num_rows == 0:
        # A file without records has no meaningful types.
        return expected.empty_table()
    columns = {name: _cast(late[name], expected.field(name), schema) for name in expected.names}
    return without_identifiers(pa.table(columns, schema=expected), schema)


def _cast(values: pa.ChunkedArray, field: pa.Field, schema: Schema) -> pa.ChunkedArray:
    if values.type == field.type:
        return values
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        # Text that looks like numbers must not become numbers, nor the reverse.
        if not _compatible(values.type, field.type):
            raise pa.ArrowInvalid
        if pa.types.is_dictionary(field.type):
            return values.cast(field.type.value_type).dictionary_encode().cast(field.type)
        return values.cast(field.type)
    except CAST_ERRORS:
        raise SchemaError(
            f"Column {field.name!r} holds {values.type} in the late records, but {field.type} in the base. Nothing was "
            "added. Convert it to the type of the base, or begin again."
        ) from None


def _compatible(given: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_null(given):
        return True
    plain = expected.value_type if pa.types.is_dictionary(expected) else expected
    numbers = [pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in (given, plain)]
    times = [pa.types.is_temporal(t) for t in (given, plain)]
    return bool(numbers[0] == numbers[1] and times[0] == times[1])
