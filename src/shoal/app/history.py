"""History: every job of a piece of work, in numbered files that are never changed, and what differs between two.

The first line of a file says which job it was made from and what was changed, so the files form a tree: undo goes to
the parent, redo to the newest child, and nothing is ever lost. Only the owner can read them.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from shoal.app.draft import Draft
from shoal.app.fields import ROLES, VALUES, label_of, value_in_words
from shoal.columns.schema import ROLE_KEYS, Role
from shoal.errors import FileError
from shoal.files import replacing, write_text
from shoal.models.serialization import as_model
from shoal.output.report.formatting import listed
from shoal.sources.clean import printable
from shoal.system import system

_HEAD = re.compile(r"# after (\d+): (.*)")


class Step(NamedTuple):
    """One job of a history: its number, that of the job it was made from (0 for none), and what was changed."""

    number: int
    parent: int
    what: str


class History:
    """The jobs of a piece of work.

    Parameters
    ----------
    folder : Path
        Created if it does not exist, readable by its owner alone.

    Examples
    --------
    >>> import tempfile
    >>> history = History(Path(tempfile.mkdtemp()) / "jobs")
    >>> history.add(Draft(k=5), "k is 5"), history.add(Draft(k=10), "k is 10")
    (1, 2)
    >>> history.undo().k, history.redo().k, history.at
    (5, 10, 2)
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        system.make_private_folder(folder, parents=True, exist_ok=True)

    @property
    def at(self) -> int:
        """Number of the current job; 0 if there is none."""
        try:
            return int((self._folder / "at").read_text(encoding="ascii"))
        except (OSError, ValueError):
            # The pointer is written after its job: without it, the newest job is the current one.
            return max(self._numbers(), default=0)

    @property
    def draft(self) -> Draft:
        """The current job."""
        return self.draft_at(self.at)

    def draft_at(self, number: int) -> Draft:
        """Return the job with a number."""
        if number not in self._numbers():
            raise FileError(f"There is no job {number} in the history of this work.")
        return Draft.from_file(self._path(number))

    def add(self, draft: Draft, what: str) -> int:
        """Store a job that was made from the current one, and make it the current one."""
        number = max(self._numbers(), default=0) + 1
        with replacing(self._path(number), private=True) as temporary:
            write_text(temporary, f"# after {self.at}: {printable(what)}\n{draft.to_toml()}")
        self._point(number)
        return number

    def undo(self) -> Draft:
        """Go back to the job that the current one was made from, if there is one."""
        self._point(self.previous or self.at)
        return self.draft

    def redo(self) -> Draft:
        """Go to the newest job that was made from the current one, if there is one."""
        self._point(self.next or self.at)
        return self.draft

    def go(self, number: int) -> Draft:
        """Make any job of the history the current one."""
        draft = self.draft_at(number)
        self._point(number)
        return draft

    @property
    def previous(self) -> int:
        """Number of the job to which undo goes; 0 if there is none."""
        return next((step.parent for step in self.steps() if step.number == self.at), 0)

    @property
    def next(self) -> int:
        """Number of the job to which redo goes; 0 if there is none."""
        at = self.at
        return max((step.number for step in self.steps() if step.parent == at), default=0)

    def steps(self) -> Iterator[Step]:
        """Return all jobs, the oldest first."""
        for number in sorted(self._numbers()):
            with self._path(number).open(encoding="utf-8") as file:
                head = _HEAD.match(file.readline())
            yield Step(number, int(head[1]), head[2]) if head else Step(number, 0, "")

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("[0-9]*.toml")]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06}.toml"

    def _point(self, number: int) -> None:
        with replacing(self._folder / "at", force=True, private=True) as temporary:
            write_text(temporary, f"{number}\n")


class Change(NamedTuple):
    """A setting that differs, in the words of the pages, and what it was and is."""

    setting: str
    before: str
    after: str

    @property
    def sentence(self) -> str:
        """The change as a line of a history."""
        if self.after == NOT_SET:
            return f"{self.setting} removed"
        if self.after == "yes":
            return self.setting
        return f"{self.setting} {self.after}" if self.after.endswith(_SET) else f"{self.setting}: {self.after}"


