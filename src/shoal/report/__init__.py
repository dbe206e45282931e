"""Report: a release as something to read."""

from typing import Any


def render(release: Any, format: str, form: str) -> str:
    """Return the report of a release as text."""
    raise NotImplementedError
