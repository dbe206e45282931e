"""Database files: checked before a driver opens them, and recognised under every name."""

import os
from pathlib import Path

from shoal.errors import FileError


def check_file(path: Path, title: str, offset: int, magic: bytes) -> None:
    """Raise unless a file exists and is empty or begins as a file of this database does."""
    if path.is_dir():
        raise FileError(f"{str(path)!r} is a folder. Give the path of a {title} file.")
    if not path.is_file():
        raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    try:
        with open(path, "rb") as file:
            found = file.read(offset + len(magic))
    except PermissionError:
        raise FileError(f"{str(path)!r} cannot be read: permission denied.") from None
    if found and found[offset:] != magic:
        raise FileError(
            f"{str(path)!r} is not a {title} file, or it is encrypted. A database of another kind is named by its "
            "address, such as duckdb:///FILE."
        )


def identity_of(path: Path | None) -> frozenset[object]:
    """Return what identifies a file under any spelling or link: its resolved path and its inode."""
    if path is None:
        return frozenset()
    found: set[object] = {Path(os.path.realpath(path))}
    if path.exists():
        status = path.stat()
        found.add((status.st_dev, status.st_ino))
    return frozenset(found)
