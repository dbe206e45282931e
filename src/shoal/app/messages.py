"""Messages: refusals in the words of the pages, which name settings as a job does and say what to click."""

from shoal.errors import ShoalError


def message_of(error: ShoalError) -> str:
    """Return the message of an error as a page shows it.

    Examples
    --------
    >>> from shoal.spelling import setting
    >>> message_of(ShoalError(f"'a.csv' already exists: replace it with {setting('force', True)}."))
    "'a.csv' already exists: tick 'Replace files that are there already'."
    """
    return error.worded("key").replace("replace it with --force", "tick 'Replace files that are there already'")
