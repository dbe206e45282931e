"""The command line on ordinary files: options are kept, questions are told in options, and nothing is shown."""

import json
import shlex
import tomllib

import pytest
from shell import ROLES, SECRETS, is_one_paragraph, people, shoal_command, write_csv

import shoal

HEADER, *RECORDS = people()


@pytest.fixture
def german(tmp_path, monkeypatch):
    """A file of a German office: semicolons, cp1252, decimal commas, day-first dates, and texts for missing values."""
    monkeypatch.chdir(tmp_path)
    rows = [["Größe", "geboren", "lohn", "ort"]]
    for i in range(60):
        born = "k. A." if i % 15 == 0 else f"{1 + i % 28:02d}.{1 + i % 12:02d}.{1940 + i}"
        rows.append([f"{150 + i % 40},5", born, f"{1 + i % 9}.{100 + i * 13 % 900},50", ["Köln", "Bonn"][i % 2]])
    text = "".join(";".join(row) + "\n" for row in rows)
    (tmp_path / "amt.csv").write_text(text, encoding="cp1252")
    return "amt.csv"


def test_the_proposed_command_keeps_how_the_file_is_read_and_runs_as_it_stands(german):
    asked = shoal_command("inspect", german, "--encoding", "cp1252", "-k", 3)
    line = next(line for line in asked.stdout.splitlines() if "-o release" in line)
    settled = next(line for line in asked.stdout.splitlines() if "--null-values" in line)
    result = shoal_command(*shlex.split(line)[1:])

    assert "--encoding cp1252" in line
    assert "--thousands lohn=." in line
    assert settled.strip() == "--date-format geboren=%d.%m.%Y --null-values 'geboren=form:a. a.'"
    assert "k. A." not in asked.output
    assert result.exit_code == 0, result.output


def test_the_proposed_job_runs_as_it_stands(csv_file, monkeypatch):
    monkeypatch.chdir(csv_file.parent)
    (csv_file.parent / "job.toml").write_text(shoal_command("inspect", "people.csv", "--job", "-k", 3).stdout)

    assert shoal_command("run", "job.toml").exit_code == 0


def test_a_question_is_told_in_options_and_by_a_job_in_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv(tmp_path / "people.csv", [HEADER, *([*row[:3], 1 + i % 2, *row[4:]] for i, row in enumerate(RECORDS))])
    asked = shoal_command("anonymize", "people.csv", "-k", 5, *ROLES, "-o", "release.csv")
    accepted = shoal_command(
        *("anonymize", "people.csv", "-k", 5, *ROLES, "-o", "release.csv"),
        *("--accept", "sex=codes", "--save-job", "job.toml"),
    )
    job = tomllib.loads((tmp_path / "job.toml").read_text())
    (tmp_path / "asking.toml").write_text((tmp_path / "job.toml").read_text().replace("sex=codes", "age=codes"))
    by_job = shoal_command("run", "asking.toml", "--force")

    assert asked.exit_code == 2
    assert is_one_paragraph(asked.stderr)
    assert "--kind sex=nominal" in asked.stderr
    assert "--accept codes" in asked.stderr
    assert not (tmp_path / "asked.csv").exists()
    assert accepted.exit_code == 0, accepted.output
    assert job["accept"] == ["sex=codes"]
    assert '[columns.sex] kind = "nominal"' in by_job.stderr
    assert 'accept = ["codes"]' in by_job.stderr
    assert [secret for secret in SECRETS if secret in asked.output + by_job.output] == []


def test_what_is_accepted_stands_in_the_report(tmp_path):
    file = write_csv(
        tmp_path / "people.csv", [HEADER, *([*row[:3], 1 + i % 2, *row[4:]] for i, row in enumerate(RECORDS))]
    )
    report = tmp_path / "report.json"
    shoal_command(
        *("anonymize", file, "-k", 5, *ROLES, "-o", tmp_path / "release.csv"),
        *("--accept", "sex=codes", "--json", report),
    )
    facts = json.loads(report.read_text())

    assert any("Accepted" in step and "sex" in step for step in facts["done"])


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ("1,2\n3,4\n", (), ["--header", "--names A,B,.."]),
        (",b\n3,4\n", (), ["--names A,B,.."]),
        ("a;b\n1.5;1,5\n", (), ["--decimal b=,; or --decimal a=."]),
        ('a,b\n1,x"y\n', (), ["--quote ''"]),
        ("a,b\n1,2\n3\n", (), ["--delimiter", "--quote"]),
        ("a,b\n1,2\n", ("--names", "x"), ["--names gives 1 names"]),
        ("a,b\n1,2\n", ("--encoding", "nothing"), ["--encoding nothing"]),
    ],
)
def test_messages_about_reading_speak_of_options(content, arguments, words, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text(content)
    result = shoal_command("inspect", file, *arguments)

    assert result.exit_code == 2
    assert [word for word in words if word not in result.stderr] == []
    assert [word for word in ("=True", "=[", '="', "encoding=", "names=") if word in result.stderr] == []


def test_a_file_that_exists_is_replaced_with_an_option(csv_file):
    output = csv_file.with_name("release.csv")
    output.write_text("mine")
    result = shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "-o", output)

    assert "--force" in result.stderr
    assert "(force)" not in result.stderr


