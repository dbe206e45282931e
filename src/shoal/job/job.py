"""Job: the settings of one release. The Python call, the command line, the estimator and the job file all build one.

A job is immutable. Unknown keys are errors that suggest the nearest known key.
"""

import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tomli_w
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, model_validator
from pydantic_core import PydanticCustomError

from shoal.columns.prepare import Missing
from shoal.columns.schema import POSITIONS, ColumnSettings, Roles
from shoal.constraints.linked_histories import RarePatterns
from shoal.errors import ParameterError
from shoal.findings.finding import HIDDEN
from shoal.job.engine_facts import IN_MEMORY, LIMITED, EngineName, engines_in_words
from shoal.job.hierarchy_folder import with_hierarchies
from shoal.job.job_files import content_of, job_text
from shoal.job.kinds import with_kinds
from shoal.models import MODELS, Model
from shoal.models.serialization import as_model, settings_of
from shoal.settings import Number, Settings, Whole, validated
from shoal.sources import Reading, databases_in_words, formats_in_words
from shoal.sources.databases import check_address
from shoal.space.axes import Scaling
from shoal.typing import BoundEffort

Order = Literal["shuffle", "keep"]
"""Order of the records written: by a hash of the published values, or that of the input."""

IntervalForm = Literal["text", "columns", "struct"]
"""How intervals are published: as text, in two columns NAME.low and NAME.high, or as a struct of Parquet or Arrow."""

Objective = Literal["sse", "ncp"]
"""What cells are made for: low squared distances, or a low certainty penalty (`shoal.constraints.ncp_cells`)."""

Rho = Annotated[Number, BeforeValidator(lambda given: 1.0 if given == "song" else given)]
"""Strength of random aggregation, from 0 to 1. ``song``, the form of Song et al., is equal to 1 in distribution."""


def _steering(weight: float) -> float:
    if weight == 0 or not math.isfinite(weight):
        raise PydanticCustomError("weight", "it should be a finite number other than 0, which has no effect")
    return weight


Weight = Annotated[Number, AfterValidator(_steering)]
"""Weight of a steering column: the distance between its values; negative to spread equal values."""


def _plain(value: object) -> object:
    """Return a value that a file can hold; NumPy scalars become Python numbers."""
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | int | float):
        return value
    raise PydanticCustomError("plain", "it should be a number, a text, true or false, or a list of such")


Plain = Annotated[Any, BeforeValidator(_plain)]


def _model(given: object) -> Model:
    """Return a model, given as one or as plain values."""
    try:
        return as_model(given)
    except ParameterError as error:
        raise PydanticCustomError("model", "{said}", {"said": error.marked.rstrip(".")}) from None


AnyModel = Annotated[Any, BeforeValidator(_model), PlainSerializer(settings_of)]
"""A privacy model; in a file, a table with the name of the model under ``model``."""


def _in_order(models: tuple[Model, ...]) -> tuple[Model, ...]:
    """Sort models in the order of the registry, since a command line does not preserve the order of its options."""
    return tuple(sorted(models, key=lambda model: list(MODELS).index(model.name)))


Models = Annotated[
    tuple[AnyModel, ...],
    BeforeValidator(lambda given: [given] if isinstance(given, Model) else given),
    AfterValidator(_in_order),
]
"""Privacy models, in the order of the registry."""


def _address(path: str) -> str:
    try:
        return check_address(path)
    except ParameterError as error:
        raise PydanticCustomError("address", "{said}", {"said": error.marked.rstrip(".")}) from None


Address = Annotated[str, AfterValidator(_address)]
"""Path of a file or address of a database, which holds no password."""


class _InputPath(Settings):
    path: Address = Field(description=f"{formats_in_words()} file, or {databases_in_words()} database")


class Input(Reading, _InputPath):
    """The file to read, and how. Settings left out are detected."""

    def reading(self) -> dict[str, Any]:
        """Return the settings given for reading the file."""
        return {name: value for name, value in self.given.items() if name != "path"}


PathText = Annotated[str, BeforeValidator(lambda given: os.fspath(given) if isinstance(given, os.PathLike) else given)]
"""Path of a file, as text or as a path of Python."""


