"""What the tests of the command line share: running it, and a table whose values can be recognised in any message."""

import re
import subprocess
import sys

from click.testing import CliRunner

from shoal import cli

SECRETS = ("Zyxwv", "77777", "qqdisease")
"""Parts of the values of `people`: no message may show them."""

ROLES = ("--quasi-identifiers", "age,zip,sex,income", "--confidential", "diagnosis", "--identifiers", "name")


def shoal_command(*arguments):
    """Run the command line in this process."""
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


def shoal_process(*arguments, **settings):
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "shoal.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


def people(n=60):
    """Return the records of a small table, names first."""
    header = ["name", "age", "zip", "sex", "income", "diagnosis"]
    records = [
        [f"Zyxwv{i}", 20 + i * 7 % 60, f"D{77777 + i % 5}", "fm"[i % 2], 1000 + i * 37 % 900, f"qqdisease{i % 3}"]
        for i in range(n)
    ]
    return [header, *records]


def write_csv(path, rows, delimiter=","):
    """Write rows as they are; texts with a delimiter have to be quoted already."""
    path.write_text("".join(delimiter.join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def is_one_paragraph(text):
    """Tell whether a text is one line that says what is wrong, lines of progress left out."""
    text = re.sub(r"^.* \.\.\.\n", "", text, flags=re.MULTILINE)
    return text.startswith("Error: ") and text.count("\n") == 1 and text.endswith(".\n") and "Traceback" not in text
