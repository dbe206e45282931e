"""Runs: what takes time runs in a child process, which writes its progress and its result to a file, line by line.

The file is the state: a page reads it, an event stream follows it, and after a crash of the server it says how far the
run was. The child ends with its standard input, so it outlives the server by a moment at most. It holds its file while
it lives, and notes what it is about to write: so a server that is started again knows whether it is still there, and
looks at the files.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from shoal.errors import FileError
from shoal.files import open_private
from shoal.files.locks import hold, release
from shoal.sources.source_stamps import Stamp
from shoal.system import system

Outcome = Literal["running", "done", "refused", "failed", "cancelled", "interrupted"]

GRACE = 0.6
"""Seconds that a cancelled run has to remove its temporary files."""

_ENDS: tuple[Outcome, ...] = ("done", "refused", "failed", "cancelled")


@dataclass(frozen=True)
class AppRun:
    """A run, as its file describes it.

    Attributes
    ----------
    number : int
    verb : str
        What is done: one of `shoal.app.child_process.VERBS`.
    key : str
        What it was started for; the same key gives the same result.
    job : int
        Number of the job in the history.
    outcome : str
        "interrupted" if the server ended before the run did.
    stage, share : str and float or None
        How far it is, or was.
    parts : list
        What has been found so far.
    result : dict
        What was found, once it is done.
    message : str
        Why it was refused or failed.
    findings : list
        What has to be answered first, if it was refused for that.
    options : dict
        What was asked for beside the job.
    written : list of str
        The files that it has written without getting to its end.
    """

    number: int
    verb: str
    key: str
    job: int
    outcome: Outcome = "running"
    stage: str = ""
    share: float | None = None
    parts: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] = field(default_factory=dict)
    message: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)

    @property
    def told(self) -> dict[str, Any]:
        """What has been found so far, by name."""
        return {name: value for part in self.parts for name, value in part.items()}

    @property
    def running(self) -> bool:
        """Whether it is still under way."""
        return self.outcome == "running"


class Runs:
    """The runs of a piece of work.

    Parameters
    ----------
    folder : Path
        Created if it does not exist, readable by its owner alone.
    root : Path
        Folder in which the child works, so that paths of a job are relative to it.
    """

    def __init__(self, folder: Path, root: Path) -> None:
        self._folder, self._root = folder, root
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._ended: dict[int, AppRun] = {}
        self._heads: dict[int, dict[str, Any]] = {}
        self._spare: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()
        system.make_private_folder(folder, parents=True, exist_ok=True)

    def start(self, verb: str, key: str, job: int, toml: str, **options: Any) -> int:
        """Start a run in a child process; a run of the same verb that is under way is cancelled."""
        with self._lock:
            for number in [number for number in list(self._children) if self.run(number).verb == verb]:
                self.cancel(number)
            number = max(self._numbers(), default=0) + 1
            head = {"verb": verb, "key": key, "job": job, "options": options}
            asked = {"verb": verb, "job": toml, "options": options, "file": str(self._path(number))}
            try:
                with open_private(self._path(number), "xb") as file:
                    file.write(json.dumps(head).encode() + b"\n")
                child = self._spare if self._spare is not None and self._spare.poll() is None else self._child()
                self._spare = None
                self._children[number] = child
                assert child.stdin is not None
                with suppress(BrokenPipeError):
                    child.stdin.write(json.dumps(asked).encode() + b"\n")
                    child.stdin.flush()
                self._spare = self._child()
            except OSError as error:
                raise FileError(f"The work cannot be started: {os.strerror(error.errno or 0).lower()}.") from None
            return number

    def _child(self) -> "subprocess.Popen[bytes]":
        """Start a child that waits for its work; the next run has one that is ready."""
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "shoal.app.child_process"],  # -P: not a csv.py that lies beside the data
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # a traceback may show values of the table
            cwd=self._root,
            **system.APART,  # Ctrl-C is for the server, which then ends its children
        )

    def run(self, number: int) -> AppRun:
        """Return a run as it stands."""
        with self._lock:
            if number in self._ended:
                return self._ended[number]
            child = self._children.get(number)
            ended = child is not None and child.poll() is not None
            if ended:
                self._forget(number)
            found = self._read(number)
            if child is not None and not ended:
                return found
            if found.running and child is None:
                if _is_held(self._path(number)):  # by a child of a server that was killed, which is about to end
                    return found
                found = self._read(number)  # it may have come to its end meanwhile
                found = _replace(found, outcome="interrupted") if found.running else found
            elif child is not None and found.running:
                self._append(number, {"failed": _crash(child.returncode)})
                found = self._read(number)
            if found.outcome != "done":
                found = _replace(found, written=self._written(number))
            self._ended[number] = found
            return found

    def _written(self, number: int) -> list[str]:
        """Return the files that a run was about to write and that are no longer what they were before."""
        with suppress(OSError):
            entries = map(_parsed, self._path(number).read_bytes().splitlines())
            before: dict[str, Any] = next((entry["writes"] for entry in entries if "writes" in entry), {})
            return [path for path, stamp in before.items() if stamp_of(self._root / path) not in (None, stamp)]
        return []

    def latest(self, verb: str, key: str | None = None) -> AppRun | None:
        """Return the newest run of a verb, for a key or for any."""
        for number in sorted(self._numbers(), reverse=True):
            head = self._head(number)
            if head.get("verb") == verb and key in (None, head.get("key")):
                return self.run(number)
        return None

    def all_of(self, verb: str) -> list[AppRun]:
        """Return all runs of a verb, the oldest first."""
        return [self.run(number) for number in sorted(self._numbers()) if self._head(number).get("verb") == verb]

    def cancel(self, number: int) -> None:
        """End a run within a second; it removes what it has begun to write."""
        with self._lock:
            child = self._children.get(number)
            if child is None:
                return
            _end(child)
            self._forget(number)
            if self._read(number).running:
                self._append(number, {"cancelled": True})

    def forget(self, verb: str) -> None:
        """Remove the runs of a verb, such as those that hold values of the table."""
        with self._lock:
            for found in self.all_of(verb):
                self.cancel(found.number)
                self._path(found.number).unlink(missing_ok=True)
                self._ended.pop(found.number, None)
                self._heads.pop(found.number, None)

    def close(self) -> None:
        """End all children; their runs are shown as interrupted."""
        with self._lock:
            for number, child in list(self._children.items()):
                _end(child)
                self._forget(number)
            self.drop_spare()

    def drop_spare(self) -> None:
        """End the child that waits for the next run."""
        if self._spare is not None:
            self._spare.kill()
            _reap(self._spare)
            self._spare = None

    def _forget(self, number: int) -> None:
        _reap(self._children.pop(number))

    def _numbers(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("[0-9]*.jsonl")]

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06}.jsonl"

    def _append(self, number: int, entry: Mapping[str, Any]) -> None:
        with suppress(OSError), self._path(number).open("ab") as file:
            file.write(b"\n" + json.dumps(entry).encode() + b"\n")  # a line of a killed child may be cut off

    def _head(self, number: int) -> dict[str, Any]:
        """Return what a run was started for, without reading what it found."""
        if number not in self._heads:
            with suppress(OSError), self._path(number).open("rb") as file:
                self._heads[number] = _parsed(file.readline())
        return self._heads.get(number, {})

    def _read(self, number: int) -> AppRun:
        try:
            lines = self._path(number).read_bytes().splitlines()
        except OSError:
            raise FileError(f"There is no run {number}.") from None
        head = _parsed(lines[0]) if lines else {}
        found = AppRun(
            number,
            str(head.get("verb", "")),
            str(head.get("key", "")),
            int(head.get("job", 0)),
            options=head.get("options", {}),
        )
        entries = [entry for line in lines[1:] if (entry := _parsed(line))]
        end = next((name for name in _ENDS if entries and name in entries[-1]), None)
        stages = [entry for entry in entries if "stage" in entry]
        return _replace(
            found,
            outcome=end or "running",
            stage=stages[-1]["stage"] if stages else "starting",
            share=stages[-1]["share"] if stages else None,
            parts=[entry["part"] for entry in entries if "part" in entry],
            result=entries[-1]["done"] if end == "done" else {},
            findings=entries[-1].get("findings", []) if end == "refused" else [],
            message=entries[-1][end] if end in ("refused", "failed") else "",
        )


def stamp_of(path: Path) -> list[int] | None:
    """Return the stamp of a file as JSON has it; None if there is no such file."""
    try:
        return list(Stamp.of(path))
    except OSError:
        return None


def _is_held(path: Path) -> bool:
    """Return whether a process holds a file."""
    try:
        release(hold(path, "held"))
    except FileError:
        return True
    return False


def _end(child: "subprocess.Popen[bytes]") -> None:
    """End a child, which ends with its standard input; it has a moment to remove its temporary files."""
    _close_input(child)
    try:
        child.wait(GRACE)
    except subprocess.TimeoutExpired:
        child.kill()


def _reap(child: "subprocess.Popen[bytes]") -> None:
    child.wait()
    _close_input(child)


def _close_input(child: "subprocess.Popen[bytes]") -> None:
    if child.stdin is not None:
        with suppress(BrokenPipeError):
            child.stdin.close()


def _replace(run: AppRun, **changes: Any) -> AppRun:
    return AppRun(**{**vars(run), **changes})


def _parsed(line: bytes) -> dict[str, Any]:
    """Return an entry; an empty one for a line that is cut off."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _crash(code: int) -> str:
    """Describe the end of a child that wrote no result."""
    if system.was_killed(code):
        return (
            "The work was ended by the system, probably because there was not enough memory. "
            "Close other programs, or use fewer columns, and try again."
        )
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return f"The work ended unexpectedly ({how}). Nothing of this job is lost. Try again."
