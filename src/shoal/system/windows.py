"""Windows: access lists, LockFileEx, Ctrl-Break, and pipes that are asked or written to by a thread.

No file is renamed or removed while it is open, so a lock on a file or folder is another file: beside what is locked, or
in the folder whose names are. Nobody else can open it, and it is gone when its handle is, however the process ends.
"""

import _thread
import ctypes
import errno
import gc
import msvcrt
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, wintypes
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import subprocess

assert sys.platform == "win32"

TERMINATION = signal.SIGBREAK
"""Ctrl-Break, and what arrives when the console is closed, the user logs off or the machine is shut down."""

APART: dict[str, Any] = {"creationflags": 0x08000000 | 0x00000200}  # without a console, in a process group of its own
"""Options of a child process that Ctrl-C does not reach."""

IS_DENIED = "writing is not permitted, or another program has the file open. Close it there, or choose another folder."

_LOCK_AT = 1 << 62  # locks are mandatory here: far behind the content, which others may read
_LOCKED = ".000000000000."  # before the name of what is locked: `sweep` removes such a file if the machine has crashed
_LOCKED_FOLDER = ".shoal.lock"
_PATIENCE = 1.0  # seconds that another program, such as a virus scanner, may keep a file open that is to be replaced
_GLANCE = 0.01  # seconds between two looks into a pipe

_BUSY = (32, 33)  # sharing violation, lock violation
_NO_SUCH_NAME = (2, 3, 123, 206)  # file or path not found, invalid name, name too long
_DENIED = 5  # access denied: also while a file that is being removed is still open
_DACL = 0x4
_PROTECTED, _UNPROTECTED = 0x80000000, 0x20000000
_PIPE = 3

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_security = ctypes.WinDLL("advapi32", use_last_error=True)


class _Attributes(ctypes.Structure):
    _fields_ = (("length", wintypes.DWORD), ("descriptor", ctypes.c_void_p), ("inherit", wintypes.BOOL))


class _Overlapped(ctypes.Structure):
    _fields_ = (
        ("internal", ctypes.c_void_p),
        ("internal_high", ctypes.c_void_p),
        ("offset", wintypes.DWORD),
        ("offset_high", wintypes.DWORD),
        ("event", wintypes.HANDLE),
    )


