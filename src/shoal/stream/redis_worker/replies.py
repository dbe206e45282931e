"""Replies: errors of Redis as errors of shoal that quote its message."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions

from shoal.errors import OutageError, ParameterError, ShoalError

_PASSING = ("OOM", "NOREPLICAS", "MISCONF", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY")
_REFUSED = ("WRONGTYPE", "NOAUTH", "WRONGPASS", "NOPERM")


class FencedError(ShoalError):
    """Another worker has the lease: nothing was committed."""


class ChangedError(ShoalError):
    """The state in Redis was changed by another worker; nothing was committed."""


@contextmanager
def said() -> Iterator[None]:
    """Turn errors of Redis into errors of shoal."""
    try:
        yield
    except (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError) as error:
        raise ParameterError(f"Redis denied access to the worker: {_words(error)}. Check user and password.") from None
    except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
        raise OutageError(f"Redis cannot be reached or does not answer: {_words(error)}.") from None
    except (exceptions.OutOfMemoryError, exceptions.ReadOnlyError) as error:
        raise OutageError(f"Redis does not accept writes: {_words(error)}.") from None
    except exceptions.ResponseError as error:
        raise _of_response(error) from None


def _of_response(error: exceptions.ResponseError) -> Exception:
    words = _words(error)
    code = words.split(" ", 1)[0]
    if code == "FENCED":
        return FencedError("Another worker has taken the lease; nothing was committed, and the entries come again.")
    if code == "CHANGED":
        return ChangedError("The state in Redis was changed by another worker; nothing was committed.")
    if code in _PASSING:
        return OutageError(f"Redis does not accept writes: {words}.")
    if code in _REFUSED:
        return ParameterError(f"Redis refuses a command: {words}.")
    return error


def _words(error: Exception) -> str:
    """Return the message of Redis, without the line in the script."""
    return str(error).split(" script:", 1)[0].rstrip(". ")
