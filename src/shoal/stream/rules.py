"""Rules: the options of a stream, validated once, and stored in its checkpoints."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

from shoal.arrays import as_cell_size
from shoal.columns.schema import ColumnSettings, Kind, as_names, as_settings
from shoal.errors import ParameterError, did_you_mean
from shoal.models import LDiversity, Model
from shoal.models.serialization import as_models, settings_of

MISSING_POLICIES = ("error", "own-value")
ERROR_POLICIES = ("fail", "side")


@dataclass(frozen=True)
class Rules:
    """The options of `shoal.stream.Stream`, in plain values."""

    k: int
    quasi_identifiers: tuple[str, ...] | None
    delay: int | None
    max_age: float | None
    order_weight: float
    subject: str | None
    max_cell: int | None
    ranges: dict[str, tuple[Any, Any]]
    adapt: float
    columns: dict[str, ColumnSettings]
    confidential: tuple[str, ...]
    other: tuple[str, ...]
    identifiers: tuple[str, ...]
    models: tuple[Model, ...]
    missing: str
    on_error: str
    tracked: tuple[str, ...]

    def __post_init__(self) -> None:
        self._check_window()
        self._check_numbers()
        self._check_columns()

    def _check_window(self) -> None:
        as_cell_size(self.k, self.k)
        if self.delay is None and self.max_age is None:
            raise ParameterError("Say when a tuple is due: delay= in tuples, max_age= in seconds, or both.")
        if self.delay is not None:
            _whole("delay", self.delay)
            if self.delay < self.k - 1:
                raise ParameterError(
                    f"delay={self.delay} is too short for k={self.k}: a tuple has to wait for k-1={self.k - 1} others "
                    "before a cell can close. Raise delay= or lower k."
                )
        if self.max_age is not None and not (_is_number(self.max_age) and self.max_age > 0):
            raise ParameterError(f"max_age={self.max_age!r} is not a number of seconds above 0.")

    def _check_numbers(self) -> None:
        if not (_is_number(self.order_weight) and 0 <= self.order_weight < math.inf):
            raise ParameterError(f"order_weight={self.order_weight!r} is not a number of at least 0.")
        if self.max_cell is not None:
            _whole("max_cell", self.max_cell)
            if self.max_cell < self.k:
                raise ParameterError(f"max_cell={self.max_cell} is below k={self.k}; a cell holds at least k.")
        if not (_is_number(self.adapt) and 0 <= self.adapt <= 1):
            raise ParameterError(f"adapt={self.adapt!r} is not a share between 0 and 1.")
        for policy, known in ((self.missing, MISSING_POLICIES), (self.on_error, ERROR_POLICIES)):
            if policy not in known:
                raise ParameterError(f"{policy!r} is not a policy here. Policies: {', '.join(known)}.")

    def _check_columns(self) -> None:
        roles = [*(self.quasi_identifiers or ()), *self.confidential, *self.other, *self.identifiers, *self.tracked]
        twice = sorted({name for name in roles if roles.count(name) > 1})
        if twice:
            raise ParameterError(f"Column(s) {', '.join(twice)} have two roles; give each one.")
        if self.subject is not None and self.subject in (*self.identifiers, *(self.quasi_identifiers or ())):
            raise ParameterError(
                f"The subject column {self.subject!r} cannot be an identifier or quasi-identifier too."
            )
        for name, setting in self.columns.items():
            _check_setting(name, setting)
        for model in self.models:
            _check_model(model)
        self._check_mentioned()

    def _check_mentioned(self) -> None:
        """Refuse an option for a column without the role it needs, since it would have no effect."""
        if self.quasi_identifiers is not None:
            for name in (*self.ranges, *self.columns):
                if name not in self.quasi_identifiers:
                    raise ParameterError(f"Column {name!r} has a range or settings but is no quasi-identifier.")
        for name in self.diverse:
            if name not in self.confidential:
                raise ParameterError(f"l-diversity names column {name!r}, which is not among the confidential ones.")
        if len(self.diverse) < len(self.models):
            raise ParameterError("Several models name the same column. Give each column one l.")

    @cached_property
    def weights(self) -> dict[str, float]:
        """The weights of columns in distances."""
        return {name: setting.weight for name, setting in self.columns.items()}

    @cached_property
    def ordinal(self) -> dict[str, tuple[str, ...]]:
        """The levels of ordinal columns, lowest first."""
        return {name: tuple(map(str, setting.order)) for name, setting in self.columns.items() if setting.order}

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the columns declared to be of a kind."""
        return tuple(name for name, setting in self.columns.items() if setting.kind is kind)

    @cached_property
    def diverse(self) -> dict[str, int]:
        """Minimum number of different values in a cell, by column."""
        return {model.column: model.l for model in self.models if isinstance(model, LDiversity)}

    def plain(self) -> dict[str, Any]:
        """Return the rules in plain values, which `as_rules` takes."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        plain["columns"] = {name: setting.model_dump(exclude_defaults=True) for name, setting in self.columns.items()}
        plain["models"] = [settings_of(model) for model in self.models]
        return plain


def as_rules(k: int, **options: Any) -> Rules:
    """Return the rules for these options, with names as texts and sequences as tuples."""
    quasi = options["quasi_identifiers"]
    return Rules(
        k=k,
        **{
            **options,
            "quasi_identifiers": None if quasi is None else _names(quasi),
            "subject": None if options["subject"] is None else str(options["subject"]),
            "ranges": _ranges(options["ranges"]),
            "columns": as_settings({str(name): given for name, given in (options["columns"] or {}).items()}),
            "models": as_models(options["models"]),
            **{name: _names(options[name]) for name in ("confidential", "other", "identifiers", "tracked")},
        },
    )


RENAMED = {
    "weights": 'columns={"age": {"weight": 2}} sets the weight of a column in distances',
    "nominal": 'columns={"zip": {"kind": "nominal"}} sets the kind of a column',
    "ordinal": 'columns={"school": {"order": ["low", "high"]}} sets the levels of a column',
    "diverse": 'models=[LDiversity("diagnosis", l=3)] asks for different confidential values',
}
"""Former arguments of a stream, and those of `shoal.anonymize` that replace them."""


def refuse_unknown(names: Iterable[str]) -> None:
    """Refuse arguments that a stream does not have, naming the one to use."""
    for name in names:
        if name in RENAMED:
            raise ParameterError(f"{name}= is no longer an argument of a stream: {RENAMED[name]}.")
        raise ParameterError(
            f"A stream has no argument {name!r}.{did_you_mean(name, known=Rules.__dataclass_fields__)}"
        )


def _check_setting(name: str, setting: ColumnSettings) -> None:
    unused = sorted(setting.model_fields_set - {"kind", "order", "weight"})
    if setting.is_true or setting.hierarchy is not None:
        raise ParameterError(
            f"Column {name!r} is to be published as {setting.aggregate or 'medoid'}, but a stream makes no truthful "
            "values and uses no hierarchies yet. Leave it out, or make one release of all records."
        )
    if unused:
        raise ParameterError(
            f"{', '.join(unused)} is set for column {name!r}, but a stream takes only kind, order and weight."
        )
    if setting.order is not None and (len(set(setting.order)) != len(setting.order) or not setting.order):
        raise ParameterError(f"The levels of column {name!r} must each be named once, lowest first.")
    if setting.kind is Kind.ORDINAL and setting.order is None:
        raise ParameterError(
            f'Column {name!r} is ordinal; say its levels, lowest first: columns={{{name!r}: {{"order": [...]}}}}, on '
            f"the command line --order-of {name}=low,high."
        )
    if setting.order is not None and setting.kind not in (None, Kind.ORDINAL):
        raise ParameterError(f"An order is given for column {name!r}, which is {setting.kind}, not ordinal.")


def _check_model(model: Model) -> None:
    if not isinstance(model, LDiversity) or model.kind != "distinct":
        raise ParameterError(
            f"A stream keeps distinct l-diversity in each cell; {model.name} of {model.column!r} was asked for. A "
            "stream does not know the distribution of all tuples. Use LDiversity(column, l), or collect the records."
        )


def _names(columns: Sequence[Any]) -> tuple[str, ...]:
    return tuple(str(name) for name in as_names(columns))


def _ranges(ranges: Mapping[Any, Sequence[Any]] | Sequence[Sequence[Any]] | None) -> dict[str, tuple[Any, Any]]:
    if ranges is None:
        return {}
    pairs = ranges.items() if isinstance(ranges, Mapping) else enumerate(ranges)
    return {str(name): _pair(str(name), pair) for name, pair in pairs}


def _pair(name: str, pair: Sequence[Any]) -> tuple[Any, Any]:
    if isinstance(pair, str) or len(pair) != 2 or not pair[0] < pair[1]:
        raise ParameterError(f"The range of column {name!r} is a pair, lowest value first.")
    if not all(_is_finite(end) for end in pair):
        raise ParameterError(
            f"The range of column {name!r} has an end that is not finite, so that it has no width to measure distance "
            "by. Give the lowest and the highest value that are to be expected."
        )
    return (pair[0], pair[1])


def _is_finite(end: object) -> bool:
    """Return whether an end of a range is finite; dates and texts always are."""
    try:
        return not isinstance(end, Real) or math.isfinite(end)
    except OverflowError:
        return False


def _whole(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ParameterError(f"{name}={value!r} is not a whole number.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
