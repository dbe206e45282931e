"""Extras: the name of the distribution, and how its optional dependencies are installed."""

from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

from shoal.errors import ParameterError, ShoalError

DISTRIBUTION = "shoal-privacy"
"""Name on PyPI; the package and the command are called shoal."""


def install(extra: str) -> str:
    """Return the commands that install an extra.

    Examples
    --------
    >>> install("dp")
    "pip install 'shoal-privacy[dp]' (from a checkout: pip install '.[dp]')"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]' (from a checkout: pip install '.[{extra}]')"


def optional(module: str, needed: str, extra: str, refusal: type[ShoalError] = ParameterError) -> Any:
    """Import an optional dependency, or raise what it is needed for and the commands that install it."""
    try:
        return import_module(module)
    except ImportError:
        raise refusal(f"{needed}, which is not installed: {install(extra)}.") from None


def versions(*packages: str) -> dict[str, str]:
    """Return the version of shoal and of other packages, by name."""
    return {"shoal": _version(DISTRIBUTION), **{name: _version(name) for name in packages}}


@cache
def _version(package: str) -> str:
    """Return the version of a package, whose files are searched once."""
    return version(package)
