"""Changes: what differs between two jobs, setting by setting. Settings that hold values of the table are counted."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from shoal.app.draft import Draft
from shoal.app.fields import VALUES


class Change(NamedTuple):
    """A setting that differs, by its place in the job."""

    setting: str
    before: str
    after: str


def changes(before: Draft, after: Draft, show_values: bool = False) -> list[Change]:
    """Return the settings that differ between two jobs.

    Examples
    --------
    >>> changes(Draft(k=5, columns={"age": {"top": 90}}), Draft(k=10))
    [Change(setting='k', before='5', after='10'), Change(setting='columns, age, top', before='set', after='not set')]
    """
    old, new = _flat(before.content), _flat(after.content)
    found = [place for place in dict.fromkeys([*old, *new]) if old.get(place) != new.get(place)]
    return [
        Change(
            ", ".join(place),
            _told(place, old.get(place), new.get(place), show_values),
            _told(place, new.get(place), old.get(place), show_values),
        )
        for place in found
    ]


def summary(found: list[Change], most: int = 3) -> str:
    """Return changes in one line.

    Examples
    --------
    >>> summary(changes(Draft(k=5), Draft(k=10, seed=1)))
    'k: 10; seed: 1'
    """
    told = [f"{change.setting}: {change.after}" for change in found[:most]]
    return "; ".join(told) + (f" and {len(found) - most} more" if len(found) > most else "")


def _flat(content: Mapping[str, Any], place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for key, value in content.items():
        if isinstance(value, dict):
            found |= _flat(value, (*place, key))
        else:
            found[(*place, key)] = value
    return found


def _told(place: tuple[str, ...], value: Any, other: Any, show_values: bool) -> str:
    """Return a setting in words; of a list, only what the other job does not have."""
    if value is None:
        return "not set"
    if place[-1] in VALUES and not show_values:
        return f"{len(value)} set" if isinstance(value, list) else "set"
    if isinstance(value, list):
        mine = [entry for entry in value if entry not in (other or [])]
        return f"{', '.join(map(_word, mine[:6]))}{' and more' if len(mine) > 6 else ''}" or "fewer"
    return str(value)


def _word(entry: Any) -> str:
    return ", ".join(f"{key} {value}" for key, value in entry.items()) if isinstance(entry, dict) else str(entry)
