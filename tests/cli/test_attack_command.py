import json

from shell import ROLES, is_one_paragraph, shoal_command

WHAT = ("--quasi-identifiers", "age,zip,sex,income", "--confidential", "diagnosis")


def test_attacks_are_told_before_and_after(csv_file):
    release = csv_file.parent / "release.csv"
    shoal_command("anonymize", csv_file, "-k", 5, *ROLES, "--seed", 7, "-o", release)
    result = shoal_command("attack", release, "--original", csv_file, *WHAT)

    assert result.exit_code == 0, result.output
    for name in ("nearest", "matching", "k - 1 known", "homogeneity: diagnosis", "skewness: diagnosis"):
        assert name in result.stdout
    told = json.loads(shoal_command("attack", release, "--original", csv_file, *WHAT, "--json").stdout)
    assert {one["name"] for one in told} == {"nearest", "matching", "k - 1 known", "homogeneity", "skewness"}


def test_a_column_that_is_not_there_is_refused(csv_file):
    result = shoal_command("attack", csv_file, "--original", csv_file, "--quasi-identifiers", "nothing")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr.splitlines(keepends=True)[-1])
