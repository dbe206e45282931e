"""Schema: what each column is for (its role) and what its values are (its kind).

Roles are never guessed: a column without a role is an error, because publishing it may identify people and dropping
it silently may ruin the study.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from shoal.columns.aggregates import AGGREGATES, AggregateName, Form, default_aggregate, described
from shoal.errors import ParameterError, SchemaError, did_you_mean, listed
from shoal.settings import Entry, Number, Settings, Whole, validated
from shoal.sources.clean import check_names
from shoal.spelling import named, setting

if TYPE_CHECKING:
    from shoal.columns.coarse.interval_ends import Calendar, Grid
    from shoal.columns.hierarchy import Hierarchy


class Role(StrEnum):
    """What a column is for."""

    IDENTIFIER = "identifier"  # dropped
    QUASI = "quasi-identifier"  # grouped and replaced
    BY = "by"  # a quasi-identifier that no cell mixes, so it is published as it is
    CONFIDENTIAL = "confidential"  # published as it is, protected by the models
    OTHER = "other"  # published as it is, on request
    LINK = "link"  # says which records belong together; published as a new random identifier


class Kind(StrEnum):
    """What the values of a column are."""

    NUMERIC = "numeric"
    ORDINAL = "ordinal"
    NOMINAL = "nominal"
    DATE = "date"


PUBLISHED = (Role.QUASI, Role.BY, Role.CONFIDENTIAL, Role.OTHER, Role.LINK)

Link = Literal["subject", "household"]
"""Whose records stay linked in the release."""

POSITIONS = ("smallest", "largest")
"""Missing codes of numbers and dates by their place: the values there that lie apart from all others."""

Precision = Literal["month", "quarter", "year", "decade"]
"""How exactly a date is published, the finest first."""

Outside = Literal["error", "root"]
"""What to do with values that are not in the hierarchy: refuse them, or put them directly under the root."""

TreeDistance = Literal["path", "information"]
"""How far two values of a hierarchy are apart: by levels up to their common ancestor, or by its information content."""


class ColumnSettings(Settings):
    """Settings of one column beyond its role; everything has a default.

    Examples
    --------
    >>> ColumnSettings(kind="numeric", round=0, top=90).round
    0
    """

    kind: Kind | None = Field(None, description="numeric, ordinal, nominal or date; by default what the type says")
    categories: tuple[Entry, ...] | None = Field(None, description="categories of an ordinal column, lowest first")
    missing_codes: tuple[Entry, ...] = Field(
        (), description="values that mean missing; of numbers also smallest, largest: those apart from all others"
    )
    weight: Number = Field(1.0, gt=0, le=1e6, description="weight of the column in distances")
    aggregate: AggregateName | None = Field(None, description=described())
    hierarchy: str | None = Field(
        None, description="groups of the values: a file (value;group;..;*), or prefix:1,3, steps:5,10, calendar"
    )
    outside: Outside = Field("error", description="values that the hierarchy does not list: error, or root")
    level: Whole | None = Field(None, ge=1, description="lowest level of the hierarchy that is published")
    distance: TreeDistance = Field("path", description="of values with a hierarchy: path or information")
    step: Number | None = Field(
        None, gt=0, allow_inf_nan=False, description="ends of intervals are multiples of it; by default from the data"
    )
    precision: Precision | None = Field(
        None, description="of periods: month, quarter, year or decade; by default the finest that a cell allows"
    )
    round: Whole | None = Field(
        None, ge=-12, le=12, description="decimals of the published value; 0 keeps whole numbers"
    )
    top: Number | None = Field(
        None, allow_inf_nan=False, description="larger values are replaced by this one, before anything else"
    )
    bottom: Number | None = Field(None, allow_inf_nan=False, description="smaller values are replaced by this one")
    fold: bool = Field(
        False, strict=True, description="texts that differ only in case or blanks become the most frequent of them"
    )
    keep_zeros: bool = Field(False, strict=True, description="records with a zero share no cell with others")

    @property
    def is_true(self) -> bool:
        """Whether an aggregate is set whose values are true of every record."""
        return self.aggregate is not None and AGGREGATES[self.aggregate].is_true


@dataclass(frozen=True)
class Column:
    """A column of the table, with its role and its kind."""

    name: str
    role: Role
    kind: Kind
    type: pa.DataType
    settings: ColumnSettings
    own_missing: bool = False  # the file itself declares missing values of it
    truthful: bool = False  # whether every published value has to be true of every record of its cell
    hierarchy: "Hierarchy | None" = None  # loaded when the table is prepared, as the grid is chosen then
    grid: "Grid | None" = None  # where intervals end
    calendar: "Calendar | None" = None  # where periods end
    shared_nodes: NDArray[np.bool_] | None = field(default=None, compare=False)  # of the hierarchy, those of k persons

    @property
    def aggregate(self) -> str:
        """How the records of a cell become one value of this column: an entry of `AGGREGATES`."""
        if self.settings.aggregate is not None:
            return self.settings.aggregate
        return default_aggregate(self.kind, self.truthful, self.settings.hierarchy is not None)

    @property
    def names_positions(self) -> bool:
        """Whether missing codes are named by their position, which all records together show."""
        is_measured = natural_kind(self.type) in (Kind.NUMERIC, Kind.DATE)
        return is_measured and not set(POSITIONS).isdisjoint(self.settings.missing_codes)

    @property
    def form(self) -> Form | None:
        """The form of the published values, if they are true of every record of their cell, as an interval is."""
        return AGGREGATES[self.aggregate].form if self.role is Role.QUASI else None

    @property
    def is_true(self) -> bool:
        """Whether the published value is true of every record of its cell, as an interval or a set is."""
        return self.form is not None


ROLE_KEYS = {
    Role.IDENTIFIER: "identifiers",
    Role.QUASI: "quasi_identifiers",
    Role.BY: "by",
    Role.CONFIDENTIAL: "confidential",
    Role.OTHER: "other",
}
"""The key of each role in a job, and its argument in Python."""


class Roles(Settings):
    """The roles of columns, as a user gave them."""

    identifiers: tuple[str, ...] = Field((), description="columns that name a person: dropped")
    quasi_identifiers: tuple[str, ...] = Field(
        (), description="what somebody could know about a person: grouped and replaced"
    )
    by: tuple[str, ...] = Field((), description="columns that no cell mixes, published as they are")
    confidential: tuple[str, ...] = Field((), description="columns published as they are, protected by the models")
    other: tuple[str, ...] = Field((), description="columns published as they are, on request")
    subject: str | None = Field(
        None, description="identifies the person of a record; dropped unless it has another role"
    )
    household: str | None = Field(
        None, description="identifies the household of a record; dropped unless it has another role"
    )
    household_level: tuple[str, ...] | None = Field(
        None, description="quasi-identifiers that stay equal within a household; by default those that are equal"
    )
    keep_link: Link | None = Field(
        None,
        description="publish a new identifier, the same for all records of a person (subject) or household, and count "
        "k on whole histories (docs/linked.md)",
    )
    link_order: tuple[str, ...] = Field(
        (), description="columns that put the linked records of a person in order, such as a date"
    )
    weights: str | None = Field(None, description="survey weights; not published unless named in other")
    key: str | None = Field(
        None, description="names the person of a record in all releases of a series (docs/series.md): dropped"
    )

    def named(self) -> dict[Role, tuple[str, ...]]:
        """Return the columns of each role, as they were given."""
        return {role: getattr(self, key) for role, key in ROLE_KEYS.items()}

    def helpers(self) -> tuple[str, ...]:
        """Return the columns that are used for another purpose than a role: subject, household, weights, key, order."""
        alone = (name for name in (self.subject, self.household, self.weights, self.key) if name is not None)
        return tuple(dict.fromkeys([*alone, *self.link_order]))

    @property
    def link(self) -> str | None:
        """The column whose records stay linked."""
        return None if self.keep_link is None else getattr(self, self.keep_link)

    @property
    def counted(self) -> str | None:
        """The column whose values k counts, if it does not count records: persons, or linked households."""
        return self.link or self.subject


@dataclass(frozen=True)
class Schema:
    """The columns of a table with their roles, in the order of the table.

    Examples
    --------
    >>> people = pa.schema({"name": pa.string(), "age": pa.int64(), "diagnosis": pa.string()})
    >>> roles = Roles(identifiers=("name",), quasi_identifiers=("age",), confidential=("diagnosis",))
    >>> schema = Schema.of(people, roles)
    >>> [f"{column.name}: {column.role}, {column.kind}" for column in schema.columns]
    ['name: identifier, nominal', 'age: quasi-identifier, numeric', 'diagnosis: confidential, nominal']
    """

    columns: tuple[Column, ...]
    roles: Roles

    @staticmethod
    def of(
        types: pa.Schema,
        roles: Roles,
        settings: Mapping[str, ColumnSettings] | None = None,
        truthful: bool = False,
    ) -> "Schema":
        """Match the roles and settings with the columns of a table, or raise if they do not fit.

        Parameters
        ----------
        types : pyarrow.Schema
            Names and types of the columns.
        roles : Roles
            Roles given by the user.
        settings : mapping of str to ColumnSettings, optional
            Settings given by the user for single columns.
        truthful : bool
            Whether every published value has to be true of every record of its cell.

        Raises
        ------
        SchemaError
            If a column is missing, named twice or not named at all, if there is no quasi-identifier, or if a setting
            does not fit the kind or the role of its column.
        """
        settings = settings or {}
        check_names(types.names)
        role_of = _role_of(types.names, roles)
        _check_known(types.names, settings, "columns")
        columns = tuple(
            _column(name, role_of[name], types.field(name).type, settings.get(name, ColumnSettings()), truthful)
            for name in types.names
            if name in role_of
        )
        schema = Schema(columns, roles)
        for name in roles.household_level or ():
            if name not in [column.name for column in schema.quasi]:
                raise SchemaError(f"Column {name!r} is given as household-level, but it is not a quasi-identifier.")
        if roles.household_level is not None and roles.household is None:
            raise SchemaError(
                "Household-level columns are given, but no column that says which records form a household."
            )
        _check_link(schema)
        return schema

    def __getitem__(self, name: str) -> Column:
        return next(column for column in self.columns if column.name == name)

    def having(self, *roles: Role) -> tuple[Column, ...]:
        """Return the columns with one of these roles."""
        return tuple(column for column in self.columns if column.role in roles)

    @property
    def quasi(self) -> tuple[Column, ...]:
        """The columns that are grouped and replaced."""
        return self.having(Role.QUASI)

    @property
    def quasi_names(self) -> list[str]:
        """The names of what an intruder may know: quasi-identifiers and the columns of `by`."""
        return [column.name for column in self.having(Role.QUASI, Role.BY)]

    @property
    def link(self) -> Column | None:
        """The column of new identifiers, if records stay linked."""
        return next(iter(self.having(Role.LINK)), None)

    @property
    def published(self) -> tuple[Column, ...]:
        """The columns of the release, in the order of the table."""
        return self.having(*PUBLISHED)

    @property
    def needed(self) -> list[str]:
        """The columns that have to be in memory to make the cells."""
        names = {*self.quasi_names, *self.roles.helpers()}
        return [column.name for column in self.columns if column.name in names]


def _role_of(names: list[str], roles: Roles) -> dict[str, Role]:
    """Return the role of each column, or raise for columns that have none, two, or do not exist."""
    role_of: dict[str, Role] = {}
    for role, given in roles.named().items():
        _check_known(names, given, f"{role} columns")
        for name in given:
            if name in role_of:
                raise SchemaError(
                    f"Column {name!r} is named twice: as {role_of[name]} and as {role}. A column has one role."
                )
            role_of[name] = role
    _check_known(names, roles.helpers(), "subject, household, weights or key")
    if not roles.quasi_identifiers:
        raise SchemaError(
            "No quasi-identifier is named, so there is nothing to group records by. Name the columns that somebody "
            f"could know about a person: {setting('quasi_identifiers', [...])}. Columns: {listed(names)}."
        )
    without = [name for name in names if name not in role_of and name not in roles.helpers()]
    if without:
        raise SchemaError(
            f"{len(without)} of {len(names)} columns have no role: {listed(without)}. Say for each what it is: "
            f"{named('identifiers')} (dropped), {named('quasi_identifiers')} (grouped and replaced), "
            f"{named('confidential')} (published as it is) or {named('other')} (published as it is). `shoal inspect "
            "FILE` proposes roles."
        )
    for name in roles.helpers():
        role_of.setdefault(name, Role.IDENTIFIER)
    if roles.link is not None:
        if role_of[roles.link] is not Role.IDENTIFIER:
            raise SchemaError(
                f"{setting('keep_link', roles.keep_link)} publishes new identifiers in place of column {roles.link!r}, "
                f"which has the role {role_of[roles.link]} as well. Leave that role out."
            )
        role_of[roles.link] = Role.LINK
    return role_of


def _check_link(schema: Schema) -> None:
    """Refuse linked records without whose they are or in what order, and settings of them that would have no effect."""
    roles = schema.roles
    if roles.keep_link is None:
        if roles.link_order:
            raise SchemaError(
                f"{named('link_order')} is given, but no records stay linked. Leave it out, or say whose records do: "
                f"{setting('keep_link', 'subject')}."
            )
        return
    asked = setting("keep_link", roles.keep_link)
    if roles.link is None:
        raise SchemaError(f"{asked} is given, but no column says whose a record is. Name it: {named(roles.keep_link)}.")
    if roles.subject is not None and roles.household is not None:
        raise SchemaError(
            f"{asked} is given beside a subject and a household column. Records are linked by one of them: leave the "
            "other out, or give it another role."
        )
    if roles.household_level is not None:
        raise SchemaError(
            f"{named('household_level')} is given with {asked}. Linked households are grouped by all quasi-identifiers "
            "of their members. Leave it out."
        )
    if not roles.link_order:
        raise SchemaError(
            f"{asked} is given, but no column puts the linked records in order. Name it: "
            f"{setting('link_order', ['date'])}; several columns break ties."
        )
    for name in roles.link_order:
        if natural_kind(schema[name].type) is None:
            raise SchemaError(f"Column {name!r}, named in link_order, holds {schema[name].type}, which has no order.")


def _check_known(names: list[str], given: Iterable[str], what: str) -> None:
    known = set(names)
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known=names)
            raise SchemaError(f"Column {name!r}, named in {what}, is not in the table.{hint} Columns: {listed(names)}.")


def _column(name: str, role: Role, type_: pa.DataType, settings: ColumnSettings, truthful: bool) -> Column:
    natural = natural_kind(type_)
    kind = settings.kind or (Kind.ORDINAL if settings.categories is not None else natural)
    if kind is None:
        if role in (Role.QUASI, Role.BY):
            raise SchemaError(
                f"Column {name!r} holds {type_}, which has no distance. Split it into plain columns, or "
                "give it another role than quasi-identifier."
            )
        if role is Role.CONFIDENTIAL:
            raise SchemaError(
                f"Column {name!r} holds {type_}, of which neither l-diversity nor t-closeness can be measured. Split "
                "it into plain columns, or give it the role other."
            )
        kind = Kind.NOMINAL
    if role is Role.LINK:
        return link_column(name)
    column = Column(name, role, kind, type_, settings, truthful=truthful)
    _check_kind(column, natural)
    _check_settings(column)
    if role is Role.QUASI:
        _check_truth(column)
        _check_hierarchy(column)
    return column


def link_column(name: str) -> Column:
    """Return the column that links records, as new identifiers."""
    return Column(name, Role.LINK, Kind.NOMINAL, pa.int64(), ColumnSettings())


def natural_kind(type_: pa.DataType) -> Kind | None:
    """Return the kind of the values of a type, if there is one."""
    types = pa.types
    if types.is_dictionary(type_):
        return Kind.ORDINAL if type_.ordered else Kind.NOMINAL
    if types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_):
        return Kind.NUMERIC
    if types.is_temporal(type_) and not types.is_interval(type_):
        return Kind.DATE
    if is_text(type_) or types.is_boolean(type_) or types.is_null(type_):
        return Kind.NOMINAL
    return None


def is_text(type_: pa.DataType) -> bool:
    """Return whether the values are text, in any of Arrow's types."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def value_type(type_: pa.DataType) -> pa.DataType:
    """Return a type with the values of dictionaries in their place, also within lists, structs and maps."""
    if pa.types.is_dictionary(type_):
        return value_type(type_.value_type)
    if pa.types.is_struct(type_):
        return pa.struct([field.with_type(value_type(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(value_type(type_.key_type), value_type(type_.item_type), type_.keys_sorted)
    for is_so, made in ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list)):
        if is_so(type_):
            return made(type_.value_field.with_type(value_type(type_.value_type)))
    if pa.types.is_fixed_size_list(type_):
        return pa.list_(type_.value_field.with_type(value_type(type_.value_type)), type_.list_size)
    return type_


def _check_kind(column: Column, natural: Kind | None) -> None:
    """Refuse a kind that the values of the column cannot have."""
    if column.kind in (Kind.NUMERIC, Kind.DATE) and natural is not column.kind:
        raise SchemaError(
            f"Column {column.name!r} is declared {column.kind}, but it holds {_plain(column.type)}. Convert it first, "
            "or leave the kind out."
        )
    if column.kind is Kind.ORDINAL and column.settings.categories is None and natural is Kind.NOMINAL:
        raise SchemaError(
            f"Column {column.name!r} is declared ordinal, but the order of its categories is not known. Give them, "
            f"lowest first: {setting('categories', [...], column=column.name)}."
        )


def _plain(type_: pa.DataType) -> str:
    return "text" if is_text(type_) or pa.types.is_dictionary(type_) else str(type_)


def _check_settings(column: Column) -> None:
    """Refuse settings that would have no effect, or not the expected one."""
    given = column.settings.model_fields_set
    numbers = {"round", "top", "bottom", "keep_zeros"}
    if column.role is not Role.QUASI:
        unused = sorted(given - {"kind", "categories"})
        if unused:
            raise SchemaError(
                f"{named(*unused)} is set for column {column.name!r}, whose role is {column.role}. Only "
                "quasi-identifiers are scaled and aggregated."
            )
    if column.kind is not Kind.NUMERIC and given & numbers:
        raise SchemaError(
            f"{named(*sorted(given & numbers))} is set for column {column.name!r}, which is {column.kind}. It works on "
            "numeric columns."
        )
    if "categories" in given and column.kind is not Kind.ORDINAL:
        raise SchemaError(
            f"Ordered categories are given for column {column.name!r}, which is {column.kind}, not ordinal."
        )
    if "fold" in given and not is_text(value_type(column.type)):
        raise SchemaError(
            f"{named('fold')} is set for column {column.name!r}, which holds {column.type}. It works on text."
        )
    aggregate = AGGREGATES[column.aggregate]
    if column.kind not in aggregate.kinds:
        raise SchemaError(f"Column {column.name!r} is {column.kind} and {aggregate.unfit}")
    if aggregate.form == "period" and not has_calendar(column.type):
        raise SchemaError(
            f"Column {column.name!r} holds {_plain(column.type)}, which has no months and years. Period works on dates."
        )
    low, high = column.settings.bottom, column.settings.top
    if low is not None and high is not None and low >= high:
        raise SchemaError(f"The bottom code of column {column.name!r} is not below its top code.")


def _check_truth(column: Column) -> None:
    """Refuse settings that contradict, or do nothing to, values that are true of every record."""
    if column.truthful and not column.is_true:
        raise SchemaError(
            f"Every value has to be true of its class (truthful), but column {column.name!r} is aggregated by "
            f"{column.aggregate}, which is not. Leave one of them out."
        )
    if column.is_true and column.settings.round is not None:
        raise SchemaError(
            f"{named('round')} is set for column {column.name!r}, which is published as {column.aggregate}: rounding "
            "could make it false. The ends of intervals are rounded outwards to a step."
        )
    coded = sorted(column.settings.model_fields_set & {"top", "bottom"})
    if column.is_true and column.form != "interval" and coded:
        raise SchemaError(
            f"{named(*coded)} is set for column {column.name!r}, which is published as {column.aggregate}: it would be "
            f"false for those beyond the code. Say {setting('aggregate', 'interval', column=column.name)}, which is "
            "open there, or leave the code out."
        )
    for way, aggregate in AGGREGATES.items():
        if aggregate.setting in column.settings.model_fields_set and column.aggregate != way:
            raise SchemaError(
                f"{named(aggregate.setting)} is set for column {column.name!r}, which is aggregated by "
                f"{column.aggregate}. It works with {setting('aggregate', way, column=column.name)}."
            )


def _check_hierarchy(column: Column) -> None:
    """Refuse an ancestor without a hierarchy, and a hierarchy that nothing uses."""
    given = column.settings.model_fields_set
    if column.settings.hierarchy is None:
        unused = sorted(given & {"outside", "distance"})
        if unused:
            raise SchemaError(f"{named(*unused)} is set for column {column.name!r}, which has no hierarchy.")
        if column.form == "ancestor":
            raise SchemaError(
                f"Column {column.name!r} is to be published as the common ancestor of its values, but it has no "
                "hierarchy. Give one, a file or a rule such as prefix:1,3; or publish a set or an interval, which need "
                "none."
            )
        return
    if column.kind is not Kind.NOMINAL and column.form != "ancestor":
        raise SchemaError(
            f"A hierarchy is given for column {column.name!r}, which is {column.kind} and aggregated by "
            f"{column.aggregate}, so nothing would use it. Say {setting('aggregate', 'ancestor', column=column.name)}, "
            "or leave the hierarchy out."
        )
    if "distance" in given and column.kind is not Kind.NOMINAL:
        raise SchemaError(
            f"{named('distance')} is set for column {column.name!r}, which is {column.kind}. Only nominal columns take "
            "their distance from a hierarchy."
        )


def has_calendar(type_: pa.DataType) -> bool:
    """Return whether values are points in time, not times of day or lengths of time."""
    return bool(pa.types.is_date(type_) or pa.types.is_timestamp(type_))


def as_settings(settings: Mapping[str, Any] | None) -> dict[str, ColumnSettings]:
    """Return the settings of columns as `ColumnSettings`, whether given as plain mappings or not."""
    return {
        name: given if isinstance(given, ColumnSettings) else validated(ColumnSettings, given, f"columns.{name}")
        for name, given in (settings or {}).items()
    }


def as_names(given: Sequence[str] | str) -> list[str]:
    """Return one column name or several as a list."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable):
        raise ParameterError(f"Columns are given by a name or a list of names, not by {type(given).__name__}.")
    return list(given)
