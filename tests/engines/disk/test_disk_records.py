import errno
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from block_tables import ROLES, batches, job, multiset, people
from shoal.engines.blocks import driver, sample
from shoal.engines.disk import disk_records, engine
from shoal.engines.disk.checked_files import open_checked
from shoal.engines.disk.scratch import scratch_of
from shoal.errors import FileError, GuaranteeError, ParameterError
from shoal.job import Job
from shoal.release import run
from shoal.sources.batches import open_batches
from shoal.system import system
from toy_engine import toy_release

QUASI = [*ROLES["quasi_identifiers"], *ROLES["by"]]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a table of 700 people."""
    pq.write_table(people(700), tmp_path / "people.parquet", row_group_size=100)
    return tmp_path


def disk_job(folder, source="people.parquet", name="release.parquet", **given):
    paths = {"input": {"path": str(folder / source)}, "output": {"path": str(folder / name)}}
    return job(k=3, **{"memory": "1GB", **paths, **given})


def made(folder, source="people.parquet", name="release.parquet", threads=None, **given):
    """Make and write a release; return what was written."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(disk_job(folder, source, name, **given), threads=threads)
    return shoal.sources.read(folder / name).arrow


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_files_order_row_groups_memory_and_threads_do_not_change_the_release(folder):
    (folder / "parts").mkdir()
    for number, batch in enumerate(batches(people(700), 7, shuffled=5)):
        pq.write_table(batch, folder / "parts" / f"{number}.parquet", row_group_size=17)
    one = made(folder, threads=1)
    seven = made(folder, "parts", "second.parquet", memory="300MB", threads=2)

    assert seven.equals(one)
    assert multiset(one) == multiset(toy_release(disk_job(folder), [people(700)]).published)
    assert hidden(folder) == []


def test_the_audit_agrees_with_the_verdict_as_in_memory(folder):
    for name, engine_of in (("memory.parquet", "memory"), ("disk.parquet", "disk")):
        asked = disk_job(folder, name=name, memory=None, engine=engine_of)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = run(asked)
        found = shoal.audit(folder / name, quasi_identifiers=QUASI, confidential="illness", k=3)

        assert found.holds
        assert found.sizes == release.verdict.sizes
        assert vars(found.confidential["illness"]) == pytest.approx(vars(release.verdict.confidential["illness"]))
        assert found.n_records == 700


def test_manifests_and_report_are_those_of_any_release_and_say_what_was_sampled(folder):
    output = {"path": str(folder / "release.parquet"), "report": str(folder / "r.html"), "json": str(folder / "r.json")}
    made(folder, output=output)
    manifest = json.loads((folder / "release.parquet.internal.json").read_text())
    public = json.loads((folder / "release.parquet.public.json").read_text())

    assert manifest["labels"] is None
    assert manifest["sampled"]["of"] == 700
    assert manifest["loss"]["il"] > 0
    assert public["verdict"]["holds"]
    assert json.loads((folder / "r.json").read_text())["verdict"]["smallest"] >= 3
    assert "<html" in (folder / "r.html").read_text()


@pytest.mark.parametrize("kind", ["file", "frame"])
def test_a_release_can_be_read_in_batches_and_leaves_no_scratch(folder, kind):
    with shoal.anonymize(folder / "people.parquet" if kind == "file" else people(700), **_arguments()) as release:
        found = pa.concat_tables(release.batches())
        scratch = release.records._scratch

        assert system.is_private(scratch)
        assert release.verdict.holds

    assert found.num_rows == 700
    assert not scratch.exists()


def _arguments(**given):
    roles = {name: list(columns) for name, columns in ROLES.items()}
    columns = {"grade": {"categories": ["low", "mid", "high"]}}
    return {"k": 3, "seed": 7, "missing": "own-value", "columns": columns, "engine": "disk", **roles, **given}


KILLED = """
import os, signal, sys
import shoal.engines.blocks.blueprint
from shoal.engines.blocks import driver
from shoal.engines.disk import disk_records
from shoal.job import Job
from shoal.release import run

shoal.engines.blocks.blueprint.BLOCK_RECORDS = 200
place, _, name = sys.argv[2].rpartition(".")
setattr(eval(place), name, lambda *arguments: os.kill(os.getpid(), 9))
run(Job.load(sys.argv[1]), threads=1)
"""


