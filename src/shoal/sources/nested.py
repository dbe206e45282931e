"""Nested values as texts: equal values have the same text, whatever the order of their keys and the spelling in JSON.

Numbers are equal if they are the same number: 1, 1.0 and 1e0 are. Fractions are compared as float64 holds them, whole
numbers exactly, however large.
"""

import json
from decimal import Decimal
from typing import Any

_EXACT = 2**53


def text_of(value: Any, *, as_seen: bool = False) -> str:
    """Return a list or an object as JSON, in its one spelling.

    If `as_seen`, it is spelled as a reader sees it: no blanks around texts, and what is missing or empty left out.
    """
    return json.dumps(_plain(value, as_seen), ensure_ascii=False, sort_keys=True)


def text_of_json(text: str) -> str | None:
    """Return the text of a value that is written as JSON: of a text its content, None of null."""
    try:
        value = json.loads(text, parse_float=_number)
        if value is None or isinstance(value, str):
            return value
        return text_of(value, as_seen=True)
    except (ValueError, RecursionError):
        # A number beyond every float64, or too deep: compared as it is spelled.
        return text


def text_of_number(text: str) -> str:
    """Return the one spelling of a number that is written in digits; of one beyond every float64, its own."""
    try:
        return text_of(_number(text))
    except ValueError:
        return text


def _plain(value: Any, as_seen: bool) -> Any:
    if isinstance(value, dict):
        return _members(value, as_seen)
    if isinstance(value, list):
        if value and all(isinstance(item, tuple) for item in value):  # a map, as Arrow returns it
            return _members({str(key): item for key, item in value}, as_seen)
        return [_plain(item, as_seen) for item in value]
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    if isinstance(value, str):
        return (value.strip() or None) if as_seen else value
    return value if isinstance(value, int | None) else str(value)


def _members(value: dict[str, Any], as_seen: bool) -> dict[str, Any]:
    members = {name: _plain(item, as_seen) for name, item in value.items()}
    return {name: item for name, item in members.items() if not (as_seen and item is None)}


def _number(text: str) -> float | int:
    """Return a number as float64; a whole one that float64 does not hold, exactly."""
    number = float(text)
    if abs(number) < _EXACT:
        return number
    if number in (float("inf"), float("-inf")):
        raise ValueError("beyond every float64")
    return int(Decimal(text))
