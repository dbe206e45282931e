"""Releases after earlier ones of the same people: nobody can be singled out by an owner of all of them."""

import hashlib
import json
import os
import stat
from dataclasses import replace

import generated
import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from generated import K, L, attacked, tables
from intruder import Intruder, published

import shoal
from shoal import FileError, GuaranteeError, LDiversity, ParameterError, SchemaError, ShoalError
from shoal.cli import main
from shoal.columns.value_hashes import value_hashes
from shoal.series.cells_file import FORMAT, CellsOfRelease
from shoal.sources import read, write

pytestmark = pytest.mark.filterwarnings("ignore::shoal.ShoalWarning")
ROLES = {"quasi_identifiers": ["age", "income"], "key": "id", "k": 5, "seed": 1}


def people(ids):
    """People whose values depend on nothing but their number."""
    values = np.random.default_rng(5).integers(0, 1000, (5_000, 2))[ids]
    return pa.table({"id": ids, "age": 18 + values[:, 0] % 70, "income": values[:, 1]})


@pytest.mark.parametrize("leavers", ["withhold", "state"])
@pytest.mark.parametrize("number", range(8))
def test_an_intruder_with_all_releases_finds_k_people_and_l_values(number, leavers):
    found, n_research, n_versions = attacked(number, leavers)

    assert n_research
    assert n_versions
    assert found == []


def test_the_same_intruder_succeeds_where_releases_know_nothing_of_one_another():
    found = 0
    for number in range(3):
        seen = []
        for table in tables(number):
            release = shoal.anonymize(table, k=K, models=LDiversity("diagnosis", l=L), seed=number, **generated.ROLES)
            people_of = table["id"].to_pylist()
            seen.append(published(release.published, table, ["age", "group"], people_of, "diagnosis"))
        found += len(Intruder(seen).attack(K, L))

    assert found > 100


@pytest.fixture(scope="module")
def first():
    return shoal.anonymize(people(np.arange(400)), reserve=0.1, **ROLES)


def test_those_who_stay_are_published_with_the_values_they_had(first):
    ids = np.concatenate([np.arange(25, 400), np.arange(400, 460)])
    changed = people(ids)
    ages = np.asarray(changed["age"]) + (np.asarray(changed["id"]) % 40 == 0)  # of one in forty
    changed = changed.set_column(1, "age", pa.array(ages))
    second = shoal.anonymize(changed, after=first, leavers="state", may_withhold=0.05, **ROLES)
    before = dict(zip(range(400), first.published.to_pylist(), strict=True))
    kept = ids[second.series.plan.records]
    after = dict(zip(kept.tolist(), second.published.to_pylist(), strict=True))

    assert len(after) > 400
    assert all(after[i] == before[i] for i in after if i < 400)
    assert second.verdict.smallest >= 5
    assert second.loss.il > 0
    assert second.series.verdict.present.holds
    assert "nothing but the class they were in" in second.series.sentence


def test_a_column_in_which_k_people_of_a_class_have_changed_is_published_anew(first):
    older = people(np.arange(400))
    older = older.set_column(1, "age", pa.array(np.asarray(older["age"]) + 1))
    second = shoal.anonymize(older, after=first, **ROLES)
    third = shoal.anonymize(people(np.arange(400)), after=[first, second], **ROLES)

    np.testing.assert_allclose(second.published["age"].to_numpy(), first.published["age"].to_numpy() + 1)
    assert second.published["income"].equals(first.published["income"])
    assert second.series.verdict.holds
    assert third.published["age"].equals(second.published["age"])  # nobody has an age that was not seen before


def test_where_few_leave_a_class_the_rest_of_it_is_withheld_unless_it_may_be_stated(first):
    staying = people(np.arange(1, 400))
    classes = first.series.cells.classes
    others = np.count_nonzero(classes == classes[0]) - 1
    with pytest.raises(GuaranteeError, match=f"{others} of 399 people .* may_withhold=0.0"):
        shoal.anonymize(staying, after=first, **ROLES)
    strict = shoal.anonymize(staying, after=first, may_withhold=0.05, **ROLES)
    stated = shoal.anonymize(staying, after=first, leavers="state", **ROLES)

    assert strict.verdict.n_records == 399 - others
    assert strict.series.verdict.holds
    assert stated.verdict.n_records == 399
    assert (stated.series.verdict.left.n_below, stated.series.verdict.left.n_computed) == (1, 0)


