"""Whatever happens to the files in the scratch folder, the release is the same bytes or refused."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from damages import MOMENTS, damage, files_of, flipped, missing, truncated, watched, written

from block_tables import people
from shoal.engines.blocks import driver
from shoal.engines.disk import disk_records, engine
from shoal.engines.disk.checked_files import DamagedError, keep, open_checked
from shoal.errors import FileError
from shoal.system import system


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """Return a folder with a table, what is in the scratch folder at several moments, that folder, and the release."""
    folder = tmp_path_factory.mktemp("damaged")
    pq.write_table(people(600), folder / "people.parquet")
    return folder, list(MOMENTS), *watched(folder)


def copy_privately(folder, scratch):
    system.make_private_folder(scratch)
    shutil.copytree(folder, scratch, dirs_exist_ok=True)


@pytest.mark.parametrize("seed", range(6))
def test_a_release_from_damaged_scratch_is_the_same_bytes(left, seed):
    folder, moments, scratch, release = left
    copy_privately(folder / moments[seed % len(moments)], scratch)
    damage(scratch, np.random.default_rng(seed), n_files=1 + seed // 2)

    assert written(folder) == release
    assert not list(folder.glob(".*"))


def test_what_is_damaged_is_made_again_and_nothing_else(left, monkeypatch):
    folder, _, scratch, release = left
    copy_privately(folder / "publishing", scratch)
    truncated(scratch / "border-round-1" / "block-1.piece", np.random.default_rng(0), [])
    calls, original = [], driver.refine_cells
    monkeypatch.setattr(driver, "solve", None)  # its pieces are sound

    def counted(records, blueprint, number):
        calls.append(number >> 20)
        return original(records, blueprint, number)

    monkeypatch.setattr(driver, "refine_cells", counted)

    assert written(folder) == release
    assert calls.count(1) == 1


def test_pieces_that_are_damaged_while_a_release_is_written_are_made_again(left, monkeypatch):
    folder, *_, release = left
    original = disk_records.DiskRecords.write

    def damaging(self, *arguments):
        for path in files_of(self._scratch / "publish"):
            flipped(path, np.random.default_rng(1), [])
        return original(self, *arguments)

    monkeypatch.setattr(disk_records.DiskRecords, "write", damaging)

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
    original, scratch = disk_records.recount_batches, []

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
    monkeypatch.setattr(disk_records, "recount_batches", damaging)
    if "*" in pattern:
        monkeypatch.setattr(engine.Gathering, "__exit__", gathered)
    with pytest.raises(DamagedError):
        written(folder)

    assert not list(folder.glob("*release*"))


@pytest.mark.parametrize("how", [flipped, truncated, missing])
@pytest.mark.parametrize("left_of_it", ["fit.done", "solve/block-0.piece"])
def test_a_drawn_seed_that_is_lost_is_refused_and_no_other_taken_in_its_place(tmp_path, how, left_of_it):
    (tmp_path / "scratch").mkdir()
    first = disk_records._kept_seed(tmp_path / "scratch")
    assert disk_records._kept_seed(tmp_path / "scratch") == first

    (tmp_path / "scratch" / "solve").mkdir()
    keep(tmp_path / "scratch" / left_of_it, None)
    how(tmp_path / "scratch" / "drawn.seed", np.random.default_rng(4), [])
    with pytest.raises(DamagedError, match=r"drawn.seed' is not what was written"):
        disk_records._kept_seed(tmp_path / "scratch")


def test_a_file_that_took_the_place_of_another_is_noticed(tmp_path):
    for name in "ab":
        keep(tmp_path / name, "the same note")
    Path(tmp_path / "a").replace(tmp_path / "b")

    with pytest.raises(DamagedError):
        open_checked(tmp_path / "b")


def test_a_complete_stage_is_on_the_disk_before_its_note_is(left, monkeypatch):
    folder, *_, release = left
    synced, stages, fsync, keep_ = set(), [], os.fsync, engine.keep

    def flushed(descriptor):
        fsync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)

    def noted(path, note):
        pieces = path.with_suffix("")
        assert {file.stat().st_ino for file in [pieces, *pieces.iterdir()]} <= synced
        keep_(path, note)
        assert {path.stat().st_ino, path.parent.stat().st_ino} <= synced
        stages.append(pieces.name)

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(engine, "keep", noted)

    assert written(folder) == release
    assert stages == ["fit", "assign", "solve", "border-round-1", "publish"]