def killed(folder, asked, place="driver.publish"):
    """Run a job in a process that is killed when it comes to a place, by default when it begins to publish."""
    (folder / "job.toml").write_text(asked.to_toml())
    command = [sys.executable, "-c", KILLED, folder / "job.toml", place]
    done = subprocess.run(command, check=False, capture_output=True)

    assert abs(done.returncode) == 9, done.stderr


def test_the_same_job_continues_after_a_kill_with_the_seed_that_was_drawn(folder, monkeypatch):
    killed(folder, disk_job(folder, seed=None))
    (drawn,) = (open_checked(folder / name / "drawn.seed").note for name in hidden(folder))

    assert not (folder / "release.parquet").exists()

    monkeypatch.setattr(driver, "solve", None)  # its pieces are complete
    continued = made(folder, seed=None)
    monkeypatch.undo()
    monkeypatch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)

    assert continued.equals(made(folder, name="second.parquet", seed=drawn))
    assert hidden(folder) == []


def test_a_job_that_was_killed_while_it_wrote_has_all_measures_when_it_continues(folder, monkeypatch):
    killed(folder, disk_job(folder), "disk_records.DiskRecords.write")
    monkeypatch.setattr(driver, "publish", None)  # everything is published
    continued = made(folder)
    monkeypatch.undo()
    monkeypatch.setattr("shoal.engines.blocks.blueprint.BLOCK_RECORDS", 200)
    manifest = json.loads((folder / "release.parquet.internal.json").read_text())

    assert continued.equals(made(folder, name="second.parquet"))
    second = json.loads((folder / "second.parquet.internal.json").read_text())
    assert [manifest[key] for key in ("loss", "risk", "sampled")] == [
        second[key] for key in ("loss", "risk", "sampled")
    ]
    assert hidden(folder) == []