def test_a_release_is_the_same_whatever_the_order_of_the_records(first, tmp_path):
    table = people(np.arange(30, 430))
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(table.num_rows)))
    written = []
    for number, rows in enumerate((table, shuffled)):
        release = shoal.anonymize(rows, after=first, leavers="state", may_withhold=0.2, **ROLES)
        release.write(tmp_path / f"{number}.csv")
        written.append((tmp_path / f"{number}.csv").read_bytes())

    assert written[0] == written[1]


def test_a_class_that_is_seen_again_may_come_back_only_with_k_of_its_people(first):
    classes = first.series.cells.classes
    some = np.flatnonzero(classes == classes[0])
    without = shoal.anonymize(people(np.setdiff1d(np.arange(400), some)), after=first, **ROLES)
    few = people(np.setdiff1d(np.arange(400), some[4:]))
    all_back = people(np.arange(400))
    with pytest.raises(GuaranteeError, match="4 of whose group fewer than k are left"):
        shoal.anonymize(few, after=[first, without], **ROLES)
    third = shoal.anonymize(all_back, after=[without, first], **ROLES)

    assert third.published.to_pylist() == first.published.to_pylist()
    assert third.series.verdict.holds
    assert third.series.verdict.n_releases == 3


def test_a_coarser_version_is_made_of_the_published_file_and_divides_no_class(first, tmp_path):
    first.write(tmp_path / "research.csv")
    cells = tmp_path / "research.csv.cells"
    public = shoal.anonymize(tmp_path / "research.csv", k=20, quasi_identifiers=["age", "income"], after=cells, seed=2)
    public.write(tmp_path / "public.parquet")
    fine = CellsOfRelease.read(cells).classes
    pairs = {tuple(pair) for pair in zip(fine.tolist(), public.series.cells.classes.tolist(), strict=True)}

    assert public.verdict.smallest >= 20
    assert len(pairs) == first.verdict.n_classes
    assert "learns nothing" in public.series.sentence
    research = read(tmp_path / "research.csv").arrow
    assert np.isclose(np.mean(research["income"].to_numpy()), np.mean(public.published["income"].to_numpy()))


def test_versions_of_editions_form_a_series_of_their_own(first, tmp_path):
    first.write(tmp_path / "r1.csv")
    asked = {"quasi_identifiers": ["age", "income"], "k": 15, "seed": 2}
    shoal.anonymize(tmp_path / "r1.csv", after=tmp_path / "r1.csv.cells", reserve=0.2, **asked).write(
        tmp_path / "p1.csv"
    )
    table = people(np.arange(20, 500))
    second = shoal.anonymize(table, after=tmp_path / "r1.csv.cells", leavers="state", may_withhold=0.05, **ROLES)
    second.write(tmp_path / "r2.csv")
    earlier = [tmp_path / "r2.csv.cells", tmp_path / "p1.csv.cells"]
    public = shoal.anonymize(tmp_path / "r2.csv", after=earlier, leavers="state", may_withhold=0.1, **asked)

    assert public.series.cells.version_of == (CellsOfRelease.read(earlier[0]).identity,)
    assert public.series.verdict.present.smallest >= 15
    assert public.series.verdict.present.holds
    assert public.verdict.n_records > 400


def test_newcomers_who_look_like_an_old_class_are_apart_in_versions_too():
    def survey(n):
        ids = np.arange(n)
        return pa.table({"id": ids, "age": 20 + 20 * (ids % 3), "town": pa.array(["A", "B"]).take(ids % 2)})

    roles = {"quasi_identifiers": ["age", "town"], "seed": 1}
    research, public, open_ = [], [], []
    for n in (120, 180):
        research.append(shoal.anonymize(survey(n), k=5, key="id", after=research, **roles))
        public.append(shoal.anonymize(research[-1].published, k=20, after=[*research, *public], **roles))
        # A version of a version, after all of its own kind and of the kind that it is made of.
        open_.append(shoal.anonymize(public[-1].published, k=40, after=[*public, *open_], **roles))
    cells = research[-1].series.cells

    assert research[1].verdict.n_classes == research[0].verdict.n_classes == 6
    assert len(np.unique(cells.groups)) == 12
    assert public[1].verdict.n_records == 180
    assert public[1].series.verdict.present.smallest >= 20
    assert public[1].series.to_dict()["version_of"] == cells.identity
    assert "or from 9 with the releases that these are computed from" in public[1].series.sentence
    assert open_[1].series.verdict.present.smallest >= 40
    assert len(open_[1].series.cells.version_of) == 2


