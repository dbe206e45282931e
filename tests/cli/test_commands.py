import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from shell import is_one_paragraph, shoal_command, shoal_process

import shoal
from shoal.cli import COMMANDS


def test_the_version_is_printed():
    assert shoal_command("--version").output == f"shoal {shoal.__version__}\n"


def test_the_package_can_be_run_as_a_module():
    done = subprocess.run([sys.executable, "-m", "shoal", "--help"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("Usage: shoal [OPTIONS]")


@pytest.mark.parametrize("command", [(), *((name,) for name in COMMANDS)])
def test_help_carries_examples(command):
    result = shoal_command(*command, "--help")

    assert result.exit_code == 0
    assert "Examples:\n" in result.output
    assert "  shoal " in result.output


def test_without_a_command_the_help_is_shown():
    result = shoal_command()

    assert result.exit_code == 0
    assert result.output == shoal_command("--help").output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_in_a_line_what_it_does(name):
    command = import_module(f"shoal.cli.{name}").command

    assert command.name == name
    assert len(COMMANDS[name]) < 80
    assert COMMANDS[name] in shoal_command("--help").output


def test_the_page_on_the_command_line_lists_every_command():
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")

    assert [name for name in COMMANDS if f"| `shoal {name}" not in page] == []


def test_help_imports_neither_tables_nor_jobs():
    code = (
        "import sys, json; from shoal.cli import main; main(['--help'], standalone_mode=False); "
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stderr))

    assert "Commands:" in done.stdout
    assert {"pyarrow", "pydantic", "pandas", "polars", "narwhals", "rich", "jinja2", "matplotlib"} & modules == set()


@pytest.mark.parametrize(("wrong", "meant"), [("anonymise", "anonymize"), ("inspct", "inspect")])
def test_a_misspelt_command_names_the_one_that_was_meant(wrong, meant):
    result = shoal_command(wrong)

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert f"Did you mean {meant!r}? See `" in result.stderr


def test_a_misspelt_option_names_the_one_that_was_meant():
    result = shoal_command("anonymize", "people.csv", "--quasi-identifers", "age")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert "--quasi-identifiers" in result.stderr
    assert "`shoal anonymize --help`" in result.stderr or "`main anonymize --help`" in result.stderr


@pytest.mark.parametrize(
    ("word", "ours"),
    [
        ("sensibleVar", "sdcMicro, that is what --confidential"),
        ("quasi_ident", "pyCANON, that is what --quasi-identif"),
    ],
)
def test_a_word_of_another_tool_is_answered_with_ours(word, ours):
    result = shoal_command("anonymize", "people.csv", f"--{word}", "age")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert f"No such option '--{word}'. In {ours}" in result.stderr


def test_it_runs_as_a_module_too():
    done = shoal_process("--version")

    assert (done.returncode, done.stdout) == (0, f"shoal {shoal.__version__}\n")


def test_a_worker_without_streams_is_told_which_options_name_them():
    result = shoal_command("worker", "-k", 5, "--delay", 20, "--quasi-identifiers", "age", "--from", "visits")

    assert result.exit_code == 2
    assert is_one_paragraph(result.stderr)
    assert "missing: --to." in result.stderr
