"""Exceptions of shoal. Each message states what was asked, what was found and what to do next."""

import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from shoal.spelling import Dialect, spelled

_MOST_NAMES = 5  # that are compared with all known ones


class ShoalError(Exception):
    """Base class of all errors raised by shoal. Its message spells settings as arguments of Python."""

    dialect: Dialect | None = None
    """How the one who asked names settings, where that is not how the command that ends names them."""

    def __str__(self) -> str:
        return self.worded("argument")

    def worded(self, dialect: Dialect) -> str:
        """Return the message with settings as arguments of Python, options of the command line or keys of a job."""
        return spelled(self.marked, dialect)

    @property
    def marked(self) -> str:
        """The message with its settings as data, for the message of another error."""
        return super().__str__()


class ParameterError(ShoalError, ValueError):
    """An argument, an option or an array is invalid."""


class SchemaError(ShoalError):
    """Columns or roles do not match the table."""


class InputError(SchemaError):
    """A line, an entry or a tuple that cannot be used."""


class GuaranteeError(ShoalError):
    """A privacy guarantee cannot be met; nothing is released."""


class RecountError(GuaranteeError):
    """What was about to leave does not keep its guarantee: a fault in shoal. Nothing was released."""


class FileError(ShoalError):
    """A file cannot be read or written."""


class DatabaseError(ShoalError):
    """A database cannot be read or written. The message holds neither values nor secrets."""


class OutageError(ShoalError):
    """Something outside that does not answer, and may answer later: a reader, a server."""


class ShoalWarning(UserWarning):
    """Something to check before a release is published."""


def listed(things: Iterable[object], most: int | None = None) -> str:
    """Return things as a list in a sentence, texts in quotes, and how many there are beyond the first `most`.

    Examples
    --------
    >>> listed(["age", "zip"]), listed(range(1, 9), most=2)
    ("'age', 'zip'", '1, 2 and 6 more')
    """
    words = [repr(thing) for thing in things]
    more = len(words) - (len(words) if most is None else most)
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


def did_you_mean(*names: object, known: Iterable[str]) -> str:
    """Return a sentence, after a space, that suggests the known names nearest to those given; or an empty string.

    Examples
    --------
    >>> did_you_mean("agee", known=["age", "zip"])
    " Did you mean 'age'?"
    """
    known = list(known)
    near = [match for name in map(str, names[:_MOST_NAMES]) for match in _nearest(name, known)]
    return f" Did you mean {', '.join(map(repr, near))}?" if near else ""


def _nearest(name: str, known: list[str]) -> list[str]:
    """Return the known name nearest to one, or the first that begins with it."""
    return get_close_matches(name, known, n=1) or [each for each in known if name and each.startswith(name)][:1]


def fault_in_words(error: Exception) -> str:
    """Describe an unexpected error by type and place. Its text is left out, because it may hold values of the table."""
    places = [
        f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "shoal" in Path(frame.filename).parts
    ]
    return (
        f"shoal failed unexpectedly ({type(error).__name__}), and that is a fault of shoal. Please report "
        f"it with these places: {', '.join(places[-4:])}. The text of the error is left out, because it may hold "
        "values of the table."
    )


@contextmanager
def without_values() -> Iterator[None]:
    """Raise an unexpected error by type and place alone, where others would show or log its text."""
    try:
        yield
    except ShoalError:
        raise
    except Exception as error:
        raise ShoalError(fault_in_words(error)) from None
