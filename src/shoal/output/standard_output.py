"""Standard output as the place of a release: its bytes leave once the whole file is written and recounted."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import FileError, OutageError, ParameterError
from shoal.interrupts import free
from shoal.sources import FORMATS, Table, format_of, output_format_of
from shoal.spelling import setting
from shoal.system import system

_AS_TEXT = ("csv", "ndjson")


@dataclass(frozen=True)
class StandardOutput:
    """Standard output, and the format of the table on it.

    Attributes
    ----------
    format : str or None
        The extension that a file of this content would have, without its first dot; by default that of the input.
    """

    format: str | None = None

    def __post_init__(self) -> None:
        if self.format is not None and f".{self.format}" not in FORMATS:
            endings = ", ".join(ending[1:] for ending in FORMATS)
            raise ParameterError(
                f"{setting('to_format', self.format)} is not the extension of a known format. Extensions: {endings}."
            )

    def ending(self, source: Table) -> str:
        """Return the extension that names the format; raise if it is not known, or not for a terminal."""
        if self.format is None and source.path is None:
            raise ParameterError(
                "The release goes to standard output (-), and its input is not a file with a format. Give its format, "
                f"for instance {setting('to_format', 'csv')}."
            )
        ending = f".{self.format}" if self.format is not None else format_of(source.path or "")[0]
        kind = output_format_of(f"standard_output{ending}")[1]
        if sys.stdout is None:
            raise FileError("The release is to go to standard output (-), which is closed. Redirect it to a file.")
        if sys.stdout.isatty() and (kind.name not in _AS_TEXT or ending.count(".") > 1):
            raise FileError(
                f"The release is to go to standard output (-) as {kind.title}, which a terminal cannot show. Redirect "
                f"it to a file or a program, or give {setting('to_format', 'csv')}."
            )
        return ending

    def send(self, path: Path) -> None:
        """Copy a file to standard output."""
        try:
            with open(path, "rb") as file, free():
                shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
            sys.stdout.buffer.flush()
        except OSError as error:
            # Python would otherwise complain when it closes the stream at the end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise _refusal(error) from None

    def __str__(self) -> str:
        return "standard output"


def _refusal(error: OSError) -> FileError | OutageError:
    if system.is_reader_gone(error):
        return OutageError(
            "The program that reads standard output has ended before it had the whole release. No manifest was "
            "written. Start again."
        )
    return FileError(
        f"The release cannot be written to standard output: {os.strerror(error.errno or 0).lower()}. No manifest was "
        "written, and what has left is not complete."
    )