NOT_SET, _SET = "not set", "set"


def changes(before: Draft, after: Draft, show_values: bool = False) -> list[Change]:
    """Return the settings that differ between two jobs; those that hold values of the table are counted.

    Examples
    --------
    >>> old = Draft(k=5, columns={"age": {"top": 90}}, roles={"other": ["zip"]})
    >>> for change in changes(old, Draft(k=10, roles={"quasi_identifiers": ["zip"]})):
    ...     print(change.sentence)
    zip: Protect: others may know it
    k: 10
    age: larger values become removed
    """
    found = [
        Change(name, *(ROLES[role] if role else "not decided" for role in (old, new)))
        for name, old, new in _roles(before, after)
        if old is not new
    ]
    one, other = _flat(before.content), _flat(after.content)
    for place in dict.fromkeys([*one, *other]):
        old, new = one.get(place), other.get(place)
        if old != new and not (place[0] == "roles" and place[1] in ROLE_KEYS.values()):
            told = (_told(place, mine, their, show_values) for mine, their in ((old, new), (new, old)))
            found.append(Change(_setting(place), *told))
    return found


def summary(found: list[Change], most: int = 3) -> str:
    """Return changes in one line.

    Examples
    --------
    >>> summary(changes(Draft(k=5), Draft(k=10, columns={"weight": {"missing_codes": [-9]}})))
    'k: 10; weight: codes for a missing value 1 set'
    """
    words = {word: [change.setting for change in found if change.after == word] for word in ROLES.values()}
    told = [f"{listed(names, most)}: {word}" for word, names in words.items() if names]
    told += [change.sentence for change in found if change.after not in words]
    return "; ".join(told[:most]) + (f" and {len(told) - most} more" if len(told) > most else "")


def _roles(before: Draft, after: Draft) -> Iterator[tuple[str, Role | None, Role | None]]:
    """Yield the columns that have a role in one of two jobs, and their roles."""
    one, other = ({name: role for role, of in draft.roles.named().items() for name in of} for draft in (before, after))
    for name in dict.fromkeys([*one, *other]):
        yield name, one.get(name), other.get(name)


def _setting(place: tuple[str, ...]) -> str:
    """Return what the pages call a setting; one of a column begins with its name.

    Examples
    --------
    >>> _setting(("input", "fields", "born", "date_format")), _setting(("output", "title"))
    ('born: format of dates', 'Title of the report')
    """
    if place[0] in ("columns", "steer") or place[:2] == ("input", "fields"):
        key = place[0] if place[0] == "steer" else place[-1]
        label = label_of(key)
        return f"{place[-1] if place[0] == 'steer' else place[-2]}: {label[:1].lower()}{label[1:]}"
    known = {
        ("models",): "Promises",
        ("accept",): "Right as it is",
        ("input", "path"): "File",
        ("output", "report"): "Report",
    }
    return known.get(place) or label_of(place[0] if place[0] == "options" else place[-1])


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
        return NOT_SET
    if place[-1] in VALUES and not show_values:
        return f"{len(value)} {_SET}" if isinstance(value, list) else _SET
    if isinstance(value, list):
        mine = [entry for entry in value if entry not in (other or [])]
        return (
            f"{', '.join(_word(place[-1], entry) for entry in mine[:6])}{' and more' if len(mine) > 6 else ''}"
            or "fewer"
        )
    return value_in_words(place[-1], value)


def _word(key: str, entry: Any) -> str:
    """Return an entry of a list: a promise as a sentence, an accepted finding with its column."""
    if isinstance(entry, dict):
        return str(as_model(entry).promise)
    column, _, finding = str(entry).rpartition("=")
    return f"{column} ({finding.replace('-', ' ')})" if key == "accept" and column else value_in_words(key, entry)
