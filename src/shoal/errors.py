"""What shoal raises: one family, each member saying what was asked, what was found and what to do next."""


class ShoalError(Exception):
    """Anything that shoal refuses to do."""

    dialect = "argument"
    """How the one who asked names settings: as arguments of Python, options of the command line or keys of a job."""


class ParameterError(ShoalError, ValueError):
    """An argument, an option or an array that cannot be used as it is."""


class SchemaError(ShoalError):
    """Columns and roles that do not fit the table."""


class GuaranteeError(ShoalError):
    """A privacy guarantee that cannot be met; nothing is released."""


class FileError(ShoalError):
    """A file that cannot be read or written as asked."""


class ShoalWarning(UserWarning):
    """Something to look at before a release is published."""