def test_a_job_does_not_continue_one_that_read_its_input_in_another_way(tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n1,x\n2,y\n")
    asked, target = disk_job(tmp_path, "people.csv"), tmp_path / "release.parquet"
    one, other, again = (
        scratch_of(asked, open_batches(tmp_path / "people.csv", null_values=[text]), target) for text in "xyx"
    )

    assert one != other
    assert one == again


def test_another_job_removes_what_no_process_holds(folder):
    (folder / ".0123456789ab.release.parquet").mkdir()
    made(folder)

    assert hidden(folder) == []


@pytest.mark.parametrize("kind", ["open to others", "link", "file"])
def test_a_scratch_folder_that_others_may_have_made_is_refused(folder, kind):
    asked = disk_job(folder)
    scratch = scratch_of(asked, open_batches(folder / "people.parquet"), folder / "release.parquet")
    if kind == "open to others":
        scratch.mkdir()
        scratch.chmod(0o777)
    elif kind == "link":
        (folder / "elsewhere").mkdir(mode=0o700)
        scratch.symlink_to(folder / "elsewhere")
    else:
        scratch.write_text("")
    with pytest.raises(FileError, match="only you can enter"):
        made(folder)

    assert not (folder / "release.parquet").exists()


def test_a_second_process_with_the_same_job_is_refused(folder):
    with shoal.anonymize(folder / "people.parquet", **_arguments()), pytest.raises(FileError, match="Another process"):
        shoal.anonymize(folder / "people.parquet", **_arguments())


def test_an_input_that_changes_during_the_run_is_refused(folder, monkeypatch):
    original = driver.solve

    def changing(*arguments):
        os.utime(folder / "people.parquet", ns=(1, 1))
        return original(*arguments)

    monkeypatch.setattr(driver, "solve", changing)
    with pytest.raises(FileError, match="has changed"):
        made(folder)

    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet"]


def test_a_disk_without_room_is_refused_with_how_much_is_needed(folder, monkeypatch):
    monkeypatch.setattr("shoal.engines.disk.scratch.shutil.disk_usage", lambda path: type("Usage", (), {"free": 10}))
    with pytest.raises(FileError, match=r"about \d+\.\d GB are needed"):
        made(folder)

    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet"]


@pytest.mark.parametrize(("number", "message"), [(errno.ENOSPC, "too full"), (errno.EFBIG, "ulimit -f")])
def test_a_disk_that_fills_up_leaves_nothing_behind(folder, monkeypatch, number, message):
    def full(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(engine.Spill, "add", full)
    with pytest.raises(FileError, match=message):
        made(folder)

    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet"]


def test_ctrl_c_leaves_nothing_behind(folder, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "refine_cells", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made(folder)

    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet"]


def test_many_equal_records_are_cut_no_further_and_do_not_depend_on_order(tmp_path):
    table = people(500)
    table = pa.concat_tables([table, pa.concat_tables([table.slice(3, 1)] * 900)])
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(pa.concat_tables(batches(table, 1, shuffled=2)), tmp_path / "two.parquet", row_group_size=50)

    one, two = (made(tmp_path, f"{name}.parquet", f"{name}-release.parquet") for name in ("one", "two"))
    assert one.num_rows == 1_400
    assert two.equals(one)


def test_a_column_without_values_or_type_is_released(tmp_path):
    table = pa.table({"a": np.arange(40.0), "b": pa.nulls(40), "c": pa.nulls(40)})
    pq.write_table(table, tmp_path / "untyped.parquet")
    roles = {"quasi_identifiers": ("a", "b"), "confidential": ("c",)}
    written = made(tmp_path, "untyped.parquet", roles=roles, columns={}, missing="own-value")

    assert [written[name].null_count for name in ("b", "c")] == [40, 40]


def test_a_column_has_one_type_also_if_a_block_rounds_to_numbers_beyond_that_of_the_input(tmp_path):
    pq.write_table(pa.table({"a": pa.array(np.arange(-127, 128), pa.int8())}), tmp_path / "small.parquet")
    asked = {"roles": {"quasi_identifiers": ("a",)}, "columns": {"a": {"round": -1}}}
    written = made(tmp_path, "small.parquet", **asked)

    assert written.schema.field("a").type == pa.int64()
    assert written["a"].to_numpy().max() == 130


def test_a_column_in_the_names_of_folders_is_one_like_others(folder):
    table = people(700)
    pq.write_to_dataset(table, folder / "lake", partition_cols=["region"])
    pq.write_table(
        table.select([*(name for name in table.column_names if name != "region"), "region"]), folder / "last.parquet"
    )

    assert made(folder, "lake").equals(made(folder, "last.parquet", "second.parquet"))


def test_a_release_does_not_go_into_the_folder_that_is_read(tmp_path):
    (tmp_path / "parts").mkdir()
    pq.write_table(people(100), tmp_path / "parts" / "a.parquet")
    with pytest.raises(FileError, match="the next time"):
        made(tmp_path, "parts", "parts/release.parquet")

    assert [path.name for path in tmp_path.rglob("*.*")] == ["a.parquet"]


def test_a_table_of_equal_records_is_released(tmp_path):
    pq.write_table(pa.table({"a": np.full(700, 1.5)}), tmp_path / "equal.parquet")
    written = made(tmp_path, "equal.parquet", roles={"quasi_identifiers": ("a",)}, columns={})

    assert written["a"].to_pylist() == [1.5] * 700


def test_equal_points_are_distributed_by_content_with_every_value_in_each_block(tmp_path):
    table = pa.table({"a": np.full(900, 1.5), "illness": np.repeat(["flu", "cold"], 450)})
    pq.write_table(table, tmp_path / "equal.parquet")
    roles = {"quasi_identifiers": ("a",), "confidential": ("illness",)}
    asked = {"roles": roles, "columns": {}, "models": [shoal.LDiversity("illness", l=2)]}

    assert made(tmp_path, "equal.parquet", **asked).num_rows == 900


def test_equal_points_beside_others_do_not_depend_on_order(tmp_path, monkeypatch):
    # A sample of one record cannot tell that not all points are equal.
    monkeypatch.setattr(sample, "SAMPLE", 1)
    table = pa.table({"a": np.r_[np.zeros(880), np.arange(20.0)], "illness": np.arange(900) / 7})
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(pa.concat_tables(batches(table, 1, shuffled=2)), tmp_path / "two.parquet")
    asked = {"roles": {"quasi_identifiers": ("a",), "confidential": ("illness",)}, "columns": {}}

    one, two = (made(tmp_path, f"{name}.parquet", f"{name}-release.parquet", **asked) for name in ("one", "two"))
    assert two.equals(one)
    assert multiset(one) == multiset(toy_release(job(k=3, **asked), [table]).published)


def test_a_leaf_that_the_sample_did_not_see_is_cut_further(tmp_path, monkeypatch):
    # A sample of ten records cannot tell where most records are.
    monkeypatch.setattr(sample, "SAMPLE", 10)
    rng = np.random.default_rng(4)
    a = np.concatenate([rng.uniform(0, 1_000, 300), rng.normal(0, 0.1, 1_500)])
    table = pa.table({"a": a, "b": rng.normal(size=1_800)})
    pq.write_table(table, tmp_path / "skewed.parquet")
    asked = {"roles": {"quasi_identifiers": ("a", "b")}, "columns": {}}
    written = made(tmp_path, "skewed.parquet", **asked)

    assert written.num_rows == 1_800
    assert multiset(written) == multiset(toy_release(job(k=3, **asked), [table]).published)


@pytest.mark.parametrize("ending", ["arrow", "csv"])
def test_every_format_that_is_read_and_written_in_parts_gives_the_same_release(folder, ending):
    shoal.sources.write(people(700), folder / f"people.{ending}")
    found = made(folder, f"people.{ending}", f"release.{ending}")

    assert found.column_names == [*ROLES["quasi_identifiers"][:5], "region", "illness", "note"]
    assert multiset(found) == multiset(made(folder))


def test_persons_are_counted_on_the_written_file(folder):
    roles = {**ROLES, "subject": "name", "identifiers": ()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = run(disk_job(folder, roles=roles))

    assert release.verdict.subject_asked
    assert release.verdict.subjects >= 3


def test_a_written_file_that_breaks_k_is_refused(folder, monkeypatch):
    from shoal.engines.disk.disk_records import DiskRecords

    def damaged(self, stack):
        for table in original(self, stack):
            yield table.set_column(0, "age", pa.array(np.arange(table.num_rows, dtype=np.float64)))

    original = DiskRecords._publishable
    monkeypatch.setattr(DiskRecords, "_publishable", damaged)
    with pytest.raises(GuaranteeError, match="read back"):
        made(folder)

    assert sorted(path.name for path in folder.iterdir()) == ["people.parquet"]


def test_a_model_that_a_block_cannot_satisfy_is_refused_with_the_reason(tmp_path):
    table = pa.table({"age": np.arange(700.0), "illness": np.repeat(["flu", "cold"], 350)})
    pq.write_table(table, tmp_path / "sorted.parquet")
    roles = {"quasi_identifiers": ("age",), "confidential": ("illness",)}
    with pytest.raises(GuaranteeError, match="In one block"):
        made(tmp_path, "sorted.parquet", roles=roles, columns={}, models=[shoal.TCloseness("illness", t=0.1)])
    with pytest.raises(GuaranteeError, match="taken together, have 1 different values"):
        made(tmp_path, "sorted.parquet", roles=roles, columns={}, models=[shoal.LDiversity("illness", l=2)])


def test_an_empty_table_is_refused(tmp_path):
    pq.write_table(people(10).slice(0, 0), tmp_path / "people.parquet")
    with pytest.raises(ParameterError, match="no records"):
        made(tmp_path)


def test_impossible_settings_are_refused_before_a_record_is_read(folder, monkeypatch):
    monkeypatch.setattr("shoal.sources.batches.Batches.read", None)
    with pytest.raises(ParameterError, match="another method than auto"):
        made(folder, method="mdav")
    with pytest.raises(GuaranteeError, match="k=701"):
        disk_records.check_disk_job(
            disk_job(folder).model_copy(update={"k": 701}), open_batches(folder / "people.parquet")
        )
    with pytest.raises(ParameterError, match="recounted"):
        made(folder, name="release.csv.gz")
    with pytest.raises(ParameterError, match="order of the input"):
        made(folder, output={"path": str(folder / "r.parquet"), "order": "keep"})
    with pytest.raises(ParameterError, match="too little"):
        made(folder, memory="1MB")
    with pytest.raises(ParameterError, match="not a size"):
        made(folder, memory="much")
    with pytest.raises(ParameterError, match="not a size"):
        made(folder, memory="")
    with pytest.raises(ParameterError, match="Leave one of them out"):
        made(folder, engine="memory")


def test_infinite_values_are_named_by_their_place_in_the_table(tmp_path):
    ages = np.arange(300.0)
    ages[250] = np.inf
    pq.write_table(pa.table({"a": ages}), tmp_path / "people.parquet", row_group_size=100)
    with pytest.raises(shoal.SchemaError, match="record 251"):
        made(tmp_path, roles={"quasi_identifiers": ("a",)}, columns={})


def test_jobs_keep_engine_and_memory(folder):
    asked = disk_job(folder, engine="disk", memory="2GB")

    assert Job.from_toml(asked.to_toml()) == asked
    assert 'engine = "disk"' in asked.to_toml()
    assert Job.of(k=3, roles={"quasi_identifiers": ["a"]}).chosen_engine == "memory"
    assert Path(asked.input.path).name == "people.parquet"
