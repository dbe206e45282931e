"""Whatever happens to the files in the scratch folder, the release is the same bytes or refused."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from block_tables import ROLES, job, people
from shoal.engines.disk import disk_release, engine
from shoal.engines.disk.checked_files import DamagedError, keep, open_checked
from shoal.engines.disk.scratch import scratch_of
from shoal.errors import FileError
from shoal.release import run
from shoal.sources.batches import open_batches


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


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Return a folder with a table, what is in the scratch folder at several moments, that folder, and the release."""
    folder = tmp_path_factory.mktemp("damaged")
    pq.write_table(people(600), folder / "people.parquet")
    scratch = scratch_of(asked(folder), open_batches(folder / "people.parquet"), folder / "release.parquet")
    moments = {"refining": (engine, "refine_cells", 1), "publishing": (engine, "publish", 3)}
    moments["writing"] = (disk_release.DiskRelease, "write_table", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)
        for moment, (place, name, number) in moments.items():
            patch.setattr(place, name, copying(getattr(place, name), number, scratch, folder / moment))
        return folder, list(moments), scratch, written(folder)


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


@pytest.mark.parametrize("seed", range(6))
def test_a_release_from_damaged_scratch_is_the_same_bytes(left, seed):
    folder, moments, scratch, release = left
    shutil.copytree(folder / moments[seed % len(moments)], scratch)
    damage(scratch, np.random.default_rng(seed), n_files=1 + seed // 2)

    assert written(folder) == release
    assert not list(folder.glob(".*"))


def test_what_is_damaged_is_made_again_and_nothing_else(left, monkeypatch):
    folder, _, scratch, release = left
    shutil.copytree(folder / "publishing", scratch)
    truncated(scratch / "border-1" / "block-1.piece", np.random.default_rng(0), [])
    calls, original = [], engine.refine_cells
    monkeypatch.setattr(engine, "solve", None)  # its pieces are sound

    def counted(records, blueprint, number, threads):
        calls.append(number >> 20)
        return original(records, blueprint, number, threads)

    monkeypatch.setattr(engine, "refine_cells", counted)

    assert written(folder) == release
    assert calls.count(list(engine.STAGES).index("border 1")) == 1


def test_pieces_that_are_damaged_while_a_release_is_written_are_made_again(left, monkeypatch):
    folder, *_, release = left
    original = disk_release.DiskRelease.write_table

    def damaging(self, *arguments):
        for path in files_of(self._scratch / "published"):
            flipped(path, np.random.default_rng(1), [])
        return original(self, *arguments)

    monkeypatch.setattr(disk_release.DiskRelease, "write_table", damaging)

    assert written(folder) == release


def test_a_disk_that_damages_a_piece_each_time_is_refused_with_what_to_do(left, monkeypatch):
    folder, *_ = left
    original = engine.Spill.add

    def damaging(self, name, *arguments):
        original(self, name, *arguments)
        if (self.folder.name, name) == ("solve", "block-1"):
            flipped(self.folder / "block-1.piece", np.random.default_rng(2), [])

    monkeypatch.setattr(engine.Spill, "add", damaging)
    with pytest.raises(FileError, match=r"block-1.piece' is not what was written.*Start again, which begins afresh"):
        written(folder)

    assert not list(folder.glob(".*"))


@pytest.mark.parametrize("pattern", ["persons.piece", "recount-*/part-*.piece"])
def test_damage_to_what_is_counted_of_the_written_file_is_refused(left, monkeypatch, pattern):
    folder, *_ = left
    original, scratch = disk_release.recount_batches, []

    def damaging(batches, n_records, question, place, most):
        scratch.append(place.parent)
        if pattern == "persons.piece":
            flipped(place.parent / pattern, np.random.default_rng(3), [])
        return original(batches, n_records, question, place, most)

    def gathered(self, failure, *rest):
        leave(self, failure, *rest)
        for path in scratch[0].glob(pattern) if scratch else ():
            flipped(path, np.random.default_rng(3), [])

    leave = engine.Gathering.__exit__
    monkeypatch.setattr(disk_release, "recount_batches", damaging)
    if "*" in pattern:
        monkeypatch.setattr(engine.Gathering, "__exit__", gathered)
    with pytest.raises(DamagedError):
        written(folder)

    assert not list(folder.glob("*release*"))


@pytest.mark.parametrize("how", [flipped, truncated, missing])
def test_a_drawn_seed_that_is_lost_is_refused_and_no_other_taken_in_its_place(tmp_path, how):
    (tmp_path / "scratch").mkdir()
    first = disk_release._kept_seed(tmp_path / "scratch")
    assert disk_release._kept_seed(tmp_path / "scratch") == first

    keep(tmp_path / "scratch" / "fit.done", None)
    how(tmp_path / "scratch" / "drawn.seed", np.random.default_rng(4), [])
    with pytest.raises(DamagedError, match=r"drawn.seed' is not what was written"):
        disk_release._kept_seed(tmp_path / "scratch")


def test_a_file_that_took_the_place_of_another_is_noticed(tmp_path):
    for name in "ab":
        keep(tmp_path / name, "the same note")
    Path(tmp_path / "a").rename(tmp_path / "b")

    with pytest.raises(DamagedError):
        open_checked(tmp_path / "b")