def test_missing_values_are_refused_in_the_dialect_of_who_asked(tmp_path):
    rows = [HEADER, *([*row[:1], "", *row[2:]] if i < 3 else row for i, row in enumerate(RECORDS))]
    result = shoal_command("anonymize", write_csv(tmp_path / "p.csv", rows), "-k", 5, *ROLES, "-o", tmp_path / "r.csv")

    assert "Say what to do with them: --missing own-value treats missing" in result.stderr
    assert 'missing="' not in result.stderr


def test_the_job_of_a_stream_is_refused_in_the_dialect_of_jobs(tmp_path):
    job = tmp_path / "job.toml"
    job.write_text('k = 3\n[roles]\nquasi_identifiers = ["age"]\n[stream]\ndelay = 0\n')

    assert "stream.delay cannot be used" in shoal_command("stream", "--job", job).stderr
    job.write_text(job.read_text().replace("delay = 0", "delay = 1"))
    assert "delay = 1 is too short" in shoal_command("stream", "--job", job).stderr
    assert (
        "--delay 1 is too short" in shoal_command("stream", "-k", 3, "--delay", 1, "--quasi-identifiers", "age").stderr
    )


def test_a_release_with_numbers_for_names_is_its_own_output(tmp_path):
    rows = [["2019", "2020"], *([20 + i * 7 % 60, 1000 + i * 37 % 900] for i in range(60))]
    file = write_csv(tmp_path / "years.csv", rows)
    result = shoal_command(
        "anonymize", file, "--header", "-k", 5, "--quasi-identifiers", "2019,2020", "-o", tmp_path / "r.csv"
    )

    assert result.exit_code == 0, result.output


def test_attacks_read_the_original_and_the_release_each_in_its_own_way(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [["größe", "ort"], *([150 + i % 40, ["Köln", "Bonn"][i % 2]] for i in range(60))]
    text = "".join(f"{size},{place}\n" for size, place in rows)
    (tmp_path / "amt.csv").write_text(text, encoding="cp1252")
    made = shoal_command(
        *(
            "anonymize",
            "amt.csv",
            "--encoding",
            "cp1252",
            "-k",
            5,
            "--quasi-identifiers",
            "größe,ort",
            "-o",
            "release.csv",
        )
    )
    attacked = shoal_command(
        *("attack", "release.csv", "--original", "amt.csv", "--encoding", "cp1252", "--quasi-identifiers", "größe,ort")
    )
    (tmp_path / "theirs.csv").write_text((tmp_path / "release.csv").read_text(encoding="utf-8"), encoding="cp1252")
    theirs = shoal_command(
        *("attack", "theirs.csv", "--original", "amt.csv", "--encoding", "cp1252", "--quasi-identifiers", "größe,ort"),
        *("--release-reading", "encoding=cp1252"),
    )

    assert made.exit_code == 0, made.output
    assert attacked.exit_code == 0, attacked.output
    assert theirs.exit_code == 0, theirs.output


@pytest.mark.parametrize(("n", "k"), [(8, 2), (30, 5), (60, 10)])
def test_the_proposed_k_is_one_that_the_records_allow(n, k, tmp_path):
    file = write_csv(tmp_path / "few.csv", [["age"], *([20 + i * 7 % 60] for i in range(n))])

    assert f" -k {k} " in shoal_command("inspect", file).stdout


def test_nothing_is_proposed_for_a_table_without_records(tmp_path):
    file = write_csv(tmp_path / "none.csv", [["age", "sex"]])
    told = shoal_command("inspect", file)

    assert told.exit_code == 0
    assert "shoal anonymize" not in told.stdout
    assert shoal_command("inspect", file, "--job").exit_code == 2
    assert json.loads(shoal_command("inspect", file, "--json").stdout)["command"] is None


def test_an_audit_lists_the_records_below_k_and_writes_the_risk_of_each(csv_file):
    risks = csv_file.with_name("risks.csv")
    result = shoal_command("audit", csv_file, "--quasi-identifiers", "age", "-k", 2, "--list", "--risks", risks)
    counts = shoal.sources.read(csv_file).arrow.to_pandas()["age"].value_counts()
    written = shoal.sources.read(risks).arrow.to_pandas()

    assert result.exit_code == 1
    assert result.stdout.count("class of 1 record") == (counts == 1).sum()
    assert written["size"].tolist() == counts[shoal.sources.read(csv_file).arrow.to_pandas()["age"]].tolist()
    assert risks.stat().st_mode & 0o077 == 0
