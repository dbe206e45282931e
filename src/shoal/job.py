"""Job: the settings of one release. The Python call, the command line, the estimator and the job file all build one.

A job is immutable. Unknown keys are errors that suggest the nearest known key.
"""

import math
import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tomli_w
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer
from pydantic_core import PydanticCustomError

from shoal.columns.axes import Scaling
from shoal.columns.prepare import Missing
from shoal.columns.schema import ColumnSettings, Number, Roles, Settings, Whole, validated
from shoal.errors import FileError, ParameterError
from shoal.models import MODELS, Model
from shoal.models.serialization import as_model, settings_of
from shoal.table import formats_in_words

Order = Literal["shuffle", "keep"]
"""Order of the records written: by a hash of the published values, or that of the input."""

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
        raise PydanticCustomError("model", "{said}", {"said": str(error).rstrip(".")}) from None


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


class Input(Settings):
    """The file to read, and how. Settings left out are detected."""

    path: str = Field(description=f"{formats_in_words()} file")
    delimiter: str | None = Field(None, description="between the fields of a CSV file")
    encoding: str | None = Field(None, description="of a CSV file that is not UTF-8")
    decimal: str | None = Field(None, description="decimal point or comma of a CSV file")
    quote: str | None = Field(None, description="around fields of a CSV file that hold the delimiter")
    null_values: tuple[str, ...] | None = Field(None, description="fields of a CSV file that stand for a missing value")
    header: bool | None = Field(
        None, description="the first line of a CSV file is a header though it looks like a record"
    )
    names: tuple[str, ...] | None = Field(None, description="the columns of a CSV file without a header line")
    max_unpacked_gb: Number | None = Field(None, gt=0, description="GB that a .gz file may unpack to; 2 by default")

    def reading(self) -> dict[str, Any]:
        """Return the settings given for reading the file."""
        return self.model_dump(exclude={"path"}, exclude_none=True)


BoundEffort = Literal["cheap", "strong"]
"""Effort spent on a proven lower bound on the loss."""


class Output(Settings):
    """The files to write."""

    path: str = Field(description=f"{formats_in_words()} file for the release")
    order: Order = Field("shuffle", description="of the records: shuffle, or keep that of the input, which can leak")
    report: str | None = Field(None, description="HTML file for the report")
    form: Literal["internal", "public"] = Field("internal", description="of the report")
    json_file: str | None = Field(None, alias="json", description="JSON file for the report")
    bound: BoundEffort | None = Field(None, description="in the report, what no release can lose less than: how hard")


class Late(Settings):
    """How late records of a collection are assigned to existing cells; for `shoal collect` only."""

    variant: str | None = Field(None, description="one of shoal.batches.VARIANTS")
    inertial: bool = Field(False, description="count a cell of n records n / (n + 1) times its squared distance")


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
    method: str = Field("auto", description="partition algorithm")
    scaling: Scaling = Field("zscore", description="what makes columns comparable: zscore, minmax or none")
    missing: Missing = Field("error", description="what to do with missing quasi-identifiers: error or own-value")
    rho: Rho | None = Field(
        None, ge=0, le=1, description="random aggregation, 0 to 1 or song; above 0 the release is not k-anonymous"
    )
    seed: Whole | None = Field(None, ge=0, lt=2**63, description="repeats the release; by default a random one")
    roles: Roles = Field(description="what each column is for")
    columns: dict[str, ColumnSettings] = Field({}, description="settings of single columns")
    models: Models = Field((), description="what is promised about confidential columns, beyond k")
    steer: dict[str, Weight] = Field(
        {}, description="columns that lead the grouping, by weight: positive together, negative apart; promises nothing"
    )
    options: dict[str, Plain] = Field({}, description="what the method itself takes")
    late: Late | None = Field(None, description="how late records of a collection join")
    input: Input | None = Field(None, description="the file to read")
    output: Output | None = Field(None, description="the files to write")

    @staticmethod
    def of(**settings: Any) -> "Job":
        """Return the job with these settings, or raise `ParameterError` naming the invalid ones."""
        return validated(Job, settings)

    @staticmethod
    def from_toml(text: str) -> "Job":
        """Return the job described by a TOML text."""
        try:
            content = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise ParameterError(f"The job is not valid TOML: {error}.") from None
        return validated(Job, content)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Job":
        """Return the job in a file."""
        try:
            return Job.from_toml(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise FileError(f"The job file {str(path)!r} cannot be read: {error.strerror}.") from None
        except UnicodeDecodeError:
            raise FileError(f"The job file {str(path)!r} is not UTF-8 text.") from None

    def to_toml(self, *, with_seed: bool = True) -> str:
        """Return the job as TOML for `shoal run`: only the settings that differ from the defaults."""
        content = self.model_dump(by_alias=True, exclude_defaults=True)
        if not with_seed:
            content.pop("seed", None)
        return tomli_w.dumps(_without_none(content))

    def to_dict(self, *, with_seed: bool = True) -> dict[str, Any]:
        """Return the job as plain values, for JSON."""
        return self.model_dump(mode="json", by_alias=True, exclude=None if with_seed else {"seed"})


def _without_none(value: Any) -> Any:
    """Leave out None, which TOML cannot represent."""
    if isinstance(value, dict):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    return [_without_none(entry) for entry in value] if isinstance(value, list | tuple) else value
