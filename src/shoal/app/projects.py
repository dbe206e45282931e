"""Works: the pieces of work that a steward has begun, each with its history of jobs and its runs, on disk."""

import hashlib
import json
import os
import re
import secrets
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal.app.draft import Draft
from shoal.app.folders import Folders
from shoal.app.history import History, changes, summary
from shoal.app.runs import AppRun, Runs
from shoal.errors import FileError, ParameterError, ShoalError
from shoal.files import replacing, write_text
from shoal.files.locks import hold, release
from shoal.job.engine_facts import ENGINES
from shoal.passwords import scheme_of
from shoal.sources import format_of
from shoal.sources.source_stamps import Stamp
from shoal.system import system

_ID = r"[0-9a-f]{16}"
_MOST = 30  # pieces of work that are listed


class StaleError(ShoalError):
    """A form was filled in for a job that is no longer the current one."""


class Work:
    """One piece of work: a file, and the jobs made for it.

    Parameters
    ----------
    folder : Path
    places : Folders
    """

    def __init__(self, folder: Path, places: Folders) -> None:
        self.id = folder.name
        self.places = places
        self.history = History(folder / "jobs")
        self.runs = Runs(folder / "runs", places.root)
        self.shows_values = False
        self._held = hold(folder, "This piece of work is open in another shoal app. End that one first.")
        self._lock = threading.Lock()

    @property
    def draft(self) -> Draft:
        """The current job."""
        return self.history.draft

    @property
    def name(self) -> str:
        """Name of the file."""
        draft = self.draft
        return Path(draft.input.path).name if draft.input is not None else "no file yet"

    def change(self, at: int, make: Callable[[Draft], Draft], what: str = "") -> Draft:
        """Make a new job from the current one, unless another tab has made one since job `at`.

        Raises
        ------
        StaleError
            If the current job is not job `at`.
        """
        with self._lock:
            self.check_current(at)
            before = self.draft
            after = make(before)
            self.check_places(after)
            found = changes(before, after)
            if found:
                self.history.add(after, what or summary(found))
            return after

    def check_current(self, at: int) -> None:
        """Raise if the current job is not job `at`."""
        now = self.history.at
        if at == now:
            return
        try:
            found = summary(changes(self.history.draft_at(at), self.draft)) or "nothing but its number"
        except ShoalError:
            found = "unknown"
        raise StaleError(
            f"This work was changed in another tab or window since this page was opened: it showed job {at}, and the "
            f"current one is job {now} ({found}). Nothing was changed. Look at the current job below, and repeat what "
            "you wanted to change."
        )

    def check_places(self, draft: Draft) -> None:
        """Raise if a job names what the app does not use: a path outside the folder, or another engine."""
        if ENGINES[draft.chosen_engine].in_blocks:
            raise ParameterError(
                f"The app makes releases in memory, and this job asks for the engine {draft.chosen_engine!r}. Carry it "
                "out with `shoal run`, or remove the keys engine and memory from it."
            )
        files = [part.path for part in (draft.input, draft.output) if part is not None]
        for path in files:
            if scheme_of(path) is not None or path == "-":
                raise FileError(
                    "The app reads and writes files below its folder. For a database or standard input, use the "
                    "command line: shoal anonymize."
                )
            format_of(path)
        beside = [settings.hierarchy for settings in draft.columns.values()]
        beside += [draft.input.catalog] if draft.input is not None else []
        beside += draft.after
        if draft.output is not None:
            from shoal.output.destination import Destination  # not before: the server starts without

            beside += map(str, Destination.of(draft.output).paths)  # a link may stand where a manifest goes
            beside.append(draft.output.releases)
        for path in [*files, *filter(None, beside)]:
            self.places.inside(path)

    @property
    def input(self) -> Path | None:
        """The file to read, if one is chosen."""
        draft = self.draft
        return None if draft.input is None else self.places.inside(draft.input.path)

    def start(self, verb: str, draft: Draft, key: str, **options: Any) -> int:
        """Start a run for a draft."""
        self.check_places(draft)
        return self.runs.start(verb, key, self.history.at, draft.to_toml(), **options)

    def inspection(self, draft: Draft, begin: bool = True) -> AppRun | None:
        """Return the run that reads the file as the job says; begin it if there is none."""
        if draft.input is None:
            return None
        key = key_of(draft.content.get("input"))
        found = self.runs.latest("inspect", key)
        if found is None and begin:
            return self.runs.run(self.start("inspect", draft, key))
        return found

    def facts(self, draft: Draft, begin: bool = True) -> dict[str, Any]:
        """Return what is known of the file as the job reads it; nothing until it has been read."""
        run = self.inspection(draft, begin)
        return {} if run is None else run.result

    def known(self, draft: Draft) -> dict[str, Any]:
        """Return what is known of the file: as the job reads it or, until it has been read so, as it was read last."""
        found = self.facts(draft)
        return found or next((run.result for run in self.runs.all_of("inspect")[::-1] if run.outcome == "done"), {})

    def columns(self, draft: Draft) -> list[dict[str, Any]]:
        """Return what is known of each column of the file; raise until it has been read."""
        found: list[dict[str, Any]] | None = self.known(draft).get("columns")
        if found is None:
            raise ParameterError("The file is still being read. Wait for it, and try again.")
        return found

    def check(self, draft: Draft) -> AppRun | None:
        """Return the run that checks whether the job can be carried out; begin it if there is none."""
        if draft.input is None or not draft.roles.quasi_identifiers or self.has_changed(draft):
            return None
        content = {name: value for name, value in draft.content.items() if name not in ("output", "seed")}
        key = key_of([content, self._stamp(draft)])
        return self.runs.latest("check", key) or self.runs.run(self.start("check", draft, key))

    def read_again(self, draft: Draft) -> None:
        """Read the file again."""
        self.start("inspect", draft, key_of(draft.content.get("input")))

    def has_changed(self, draft: Draft) -> bool:
        """Return whether the file has changed on disk since it was read, or is gone."""
        found = self.facts(draft, begin=False)
        return bool(found) and found["stamp"] != self._stamp(draft)

    def _stamp(self, draft: Draft) -> list[int] | None:
        assert draft.input is not None
        try:
            return list(Stamp.of(self.places.inside(draft.input.path)))
        except OSError:
            return None

    def close(self) -> None:
        """End the runs, and remove those that hold values for the screen."""
        self.runs.close()
        for verb in ("preview", "records"):
            self.runs.forget(verb)
        release(self._held)


