"""Every door spells the settings in a message in its own way; no message of the command line names an argument."""

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

import shoal
from shoal import cli
from shoal.columns.schema import ColumnSettings, Roles
from shoal.errors import ShoalError
from shoal.job import Input, Job, Late, Output, RedisSettings, SparkSettings, StreamSettings
from shoal.spelling import setting, spelled
from shoal.stream import Stream

PACKAGE = Path(shoal.__file__).parent
KEYS = {
    field.alias or name
    for model in (Roles, ColumnSettings, Input, Output, StreamSettings, RedisSettings, SparkSettings, Late, Job)
    for name, field in model.model_fields.items()
}
OF_CALLS = {"force", "original", "same_order", "threads", "partition_by", "allow_overlap"}
"""Settings of a call or a command that no job has."""
NOTATION = {"k", "l", "c", "t", "effort", "kind", "values", "return_inverse", "phases", "bounds", "categories"}
NOTATION |= {"allow_overlap", "tracked", "models", "columns", "to_table", "availableNow", "job", "operator", "drop"}
"""What stands in messages of calls that no command makes, and notation such as k=10."""


def calls():
    """Yield all calls in the package."""
    for file in PACKAGE.rglob("*.py"):
        yield from (
            node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        )


@cache
def messages():
    """Return the texts in all refusals, with X for what they are filled with."""
    texts = [text for call in calls() if getattr(call.func, "id", "").endswith("Error") for text in call.args]
    return [
        "".join(str(part.value) if isinstance(part, ast.Constant) else "'X'" for part in text.values)
        if isinstance(text, ast.JoinedStr)
        else str(text.value)
        for text in texts
        if isinstance(text, ast.JoinedStr | ast.Constant)
    ]


@cache
def settings_in_messages():
    """Return the names of the settings that messages hold as data."""
    found = [call for call in calls() if getattr(call.func, "id", "") in ("setting", "named")]
    return {name.value for call in found for name in call.args[:1] if isinstance(name, ast.Constant)}


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


def test_no_refusal_spells_a_setting_itself():
    assert len(messages()) > 500
    named = {name for text in messages() for name in re.findall(r"(?<![\w'-])([a-z]\w*)=", text)}

    assert named - NOTATION == set()
    assert [text for text in messages() if re.search(r"(\(|with )force\b", text)] == []


def test_settings_in_messages_exist():
    assert len(settings_in_messages()) > 30
    assert settings_in_messages() - KEYS - OF_CALLS == set()


OF_PYTHON = {"partition_by", "allow_overlap", *SparkSettings.model_fields}
"""Settings of calls that no command makes."""


@pytest.mark.parametrize("name", sorted(settings_in_messages() - OF_PYTHON))
def test_the_command_line_has_the_options_that_messages_name(name):
    assert spelled(setting(name), "option") in options()


@pytest.mark.parametrize(
    ("value", "argument", "option", "key", "r"),
    [
        (3, "=3", " 3", " = 3", " = 3"),
        (-0.5, "=-0.5", " -0.5", " = -0.5", " = -0.5"),
        ("x", '="x"', " x", ' = "x"', ' = "x"'),
        ("", '=""', " ''", ' = ""', ' = ""'),
        (True, "=True", "", " = true", " = TRUE"),
        (["a", "b"], '=["a", "b"]', " a,b", ' = ["a", "b"]', ' = c("a", "b")'),
        ([...], "=[...]", " A,B,..", " = [...]", " = c(...)"),
    ],
)
def test_each_door_spells_a_setting_and_its_value(value, argument, option, key, r):
    text = f"Give {setting('null_values', value)}."

    assert spelled(text, "argument") == f"Give null_values{argument}."
    assert spelled(text, "option") == f"Give --null-values{option}."
    assert spelled(text, "key") == f"Give null_values{key}."
    assert spelled(text, "r") == f"Give null_values{r}."


def test_a_setting_of_a_column_names_it_on_the_command_line():
    text = f"Give {setting('aggregate', 'interval', column='last, first')}."

    assert spelled(text, "argument") == 'Give aggregate="interval".'
    assert spelled(text, "option") == """Give --aggregate '"last, first"=interval'."""


def test_an_error_is_spelled_for_the_one_who_asked():
    error = ShoalError(f"Give {setting('header', True)}.")

    assert str(error) == "Give header=True."
    assert error.worded("option") == "Give --header."
    assert ShoalError(f"No: {error.marked}").worded("key") == "No: Give header = true."


def test_what_a_user_typed_is_no_setting():
    text = "Column 'header=True' and \"force\" are not in the table."

    assert spelled(text, "option") == text


@pytest.mark.parametrize(
    "wrong",
    [{"delay": 2}, {"delay": 50, "max_age": -1.0}, {"delay": 50, "max_cell": 3}, {}, {"delay": 50, "adapt": 2.0}],
)
def test_refusals_of_a_stream_name_options(wrong):
    with pytest.raises(shoal.ParameterError) as refused:
        Stream(k=10, quasi_identifiers=["age"], **wrong)
    told = refused.value.worded("option")

    assert all(f"--{name.replace('_', '-')}" in told for name in list(wrong)[-1:] or ["delay", "max_age"])
    assert not re.search(r"(delay|max_age|max_cell|adapt)=|Raise delay", told)
