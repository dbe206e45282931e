"""Messages: refusals in the words of the pages, which name settings as a job does and say what to click."""

from shoal.dialect import translated
from shoal.errors import ShoalError
from shoal.findings import QuestionError


def message_of(error: ShoalError) -> str:
    """Return the message of an error as a page shows it.

    Examples
    --------
    >>> message_of(ShoalError("'a.csv' already exists. Choose another name, or replace it with force."))
    "'a.csv' already exists. Choose another name, or tick 'Replace files that are there already'."
    """
    text = error.told("key") if isinstance(error, QuestionError) else translated(str(error), "key")
    return text.replace("replace it with --force", "tick 'Replace files that are there already'")
