"""Files: atomic writes, by writing to a temporary file in the same folder and renaming it.

Existing files are replaced only with `force`, input files never, and other users cannot read a file that is still being
written.
"""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from shoal.errors import FileError
from shoal.files.locks import hidden_beside, hold, locked_folders, release, sweep
from shoal.interrupts import held
from shoal.spelling import setting
from shoal.system import system

_REMEDIES = {
    errno.ENOSPC: "the disk is full. Make room, or choose another folder.",
    errno.EDQUOT: "the disk quota is used up. Make room, or choose another folder.",
    errno.EFBIG: "the file would become larger than the system allows. Raise the limit, or choose another folder.",
    errno.EROFS: "the file system is read-only. Choose another folder.",
    errno.EACCES: system.IS_DENIED,
    errno.EISDIR: "it is a folder. Choose another name.",
    errno.ENAMETOOLONG: "its name is too long. Choose a shorter one.",
    errno.EIO: "the device reported an error. Choose another folder.",
}
_NO_HARD_LINKS = {errno.EPERM, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class _Beside(NamedTuple):
    """A file being written: its final path, its temporary path, its lock, and who may do what with it in the end."""

    target: Path
    temporary: Path
    lock: int | None
    access: system.Access


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    force: bool = False,
    *,
    private: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; rename it to `path` when the block succeeds.

    Parameters
    ----------
    path : path
        The file to write.
    force : bool
        Replace an existing file.
    private : bool
        Make the finished file readable by its owner alone, whatever the umask and the mode of the file it replaces.
        For everything that holds records, a seed or measures of the original.
    inputs : sequence of paths
        Files that were read: `path` must not be one of them, under any spelling or link.

    Yields
    ------
    temporary : Path
        An empty hidden file in the same folder with the suffix of `path`, readable by its owner alone. It is flushed to
        disk before it is renamed. Unless it is private, the finished file has the permissions given by the umask.

    Raises
    ------
    FileError
        If `path` is one of the `inputs`, exists and `force` is not set (also if it is created while the block runs), if
        its folder is missing or not writable, or if the disk is full. If the block fails for any reason, Ctrl-C
        included, `path` is unchanged and the temporary file is removed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as temporary:
    ...     _ = temporary.write_text("whole or not at all")
    >>> [file.name for file in folder.iterdir()]
    ['note.txt']
    """
    with replacing_all([path], force, private=[path] if private else [], inputs=inputs) as (temporary,):
        yield temporary


@contextmanager
def replacing_all(
    paths: Iterable[str | os.PathLike[str]],
    force: bool = False,
    private: Iterable[str | os.PathLike[str]] = (),
    inputs: Iterable[str | os.PathLike[str]] = (),
    *,
    never: Iterable[str | os.PathLike[str]] = (),
    checked: Iterable[str | os.PathLike[str]] = (),
    commit: Callable[[], None] | None = None,
) -> Iterator[tuple[Path, ...]]:
    """Yield a temporary path for each of `paths`; rename them all when the block succeeds, the first of them last.

    The others describe the first: where that is replaced, they are removed before it and renamed after it, so that a
    process killed in between leaves none of them beside the wrong one. Those in `checked` hold the hash of the first,
    which every reader of them compares, and stay until it is replaced.

    Works like `replacing`; those in `private` stay readable by their owner alone, and none may be one of the `inputs`.
    All files are flushed to disk before the first is renamed. Renames happen while the folders are locked, so that if
    several processes write the same set, one complete set remains. If a rename fails (without `force`: because a file
    was created meanwhile), those already done are undone and the replaced files restored. Those in `never` are not
    replaced even with `force`. `commit` is called after the last rename, to publish what is not a file; if it raises,
    the renames are undone. Ctrl-C waits meanwhile, and is raised when all files have their names.

    Temporary files left beside `paths` by a killed process are removed.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing_all([folder / "release.csv", folder / "report.html"]) as (release, report):
    ...     _ = release.write_text("a"), report.write_text("b")
    >>> sorted(file.name for file in folder.iterdir())
    ['release.csv', 'report.html']
    """
    closed = {Path(os.path.realpath(path)) for path in private}
    targets = check_free(paths, force, inputs, never=never)
    kept = {Path(os.path.realpath(path)) for path in never}
    folders = {target.parent for target in targets}
    files: list[_Beside] = []
    try:
        with locked_folders(folders):
            for target in targets:
                sweep(target)
                files.append(_begin(target, private=target in closed))
        with _refusing(targets):
            yield tuple(file.temporary for file in files)
            for file in files:
                _settle(file)
        with locked_folders(folders):
            lasting = {Path(os.path.realpath(path)) for path in checked}
            _publish_all([(file, force and file.target not in kept) for file in files], lasting, commit)
    finally:
        for file in files:
            system.remove(file.temporary)
            release(file.lock)


def temporary_path(use: str) -> Path:
    """Return the path beside which `hidden_folder` makes a temporary folder of this user: in TMPDIR, if that is set.

    Raises
    ------
    FileError
        If TMPDIR is set and cannot be written to. Python would take another folder, whose disk may not be encrypted.
    """
    variable = next((name for name in ("TMPDIR", "TEMP", "TMP") if os.environ.get(name)), None)
    folder = None if variable is None else os.path.abspath(os.environ[variable])
    try:
        folder = folder or tempfile.gettempdir()
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(b"shoal")
    except OSError as error:
        reason = _REMEDIES.get(error.errno or 0, f"{os.strerror(error.errno or 0).lower()}. Choose another folder.")
        where = "" if variable is None else f" {folder!r}, which {variable} names,"
        raise FileError(f"The folder for temporary files{where} cannot be written to: {reason}") from None
    return Path(folder) / f"shoal-{use}-{system.user_id()}"


@contextmanager
def hidden_folder(target: Path) -> Iterator[Path]:
    """Make a temporary folder beside `target` that only its owner can enter, and remove it at the end."""
    with locked_folders([target.parent]), _refusing([target]):
        sweep(target)
        folder = hidden_beside(target)
        system.make_private_folder(folder)
        lock = hold(folder)
    try:
        yield folder
    finally:
        system.remove(folder)
        release(lock)


def check_free(
    paths: Iterable[str | os.PathLike[str]],
    force: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
    *,
    never: Iterable[str | os.PathLike[str]] = (),
) -> list[Path]:
    """Refuse the paths that `replacing_all` would refuse, before any work is done; return the resolved paths."""
    wanted = [Path(path) for path in paths]
    for path, read in product(wanted, inputs):
        if is_same_file(path, read):
            raise FileError(
                f"The output {str(path)!r} is the same file as the input {os.fspath(read)!r}, which would be lost. "
                "Choose another name for the output."
            )
        if Path(read).is_dir() and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(read)):
            raise FileError(
                f"The output {str(path)!r} is in the folder {os.fspath(read)!r} that is read, and would be read as a "
                "part of it the next time. Choose another folder for the output."
            )
    kept = {Path(path) for path in never}
    targets = [_target(path, force and path not in kept) for path in wanted]
    # On some file systems names that differ only in case are the same file.
    if len({(target.parent, target.name.casefold()) for target in targets}) < len(targets):
        raise FileError(f"Two of the files to write are the same: {_named(targets)}. Give each its own path.")
    return targets


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths name the same existing file, by another spelling or a link."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def open_private(path: str | os.PathLike[str], mode: str) -> BinaryIO:
    """Open a file for writing in binary `mode` and make it readable by its owner alone.

    For files that are read while they grow, unlike those of `replacing`. The mode of a pipe or a device is not changed.
    """
    file = open(path, mode, opener=partial(system.open_bytes, private=True))  # noqa: SIM115 - the caller closes it
    system.make_private(file.fileno())
    return cast(BinaryIO, file)


def write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, with the same bytes on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")


def second_name(path: Path, other: Path) -> None:
    """Give a file another name in the same folder, by a hard link or, where there are none, as a copy."""
    try:
        os.link(path, other)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        shutil.copy2(path, other)


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{os.fspath(path)!r} cannot be read: {os.strerror(error.errno or 0).lower()}.") from None


def _target(path: Path, force: bool) -> Path:
    """Return the resolved path of a file to write, or raise FileError if it cannot be written."""
    if os.path.lexists(path) and not force:
        raise _exists(path)
    # Follows links, as an ordinary write would: the target is replaced, the link stays.
    path = Path(os.path.realpath(path))
    with _refusing([path]):
        if not path.parent.is_dir():
            raise FileError(f"{str(path)!r} cannot be written: its folder does not exist. Make the folder first.")
        if path.exists() and not path.is_file():
            raise FileError(
                f"{str(path)!r} cannot be written: it exists and is not a regular file. Choose another name."
            )
    return path


def _exists(path: Path) -> FileError:
    return FileError(f"{str(path)!r} already exists. Choose another name, or replace it with {setting('force', True)}.")


def _begin(target: Path, private: bool) -> _Beside:
    """Create the empty temporary file, private from the start, and determine its final permissions."""
    temporary = hidden_beside(target)
    try:
        access = system.access_for(target, temporary, private=private)
        system.make_new_private(temporary)
    except OSError as error:
        raise _refusal([target], error) from None
    return _Beside(target, temporary, hold(temporary), access)


def _settle(file: _Beside) -> None:
    """Set the final permissions of the file and flush it to disk."""
    system.give_access(file.temporary, file.access)
    system.flush_to_disk(file.temporary)


def _publish_all(files: list[tuple[_Beside, bool]], lasting: set[Path], commit: Callable[[], None] | None) -> None:
    """Rename all files or none, each with its own `force`, while Ctrl-C waits.

    The first one is renamed last, so that if it exists the others do. If it replaces an older one, what describes that
    is removed first, unless it is `lasting`, and renamed after it, so that no file ever stands beside the description
    of another.
    """
    older: dict[Path, Path | None] = {}
    changed: dict[Path, Path | None] = {}
    with held(publishing=True):
        try:
            for file, force in files:
                with _refusing([file.target]):
                    older[file.target] = _kept(file.target) if force else None
            replaces = bool(files) and older[files[0][0].target] is not None
            for file, _ in files[1:] if replaces else ():
                if older[file.target] is not None and file.target not in lasting:
                    file.target.unlink()
                    changed[file.target] = older[file.target]
            for file, force in files if replaces else reversed(files):
                with _refusing([file.target]):
                    if force:
                        system.replace(file.temporary, file.target)
                    else:
                        _claim(file)
                changed[file.target] = older[file.target]
            if commit is not None:
                commit()
        except BaseException:
            for target, second in changed.items():
                _take_back(target, second)
            raise
        finally:
            for second in older.values():
                if second is not None:
                    system.remove(second)
    for folder in {file.target.parent for file, _ in files}:
        _sync_names(folder)


def _kept(target: Path) -> Path | None:
    """Return a hidden hard link to (or copy of) a file that is about to be replaced, None if it does not exist."""
    older = hidden_beside(target)
    try:
        second_name(target, older)
    except FileNotFoundError:
        return None
    return older


def _take_back(target: Path, older: Path | None) -> None:
    if older is None:
        target.unlink(missing_ok=True)
    else:
        system.replace(older, target)


def _claim(file: _Beside) -> None:
    """Rename without replacing."""
    try:
        system.rename_new(file.temporary, file.target)
    except FileExistsError:
        raise _exists(file.target) from None


def sync_folder(folder: Path) -> None:
    """Flush all files of a folder, and their names, to disk."""
    for path in folder.iterdir():
        system.flush_to_disk(path)
    _sync_names(folder)


def sync_file(path: Path) -> None:
    """Flush a file and its name to disk."""
    system.flush_to_disk(path)
    _sync_names(path.parent)


def _sync_names(folder: Path) -> None:
    # Some file systems cannot flush a folder; the files themselves are already on disk.
    with suppress(OSError):
        system.flush_to_disk(folder)


@contextmanager
def _refusing(targets: list[Path]) -> Iterator[None]:
    """Turn known errors of writing into a FileError; let every other error pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REMEDIES:
            raise
        raise _refusal(targets, error) from None


def _refusal(targets: list[Path], error: OSError) -> FileError:
    # For a folder in the place of a file, systems have several errors.
    number = errno.EISDIR if any(map(os.path.isdir, targets)) else error.errno or 0
    reason = _REMEDIES.get(number, f"{os.strerror(number).lower()}.")
    return FileError(f"{_named(targets)} cannot be written: {reason}")


def _named(paths: list[Path]) -> str:
    return ", ".join(repr(str(path)) for path in paths)
