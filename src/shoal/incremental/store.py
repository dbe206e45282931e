"""Store: the folder of a collection, readable by its owner only and consistent at any moment.

Every file is written under a temporary name and renamed. ``collection.json`` is written last and lists the others with
their checksums. Files that it does not list are ignored, so a crash at any moment leaves the previous state.
"""

import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.errors import FileError
from shoal.files import replacing, replacing_all, sha256, write_text
from shoal.files.locks import hidden_beside, lock_file, locked_folders
from shoal.system import system

FORMAT = 2
"""Format version, incremented whenever older versions of shoal cannot read the files."""

LIST, CHANGING, WORKING = "collection.json", "changing.lock", "working.lock"
_OURS = re.compile(r"(\.[^.]+\.)?(records-\d{4}\.arrow|[a-z]+(-\d{4})?\.npy)|\.[^.]+\.collection\.json")
_WAIT = 5.0  # seconds for another process to finish a short change


class Store:
    """The folder of a collection.

    Attributes
    ----------
    path : Path
        The folder.
    content : dict
        Content of ``collection.json``.
    """

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self.path = path
        self.content = content
        self._intact: dict[str, tuple[object, ...]] = {}  # what files looked like when their checksums were compared

    @classmethod
    def create(
        cls, path: Path, content: dict[str, Any], tables: dict[str, pa.Table], arrays: dict[str, Any]
    ) -> "Store":
        """Create the folder with its first files, atomically."""
        if os.path.lexists(path):
            raise FileError(f"{str(path)!r} already exists. Choose another name for the collection.")
        if not path.parent.is_dir():
            raise FileError(f"{str(path)!r} cannot be created: its parent folder does not exist. Create it first.")
        beside, parent = hidden_beside(path), [path.parent]
        store = cls(beside, {**content, "format": FORMAT, "files": {}})
        try:
            with ExitStack() as held:
                with locked_folders(parent):
                    _remove_left_over(path)
                    system.make_private_folder(beside)
                    held.enter_context(store._locked(CHANGING, 0.0))
                store.save(tables, arrays)
                with locked_folders(parent):
                    held.close()  # a folder in which a file is open cannot be renamed everywhere
                    # Nothing is overwritten: rename fails if a non-empty folder has appeared in the meantime.
                    os.rename(beside, path)
        except OSError as error:
            reason = os.strerror(error.errno).lower() if error.errno else "the disk may be full"
            raise FileError(f"{str(path)!r} cannot be created: {reason}. Nothing was stored.") from None
        finally:
            system.remove(beside)
        return cls(path, store.content)

    @classmethod
    def open(cls, path: Path) -> "Store":
        """Read ``collection.json``; raise if it cannot be used."""
        store = cls(path, _checked(_listed(path), path))
        store.verify()
        return store

    def verify(self) -> None:
        """Raise if any file of the collection is missing or damaged."""
        for name in self.content["files"]:
            self._path(name)

    def reload(self) -> None:
        """Read ``collection.json`` again, since another process may have changed it."""
        self.content = _checked(_listed(self.path), self.path)
        self.verify()

    def save(self, tables: dict[str, pa.Table] | None = None, arrays: dict[str, Any] | None = None) -> None:
        """Write tables and arrays under these names, then the list."""
        tables, arrays = tables or {}, arrays or {}
        names = [*(f"{name}.arrow" for name in tables), *(f"{name}.npy" for name in arrays)]
        targets = [self.path / name for name in names]
        with replacing_all(targets, force=True, private=targets) as files:
            for file, table in zip(files, tables.values(), strict=False):
                with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
            for file, array in zip(files[len(tables) :], arrays.values(), strict=True):
                with file.open("wb") as sink:
                    # NumPy writes to a file by itself, and does not say why when it cannot.
                    np.save(SimpleNamespace(write=sink.write), array, allow_pickle=False)
            checksums = {name: sha256(file) for name, file in zip(names, files, strict=True)}
        self.content["files"] = {**self.content["files"], **checksums}
        text = json.dumps(_signed(self.content), indent=1, ensure_ascii=False) + "\n"
        with replacing(self.path / LIST, force=True, private=True) as file:
            write_text(file, text)

    def table(self, name: str) -> pa.Table:
        """Return a table after verifying its checksum."""
        path = self._path(f"{name}.arrow")
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def array(self, name: str) -> NDArray[Any]:
        """Return an array after verifying its checksum."""
        found: NDArray[Any] = np.load(self._path(f"{name}.npy"), allow_pickle=False)
        return found

    def content_schema(self) -> pa.Schema:
        """Return the schema of the records."""
        return self.table("records-0000").schema

    def has(self, name: str) -> bool:
        """Return whether the collection lists a file."""
        return name in self.content["files"]

    def _path(self, name: str) -> Path:
        """Return the path of a file after verifying its checksum, which is repeated only if the file changes."""
        path = self.path / name
        if not self.has(name):
            raise FileError(f"The collection {str(self.path)!r} does not list {name}.")
        if not path.is_file():
            raise FileError(f"{name} is missing from the collection {str(self.path)!r}. Restore it from a backup.")
        found = path.stat()
        looks = (found.st_ino, found.st_size, found.st_mtime_ns, self.content["files"][name])
        if self._intact.get(name) != looks:
            if sha256(path) != self.content["files"][name]:
                raise FileError(
                    f"{name} in the collection {str(self.path)!r} is damaged: its checksum does not match. Restore it "
                    "from a backup, or begin again."
                )
            self._intact[name] = looks
        return path

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Lock the collection against changes by other processes, and load their earlier changes."""
        with self._locked(CHANGING, _WAIT):
            self.reload()
            self._sweep()
            yield

    def _sweep(self) -> None:
        """Remove incomplete files of a killed process: they contain records and are not listed."""
        for file in self.path.iterdir():
            # Only files that the store itself writes; others may have been put here by the user.
            if file.name not in self.content["files"] and _OURS.fullmatch(file.name):
                with suppress(OSError):
                    file.unlink()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Lock the collection against computation by other processes; records can still be added."""
        with self._locked(WORKING, 0.0):
            yield

    @contextmanager
    def _locked(self, name: str, wait: float) -> Iterator[None]:
        busy = f"Another process is using the collection {str(self.path)!r}. Wait until it has finished."
        descriptor = lock_file(self.path / name, wait, busy)
        try:
            yield
        finally:
            # Closing releases the lock, and so does the end of the process.
            with suppress(OSError):
                os.close(descriptor)


