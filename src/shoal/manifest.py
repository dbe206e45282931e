"""Manifest: what goes beside a release, once for the drawer and once for the public.

The internal one repeats the release. The public one may travel with the data: it tells neither the seed, which would
undo the shuffle, nor a hash of the input, which would confirm a guess of the last unknown record.
"""

import base64
import hashlib
import json
import os
import platform
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.auditing import Verdict
from shoal.errors import FileError, ParameterError
from shoal.files import sha256
from shoal.job import Job, Order
from shoal.table import Table
from shoal.typing import Labels

_SHUFFLE = 0x5F0A1  # keeps the order of the records apart from other uses of the seed


def internal_manifest(
    job: Job,
    source: Table,
    output_sha256: str,
    labels: Labels,
    order: Order,
    verdict: Verdict,
    measures: dict[str, Any],
) -> dict[str, Any]:
    """Return all that it takes to repeat a release and to defend it."""
    return {
        **_common(output_sha256, verdict),
        "for": "internal use: do not publish",
        "job": job.to_dict(),
        "input_sha256": input_sha256(source),
        "labels": _packed(labels),
        "order": order,
        **measures,
    }


def public_manifest(job: Job, output_sha256: str, verdict: Verdict) -> dict[str, Any]:
    """Return what may travel with the data."""
    told = job.to_dict(with_seed=False)
    # Paths tell about the machine, not about the data.
    kept = {key: value for key, value in told.items() if key not in ("input", "output")}
    return {**_common(output_sha256, verdict), "job": kept}


def _common(output_sha256: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "versions": {name: version(name) for name in ("shoal", "numpy", "pyarrow")}
        | {"python": platform.python_version()},
        "output_sha256": output_sha256,
        "verdict": verdict.to_dict(),
    }


def input_sha256(source: Table) -> str:
    """Return the SHA-256 of the file that a table came from, or of its records if it came as a frame."""
    if source.path is not None:
        return sha256(source.path)
    digest = hashlib.sha256()
    for name, column in zip(source.names, source.arrow.columns, strict=True):
        digest.update(f"{name}\0{column.type}\0".encode())
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, pa.schema({"": column.type})) as writer:
            writer.write_table(pa.table([column.unify_dictionaries().combine_chunks()], names=[""]))
        digest.update(sink.getvalue())
    return digest.hexdigest()


def _packed(labels: Labels) -> dict[str, str]:
    """Return labels as text: 32-bit integers, lowest byte first, compressed by zlib, in base 64."""
    packed = zlib.compress(labels.astype("<i4").tobytes(), 1)
    return {"encoding": "base64, zlib, int32 little-endian", "data": base64.b64encode(packed).decode()}


def unpacked(labels: dict[str, str]) -> Labels:
    """Return the labels that a manifest holds.

    Examples
    --------
    >>> unpacked(_packed(np.array([0, 1, 0])))
    array([0, 1, 0])
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(labels["data"])), dtype="<i4").astype(np.int64)


class Internal(NamedTuple):
    """What an internal manifest says about which record became which."""

    labels: Labels
    order: Order
    seed: int
    rho: float


def read_internal(manifest: str | os.PathLike[str]) -> Internal:
    """Read the internal manifest of a release."""
    try:
        content = json.loads(Path(manifest).read_text(encoding="utf-8"))
        job, labels = content["job"], unpacked(content["labels"])
        order, seed, rho = content["order"], job["seed"], float(job["rho"] or 0)
        if order not in get_args(Order) or not isinstance(seed, int) or seed < 0 or (labels < 0).any() or not rho >= 0:
            raise ValueError
    except OSError as error:
        raise FileError(f"The manifest {os.fspath(manifest)!r} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, zlib.error):
        raise ParameterError(f"{os.fspath(manifest)!r} is not the internal manifest of a release.") from None
    return Internal(labels, order, seed, rho)


def written_order(order: Order, seed: int, n_records: int) -> NDArray[np.int64] | None:
    """Return which record stands in each row of a written release; None for the order of the input."""
    if order not in get_args(Order):
        raise ParameterError(f"order must be one of {', '.join(get_args(Order))}.")
    if order == "keep":
        return None
    # A stream of its own, so that the order tells nothing about other random choices.
    return np.random.default_rng([_SHUFFLE, seed]).permutation(n_records)


def as_text(manifest: dict[str, Any]) -> str:
    """Return a manifest as the text of its file."""
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
