"""Option names: how the command line names a setting of Python or of a job."""

_OTHERWISE = {
    "identifiers": ("--drop", "--identifiers"),
    "quasi_identifiers": ("--quasi", "--quasi-identifiers", "--qi"),
    "confidential": ("--confidential", "--sensitive"),
    "null_values": ("--null-value",),
    "missing_codes": ("--missing-code",),
    "order": ("--order-of",),
    "json_file": ("--json",),
    "form": ("--internal/--public",),
    "ranges": ("--range",),
    "url": ("--redis",),
    "source": ("--from",),
    "target": ("--to",),
    "target_length": ("--to-length",),
}


def option_names(setting: str) -> tuple[str, ...]:
    """Return the option of a setting and its other names.

    Examples
    --------
    >>> option_names("quasi_identifiers"), option_names("header_row")
    (('--quasi', '--quasi-identifiers', '--qi'), ('--header-row',))
    """
    return _OTHERWISE.get(setting, (f"--{setting.replace('_', '-')}",))


def option_name(setting: str) -> str:
    """Return the option of a setting."""
    return option_names(setting)[0]
