"""Who may read what is written: the public files as the umask says, everything else its owner alone."""

import os
import stat
import subprocess
import sys

import pyarrow as pa
import pytest

import shoal
from shoal.cli import main
from shoal.files import replacing
from shoal.incremental.collection import begin
from shoal.stream import Stream

PEOPLE = pa.table({"age": [float(i * 7 % 50) for i in range(40)], "illness": ["flu", "cold"] * 20})
ROLES = {"quasi_identifiers": ["age"], "confidential": ["illness"]}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder):
    """Return the mode of every file below a folder, by its name."""
    return {file.name: mode(file) for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(params=[0o000, 0o022, 0o027])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture(params=[None, 0o666])
def older(request):
    """Return a function that puts an open file where another one is about to be written, or does nothing."""

    def place(*paths):
        for path in paths if request.param else ():
            path.write_text("older")
            path.chmod(request.param)

    return place


def release(folder, older, **options):
    written = [folder / f"r.csv{end}" for end in ("", ".public.json", ".internal.json")]
    older(*written, folder / "report.html", folder / "report.json")
    found = shoal.anonymize(PEOPLE, k=4, seed=1, **ROLES)
    found.write(written[0], report=folder / "report.html", json=folder / "report.json", force=True, **options)


def test_a_release_shows_its_table_and_its_public_manifest_only(tmp_path, umask, older):
    release(tmp_path, older)

    assert modes(tmp_path) == {
        "r.csv": 0o666 & ~umask,
        "r.csv.public.json": 0o666 & ~umask,
        "r.csv.internal.json": 0o600,
        "report.html": 0o600,
        "report.json": 0o600,
    }


def test_a_public_report_may_be_read_by_all(tmp_path, umask):
    release(tmp_path, lambda *paths: None, form="public")

    assert {name: found for name, found in modes(tmp_path).items() if found == 0o600} == {"r.csv.internal.json": 0o600}


def test_a_saved_job_and_a_comparison_are_closed(tmp_path, umask, older):
    pa.csv.write_csv(PEOPLE, tmp_path / "people.csv")
    kept = [tmp_path / "job.toml", *(tmp_path / f"map.{form}" for form in ("svg", "html", "json"))]
    older(*kept)
    asked = [
        str(tmp_path / "people.csv"),
        "-k",
        "4",
        "--quasi-identifiers",
        "age",
        "--confidential",
        "illness",
        "--force",
    ]
    output = ["-o", str(tmp_path / "r.csv"), "--save-job", str(kept[0])]
    main(["anonymize", *asked, *output], standalone_mode=False)
    found = shoal.compare(PEOPLE, k=[4], methods=["mdav"], **ROLES)
    for path in kept[1:]:
        found.write(path, force=True)

    assert [mode(path) for path in kept] == [0o600] * 4


def test_a_collection_is_closed(tmp_path, umask):
    begin(tmp_path / "evening", PEOPLE, k=4, seed=1, **ROLES).add(PEOPLE.slice(0, 8), allow_overlap=True)

    assert mode(tmp_path / "evening") == 0o700
    assert set(modes(tmp_path).values()) == {0o600}


def test_a_saved_stream_is_closed(tmp_path, umask, older):
    older(tmp_path / "state")
    stream = Stream(4, quasi_identifiers=["age"], delay=50)
    stream.push(PEOPLE.select(["age"]))
    stream.save(tmp_path / "state")

    assert mode(tmp_path / "state") == 0o600


def test_a_pipe_shows_its_output_and_closes_its_side_file_and_its_checkpoint(tmp_path, older):
    older(tmp_path / "side", tmp_path / "out")
    lines = "".join('{"age": %s}\n' % ("true" if i == 9 else i * 7 % 50) for i in range(40))
    code = """
import os, signal, sys
from shoal.cli import main
from shoal.stream import Stream
saved, numbers = Stream.save, iter(range(9))
def save(*given):
    saved(*given)
    if next(numbers):  # the first is that of the beginning, before anything is written
        os.kill(os.getpid(), 9)
Stream.save = save
main(sys.argv[1:])
"""
    options = [
        "--quasi-identifiers",
        "age",
        "-k",
        "4",
        "--delay",
        "20",
        "--on-error",
        "side",
        "--checkpoint-every",
        "30",
        "--force",
    ]
    files = ["-o", "out", "--side", "side", "--checkpoint", "checkpoint"]
    command = [sys.executable, "-c", code, "stream", *options, *files]
    subprocess.run(command, input=lines, text=True, cwd=tmp_path, check=False, umask=0)
    found = modes(tmp_path)

    assert mode(tmp_path / "checkpoint") == 0o700
    assert found.pop("out") == 0o666
    assert found.pop("side") == 0o600
    assert set(found.values()) == {0o600}
    assert found


def test_nobody_can_open_a_private_file_before_it_is_closed(tmp_path, umask, monkeypatch):
    created = []
    opened = os.open

    def watched(path, flags, mode=0o777, **rest):
        descriptor = opened(path, flags, mode, **rest)
        if flags & os.O_CREAT:
            created.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return descriptor

    monkeypatch.setattr(os, "open", watched)
    with replacing(tmp_path / "secret", private=True) as temporary:
        temporary.write_text("secret")

    assert set(created) == {0o600}