class Works:
    """All pieces of work below one folder.

    Parameters
    ----------
    places : Folders
    state : Path
        The folder in which the app keeps its own files.
    """

    def __init__(self, places: Folders, state: Path) -> None:
        self.places = places
        self._folder = state / "works" / hashlib.sha256(os.fsencode(places.root)).hexdigest()[:16]
        system.make_private_folder(self._folder, parents=True, exist_ok=True)
        self._open: dict[str, Work] = {}
        self._lock = threading.Lock()

    def begin(self, draft: Draft, what: str) -> Work:
        """Begin a piece of work with a job."""
        folder = self._folder / secrets.token_hex(8)
        system.make_private_folder(folder)
        with replacing(folder / "folder.json", private=True) as temporary:
            write_text(temporary, json.dumps({"folder": str(self.places.root)}))
        work = self[folder.name]
        try:
            work.check_places(draft)
            work.history.add(draft, what)
        except ShoalError:
            self.remove(work)
            raise
        return work

    def __getitem__(self, work_id: str) -> Work:
        with self._lock:
            if work_id not in self._open:
                folder = self._folder / work_id
                if not re.fullmatch(_ID, work_id) or not folder.is_dir():
                    raise FileError("There is no such piece of work. Choose one on the first page.")
                self._open[work_id] = Work(folder, self.places)
            return self._open[work_id]

    def listed(self) -> list[tuple[str, str, str]]:
        """Return id, name and state of each piece of work, the newest first."""
        jobs = [found for found in self._folder.glob("*/jobs") if re.fullmatch(_ID, found.parent.name)]
        newest = sorted(jobs, key=lambda path: -path.stat().st_mtime_ns)[:_MOST]
        return [(found.parent.name, *self._told(found.parent.name)) for found in newest]

    def newest_with(self, path: str) -> Work | None:
        """Return the newest piece of work that reads a file, if there is one that can be opened."""
        for work_id, *_ in self.listed():
            try:
                draft = self[work_id].draft
            except ShoalError:
                continue
            if draft.input is not None and draft.input.path == path:
                return self[work_id]
        return None

    def _told(self, work_id: str) -> tuple[str, str]:
        try:
            work = self[work_id]
            draft = work.draft
        except ParameterError:
            return "a job that this version cannot read", "written by a newer version of shoal, or damaged"
        except ShoalError as error:
            return "a piece of work that cannot be opened", str(error)
        release = work.runs.latest("release")
        told = f"job {work.history.at}" + (f", k = {draft.k}" if draft.k else "")
        return work.name, told + ("" if release is None else f", release {release.outcome}")

    def remove(self, work: Work) -> None:
        """Remove a piece of work from the disk."""
        with self._lock:
            self._open.pop(work.id, None)
        work.close()
        shutil.rmtree(self._folder / work.id, ignore_errors=True)

    def close(self) -> None:
        """End all runs."""
        while self._open:
            self._open.popitem()[1].close()


def state_folder() -> Path:
    """Return the folder in which the app keeps jobs and uploads: that of the user's other state."""
    return system.state_home() / "shoal" / "app"


def key_of(content: Any) -> str:
    """Return a short text that is the same for the same plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:32]
