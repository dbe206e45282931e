"""Other releases: those in a folder that hold people of the table, and that this release knows nothing of.

Each release is safe by itself, and two of the same people need not be (``docs/series.md``). What is found is a warning.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.columns.person_keys import texts_of_keys
from shoal.errors import ShoalError
from shoal.files import is_same_file
from shoal.output.destination import INTERNAL, Destination
from shoal.series.cells_file import ENDING, CellsOfRelease, keyed
from shoal.sources import Table

if TYPE_CHECKING:
    from shoal.output.release import Release

_MOST = 0.5  # of the people of the smaller release
_SAMPLE = 10_000
"""Number of people who are looked for; evenly over the table."""

_SHOWN = 3
"""Number of files that a warning names."""

_REMEDY = (
    "Somebody who owns both may tell people apart. Make one after the other (key and after), or count what they tell "
    "together with shoal audit --series (docs/series.md)."
)
_SENTENCES = {
    "unnamed": "{names} belongs to the same series and is not named, so that no recount covers both. Name all earlier "
    "releases (after).",
    "published": "The table is the published file {names}, whose classes this release may divide. Make it as a version "
    "of that one: name its cells file (after).",
    "same table": "The same table was released before, as {names}. " + _REMEDY,
    "people": "Most people of the table, or of {names}, are in both. " + _REMEDY,
    "columns": "The same quasi-identifiers were published in {names}. If people of the table are in it: " + _REMEDY,
}
"""What is said of the releases that are found, the worst first."""


class _Other(NamedTuple):
    """Another release, by its internal manifest and, if it has one, its cells file."""

    name: str
    about: Mapping[str, Any]
    cells: CellsOfRelease | None


def warnings_of_others(release: "Release", destination: Destination) -> list[str]:
    """Return warnings about releases beside a destination, or in the folder that it names, of the same people.

    Notes
    -----
    Takes O(n log n) time in the records of all of them.
    """
    found: dict[str, list[str]] = {}
    sample = _Keys(release)
    for other in _others(destination):
        relation = _relation(release, other, sample)
        if relation is not None:
            found.setdefault(relation, []).append(other.name)
    return [text.format(names=_listed(found[name])) for name, text in _SENTENCES.items() if name in found]


def _relation(release: "Release", other: _Other, has_people_of: "_Keys") -> str | None:
    """Return what another release has to do with this one, as a key of `_SENTENCES`."""
    mine, cells, source = release.series, other.cells, release.records.source.sha256
    if other.about.get("input_sha256") == source and _settings(other.about["job"]) == _settings(release.job.to_dict()):
        return None  # the same release in another file
    if mine is not None and cells is not None and cells.secret == mine.cells.secret:
        return "unnamed" if cells.identity not in mine.cells.after and _line(cells) == _line(mine.cells) else None
    if other.about.get("input_sha256") == source:
        return "same table"
    if other.about.get("output_sha256") == source:
        return None if cells is None else "published"
    if cells is not None:
        return "people" if has_people_of(cells) else None
    quasi = other.about["job"]["roles"].get("quasi_identifiers")
    return "columns" if quasi and set(quasi) == set(release.job.roles.quasi_identifiers) else None


def _line(cells: CellsOfRelease) -> tuple[Any, ...]:
    """Return what is the same for all editions, or for all versions that continue one another."""
    depth = len(cells.version_of)
    return (depth, cells.k, *sorted(cells.shown.column_names)) if depth else (depth,)


def _settings(job: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that make the records of a release."""
    return {name: value for name, value in job.items() if name not in ("input", "output")}


class _Keys:
    """The columns that may name people, the key or those that are dropped, with a sample of each as text."""

    def __init__(self, release: "Release"):
        self._release = release
        self._samples: list[tuple[pa.ChunkedArray, int]] | None = None

    def __call__(self, cells: CellsOfRelease) -> bool:
        """Return whether most people of one release are in the other, by one of the columns."""
        if self._samples is None:
            self._samples = list(self._sampled())
        for texts, n in self._samples:
            n_found = pc.sum(pc.is_in(keyed(texts, cells.secret), value_set=cells.keys)).as_py() or 0
            if n_found * n > _MOST * len(texts) * min(n, len(cells.keys)):
                return True
        return False

    def _sampled(self) -> Iterator[tuple[pa.ChunkedArray, int]]:
        """Yield a sample of the people that each column names, and their number."""
        roles, table = self._release.job.roles, self._release.records.source
        names = [roles.key, roles.subject, *roles.identifiers]
        for name in dict.fromkeys(name for name in names if name is not None):
            if isinstance(table, Table) and name in table.names:
                texts = texts_of_keys(table.load([name])[name]).drop_null().unique()
                places = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _SAMPLE)).astype(np.int64))
                yield pa.chunked_array([texts.take(pa.array(places))]), len(texts)


def _others(destination: Destination) -> Iterator[_Other]:
    """Yield the releases in the folders of a destination, but for the one that it replaces."""
    mine = destination.internal_manifest
    given, wanted = destination.asked.releases, f"*{INTERNAL}"
    archive = [] if given is None else [(file, file.relative_to(given)) for file in Path(given).rglob(wanted)]
    beside = [] if mine is None else [(file, Path(file.name)) for file in mine.parent.glob(wanted)]
    found = {os.path.realpath(file): title for file, title in archive + beside}
    for path, title in sorted(found.items()):
        about = None if mine is not None and is_same_file(path, mine) else _head(path)
        if about is not None:
            cells = _cells(f"{path.removesuffix(INTERNAL)}{ENDING}")
            yield _Other(title.as_posix().removesuffix(INTERNAL), about, cells)


def _head(manifest: str) -> dict[str, Any] | None:
    """Return what stands in an internal manifest before the records; None if it is none, or cannot be read."""
    lines = []
    try:
        with open(manifest, encoding="utf-8") as file:
            for line in file:
                if line.startswith(' "labels":'):
                    break
                lines.append(line)
        about = json.loads("".join(lines).rstrip().rstrip(",") + "}")
        about["job"]["roles"].get("quasi_identifiers")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return dict(about)


def _cells(file: str) -> CellsOfRelease | None:
    try:
        return CellsOfRelease.read(file)
    except ShoalError:
        return None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:_SHOWN]))
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN:,} others"
