"""Formatting: numbers and names as a report shows them. Names come from the table, so they are not trusted."""

import math
import unicodedata
from collections.abc import Sequence

# Characters that reorder the text around them, or are not printable, are shown as a replacement mark: a name with such
# characters, or with terminal escapes, could change what a report seems to say.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
_SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def shown(text: str) -> str:
    r"""Return a name without characters that could affect the text around it.

    Examples
    --------
    >>> shown("age\x1b[2J").isprintable()
    True
    """
    return "".join(
        "\ufffd" if character in _REORDERING or unicodedata.category(character) in ("Cc", "Cs") else character
        for character in text
    )


def shortened(text: str, width: int) -> str:
    """Return a name cut to at most this number of characters; wide characters count twice.

    Examples
    --------
    >>> shortened("marital_status", 8)
    'marital…'
    """
    text = shown(text)
    if sum(map(_width, text)) <= width:
        return text
    kept = ""
    room = width - 1
    for character in text:
        room -= _width(character)
        if room < 0:
            break
        kept += character
    return kept.rstrip() + "…"


def _width(character: str) -> int:
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def listed(names: Sequence[str], most: int = 12) -> str:
    """Join names as a sentence does, the last ones counted where there are many.

    Examples
    --------
    >>> listed(["age", "zip", "sex"])
    'age, zip and sex'
    >>> listed(["age", "zip", "sex"], most=2)
    'age and 2 more'
    """
    names = [_isolated(shortened(name, 48)) for name in names]
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1]))) if names else ""


def _isolated(name: str) -> str:
    """Isolate a name that is written from right to left, so that it does not reorder the sentence."""
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in name):
        return f"\u2068{name}\u2069"
    return name


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "record"), counted(1200, "class"), counted(2, "category"), counted(3, "batch")
    ('1 record', '1,200 classes', '2 categories', '3 batches')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"


def percent(share: float | None) -> str:
    """Return a share of 1 in percent, with the significant digits only.

    Examples
    --------
    >>> percent(0.1234), percent(0.00042), percent(0.0), percent(1.0)
    ('12.3%', '0.042%', '0%', '100%')
    """
    if share is None or not math.isfinite(share):
        return "n/a"
    value = 100 * share
    if value == 0 or abs(value) >= 99.95:
        return f"{value:.0f}%"
    if abs(value) < 0.001:
        return "< 0.001%" if value > 0 else "> -0.001%"
    return f"{value:.1f}%" if abs(value) >= 1 else f"{value:.2g}%"


def lost(il: float) -> str:
    """Return an information loss in percent, with four significant digits.

    Examples
    --------
    >>> lost(0.094134), lost(6e-33), lost(0.0)
    ('9.413%', '< 0.001%', '0%')
    """
    return "< 0.001%" if 0 < il < 1e-5 else f"{number(100 * il)}%"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with this number of significant digits.

    Examples
    --------
    >>> number(1234567.8), number(0.012345), number(40.0), number(1.5e-9)
    ('1,235,000', '0.01235', '40', '1.5e-09')
    """
    if value is None or not math.isfinite(value):
        return "n/a"
    rounded = significant(value, digits)
    if rounded != 0 and not 1e-4 <= abs(rounded) < 1e15:
        return f"{rounded:.{digits}g}"
    decimals = max(digits - 1 - math.floor(math.log10(abs(rounded))), 0) if rounded else 0
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def significant(value: float, digits: int = 4) -> float:
    """Round to this number of significant digits."""
    return float(f"{value:.{digits - 1}e}")


def tick(value: float) -> str:
    """Return the number at a tick of an axis, in short form.

    Examples
    --------
    >>> tick(2500), tick(20000.0), tick(0.25), tick(0.0), tick(-1500000)
    ('2,500', '20k', '0.25', '0', '-1.5M')
    """
    for size, suffix in _SUFFIXES:
        if abs(value) >= size and (size > 1e3 or abs(value) >= 1e4):
            return f"{number(value / size, 6)}{suffix}"
    return number(value, 6)


def visible(toml: str) -> str:
    r"""Return a TOML text with reordering characters written as escapes: the same job, with nothing hidden.

    Examples
    --------
    >>> visible('a = "\u202ex"')
    'a = "\\u202ex"'
    """
    return "".join(f"\\u{ord(character):04x}" if character in _REORDERING else character for character in toml)
