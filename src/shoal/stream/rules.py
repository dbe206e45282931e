"""Rules: the options of a stream, validated once, and stored in its checkpoints.

The settings of columns and the models are those of a release, the options of the window those of a job's table
``[stream]``. Checked here is what a stream has to know before it has seen a table, and what it does not support.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

from pydantic import Field

from shoal.arrays import as_k
from shoal.columns.prepare import Missing
from shoal.columns.schema import ColumnSettings, Kind, as_names
from shoal.errors import ParameterError
from shoal.job import Models, StreamRules
from shoal.models import LDiversity, Model
from shoal.models.serialization import as_models
from shoal.settings import Whole, validated


class Rules(StreamRules):
    """The options of `shoal.stream.Stream`, in plain values."""

    k: Whole
    quasi_identifiers: tuple[str, ...] | None = None
    subject: str | None = None
    ranges: dict[str, tuple[Any, Any]] = Field({})
    columns: dict[str, ColumnSettings] = Field({})
    confidential: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    models: Models = ()
    missing: Missing = "error"
    tracked: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse rules that contradict each other, and settings that a stream does not support."""
        self._check_window()
        self._check_roles()
        for name, setting in self.columns.items():
            _check_setting(name, setting)
        for model in self.models:
            _check_model(model)
        self._check_mentioned()

    def _check_window(self) -> None:
        if self.delay is None and self.max_age is None:
            raise ParameterError("Say when a tuple is due: delay= in tuples, max_age= in seconds, or both.")
        if self.delay is not None and self.delay < self.k - 1:
            raise ParameterError(
                f"delay={self.delay} is too short for k={self.k}: a tuple has to wait for k-1={self.k - 1} others "
                "before a cell can close. Raise delay= or lower k."
            )
        if self.max_cell is not None and self.max_cell < self.k:
            raise ParameterError(f"max_cell={self.max_cell} is below k={self.k}; a cell holds at least k.")

    def _check_roles(self) -> None:
        roles = [*(self.quasi_identifiers or ()), *self.confidential, *self.other, *self.identifiers, *self.tracked]
        twice = sorted({name for name in roles if roles.count(name) > 1})
        if twice:
            raise ParameterError(f"Column(s) {', '.join(twice)} have two roles; give each one.")
        if self.subject is not None and self.subject in (*self.identifiers, *(self.quasi_identifiers or ())):
            raise ParameterError(
                f"The subject column {self.subject!r} cannot be an identifier or quasi-identifier too."
            )

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
    def ordinal(self) -> tuple[str, ...]:
        """The columns with levels."""
        return tuple(name for name, setting in self.columns.items() if setting.order)

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the columns declared to be of a kind."""
        return tuple(name for name, setting in self.columns.items() if setting.kind is kind)

    @cached_property
    def diverse(self) -> dict[str, int]:
        """Minimum number of different values in a cell, by column."""
        return {model.column: model.l for model in self.models if isinstance(model, LDiversity)}

    def plain(self) -> dict[str, Any]:
        """Return the rules in plain values, which `as_rules` takes."""
        columns = {name: setting.model_dump(exclude_defaults=True) for name, setting in self.columns.items()}
        return {**self.model_dump(exclude={"columns"}), "columns": columns}


def as_rules(k: int, **options: Any) -> Rules:
    """Return the rules for these options, with names as texts; refuse options that cannot be used."""
    for name in options:
        if name in RENAMED:
            raise ParameterError(f"{name}= is no longer an argument of a stream: {RENAMED[name]}.")
    quasi, subject = options.pop("quasi_identifiers", None), options.pop("subject", None)
    roles = {name: _names(options.pop(name, ())) for name in ("confidential", "other", "identifiers", "tracked")}
    rules = validated(
        Rules,
        {
            **options,
            **roles,
            "k": as_k(k),
            "quasi_identifiers": None if quasi is None else _names(quasi),
            "subject": None if subject is None else str(subject),
            "ranges": _ranges(options.get("ranges")),
            "columns": {str(name): given for name, given in (options.get("columns") or {}).items()},
            "models": as_models(options.get("models", ())),
        },
    )
    rules.check()
    return rules


RENAMED = {
    "weights": 'columns={"age": {"weight": 2}} sets the weight of a column in distances',
    "nominal": 'columns={"zip": {"kind": "nominal"}} sets the kind of a column',
    "ordinal": 'columns={"school": {"order": ["low", "high"]}} sets the levels of a column',
    "diverse": 'models=[LDiversity("diagnosis", l=3)] asks for different confidential values',
}
"""Former arguments of a stream, and those of `shoal.anonymize` that replace them."""


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
