"""POSIX: modes, flock, SIGTERM, and pipes that can be waited for."""

import errno
import fcntl
import os
import select
import shutil
import signal
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

assert sys.platform != "win32"

TERMINATION = signal.SIGTERM
"""The signal by which the system, or whoever started a process, asks it to end."""

APART: dict[str, Any] = {"start_new_session": True}
"""Options of a child process that Ctrl-C does not reach."""

IS_DENIED = "writing is not permitted. Choose another folder."

Access = int
"""Who may do what with a file: its mode."""

_PRIVATE, _PRIVATE_FOLDER = 0o600, 0o700
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


def user_id() -> str:
    """Return what tells this user from others of the machine, for names of temporary files."""
    return str(os.getuid())


def state_home() -> Path:
    """Return the folder in which programs of this user keep their state."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


# Private files


def make_private_folder(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    """Make a folder that only its owner can enter; its parents as usual."""
    path.mkdir(mode=_PRIVATE_FOLDER, parents=parents, exist_ok=exist_ok)


def is_private(path: Path) -> bool:
    """Return whether a file or folder, not a link to one, belongs to this user and nobody else can open it."""
    found = os.lstat(path)
    return not stat.S_ISLNK(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def make_new_private(path: Path) -> None:
    """Make an empty file that only its owner can read; raise `FileExistsError` if there is one."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _PRIVATE))


def open_bytes(path: str | os.PathLike[str], flags: int, *, private: bool = False) -> int:
    """Open a file as `os.open` does, for bytes as they are; one that is created may be private from the start."""
    return os.open(path, flags, _PRIVATE if private else 0o666)


def make_private(descriptor: int) -> None:
    """Let only the owner read an open file; pipes and devices stay as they are."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.fchmod(descriptor, _PRIVATE)


def access_for(target: Path, beside: Path, *, private: bool) -> Access:
    """Return who may do what with the file that will replace `target`, or be the first one there.

    Parameters
    ----------
    beside : Path
        A name in the same folder that does not exist, by which the umask and the folder are asked what a new file gets.
    private : bool
        Whether only the owner may read it.
    """
    mode = _PRIVATE if private else _mode_of_a_new_file(beside)
    # Replacing a file must not widen its permissions.
    return mode & (stat.S_IMODE(target.stat().st_mode) | _PRIVATE) if target.exists() else mode


def _mode_of_a_new_file(path: Path) -> int:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        path.unlink()
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def give_access(path: Path, access: Access) -> None:
    """Give a file that was private until now its final permissions."""
    os.chmod(path, access)


# Renaming


def replace(source: Path, target: Path) -> None:
    """Rename a file, in place of another one if there is one."""
    os.replace(source, target)


def rename_new(source: Path, target: Path) -> None:
    """Give a file its name, under which there must be none: raise `FileExistsError` otherwise. `source` may stay."""
    try:
        os.link(source, target)  # atomic, and fails if the name exists
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # Reserve the name with an empty file, then replace that.
        make_new_private(target)
        os.replace(source, target)


def remove(path: Path) -> None:
    """Remove a temporary file or folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def flush_to_disk(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Locks: each belongs to an open descriptor and ends with it, so a process releases its locks however it ends.


def lock(descriptor: int) -> None:
    """Lock an open file; raise `BlockingIOError` if another one has locked it."""
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def hold(path: Path) -> int:
    """Lock a file or folder by its name; raise as `lock` does. It can be renamed and removed meanwhile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        lock(descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def lock_folder(folder: Path) -> int:
    """Lock the names in a folder; raise as `lock` does."""
    return hold(folder)


# Signals and processes


def terminate_this_process() -> None:
    """Ask this process to end, from any of its threads."""
    os.kill(os.getpid(), TERMINATION)


def was_killed(code: int) -> bool:
    """Return whether a child process that ended with this code was killed, as the system does if memory runs out."""
    return code == -signal.SIGKILL


def yield_to_others() -> None:
    """Let other processes of the machine come first."""
    os.nice(5)


def run_measured(command: Sequence[str]) -> "tuple[subprocess.CompletedProcess[str], float]":
    """Run a command to its end; return it with its output, and the seconds of processor time that it took."""
    import resource
    import subprocess

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, capture_output=True, encoding="utf-8", errors="replace")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


# Pipes and terminals


def use_utf8() -> None:
    """Let the standard streams be UTF-8: they are what the locale says, which is this."""


def is_reader_gone(error: OSError) -> bool:
    """Return whether a write failed because nobody reads the pipe any more."""
    return isinstance(error, BrokenPipeError)


class StoppableReader:
    """Reads an open file or pipe as its bytes come, until it is stopped by another thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wake, self._waker = os.pipe()

    def read(self, size: int) -> bytes | None:
        """Return the next bytes, none at the end; None once it is stopped."""
        ready = select.select([self._descriptor, self._wake], [], [])[0]
        return None if self._wake in ready else os.read(self._descriptor, size)

    def stop(self) -> None:
        """Let `read` return at once, now and in future."""
        os.write(self._waker, b"x")

    def close(self) -> None:
        """Release what is used for waiting, not the file."""
        os.close(self._wake)
        os.close(self._waker)


class PatientWriter:
    """Writes to a pipe, and returns now and then while its reader takes nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, content: memoryview, seconds: float) -> int:
        """Return how many bytes were written, 0 if there was no room within so many seconds; offer the rest next."""
        if not select.select([], [self._descriptor], [], seconds)[1]:
            return 0
        # A pipe that is ready takes at least this many bytes: the write does not block.
        return os.write(self._descriptor, content[: select.PIPE_BUF])
