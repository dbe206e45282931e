"""Draft: a job in the making. It may still lack k and roles; otherwise it is a job, and is stored as one."""

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from shoal.columns.schema import ROLE_KEYS, Role, Roles
from shoal.distribution import versions
from shoal.errors import ParameterError
from shoal.job import Job
from shoal.job.job_files import content_of, job_text
from shoal.settings import Whole, validated

Helper = Literal["subject", "household", "weights", "key"]
HELPERS: tuple[Helper, ...] = ("subject", "household", "weights", "key")


class Draft(Job):
    """A job that may still lack k and roles.

    Examples
    --------
    >>> draft = Draft.read("input = {path = 'people.csv'}")
    >>> draft.k is None
    True
    >>> print(with_roles(draft.with_changes(k=5), {"age": Role.QUASI}).to_toml())
    k = 5
    <BLANKLINE>
    [roles]
    quasi_identifiers = [
        "age",
    ]
    <BLANKLINE>
    [input]
    path = "people.csv"
    <BLANKLINE>
    """

    k: Whole | None = Field(None, ge=2, description="smallest cell size, at least 2")  # type: ignore[assignment]
    roles: Roles = Field(Roles(), description="what each column is for")

    @staticmethod
    def read(text: str) -> "Draft":
        """Return the draft in a TOML text, which may be a job of another program or of an older version."""
        content = content_of(text)
        try:
            return validated(Draft, content)
        except ParameterError as error:
            if "There is no key" not in str(error):
                raise
            raise ParameterError(
                f"{error} A newer version of shoal may have written this job; this is version {versions()['shoal']}. "
                "Update shoal, or remove the key."
            ) from None

    @staticmethod
    def from_file(path: str | os.PathLike[str]) -> "Draft":
        """Return the draft in a file."""
        return Draft.read(job_text(path, Path(path).name))

    @property
    def content(self) -> dict[str, Any]:
        """The settings that differ from the defaults, as plain values."""
        return tomllib.loads(self.to_toml())

    def with_changes(self, **changes: Any) -> "Draft":
        """Return the draft with other settings; None and empty values remove a setting."""
        merged = {**self.content, **changes}
        return validated(Draft, {key: value for key, value in merged.items() if value not in (None, {}, (), [], "")})

    def job(self) -> Job:
        """Return the job, or raise if something is still missing."""
        if self.k is None:
            raise ParameterError("k is not set yet. Say on the page Protection how many records hide together.")
        if not self.roles.quasi_identifiers:
            raise ParameterError(
                "No column is to be protected yet. Say on the page Columns which ones somebody could know about a "
                "person."
            )
        return validated(Job, self.content)


def role_of(draft: Draft, name: str) -> Role | None:
    """Return the role of a column, or None while nobody has decided."""
    return next((role for role, names in draft.roles.named().items() if name in names), None)


def undecided(draft: Draft, names: Iterable[str]) -> list[str]:
    """Return the columns without a role."""
    decided = {name for given in draft.roles.named().values() for name in given} | set(draft.roles.helpers())
    return [name for name in names if name not in decided]


def with_roles(draft: Draft, changes: Mapping[str, Role | None]) -> Draft:
    """Return the draft with other roles for some columns; None makes a column undecided again."""
    roles = draft.content.get("roles", {})
    for role, key in ROLE_KEYS.items():
        kept = [name for name in roles.get(key, ()) if changes.get(name, role) is role]
        added = [name for name, wanted in changes.items() if wanted is role and name not in kept]
        roles[key] = [*kept, *added]
    return draft.with_changes(roles=_filled(roles))


def with_helpers(draft: Draft, changes: Mapping[str, Any]) -> Draft:
    """Return the draft with other columns that say whose a record is, or how much it counts."""
    roles = {**draft.content.get("roles", {}), **changes}
    if not roles.get("household"):
        roles.pop("household_level", None)
    return draft.with_changes(roles=_filled(roles))


def with_columns(draft: Draft, changes: Mapping[str, Mapping[str, Any]]) -> Draft:
    """Return the draft with other settings for some columns; None and empty values remove a setting."""
    if not changes:
        return draft
    columns = draft.content.get("columns", {})
    for name, settings in changes.items():
        columns[name] = _filled({**columns.get(name, {}), **settings})
    return draft.with_changes(columns=_filled(columns))


def with_reading(draft: Draft, changes: Mapping[str, Any]) -> Draft:
    """Return the draft with another way of reading its file."""
    return draft.with_changes(input=_filled({**draft.content.get("input", {}), **changes}))


def with_field(draft: Draft, name: str, changes: Mapping[str, Any]) -> Draft:
    """Return the draft with another way of reading one column of a CSV file."""
    fields = draft.content.get("input", {}).get("fields", {})
    fields[name] = _filled({**fields.get(name, {}), **changes})
    return with_reading(draft, {"fields": _filled(fields)})


def with_output(draft: Draft, changes: Mapping[str, Any]) -> Draft:
    """Return the draft with other files to write."""
    return draft.with_changes(output=_filled({**draft.content.get("output", {}), **changes}))


def with_remedy(draft: Draft, place: str, column: str, settings: Mapping[str, Any]) -> Draft:
    """Return the draft with what settles a finding: a remedy of `shoal.findings`."""
    if place == "field":
        return with_field(draft, column, settings)
    if place == "column":
        return with_columns(draft, {column: settings})
    if place == "rows":
        if "skip_rows" in settings:
            return with_reading(draft, settings)
        given = draft.content.get("input", {}).get("skip_where", [])
        return with_reading(draft, {"skip_where": [*dict.fromkeys([*given, *settings["skip_where"]])]})
    if place == "accept":
        return draft.with_changes(accept=[*dict.fromkeys([*draft.accept, *settings["accept"]])])
    for key, named in settings.items():
        if key in HELPERS:
            draft = with_helpers(draft, {key: named})
        else:
            role = next(role for role, of in ROLE_KEYS.items() if of == key)
            draft = with_roles(draft, dict.fromkeys(named, role))
    return draft


def _filled(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out settings that have no effect."""
    # A number is kept, whatever it is: 0 decimals are not the same as all of them; no quotation mark is not the usual.
    return {
        key: value
        for key, value in settings.items()
        if value or (value is not False and value == 0) or (key, value) == ("quote", "")
    }
