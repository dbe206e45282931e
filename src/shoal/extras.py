"""Extras: the name of the distribution, and how its optional parts are installed."""

DISTRIBUTION = "shoal-privacy"
"""On PyPI; the package and the command are called shoal."""


def install(extra: str) -> str:
    """Return the commands that install an optional part.

    Examples
    --------
    >>> install("dp")
    "pip install 'shoal-privacy[dp]' (from a checkout: pip install '.[dp]')"
    """
    return f"pip install '{DISTRIBUTION}[{extra}]' (from a checkout: pip install '.[{extra}]')"
