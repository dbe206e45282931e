import json

import pytest
from shell import ROLES, SECRETS, is_one_paragraph, shoal_command


def compare(file, *arguments):
    return shoal_command("compare", file, "-k", "3,5", "--methods", "mdav,auto", *ROLES, "--seed", 1, *arguments)


def test_it_prints_a_line_for_each_choice(csv_file):
    result = compare(csv_file)
    lines = [line.split() for line in result.stdout.splitlines()]

    assert result.exit_code == 0, result.output
    assert [line[:2] for line in lines[1:5]] == [["3", "mdav"], ["3", "auto"], ["5", "mdav"], ["5", "auto"]]
    assert "undominated" in result.stdout
    assert [secret for secret in SECRETS if secret in result.output] == []


@pytest.mark.parametrize(("ending", "begin"), [("svg", "<svg "), ("html", "<!doctype html>"), ("json", "{")])
def test_the_map_is_written_and_not_over_another(ending, begin, csv_file):
    file = csv_file.with_name(f"map.{ending}")
    first, second = compare(csv_file, "-o", file), compare(csv_file, "-o", file)

    assert (first.exit_code, second.exit_code) == (0, 2), first.output
    assert file.read_text().startswith(begin)
    assert is_one_paragraph(second.stderr)


def test_a_map_of_another_format_is_refused_before_anything_is_compared(csv_file, monkeypatch):
    monkeypatch.setattr("shoal.cli.compare.compare", None)
    result = compare(csv_file, "-o", csv_file.with_name("map.txt"))

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert ".svg, .png, .pdf, .html, .json" in result.stderr


def test_json_is_printed_alone(csv_file):
    found = json.loads(compare(csv_file, "--json").stdout)

    assert [choice["k"] for choice in found["choices"]] == [3, 3, 5, 5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-k", "3,x"), "not a list of whole numbers"),
        (("-k", "1"), "k=1"),
        (("--methods", "mdav,best"), "'best'"),
        (("-o", "map.gif"), "map.gif"),
        (("--methods", "mdav", "--options", "effort=best"), "'effort'"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, words, csv_file, monkeypatch):
    monkeypatch.chdir(csv_file.parent)
    result = compare(csv_file, *arguments)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert is_one_paragraph(result.stderr)