def _listed(path: Path) -> str:
    """Return the content of ``collection.json``."""
    if not path.is_dir():
        raise FileError(f"{str(path)!r} is not a collection: the folder does not exist. `begin` creates one.")
    try:
        return (path / LIST).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileError(f"{str(path)!r} is not a collection: {LIST} is missing.") from None
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{LIST} in {str(path)!r} cannot be read.") from None


def _remove_left_over(path: Path) -> None:
    """Remove incomplete folders of this name left by killed processes, which no longer hold their lock."""
    for beside in path.parent.glob(f".*.{glob.escape(path.name)}"):
        if re.fullmatch(r"\.[0-9a-f]{12}", beside.name.removesuffix(f".{path.name}")) and beside.is_dir():
            with suppress(FileError, OSError):
                with Store(beside, {})._locked(CHANGING, 0.0):
                    pass  # nobody begins to use it now, since the folder above is locked
                shutil.rmtree(beside, ignore_errors=True)


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in content.items() if key != "checksum"}
    return {**rest, "checksum": hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()}


def _checked(text: str, path: Path) -> dict[str, Any]:
    try:
        content = json.loads(text)
        version = content["format"]
        checksum = content["checksum"]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise FileError(f"{LIST} in {str(path)!r} is damaged. Restore it from a backup, or begin again.") from None
    if not isinstance(version, int) or version > FORMAT:
        raise FileError(
            f"The collection {str(path)!r} was written by a newer version of shoal (format {version}; this one reads "
            f"{FORMAT}). Use that version, or a later one."
        )
    if version < FORMAT:
        raise FileError(
            f"The collection {str(path)!r} was begun with an older version of shoal (format {version}; this one reads "
            f"{FORMAT}). Finish it with that version, or begin again."
        )
    if _signed(content)["checksum"] != checksum:
        raise FileError(
            f"{LIST} in {str(path)!r} is damaged: its checksum does not match. Restore it from a backup, or begin "
            "again."
        )
    return dict(content)