def test_the_cells_file_is_private_whole_and_free_of_values(tmp_path):
    table = people(np.arange(100))
    names = pa.array([f"Zyxwv{i}" for i in range(100)])
    table = table.set_column(0, "id", names).append_column("note", pa.array([f"qqnote{i}" for i in range(100)]))
    release = shoal.anonymize(table, confidential="note", accept="published-identifier", **ROLES)
    release.write(tmp_path / "release.csv")
    file = tmp_path / "release.csv.cells"
    again = CellsOfRelease.read(file)

    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not any(planted in file.read_bytes() for planted in (b"Zyxwv", b"qqnote"))
    own = value_hashes(table["income"].combine_chunks())[0]
    assert not np.isin(own, again.own).any()
    assert again.to_bytes() == file.read_bytes()
    assert again.published == read(tmp_path / "release.csv").sha256


def broken(path, how):
    content = path.read_bytes()
    first, rest = content.split(b"\n", 1)
    path.write_bytes(
        {
            "cut": content[:-100],
            "changed": content[:200] + b"x" + content[201:],
            "newer": first.replace(b" %d " % FORMAT, b" %d " % (FORMAT + 1)) + b"\n" + rest,
            "another file": b"age,income\n1,2\n",
            "empty": b"",
        }[how]
    )


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("cut", "is damaged"),
        ("changed", "is damaged"),
        ("newer", "newer version of shoal"),
        ("another file", "is not a cells file"),
        ("empty", "is not a cells file"),
    ],
)
def test_a_cells_file_that_is_not_whole_is_refused(how, words, first, tmp_path):
    first.write(tmp_path / "r.csv")
    broken(tmp_path / "r.csv.cells", how)

    with pytest.raises(ShoalError, match=words):
        shoal.anonymize(people(np.arange(400)), after=tmp_path / "r.csv.cells", **ROLES)


def with_key(values):
    return people(np.arange(len(values))).set_column(0, "id", pa.array(values))


@pytest.mark.parametrize("change", ["secret", "after", "columns", "no people", "class", "text"])
def test_a_cells_file_that_somebody_has_changed_is_refused_in_one_paragraph(change, first, tmp_path):
    first.write(tmp_path / "r.csv")
    file = tmp_path / "r.csv.cells"
    header, tables = file.read_bytes().split(b"\n", 1)[1].split(b"\n", 1)
    about = json.loads(header)
    if change in about:
        about |= {"secret": ""} if change == "secret" else {}
        about |= {"columns": {"note": {}}} if change == "columns" else {}
        about = {name: value for name, value in about.items() if name != "after" or change != "after"}
    if change == "class":
        cells = CellsOfRelease.read(file)
        tables = replace(cells, classes=cells.classes + 10**6).to_bytes().split(b"\n", 2)[2]
    content = {"no people": b"", "text": b"age,income"}.get(change, tables)
    rest = json.dumps(about).encode() + b"\n" + content
    file.write_bytes(b"shoal cells %d %s\n" % (FORMAT, hashlib.sha256(rest).hexdigest().encode()) + rest)
    with pytest.raises(FileError, match="has been changed") as caught:
        shoal.anonymize(people(np.arange(400)), after=file, **ROLES)

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "settings", "error", "words"),
    [
        (people(np.arange(1_000, 1_400)), {}, ParameterError, "Nobody in the table is in an earlier release"),
        (with_key([*range(399), 7]), {}, SchemaError, "keys repeat"),
        (with_key([*range(399), None]), {}, SchemaError, "missing or blank in 1 records"),
        (people(np.arange(400)), {"key": None, "identifiers": "id"}, ParameterError, "Name the column that does"),
        (people(np.arange(400)), {"k": 20, "may_withhold": 1.0}, GuaranteeError, "400 of whose group fewer than k"),
        (people(np.arange(400)), {"other": "id"}, SchemaError, "would be published"),
        (people(np.arange(400)), {"rho": 0.5}, ParameterError, "random aggregation"),
        (people(np.arange(400)), {"truthful": True}, ParameterError, "true of everybody"),
        (
            people(np.arange(400)),
            {"quasi_identifiers": ["age"], "other": "income"},
            SchemaError,
            "'income' is one only",
        ),
        (people(np.arange(400)), {"engine": "disk"}, ParameterError, "history of every person"),
        (people(np.arange(400)), {"after": ["nothing.cells"]}, ShoalError, "cannot be read"),
        (people(np.arange(400)), {"after": ["release:0"]}, ParameterError, "was in memory"),
    ],
)
def test_what_cannot_continue_a_series_is_refused(table, settings, error, words, first, tmp_path):
    given = {**ROLES, "after": first, **settings}
    if given.get("engine"):
        write(table, tmp_path / "table.parquet")
        table = tmp_path / "table.parquet"
        given["after"] = ["r.cells"]
    with pytest.raises(error, match=words):
        shoal.anonymize(table, **given)


