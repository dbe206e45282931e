"""Job files: their text and its content, with errors that say where it is not valid."""

import os
import tomllib
from pathlib import Path
from typing import Any

from shoal.errors import FileError, ParameterError


def job_text(path: str | os.PathLike[str], shown: str | None = None) -> str:
    """Return the text of a job file; messages call it `shown`, by default its path."""
    name = str(path) if shown is None else shown
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"The job file {name!r} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise FileError(f"The job file {name!r} is not UTF-8 text.") from None


def content_of(text: str) -> dict[str, Any]:
    """Return the content of a TOML text, or raise `ParameterError` saying where it is not valid."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ParameterError(f"The job is not valid TOML: {error}.") from None
    except RecursionError:
        raise ParameterError("The job cannot be read: its lists are nested too deeply.") from None
    except ValueError:  # of int()
        raise ParameterError("The job cannot be read: a number in it has too many digits.") from None