class Writing(Settings):
    """How a release is written: what `Release.write` takes. `shoal.output.destination` checks it as a whole."""

    path: PathText | None = Field(None, description="file, database or folder for the release")
    to_table: str | None = Field(None, description="new table of a database for the release, NAME or SCHEMA.NAME")
    manifest: PathText | None = Field(
        None, description="JSON file for the internal manifest; by default beside the release"
    )
    to_format: str | None = Field(
        None,
        description="format on standard output (-), by extension: csv, ndjson ..; by default as the input",
    )
    releases: PathText | None = Field(
        None,
        description="folder of earlier releases: warn of those that hold people of the table, as of those beside the "
        "release (docs/series.md)",
    )
    order: Order = Field(
        "shuffle",
        description="of the published records: shuffle, or keep that of the input, which can reveal who is who",
    )
    report: PathText | None = Field(None, description="HTML file for the report")
    form: Literal["internal", "public"] = Field(
        "internal", description="form of the report; the public one shows nothing of the original"
    )
    json_file: PathText | None = Field(None, alias="json", description="JSON file with what the report says")
    bound: BoundEffort | None = Field(
        None,
        description="lower bound of the loss in the internal report: cheap for any number of records, strong for some "
        "thousands, within a minute",
    )
    title: str | None = Field(None, description="title of the report")
    author: str | None = Field(None, description="who is responsible for the release; shown in the report")
    date: str | None = Field(
        None, description="date in the report; never taken from the clock, so that a job repeats exactly"
    )

    @staticmethod
    def of(**settings: Any) -> "Writing":
        """Return these settings, or raise `ParameterError` naming the invalid ones."""
        return validated(Writing, settings)

    def title_page(self) -> dict[str, str | None]:
        """Return what stands on the first page of the report, besides its facts."""
        return {name: getattr(self, name) for name in ("title", "author", "date")}


class Output(Writing):
    """The files that a job writes."""

    path: Address = Field(description=f"{formats_in_words()} file for the release, or {databases_in_words()} database")


class RedisSettings(Settings):
    """Where a worker reads and writes in Redis. A password comes from the environment."""

    url: str = Field("redis://localhost:6379", description="where Redis is, without a password")
    source: str = Field(alias="from", description="stream to read; each entry has a JSON object in its field data")
    target: str = Field(alias="to", description="stream to write")
    side: str | None = Field(None, description="stream for tuples that cannot be released; they are unprotected")
    group: str = Field("shoal", description="consumer group; one worker at a time serves it")
    batch: Whole = Field(1000, ge=1, description="entries of a step, at most")
    lease: Number = Field(
        10.0, ge=0.05, description="time after which another worker takes the place of one that no longer responds"
    )
    patience: Number = Field(900.0, ge=0, description="maximum time to wait out an outage of Redis")
    target_length: Whole | None = Field(
        None, alias="to_length", ge=1, description="trim the stream that is written to about this length"
    )
    side_length: Whole | None = Field(None, ge=1, description="trim the side stream to about this length")
    trim_source: bool = Field(False, strict=True, description="remove entries from the source once they are committed")

    @staticmethod
    def of(source: str, target: str, **settings: Any) -> "RedisSettings":
        """Return these settings, or raise `ParameterError` naming the invalid ones."""
        return validated(RedisSettings, {"from": source, "to": target, **settings})


class StreamRules(Settings):
    """When a tuple of a stream is due, and what its window does."""

    delay: Whole | None = Field(
        None, ge=1, description="number of tuples that may arrive after a tuple before it is released"
    )
    max_age: Number | None = Field(None, gt=0, description="maximum age of a tuple in seconds")
    order_weight: Number = Field(
        0.0, ge=0, allow_inf_nan=False, description="weight of one position of the stream in distances"
    )
    max_cell: Whole | None = Field(None, description="maximum size of a cell that grows by close tuples")
    ranges: dict[str, tuple[Plain, Plain]] = Field({}, description="lowest and highest value of columns")
    adapt: Number = Field(0.0, ge=0, le=1, description="share by which learned ranges move")
    on_error: Literal["fail", "side"] = Field("fail", description="what becomes of tuples that cannot be used")


class SparkSettings(Settings):
    """How a stream is split on Spark Structured Streaming, and what its query returns; for `shoal.spark.stream`."""

    shards: Whole = Field(16, ge=1, description="number of shards, each a stream of its own with its own delay")
    shard: str | None = Field(
        None, description="column whose values are the shards, in place of a hash of the subject or of other columns"
    )
    order_by: tuple[str, ...] = Field(
        (), description="columns that give the order of arrival within a batch, such as partition and offset of Kafka"
    )
    event_time: str | None = Field(
        None, description="column of event times with a watermark, by which ages are counted; else by processing time"
    )
    side: bool = Field(
        False, strict=True, description="return tuples that cannot be released too, unprotected, with their reason"
    )
    new_rules: Literal["refuse", "finish"] = Field(
        "refuse",
        description="what a query does whose state was made with other rules: refuse, or finish the old stream of "
        "each shard first",
    )