def _declare(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


_H, _D, _B, _T, _P = wintypes.HANDLE, wintypes.DWORD, wintypes.BOOL, wintypes.LPCWSTR, ctypes.c_void_p
_create_file = _declare(_kernel, "CreateFileW", _H, _T, _D, _D, _P, _D, _D, _H)
_create_directory = _declare(_kernel, "CreateDirectoryW", _B, _T, _P)
_close_handle = _declare(_kernel, "CloseHandle", _B, _H)
_local_free = _declare(_kernel, "LocalFree", _P, _P)
_lock_file = _declare(_kernel, "LockFileEx", _B, _H, _D, _D, _D, _D, POINTER(_Overlapped))
_file_type = _declare(_kernel, "GetFileType", _D, _H)
_peek = _declare(_kernel, "PeekNamedPipe", _B, _H, _P, _D, _P, POINTER(_D), _P)
_reopen = _declare(_kernel, "ReOpenFile", _H, _H, _D, _D, _D)
_this_process = _declare(_kernel, "GetCurrentProcess", _H)
_set_priority = _declare(_kernel, "SetPriorityClass", _B, _H, _D)
_process_times = _declare(_kernel, "GetProcessTimes", _B, _H, *[POINTER(ctypes.c_uint64)] * 4)
_open_token = _declare(_security, "OpenProcessToken", _B, _H, _D, POINTER(_H))
_of_token = _declare(_security, "GetTokenInformation", _B, _H, ctypes.c_int, _P, _D, POINTER(_D))
_sid_as_text = _declare(_security, "ConvertSidToStringSidW", _B, _P, POINTER(ctypes.c_void_p))
_text_as_descriptor = _declare(
    _security, "ConvertStringSecurityDescriptorToSecurityDescriptorW", _B, _T, _D, POINTER(_P), _P
)
_descriptor_as_text = _declare(
    _security, "ConvertSecurityDescriptorToStringSecurityDescriptorW", _B, _P, _D, _D, POINTER(ctypes.c_void_p), _P
)
_get_named = _declare(
    _security, "GetNamedSecurityInfoW", _D, _T, ctypes.c_int, _D, POINTER(_P), _P, POINTER(_P), _P, POINTER(_P)
)
_set_named = _declare(_security, "SetNamedSecurityInfoW", _D, _T, ctypes.c_int, _D, _P, _P, _P, _P)
_set_open = _declare(_security, "SetKernelObjectSecurity", _B, _H, _D, _P)
_list_of = _declare(_security, "GetSecurityDescriptorDacl", _B, _P, POINTER(_B), POINTER(_P), POINTER(_B))
_control_of = _declare(_security, "GetSecurityDescriptorControl", _B, _P, POINTER(wintypes.WORD), POINTER(_D))
_FILE = 1  # SE_FILE_OBJECT
_INVALID = ctypes.c_void_p(-1).value


def _checked(worked: object) -> None:
    if not worked:
        raise ctypes.WinError(ctypes.get_last_error())


def _succeeded(code: int) -> None:
    if code:
        raise ctypes.WinError(code)


@cache
def _user() -> str:
    """Return the security identifier of this user."""
    token, size = _H(), _D()
    _checked(_open_token(_this_process(), 0x8, byref(token)))
    try:
        _of_token(token, 1, None, 0, byref(size))
        found = ctypes.create_string_buffer(size.value)
        _checked(_of_token(token, 1, found, size, byref(size)))
    finally:
        _close_handle(token)
    sid = ctypes.cast(found, POINTER(ctypes.c_void_p))[0]
    text = ctypes.c_void_p()
    _checked(_sid_as_text(sid, byref(text)))
    try:
        return ctypes.wstring_at(text.value or 0)
    finally:
        _local_free(text)


def user_id() -> str:
    """Return what tells this user from others of the machine, for names of temporary files."""
    return _user().rpartition("-")[2]


def state_home() -> Path:
    """Return the folder in which programs of this user keep their state."""
    return Path(os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")


# Private files: their owner has all rights, as has the system for backups; nothing is inherited from the folder.


class _Descriptor:
    """A security descriptor made from its text."""

    def __init__(self, text: str) -> None:
        self.at = _P()
        _checked(_text_as_descriptor(text, 1, byref(self.at), None))

    @property
    def attributes(self) -> _Attributes:
        """What is given to functions that make something."""
        return _Attributes(ctypes.sizeof(_Attributes), self.at.value, False)

    @property
    def list(self) -> Any:
        """The access list."""
        present, found, default = _B(), _P(), _B()
        _checked(_list_of(self.at, byref(present), byref(found), byref(default)))
        return found

    @property
    def is_protected(self) -> bool:
        """Whether nothing is inherited."""
        control, version = wintypes.WORD(), _D()
        _checked(_control_of(self.at, byref(control), byref(version)))
        return bool(control.value & 0x1000)


@cache
def _private_file() -> _Descriptor:
    return _Descriptor(f"O:{_user()}D:P(A;;FA;;;{_user()})(A;;FA;;;SY)")


@cache
def _private_folder() -> _Descriptor:
    return _Descriptor(f"O:{_user()}D:P(A;OICI;FA;;;{_user()})(A;OICI;FA;;;SY)")


def _read(path: Path) -> str:
    """Return owner and access list of a file or folder as text."""
    owner, found, text = _P(), _P(), ctypes.c_void_p()
    _succeeded(_get_named(str(path), _FILE, 0x1 | _DACL, byref(owner), None, None, None, byref(found)))
    try:
        _checked(_descriptor_as_text(found, 1, 0x1 | _DACL, byref(text), None))
        return ctypes.wstring_at(text.value or 0)
    finally:
        _local_free(text)
        _local_free(found)


def make_private_folder(path: Path, *, parents: bool = False, exist_ok: bool = False) -> None:
    """Make a folder that only its owner can enter; its parents as usual."""
    if parents:
        path.parent.mkdir(parents=True, exist_ok=True)
    if not _create_directory(str(path), byref(_private_folder().attributes)):
        error = ctypes.WinError(ctypes.get_last_error())
        if not (exist_ok and isinstance(error, FileExistsError) and path.is_dir()):
            raise error


def is_private(path: Path) -> bool:
    """Return whether a file or folder, not a link to one, belongs to this user and nobody else can open it."""
    if os.lstat(path).st_file_attributes & 0x400:  # a reparse point
        return False
    owner, _, access = _read(path).partition("D:")
    others = [entry for entry in access.split("(")[1:] if not entry.startswith("D;")]
    allowed = {entry.rstrip(")").rpartition(";")[2] for entry in others}
    return owner == f"O:{_user()}" and allowed <= {_user(), "SY", "OW"}


def make_new_private(path: Path) -> None:
    """Make an empty file that only its owner can read; raise `FileExistsError` if there is one."""
    _close_handle(_opened(path, 0x40000000, 0, 1, private=True))


def open_bytes(path: str | os.PathLike[str], flags: int, *, private: bool = False) -> int:
    """Open a file as `os.open` does, for bytes as they are; one that is created may be private from the start."""
    if private and flags & os.O_CREAT:
        try:
            make_new_private(Path(path))
            flags &= ~os.O_EXCL
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
    return os.open(path, flags | os.O_BINARY | os.O_NOINHERIT, 0o666)


def make_private(descriptor: int) -> None:
    """Let only the owner read an open file; pipes and devices stay as they are."""
    handle = msvcrt.get_osfhandle(descriptor)
    if _file_type(handle) != 1:
        return
    other = _reopen(handle, 0x60000, 7, 0)  # READ_CONTROL and WRITE_DAC
    if other in (None, _INVALID):
        raise ctypes.WinError(ctypes.get_last_error())
    try:
        _checked(_set_open(other, _DACL | _PROTECTED, _private_file().at))
    finally:
        _close_handle(other)


class Access(NamedTuple):
    """Who may do what with a file: the text of an access list; None is what the folder gives to a new one."""

    text: str | None


def access_for(target: Path, beside: Path, *, private: bool) -> Access:
    """Return who may do what with the file that will replace `target`, or be the first one there.

    Parameters
    ----------
    beside : Path
        Not used.
    private : bool
        Whether only the owner may read it.
    """
    # Replacing a file must not widen its permissions.
    if private or (target.exists() and is_private(target)):
        return Access("")
    return Access(_read(target) if target.exists() else None)


def give_access(path: Path, access: Access) -> None:
    """Give a file that was private until now its final permissions."""
    if access.text == "":
        return
    given = _Descriptor("D:" if access.text is None else access.text[access.text.index("D:") :])
    kind = _PROTECTED if given.is_protected else _UNPROTECTED
    _succeeded(_set_named(str(path), _FILE, _DACL | kind, None, None, given.list, None))


# Renaming


def replace(source: Path, target: Path) -> None:
    """Rename a file, in place of another one if there is one."""
    _patiently(os.replace, source, target)


def rename_new(source: Path, target: Path) -> None:
    """Give a file its name, under which there must be none: raise `FileExistsError` otherwise. `source` may stay."""
    _patiently(os.rename, source, target)


def _patiently(rename: Callable[[Path, Path], None], source: Path, target: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            rename(source, target)
            return
        except PermissionError:
            if time.monotonic() >= until or target.is_dir():
                raise
            time.sleep(0.02)


def remove(path: Path) -> None:
    """Remove a temporary file or folder, if it is there; one that stays open is left to the next run."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            return
        except OSError as error:
            _close_files_of(error)
            if time.monotonic() >= until:
                return
            time.sleep(0.02)


def _close_files_of(error: BaseException | None) -> None:
    """Let go of what functions that have failed were reading: the errors on their way keep it open."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
    gc.collect()


def flush_to_disk(path: Path) -> None:
    """Flush a file to disk; the names in a folder cannot be flushed by themselves."""
    if path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR | os.O_BINARY | os.O_NOINHERIT)  # only what can be written to can be flushed
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Locks


def lock(descriptor: int) -> None:
    """Lock an open file; raise `BlockingIOError` if another one has locked it."""
    at = _Overlapped(offset=_LOCK_AT & 0xFFFFFFFF, offset_high=_LOCK_AT >> 32)
    if not _lock_file(msvcrt.get_osfhandle(descriptor), 3, 0, 1, 0, byref(at)):
        raise _busy(ctypes.get_last_error())


def hold(path: Path) -> int:
    """Lock a file or folder by its name; raise as `lock` does. It can be renamed and removed meanwhile."""
    os.lstat(path)
    return _lock_as(path.with_name(f"{_LOCKED}{path.name}"))


def lock_folder(folder: Path) -> int:
    """Lock the names in a folder; raise as `lock` does."""
    return _lock_as(folder / _LOCKED_FOLDER)


def _lock_as(path: Path) -> int:
    """Open a file that no other process can open, and that ends with its handle."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            # Hidden, temporary, removed when it is closed.
            handle = _opened(path, 0xC0000000, 0, 4, private=True, kind=0x04000102)
            return msvcrt.open_osfhandle(handle, os.O_RDWR | os.O_BINARY | os.O_NOINHERIT)
        except PermissionError as error:
            if error.winerror in _BUSY:
                raise _busy(error.winerror) from None
            # That of another process is just being removed; or this folder cannot be written to.
            if error.winerror != _DENIED or time.monotonic() >= until or not os.access(path.parent, os.W_OK):
                raise
            time.sleep(0.02)


def _busy(code: int) -> OSError:
    return BlockingIOError(errno.EAGAIN, "locked") if code in (*_BUSY, 997) else ctypes.WinError(code)


def _opened(path: Path, access: int, share: int, how: int, *, private: bool = False, kind: int = 0x80) -> int:
    attributes = byref(_private_file().attributes) if private else None
    handle = _create_file(str(path), access, share, attributes, how, kind, None)
    if handle not in (None, _INVALID):
        return int(handle)
    code = ctypes.get_last_error()
    if code in _NO_SUCH_NAME and path.parent.is_dir():
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), str(path))
    raise ctypes.WinError(code)


# Signals and processes


def terminate_this_process() -> None:
    """Ask this process to end, from any of its threads."""
    _thread.interrupt_main(TERMINATION)


def was_killed(code: int) -> bool:
    """Return whether a child process was killed for lack of memory: here an allocation fails instead."""
    return False


def yield_to_others() -> None:
    """Let other processes of the machine come first."""
    _set_priority(_this_process(), 0x4000)  # below normal


def run_measured(command: Sequence[str]) -> "tuple[subprocess.CompletedProcess[str], float]":
    """Run a command to its end; return it with its output, and the seconds of processor time that it took."""
    import subprocess

    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, encoding="utf-8", errors="replace", **pipes) as child:
        out, err = child.communicate()
        times = [ctypes.c_uint64() for _ in range(4)]
        _checked(_process_times(int(child._handle), *map(byref, times)))  # type: ignore[attr-defined]
    done = subprocess.CompletedProcess(command, child.returncode, out, err)
    return done, (times[2].value + times[3].value) / 1e7


# Pipes and terminals


def use_utf8() -> None:
    """Let the standard streams be UTF-8 with plain line ends, where they are not a terminal."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None and hasattr(stream, "reconfigure") and not stream.isatty():
            stream.reconfigure(encoding="utf-8", newline=None if stream is sys.stdin else "\n")


def is_reader_gone(error: OSError) -> bool:
    """Return whether a write failed because nobody reads the pipe any more."""
    return isinstance(error, BrokenPipeError) or error.errno == errno.EINVAL


class StoppableReader:
    """Reads an open file or pipe as its bytes come, until it is stopped by another thread."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._stopped = descriptor, threading.Event()
        self._handle = msvcrt.get_osfhandle(descriptor)
        self._waits = _file_type(self._handle) == _PIPE

    def read(self, size: int) -> bytes | None:
        """Return the next bytes, none at the end; None once it is stopped."""
        while self._waits and not self._stopped.is_set() and not self._is_ready():
            self._stopped.wait(_GLANCE)
        return None if self._stopped.is_set() else os.read(self._descriptor, size)

    def _is_ready(self) -> bool:
        available = _D()
        # If the writer is gone, this fails, and reading finds the end.
        return not _peek(self._handle, None, 0, None, byref(available), None) or available.value > 0

    def stop(self) -> None:
        """Let `read` return at once, now and in future."""
        self._stopped.set()

    def close(self) -> None:
        """Release what is used for waiting, not the file."""


class PatientWriter:
    """Writes to a pipe, by a thread that waits for its reader, and returns now and then while that takes nothing."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._content: bytes | None = None
        self._failure: OSError | None = None
        self._given, self._written = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None

    def write(self, content: memoryview, seconds: float) -> int:
        """Return how many bytes were written, 0 if there was no room within so many seconds; offer the rest next."""
        if self._content is None:
            self._content = bytes(content)
            self._written.clear()
            self._given.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._carry, daemon=True, name="shoal-sink")
            self._thread.start()
        if not self._written.wait(seconds):
            return 0
        n_bytes, self._content = len(self._content), None
        if self._failure is not None:
            raise self._failure
        return n_bytes

    def _carry(self) -> None:
        while self._given.wait():
            self._given.clear()
            rest = memoryview(self._content or b"")
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                self._failure = BrokenPipeError(errno.EPIPE, "Broken pipe") if is_reader_gone(error) else error
            self._written.set()
