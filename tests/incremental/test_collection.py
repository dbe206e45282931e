"""A collection: whole at every moment, one release, nothing counted twice, and what does not fit is refused."""

import json
import os
import re
import subprocess
import sys
import textwrap
import warnings

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import FileError, GuaranteeError, Job, ParameterError, SchemaError, ShoalWarning, audit, run
from shoal.incremental.collection import Collection, begin
from shoal.incremental.store import FORMAT, LIST
from shoal.system import system

ROLES = {"identifiers": ["name"], "quasi_identifiers": ["age", "district"], "confidential": ["vote"]}


def voters(n, seed=0, districts=("north", "south", "west"), shift=0.0):
    """Return a table of n made-up voters."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "name": [f"voter {seed}-{i}" for i in range(n)],
            "age": rng.normal(50 + shift, 15, n).round(1),
            "district": rng.choice(list(districts), n),
            "vote": rng.choice(["x", "y", "z"], n),
        }
    )


@pytest.fixture
def evening(tmp_path):
    """Return a collection that has begun with 300 voters."""
    return begin(tmp_path / "evening", voters(300), k=5, seed=7, **ROLES)


def released(collection, **options):
    """Finish, and return the release."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ShoalWarning)
        return collection.finish(**options)


def test_an_evening_ends_in_one_audited_release(evening):
    evening.add(voters(40, seed=1))
    evening.add(voters(30, seed=2))
    release = released(evening)
    verdict = audit(release.table, quasi_identifiers=["age", "district"], k=5)

    assert verdict.holds
    assert verdict.n_records == 370
    assert release.job.k == 5
    assert release.table.column_names == ["age", "district", "vote"]
    assert sum(release.table["age"].to_pylist()) == pytest.approx(
        sum(sum(voters(n, seed)["age"].to_pylist()) for seed, n in enumerate((300, 40, 30)))
    )


def test_another_process_can_go_on(evening, tmp_path):
    Collection.open(tmp_path / "evening").add(voters(40, seed=1))

    assert Collection.open(tmp_path / "evening").n_records == [300, 40]
    assert released(Collection.open(tmp_path / "evening")).verdict.n_records == 340


def test_finishing_twice_gives_the_same_bytes(evening, tmp_path):
    evening.add(voters(40, seed=1))
    for name in ("first.csv", "second.csv"):
        released(Collection.open(tmp_path / "evening")).write(tmp_path / name)

    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()


def test_after_the_release_nothing_is_added(evening):
    released(evening)

    with pytest.raises(FileError, match="finished"):
        evening.add(voters(40, seed=1))
    assert evening.n_records == [300]


def test_a_second_release_that_would_differ_is_refused(evening):
    released(evening)
    with evening._store.changing():
        evening._store.content["finished"]["labels_sha256"] = "0" * 64
        evening._store.save()

    with pytest.raises(FileError, match="this time its cells are different"):
        released(evening)


def test_without_late_records_the_base_is_released(evening):
    assert released(evening).verdict.n_records == 300


def test_an_empty_batch_and_a_single_late_record_are_fine(evening):
    evening.add(voters(0, seed=1))
    evening.add(voters(1, seed=2))

    assert released(evening).verdict.n_records == 301


def test_only_the_owner_can_read_anything(evening, tmp_path):
    evening.add(voters(40, seed=1))
    folder = tmp_path / "evening"

    assert system.is_private(folder)
    assert all(map(system.is_private, folder.iterdir()))


def test_what_is_dropped_anyway_is_not_kept(evening, tmp_path):
    evening.add(voters(40, seed=1))

    assert all(b"voter" not in file.read_bytes() for file in (tmp_path / "evening").iterdir())


