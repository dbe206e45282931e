"""Files: written beside and renamed, so that a file is there whole or not at all.

Nothing is overwritten unless asked, what is read never, and nobody else can read a file that is still being written.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import product
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from shoal.errors import FileError
from shoal.file_locks import hidden_beside, hold, locked_folders, sweep

_REMEDIES = {
    errno.ENOSPC: "the disk is full. Make room, or choose another folder.",
    errno.EDQUOT: "the disk quota is used up. Make room, or choose another folder.",
    errno.EFBIG: "the file would become larger than the system allows. Raise the limit, or choose another folder.",
    errno.EROFS: "the file system is read-only. Choose another folder.",
    errno.EACCES: "writing is not permitted. Choose another folder.",
    errno.EISDIR: "a folder has that name. Choose another name.",
    errno.EIO: "the device reported an error. Choose another folder.",
}
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class _Beside(NamedTuple):
    """A file in the making: where it will be, where it is now, who holds it, and the mode it will have."""

    target: Path
    temporary: Path
    descriptor: int
    mode: int


@contextmanager
def replacing(
    path: str | os.PathLike[str],
    force: bool = False,
    *,
    private: bool = False,
    inputs: Iterable[str | os.PathLike[str]] = (),
) -> Iterator[Path]:
    """Give a path to write to, beside `path`; rename it to `path` when the block ends well.

    Parameters
    ----------
    path : path
        Where the file shall be.
    force : bool
        Replace a file that is there already.
    private : bool
        The finished file is readable by its owner alone, whatever the umask and whatever the file that it replaces:
        for everything that holds records, a seed or measures of the original.
    inputs : sequence of paths
        Files that were read: `path` may not be one of them, by whatever spelling or link.

    Yields
    ------
    temporary : Path
        An empty file in the same folder, with a hidden name that ends as `path` does, readable by its owner alone.
        It is flushed to the disk before it is renamed; the finished file has the permissions that the umask leaves, if
        it is not private.

    Raises
    ------
    FileError
        If `path` is one of the `inputs`, exists and `force` is not set (also when it appears only while the block
        runs), if its folder is missing or cannot be written to, or if the disk is full. Whatever ends the block early,
        Ctrl-C included, leaves `path` as it was and no temporary file.

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
) -> Iterator[tuple[Path, ...]]:
    """Give a path beside each of `paths`; rename them when all are complete, the first of them last.

    Works as `replacing` does for one; those in `private` stay readable by their owner alone, and none may be one of the
    `inputs`. All files are on the disk before one gets its name. They get their names while their folders are locked,
    so that of several processes that write the same set one set stays, whole. Should a rename fail (without `force`:
    because a file has appeared meanwhile), those already renamed are taken back, and what they replaced returns.

    Hidden files that a killed process has left beside `paths` are removed.

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
    targets = check_free(paths, force, inputs)
    folders = {target.parent for target in targets}
    files: list[_Beside] = []
    try:
        with locked_folders(folders):
            for target in targets:
                sweep(target)
                files.append(_begin(target, private=target in closed))
        with _telling(targets):
            yield tuple(file.temporary for file in files)
            for file in files:
                _settle(file)
        with locked_folders(folders):
            _publish_all(files, force)
    finally:
        for file in files:
            file.temporary.unlink(missing_ok=True)
            os.close(file.descriptor)


@contextmanager
def hidden_folder(target: Path) -> Iterator[Path]:
    """Make a folder beside `target` that only its owner can enter, and remove it at the end."""
    with locked_folders([target.parent]):
        sweep(target)
        folder = hidden_beside(target)
        folder.mkdir(mode=0o700)
        descriptor = hold(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def check_free(
    paths: Iterable[str | os.PathLike[str]], force: bool = False, inputs: Iterable[str | os.PathLike[str]] = ()
) -> list[Path]:
    """Refuse paths that `replacing_all` would refuse, before the work that fills them; return where they lead."""
    wanted = [Path(path) for path in paths]
    for path, read in product(wanted, inputs):
        if is_same_file(path, read):
            raise FileError(
                f"{str(path)!r} is to be written, but it is the file that is read, {os.fspath(read)!r}: it would be "
                "lost. Choose another name for the output."
            )
    targets = [_target(path, force) for path in wanted]
    # On some file systems names that differ in case alone name one file.
    if len({(target.parent, target.name.casefold()) for target in targets}) < len(targets):
        raise FileError(f"Two of the files to write are the same: {_named(targets)}. Give each a path of its own.")
    return targets


def is_same_file(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Tell whether two paths lead to one file that exists: by another spelling, a link or a second name."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def open_private(path: str | os.PathLike[str], mode: str) -> BinaryIO:
    """Open a file for writing in binary `mode` that only its owner can read, whatever its mode was before.

    For a file that grows while it is read, which `replacing` is not for. A pipe or a device stays as it is.
    """
    file = open(path, mode, opener=lambda name, flags: os.open(name, flags, 0o600))  # noqa: SIM115 - the caller closes it
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        os.fchmod(file.fileno(), 0o600)
    return cast(BinaryIO, file)


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{os.fspath(path)!r} cannot be read: {os.strerror(error.errno or 0).lower()}.") from None


def _target(path: Path, force: bool) -> Path:
    """Return the real place of a file to write, or say why it cannot be written there."""
    if os.path.lexists(path) and not force:
        raise _exists(path)
    # Through a link, as an ordinary write would: the file it leads to is replaced, the link stays.
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileError(f"{str(path)!r} cannot be written: its folder does not exist. Make the folder first.")
    if path.exists() and not path.is_file():
        raise FileError(f"{str(path)!r} cannot be written: it is there and not a regular file. Choose another name.")
    return path


def _exists(path: Path) -> FileError:
    return FileError(f"{str(path)!r} exists already. Choose another name, or ask to replace it (force).")


def _begin(target: Path, private: bool) -> _Beside:
    """Create the empty temporary file, closed to others from its first moment, and decide the mode it will have."""
    temporary = hidden_beside(target)
    try:
        mode = 0o600 if private else _mode_of_a_new_file(temporary)
        descriptor = hold(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    except OSError as error:
        raise _refusal([target], error) from None
    if target.exists():
        # What was closed to others does not become open by being replaced.
        mode &= stat.S_IMODE(target.stat().st_mode) | 0o600
    return _Beside(target, temporary, descriptor, mode)


def _mode_of_a_new_file(path: Path) -> int:
    """Return the mode that the umask and the folder leave a new file, from an empty one that is removed at once."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        path.unlink()
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def _settle(file: _Beside) -> None:
    """Bring the file's bytes and its mode to the disk."""
    os.chmod(file.temporary, file.mode)
    _sync(file.temporary)


