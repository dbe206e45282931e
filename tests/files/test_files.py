import errno
import json
import os
import subprocess
import sys
import threading

import pytest

from shoal import FileError
from shoal.files import replacing, replacing_all, sha256
from shoal.sources import read
from shoal.system import system


def names(folder):
    """Return what is in a folder; on Windows, a lock is a file beside what it locks."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith((".000000000000.", ".shoal.lock")))


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_a_file_appears_under_its_name_when_the_block_ends(tmp_path):
    with replacing(tmp_path / "a.csv") as temporary:
        temporary.write_text("done")

        assert names(tmp_path) == [temporary.name]
        assert temporary.name.startswith(".")
        assert temporary.suffix == ".csv"

    assert names(tmp_path) == ["a.csv"]
    assert (tmp_path / "a.csv").read_text() == "done"


def test_only_the_owner_can_read_a_file_in_the_making_and_the_umask_decides_afterwards(tmp_path, umask):
    with replacing(tmp_path / "a") as temporary:
        during = temporary.stat().st_mode & 0o777

    assert during == 0o600
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~umask


def test_replacing_a_closed_file_does_not_open_it(tmp_path):
    (tmp_path / "a").touch(mode=0o600)
    with replacing(tmp_path / "a", force=True) as temporary:
        temporary.write_text("new")

    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_block_that_fails_leaves_the_folder_as_it_was(tmp_path, failure):
    (tmp_path / "old").write_text("old")

    def write_half():
        with replacing_all([tmp_path / "old", tmp_path / "new"], force=True) as (old, new):
            old.write_text("half")
            new.write_text("half")
            raise failure

    with pytest.raises(failure):
        write_half()

    assert names(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_an_existing_file_is_replaced_only_when_asked(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(FileError, match="already exists"), replacing(path):
        pytest.fail("the block must not run")
    with replacing(path, force=True) as temporary:
        temporary.write_text("new")

    assert path.read_text() == "new"


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    with pytest.raises(FileError, match="already exists"), replacing(tmp_path / "a"):
        (tmp_path / "a").write_text("theirs")

    assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "theirs"


def test_a_set_of_files_is_complete_before_the_first_gets_its_name(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    with replacing_all(paths) as temporaries:
        for temporary in temporaries:
            temporary.write_text("x")

        assert not any(path.exists() for path in paths)

    assert names(tmp_path) == ["a", "b", "c"]


def test_a_set_is_taken_back_when_one_name_is_taken_meanwhile(tmp_path):
    paths = [tmp_path / name for name in "abc"]
    with pytest.raises(FileError, match="already exists"), replacing_all(paths):
        paths[2].write_text("theirs")

    assert names(tmp_path) == ["c"]


def test_one_path_twice_in_a_set_is_refused(tmp_path):
    with pytest.raises(FileError, match="the same"), replacing_all([tmp_path / "a", tmp_path / "." / "a"]):
        pytest.fail("the block must not run")


def test_a_missing_folder_and_a_folder_as_target_are_refused(tmp_path):
    with pytest.raises(FileError, match="folder does not exist"), replacing(tmp_path / "none" / "a"):
        pytest.fail("the block must not run")
    with pytest.raises(FileError, match="not a regular file"), replacing(tmp_path, force=True):
        pytest.fail("the block must not run")


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(FileError, match="not permitted"), replacing(tmp_path / "a"):
        pytest.fail("the block must not run")


def test_a_link_stays_and_the_file_it_leads_to_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with replacing(tmp_path / "link", force=True) as temporary:
        temporary.write_text("new")

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_link_that_leads_nowhere_is_not_overwritten(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    with pytest.raises(FileError, match="already exists"), replacing(tmp_path / "link"):
        pytest.fail("the block must not run")


def test_running_out_of_room_names_the_file_and_leaves_nothing(tmp_path):
    # A limit on the size of files is the shortage that needs no full disk.
    code = f"""
import resource
from pathlib import Path
from shoal.files import replacing
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
with replacing(Path({str(tmp_path)!r}) / "big.csv") as temporary:
    temporary.write_bytes(bytes(5000))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert ran.returncode == 1
    assert "FileError" in ran.stderr.splitlines()[-1]
    assert "big.csv' cannot be written: the file would become larger" in ran.stderr.splitlines()[-1]
    assert names(tmp_path) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_is_told_as_such_and_an_error_of_the_block_is_left_alone(tmp_path):
    with (
        pytest.raises(FileError, match=r"a' cannot be written: the disk is full\. Make room"),
        replacing(tmp_path / "a"),
        open("/dev/full", "wb") as full,
    ):
        full.write(bytes(100_000))
    with pytest.raises(OSError, match="reading") as caught, replacing(tmp_path / "a"):
        raise OSError(errno.ENOENT, "reading")

    assert not isinstance(caught.value, FileError)
    assert names(tmp_path) == []


def test_the_sha256_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")

    assert sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    with pytest.raises(FileError, match="no such file"):
        sha256(tmp_path / "b")


def test_of_two_sets_written_at_once_one_stays_whole(tmp_path, monkeypatch):
    paths = [tmp_path / "table", tmp_path / "manifest"]
    replace = os.replace

    def write(text):
        with replacing_all(paths, force=True) as temporaries:
            for temporary in temporaries:
                temporary.write_text(text)

    second = threading.Thread(target=write, args=["second"])

    def replace_and_let_the_second_run(*names):
        replace(*names)
        monkeypatch.setattr(os, "replace", replace)
        second.start()
        second.join(0.3)  # in vain, if the first one has the lock

    monkeypatch.setattr(os, "replace", replace_and_let_the_second_run)
    write("first")
    second.join()

    assert [path.read_text() for path in paths] == ["second", "second"]