@pytest.mark.parametrize(("name", "tree"), [("region", False), ("region", True), ("height", False)])
def test_a_class_shows_what_nobody_has_any_more(name, tree, tmp_path):
    (tmp_path / "tree.csv").write_text("z;north;all\na;north;all\nb;north;all\nc;south;all\nd;south;all\n")
    before = {"region": ["z"] * 4 + ["a"], "height": [None] * 4 + [1.5]}[name]
    after = {"region": ["z", "a", "b", "c", "a"], "height": [1.5, 2.5, 2.5, 2.5, 1.5]}[name]  # of fewer than k
    gone = [after[-1] if value == before[0] else value for value in after]
    rest = {"region": ["a", "b", "c", "d"] * 4, "height": [1.5, 2.5, 3.5, 4.5] * 4}[name]

    def edition(values):
        ids, town = np.arange(21), ["A"] * 5 + ["B"] * 16
        age = np.arange(21) * 37 % 60 + 20
        return pa.table({"id": ids, "town": town, "age": age, name: [*values, *rest]})

    columns = {name: {"hierarchy": str(tmp_path / "tree.csv")}} if tree else None
    asked = {**ROLES, "quasi_identifiers": ["age", name], "by": ["town"], "missing": "own-value", "columns": columns}
    first = shoal.anonymize(edition(before), **asked)
    release = shoal.anonymize(edition(gone), after=first, **asked)
    release.write(tmp_path / "r.csv", report=tmp_path / "r.html")

    of_town = release.published.filter(pa.compute.equal(release.published["town"], "A"))
    assert of_town[name].to_pylist() == [before[0]] * 5
    assert 0 < release.loss.il <= 1


def test_releases_of_different_series_and_unnamed_ones_are_refused(first):
    other = shoal.anonymize(people(np.arange(300)), **{**ROLES, "seed": 2})
    same_seed = shoal.anonymize(people(np.arange(300)), **ROLES)
    second = shoal.anonymize(people(np.arange(400)), after=first, **ROLES)
    version = shoal.anonymize(first.published, after=first, **{**ROLES, "key": None})
    for after, words in (
        ([first, other], "different series"),
        ([first, same_seed], "different series"),
        ([second], "after, or as a version of, 1 that are not named"),
        ([version], "after, or as a version of, 1 that are not named"),
        ([first] * 2, "twice"),
    ):
        with pytest.raises(ParameterError, match=words):
            shoal.anonymize(people(np.arange(400)), after=after, **ROLES)


@pytest.mark.parametrize("version_first", [True, False])
def test_after_an_edition_and_its_version_people_are_published_as_in_the_edition(first, version_first):
    asked = {**ROLES, "key": None}
    version = shoal.anonymize(first.published, after=first, **{**asked, "k": 20})
    after = [version, first] if version_first else [first, version]
    release = shoal.anonymize(people(np.arange(400)), after=after, **ROLES)

    assert release.verdict.n_classes == first.verdict.n_classes > version.verdict.n_classes


def test_settings_of_a_series_need_one():
    for settings in ({"leavers": "state"}, {"may_withhold": 0.1}, {"reserve": 0.1, "key": None, "identifiers": "id"}):
        with pytest.raises(ParameterError, match="Name"):
            shoal.anonymize(people(np.arange(100)), **{**ROLES, **settings})


def test_a_release_that_fails_leaves_no_cells_file(first, tmp_path):
    with pytest.raises(RuntimeError):
        first.write(tmp_path / "r.csv", before_publishing=lambda: (_ for _ in ()).throw(RuntimeError))

    assert list(tmp_path.iterdir()) == []


