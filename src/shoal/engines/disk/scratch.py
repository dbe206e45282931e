"""Scratch: a private folder beside the output that holds the records between stages.

Its name is derived from the job and its input, so that the same job finds what a killed process left. The process that
uses it holds a lock; any other start in the same place removes what no live process holds.
"""

import errno
import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.distribution import versions
from shoal.errors import FileError
from shoal.files import temporary_path
from shoal.files.locks import hold, locked_folders, release, sweep
from shoal.job import Job
from shoal.sources.batches import Batches
from shoal.system import system


def scratch_of(job: Job, source: Batches, target: Path | None) -> Path:
    """Return the folder for a job; without an output it is among the temporary files of the system."""
    place = target or temporary_path("disk")
    asked = job.model_copy(update={"memory": None, "output": None, "input": None}).to_dict()
    files = [[str(path.resolve()), *stamp] for path, stamp in zip(source.files.paths, source.files.stamps, strict=True)]
    read = [files or source.sha256, source.receipt.given.given]
    text = json.dumps([asked, read, versions("numpy", "pyarrow")], sort_keys=True, default=str)
    return place.with_name(f".{hashlib.sha256(text.encode()).hexdigest()[:12]}.{place.name}")


@contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """Hold the scratch folder while a release is made, with what a killed process left in it; remove it at the end.

    Raises
    ------
    FileError
        If another process makes the same release, others can write to the folder, or the disk is full.
    """
    target = folder.with_name(folder.name[len(".000000000000.") :])
    with locked_folders([folder.parent]):
        _make(folder)
        lock = hold(folder, f"Another process makes the same release in {str(folder)!r}. Wait until it ends.")
        sweep(target)
    try:
        yield folder
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise FileError(
                f"A file in the scratch folder {str(folder)!r} would become larger than the system allows. Raise the "
                "limit (ulimit -f), or start shoal without it."
            ) from None
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise _full(folder, None) from None
    finally:
        system.remove(folder)
        release(lock)


def _make(folder: Path) -> None:
    """Make the folder if need be; what others may have put there is neither continued nor overwritten."""
    with suppress(FileExistsError):
        system.make_private_folder(folder)
    if not (system.is_private(folder) and folder.is_dir()):
        raise FileError(
            f"The scratch folder {str(folder)!r} exists, but it is not a folder that only you can enter, so that its "
            "content may come from others. Remove it, or write to another folder."
        )


def check_space(folder: Path, needed: int) -> None:
    """Raise if the disk has fewer bytes left than are needed."""
    held = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if shutil.disk_usage(folder).free + held < needed:
        raise _full(folder, needed)


def _full(folder: Path, needed: int | None) -> FileError:
    free = shutil.disk_usage(folder).free
    need = "" if needed is None else f" about {needed / 1e9:.1f} GB are needed, and"
    return FileError(
        f"The disk is too full for the scratch folder in {str(folder.parent)!r}:{need} {free / 1e9:.1f} GB are free. "
        "Nothing was written. Free some space, or choose another disk: the scratch folder is beside the output, or in "
        "TMPDIR if no output is known."
    )
