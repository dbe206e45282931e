"""Names in SQL: quoted so that they are never read as anything else."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from shoal.errors import ParameterError, SchemaError

_PART = r'(?:"(?:[^"]|"")+"|[^".]+)'
_NAME = re.compile(rf"({_PART})(?:\.({_PART}))?")


class Name(NamedTuple):
    """Name of a table, and of its schema if one is given."""

    table: str
    schema: str | None = None

    @staticmethod
    def of(text: str) -> "Name":
        """Split ``SCHEMA.TABLE``; a part that holds a dot or a quote stands in double quotes, as in SQL.

        Upper and lower case are those of the database: nothing is folded.

        Examples
        --------
        >>> Name.of("people"), Name.of('census."a.b"')
        (Name(table='people', schema=None), Name(table='a.b', schema='census'))
        """
        found = _NAME.fullmatch(text)
        if found is None or "\0" in text:
            raise ParameterError(
                f"{text!r} is not the name of a table. Give NAME or SCHEMA.NAME; a name that holds a dot or a double "
                'quote stands in double quotes, as in SQL: "a.b".'
            )
        first, second = (_plain(part) for part in found.groups())
        return Name(second, first) if second is not None else Name(str(first))

    @property
    def sql(self) -> str:
        """The name as SQL."""
        return quoted(self.table) if self.schema is None else f"{quoted(self.schema)}.{quoted(self.table)}"

    def __str__(self) -> str:
        parts = [self.table] if self.schema is None else [self.schema, self.table]
        return ".".join(quoted(part) if re.search(r'[".]', part) else part for part in parts)


def _plain(part: str | None) -> str | None:
    return part[1:-1].replace('""', '"') if part is not None and part.startswith('"') else part


def quoted(name: str) -> str:
    """Return a name of a column or a table as SQL.

    Examples
    --------
    >>> quoted('a"b; drop')
    '"a""b; drop"'
    """
    if "\0" in name:
        raise SchemaError(f"The name {name!r} holds a NUL character, which no database can store. Rename it.")
    return '"{}"'.format(name.replace('"', '""'))


def literal(text: str) -> str:
    """Return a text as a string of standard SQL, for statements that take no parameters.

    Examples
    --------
    >>> literal("the person's age")
    "'the person''s age'"
    """
    return "'{}'".format(text.replace("\0", "").replace("'", "''"))


def check_storable(names: Sequence[str], *, longest: int | None, ignores_case: bool) -> None:
    """Raise if a database would cut a name off, or take two names for the same.

    `longest` is the number of bytes of UTF-8 that a name may have; longer ones would be cut off silently.
    """
    for name in names:
        if not name:
            raise SchemaError("A column has an empty name, which a database cannot store. Rename it.")
        quoted(name)
        if longest is not None and len(name.encode()) > longest:
            raise SchemaError(
                f"The name {name!r} has {len(name.encode())} bytes, and the database cuts names off after {longest}. "
                "Rename it."
            )
    seen: dict[str, str] = {}
    for name in names:
        key = name.casefold() if ignores_case else name
        if key in seen:
            raise SchemaError(
                f"Columns {seen[key]!r} and {name!r} differ only in case, which the database does not tell apart. "
                "Rename one."
            )
        seen[key] = name