def test_the_report_and_the_manifest_say_what_an_owner_of_all_releases_learns(first, tmp_path):
    table = people(np.arange(20, 430)).append_column("note", pa.array([f"n{i % 7}" for i in range(410)]))
    noted = people(np.arange(400)).append_column("note", pa.array([f"n{i % 5}" for i in range(400)]))
    before = shoal.anonymize(noted, reserve=0.1, confidential="note", **ROLES)
    asked = {"after": before, "leavers": "state", "may_withhold": 0.1, "confidential": "note", **ROLES}
    release = shoal.anonymize(table, **asked)
    release.write(tmp_path / "r.csv", report=tmp_path / "r.html", json=tmp_path / "r.json")
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["series"]
    manifest = json.loads((tmp_path / "r.csv.internal.json").read_text(encoding="utf-8"))["series"]

    assert "subtraction tells the values of" in release.series.sentence
    assert any("who left" in text for text in release.warnings)
    assert 0 < report["il_without_history"] < report["il"]
    assert "without history it would be" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert manifest["recount"]["present"]["n_below"] == 0
    assert "series" not in json.loads((tmp_path / "r.csv.public.json").read_text(encoding="utf-8"))


def test_published_files_are_audited_by_the_cells_files_beside_them(first, tmp_path):
    first.write(tmp_path / "a.csv")
    second = shoal.anonymize(people(np.arange(20, 430)), after=first, leavers="state", may_withhold=0.1, **ROLES)
    second.write(tmp_path / "b.parquet")
    files = [tmp_path / "a.csv", tmp_path / "b.parquet"]
    verdict = shoal.audit_series(files, quasi_identifiers=["age", "income"], k=5)

    assert verdict.present == second.series.verdict.present
    assert verdict.left == second.series.verdict.left
    (tmp_path / "a.csv").write_bytes((tmp_path / "a.csv").read_bytes() + b"1,2\n")
    with pytest.raises(FileError, match="belongs to another file"):
        shoal.anonymize(people(np.arange(400)), after=tmp_path / "a.csv.cells", **ROLES)
    with pytest.raises(FileError, match="belongs to another file"):
        shoal.audit_series(files, quasi_identifiers=["age", "income"], k=5)
    with pytest.raises(ParameterError, match="a table in memory"):
        shoal.audit_series([first.table, second.table], quasi_identifiers=["age", "income"], k=5)


def test_published_files_are_audited_by_their_internal_manifests_and_the_originals(tmp_path):
    given = [people(np.arange(400)), people(np.arange(20, 430))]
    roles = {**ROLES, "key": None, "identifiers": "id"}
    files, originals = [tmp_path / "a.csv", tmp_path / "b.csv"], [tmp_path / "1.parquet", tmp_path / "2.csv"]
    releases = [shoal.anonymize(table, **roles) for table in given]
    for table, release, file, original in zip(given, releases, files, originals, strict=True):
        write(table, original)
        release.write(file)
    asked = {"quasi_identifiers": ["age", "income"], "k": 5}
    copies = [
        release.published.append_column("id", table["id"]) for table, release in zip(given, releases, strict=True)
    ]
    verdict = shoal.audit_series(files, originals=originals, key="id", **asked)

    assert verdict == shoal.audit_series(copies, key="id", **asked)
    assert verdict.present.n_alone
    for settings, words in (
        ({"originals": originals[:1], "key": "id"}, "2 releases and 1 originals"),
        ({"originals": originals}, "and no key"),
        ({"originals": originals[::-1], "key": "id"}, "in the order of the releases"),
        ({"originals": originals, "key": "name"}, "An original has no column 'name'"),
    ):
        with pytest.raises(ShoalError, match=words):
            shoal.audit_series(files, **settings, **asked)
    (tmp_path / "a.csv.internal.json").unlink()
    with pytest.raises(ParameterError, match="no internal manifest beside it"):
        shoal.audit_series(files, originals=originals, key="id", **asked)


def test_the_command_audits_a_series_by_the_originals(tmp_path):
    files = []
    for name, ids in (("1", np.arange(200)), ("2", np.arange(20, 230))):
        write(people(ids), tmp_path / f"{name}.csv")
        release = shoal.anonymize(tmp_path / f"{name}.csv", **{**ROLES, "key": None, "identifiers": "id"})
        release.write(tmp_path / f"r{name}.csv")
        files += [str(tmp_path / f"r{name}.csv"), "--originals", str(tmp_path / f"{name}.csv")]
    asked = ["--key", "id", "--quasi-identifiers", "age,income", "-k", "5"]
    result = CliRunner().invoke(main, ["audit", "--series", *files, *asked])

    assert result.exit_code == 1
    assert "does not hold over 2 releases with k = 5" in result.stdout
