"""Collection: a release in the making, on disk. Begin with what has arrived, add what comes, finish once.

`begin` fixes columns, roles, k and the space, and partitions the base; `add` keeps late records; `finish` joins them
and makes the one release. Only one: two releases of overlapping records can be intersected (docs/incremental.md).
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
from shoal.batches import VARIANTS
from shoal.batches.growth import drift, extended, moved, news
from shoal.batches.repeats import content_of, overlap, record_keys
from shoal.batches.store import Store
from shoal.batches.two_stage_cells import ANY_SIZE, Task, all_cells, base_cells
from shoal.cells.aggregate import Cells
from shoal.cells.constraints import boundaries_of
from shoal.cells.strata import strata_of
from shoal.columns.prepare import prepare
from shoal.columns.schema import Role, Roles, Schema
from shoal.columns.space import Space
from shoal.errors import FileError, GuaranteeError, ParameterError, SchemaError, ShoalWarning
from shoal.job import Job, Late
from shoal.partition import algorithm_of
from shoal.partition.options import check_options
from shoal.preparing import Prepared, prepared, survey_weights
from shoal.release import Release, conclude
from shoal.table import Table, read
from shoal.typing import Progress

ARRAYS = ("cells", "groups", "neighbours")
"""What `base_cells` makes, and `all_cells` wants to know."""


class Collection:
    """A collection in a folder; see `begin` and `Collection.open`.

    Examples
    --------
    >>> import tempfile
    >>> early = pa.table({"age": [20, 21, 40, 44], "party": ["a", "b", "a", "b"]})
    >>> late = pa.table({"age": [22, 42], "party": ["b", "a"]})
    >>> folder = Path(tempfile.mkdtemp()) / "evening"
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
        """Go on with a collection that was begun, by this process or another."""
        return cls(Store.open(Path(path)))

    @property
    def variant(self) -> str:
        """How late records join."""
        return str(self._store.content["variant"])

    @property
    def inertial(self) -> bool:
        """Whether late records weigh cells by the inertial coefficient; a collection of an older version does not."""
        return bool(self._store.content.get("inertial", False))

    @property
    def n_records(self) -> list[int]:
        """Records of the base, and of each batch that was added."""
        return [batch["records"] for batch in self._store.content["batches"]]

    @property
    def is_partitioned(self) -> bool:
        """Whether the cells of the base have been made."""
        return self._store.has("cells.npy")

    @property
    def is_finished(self) -> bool:
        """Whether the release has been made; then nothing can be added."""
        return self._store.content["finished"] is not None

    def partition_base(self, *, threads: int | None = None, progress: Progress | None = None) -> None:
        """Make the cells of the base if that has not been done: what `begin` does, and what an interruption leaves."""
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

    def add(self, table: Any, *, allow_overlap: bool = False, **reading: Any) -> None:
        """Keep records that have arrived since.

        Parameters
        ----------
        table : path or frame
            Has the columns of the base, with the same kinds of values.
        allow_overlap : bool
            Take records though many of them, or all, are equal to records of the collection: they are about others.
        **reading
            How to read a file; see `shoal.table.read`.

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
            If the records lie elsewhere than the base, or have categories that it did not have.
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
            if self.is_finished:
                raise FileError(
                    "The collection is finished: its release has been made. Records that come now belong to a new one."
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
            self._store.save(tables={name: records}, arrays={f"keys-{len(batches):04d}": keys})

    def finish(
        self,
        k: int | None = None,
        *,
        output: str | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        **writing: Any,
    ) -> Release:
        """Join the late records and make the release.

        Parameters
        ----------
        k : int, optional
            If given, must be the one that the collection began with.
        output : path, optional
            Where to write the release. The collection is finished when all files are on the disk, just before they get
            their names: if they cannot be written, it goes on as if nothing had happened. Without it the collection is
            finished with this call.
        threads, progress
            As in `shoal.anonymize`.
        **writing
            As in `Release.write`.

        Returns
        -------
        Release
            One like any other, audited. A second call returns the same.
        """
        if k is not None and k != self.job.k:
            raise ParameterError(
                f"k={k} was asked for, but the collection began with k={self.job.k}, and its cells are made for that. "
                "Begin again to change k."
            )
        self.partition_base(threads=threads, progress=progress)
        with self._store.working(), self._store.changing():
            release = self._finish(threads, progress)
            done = {"labels_sha256": _digest(release.cells), "records": len(release.labels)}
            if self.is_finished and self._store.content["finished"] != done:
                raise FileError(
                    "The collection was finished before, and this time the cells came out differently. Nothing was "
                    "released, because two different releases of the same records can be intersected. Use the version "
                    "of shoal and of its kernels that made the first one."
                )
            if output is None:
                self._mark(done)
            else:
                release.write(output, before_publishing=lambda: self._mark(done), **writing)
        return release

    def _mark(self, done: dict[str, Any]) -> None:
        """Write down that the release has been made."""
        if not self.is_finished:
            self._store.content["finished"] = done
            self._store.save()

    def _finish(self, threads: int | None, progress: Progress | None) -> Release:
        schema, job = self._schema(), self.job
        batches = [self._store.table(f"records-{i:04d}") for i in range(len(self._store.content["batches"]))]
        base, first = self._fitted
        records = pa.concat_tables(batches).unify_dictionaries()
        original = self._prepared(records, schema)
        late = original.slice(len(base))
        space = extended(first, base, late)
        X = np.concatenate([moved(self._store.array("encoded"), first, space), space.encode(late)])
        for text in (*drift(first, base, late, job.scaling), *news(first, late)):
            warnings.warn(text, ShoalWarning, stacklevel=4)
        task = Task(job, schema, self.variant, threads, progress, self.inertial)
        cells = all_cells(task, original, space, X, self._base())
        made = Prepared(schema, original, survey_weights(original, schema))
        return conclude(job, Table.of(records, "pyarrow"), made, space, X, cells)

    def _base(self) -> dict[str, Any]:
        """Return what is known of the base's cells, or say that it cannot be used."""
        base = {name: self._store.array(name) for name in ARRAYS if self._store.has(f"{name}.npy")}
        placed = base["cells"][base["cells"] >= 0]
        if len(placed) and np.bincount(placed).min() < self.job.k:
            raise FileError("The cells of the collection do not keep its k. Begin again.")
        return base

    def _schema(self) -> Schema:
        return Schema.of(self._store.content_schema(), self.job.roles, self.job.columns)

    def _prepared(self, records: pa.Table, schema: Schema) -> pa.Table:
        return prepare(records, schema, self.job.missing)

    def _refuse_known(self, digest: str, records: pa.Table, schema: Schema) -> None:
        """Refuse what is in the collection already: the same file or frame, or the same subjects."""
        for number, batch in enumerate(self._store.content["batches"]):
            if batch["source_sha256"] == digest:
                raise FileError(
                    f"The same records are already in the collection, as {_batch(number)}: nothing was added. Records "
                    "must not count twice."
                )
        name = schema.roles.subject
        if name is None:
            return
        subjects = pc.unique(records[name]).drop_null()
        for number in range(len(self._store.content["batches"])):
            there = pc.unique(self._store.table(f"records-{number:04d}")[name])
            both = pc.sum(pc.is_in(subjects, value_set=there)).as_py() or 0
            if both:
                raise SchemaError(
                    f"{both:,} subjects (column {name!r}) are already in the collection: nothing was added. A person "
                    "must not be in two batches; leave out those who have answered before."
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
        """Refuse members of a household who do not have what the household had when the collection began."""
        if schema.roles.household is None:
            return
        before = [self._store.table(f"records-{i:04d}") for i in range(len(self._store.content["batches"]))]
        there = [self._prepared(batch, schema) for batch in before]
        try:
            boundaries_of(pa.concat_tables([*there, late]).unify_dictionaries(), schema, ANY_SIZE)
        except SchemaError as error:
            raise SchemaError(
                f"With these records: {error} Nothing was added. Correct them, or begin with a household level that "
                "names only what all members share."
            ) from None

    @cached_property
    def _fitted(self) -> tuple[pa.Table, Space]:
        """The base, prepared, and its space. Neither changes in the life of a collection."""
        schema = self._schema()
        base = self._prepared(self._store.table("records-0000"), schema)
        return base, Space.fit(base, schema, self.job.scaling)

    def _look(self, late: pa.Table, schema: Schema) -> None:
        """Warn of drift and of new categories; refuse what the space cannot hold."""
        base, space = self._fitted
        extended(space, base, late)
        for text in (*drift(space, base, late, self.job.scaling), *news(space, late)):
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
    """Begin a collection with the records that have arrived: keep them, fix the space, and make their cells.

    Parameters
    ----------
    path : path
        Folder to make, readable by its owner alone.
    table : path or frame
        The base: at least k records.
    job : Job, optional
        What to make of the records; or the same as keywords: k, quasi_identifiers, identifiers, confidential, other,
        by, subject, household, household_level, weights, columns, models, scaling, missing, method, rho, seed, options.
    variant : str, optional
        One of `shoal.batches.VARIANTS`: by default what the job says (`late.variant`), else "reopen".
    inertial : bool
        Count the squared distance of a cell of n records n / (n + 1) times, so that small cells are preferred. For
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
    The records are on disk before the partition starts: if that is interrupted, `finish` or `partition_base` makes it
    up. Values of columns that are dropped are not kept.
    """
    if job is not None and settings:
        raise ParameterError(f"A job is given, and {', '.join(sorted(settings))} beside it. Say it once.")
    job = job or _job_of(settings)
    variant, inertial = _joining(job, variant, inertial)
    algorithm_of(job.method, job.options)
    if job.seed is None:
        job = job.model_copy(update={"seed": secrets.randbits(63)})
    source = read(table, **(reading or {})).seal()
    if source.n_records < job.k:
        raise GuaranteeError(
            f"The base has {source.n_records} records, fewer than k={job.k}. Begin when more have arrived."
        )
    _refuse_steering(job)
    schema, original, _ = prepared(job, source)
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


_OTHERS = "If they are about other people, say so: allow_overlap=True, on the command line --allow-overlap."


def _batch(number: int) -> str:
    return "the base" if number == 0 else f"batch {number}"


def _digest(cells: Cells) -> str:
    """Return what tells two partitions apart."""
    levels = [level for level in (cells.labels, cells.household_labels) if level is not None]
    return hashlib.sha256(b"".join(level.tobytes() for level in levels)).hexdigest()


def _job_of(settings: dict[str, Any]) -> Job:
    roles = {name: value for name, value in settings.items() if name in Roles.model_fields}
    rest = {name: value for name, value in settings.items() if name not in roles}
    return Job.of(**rest, roles={name: [value] if _one_name(name, value) else value for name, value in roles.items()})


def _one_name(role: str, value: Any) -> bool:
    return isinstance(value, str) and role not in ("subject", "household", "weights")


def _joining(job: Job, variant: str | None, inertial: bool) -> tuple[str, bool]:
    """Return how late records join, from the call or from the job, or say why they cannot."""
    if job.late is not None and (variant is not None or inertial):
        raise ParameterError("How late records join is said by the job (late) and beside it. Say it once.")
    late = job.late or Late(variant=variant, inertial=inertial)
    chosen = late.variant or "reopen"
    if chosen not in VARIANTS:
        raise ParameterError(f"Unknown variant {chosen!r}. Variants: {', '.join(VARIANTS)}.")
    if late.inertial:
        check_options(VARIANTS[chosen], f"Variant {chosen!r}", {"inertial": True})
    return chosen, late.inertial


def _refuse_steering(job: Job) -> None:
    """Refuse a weight: late records join cells by distance, and nothing would be left of where it has led."""
    if job.steer:
        raise ParameterError(
            f"Steering by {', '.join(map(repr, job.steer))} only leads the way while cells are made, and late records "
            "would go elsewhere. Leave it out, or make one release of everything."
        )
    for model in job.models:
        if not model.promised:
            raise ParameterError(
                f"{model.name} of column {model.column!r} has a weight, which only leads the way while cells are made, "
                "and late records would go elsewhere. Leave the weight out: then the model is kept to the letter."
            )


def _with_household_level(job: Job, records: pa.Table, schema: Schema) -> Job:
    """Write down what the households of the base share, so that it stays the same when others come."""
    if schema.roles.household is None or schema.roles.household_level is not None:
        return job
    shared = tuple(boundaries_of(records, schema, ANY_SIZE).shared)
    return job.model_copy(update={"roles": job.roles.model_copy(update={"household_level": shared})})


def _refuse_lack(records: pa.Table, schema: Schema, k: int) -> None:
    """Refuse a base of which no stratum can have a cell."""
    strata, households, _ = boundaries_of(records, schema, ANY_SIZE)
    what, whom = strata_of(records, schema, ANY_SIZE)[1], "records"
    if households is not None:
        strata, whom = strata[np.unique(households, return_index=True)[1]], "households"
    most = int(np.bincount(strata).max())
    if most < k:
        where = f"No stratum of the base ({what}) has" if what else f"The base has {most} {whom}, fewer than"
        raise GuaranteeError(f"{where} k={k}{f' {whom}' if what else ''}. Begin when more have arrived.")


def without_identifiers(records: pa.Table, schema: Schema) -> pa.Table:
    """Return the records with what will be dropped anyway made null; helpers such as the subject stay."""
    for column in schema.having(Role.IDENTIFIER):
        if column.name not in schema.roles.helpers():
            place = records.schema.get_field_index(column.name)
            records = records.set_column(place, column.name, pa.nulls(records.num_rows, column.type))
    return records


def conforming(late: pa.Table, expected: pa.Schema, schema: Schema) -> pa.Table:
    """Return late records with the columns and types of the base, or say which do not fit."""
    missing = [name for name in expected.names if name not in late.column_names]
    strange = [name for name in late.column_names if name not in expected.names]
    if missing or strange:
        parts = [f"{', '.join(map(repr, missing))} missing"] * bool(missing)
        parts += [f"{', '.join(map(repr, strange))} new"] * bool(strange)
        raise SchemaError(f"The late records have other columns than the base: {'; '.join(parts)}. Nothing was added.")
    if late.num_rows == 0:
        # The types of a file without records say nothing.
        return expected.empty_table()
    columns = {name: _cast(late[name], expected.field(name), schema) for name in expected.names}
    return without_identifiers(pa.table(columns, schema=expected), schema)


def _cast(values: pa.ChunkedArray, field: pa.Field, schema: Schema) -> pa.ChunkedArray:
    if values.type == field.type:
        return values
    try:
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        # Text that happens to look like numbers must not become numbers, nor the other way round.
        if not _compatible(values.type, field.type):
            raise pa.ArrowInvalid
        if pa.types.is_dictionary(field.type):
            return values.cast(field.type.value_type).dictionary_encode().cast(field.type)
        return values.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        raise SchemaError(
            f"Column {field.name!r} holds {values.type} in the late records, but {field.type} in the base. Nothing was "
            "added: give it the same kind of values, or begin again."
        ) from None


def _compatible(given: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_null(given):
        return True
    plain = expected.value_type if pa.types.is_dictionary(expected) else expected
    numbers = [pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in (given, plain)]
    times = [pa.types.is_temporal(t) for t in (given, plain)]
    return bool(numbers[0] == numbers[1] and times[0] == times[1])
