"""Damage to what lies in the scratch folder of a release, at several moments of its making."""

import shutil
import warnings

import numpy as np
import pytest

from block_tables import ROLES, job
from shoal.engines.blocks import driver
from shoal.engines.disk import disk_release
from shoal.engines.disk.scratch import scratch_of
from shoal.release import run
from shoal.sources.batches import open_batches

MOMENTS = {
    "refining": (driver, "refine_cells", 1),
    "publishing": (driver, "publish", 3),
    "writing": (disk_release.DiskRelease, "write_table", 1),
}
"""What is called at a moment, and for which time."""


def asked(folder, seed=7):
    paths = {"input": {"path": str(folder / "people.parquet")}, "output": {"path": str(folder / "release.parquet")}}
    return job(k=3, memory="1GB", seed=seed, **paths, roles={**ROLES, "subject": "name", "identifiers": ()})


def written(folder, seed=7):
    """Make the release and return its bytes, and remove it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(asked(folder, seed), force=True, threads=1)  # nothing is written while it is copied
    content = (folder / "release.parquet").read_bytes()
    for path in folder.glob("release*"):
        path.unlink()
    return content


def watched(folder, seed=7):
    """Make the release of a folder; return its scratch folder, of which each moment is copied, and its bytes."""
    scratch = scratch_of(asked(folder, seed), open_batches(folder / "people.parquet"), folder / "release.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)
        for moment, (place, name, number) in MOMENTS.items():
            patch.setattr(place, name, copying(getattr(place, name), number, scratch, folder / moment))
        return scratch, written(folder, seed)


def copying(original, number, scratch, target):
    """Return a function that copies the scratch folder when it is called for the time of this number."""
    calls = []

    def called(*arguments):
        calls.append(arguments)
        if len(calls) == number:
            shutil.copytree(scratch, target)
        return original(*arguments)

    return called


def files_of(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def flipped(path, rng, _):
    content = bytearray(path.read_bytes())
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    path.write_bytes(content)


def truncated(path, rng, _):
    path.write_bytes(path.read_bytes()[: rng.integers(path.stat().st_size)])


def zeroed(path, rng, _):
    content = bytearray(path.read_bytes())
    start = int(rng.integers(len(content)))
    content[start : start + 4096] = bytes(len(content[start : start + 4096]))
    path.write_bytes(content)


def missing(path, rng, _):
    path.unlink()


def swapped(path, rng, files):
    other = files[rng.integers(len(files))]
    one, two = path.read_bytes(), other.read_bytes()
    path.write_bytes(two)
    other.write_bytes(one)


def made_a_folder(path, rng, _):
    path.unlink()
    path.mkdir()


DAMAGES = (flipped, truncated, zeroed, missing, swapped, made_a_folder)


def damage(folder, rng, n_files):
    """Damage files at random, each in a way of its own."""
    files = files_of(folder)
    for path in rng.choice(np.array(files, dtype=object), size=min(n_files, len(files)), replace=False):
        if path.is_file():
            DAMAGES[rng.integers(len(DAMAGES))](path, rng, [file for file in files if file.is_file()])
