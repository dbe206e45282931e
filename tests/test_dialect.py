"""No message of the command line names an argument of Python."""

import ast
import re
from pathlib import Path

import pytest

import shoal
from shoal.dialect import _FLAGS, translated

PACKAGE = Path(shoal.__file__).parent
ROOMS = ("table", "columns", "cells", "release.py", "job_checks.py", "writing.py", "files.py", "auditing.py", "attacks")


def messages(file):
    """Return the texts in the refusals of a file, with X for what they are filled with."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("Error"):
            for text in node.args:
                if isinstance(text, ast.JoinedStr):
                    yield "".join(str(part.value) if isinstance(part, ast.Constant) else "'X'" for part in text.values)
                elif isinstance(text, ast.Constant):
                    yield str(text.value)


@pytest.mark.parametrize("room", ROOMS)
def test_a_refusal_names_options_on_the_command_line(room):
    files = [PACKAGE / room] if room.endswith(".py") else (PACKAGE / room).rglob("*.py")
    told = [translated(text, "option") for file in files if file.exists() for text in messages(file)]
    argument = re.compile(rf"\b(?:{'|'.join(_FLAGS)})=")

    assert told
    assert [text for text in told if argument.search(text) or re.search(r"(\(|with )force\b", text)] == []