class StreamSettings(StreamRules):
    """What makes a job one for `shoal stream`, `shoal worker` and `shoal.spark.stream`."""

    redis: RedisSettings | None = Field(None, description="where a worker reads and writes")
    spark: SparkSettings | None = Field(None, description="how a stream is split on Spark")


class Late(Settings):
    """How late records of a collection are assigned to existing cells; for `shoal collect` only."""

    variant: str | None = Field(None, description="one of shoal.incremental.VARIANTS")
    inertial: bool = Field(False, description="count a cell of n records n / (n + 1) times its squared distance")


class TableOfPersons(Settings):
    """A further table of the persons whose records stay linked: one record for each, found by a key."""

    input: Input = Field(description="the file to read")
    key: str | None = Field(
        None, description="its column that names the persons; by default of the same name as that of the records"
    )
    output: PathText = Field(description="file for its release, with the same new identifiers")


Leavers = Literal["withhold", "state"]
"""What becomes of a class that fewer than k people have left: the rest is withheld, or the report states it."""


class Job(Settings):
    """All settings of a release, without the data.

    Examples
    --------
    >>> job = Job(k=10, roles=Roles(quasi_identifiers=("age", "zip"), identifiers=("name",)), seed=7)
    >>> print(job.to_toml())
    k = 10
    seed = 7
    <BLANKLINE>
    [roles]
    identifiers = [
        "name",
    ]
    quasi_identifiers = [
        "age",
        "zip",
    ]
    <BLANKLINE>
    >>> Job.from_toml(job.to_toml()) == job
    True
    """

    k: Whole = Field(description="smallest cell size, at least 2")
    method: str = Field("auto", description="how cells are made")
    objective: Objective = Field(
        "sse",
        description="what cells are made for: sse, near means; or ncp, narrow ranges, small sets and low ancestors",
    )
    scaling: Scaling = Field("zscore", description="what makes columns comparable: zscore, minmax or none")
    missing: Missing = Field("error", description="what to do with missing quasi-identifiers: error or own-value")
    rho: Rho | None = Field(
        None,
        ge=0,
        le=1,
        description="random aggregation of numbers, 0 to 1 or song; above 0 the release is NOT k-anonymous "
        "(docs/random.md)",
    )
    truthful: bool = Field(
        False, strict=True, description="publish only what is true of every record: intervals, sets, ancestors, periods"
    )
    intervals: IntervalForm = Field("text", description="how intervals are published: text, columns or struct")
    seed: Whole | None = Field(None, ge=0, lt=2**63, description="repeats the release; by default a random one")
    roles: Roles = Field(description="what each column is for")
    columns: dict[str, ColumnSettings] = Field({}, description="settings of single columns")
    # The next three are held as settings of columns, so they are never written.
    codes: tuple[str, ...] = Field(
        (), exclude=True, description="columns whose numbers are codes of categories; the same as kind nominal of each"
    )
    numbers: tuple[str, ...] = Field(
        (), exclude=True, description="columns whose numbers count or measure; the same as kind numeric of each"
    )
    kinds: str | None = Field(
        None,
        exclude=True,
        description="data dictionary with the kinds of columns: a table of names with a column kind, or a job file; "
        "other settings go before it",
    )
    hierarchies: str | None = Field(
        None,
        exclude=True,
        description="folder of hierarchy files, each with the name of its column: age.csv, or adult_hierarchy_age.csv",
    )
    strict: bool = Field(False, strict=True, description="notes of what may be misread are questions too")
    accept: tuple[str, ...] = Field(
        (),
        description="findings that are accepted, NAME or COLUMN=NAME: a column is released as it was read "
        "(docs/howto/findings.md)",
    )
    models: Models = Field((), description="what is promised about confidential columns, beyond k")
    rare_patterns: RarePatterns = Field(
        "cut",
        description="linked records of patterns that fewer than k persons share: the longest shared beginning stays "
        "linked, the rest is withheld (cut) or published without link (unlink); or all are withheld (withhold)",
    )
    steer: dict[str, Weight] = Field(
        {}, description="weights of columns that steer the cells: positive together, negative apart; not guaranteed"
    )
    options: dict[str, Plain] = Field({}, description="options of the method, such as effort=best")
    after: tuple[str, ...] = Field(
        (), description="cells files (RELEASE.cells) of all earlier releases of the same people (docs/series.md)"
    )
    may_withhold: Number = Field(
        0.0, ge=0, le=1, description="largest share of people who may be withheld because of earlier releases"
    )
    leavers: Leavers = Field(
        "withhold",
        description="where fewer than k have left a class since an earlier release: withhold the rest of it, or state "
        "in the report that subtraction tells of those who left",
    )
    reserve: Number | None = Field(
        None, gt=0, le=0.5, description="share of people expected to leave before later releases: larger cells keep k"
    )
    engine: EngineName | None = Field(
        None, description=f"{engines_in_words()}; by default {IN_MEMORY}, and {LIMITED} with a limit of memory"
    )
    memory: str | None = Field(
        None, description=f"how much memory the engine {LIMITED} may use, such as 2GB; chooses it"
    )
    late: Late | None = Field(None, description="how late records of a collection join")
    input: Input | None = Field(None, description="the file to read")
    output: Output | None = Field(None, description="the files to write")
    tables: tuple[TableOfPersons, ...] = Field(
        (), description="further tables of the persons whose records stay linked, released with the same identifiers"
    )
    stream: StreamSettings | None = Field(
        None, description="for a stream: when a tuple is due, and from where to where"
    )

    @model_validator(mode="before")
    @classmethod
    def _as_columns(cls, content: Any) -> Any:
        """Hold what `codes`, `numbers`, `kinds` and `hierarchies` say of columns in `columns`."""
        return with_kinds(with_hierarchies(content)) if isinstance(content, dict) else content

    @property
    def chosen_engine(self) -> str:
        """The engine that makes the release; a limit of memory chooses one that takes it."""
        return self.engine or (IN_MEMORY if self.memory is None else LIMITED)

    @property
    def is_of_series(self) -> bool:
        """Whether the release is part of a series, so that it keeps what later ones need."""
        return self.roles.key is not None or bool(self.after)

    @property
    def files(self) -> list[str]:
        """The files that are read with the table: hierarchies, a catalogue of labels, further tables, cells files."""
        given = [settings.hierarchy for settings in self.columns.values()] + [each.input.path for each in self.tables]
        catalog = None if self.input is None else self.input.catalog
        return [path for path in (*given, catalog, *self.after) if path is not None and Path(path).is_file()]

    @staticmethod
    def of(**settings: Any) -> "Job":
        """Return the job with these settings, or raise `ParameterError` naming the invalid ones."""
        return validated(Job, settings)

    @staticmethod
    def from_toml(text: str) -> "Job":
        """Return the job described by a TOML text."""
        return validated(Job, content_of(text))

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Job":
        """Return the job in a file."""
        text = job_text(path)
        try:
            return Job.from_toml(text)
        except ParameterError as error:
            raise ParameterError(f"The job file {os.fspath(path)!r} cannot be used. {error.marked}") from None

    def to_toml(self, *, with_seed: bool = True) -> str:
        """Return the job as TOML for `shoal run`: only the settings that differ from the defaults."""
        content = self.model_dump(by_alias=True, exclude_defaults=True)
        if not with_seed:
            content.pop("seed", None)
        return tomli_w.dumps(_without_none(content))

    def for_public(self) -> "Job":
        """Return the job as it may be published.

        It has neither input nor output, other files by their names alone, and a placeholder for each value that a
        setting names. Limits (top, bottom) are no values: they say what the published numbers mean.
        """
        columns = {name: _for_public(settings) for name, settings in self.columns.items()}
        after = tuple(os.path.basename(path) for path in self.after)
        update = {"input": None, "output": None, "tables": (), "columns": columns, "after": after}
        return self.model_copy(update=update)

    def to_dict(self, *, with_seed: bool = True) -> dict[str, Any]:
        """Return the job as plain values, for JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude=None if with_seed else {"seed"})


def _for_public(settings: ColumnSettings) -> ColumnSettings:
    """Return the settings of a column without paths and values; only positions of missing codes show none."""
    update: dict[str, Any] = {}
    if settings.hierarchy is not None:
        update["hierarchy"] = os.path.basename(settings.hierarchy)
    if settings.categories is not None:
        update["categories"] = (HIDDEN,) * len(settings.categories)
    if settings.missing_codes:
        update["missing_codes"] = tuple(code if code in POSITIONS else HIDDEN for code in settings.missing_codes)
    return settings.model_copy(update=update)


def _without_none(value: Any) -> Any:
    """Leave out None, which TOML cannot represent."""
    if isinstance(value, dict):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    return [_without_none(entry) for entry in value] if isinstance(value, list | tuple) else value
