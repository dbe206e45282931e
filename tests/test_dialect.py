"""No message of the command line names an argument of Python."""

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

import shoal
from shoal import cli
from shoal.dialect import SETTINGS, translated
from shoal.job import Job
from shoal.stream import Stream

PACKAGE = Path(shoal.__file__).parent
FILES = [*PACKAGE.rglob("*.py")]
OF_CALLS = {
    "k",
    "l",
    "c",
    "t",
    "effort",
    "phases",
    "bounds",
    "categories",
    "columns",
    "models",
    "tracked",
    "allow_overlap",
}
OF_CALLS |= {"values", "force", "return_inverse"}
"""Arguments that no option or key gives, and notation such as k=10."""
OF_JOBS = {"inertial", "redis"}
"""Settings that are given in a job file only."""
VALUES = {"3": "3", "-0.5": "-0.5", '"x"': "x", "'x'": "x", "['a']": "a", "None": "None"}


@cache
def messages():
    """Return the texts in all refusals, with X for what they are filled with."""
    return [text for file in FILES for text in messages_in(file)]


def messages_in(file):
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
            for text in node.args:
                if isinstance(text, ast.JoinedStr):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "'X'" for part in text.values)
                elif isinstance(text, ast.Constant):
                    yield str(text.value)


@cache
def options():
    """Return all options of all commands."""
    group = next(value for value in vars(cli).values() if isinstance(value, click.Group))
    commands = [group.get_command(click.Context(group), name) for name in group.list_commands(click.Context(group))]
    return {
        option
        for command in commands
        for parameter in command.params
        for option in parameter.opts + parameter.secondary_opts
    }


def test_every_setting_named_in_a_refusal_is_known():
    named = {name for text in messages() for name in re.findall(r"(?<![\w'-])([a-z]\w*)=", text)}

    assert named - OF_CALLS - SETTINGS.keys() == set()


def test_a_refusal_names_options_on_the_command_line():
    told = [translated(text, "option") for text in messages()]
    argument = re.compile(rf"\b(?:{'|'.join(SETTINGS)})=")

    assert len(told) > 500
    assert [text for text in told if argument.search(text) or re.search(r"(\(|with )force\b", text)] == []


@pytest.mark.parametrize("setting", sorted(SETTINGS.keys() - {"reading", "records"}))
def test_each_door_spells_a_setting_in_its_own_way(setting):
    flag = SETTINGS[setting]

    assert flag in OF_JOBS or set(flag.split("/")) <= options() or setting in OF_JOBS
    for value, plain in VALUES.items():
        shown = "--order" if setting == "order" and not value.startswith("[") else flag
        assert translated(f"{setting}={value} is wrong.", "option") == f"{shown} {plain} is wrong."
        assert translated(f"{setting}={value} is wrong.", "key") == f"{setting} = {value} is wrong."
    assert translated(f"Give {setting}=, or leave {setting}= out.", "option") == f"Give {flag}, or leave {flag} out."
    assert translated(f"Give {setting}=.", "key") == f"Give {setting}."
    for words in ("cannot be given for a .csv file", "is set for column 'x'"):
        assert translated(f"{setting} {words}.", "option").startswith(f"{flag} {words}")
    assert translated(f"input.{setting} cannot be used: x.", "option") == f"{flag} cannot be used: x."


@pytest.mark.parametrize(
    "wrong",
    [{"delay": 2}, {"delay": 50, "max_age": -1.0}, {"delay": 50, "max_cell": 3}, {}, {"delay": 50, "adapt": 2.0}],
)
def test_refusals_of_a_stream_name_options(wrong):
    with pytest.raises(shoal.ParameterError) as refused:
        Stream(k=10, quasi_identifiers=["age"], **wrong)
    told = translated(str(refused.value), "option")

    assert all(f"--{name.replace('_', '-')}" in told for name in list(wrong)[-1:] or ["delay", "max_age"])
    assert not re.search(r"(delay|max_age|max_cell|adapt)=|Raise delay", told)


def test_every_key_of_a_job_is_known():
    plain = {"k", "roles", "columns", "models", "options", "late", "input", "output", "stream"}

    assert Job.model_fields.keys() - plain <= SETTINGS.keys()
