"""State: a stopped stream as bytes and as a file, with a version and a checksum, so that damage is detected.

The bytes are a line with name and version, a line with the SHA-256 of the rest, the length of a JSON text, that text,
and the tuples that wait as an Arrow stream. They hold unprotected tuples: keep them as you keep the input.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import FileError
from shoal.files import replacing

TITLE = b"shoal stream, version 2\n"


def pack(kept: dict[str, Any], waiting: pa.Table) -> bytes:
    """Return the state, and the tuples that wait, as bytes."""
    text = json.dumps(kept, default=str).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, waiting.schema) as stream:
        stream.write_table(waiting)
    body = len(text).to_bytes(8, "little") + text + sink.getvalue().to_pybytes()
    content: bytes = TITLE + sha256(body).hexdigest().encode() + b"\n" + body
    return content


def unpack(content: bytes) -> tuple[dict[str, Any], pa.Table]:
    """Return the arguments of `pack`, or raise if the bytes are damaged or of another version."""
    title, rest = content[: len(TITLE)], content[len(TITLE) :]
    checksum, body = rest[:65], rest[65:]
    if title != TITLE:
        if title.startswith(b"shoal stream, version "):
            raise FileError("The checkpoint was written by another version of shoal; finish that stream with that one.")
        raise FileError("This is not a checkpoint of a stream.")
    if sha256(body).hexdigest().encode() + b"\n" != checksum:
        raise FileError("The checkpoint is damaged: its checksum does not match. Use an older one or start again.")
    length = int.from_bytes(body[:8], "little")
    kept: dict[str, Any] = json.loads(body[8 : 8 + length])
    return kept, pa.ipc.open_stream(body[8 + length :]).read_all()


def write(path: Path, content: bytes) -> None:
    """Write a file readable by its owner only; the old one stays until the new one is on disk."""
    with replacing(path, force=True, private=True) as beside:
        beside.write_bytes(content)


def read(path: Path) -> bytes:
    """Return the content of a checkpoint."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileError(f"The checkpoint {path.name} cannot be read: {error.strerror}.") from error
