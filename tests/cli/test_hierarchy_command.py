import sys

import pytest
from shell import SECRETS, is_one_paragraph, people, shoal_command, write_csv

SEXES = "f;adult;*\nm;adult;*\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "sex.csv").write_text(SEXES)
    write_csv(tmp_path / "people.csv", people())
    return tmp_path


def test_a_hierarchy_is_drawn_and_counted(files):
    result = shoal_command("hierarchy", files / "sex.csv")

    assert result.exit_code == 0
    assert "0: 2 nodes, 1: 1 node, 2: 1 node" in result.stdout
    assert result.stdout.endswith("*\n└─ adult\n   ├─ f\n   └─ m\n")


def test_large_hierarchies_are_drawn_in_the_lines_there_are(files):
    (files / "many.csv").write_text("".join(f"{i};group {i // 10};*\n" for i in range(100)))
    some = shoal_command("hierarchy", files / "many.csv")
    few = shoal_command("hierarchy", files / "many.csv", "--lines", 4)

    assert "└─ group 9 (10 values)" in some.stdout
    assert "* (100 values)" in few.stdout


def test_values_of_the_column_are_checked_and_only_shown_on_request(files):
    (files / "zip.csv").write_text("D77777;low;*\nD77778;low;*\n")
    arguments = ("hierarchy", files / "zip.csv", "--data", files / "people.csv", "--column", "zip")
    quiet, told = shoal_command(*arguments), shoal_command(*arguments, "--show-values")
    fine = shoal_command("hierarchy", files / "sex.csv", "--data", files / "people.csv", "--column", "sex")

    assert (quiet.exit_code, told.exit_code, fine.exit_code) == (1, 1, 0)
    assert "36 of 60 records have values of column 'zip' that are not in the hierarchy (3 different)" in quiet.stdout
    assert "77779" not in quiet.stdout
    assert "  D77779\n" in told.stdout
    assert "Every value of column 'sex' is in the hierarchy." in fine.stdout


def test_a_hierarchy_deeper_than_the_stack_is_drawn(tmp_path):
    depth = sys.getrecursionlimit() + 10
    (tmp_path / "deep.csv").write_text("".join(f"n{i},n{i + 1}\n" for i in range(depth)) + f"x,n{depth}\n")
    said = shoal_command("hierarchy", tmp_path / "deep.csv", "--lines", 5)

    assert said.exit_code == 0, said.output
    assert "└─ x" in said.output


def test_rules_are_drawn_from_a_column_without_its_values_unless_asked(files):
    arguments = ("hierarchy", "prefix:2,4", "--data", files / "people.csv", "--column", "zip")
    quiet, told = shoal_command(*arguments), shoal_command(*arguments, "--show-values")

    assert quiet.exit_code == 0
    assert not any(secret in quiet.stdout for secret in SECRETS)
    assert "D777**" in told.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prefix:1"], "builds its groups from values"),
        (["sex.csv", "--data", "people.csv"], "belong together"),
        (["two.csv"], "has 2 roots"),
        (["none.csv"], "cannot be read"),
    ],
)
def test_bad_hierarchies_end_in_a_paragraph(files, monkeypatch, arguments, said):
    monkeypatch.chdir(files)
    (files / "two.csv").write_text("f;adult;*\nm;adult;+\n")
    result = shoal_command("hierarchy", *arguments)

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert said in result.stderr


def test_a_truthful_release_is_made_audited_and_compared_from_the_shell(files, monkeypatch):
    monkeypatch.chdir(files)
    roles = ("--quasi-identifiers", "age,zip,sex,income")
    made = shoal_command(
        *(
            "anonymize",
            "people.csv",
            "-k",
            5,
            *roles,
            "--confidential",
            "diagnosis",
            "--identifiers",
            "name",
            "--truthful",
        ),
        *("--hierarchy", "sex=sex.csv", "--kind", "zip=nominal", "--intervals", "columns", "-o", "release.csv"),
    )
    audited = shoal_command("audit", "release.csv", "-k", 5, *roles, "--original", "people.csv")
    # The ends of intervals are columns of their own in the release.
    ends = shoal_command(
        "audit", "release.csv", "-k", 5, "--quasi-identifiers", "age.low,age.high,income.low,income.high,zip,sex"
    )
    compared = shoal_command(
        "compare", "people.csv", "-k", "5", "--methods", "auto", *roles, "--identifiers", "name,diagnosis", "--truthful"
    )

    assert made.exit_code == 0, made.output
    assert "true of every record" in made.stdout
    assert audited.exit_code == 0, audited.output
    assert ends.exit_code == 0, ends.output
    assert compared.exit_code == 0, compared.output


def test_an_audit_with_the_originals_counts_what_is_false(files, monkeypatch):
    monkeypatch.chdir(files)
    shoal_command(
        *(
            "anonymize",
            "people.csv",
            "-k",
            5,
            "--quasi-identifiers",
            "age,income",
            "--other",
            "zip,sex,diagnosis",
            "--identifiers",
            "name",
        ),
        *("--truthful", "-o", "release.csv"),
    )
    arguments = ("audit", "release.csv", "-k", 5, "--quasi-identifiers", "age,income", "--original", "people.csv")
    true = shoal_command(*arguments)
    write_csv(files / "people.csv", [[*row[:1], 1 if i == 3 else row[1], *row[2:]] for i, row in enumerate(people())])
    false = shoal_command(*arguments)

    assert true.exit_code == 0, true.output
    assert false.exit_code == 1
    assert "false for 1 record" in false.stdout
    assert "does not hold: some records have values that are not within what is published of age" in false.stdout


def test_hierarchy_problems_of_a_release_speak_of_options_and_write_nothing(files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "zip.csv").write_text("D77777;low;*\n")
    before = set(files.iterdir())
    result = shoal_command(
        *(
            "anonymize",
            "people.csv",
            "-k",
            5,
            "--quasi-identifiers",
            "age,zip,sex,income",
            "--confidential",
            "diagnosis",
        ),
        *("--identifiers", "name", "--aggregate", "zip=ancestor", "--hierarchy", "zip=zip.csv", "-o", "release.csv"),
    )

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert "--outside zip=root" in result.stderr
    assert not any(secret in result.stderr for secret in SECRETS)
    assert set(files.iterdir()) == before
