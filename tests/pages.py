"""Pages: the code in the documentation, run as a reader would run it.

A page's ``python`` blocks share one namespace, its ``console`` blocks have a shell for each command, and all of them
share one folder. What a Python block prints stands in the ``text`` block below it, what a command prints below it.
A console block without any output is only run, and a block below ``<!-- not run: WHY -->`` is not.
``python tests/pages.py docs/tutorial.md`` writes what is printed today into the page.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from click.testing import CliRunner

import shoal
from shoal import cli

_BLOCK = re.compile(
    r"(?P<not_run><!-- not run: .* -->\n)?^```(?P<kind>python|console)\n(?P<text>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
_COMMAND = re.compile(r"^\$ (?P<command>(?:.*\\\n)*.*)\n", re.M)


class Printed(NamedTuple):
    """What a block shows on the page, and what it prints."""

    block: re.Match[str]
    shown: str
    printed: str


def run(page: Path) -> Iterator[Printed]:
    """Run the blocks of a page, in its order, in the current folder."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if block["not_run"]:
            continue
        if block["kind"] == "python":
            yield Printed(block, block["shown"] or "", _python(block["text"], namespace))
        else:
            printed = _console(block["text"])
            is_silent = not _COMMAND.sub("", block["text"])
            yield Printed(block, block["text"], block["text"] if is_silent else printed)


def _python(code: str, namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", shoal.ShoalWarning)  # a release's own warnings go to standard error
        exec(compile(code, "<page>", "exec"), namespace)
    return _plain(printed.getvalue())


def _console(text: str) -> str:
    """Return the commands of a block, each with what it prints on standard output."""
    return "".join(f"$ {command}\n{_output(command)}" for command in _COMMAND.findall(text))


_SHELL = re.compile(r"[|<>;&$`*~]")


def _output(command: str) -> str:
    plain = command.replace("\\\n", " ")
    if plain.startswith("shoal ") and not _SHELL.search(plain):
        done = CliRunner().invoke(
            cli.main, shlex.split(plain, comments=True)[1:]
        )  # in this process, which has imported shoal
        if done.exit_code not in (0, 1):
            raise RuntimeError(f"{command} ended with {done.exit_code}: {done.output}")
        return _plain(done.stdout)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(["sh", "-c", command], env={**os.environ, "PATH": path}, capture_output=True, text=True)
    # An audit that does not hold ends with 1; anything else that a page shows works.
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command} ended with {done.returncode}: {done.stderr}")
    return _plain(done.stdout)


def _plain(printed: str) -> str:
    """Return lines without blanks at their ends, which no editor keeps."""
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def rewritten(page: Path) -> str:
    """Return the page with what its blocks print today."""
    text, end = "", 0
    source = page.read_text(encoding="utf-8")
    for block, _, printed in run(page):
        text += source[end : block.start()]
        if block["kind"] == "console":
            text += f"```console\n{printed}```\n"
        else:
            text += f"```python\n{block['text']}```\n" + (f"\n```text\n{printed}```\n" if printed else "")
        end = block.end()
    return text + source[end:]


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]]:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            path.write_text(rewritten(path), encoding="utf-8")
            os.chdir(path.parent)
