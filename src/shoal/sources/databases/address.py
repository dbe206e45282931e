"""Addresses of databases: of a server, or of a file, which is checked before a driver opens it."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from shoal.errors import FileError, ParameterError
from shoal.passwords import REMEDY, check_no_password, scheme_of

_SERVER = re.compile(r"\w+://(?:(?P<user>[^@/?#]*)@)?(?P<host>[^@/?#]*)(?:/(?P<name>[^@/?#]*))?(?:\?(?P<rest>[^#]*))?")
_SETTINGS = frozenset(
    {
        *("host", "hostaddr", "port", "user", "dbname", "service", "passfile", "connect_timeout", "application_name"),
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode", "krbsrvname"),
        *("target_session_attrs", "keepalives", "keepalives_idle"),
    }
)


class Address(NamedTuple):
    """Where a database is. `text` holds no secret, so that it may stand in jobs, manifests and messages."""

    text: str
    path: Path | None = None
    """File of the database; None for a server."""

    def __str__(self) -> str:
        return self.text.partition("?")[0] if self.path is None else str(self.path)


def checked_scheme(source: str | os.PathLike[str]) -> str | None:
    """Return the scheme of an address in lower case, None for a plain path; raise if it holds a password."""
    text = os.fspath(source)
    check_no_password(text)
    scheme = scheme_of(text)
    if scheme is not None and not isinstance(source, str):
        raise ParameterError("The address of a database is given as a text (str); a Path would change its slashes.")
    return scheme


def server_address(text: str) -> Address:
    """Return the address of a server, ``SCHEME://USER@HOST:PORT/NAME?SETTING=VALUE``; raise unless it has this form."""
    found = _SERVER.fullmatch(text)
    if found is None or ":" in unquote(found["user"] or "") or not _is_host(found["host"]):
        # The text is left out: what does not have this form may hold a password.
        raise ParameterError(
            "The address of the database is not of the form postgresql://USER@HOST:PORT/NAME, in which all parts but "
            f"the first may be left out. Other characters are written as %XX. {REMEDY}."
        )
    given = [name for name, _ in parse_qsl(found["rest"] or "", keep_blank_values=True)]
    unknown = sorted(set(given) - _SETTINGS)
    if unknown:
        raise ParameterError(
            f"The address of the database has a setting that is not known: {unknown[0]!r}. Known: "
            f"{', '.join(sorted(_SETTINGS))}."
        )
    return Address(text)


def _is_host(text: str) -> bool:
    """Return whether these are hosts, each with a port perhaps: ``db:5432,[::1]``."""
    return all(re.fullmatch(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(:\d*)?", part) for part in text.split(","))


def file_address(text: str, scheme: str | None) -> Address:
    """Return the address of a database file, ``FILE`` or ``SCHEME:///FILE``; a fourth slash begins an absolute path."""
    if scheme is None:
        return Address(text, Path(text))
    rest = text[len(scheme) + 1 :]
    if not rest.startswith("///") or len(rest) == 3:
        raise ParameterError(
            f"The address of a database file is {scheme}:///FILE; with an absolute path, {scheme}:////FOLDER/FILE."
        )
    return Address(text, Path(rest[3:]))


def refuse_scheme(scheme: str, known: Iterable[str]) -> ParameterError:
    """Return the error for an address that no database of the registry has."""
    return ParameterError(
        f"Addresses that begin with {scheme}:// cannot be used. Known: {', '.join(f'{name}://' for name in known)}."
    )


def check_file(path: Path, title: str, offset: int, magic: bytes) -> None:
    """Raise unless a file exists and is empty or begins as a file of this database does."""
    if path.is_dir():
        raise FileError(f"{str(path)!r} is a folder. Give the path of a {title} file.")
    if not path.is_file():
        raise FileError(f"{str(path)!r} does not exist or is not a regular file.")
    try:
        with open(path, "rb") as file:
            found = file.read(offset + len(magic))
    except PermissionError:
        raise FileError(f"{str(path)!r} cannot be read: permission denied.") from None
    if found and found[offset:] != magic:
        raise FileError(
            f"{str(path)!r} is not a {title} file, or it is encrypted. A database of another kind is named by its "
            "address, such as duckdb:///FILE."
        )


def identity_of(path: Path | None) -> frozenset[object]:
    """Return what identifies a file under any spelling or link: its resolved path and its inode."""
    if path is None:
        return frozenset()
    found: set[object] = {Path(os.path.realpath(path))}
    if path.exists():
        status = path.stat()
        found.add((status.st_dev, status.st_ino))
    return frozenset(found)