def test_the_same_file_is_refused_the_second_time(evening, tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(voters(40, seed=1), tmp_path / "late.csv")
    evening.add(tmp_path / "late.csv")

    with pytest.raises(FileError, match=r"already in the collection, as batch 1"):
        evening.add(tmp_path / "late.csv")
    with pytest.raises(FileError, match=r"already in the collection, as the base"):
        evening.add(voters(300))
    assert evening.n_records == [300, 40]


def test_the_same_subject_is_refused_the_second_time(tmp_path):
    roles = {"quasi_identifiers": ["age", "district"], "confidential": ["vote"], "subject": "name"}
    collection = begin(tmp_path / "evening", voters(60), k=5, seed=1, **roles)
    again = pa.concat_tables([voters(20, seed=1), voters(60).slice(0, 3)])

    with pytest.raises(SchemaError, match=r"^3 persons \(column 'name'\) are already"):
        collection.add(again)
    collection.add(voters(20, seed=1))
    assert released(collection).verdict.subjects >= 5


def test_other_columns_are_refused_by_name(evening):
    with pytest.raises(SchemaError, match="'vote' missing; 'votes' new"):
        evening.add(voters(40, seed=1).rename_columns(["name", "age", "district", "votes"]))
    assert evening.n_records == [300]


def test_other_kinds_of_values_are_refused_without_showing_any(evening):
    late = voters(40, seed=1)
    text = late.set_column(1, "age", late["age"].cast(pa.string()))

    with pytest.raises(SchemaError, match="'age' holds string in the late records, but double in the base") as refusal:
        evening.add(text)
    assert not set(text["age"].to_pylist()) & set(re.findall(r"[\d.]+", str(refusal.value)))


def test_decimals_in_a_column_of_whole_numbers_are_refused(tmp_path):
    base = pa.table({"age": list(range(20, 40))})
    collection = begin(tmp_path / "evening", base, k=2, quasi_identifiers="age")

    with pytest.raises(SchemaError, match="'age' holds double in the late records, but int64"):
        collection.add(pa.table({"age": [20.5, 31.25]}))
    collection.add(pa.table({"age": [20.0, 31.0]}))
    collection.add(pa.table({"age": pa.array([], pa.null())}))
    assert released(collection).verdict.n_records == 22


def test_missing_values_that_nothing_allows_are_refused(evening):
    late = voters(40, seed=1)
    with pytest.raises(SchemaError, match="Missing values in quasi-identifiers: 'age'"):
        evening.add(late.set_column(1, "age", pa.array([None] * 40, pa.float64())))


def test_missing_values_that_are_a_value_may_come_late(tmp_path):
    collection = begin(tmp_path / "evening", voters(100), k=5, missing="own-value", **ROLES)
    late = voters(40, seed=1)
    with pytest.warns(ShoalWarning):
        collection.add(late.set_column(2, "district", pa.array([None] * 40, pa.string())))
    collection.add(late.slice(0, 10).set_column(1, "age", pa.array([None] * 10, pa.float64())))

    assert released(collection).verdict.n_records == 150


def test_new_categories_get_a_dimension_of_their_own_and_are_said(evening):
    with pytest.warns(ShoalWarning, match=r"'district' has 1 categories that do not occur in the base, in 20 late"):
        evening.add(voters(20, seed=1, districts=("harbour",)))
    with pytest.warns(ShoalWarning, match=r"'district' has 1 categories"):
        release = evening.finish()

    assert release.verdict.holds
    assert release.table["district"].to_pylist()[300:].count("harbour") >= 15


def test_many_new_categories_share_directions(evening):
    with pytest.warns(ShoalWarning):
        evening.add(voters(200, seed=1, districts=[f"d{i}" for i in range(60)]))

    assert released(evening).verdict.holds


def test_new_categories_of_an_ordinal_column_are_refused(tmp_path):
    base = pa.table({"school": [1, 2, 3, 4] * 10})
    columns = {"school": {"kind": "ordinal"}}
    collection = begin(tmp_path / "evening", base, k=2, quasi_identifiers=["school"], columns=columns)

    with pytest.raises(SchemaError, match="'school' is ordinal, and 2 late records have categories"):
        collection.add(pa.table({"school": [1, 9, 9]}))


def test_drift_is_told_in_numbers_without_values(evening):
    with pytest.warns(ShoalWarning, match=r"'age' drifts: the mean .* lies [23]\.\d\d standard deviations"):
        evening.add(voters(60, seed=1, shift=40))


def test_records_like_the_base_do_not_drift(evening):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evening.add(voters(200, seed=1))


def test_a_base_smaller_than_k_is_refused(tmp_path):
    with pytest.raises(GuaranteeError, match="The base has 4 records, fewer than k=5"):
        begin(tmp_path / "evening", voters(4), k=5, **ROLES)
    assert not (tmp_path / "evening").exists()


def test_another_k_is_refused_at_the_end(evening):
    with pytest.raises(ParameterError, match="k=6 was asked for, but the collection began with k=5"):
        evening.finish(k=6)
    assert released(evening, k=5).verdict.holds


def test_strata_are_never_mixed_and_small_ones_wait(tmp_path):
    roles = {**ROLES, "quasi_identifiers": ["age"], "by": ["district"]}
    base = pa.concat_tables([voters(100), voters(3, seed=1, districts=("harbour",))])
    collection = begin(tmp_path / "evening", base, k=5, **roles)
    collection.add(voters(4, seed=2, districts=("harbour",)))
    collection.add(voters(20, seed=3))
    collection.add(voters(6, seed=4, districts=("island",)))
    release = released(collection)
    districts = release.table["district"].to_pylist()

    assert release.verdict.holds
    assert all(len({districts[i] for i in np.flatnonzero(release.labels == c)}) == 1 for c in set(release.labels))


def test_a_stratum_that_stays_too_small_is_refused_at_the_end(tmp_path):
    roles = {**ROLES, "quasi_identifiers": ["age"], "by": ["district"]}
    collection = begin(tmp_path / "evening", voters(100), k=5, **roles)
    collection.add(voters(3, seed=2, districts=("harbour",)))

    with pytest.raises(GuaranteeError, match="fewer than k=5"):
        released(collection)
    assert not Collection.open(tmp_path / "evening").is_finished


def test_a_folder_that_is_there_is_not_replaced(evening, tmp_path):
    with pytest.raises(FileError, match="already exists"):
        begin(tmp_path / "evening", voters(100), k=5, **ROLES)
    with pytest.raises(FileError, match="folder does not exist"):
        begin(tmp_path / "nowhere" / "evening", voters(100), k=5, **ROLES)


def test_what_is_no_collection_is_refused(tmp_path):
    with pytest.raises(FileError, match="the folder does not exist"):
        Collection.open(tmp_path / "evening")
    (tmp_path / "evening").mkdir()
    with pytest.raises(FileError, match=f"{LIST} is missing"):
        Collection.open(tmp_path / "evening")


def test_a_collection_of_a_newer_version_is_refused(evening, tmp_path):
    path = tmp_path / "evening" / LIST
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": FORMAT + 1}))

    with pytest.raises(FileError, match=f"newer version of shoal .format {FORMAT + 1}"):
        Collection.open(tmp_path / "evening")


@pytest.mark.parametrize("damage", [lambda text: text[: len(text) // 2], lambda text: text.replace("k = 5", "k = 2")])
def test_a_damaged_list_is_refused(evening, tmp_path, damage):
    path = tmp_path / "evening" / LIST
    path.write_text(damage(path.read_text()))

    with pytest.raises(FileError, match="damaged"):
        Collection.open(tmp_path / "evening")


@pytest.mark.parametrize("name", ["records-0000.arrow", "records-0001.arrow", "encoded.npy", "cells.npy"])
def test_a_damaged_or_missing_file_is_refused(evening, tmp_path, name):
    evening.add(voters(40, seed=1))
    path = tmp_path / "evening" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)

    with pytest.raises(FileError, match=rf"{re.escape(name)} .* is damaged"):
        released(evening)
    path.unlink()
    with pytest.raises(FileError):
        released(Collection.open(tmp_path / "evening"))
    assert json.loads((tmp_path / "evening" / LIST).read_text())["finished"] is None


def run_script(script, *arguments):
    """Run Python code in a process of its own."""
    code = textwrap.dedent(script)
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )


DIES_IN_THE_PARTITION = """
    import os, sys
    import numpy as np, pyarrow as pa
    from shoal.incremental.collection import begin

    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.normal(size=20_000), "income": rng.normal(size=20_000)})
    roles = {"quasi_identifiers": ["age", "income"]}
    begin(sys.argv[1], table, k=5, seed=1, progress=lambda done, total: os._exit(9), **roles)
"""


def test_a_base_that_was_interrupted_is_made_up_for(tmp_path):
    assert run_script(DIES_IN_THE_PARTITION, tmp_path / "evening").returncode == 9
    collection = Collection.open(tmp_path / "evening")

    assert not collection.is_partitioned
    assert released(collection).verdict.n_records == 20_000
    assert collection.is_partitioned


DIES_WHILE_ADDING = """
    import os, sys
    import pyarrow as pa
    from shoal.incremental import store
    from shoal.incremental.collection import Collection

    # The records are on disk by then, the list that names them is not.
    store._signed = lambda content: os._exit(9)
    store._checked = lambda text, path: store.json.loads(text)
    Collection.open(sys.argv[1]).add(sys.argv[2])
"""


def test_a_batch_that_was_interrupted_does_not_count_and_can_be_added_again(evening, tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(voters(40, seed=1), tmp_path / "late.csv")
    assert "Error" not in (ended := run_script(DIES_WHILE_ADDING, tmp_path / "evening", tmp_path / "late.csv")).stderr
    assert ended.returncode == 9
    collection = Collection.open(tmp_path / "evening")

    assert collection.n_records == [300]
    collection.add(tmp_path / "late.csv")
    assert released(collection).verdict.n_records == 340


def test_what_a_killed_process_left_is_removed_and_nothing_else(evening, tmp_path):
    left = [
        tmp_path / "evening" / name for name in (".0a1b2c.records-0001.arrow", "records-0009.arrow", ".x.cells.npy")
    ]
    mine = tmp_path / "evening" / "notes.txt"
    beside = tmp_path / ".0123456789ab.other"
    beside.mkdir()
    for file in (*left, mine, beside / "records-0000.arrow"):
        file.write_text("x")
    evening.add(voters(10, seed=1))
    begin(tmp_path / "other", voters(50), k=5, **ROLES)

    assert [file for file in (*left, beside) if file.exists()] == []
    assert mine.exists()
    assert released(evening).verdict.n_records == 310


HOLDS = """
    import sys
    from shoal.incremental.store import Store
    from pathlib import Path

    store = Store.open(Path(sys.argv[1]))
    with getattr(store, sys.argv[2])():
        print("held", flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def holding(tmp_path):
    """Return a function that has another process hold a lock of the collection."""
    processes = []

    def hold(lock):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(HOLDS), str(tmp_path / "evening"), lock],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout.readline() == "held\n"

    yield hold
    for process in processes:
        process.communicate()


def test_two_processes_do_not_compute_at_once_but_records_go_on_arriving(evening, holding):
    holding("working")

    evening.add(voters(40, seed=1))
    with pytest.raises(FileError, match="Another process is using"):
        released(evening)


def test_two_processes_do_not_change_the_collection_at_once(evening, holding, monkeypatch):
    monkeypatch.setattr("shoal.incremental.store._WAIT", 0.1)
    holding("changing")

    with pytest.raises(FileError, match="Another process is using"):
        evening.add(voters(40, seed=1))


def test_settings_that_nobody_knows_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="Unknown variant"):
        begin(tmp_path / "evening", voters(100), k=5, variant="fast", **ROLES)
    with pytest.raises(ParameterError, match="no key 'colour'"):
        begin(tmp_path / "evening", voters(100), k=5, colour="red", **ROLES)
    with pytest.raises(ParameterError, match="cannot be given together with a job"):
        begin(tmp_path / "evening", voters(100), Job.of(k=5, roles=ROLES), k=5)
    with pytest.raises(ParameterError, match="Unknown method"):
        begin(tmp_path / "evening", voters(100), k=5, method="fast", **ROLES)
    with pytest.raises(ParameterError, match="'mdav' has no option 'effort'"):
        begin(tmp_path / "evening", voters(100), k=5, method="mdav", options={"effort": "best"}, **ROLES)
    assert os.listdir(tmp_path) == []


def test_a_job_does_as_well_as_keywords(tmp_path):
    job = Job.of(k=5, roles=ROLES, seed=7)
    one = released(begin(tmp_path / "one", voters(100), job))
    two = released(begin(tmp_path / "two", voters(100), k=5, seed=7, **ROLES))

    assert one.table.equals(two.table)


def in_a_file(path, table, end):
    """Write a table as CSV with these line ends."""
    rows = [table.column_names, *zip(*(column.to_pylist() for column in table.columns), strict=True)]
    path.write_bytes(end.join(",".join(map(str, row)) for row in rows).encode() + end.encode())
    return path


@pytest.mark.parametrize("which", [0, 1])
def test_the_same_records_in_another_order_or_file_are_not_added_twice(which, evening, tmp_path):
    evening.add(in_a_file(tmp_path / "first.csv", voters(40, seed=1), "\n"))
    batch = [voters(300), voters(40, seed=1)][which]
    for again in (in_a_file(tmp_path / "again.csv", batch, "\r\n"), batch.take(list(reversed(range(len(batch)))))):
        with pytest.raises(FileError, match=f"as {['the base', 'batch 1'][which]}, in another order"):
            Collection.open(tmp_path / "evening").add(again)

    assert Collection.open(tmp_path / "evening").n_records == [300, 40]


def test_an_overlap_beyond_chance_is_asked_about_and_taken_on_request(evening):
    late = pa.concat_tables([voters(30, seed=3), voters(300).slice(20, 10)])
    with pytest.raises(FileError, match=r"11 of the 40 records are equal .* chance explains at most 8: "):
        evening.add(late)
    evening.add(late, allow_overlap=True)

    assert evening.n_records == [300, 40]


def test_records_that_are_equal_by_chance_are_not_asked_about(tmp_path):
    def coarse(n, seed):
        return voters(n, seed).set_column(1, "age", pa.array(voters(n, seed)["age"].to_numpy().round(-1)))

    collection = begin(tmp_path / "coarse", coarse(300, 0), k=5, seed=7, **ROLES)
    for seed in range(1, 6):
        collection.add(coarse(60, seed))

    assert collection.n_records == [300, 60, 60, 60, 60, 60]


def test_a_release_that_cannot_be_written_leaves_the_collection_unfinished(evening, tmp_path):
    with pytest.raises(FileError):
        released(evening, output=tmp_path / "no folder" / "release.csv")
    (tmp_path / "there.csv").write_text("precious")
    with pytest.raises(FileError):
        released(evening, output=tmp_path / "there.csv")

    assert not Collection.open(tmp_path / "evening").is_finished
    evening.add(voters(40, seed=1))
    released(evening, output=tmp_path / "release.csv", order="keep")
    assert Collection.open(tmp_path / "evening").is_finished
    assert len((tmp_path / "release.csv").read_text().splitlines()) == 341


@pytest.mark.parametrize("name", ["encoded.npy", "cells.npy", "keys-0000.npy", "records-0000.arrow"])
def test_a_damaged_file_is_refused_whether_it_is_needed_or_not(name, evening, tmp_path):
    path = tmp_path / "evening" / name
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match=f"{name} .* is damaged"):
        Collection.open(tmp_path / "evening")
    with pytest.raises(FileError, match=f"{name} .* is damaged"):
        evening.add(voters(40, seed=1))


def test_every_file_is_hashed_once_and_the_space_is_fitted_once(evening, tmp_path, monkeypatch):
    from shoal.incremental import collection, store

    hashed, fitted = [], []
    sha256, fit = store.sha256, collection.Space.fit
    monkeypatch.setattr(store, "sha256", lambda path: hashed.append(path.name) or sha256(path))
    monkeypatch.setattr(collection.Space, "fit", lambda *given: fitted.append(1) or fit(*given))
    opened = Collection.open(tmp_path / "evening")
    opened.add(voters(40, seed=1))
    opened.add(voters(40, seed=2))
    released(opened)

    assert hashed.count("records-0000.arrow") == 1
    assert len(fitted) == 1


def test_begin_without_room_on_the_disk_says_so(tmp_path):
    code = f"""
import resource, signal, pyarrow as pa
from shoal.incremental.collection import begin
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
table = pa.table({{"a": pa.array(range(2000), pa.int16())}})
try:
    begin({str(tmp_path / "evening")!r}, table, k=5, quasi_identifiers=["a"], seed=1)
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.startswith("FileError")
    assert "success" not in said.lower()
    assert "larger than the system allows" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", ["call", "job"])
def test_the_inertial_coefficient_is_asked_for_by_call_or_job(how, tmp_path):
    late = {"variant": "split-end", "inertial": True}
    job = Job.of(k=5, seed=7, roles=ROLES, late=late if how == "job" else None)
    said = {} if how == "job" else late
    collections = [begin(tmp_path / "inertial", voters(300), job, **said)]
    collections.append(begin(tmp_path / "plain", voters(300), k=5, seed=7, variant="split-end", **ROLES))
    for collection in collections:
        collection.add(voters(200, seed=1))
    labels = [released(collection).labels for collection in collections]

    assert Collection.open(tmp_path / "inertial").inertial
    assert not np.array_equal(*labels)


@pytest.mark.parametrize(
    ("late", "beside", "said"),
    [
        ({"variant": "reopen", "inertial": True}, {}, "inertial"),
        ({"variant": "no such"}, {}, "Unknown variant"),
        ({"variant": "split-end"}, {"variant": "two-step"}, "Give them in one place"),
    ],
)
def test_ways_to_join_that_cannot_be_are_refused(late, beside, said, tmp_path):
    with pytest.raises(ParameterError, match=said):
        begin(tmp_path / "evening", voters(30), Job.of(k=5, roles=ROLES, late=late), **beside)
    assert not (tmp_path / "evening").exists()


def test_a_job_for_a_collection_is_not_run_without_one():
    with pytest.raises(ParameterError, match="apply only to a collection"):
        run(Job.of(k=5, roles=ROLES, late={"variant": "nearest"}), voters(30))


def members(ids):
    values = np.random.default_rng(5).integers(0, 1000, (2_000, 2))[ids]
    where = pa.array(["north", "south"]).take(pa.array(values[:, 1] % 2))
    return pa.table({"id": ids, "age": 18 + values[:, 0] % 70, "income": values[:, 1], "district": where})


@pytest.fixture
def club(tmp_path):
    roles = {"quasi_identifiers": ["age", "income"], "by": ["district"], "key": "id"}
    begin(tmp_path / "club", members(np.arange(300)), k=5, seed=1, **roles)
    return tmp_path / "club"


def test_a_collection_with_a_key_is_released_again_after_its_earlier_releases(club, tmp_path):
    Collection.open(club).add(members(np.arange(300, 360)))
    first = Collection.open(club).finish(output=tmp_path / "first.csv")
    Collection.open(club).add(members(np.arange(360, 420)))
    second = Collection.open(club).finish(output=tmp_path / "second.csv")
    again = Collection.open(club).finish(output=tmp_path / "again.csv")
    files = [tmp_path / "first.csv", tmp_path / "second.csv"]
    names = ["age", "income", "district"]
    later = shoal.anonymize(
        members(np.arange(450)),
        k=5,
        quasi_identifiers=names[:2],
        by=names[2],
        key="id",
        after=[f"{file}.cells" for file in files],
    )

    assert second.table.slice(0, 360).equals(first.table)
    assert second.series.verdict.holds
    assert second.series.verdict.present.n_people == 420
    assert (tmp_path / "again.csv").read_bytes() == files[1].read_bytes()
    assert again.series.cells.identity == second.series.cells.identity
    assert shoal.audit_series(files, quasi_identifiers=names, k=5).holds
    assert later.series.verdict.n_releases == 3
    assert Collection.open(club).n_released == 2


def test_newcomers_too_few_for_a_cell_wait_for_a_later_release_if_they_may(club, tmp_path):
    Collection.open(club).finish()
    Collection.open(club).add(members(np.arange(300, 303)))
    with pytest.raises(GuaranteeError, match="3 who are new"):
        Collection.open(club).finish(output=tmp_path / "second.csv")
    second = Collection.open(club).finish(may_withhold=0.01)
    Collection.open(club).add(members(np.arange(303, 340)))
    third = Collection.open(club).finish()

    assert not (tmp_path / "second.csv").exists()
    assert (second.verdict.n_records, third.verdict.n_records) == (300, 340)
    assert third.series.verdict.holds


def test_what_a_collection_of_a_series_cannot_do_is_refused(club, tmp_path):
    with pytest.raises(SchemaError, match="1 persons"):
        Collection.open(club).add(members(np.array([7, 700, 701])))
    with pytest.raises(ParameterError, match="has made none"):
        Collection.open(club).finish(may_withhold=0.1)
    for settings in ({"after": ["r.cells"]}, {"reserve": 0.1}):
        with pytest.raises(ParameterError, match="continues the releases that it makes"):
            begin(tmp_path / "x", members(np.arange(50)), k=5, quasi_identifiers="age", key="id", **settings)