def _publish_all(files: list[_Beside], force: bool) -> None:
    """Give every file its name, or none: the first one last, so that whoever finds it finds the others."""
    kept: list[Path | None] = []
    done: list[tuple[Path, Path | None]] = []
    try:
        for file in reversed(files):
            with _telling([file.target]):
                kept.append(_second_name(file.target) if force else None)
                if force:
                    os.replace(file.temporary, file.target)
                else:
                    _claim(file)
                done.append((file.target, kept[-1]))
    except BaseException:
        for target, older in done:
            _take_back(target, older)
        raise
    finally:
        for older in kept:
            if older is not None:
                older.unlink(missing_ok=True)
    for folder in {file.target.parent for file in files}:
        # Some file systems cannot flush a folder; the files themselves are safe by then.
        with suppress(OSError):
            _sync(folder)


def _second_name(target: Path) -> Path | None:
    """Return a hidden second name for a file that is about to be replaced, None if there is none."""
    older = hidden_beside(target)
    try:
        os.link(target, older)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        shutil.copy2(target, older)
    return older


def _take_back(target: Path, older: Path | None) -> None:
    if older is None:
        target.unlink(missing_ok=True)
    else:
        os.replace(older, target)


def _claim(file: _Beside) -> None:
    """Rename without replacing: a second name for the same file exists or fails, with no moment in between."""
    try:
        os.link(file.temporary, file.target)
    except FileExistsError:
        raise _exists(file.target) from None
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        _claim_without_links(file)


def _claim_without_links(file: _Beside) -> None:
    """Reserve the name with an empty file, then replace that."""
    try:
        os.close(os.open(file.target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise _exists(file.target) from None
    os.replace(file.temporary, file.target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _telling(targets: list[Path]) -> Iterator[None]:
    """Turn what the system says about writing into a refusal; leave every other error alone."""
    try:
        yield
    except OSError as error:
        if error.errno not in _REMEDIES:
            raise
        raise _refusal(targets, error) from None


def _refusal(targets: list[Path], error: OSError) -> FileError:
    number = error.errno or 0
    reason = _REMEDIES.get(number, f"{os.strerror(number).lower()}.")
    return FileError(f"{_named(targets)} cannot be written: {reason}")


def _named(paths: list[Path]) -> str:
    return ", ".join(repr(str(path)) for path in paths)
