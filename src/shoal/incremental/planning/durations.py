"""Durations as text: 90, 90s, 1h30min, 2 days."""

import re

from shoal.errors import ParameterError

_UNITS = {"d": 86_400, "day": 86_400, "days": 86_400, "h": 3_600, "min": 60, "m": 60, "s": 1, "ms": 0.001}


def as_seconds(text: str) -> float:
    """Parse a duration.

    Examples
    --------
    >>> as_seconds("1h30min"), as_seconds("2 days"), as_seconds("45")
    (5400.0, 172800.0, 45.0)
    """
    compact = text.strip().lower().replace(" ", "")
    if re.fullmatch(r"\d+(\.\d+)?", compact):
        return float(compact)
    parts = re.findall(r"(?<!\d)(\d+(?:\.\d+)?)([a-z]+)", compact)
    if (
        not parts
        or "".join(number + unit for number, unit in parts) != compact
        or any(u not in _UNITS for _, u in parts)
    ):
        raise ParameterError(f"{text!r} is not a duration. Write 90s, 45min, 1h30min or 2days.")
    return float(sum(float(number) * _UNITS[unit] for number, unit in parts))


def spoken(seconds: float) -> str:
    """Format a duration with its two largest units.

    Examples
    --------
    >>> spoken(153.1), spoken(5_834), spoken(0.25), spoken(-90)
    ('2 min 33 s', '1 h 37 min', '0.25 s', '-1 min 30 s')
    """
    if seconds < 0:
        return f"-{spoken(-seconds)}"
    if seconds < 10:
        return f"{seconds:.3g} s"
    whole = round(seconds)
    if whole < 3_600:
        minutes, rest = divmod(whole, 60)
        return " ".join(part for part in (f"{minutes} min" if minutes else "", f"{rest} s" if rest else "") if part)
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
