"""A release that holds people of another one, which it knows nothing of, is warned of before it is written."""

import warnings
from io import StringIO

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import shoal
from shoal.app.child_process import JsonLines, released
from shoal.app.draft import Draft
from shoal.cli import main
from shoal.errors import FileError, ShoalWarning
from shoal.sources import write

ROLES = {"quasi_identifiers": ["age", "income"], "k": 5, "seed": 1}


def people(ids):
    values = np.random.default_rng(5).integers(0, 1000, (5_000, 2))[ids]
    return pa.table({"id": ids, "age": 18 + values[:, 0] % 70, "income": values[:, 1]})


def warned_of(release, path, **how):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ShoalWarning)
        release.write(path, **how)
    return [str(each.message) for each in caught]


@pytest.fixture
def earlier(tmp_path):
    """Releases of 400 people, with and without a key."""
    table = people(np.arange(400))
    found = {
        "keyed": shoal.anonymize(table, key="id", **ROLES),
        "plain": shoal.anonymize(table, identifiers="id", **ROLES),
    }
    for name, release in found.items():
        (tmp_path / name).mkdir()
        release.write(tmp_path / name / "first.csv")
    return found


@pytest.mark.parametrize("name", ["keyed", "plain"])
def test_the_same_table_is_recognised_by_its_hash_but_not_the_same_release_in_another_file(name, earlier, tmp_path):
    again = shoal.anonymize(people(np.arange(400)), identifiers="id", **{**ROLES, "k": 6})

    assert warned_of(earlier[name], tmp_path / name / "again.parquet") == []
    (text,) = warned_of(again, tmp_path / name / "other.csv")
    assert "The same table was released before, as 'again.parquet', 'first.csv'" in text
    assert "shoal audit --series" in text


@pytest.mark.parametrize("role", ["key", "identifiers", "subject"])
def test_most_people_are_recognised_by_keyed_hashes(role, earlier, tmp_path):
    next_year = shoal.anonymize(people(np.arange(150, 460)), **{role: "id"}, **ROLES)
    others = shoal.anonymize(people(np.arange(350, 460)), **{role: "id"}, **ROLES)

    (text,) = warned_of(next_year, tmp_path / "next.csv", releases=tmp_path / "keyed")
    assert "Most people of the table, or of 'first.csv', are in both" in text
    text, _ = warned_of(next_year, tmp_path / "next.csv", releases=tmp_path, force=True)
    assert "Most people of the table, or of 'keyed/first.csv', are in both" in text
    (tmp_path / "apart").mkdir()
    assert warned_of(others, tmp_path / "apart" / "others.csv", releases=tmp_path / "keyed") == []


def test_without_keys_the_same_columns_are_a_reason_to_look(earlier, tmp_path):
    next_year = shoal.anonymize(people(np.arange(150, 460)), identifiers="id", **ROLES)
    other_columns = shoal.anonymize(
        people(np.arange(460)).drop_columns("income"), key="id", k=5, quasi_identifiers="age"
    )

    (text,) = warned_of(next_year, tmp_path / "plain" / "next.csv")
    assert "The same quasi-identifiers were published in 'first.csv'" in text
    assert warned_of(other_columns, tmp_path / "plain" / "other.csv") == []


def test_a_release_after_the_others_is_not_warned_of_and_one_that_leaves_one_out_is(earlier, tmp_path):
    folder = tmp_path / "keyed"
    first = earlier["keyed"]
    second = shoal.anonymize(people(np.arange(460)), key="id", after=folder / "first.csv.cells", **ROLES)
    fork = shoal.anonymize(people(np.arange(470)), key="id", after=folder / "first.csv.cells", **ROLES)
    version = shoal.anonymize(folder / "first.csv", after=folder / "first.csv.cells", **{**ROLES, "k": 20})
    divided = shoal.anonymize(folder / "first.csv", **{**ROLES, "k": 20})

    assert first.series is not None
    assert warned_of(second, folder / "second.csv") == []
    assert warned_of(second, folder / "second.csv", force=True) == []
    assert warned_of(version, folder / "public.csv") == []
    partners = shoal.anonymize(folder / "first.csv", after=folder / "first.csv.cells", **{**ROLES, "k": 10})
    other = shoal.anonymize(folder / "first.csv", after=folder / "first.csv.cells", **{**ROLES, "k": 20, "seed": 2})
    assert warned_of(partners, folder / "partners.csv") == []
    (text,) = warned_of(other, folder / "other.csv")
    assert "'public.csv' belongs to the same series and is not named" in text
    (text,) = warned_of(fork, folder / "fork.csv")
    assert "'second.csv' belongs to the same series and is not named" in text
    texts = warned_of(divided, tmp_path / "divided.csv", releases=folder)
    assert "The table is the published file 'first.csv'" in texts[0]
    assert "The same table was released before, as 'other.csv', 'partners.csv', 'public.csv'" in texts[1]


def test_files_that_are_no_manifests_say_nothing_and_a_folder_that_is_missing_is_refused(earlier, tmp_path):
    for name, text in {"a": "", "b": "[]", "c": '{"job": 1}', "d": "\x00"}.items():
        (tmp_path / f"{name}.internal.json").write_text(text, encoding="utf-8")

    assert warned_of(earlier["plain"], tmp_path / "release.csv") == []
    with pytest.raises(FileError, match="does not exist"):
        earlier["plain"].write(tmp_path / "more.csv", releases=tmp_path / "nowhere")


def test_the_command_and_the_job_warn(earlier, tmp_path):
    write(people(np.arange(460)), tmp_path / "survey.csv")
    job = tmp_path / "job.toml"
    asked = ["--quasi-identifiers", "age,income", "-k", 5, "--identifiers", "id", "--releases", tmp_path / "keyed"]
    runner = CliRunner()
    for arguments in (
        ["anonymize", tmp_path / "survey.csv", *asked, "-o", tmp_path / "a.csv", "--save-job", job],
        ["run", job, "--force"],
    ):
        result = runner.invoke(main, [*map(str, arguments)])

        assert result.exit_code == 0
        assert result.stderr.count("Warning: Most people of the table, or of 'first.csv', are in both.") == 1


def test_the_app_warns_with_its_result(earlier, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(people(np.arange(460)), tmp_path / "survey.csv")
    draft = Draft.read(
        "k = 5\n[roles]\nidentifiers = ['id']\nquasi_identifiers = ['age', 'income']\n[input]\npath = 'survey.csv'\n"
        "[output]\npath = 'release.csv'\nreleases = 'keyed'\nreport = 'release.html'\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = released(draft, JsonLines(StringIO()), job_file="job.toml", public="public.html")

    assert any("Most people of the table, or of 'first.csv', are in both" in text for text in result["warnings"])
