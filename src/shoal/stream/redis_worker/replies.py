"""Replies: errors of Redis as errors of shoal that quote its message."""

from collections.abc import Iterator
from contextlib import contextmanager

from redis import exceptions

from shoal.errors import OutageError, ParameterError, ShoalError

_PASSING = ("NOREPLICAS", "MISCONF", "BUSY", "UNBLOCKED")
_PASSING_ERRORS = (
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.TryAgainError,
    exceptions.ClusterDownError,
)
_REFUSED = ("WRONGTYPE", "REFUSED")
_UNKNOWN = "unknown command", "unknown redis command"  # of a client, and within a script
_DENIED = "The user executing the script can't"  # as Redis 7.0 says it of a command within a script


class FencedError(ShoalError):
    """Another worker has the lease: nothing was committed."""


class ChangedError(ShoalError):
    """The state in Redis was changed by another worker; nothing was committed."""


@contextmanager
def redis_errors() -> Iterator[None]:
    """Turn errors of Redis into errors of shoal."""
    try:
        yield
    except (exceptions.AuthenticationError, exceptions.AuthorizationError, exceptions.NoPermissionError) as error:
        raise _denied(error) from None
    except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
        raise OutageError(f"Redis cannot be reached or does not answer: {_words(error)}.") from None
    except exceptions.AskError as error:
        raise OutageError(
            f"The keys of the worker are on another node of the Redis cluster, {error.host}:{error.port}. Give the "
            "worker the address of that node, or one that follows it."
        ) from None
    except _PASSING_ERRORS as error:
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
        return ParameterError(f"Redis refuses a command: {words}. Nothing was committed.")
    if words.lower().removeprefix("err ").startswith(_UNKNOWN):
        return ParameterError(
            f"Redis lacks a command: {words.split(',', 1)[0]}. Nothing was committed. The worker needs all commands "
            "that docs/operations.md lists, by their own names: not renamed or removed (rename-command)."
        )
    return _denied(error) if words.startswith(_DENIED) else error


def _denied(error: Exception) -> ParameterError:
    return ParameterError(
        f"Redis denied a command to the user of the worker: {_words(error)}. Nothing was committed. Check user and "
        "password, and grant the commands that docs/operations.md lists (ACL SETUSER)."
    )


def _words(error: Exception) -> str:
    """Return the message of Redis, without the line in the script."""
    return str(error).split(" script:", 1)[0].rstrip(". ")
