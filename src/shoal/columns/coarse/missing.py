"""Missing: what a coarse value says where some records of the class have no value."""

from collections.abc import Iterable

MISSING = "missing"
"""The word for a missing value among others; a value that is this word stands in quotes."""

OR_MISSING = " or missing"
"""What follows an interval, an ancestor or a period if some of the records that show it have no value."""


def or_missing(texts: Iterable[str], some: Iterable[bool]) -> list[str]:
    """Return texts that say where some of the records have no value."""
    return [text + OR_MISSING if missing else text for text, missing in zip(texts, some, strict=True)]


def without_missing(text: str) -> tuple[str, bool]:
    """Return a text without what it says about missing values, and whether it said so.

    Examples
    --------
    >>> without_missing("[30, 39] or missing"), without_missing("[30, 39]")
    (('[30, 39]', True), ('[30, 39]', False))
    """
    return text.removesuffix(OR_MISSING), text.endswith(OR_MISSING)