def test_what_was_replaced_returns_when_a_later_rename_fails(tmp_path):
    paths = [tmp_path / "table", tmp_path / "manifest"]
    for path in paths:
        path.write_text("old")

    def write():
        with replacing_all(paths, force=True) as temporaries:
            for temporary in temporaries:
                temporary.write_text("new")
            paths[0].unlink()
            paths[0].mkdir()  # the table is renamed last

    with pytest.raises(FileError, match="it is a folder"):
        write()

    assert names(tmp_path) == ["manifest", "table"]
    assert paths[1].read_text() == "old"


KILLED = """
import json, os, signal, sys
from pathlib import Path
from shoal.files import replacing_all

paths = [Path(name) for name in ("table", "manifest", "cells", "report")]


def killing(step):
    def killed(*arguments, **settings):
        if next(steps) == n:
            os.kill(os.getpid(), 9)
        return step(*arguments, **settings)

    return killed


def write():
    with replacing_all(paths, force=True, checked=paths[2:3]) as temporaries:
        for temporary in temporaries:
            temporary.write_text("new")
        os.link, os.replace, os.unlink = killing(os.link), killing(os.replace), killing(os.unlink)
    os._exit(0)


for older in (paths, paths[1:]):
    code = 1
    for n in range(30):
        for path in paths:
            path.unlink(missing_ok=True)
        for path in older:
            path.write_text("old")
        pid = os.fork()
        if pid == 0:
            steps = iter(range(100))
            write()
        code = os.waitpid(pid, 0)[1]
        left = {path.name: path.read_text() for path in paths if path.exists()}
        print(json.dumps([[path.name for path in older], n, code, left]))
        if code == 0:
            break
"""


def test_a_kill_between_two_renames_leaves_no_description_beside_another_table(tmp_path):
    ran = subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, capture_output=True, text=True, check=True)
    kills = [json.loads(line) for line in ran.stdout.splitlines()]
    files = ["cells", "manifest", "report", "table"]
    with replacing_all([tmp_path / name for name in ["table", *files[:-1]]], force=True):
        pass

    assert [left for *_, code, left in kills if code == 0] == [dict.fromkeys(("table", *files[:-1]), "new")] * 2
    assert len(kills) > 2 * 5
    for older, _, _, left in kills:
        unchecked = {name: text for name, text in left.items() if name != "cells"}
        assert len(set(unchecked.values())) <= 1 or "table" not in left
        assert "table" in left or "table" not in older
        if "table" in older:  # what is checked by its reader is never missing
            assert left["cells"] == "old" or left["table"] == "new"
    assert names(tmp_path) == files


def test_what_a_killed_process_has_left_is_removed_by_the_next_and_nothing_else(tmp_path):
    code = f"""
import os, signal
from pathlib import Path
from shoal.files import hidden_folder, replacing
with replacing(Path({str(tmp_path)!r}) / "a.csv") as temporary, hidden_folder(temporary) as folder:
    (folder / "records").write_text("secret")
    os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    (tmp_path / ".mine.a.csv").touch()
    left = names(tmp_path)
    with replacing(tmp_path / "b.csv"):
        assert len(names(tmp_path)) == len(left) + 1
    with replacing(tmp_path / "a.csv") as temporary:
        with replacing(tmp_path / "a.csv", force=True):
            pass  # another run meanwhile
        alive = temporary.exists()
        (tmp_path / "a.csv").unlink()

    assert len(left) == 3
    assert alive
    assert names(tmp_path) == [".mine.a.csv", "a.csv", "b.csv"]


@pytest.mark.parametrize("spelling", ["same", "longer", "symbolic", "hard"])
def test_what_is_read_is_never_written_to(tmp_path, monkeypatch, spelling):
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "in.csv"
    source.write_text("precious")
    target = tmp_path / "out.csv"
    if spelling == "same":
        target = source
    elif spelling == "longer":
        target = os.path.join(".", "..", tmp_path.name, "in.csv")
    elif spelling == "symbolic":
        target.symlink_to(source)
    else:
        target.hardlink_to(source)
    with (
        pytest.raises(FileError, match="is the same file as the input"),
        replacing(target, force=True, inputs=[source]),
    ):
        pytest.fail("the block must not run")

    assert source.read_text() == "precious"


def test_names_that_some_systems_take_for_one_are_refused(tmp_path):
    with (
        pytest.raises(FileError, match="the same"),
        replacing_all([tmp_path / "report.json", tmp_path / "Report.JSON"]),
    ):
        pytest.fail("the block must not run")


def test_the_first_of_a_set_gets_its_name_last(tmp_path, monkeypatch):
    claimed = []
    rename = system.rename_new
    monkeypatch.setattr(system, "rename_new", lambda one, other: (claimed.append(other.name), rename(one, other)))
    with replacing_all([tmp_path / "table", tmp_path / "manifest"]):
        pass

    assert claimed == ["manifest", "table"]


def test_a_name_that_is_too_long_is_told_as_such(tmp_path):
    for length in (250, 300):  # the temporary file has a longer name
        with (
            pytest.raises(FileError, match=r"cannot be written: its name is too long\. Choose a shorter one"),
            replacing(tmp_path / ("a" * length)),
        ):
            pass
    with pytest.raises(FileError, match="does not exist"):
        read(tmp_path / ("a" * 300 + ".csv"))

    assert names(tmp_path) == []
