"""Logs: the events of a stream, one per line, as text or as JSON; names, ids and counts, never values."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

LogForm = Literal["text", "json"]


class _Event(logging.Formatter):
    """An event and its facts."""

    def __init__(self, form: LogForm) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        level, event = record.levelname.lower(), record.getMessage()
        facts: dict[str, Any] = getattr(record, "facts", {})
        if self._form == "json":
            return json.dumps({"time": when, "level": level, "event": event, **facts})
        return " ".join([when, level, event, *(f"{name}={_plain(value)}" for name, value in facts.items())])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else json.dumps(value)


@contextmanager
def logging_to_stderr(form: LogForm) -> Iterator[None]:
    """Write the events of streams to stderr within the context."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Event(form))
    logger = logging.getLogger("shoal.stream")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
