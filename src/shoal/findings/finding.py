"""Finding: how a column may have been misread, and the settings that settle it.

Plain data: names, counts and settings. A remedy holds a value of the table only where values were asked for.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal, get_args

from shoal.spelling import Dialect, as_listed, as_word, in_r, option_name

Place = Literal["field", "column", "role", "accept", "rows"]
"""Where a setting belongs: how a column of texts is read, settings of a column, its role, accepted findings, or which
records are read."""

_OF_ALL = ("role", "accept", "rows")  # settings that name the column in their value

HIDDEN = "VALUE"
"""Placeholder for a value of the table that is not shown."""


@dataclass(frozen=True)
class Remedy:
    """Settings that together settle a finding.

    Attributes
    ----------
    place : {"field", "column", "role", "accept", "rows"}
        Where they belong.
    column : str
    settings : dict of str to Any
        What to set, by the names of a job and of Python; `HIDDEN` in place of values of the table.

    Examples
    --------
    >>> remedy = Remedy("column", "walls", {"kind": "nominal"})
    >>> remedy.option, remedy.key, remedy.argument
    ('--kind walls=nominal', '[columns.walls] kind = "nominal"', 'columns={"walls": {"kind": "nominal"}}')
    """

    place: Place
    column: str
    settings: dict[str, Any]

    @property
    def option(self) -> str:
        """The options of the command line."""
        return " ".join(self._option(setting, value) for setting, value in self.settings.items())

    def _option(self, setting: str, value: Any) -> str:
        flag = option_name(setting)
        if self.place in _OF_ALL:
            return " ".join(f"{flag} {as_word(named)}" for named in (value if isinstance(value, list) else [value]))
        if value is True:
            return f"{flag} {as_word(self.column)}"
        listed = ",".join(as_listed(str(entry)) for entry in value) if isinstance(value, list) else value
        return f"{flag} {as_word(f'{self.column}={listed}')}"

    @property
    def key(self) -> str:
        """The lines of a job, with their table."""
        lines = ", ".join(f"{setting} = {_json(value)}" for setting, value in self.settings.items())
        if self.place in _OF_ALL:
            return {"role": "[roles] ", "rows": "[input] "}.get(self.place, "") + lines
        plain = self.column.replace("_", "").isalnum() and self.column.isascii()
        table = "columns" if self.place == "column" else "input.fields"
        return f"[{table}.{self.column if plain else _json(self.column)}] {lines}"

    @property
    def argument(self) -> str:
        """The argument of the Python call."""
        if self.place == "rows":
            return f"reading={_json(self.settings)}"
        if self.place in _OF_ALL:
            return ", ".join(f"{setting}={_json(value)}" for setting, value in self.settings.items())
        given = ", ".join(
            f"{_json(setting)}: {'True' if value is True else _json(value)}" for setting, value in self.settings.items()
        )
        setting = f"{{{_json(self.column)}: {{{given}}}}}"
        return f"columns={setting}" if self.place == "column" else f'reading={{"fields": {setting}}}'

    @property
    def r(self) -> str:
        """The argument of the call from R."""
        if self.place == "rows":
            return f"reading = {in_r(self.settings)}"
        if self.place in _OF_ALL:
            return ", ".join(f"{setting} = {in_r(value)}" for setting, value in self.settings.items())
        setting = {self.column: self.settings}
        return f"columns = {in_r(setting)}" if self.place == "column" else f"reading = {in_r({'fields': setting})}"

    def told(self, dialect: Dialect) -> str:
        """Return the remedy in the terms of the command line, a job, Python or R."""
        return {"option": self.option, "key": self.key, "argument": self.argument, "r": self.r}[dialect]

    def to_dict(self) -> dict[str, Any]:
        """Return the remedy as plain values, for JSON."""
        return {**vars(self), **{dialect: self.told(dialect) for dialect in get_args(Dialect)}}


def kinds(column: str, *names: str) -> tuple[Remedy, ...]:
    """Return a remedy for each kind of values that a column may be said to have."""
    return tuple(Remedy("column", column, {"kind": name}) for name in names)


@dataclass(frozen=True)
class Finding:
    """How a column may have been misread.

    Attributes
    ----------
    name : str
        Which finding it is: one of `shoal.findings.FINDINGS`.
    column : str
    what : str
        What was found, in counts.
    why : str
        Why it matters.
    remedies : tuple of Remedy
        Settings that settle it, each by itself, the likeliest first.
    question : bool
        Whether a release of the column as a quasi-identifier is refused until this is settled.
    """

    name: str
    column: str
    what: str
    why: str
    remedies: tuple[Remedy, ...] = ()
    question: bool = False

    def ways(self, dialect: Dialect) -> str:
        """Return the remedies in the terms of the command line, a job, Python or R."""
        return "; or ".join(remedy.told(dialect) for remedy in self.remedies)

    @property
    def sentence(self) -> str:
        """What was found and why it matters, without the remedies."""
        return f"Column {self.column!r}: {self.what}. {self.why}."

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values, for JSON."""
        return {**vars(self), "remedies": [remedy.to_dict() for remedy in self.remedies]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
