"""Passwords are refused in addresses: they would end up in the process list, in job files and in manifests."""

import re
from urllib.parse import parse_qsl

from shoal.errors import ParameterError

REMEDY = (
    "Put the password into the environment (PGPASSWORD), a service (PGSERVICE) or a pass file (~/.pgpass), and leave "
    "it out of the address"
)
_USER_AND_PASSWORD = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+(?>[^/?#]*?(:|%3A))[^@]*@", re.IGNORECASE)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def scheme_of(text: str) -> str | None:
    """Return the scheme of an address in lower case, None for a path.

    Examples
    --------
    >>> scheme_of("postgresql://host/db"), scheme_of("people.csv")
    ('postgresql', None)
    """
    found = _SCHEME.match(text)
    return None if found is None else found[1].lower()


def check_no_password(text: str) -> None:
    """Raise if an address holds a password, without repeating it."""
    if scheme_of(text) is not None and (_USER_AND_PASSWORD.match(text) or _secret_settings(text)):
        raise ParameterError(
            f"The address of a database holds a password, which others on this machine can see. {REMEDY}."
        )


def _secret_settings(text: str) -> list[str]:
    settings = parse_qsl(text.partition("?")[2], keep_blank_values=True)
    return [name for name, _ in settings if "password" in name.lower()]
