"""Folders: the folder below which files are read and written, and the private folder for uploads.

No path leaves them, neither by `..` nor by a link.
"""

import os
import secrets
import shutil
from pathlib import Path
from typing import BinaryIO, NamedTuple

from shoal.errors import FileError
from shoal.files import open_private
from shoal.files.locks import hidden_beside, hold, release, sweep
from shoal.sources import FORMATS, format_of
from shoal.system import system

_MOST = 500  # entries of a folder that are listed


class FolderList(NamedTuple):
    """What a folder holds: the folders in it, and the files that can be opened."""

    here: str
    above: str | None
    folders: list[str]
    tables: list[str]
    jobs: list[str]
    n_more: int
    n_unnamed: int
    """Entries whose name is not text in UTF-8: a page cannot name them."""


class Folders:
    """Where files may be read and written.

    Parameters
    ----------
    root : Path
        The folder given at the start.
    state : Path
        The folder in which the app keeps its own files.
    """

    def __init__(self, root: Path, state: Path) -> None:
        self.root = root.resolve(strict=True)
        system.make_private_folder(state, parents=True, exist_ok=True)
        target = state.resolve() / "uploads"
        sweep(target)  # uploads of an app that was killed
        self.uploads = hidden_beside(target)
        system.make_private_folder(self.uploads)
        self._lock = hold(self.uploads)

    def inside(self, path: str) -> Path:
        """Return a path below the folder, or raise.

        Parameters
        ----------
        path : str
            Relative to the folder, or absolute.
        """
        try:
            found = (self.root / path).resolve()
        except (OSError, ValueError, RuntimeError):
            raise FileError("This path cannot be used.") from None
        if not (found.is_relative_to(self.root) or found.is_relative_to(self.uploads)):
            raise FileError(
                f"{Path(path).name!r} is outside the folder that was opened. Copy the file into that folder, or start "
                "`shoal app` with --folder and a folder that holds it."
            )
        return found

    def relative(self, path: Path) -> str:
        """Return a path as a job names it: relative to the folder, where it is below it."""
        return str(path.relative_to(self.root)) if path.is_relative_to(self.root) else str(path)

    def is_upload(self, path: str) -> bool:
        """Return whether a path is that of an uploaded file."""
        return (self.root / path).is_relative_to(self.uploads)

    def listed(self, folder: str = "") -> FolderList:
        """Return what a folder holds."""
        here = self.inside(folder)
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name.casefold())
        except OSError as error:
            raise FileError(f"The folder {here.name!r} cannot be opened: {error.strerror}.") from None
        inside = [entry for entry in entries if not entry.name.startswith(".") and self._is_inside(entry.path)]
        shown = [entry for entry in inside if _is_text(entry.name)]
        folders = [self.relative(Path(entry.path)) for entry in shown if entry.is_dir()]
        files = [self.relative(Path(entry.path)) for entry in shown if entry.is_file()]
        tables = [name for name in files if name.lower().endswith(tuple(FORMATS))]
        return FolderList(
            here=self.relative(here) if here != self.root else "",
            above=None if here == self.root else self.relative(here.parent).removesuffix("."),
            folders=folders[:_MOST],
            tables=tables[:_MOST],
            jobs=[name for name in files if name.lower().endswith(".toml")][:_MOST],
            n_more=max(len(folders) - _MOST, 0) + max(len(tables) - _MOST, 0),
            n_unnamed=len(inside) - len(shown),
        )

    def _is_inside(self, path: str) -> bool:
        return Path(os.path.realpath(path)).is_relative_to(self.root)

    def keep(self, name: str, content: BinaryIO) -> Path:
        """Store an uploaded file, readable by its owner alone, until the app ends."""
        plain = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in Path(name).name).lstrip(
            "."
        )
        format_of(plain or "_")
        folder = self.uploads / secrets.token_hex(4)
        system.make_private_folder(folder)
        path = folder / plain[-100:]
        try:
            with open_private(path, "wb") as file:
                shutil.copyfileobj(content, file)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise FileError(f"The file could not be stored: {(error.strerror or 'failed').lower()}.") from None
        return path

    def close(self) -> None:
        """Remove the uploaded files."""
        system.remove(self.uploads)
        release(self._lock)
        self._lock = None


def _is_text(name: str) -> bool:
    """Return whether the system could decode a name."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
