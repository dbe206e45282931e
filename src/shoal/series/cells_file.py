"""Cells file: what later releases of the same people need to know of a release. For internal use, like its manifest.

For each record, in the order of the published file: the key of its person, as a keyed hash (BLAKE2b) under the secret
of the series; its class, and the group of those with the same history; and words of 64 bits, mixed with the secret, for
its own quasi-identifiers and for what is published unchanged, with the ranks of these values. For each class: what it
publishes. No value of the table stands in it but those that are published.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.columns.value_hashes import mixed, words_of
from shoal.errors import FileError
from shoal.files import sha256
from shoal.measures.series_risk import Edition, Told, Words
from shoal.models.codes import Codes
from shoal.typing import Labels

FORMAT = 1
"""Format version, incremented whenever older versions of shoal cannot read the file."""

ENDING = ".cells"
"""End of the name of the file, after that of the published table."""

_MAGIC = b"shoal cells"
_SECRET = 32  # bytes
_KEY, _TEXT = pa.binary(16), pa.large_binary()


@dataclass(frozen=True, eq=False)
class CellsOfRelease:
    """What later releases need to know of a release.

    Attributes
    ----------
    identity : str
        Names the release.
    secret : bytes
        The secret of the series.
    k : int
        The k of the release.
    after : tuple of str
        The earlier releases that it was made after.
    version_of : tuple of str
        The release of which it is a coarser version, the one of which that is a version, and so on; none of an edition.
    published : str or None
        SHA-256 of the published file, or of the published records of a release in memory.
    keys : pyarrow.FixedSizeBinaryArray of shape (n_records,)
        Keyed hashes, in the order of the published file.
    classes : ndarray of shape (n_records,)
        The class of each record, from 0 and without gaps.
    groups : ndarray of shape (n_records,)
        The people of a group have the same history in this release and in those that it was made after.
    shown : pyarrow.Table of n_classes rows
        What each class shows in the quasi-identifiers.
    own : ndarray of shape (n_records, n_quasi)
        A word for the value by which each record is shown in these columns: its own, or the one that it had when its
        class was given what it shows.
    columns : mapping of str to Told
        What is published unchanged.
    """

    identity: str
    secret: bytes
    k: int
    after: tuple[str, ...]
    version_of: tuple[str, ...]
    published: str | None
    keys: pa.Array
    classes: Labels
    groups: Labels
    shown: pa.Table
    own: Words
    columns: Mapping[str, Told]

    def in_order(self, rows: NDArray[np.int64] | None, published: str) -> "CellsOfRelease":
        """Return the same for a file with this SHA-256, whose rows are these records."""
        if rows is None:
            return replace(self, published=published)
        columns = {
            name: Told(
                told.codes._replace(codes=told.codes.codes[rows]),
                told.seen._replace(codes=told.seen.codes[rows]),
                told.words[rows],
            )
            for name, told in self.columns.items()
        }
        of_rows = {name: getattr(self, name)[rows] for name in ("classes", "groups", "own")}
        return replace(self, published=published, columns=columns, keys=self.keys.take(pa.array(rows)), **of_rows)

    def edition(self, people: Labels) -> Edition:
        """Return the release as a recount takes it, with the numbers that its persons have in the series."""
        names = self.shown.column_names
        shown = {name: words_of(self.shown[name])[self.classes] for name in names}
        return Edition(people, self.classes, shown, self.columns, dict(zip(names, self.own.T, strict=True)))

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        numbers = {"class": self.classes.astype(np.int32), "group": self.groups.astype(np.int32)}
        people: dict[str, Any] = {"key": self.keys, **numbers}
        people |= {f"own {place}": self.own[:, place] for place in range(self.own.shape[1])}
        about = {}
        for place, (name, told) in enumerate(self.columns.items()):
            people[f"codes {place}"] = told.codes.codes.astype(np.int32)
            people[f"seen {place}"] = told.seen.codes.astype(np.int32)
            people[f"words {place}"] = told.words
            about[name] = {"ordered": told.codes.ordered, "values": [told.codes.n_values, told.seen.n_values]}
        header = {
            "for": "internal use: do not publish",
            "identity": self.identity,
            "secret": self.secret.hex(),
            "k": self.k,
            "after": list(self.after),
            "version_of": list(self.version_of),
            "published_sha256": self.published,
            "columns": about,
        }
        content = json.dumps(header, ensure_ascii=False).encode() + b"\n" + _stream(pa.table(people))
        content += _stream(self.shown)
        return b"%s %d %s\n" % (_MAGIC, FORMAT, hashlib.sha256(content).hexdigest().encode()) + content

    @property
    def is_sound(self) -> bool:
        """Whether its parts fit together."""
        numbered = [(self.classes, self.shown.num_rows), (self.groups, len(self.keys))]
        for told in self.columns.values():
            numbered += [(codes.codes, codes.n_values) for codes in (told.codes, told.seen)]
        return (
            len(self.secret) == _SECRET
            and self.keys.type == _KEY
            and self.own.dtype == np.uint64
            and all(told.words.dtype == np.uint64 for told in self.columns.values())
            and all(((numbers >= 0) & (numbers < n)).all() for numbers, n in numbered)
        )

    def require_of(self, file: str, name: str) -> None:
        """Raise unless this describes a published file with this SHA-256."""
        if self.published != file:
            raise FileError(
                f"The cells file beside {name!r} belongs to another file: the SHA-256 differs. The file was changed, "
                "or a run that replaced it was killed. Restore it as it was published, or make the release again; an "
                "audit can also take copies that have the key of each person."
            )

    @staticmethod
    def read(path: str | os.PathLike[str]) -> "CellsOfRelease":
        """Read a file; raise unless it is whole, and belongs to the file beside which it is."""
        name = os.fspath(path)
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise FileError(
                f"The cells file {name!r} cannot be read: {error.strerror}. It is written beside a release that has a "
                f"key, as RELEASE{ENDING}."
            ) from None
        found = CellsOfRelease.of_bytes(content, name)
        beside = Path(name.removesuffix(ENDING))
        if name.endswith(ENDING) and found.published is not None and beside.is_file():
            found.require_of(sha256(beside), beside.name)
        return found

    @staticmethod
    def of_bytes(content: bytes, name: str) -> "CellsOfRelease":
        """Return what the content of a file says; raise unless it is whole."""
        first, _, rest = content.partition(b"\n")
        magic, _, of_version = first.rpartition(b" ")[0].rpartition(b" ")
        if magic != _MAGIC or not of_version.isdigit():
            raise FileError(
                f"{name!r} is not a cells file. It is written beside a release that has a key, as RELEASE{ENDING}."
            )
        if int(of_version) > FORMAT:
            raise FileError(
                f"The cells file {name!r} was written by a newer version of shoal (format {int(of_version)}; this one "
                f"reads {FORMAT}). Use that version, or a later one."
            )
        if first.rpartition(b" ")[2] != hashlib.sha256(rest).hexdigest().encode():
            raise FileError(
                f"The cells file {name!r} is damaged: its checksum does not match. Restore it from a backup."
            )
        header, _, tables = rest.partition(b"\n")
        try:
            found = _of_content(json.loads(header), tables)
            is_sound = found.is_sound
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError, pa.ArrowException):
            is_sound = False
        if not is_sound:
            raise FileError(
                f"The cells file {name!r} has been changed: its secret or other content is missing, or does not fit "
                "together. Restore it from a backup."
            )
        return found


def _of_content(header: dict[str, Any], tables: bytes) -> CellsOfRelease:
    with pa.BufferReader(tables) as source:
        people, shown = (pa.ipc.open_stream(source).read_all() for _ in range(2))

    def codes(name: str, place: int, of_values: int, about: dict[str, Any]) -> Codes:
        numbers = people[f"{name} {place}"].to_numpy().astype(np.int64)
        return Codes(numbers, about["values"][of_values], about["ordered"])

    columns = {
        name: Told(codes("codes", place, 0, about), codes("seen", place, 1, about), people[f"words {place}"].to_numpy())
        for place, (name, about) in enumerate(header["columns"].items())
    }
    own = [people[f"own {place}"].to_numpy() for place in range(shown.num_columns)]
    return CellsOfRelease(
        identity=header["identity"],
        secret=bytes.fromhex(header["secret"]),
        k=header["k"],
        after=tuple(header["after"]),
        version_of=tuple(header["version_of"]),
        published=header["published_sha256"],
        keys=people["key"].combine_chunks(),
        classes=people["class"].to_numpy().astype(np.int64),
        groups=people["group"].to_numpy().astype(np.int64),
        shown=shown,
        own=np.stack(own, axis=1),
        columns=columns,
    )


def _stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def new_secret(seed: int, source: str) -> bytes:
    """Return the secret of a series that begins with a release of this seed and of the table with this SHA-256.

    The same table and seed repeat the files; another table with the same seed begins another series.
    """
    return hashlib.sha256(b"shoal series %d %s" % (seed, source.encode())).digest()


def keyed(texts: pa.ChunkedArray, secret: bytes) -> pa.Array:
    """Return the keyed hash of each key."""
    digests = [hashlib.blake2b(text, key=secret, digest_size=16).digest() for text in texts.cast(_TEXT).to_pylist()]
    return pa.array(digests, _KEY)


def keyed_words(words: Words, secret: bytes) -> Words:
    """Return words that only the secret relates to the values."""
    return mixed(words ^ np.frombuffer(secret[:8], np.uint64))
