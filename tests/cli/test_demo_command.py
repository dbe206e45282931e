import pytest
from shell import is_one_paragraph, shoal_command

import shoal
from shoal import datasets

FILES = {"release.csv", "release.csv.internal.json", "release.csv.public.json", "report.html"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    return folder, shoal_command("demo", "--output", folder)


def test_the_demo_writes_a_release_and_its_report(demo):
    folder, result = demo

    assert result.exit_code == 0, result.output
    assert {file.name for file in folder.iterdir()} == FILES
    assert "holds: every class has at least 5 different subjects" in result.stdout
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", datasets.NAMES)
def test_a_bundled_data_set_is_written_for_the_pages_and_not_over_a_file(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = shoal_command("demo", "--data", name)
    again = shoal_command("demo", "--data", name)

    assert (result.exit_code, result.stdout) == (0, f"{name}.csv\n")
    assert (tmp_path / f"{name}.csv").read_bytes() == datasets.path(name).read_bytes()
    assert again.exit_code == 2
    assert "--force" in again.stderr


def test_what_the_demo_says_is_true(demo):
    folder, _ = demo
    measures = datasets.eia(n_columns=10).columns
    verdict = shoal.audit(folder / "release.csv", quasi_identifiers=["STATE", "MONTH", *measures], k=5)

    assert verdict.holds
    assert verdict.n_records == 4092


def test_no_name_of_a_utility_is_published(demo):
    folder, _ = demo
    names = set(shoal.sources.read(datasets.path("eia"), columns=["UTILNAME"]).arrow["UTILNAME"].to_pylist())
    texts = [file.read_text(encoding="utf-8") for file in folder.iterdir()]

    assert [name for name in names if any(name in text for text in texts)] == []


def test_the_demo_can_be_had_again_with_another_k(demo):
    folder, _ = demo
    result = shoal_command("demo", "-k", 10, "--output", folder)

    assert result.exit_code == 0, result.output
    assert "at least 10 different subjects" in result.stdout


@pytest.mark.parametrize(("arguments", "words"), [(("-k", "1"), "k=1"), (("-k", "5000"), "k=5000")])
def test_a_k_that_cannot_be_is_refused(arguments, words, tmp_path):
    result = shoal_command("demo", *arguments, "--output", tmp_path / "demo")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    result = shoal_command("demo", "--output", tmp_path / "file" / "demo")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
