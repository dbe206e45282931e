"""The files of a release: together or not at all, never the input, and only of an input that has stayed the same."""

import errno
import json
import os
import warnings
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import shoal
from shoal import FileError, Job, ParameterError, ShoalWarning, cli, dp
from shoal.output.manifest import unpacked

ROLES = {"quasi_identifiers": ["age"], "confidential": ["illness"]}
OPTIONS = ["-k", "4", "--quasi-identifiers", "age", "--confidential", "illness"]


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    return pa.table({"age": rng.uniform(18, 90, 60), "illness": rng.choice(["flu", "cold", None], 60)})


@pytest.fixture
def files(people, tmp_path, monkeypatch):
    """Work in a folder that holds the people as files."""
    monkeypatch.chdir(tmp_path)
    pyarrow.csv.write_csv(people, "people.csv")
    pyarrow.parquet.write_table(people, "people.parquet")
    return tmp_path


def shoal_command(*arguments):
    return CliRunner().invoke(cli.main, arguments)


def released(table, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return shoal.anonymize(table, **{"k": 4, "seed": 1, **ROLES, **settings})


def records(path):
    return pyarrow.csv.read_csv(path).to_pylist()


def test_the_order_of_a_release_is_the_same_whatever_the_order_of_the_input_and_the_seed(people, files):
    order = pa.array(np.random.default_rng(1).permutation(len(people)))
    released(people, method="mdav").write("r.csv")
    released(people.take(order), method="mdav", seed=9).write("s.csv")

    assert (files / "r.csv").read_bytes() == (files / "s.csv").read_bytes()


def test_csv_parquet_and_frames_are_released_in_one_order(people, files):
    written = []
    for number, source in enumerate(["people.csv", "people.parquet", people, people.to_pandas()]):
        release = released(source)
        release.write(f"{number}.csv")
        release.write(f"{number}.parquet")
        written += [records(f"{number}.csv"), pyarrow.parquet.read_table(f"{number}.parquet").to_pylist()]

    assert all(repr(rows).replace("''", "None") == repr(written[0]).replace("''", "None") for rows in written)


def test_the_internal_manifest_tells_which_record_stands_in_each_row(people, files):
    release = released(people)
    release.write("r.parquet")
    release.write("kept.parquet", order="keep")
    rows = unpacked(json.loads((files / "r.parquet.internal.json").read_text())["rows"])

    assert pyarrow.parquet.read_table("r.parquet").equals(release.published.take(pa.array(rows)))
    assert json.loads((files / "kept.parquet.internal.json").read_text())["rows"] is None


def test_a_seed_that_can_be_guessed_is_warned_about_where_it_decides_what_is_published(people):
    settings = {"quasi_identifiers": ["age"], "other": ["illness"], "confidential": [], "rho": 0.5}

    assert any("seed" in text for text in released(people, **settings, seed=4711).warnings)
    assert not any("seed" in text for text in released(people, **settings, seed=None).warnings)
    assert not any("seed" in text for text in released(people, seed=4711).warnings)
    assert not any("4711" in text for text in released(people, **settings, seed=4711).warnings)


def test_a_disk_that_is_full_at_the_job_file_leaves_no_release(files, monkeypatch):
    before = sorted(os.listdir())

    def full(self, **options):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(Job, "to_toml", full)
    result = shoal_command("anonymize", "people.csv", *OPTIONS, "-o", "r.csv", "--save-job", "job.toml")

    assert result.exit_code != 0
    assert "the disk is full" in result.stderr
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("setting", [{"title": "A survey"}, {"date": "2024-07-01"}, {"form": "public"}])
def test_what_would_stand_in_a_report_is_refused_without_one(people, files, setting):
    job = {"k": 4, "roles": ROLES, "input": {"path": "people.csv"}, "output": {"path": "release.csv", **setting}}
    with pytest.raises(ParameterError, match=f"{next(iter(setting))} can only be given for a report"):
        shoal.anonymize(people, k=4, **ROLES).write("release.csv", **setting)
    with pytest.raises(ParameterError, match="none was asked for"):
        shoal.run(Job.of(**job))

    assert not (files / "release.csv").exists()


@pytest.mark.parametrize("names", [{"report": "report.pdf"}, {"json": "report.txt"}])
def test_a_report_whose_name_promises_another_format_is_refused(people, files, names):
    with pytest.raises(FileError, match="Choose a name that ends in"):
        shoal.anonymize(people, k=4, **ROLES).write("release.csv", **names)

    assert not (files / "release.csv").exists()


def test_a_job_that_is_saved_but_nowhere_released_is_refused(people, files):
    with pytest.raises(shoal.ParameterError, match="it has no output"):
        shoal.run(Job.of(k=4, roles=ROLES), people, save_job="job.toml")


@pytest.mark.parametrize("output", ["people.csv", "./people.csv", "symbolic.csv", "hard.csv"])
@pytest.mark.parametrize("command", ["anonymize", "run", "compare", "dp", "python"])
def test_no_command_writes_over_what_it_reads(files, command, output):
    (files / "symbolic.csv").symlink_to("people.csv")
    (files / "hard.csv").hardlink_to("people.csv")
    (files / "linked.json").hardlink_to("people.csv")
    before = (files / "people.csv").read_bytes()
    json_file = {"people.csv": "linked.json"}.get(output)
    table = output if json_file is None else "r.csv"
    job = Job.of(k=4, roles=ROLES, input={"path": "people.csv"}, output={"path": table, "json": json_file})
    (files / "job.toml").write_text(job.to_toml())
    if command == "python":
        with pytest.raises(FileError, match="is the same file as the input"):
            released("people.csv").write(output, force=True)
    else:
        declared = ["--epsilon", "1", "--bounds", "age=0,100", "--categories", "illness=flu,cold"]
        asked = {
            "anonymize": ["people.csv", *OPTIONS, "-o", output],
            "run": ["job.toml"],
            "compare": ["people.csv", *OPTIONS, "-o", output],
            "dp": ["people.csv", *declared, "-o", output],
        }[command]
        result = shoal_command(command, *asked, "--force")

        assert result.exit_code == 2, result.output
        assert "is the same file as the input" in result.stderr.replace("\n", " ")
    assert (files / "people.csv").read_bytes() == before
    assert not (files / "r.csv").exists()


@pytest.mark.parametrize("output", ["h.csv", "symbolic.csv", "hard.csv"])
@pytest.mark.parametrize("command", ["anonymize", "run", "compare", "python"])
def test_no_command_writes_over_a_hierarchy_that_it_reads(files, command, output):
    (files / "h.csv").write_text("flu;ill;*\ncold;ill;*\n")
    (files / "symbolic.csv").symlink_to("h.csv")
    (files / "hard.csv").hardlink_to("h.csv")
    before = (files / "h.csv").read_bytes()
    roles = {"quasi_identifiers": ["age", "illness"]}
    columns = {"illness": {"hierarchy": "h.csv", "aggregate": "ancestor"}}
    job = Job.of(k=4, roles=roles, columns=columns, input={"path": "people.csv"}, output={"path": output})
    (files / "job.toml").write_text(job.to_toml())
    if command == "python":
        with pytest.raises(FileError, match=r"is the same file as the input 'h\.csv'"):
            released("people.csv", columns=columns, missing="own-value", confidential=(), **roles).write(
                output, force=True
            )
    else:
        words = ["-k", "4", "--quasi-identifiers", "age,illness", "--hierarchy", "illness=h.csv"]
        asked = ["job.toml"] if command == "run" else ["people.csv", *words, "-o", output]
        result = shoal_command(command, *asked, "--force")

        assert result.exit_code == 2, result.output
        assert "is the same file as the input 'h.csv'" in result.stderr.replace("\n", " ")
    assert (files / "h.csv").read_bytes() == before
    assert len(list(files.iterdir())) == 6


def test_no_command_writes_over_a_job_a_manifest_or_a_collection_that_it_reads(files):
    released("people.csv").write("r.csv", save_job="saved.toml")
    job = Job.of(k=4, roles=ROLES, input={"path": "people.csv"}, output={"path": "o.csv", "manifest": "job.toml"})
    (files / "job.toml").write_text(job.to_toml())
    (files / "stream.toml").write_text('k = 2\n[roles]\nquasi_identifiers = ["age"]\n[stream]\ndelay = 4\n')
    (files / "risks.csv").hardlink_to("r.csv.internal.json")
    shoal_command("collect", "begin", "here", "people.csv", *OPTIONS)
    inside = sorted(path.name for path in (files / "here").iterdir() if path.suffix == ".arrow")[0]
    (files / "inside.csv").symlink_to(files / "here" / inside)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    truth = ("--original", "people.csv", "--manifest", "r.csv.internal.json")
    for words in (
        ("run", "job.toml", "--force"),
        ("run", "job.toml", "--force", "--dry-run"),
        ("audit", "r.csv", "--quasi-identifiers", "age", *truth, "--risks", "risks.csv", "--force"),
        ("collect", "finish", "here", "-o", "inside.csv", "--force"),
        ("stream", "-i", "people.csv", "--csv", "--job", "stream.toml", "-o", "stream.toml", "--force"),
    ):
        result = shoal_command(*words)

        assert result.exit_code == 2, result.output
        assert "the same file" in result.stderr
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


def test_a_differentially_private_release_does_not_replace_its_input(files):
    release = dp.marginals("people.csv", 1.0, bounds={"age": (0, 100)}, categories={"illness": ["flu", "cold"]})
    with pytest.raises(FileError, match="is the same file as the input"):
        release.write("people.csv", force=True)


@pytest.mark.parametrize("source", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("change", ["written", "replaced", "removed", "touched"])
def test_an_input_that_changes_under_a_release_is_noticed(files, source, change):
    release = released(source)
    content = (files / source).read_bytes()
    if change == "written":
        (files / source).write_bytes(content + b"\n")
    elif change == "replaced":
        times = (files / source).stat()
        (files / "copy").write_bytes(content)
        os.utime("copy", ns=(times.st_atime_ns, times.st_mtime_ns))
        os.replace("copy", source)
    elif change == "touched":
        os.utime(source, ns=(0, 0))
    else:
        (files / source).unlink()
    before = sorted(os.listdir())
    with pytest.raises(FileError, match=f"'{source}' has changed while it was in use"):
        release.write("r.parquet")

    assert sorted(os.listdir()) == before


def test_an_input_that_changes_while_it_is_grouped_is_noticed(files):
    def progress(*done):
        os.utime("people.parquet", ns=(0, 0))

    with pytest.raises(FileError, match="has changed"):
        released("people.parquet", progress=progress).write("r.parquet")


def test_a_frame_that_changes_under_a_release_is_noticed(people, files):
    numbers = np.arange(60.0) % 13
    frame = pd.DataFrame({"age": np.arange(60.0), "other": pd.Series(numbers, copy=False)}, copy=False)
    source = pa.table({"age": frame["age"], "other": pa.array(numbers)})
    release = released(source, confidential=["other"])
    numbers[3] = 1e6
    if source["other"][3].as_py() != 1e6:
        pytest.fail("the array was copied, so the test tests nothing")
    with pytest.raises(FileError, match="frame has changed"):
        release.write("r.csv")

    assert not (files / "r.csv").exists()


def test_the_hash_of_the_input_is_that_of_what_was_read(files):
    release = released("people.csv")
    release.write("r.csv")
    found = json.loads((files / "r.csv.internal.json").read_text())["input_sha256"]

    assert found == shoal.files.sha256("people.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "sav", "dta"])
def test_an_ordinal_confidential_column_with_gaps_can_be_written_to_any_format(files, ending):
    codes = np.random.default_rng(0).integers(-1, 3, 60)
    level = pd.Categorical.from_codes(codes, ["low", "mid", "high"], ordered=True)
    table = pd.DataFrame({"age": np.arange(60.0), "level": level})
    models = [shoal.LDiversity("level", l=2)]
    released(table, k=6, confidential=["level"], models=models).write(f"r.{ending}")

    assert (files / f"r.{ending}").exists()


def test_runs_are_published_as_what_they_are(files):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([30, 60], pa.int32()), pa.array(["a", "b"]))
    for ending in ("csv", "parquet", "arrow"):
        release = released(pa.table({"age": np.arange(60.0), "runs": runs}), confidential=[], other=["runs"])
        release.write(f"r.{ending}")

    assert sorted(row["runs"] for row in records("r.csv")) == ["a"] * 30 + ["b"] * 30


@pytest.mark.parametrize(("ending", "is_refused"), [("csv", True), ("xlsx", True), ("arrow", False)])
def test_intervals_of_months_and_days_are_published_or_refused_by_name(files, ending, is_refused):
    stays = pa.array([(1, 2, 3)] * 4, pa.month_day_nano_interval())
    release = shoal.anonymize(
        pa.table({"age": [1, 1, 2, 2], "stay": stays}), k=2, quasi_identifiers=["age"], other=["stay"]
    )
    with pytest.raises(FileError, match="'stay' hold lists, structs") if is_refused else nullcontext():
        release.write(files / f"stays.{ending}")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_table_that_cannot_be_read_back_is_refused_with_what_to_do(files, name):
    release = shoal.anonymize(pa.table({name: [1, 1, 2, 2]}), k=2, quasi_identifiers=[name])
    with pytest.raises(
        shoal.GuaranteeError, match=r"read back from the \.csv file.* rename it, or choose another format"
    ):
        release.write(files / "unusual.csv")

    assert not any("unusual" in path.name for path in files.iterdir())
