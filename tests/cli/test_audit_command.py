import json

import pytest
from shell import is_one_paragraph, shoal_command, write_csv

import shoal
from shoal import auditing

ROWS = [["age", "sex", "disease", "who"], *([30 + 10 * (i // 4), "f", f"d{i % 2}", i % 3] for i in range(12))]


@pytest.fixture
def published(tmp_path):
    return write_csv(tmp_path / "published.csv", ROWS)


@pytest.mark.parametrize(
    ("k", "code", "words"), [(4, 0, "holds: every class has at least 4 records"), (5, 1, "12 of 12")]
)
def test_the_exit_code_is_the_verdict(k, code, words, published):
    result = shoal_command("audit", published, "--quasi-identifiers", "age,sex", "-k", k)

    assert result.exit_code == code
    assert words in result.stdout
    assert result.stderr == ""


def test_without_k_it_only_counts(published):
    result = shoal_command("audit", published, "--quasi-identifiers", "age,sex")

    assert result.exit_code == 0
    assert "the smallest class has 4 records" in result.stdout


def test_settings_that_an_audit_does_not_use_are_named_as_options(published):
    result = shoal_command("audit", published, "--quasi-identifiers", "age,sex", "--missing-codes", "age=30")

    assert result.exit_code == 2
    assert "--missing-codes is set for column 'age', but an audit uses only --kind and --categories." in result.stderr


def test_confidential_columns_are_measured(published):
    result = shoal_command("audit", published, "--quasi-identifiers", "age", "--confidential", "disease")

    assert "distinct l = 2, entropy l = 2, recursive c = 1, t = 0.0000" in result.stdout


def test_subjects_count_once(published):
    result = shoal_command("audit", published, "--quasi-identifiers", "age", "--subject", "who", "-k", 4)

    assert result.exit_code == 1
    assert "a class has 3 different subjects, not 4" in result.stdout


def test_json_is_the_verdict_of_the_python_call(published):
    result = shoal_command(
        "audit", published, "--quasi-identifiers", "age,sex", "--confidential", "disease", "-k", 5, "--json"
    )
    verdict = shoal.audit(published, quasi_identifiers=["age", "sex"], confidential=["disease"], k=5)

    assert result.exit_code == 1
    assert json.loads(result.stdout) == verdict.to_dict()


def test_records_below_k_and_risks_come_from_one_reading(published, tmp_path, monkeypatch):
    read, asked = auditing.read, []
    monkeypatch.setattr(auditing, "read", lambda path, **reading: asked.append(path) or read(path, **reading))
    risks = tmp_path / "risks.csv"
    result = shoal_command("audit", published, "--quasi-identifiers", "age,sex", "-k", 5, "--list", "--risks", risks)

    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1].split() == ["record", "12", "class", "of", "4", "records"]
    assert risks.read_text().splitlines()[:2] == ["record,class,size,risk", "1,0,4,0.25"]
    assert asked == [str(published)]


@pytest.mark.parametrize(
    "arguments", [(), ("--quasi-identifiers", "height"), ("--quasi-identifiers", "age", "-k", "0")]
)
def test_what_cannot_be_counted_is_refused(arguments, published):
    result = shoal_command("audit", published, *arguments)

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)


@pytest.mark.parametrize("name", ["release.csv", "people.csv", "jobs.csv"])
def test_risks_never_replace_a_file_that_is_read(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "people.csv", [["job"], *([["nurse"], ["cook"]] * 6)])
    write_csv(tmp_path / "jobs.csv", [["nurse;*"], ["cook;*"]])
    words = ["--quasi-identifiers", "job", "--hierarchy", "job=jobs.csv", "--truthful", "-k", 4]
    made = shoal_command("anonymize", "people.csv", *words, "-o", "release.csv")
    kept = (tmp_path / name).read_bytes()
    asked = ["--quasi-identifiers", "job", "-k", 4, "--original", "people.csv", "--risks", name, "--force"]
    result = shoal_command("audit", "release.csv", *asked)

    assert made.exit_code == 0, made.stderr
    assert result.exit_code == 2
    assert "is the same file as the input" in result.stderr
    assert (tmp_path / name).read_bytes() == kept


def series(folder):
    """Two internal copies of releases; one person is alone in the second."""
    for name, last in {"first": 50, "second": 51}.items():
        ages = [30, 30, 30, 50, 50, last]
        write_csv(folder / f"{name}.csv", [["id", "age"], *zip("abcdef", ages, strict=True)])
    return "--series", folder / "first.csv", folder / "second.csv"


def test_several_releases_are_counted_together(tmp_path):
    asked = ("audit", *series(tmp_path), "--key", "id", "--quasi-identifiers", "age", "-k", 3)
    result = shoal_command(*asked)

    assert result.exit_code == 1
    assert "does not hold over 2 releases" in result.output
    assert "3, 1 of them alone" in result.output
    assert json.loads(shoal_command(*asked, "--json").output)["present"]["n_below"] == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--quasi-identifiers", "age", "--key", "id"), "the k that was promised"),
        (("--quasi-identifiers", "age", "-k", 3), "first.csv.cells' cannot be read"),
        (("--quasi-identifiers", "age", "-k", 3, "--key", "id", "--list"), "--list is about one release"),
        (("--quasi-identifiers", "age", "-k", 3, "--key", "name"), "no column 'name'"),
        (("--quasi-identifiers", "zip", "-k", 3, "--key", "id"), "no column 'zip'"),
    ],
)
def test_a_series_that_cannot_be_counted_is_refused(arguments, words, tmp_path):
    result = shoal_command("audit", *series(tmp_path), *arguments)

    assert result.exit_code == 2
    assert words in result.output


def test_several_files_are_not_taken_for_a_series(tmp_path):
    _, *files = series(tmp_path)

    assert "add --series" in shoal_command("audit", *files, "--quasi-identifiers", "age").output
