"""A PostgreSQL server for tests, on a socket of its own: started once per process when it is first asked for."""

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

OWNER = "shoal"
GUEST, SECRET = "guest", "geheim"
_ACCESS = f"local all {GUEST} scram-sha-256\nlocal all all trust\n"
_SETTINGS = {"listen_addresses": "", "fsync": "off", "max_connections": "20", "shared_buffers": "16MB"}


def programs():
    """Return the folder of initdb, or None if there is no server on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).resolve().parent if on_path else None


@functools.cache
def folder():
    """Start the server and return the folder of its socket; skip the test if there is no server."""
    bin_folder = programs()
    if bin_folder is None:
        pytest.skip("no PostgreSQL server on this machine")
    home = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: that of a socket has at most about 100 bytes
    # The server refuses to run as root.
    who = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.getuid() == 0 else {}
    if who:
        shutil.chown(home, "nobody", "nogroup")

    def run(program, *arguments):
        command = [bin_folder / program, "-D", home / "data", *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home, **who)

    run("initdb", "-U", OWNER, "-A", "trust", "-N", "-E", "UTF8", "--locale=C")
    (home / "data" / "pg_hba.conf").write_text(_ACCESS)
    options = " ".join(f"-c {name}='{value}'" for name, value in {**_SETTINGS, "unix_socket_directories": home}.items())
    run("pg_ctl", "-w", "-l", home / "log", "-o", options, "start")

    def stop():
        run("pg_ctl", "-m", "immediate", "stop")
        shutil.rmtree(home, ignore_errors=True)

    atexit.register(stop)
    _psql(home, "postgres", f"CREATE ROLE {GUEST} LOGIN PASSWORD '{SECRET}'")
    return home


@functools.cache
def _counter():
    return iter(range(10_000))


def new_database():
    """Return the name of a new, empty database."""
    name = f"test{next(_counter())}"
    psql("postgres", f"CREATE DATABASE {name}")
    return name


def address(database, user=OWNER):
    """Return the address of a database."""
    return f"postgresql://{user}@/{database}?host={folder()}"


def psql(database, *statements, user=OWNER):
    """Execute statements with psql, the reader that is not shoal, and return what it prints: CSV with a header."""
    return _psql(folder(), database, *statements, user=user)


def _psql(home, database, *statements, user=OWNER):
    command = [
        programs() / "psql",
        "-h",
        home,
        "-U",
        user,
        "-d",
        database,
        "-X",
        "-q",
        "--csv",
        "-v",
        "ON_ERROR_STOP=1",
    ]
    done = subprocess.run(
        [*command, *(word for statement in statements for word in ("-c", statement))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
