"""Rules: the options of a stream, validated once, and stored in its checkpoints.

The settings of columns and the models are those of a release, the options of the window those of a job's table
``[stream]``. Checked here is what a stream has to know before it has seen a table, and what it does not support.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
from pydantic import Field

from shoal.arrays import as_k
from shoal.columns.prepare import Missing
from shoal.columns.schema import ColumnSettings, Kind, as_names
from shoal.errors import ParameterError, SchemaError
from shoal.job import Models, StreamRules
from shoal.models import LDiversity, Model
from shoal.models.serialization import as_models
from shoal.settings import Whole, validated
from shoal.spelling import named, setting


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
        for name, own in self.columns.items():
            _check_settings(name, own)
        for model in self.models:
            _check_model(model)
        self._check_mentioned()

    def _check_window(self) -> None:
        if self.delay is None and self.max_age is None:
            raise ParameterError(
                f"Say when a tuple is due: {setting('delay')} in tuples, {setting('max_age')} in seconds, or both."
            )
        if self.delay is not None and self.delay < self.k - 1:
            raise ParameterError(
                f"{setting('delay', self.delay)} is too short for k={self.k}: a tuple has to wait for k-1={self.k - 1} "
                f"others before a cell can close. Raise {setting('delay')} or lower k."
            )
        if self.max_cell is not None and self.max_cell < self.k:
            raise ParameterError(f"{setting('max_cell', self.max_cell)} is below k={self.k}; a cell holds at least k.")

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
                    raise ParameterError(f"Column {name!r} has a range or settings, but it is not a quasi-identifier.")
        for name in self.diverse:
            if name not in self.confidential:
                raise ParameterError(f"l-diversity names column {name!r}, which is not among the confidential ones.")
        if len(self.diverse) < len(self.models):
            raise ParameterError("Several models name the same column. Give each column one l.")

    @cached_property
    def ordinal(self) -> tuple[str, ...]:
        """The columns with levels."""
        return tuple(name for name, own in self.columns.items() if own.categories)

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        """Return the columns declared to be of a kind."""
        return tuple(name for name, own in self.columns.items() if own.kind is kind)

    @cached_property
    def diverse(self) -> dict[str, int]:
        """Minimum number of different values in a cell, by column."""
        return {model.column: model.l for model in self.models if isinstance(model, LDiversity)}

    def patience(self, seconds: float) -> float:
        """Return how long a loop may wait for tuples, so that none grows much older than it may."""
        return seconds if self.max_age is None else min(seconds, self.max_age / 4)

    def plain(self) -> dict[str, Any]:
        """Return the rules in plain values, which `as_rules` takes."""
        columns = {name: own.model_dump(exclude_defaults=True) for name, own in self.columns.items()}
        return {**self.model_dump(exclude={"columns"}), "columns": columns}


def as_rules(k: int, **options: Any) -> Rules:
    """Return the rules for these options, with names as texts; refuse options that cannot be used."""
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


def refuse_misfit(names: Sequence[str], roles: Sequence[str], dropped: Sequence[str], where: str) -> None:
    """Refuse columns without a role, roles without a column, and columns that occur twice.

    A column in `dropped` may be absent: if its name is misspelt, the real column has no role and is refused.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    absent = [name for name in roles if name not in names]
    extra = [name for name in names if name not in roles and name not in dropped]
    problems = [f"column(s) {', '.join(twice)} occur twice in the {where}"] if twice else []
    if absent:
        problems.append(f"column(s) {', '.join(absent)} are not in the {where}")
    if extra:
        problems.append(
            f"column(s) {', '.join(extra)} have no role: name each as a quasi-identifier, confidential, other "
            "(published as it is) or identifier (dropped)"
        )
    if problems:
        raise SchemaError(f"The columns do not fit: {'; '.join(problems)}.")


def _check_settings(name: str, own: ColumnSettings) -> None:
    unused = sorted(own.model_fields_set - {"kind", "categories", "weight"})
    if own.is_true or own.hierarchy is not None:
        raise ParameterError(
            f"Column {name!r} is to be published as {own.aggregate or 'medoid'}, but a stream makes no truthful "
            "values and uses no hierarchies yet. Leave it out, or make one release of all records."
        )
    if unused:
        raise ParameterError(
            f"{', '.join(unused)} is set for column {name!r}, but a stream takes only kind, categories and weight."
        )
    if own.categories is not None and (len(set(own.categories)) != len(own.categories) or not own.categories):
        raise ParameterError(f"The levels of column {name!r} must each be named once, lowest first.")
    if own.kind is Kind.ORDINAL and own.categories is None:
        raise ParameterError(
            f"Column {name!r} is ordinal. Say its levels, lowest first: {setting('categories', [...], column=name)}."
        )
    if own.categories is not None and own.kind not in (None, Kind.ORDINAL):
        raise ParameterError(f"Ordered categories are given for column {name!r}, which is {own.kind}, not ordinal.")


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
    if not isinstance(ranges, Iterable) or isinstance(ranges, str):
        raise ParameterError(
            f"{named('ranges')} has the lowest and the highest value of each column, by its name or in order; not "
            f"{type(ranges).__name__}."
        )
    pairs = ranges.items() if isinstance(ranges, Mapping) else enumerate(ranges)
    return {str(name): _pair(str(name), pair) for name, pair in pairs}


def _pair(name: str, pair: object) -> tuple[Any, Any]:
    if not (isinstance(pair, Sequence | np.ndarray) and len(pair) == 2 and not isinstance(pair, str) and _rises(*pair)):
        raise ParameterError(f"The range of column {name!r} is a pair, lowest value first.")
    if not all(_is_finite(end) for end in pair):
        raise ParameterError(
            f"The range of column {name!r} has an end that is not finite, so that it has no width to measure distance "
            "by. Give the lowest and the highest value that are to be expected."
        )
    return (pair[0], pair[1])


def _rises(low: Any, high: Any) -> bool:
    try:
        return bool(low < high)
    except TypeError:
        return False


def _is_finite(end: object) -> bool:
    """Return whether an end of a range is finite; dates and texts always are."""
    try:
        return not isinstance(end, Real) or math.isfinite(end)
    except OverflowError:
        return False
